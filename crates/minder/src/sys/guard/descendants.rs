//! Finds descendants of a process in `/proc`.
//!
//! The `children` files list the children of one process. If the kernel has no such files, all of
//! `/proc` is read. Paths and contents are in small buffers on the stack: this code runs in the
//! guardians, whose memory is counted, and against trees that fork while it reads.

use std::ffi::CStr;
use std::fmt::Arguments;
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, RawDir};

use crate::sys::process_tree::{PF_EXITING, why_no_table};

/// The source of the lists of children.
#[derive(Debug)]
pub(super) enum DescendantFinder {
    /// The `children` files. A guardian keeps its own file open, with its pid. So it finds and
    /// kills its children even if no descriptor is free, and then their children, which become its
    /// own.
    Files(Option<(i32, OwnedFd)>),
    /// A scan of the whole table: (parent, child), sorted.
    Scan(Vec<(i32, i32)>),
    /// Unavailable: `/proc` belongs to another PID namespace, or is not mounted.
    Unavailable,
}

/// The result of reading one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcStat {
    pub(super) parent: i32,
    /// The state of its main thread.
    state: u8,
    /// The number of its threads. Those of a zombie are its main thread, and others that run.
    threads: u32,
    /// Its main thread is exiting. If that is its only one, its files are closed already, and it disappears
    /// within microseconds.
    pub(super) exiting: bool,
}

impl ProcStat {
    /// Returns whether the process has exited and is not reaped yet.
    pub(super) fn has_exited(self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }

    /// Returns whether its main thread is stopped, by a signal or by a tracer, or the process has exited.
    pub(super) fn is_still(self) -> bool {
        self.has_exited() || matches!(self.state, b'T' | b't')
    }

    /// Returns whether it waits in the kernel, where it does not stop.
    pub(super) fn waits_in_kernel(self) -> bool {
        self.state == b'D'
    }
}

impl DescendantFinder {
    pub(super) fn new(no_children_file: bool) -> Self {
        let me = rustix::process::getpid().as_raw_nonzero();
        if why_no_table().is_some() {
            return DescendantFinder::Unavailable;
        }
        let has_children_file = open(format_args!("/proc/{me}/task/{me}/children")).is_some();
        if no_children_file || !has_children_file {
            DescendantFinder::Scan(Vec::new())
        } else {
            DescendantFinder::Files(None)
        }
    }

    /// Creates a finder for a guardian, which has one thread. The file that lists its children stays open.
    pub(super) fn of_guardian(no_children_file: bool) -> Self {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        match DescendantFinder::new(no_children_file) {
            DescendantFinder::Files(_) => DescendantFinder::Files(
                open(format_args!("/proc/{me}/task/{me}/children")).map(|file| (me, file)),
            ),
            other => other,
        }
    }

    /// Returns the descriptor that stays open.
    pub(super) fn descriptor(&self) -> Option<&OwnedFd> {
        match self {
            DescendantFinder::Files(Some((_, file))) => Some(file),
            _ => None,
        }
    }

    /// Begins a new round, and drops the results of an earlier scan.
    pub(super) fn refresh(&mut self) {
        let DescendantFinder::Scan(pairs) = self else { return };
        pairs.clear();
        each_number(c"/proc", |pid| {
            if let Some(stat) = read_stat_of(pid) {
                pairs.push((stat.parent, pid));
            }
        });
        pairs.sort_unstable();
    }

    /// Adds the children of all threads of `pid`.
    pub(super) fn children(&self, pid: i32, out: &mut Vec<i32>) {
        match self {
            DescendantFinder::Files(Some((me, file))) if *me == pid => return read_children(file, out),
            DescendantFinder::Files(_) => {}
            DescendantFinder::Scan(pairs) => {
                let first = pairs.partition_point(|pair| pair.0 < pid);
                out.extend(pairs[first..].iter().take_while(|pair| pair.0 == pid).map(|pair| pair.1));
                return;
            }
            DescendantFinder::Unavailable => return,
        }
        with_path(format_args!("/proc/{pid}/task"), |tasks| {
            // The links of the directory are `.`, `..` and one a thread. Nearly every process has one thread.
            match rustix::fs::statat(CWD, tasks, rustix::fs::AtFlags::empty()) {
                Ok(stat) if stat.st_nlink == 3 => thread_children(pid, pid, out),
                Ok(_) => each_number(tasks, |tid| thread_children(pid, tid, out)),
                Err(_) => {}
            }
        });
    }
}

/// Returns the parent and the state of `pid`, if this process exists.
pub(super) fn read_stat_of(pid: i32) -> Option<ProcStat> {
    let mut buffer = [0; 256];
    let text = read_stat(format_args!("/proc/{pid}/stat"), &mut buffer)?;
    let mut fields = after_name(text)?;
    let state = *fields.next()?.first()?;
    let parent = number(fields.next()?)?;
    let flags: u32 = number(fields.nth(4)?)?;
    let threads = fields.nth(10).and_then(number).unwrap_or(1);
    Some(ProcStat { parent, state, threads, exiting: flags & PF_EXITING != 0 })
}

/// Returns the short name of `pid`.
pub(super) fn name(pid: i32) -> Option<String> {
    let mut buffer = [0; 64];
    let text = read_stat(format_args!("/proc/{pid}/comm"), &mut buffer)?;
    Some(String::from_utf8_lossy(text.trim_ascii_end()).into_owned())
}

/// Returns whether this process has only one thread, or its other threads exit `within` this time.
/// Returns true where that cannot be read.
pub(super) fn is_alone(within: Duration) -> bool {
    let until = Instant::now() + within;
    loop {
        // `.`, `..`, and each of the threads.
        if rustix::fs::stat(c"/proc/self/task").map_or(true, |stat| stat.st_nlink <= 3) {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        let pause = rustix::fs::Timespec { tv_sec: 0, tv_nsec: 200_000 };
        let _ = rustix::thread::nanosleep(&pause);
    }
}

/// Returns the addresses of the first byte of this process's argument strings and of the byte after
/// the last.
pub(super) fn argument_area() -> Option<(usize, usize)> {
    // Fields 48 and 49 of proc_pid_stat(5); the iterator starts at field 3.
    let mut buffer = [0; 1024];
    let text = read_stat(format_args!("/proc/self/stat"), &mut buffer)?;
    let mut fields = after_name(text)?.skip(45);
    let start = number::<usize>(fields.next()?)?;
    let end = number::<usize>(fields.next()?)?;
    // Both are 0 where the kernel hides them. An argument list takes at most a quarter of 8 MiB of
    // stack.
    (start != 0 && start < end && end - start <= 2 << 20).then_some((start, end))
}

/// Returns the fields of a `stat` file after the name, which may itself contain spaces and
/// parentheses.
fn after_name(text: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let close = text.iter().rposition(|b| *b == b')')?;
    Some(text.get(close + 2..)?.trim_ascii_end().split(|b| *b == b' '))
}

fn number<N: std::str::FromStr>(digits: &[u8]) -> Option<N> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn thread_children(pid: i32, tid: i32, out: &mut Vec<i32>) {
    if let Some(file) = open(format_args!("/proc/{pid}/task/{tid}/children")) {
        read_children(&file, out);
    }
}

/// Appends the pids in a `children` file to `out`. Reads the file from its beginning.
fn read_children(file: &OwnedFd, out: &mut Vec<i32>) {
    let mut buffer = [0; 4096];
    let mut child = 0;
    let mut offset = 0;
    loop {
        match rustix::io::pread(file, &mut buffer, offset) {
            Ok(0) | Err(_) => return,
            Ok(n) => {
                offset += n as u64;
                // A space follows every pid. The end of the buffer may cut the last pid, whose
                // other digits the next read returns.
                for &byte in &buffer[..n] {
                    if byte.is_ascii_digit() {
                        child = child * 10 + i32::from(byte - b'0');
                    } else if child != 0 {
                        out.push(std::mem::take(&mut child));
                    }
                }
            }
        }
    }
}

/// Calls `each` with the entries of a directory that are numbers.
fn each_number(directory: &CStr, mut each: impl FnMut(i32)) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open(directory, flags, Mode::empty()) else { return };
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        if let Some(pid) = number(entry.file_name().to_bytes()) {
            each(pid);
        }
    }
}

fn open(path: Arguments<'_>) -> Option<OwnedFd> {
    with_path(path, |path| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok())?
}

fn read_stat<'a>(path: Arguments<'_>, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let file = open(path)?;
    let n = rustix::io::read(&file, &mut *buffer).ok()?;
    buffer.get(..n)
}

/// Writes a path to the stack and passes it to a function.
fn with_path<R>(path: Arguments<'_>, then: impl FnOnce(&CStr) -> R) -> Option<R> {
    // "/proc/", two numbers of ten digits, and the text between.
    let mut buffer = [0; 64];
    let mut rest = &mut buffer[..];
    rest.write_fmt(path).ok()?;
    Some(then(CStr::from_bytes_until_nul(&buffer).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_parser_skips_spaces_and_parentheses_in_name() {
        let text = b"12 (a) b (c)) S 7 12 12 0\n";
        let fields: Vec<&[u8]> = after_name(text).unwrap().collect();
        assert_eq!(fields[..2], [b"S".as_slice(), b"7".as_slice()]);
    }

    #[test]
    fn finds_its_own_parent_and_arguments() {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        let look = read_stat_of(me).unwrap();
        assert_eq!(look.parent, parent);
        assert!(!look.has_exited());
        assert!(argument_area().is_some());
    }
}
