//! The numbers of runs, which define their order independently of the clock.
//!
//! The last number is in a file of the state directory. If that file is lost or damaged, the number
//! comes from the manifests.

use std::fs::File;
use std::io;
use std::path::Path;
use std::thread;

use minder_os::files::{open_private_file, read_at, write_all_at};

use crate::store;

/// The file with the last number.
const COUNTER: &str = "counter";
/// The digits of a number in the file. All numbers have the same length, so that a new one
/// overwrites the old one exactly.
const DIGITS: usize = 20;
/// The number of times that the lock of the file is tried.
const LOCK_TRIES: u32 = 1_000;

/// Returns the number of a new run. It is higher than those of all runs before. Two runs get the
/// same number only if they begin at the same time and one of them cannot get the lock.
///
/// # Errors
///
/// If the state directory cannot be read or written.
pub(crate) fn next(root: &Path) -> io::Result<u64> {
    let file = open_private_file(&root.join(COUNTER))?;
    lock(&file);
    let last = match read(&file) {
        Some(last) => last,
        None => highest(root),
    };
    let next = last.saturating_add(1);
    write_all_at(&file, format!("{next:0DIGITS$}\n").as_bytes(), 0)?;
    Ok(next)
}

/// Locks the file. Gives up after some tries, so that a process that was stopped while it holds the
/// lock does not block all others.
fn lock(file: &File) {
    for _ in 0..LOCK_TRIES {
        if file.try_lock().is_ok() {
            return;
        }
        thread::yield_now();
    }
}

/// Returns the number in the file, if the file contains a number and nothing else.
fn read(file: &File) -> Option<u64> {
    let mut text = [0; DIGITS + 2];
    let len = read_at(file, &mut text, 0).ok()?;
    let digits = text[..len].strip_suffix(b"\n").filter(|digits| digits.len() == DIGITS)?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns the highest number in a manifest.
fn highest(root: &Path) -> u64 {
    let runs = store::list(root).unwrap_or_default();
    runs.iter().filter_map(|run| run.manifest.as_ref().ok()?.number).max().unwrap_or(0)
}
