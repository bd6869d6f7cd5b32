//! `--template FILE=NAME`: copies of files, filled in with the values of a job.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use minder_os::files::create_private_file;

use super::files::refuse_data_stream;
use super::files::text;
use crate::config::OutputFiles;
use crate::config::absolute_path;
use crate::results::Refusal;
use minder_template::Job;

/// The files that were created for a job and are removed with it.
#[derive(Debug, Default)]
pub(crate) struct TemplateFiles {
    files: Vec<PathBuf>,
    dir: Option<PathBuf>,
}

impl TemplateFiles {
    /// Creates the copies of a job.
    pub(crate) fn create(wanted: &OutputFiles, job: &Job<'_>) -> Result<Self, Refusal> {
        let mut made = Self::default();
        for copy in &wanted.copies {
            let name = PathBuf::from(text(&copy.name, job)?);
            let content = text(&copy.content, job)?;
            let refusal = |error: &io::Error| {
                Refusal::of(
                    &format!("cannot write `{}`", name.display()),
                    error,
                    copy.name.has_placeholders(),
                )
            };
            if absolute_path(&name).is_ok_and(|place| copy.originals.contains(&place)) {
                let why = "it is the template (give its copies another name)";
                return Err(refusal(&io::Error::new(io::ErrorKind::InvalidInput, why)));
            }
            // A file that existed before the job belongs to the user and is kept.
            let replaces = fs::symlink_metadata(&name).is_ok();
            put(&name, content.as_encoded_bytes(), &copy.permissions, &wanted.token)
                .map_err(|error| refusal(&error))?;
            if wanted.cleanup && !replaces {
                made.files.push(name);
            }
        }
        Ok(made)
    }

    /// Also removes this directory with the job.
    pub(crate) fn own(&mut self, dir: PathBuf) {
        self.dir = Some(dir);
    }
}

impl Drop for TemplateFiles {
    fn drop(&mut self) {
        // A file that cannot be removed was moved away, or was replaced by another user's.
        self.files.iter().for_each(|file| _ = fs::remove_file(file));
        let _ = self.dir.as_ref().map(fs::remove_dir_all);
    }
}

/// Writes a file atomically: a reader that opens it finds all of it. An existing file or link is
/// replaced. A device is not: a user who may write to its directory could otherwise remove it for
/// the whole machine.
fn put(name: &Path, content: &[u8], permissions: &Permissions, token: &str) -> io::Result<()> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    refuse_data_stream(name)?;
    if name.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    }
    if fs::symlink_metadata(name).is_ok_and(|found| !found.is_file() && !found.is_symlink()) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "not a regular file"));
    }
    let part = name.with_file_name(format!(".minder-{token}-{}", MADE.fetch_add(1, Ordering::Relaxed)));
    let mut file = create_private_file(&part)?;
    let written = file
        .write_all(content)
        .and_then(|()| fs::set_permissions(&part, permissions.clone()))
        .and_then(|()| fs::rename(&part, name));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}
