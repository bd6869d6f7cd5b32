//! A child's tree on Windows: its job object, which holds every descendant. No process can leave,
//! because the job forbids breaking away. Descendants may create nested jobs within this one (since
//! Windows 8).

#![expect(unsafe_code, reason = "job objects")]

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectBasicAccountingInformation, JobObjectExtendedLimitInformation, QueryInformationJobObject,
    SetInformationJobObject, TerminateJobObject,
};

use super::{TreeSignal, TreeTable};
use crate::sys::last_error::done;
use crate::sys::reactor::Reactor;
use crate::sys::reap::Process;

/// The highest number of a signal. Every signal terminates.
pub(crate) const SIGNAL_MAX: i32 = 64;
/// `true`, as it is cheap to check whether a process of a tree is left: one query of its job.
pub(crate) const CHECK_IS_CHEAP: bool = true;
/// The exit code of killed processes.
pub(crate) const KILLED: u32 = 1;

/// One child and its descendants, in a job object.
///
/// Processes that the child leaves behind keep running when this process drops the tree. If this
/// process dies without dropping it, the operating system closes the job and kills all of them.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    job: OwnedHandle,
    /// `true` if processes that outlive the child are reported.
    own_group: bool,
    /// `true` if the child is in the job.
    held: bool,
    /// `true` if the port reports when no process is left.
    watched: bool,
}

impl ProcessTree {
    /// Makes an empty tree, for a child to be started in.
    pub(crate) fn new(own_group: bool) -> io::Result<Self> {
        // SAFETY: no attributes, so the handle is not inheritable, and no name.
        let raw = unsafe { CreateJobObjectW(null(), null()) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above created the handle, and nothing else owns it.
        let tree =
            Self { job: unsafe { OwnedHandle::from_raw_handle(raw) }, own_group, held: true, watched: false };
        tree.limit(JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE)?;
        Ok(tree)
    }

    /// The job object.
    pub(crate) fn job(&self) -> BorrowedHandle<'_> {
        self.job.as_handle()
    }

    /// Requests a report with `token` when no process is left. The report is a hint that lets a
    /// kill check earlier; without it nothing is lost.
    pub(crate) fn watch(&mut self, reactor: &Reactor, token: u64) {
        if !self.watched && self.held {
            self.watched = reactor.port().associate_job(self.job(), token).is_ok();
        }
    }

    /// Assigns a process to the job that did not start in it. On failure the process stays outside,
    /// and is a tree by itself.
    pub(crate) fn take_in(&mut self, process: BorrowedHandle<'_>) -> io::Result<()> {
        // SAFETY: both handles are open.
        let answer = unsafe { AssignProcessToJobObject(self.job.as_raw_handle(), process.as_raw_handle()) };
        self.held = answer != 0;
        if self.held { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns the same tree by a handle with fewer rights.
    #[cfg(test)]
    pub(crate) fn with_rights(&self, rights: u32) -> io::Result<Self> {
        use windows_sys::Win32::Foundation::DuplicateHandle;
        use windows_sys::Win32::System::Threading::GetCurrentProcess;
        // SAFETY: the call has no preconditions.
        let us = unsafe { GetCurrentProcess() };
        let mut raw = null_mut();
        // SAFETY: the job is open; both processes are this one, and `raw` outlives the call.
        let answer = unsafe { DuplicateHandle(us, self.job.as_raw_handle(), us, &mut raw, rights, 0, 0) };
        if answer == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above created the handle, and nothing else owns it.
        Ok(Self { job: unsafe { OwnedHandle::from_raw_handle(raw) }, ..*self })
    }

    /// Returns whether processes of the tree can be signalled.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn can_signal(&self, process: &Process) -> bool {
        !process.reaped()
    }

    /// Terminates every process. A job object cannot ask a process to exit, so every signal
    /// terminates. It cannot stop processes either, so there is none to continue.
    pub(crate) fn signal_all(&mut self, process: &Process, signal: TreeSignal) -> io::Result<()> {
        match signal {
            TreeSignal::Stop => return Err(io::ErrorKind::Unsupported.into()),
            TreeSignal::Continue => return Ok(()),
            TreeSignal::Signal(_) | TreeSignal::Kill => (),
        }
        if !self.held {
            return process.terminate(KILLED);
        }
        // SAFETY: the job is open.
        let answer = unsafe { TerminateJobObject(self.job.as_raw_handle(), KILLED) };
        done(answer)
    }

    /// Stops many trees and looks for their processes: not needed for jobs.
    pub(crate) fn stop_all(_trees: &mut [(&mut Self, &Process)], _signal: TreeSignal) -> Option<TreeTable> {
        None
    }

    /// The same: a job is terminated without a look at its processes.
    pub(crate) fn signal_all_by(
        &mut self,
        process: &Process,
        signal: TreeSignal,
        _table: Option<&TreeTable>,
    ) -> io::Result<()> {
        self.signal_all(process, signal)
    }

    /// Sends one signal: not available on Windows.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn signal_group(&self, _process: &Process, _signal: i32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns whether any process is left.
    pub(crate) fn is_alive(&mut self, _living: &ProcessSnapshot) -> bool {
        self.active() > 0
    }

    /// Returns whether the child, which has exited, left a process.
    pub(crate) fn has_leftovers(&self, _snapshot: &ProcessSnapshot) -> bool {
        self.active() > 0
    }

    /// Returns whether a process outlived the child, which must have exited by now.
    pub(crate) fn left_running(&self, _living: &mut Option<ProcessSnapshot>) -> bool {
        self.own_group && self.active() > 0
    }

    /// Returns the number of processes in the job that have not exited.
    fn active(&self) -> u32 {
        let mut account = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        let job = self.job.as_raw_handle();
        let class = JobObjectBasicAccountingInformation;
        let into = (&raw mut account).cast();
        let size = size_of_val(&account) as u32;
        // SAFETY: the job is open. `into` is a local structure of this class and size.
        let answer = unsafe { QueryInformationJobObject(job, class, into, size, null_mut()) };
        if answer == 0 { 0 } else { account.ActiveProcesses }
    }

    /// Sets these limits of the job, and lifts all others.
    fn limit(&self, flags: JOB_OBJECT_LIMIT) -> io::Result<()> {
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = flags;
        let job = self.job.as_raw_handle();
        let class = JobObjectExtendedLimitInformation;
        let from = (&raw const limits).cast();
        let size = size_of_val(&limits) as u32;
        // SAFETY: the job is open. `from` is a local structure of this class and size.
        let answer = unsafe { SetInformationJobObject(job, class, from, size) };
        done(answer)
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        // The remaining processes stay alive: a daemon, or a child that the caller released. On
        // failure they are terminated with the job.
        let _ = self.limit(0);
    }
}

/// A snapshot of all processes of the machine. It is empty, since a job object knows its processes.
#[derive(Debug, Default)]
pub(crate) struct ProcessSnapshot;

impl ProcessSnapshot {
    pub(crate) fn now() -> Self {
        Self
    }

    pub(crate) fn among_zombies() -> Self {
        Self
    }
}
