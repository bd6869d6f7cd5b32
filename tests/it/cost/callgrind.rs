//! Counts instructions in user space, by valgrind's callgrind.
//!
//! valgrind 3.19 does not know `clone3` with `CLONE_VFORK` and `pidfd_open`. Under it the library starts
//! children by `clone`, and notices their exit without a pidfd. So the counts per job are those of
//! these ways, plus everything that both ways share. System calls are counted on the usual ways.

use std::fs;

use super::invocation::Invocation;

/// Returns the instructions of the runner: the process with the most.
///
/// callgrind writes a file for each process that was forked. The count of a process contains that of its
/// parent up to the fork. So the runner's count is the whole way from the start to its exit. A process
/// that executes a program of a job leaves valgrind and no file.
pub(super) fn count(invocation: &Invocation) -> f64 {
    let out = format!("--callgrind-out-file={}/callgrind.%p", invocation.dir().display());
    invocation.finish_by(&["valgrind", "--tool=callgrind", &out]);
    let files = fs::read_dir(invocation.dir()).expect("read directory").flatten();
    let totals = files.filter_map(|file| {
        let name = file.file_name();
        if !name.to_string_lossy().starts_with("callgrind.") {
            return None;
        }
        let text = fs::read_to_string(file.path()).expect("read counts");
        let total = text.lines().rev().find_map(|line| line.strip_prefix("totals: "))?;
        Some(total.trim().parse::<f64>().expect("parse count"))
    });
    totals.reduce(f64::max).unwrap_or_else(|| panic!("callgrind counted nothing: {}", invocation.errors()))
}
