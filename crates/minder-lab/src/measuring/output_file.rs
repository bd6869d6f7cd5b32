//! The files of `--svg` and `--xlsx`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::chart::Chart;

/// A file that is opened before anything is measured, so that an error comes at once. It keeps its
/// contents until the new ones are written. If it did not exist before, and nothing complete is written, it
/// is removed.
#[derive(Debug)]
pub(crate) struct OutputFile {
    /// What is written: `chart`.
    what: &'static str,
    path: PathBuf,
    file: File,
    /// Whether this has created the file, and its contents are not complete yet.
    is_incomplete: bool,
}

impl OutputFile {
    /// Opens or creates the file. Opening a named pipe blocks until it has a reader.
    pub(crate) fn open(what: &'static str, path: &Path) -> Result<Self> {
        let (file, is_incomplete) = match File::options().write(true).create_new(true).open(path) {
            Ok(file) => (Ok(file), true),
            // It exists. A link to a file that does not exist counts as well, and creates that file.
            Err(_) => (File::options().write(true).create(true).truncate(false).open(path), false),
        };
        let file = file.with_context(|| describe(what, path))?;
        Ok(Self { what, path: path.to_owned(), file, is_incomplete })
    }

    /// Replaces the contents of the file by a chart.
    pub(crate) fn write_chart(self, chart: &Chart) -> Result<()> {
        self.write(chart.svg()?.as_bytes())
    }

    /// Replaces the contents of the file.
    pub(crate) fn write(mut self, contents: &[u8]) -> Result<()> {
        self.replace(contents).with_context(|| describe(self.what, &self.path))?;
        self.is_incomplete = false;
        Ok(())
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

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_incomplete {
            // An empty file is left then, which does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn describe(what: &str, path: &Path) -> String {
    format!("cannot write the {what} `{}`", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use minder_ui::format_error;

    #[test]
    fn chart_replaces_contents_of_file_when_it_is_written() {
        let dir = tempfile::tempdir().expect("create directory");
        let path = dir.path().join("chart.svg");
        std::fs::write(&path, "something longer").expect("write old chart");
        let file = OutputFile::open("chart", &path).expect("open chart");
        assert_eq!(std::fs::read(&path).expect("read old chart"), b"something longer");
        file.write(b"<svg/>").expect("write chart");
        assert_eq!(std::fs::read(&path).expect("read chart"), b"<svg/>");
        // A file that was created is removed if nothing is written to it; one that existed is kept.
        let new = dir.path().join("new.svg");
        let unused = OutputFile::open("chart", &new).expect("create a chart");
        assert!(new.exists());
        drop(unused);
        assert!(!new.exists());
        drop(OutputFile::open("chart", &path).expect("open chart"));
        assert_eq!(std::fs::read(&path).expect("read chart"), b"<svg/>");
        OutputFile::open("chart", &new).expect("create a chart").write(b"<svg/>").expect("write chart");
        assert_eq!(std::fs::read(&new).expect("read chart"), b"<svg/>");
        let error = OutputFile::open("chart", &dir.path().join("no/chart.svg"))
            .expect_err("open in missing directory");
        assert!(format_error(&error).starts_with("cannot write the chart `"), "{error}");
    }
}
