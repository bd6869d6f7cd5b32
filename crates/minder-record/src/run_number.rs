//! The order of runs: a number for each, so that the newest is known whatever the clock says.
//!
//! The last number that was given is in a file of the state folder. If that is lost, it is made
//! again from the manifests.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::thread;

use minder_os::files::{create_private_file, read_at, write_all_at};

use super::manifest::open_file;
use super::store;

/// The file with the last number.
const COUNTER: &str = "counter";
/// Digits of a number in it: a new one covers the old one exactly.
const DIGITS: usize = 20;
/// How often its lock is asked for.
const LOCK_TRIES: u32 = 1_000;

/// Returns the number of a run that begins. It is higher than those of all runs before. Two runs
/// have the same number only if they begin at the same time and one of them waits for the lock in
/// vain.
///
/// # Errors
/// The state folder cannot be read or written.
pub(crate) fn next(root: &Path) -> io::Result<u64> {
    let file = open(&root.join(COUNTER))?;
    lock(&file);
    let last = match read(&file) {
        Some(last) => last,
        None => highest(root),
    };
    let next = last.saturating_add(1);
    write_all_at(&file, format!("{next:0DIGITS$}\n").as_bytes(), 0)?;
    Ok(next)
}

fn open(path: &Path) -> io::Result<File> {
    match create_private_file(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Refuses a link; opening for writing does not.
            drop(open_file(path)?);
            OpenOptions::new().read(true).write(true).open(path)
        }
        made => made,
    }
}

/// Locks the file. A process that was stopped in the middle makes no other wait for ever.
fn lock(file: &File) {
    for _ in 0..LOCK_TRIES {
        if file.try_lock().is_ok() {
            return;
        }
        thread::yield_now();
    }
}

/// The number in the file, if it holds one and nothing else.
fn read(file: &File) -> Option<u64> {
    let mut text = [0; DIGITS + 2];
    let len = read_at(file, &mut text, 0).ok()?;
    let digits = text[..len].strip_suffix(b"\n").filter(|digits| digits.len() == DIGITS)?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// The highest number that the manifest of a run has.
fn highest(root: &Path) -> u64 {
    let runs = store::list(root).unwrap_or_default();
    runs.iter().filter_map(|run| run.manifest.as_ref().ok()?.number).max().unwrap_or(0)
}
