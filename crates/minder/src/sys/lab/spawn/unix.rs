//! Starting children by the standard library, and a parent of a given size, on Unix.

#![expect(unsafe_code, reason = "pre_exec, and a mapping that is made large on purpose")]

use std::ffi::c_void;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command as StdCommand, Stdio};
use std::ptr;
use std::time::Instant;

use crate::command::Command;
use crate::sys::pid::open_pidfd;
use crate::sys::reap::Process;

/// The names of the baselines that this system has.
pub(crate) const BASELINES: &[&str] = &["posix_spawn", "fork"];

/// A program that ends at once, and its arguments.
pub(crate) const BRIEF: (&str, &[&str]) = ("true", &[]);

/// `std::process::Command`, and the child that it started last.
#[derive(Debug)]
pub(crate) struct Baseline {
    command: StdCommand,
    child: Option<Child>,
}

impl Baseline {
    pub(crate) fn new(name: &str, command: &Command) -> io::Result<Self> {
        let mut std = StdCommand::new(&command.program);
        std.args(&command.args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match name {
            // Nothing here keeps the standard library from its cheaper way.
            "posix_spawn" => (),
            "fork" => {
                // SAFETY: setsid is a system call without arguments, which may be made between fork and exec.
                unsafe { std.pre_exec(|| rustix::process::setsid().map(drop).map_err(io::Error::from)) };
            }
            _ => return Err(io::ErrorKind::Unsupported.into()),
        }
        Ok(Self { command: std, child: None })
    }

    /// Starts one, and keeps it for [`wait`](Self::wait). Nothing else happens here: it is what is
    /// measured.
    #[expect(clippy::disallowed_methods, reason = "it is what others are compared with")]
    pub(crate) fn spawn(&mut self) -> io::Result<()> {
        self.child = Some(self.command.spawn()?);
        Ok(())
    }

    /// Whether the child ended before the deadline; it is killed if it did not, and gone in any
    /// case.
    pub(crate) fn wait(&mut self, deadline: Instant) -> io::Result<bool> {
        let Some(child) = self.child.take() else { return Ok(true) };
        let pid = child.id().cast_signed();
        // By its pidfd, which wakes whoever waits for it.
        let mut process = Process::new(pid, open_pidfd(pid).ok().flatten());
        // Nobody reads what it writes.
        drop(child);
        let ended = process.wait(Some(deadline))?.is_some();
        if !ended {
            process.signal(libc::SIGKILL)?;
            process.wait(Some(Instant::now() + super::super::exit::PATIENCE))?;
        }
        process.reap();
        Ok(ended)
    }
}

impl Drop for Baseline {
    fn drop(&mut self) {
        // Whoever was started and not waited for ends now.
        let _ = self.wait(Instant::now());
    }
}

/// Memory that was written to, in the smallest pages: what a fork copies the page tables of.
#[derive(Debug)]
pub(crate) struct Ballast {
    base: *mut c_void,
    bytes: usize,
}

impl Ballast {
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ballast = Self { base, bytes };
        // A kernel without large pages refuses, and has done so already what is wanted.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        // SAFETY: the mapping made above, whose contents stay as they are.
        unsafe {
            libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE)
        };
        for page in (0..bytes).step_by(rustix::param::page_size()) {
            // SAFETY: within the mapping, which ends `bytes` after its base.
            let byte = unsafe { base.cast::<u8>().add(page) };
            // SAFETY: the mapping is writable and nobody else knows it; volatile, so that it is done.
            unsafe { byte.write_volatile(1) };
        }
        Ok(ballast)
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody has a pointer into it.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}
