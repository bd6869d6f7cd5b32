//! The files of `--svg` and `--xlsx`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file that is opened before anything is measured, so that an error comes at once. It keeps its
/// contents until the new ones are written.
#[derive(Debug)]
pub(super) struct OutputFile {
    /// What is written: `chart`.
    what: &'static str,
    path: PathBuf,
    file: File,
}

impl OutputFile {
    /// Opens or creates the file. Opening a named pipe blocks until it has a reader.
    pub(super) fn open(what: &'static str, path: &Path) -> Result<Self> {
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| describe(what, path))?;
        Ok(Self { what, path: path.to_owned(), file })
    }

    /// Replaces the contents of the file.
    pub(super) fn write(mut self, contents: &[u8]) -> Result<()> {
        self.replace(contents).with_context(|| describe(self.what, &self.path))
    }

    fn replace(&mut self, contents: &[u8]) -> std::io::Result<()> {
        self.file.write_all(contents)?;
        // A pipe or a device has no length.
        if self.file.metadata()?.is_file() {
            self.file.set_len(contents.len() as u64)?;
        }
        Ok(())
    }
}

fn describe(what: &str, path: &Path) -> String {
    format!("cannot write the {what} `{}`", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::format_error;

    #[test]
    fn chart_replaces_contents_of_file_when_it_is_written() {
        let dir = tempfile::tempdir().expect("create directory");
        let path = dir.path().join("chart.svg");
        std::fs::write(&path, "something longer").expect("write old chart");
        let file = OutputFile::open("chart", &path).expect("open chart");
        assert_eq!(std::fs::read(&path).expect("read old chart"), b"something longer");
        file.write(b"<svg/>").expect("write chart");
        assert_eq!(std::fs::read(&path).expect("read chart"), b"<svg/>");
        let error = OutputFile::open("chart", &dir.path().join("no/chart.svg"))
            .expect_err("open in missing directory");
        assert!(format_error(&error).starts_with("cannot write the chart `"), "{error}");
    }
}
