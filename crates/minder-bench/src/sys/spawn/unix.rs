//! Starting children by the standard library, and a large parent, on Unix.

#![expect(unsafe_code, reason = "pre_exec, and a mapping that is written to")]

use std::ffi::c_void;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command as StdCommand, Stdio};
use std::ptr;
use std::time::{Duration, Instant};

use minder::Command;

/// The names of the baselines.
pub(crate) const BASELINES: &[&str] = &["posix_spawn", "fork"];

/// A program that exits at once, and its arguments.
pub(crate) const SHORT_COMMAND: (&str, &[&str]) = ("true", &[]);

/// `std::process::Command`, and the child that it started last.
#[derive(Debug)]
pub(crate) struct SpawnBaseline {
    command: StdCommand,
    child: Option<Child>,
}

impl SpawnBaseline {
    pub(crate) fn new(name: &str, command: &Command) -> io::Result<Self> {
        let mut std = StdCommand::new(command.get_program());
        std.args(command.get_args()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match name {
            // None of these settings keeps the standard library from posix_spawn.
            "posix_spawn" => (),
            "fork" => {
                let set_session = || rustix::process::setsid().map(drop).map_err(io::Error::from);
                // SAFETY: setsid is a system call without arguments, which is allowed between fork and
                // exec.
                unsafe { std.pre_exec(set_session) };
            }
            _ => return Err(io::ErrorKind::Unsupported.into()),
        }
        Ok(Self { command: std, child: None })
    }

    /// Starts a child and keeps it for [`wait`](Self::wait). It does nothing else, since it is what
    /// is measured.
    #[expect(clippy::disallowed_methods, reason = "the standard library is the baseline")]
    pub(crate) fn spawn(&mut self) -> io::Result<()> {
        self.child = Some(self.command.spawn()?);
        Ok(())
    }

    /// Waits for the child, kills it if it does not exit within `timeout`, and returns whether it
    /// exited by itself.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        let Some(mut child) = self.child.take() else { return Ok(true) };
        // The child's output is not read: its writes fail from here on.
        drop((child.stdout.take(), child.stderr.take()));
        let exited = wait_timeout(&mut child, timeout)?;
        if !exited {
            child.kill()?;
            child.wait()?;
        }
        Ok(exited)
    }
}

impl Drop for SpawnBaseline {
    fn drop(&mut self) {
        // Kills and reaps a child that was not waited for.
        let _ = self.wait(Duration::ZERO);
    }
}

/// Waits for at most `timeout` until a child has exited, and reaps it. Returns whether it exited.
fn wait_timeout(child: &mut Child, timeout: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + timeout;
    loop {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        sleep_until_exit(child, left);
    }
}

/// Waits until the child has exited or `timeout` has passed, by a pidfd. May return early, such as
/// before Linux 5.3, which has no pidfds.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn sleep_until_exit(child: &Child, timeout: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    let pid = Pid::from_raw(child.id().cast_signed());
    match pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
        Some(Ok(pidfd)) => {
            let timeout = Timespec::try_from(timeout).ok();
            let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], timeout.as_ref());
        }
        _ => nap(),
    }
}

/// Waits for a moment: the other systems have no wait for one process by a descriptor.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn sleep_until_exit(_child: &Child, _timeout: Duration) {
    nap();
}

fn nap() {
    let nap = rustix::thread::Timespec { tv_sec: 0, tv_nsec: 500_000 };
    let _ = rustix::thread::nanosleep(&nap);
}

/// Memory in which every page was written to, in pages of the smallest size: `fork` copies the page
/// tables of all of it.
#[derive(Debug)]
pub(crate) struct MappedMemory {
    base: *mut c_void,
    bytes: usize,
}

impl MappedMemory {
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = Self { base, bytes };
        // A kernel without huge pages refuses, and uses small pages anyway.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        // SAFETY: the mapping made above; its contents stay as they are.
        unsafe {
            libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE)
        };
        for offset in (0..bytes).step_by(rustix::param::page_size()) {
            // SAFETY: the offset is less than `bytes`, the length of the mapping.
            let byte = unsafe { base.cast::<u8>().add(offset) };
            // SAFETY: the mapping is writable, and nothing else refers to it. A volatile write is not
            // optimised away.
            unsafe { byte.write_volatile(1) };
        }
        Ok(memory)
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and nothing else refers to it.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}
