//! The connection of a host with the program of its guardian, and the registrations of its children.

#![expect(unsafe_code, reason = "kill of the guardian's program, and the group of a process")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use minder_os::sync::Mutex;

use super::channel::Channel;
use super::error::GuardianError;
use super::record::{Kind, Record};
use super::settings::{GuardianSettings, TAG};
use crate::sys::pid::{is_unreaped_child, open_pidfd, wait_for_exit, wait_id};

/// The time for which a drop waits for the program to exit, before it kills the program.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for which the release of a process that may live on waits for a program that does not
/// read.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(100);
/// The most guardians whose tags a child has, the nearest one last. Each guarded host within a guarded
/// host adds one.
const TAGS_MAX: usize = 16;

/// Starts the program of a guardian, unless it runs.
type Start = fn(&Arc<GuardianLink>) -> Result<(), GuardianError>;

/// A host's connection. Dropping it ends the program and releases the children.
#[derive(Debug)]
pub(crate) struct GuardianLink {
    settings: GuardianSettings,
    /// Starts the program, by code that is above this one.
    start: Start,
    /// The process that uses it. A fork of the host has a copy, which has no effect.
    host: u32,
    /// The tag of the children, or 0.
    tag: u64,
    /// `MINDER_GUARDIAN_ID=…`, for the environment of the children.
    variable: Option<CString>,
    next_id: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    channel: Option<Arc<Channel>>,
    /// The program: our child, which only this object reaps.
    program: Option<Program>,
    /// Children that were reaped while the program did not read. Each one is a child that lived when
    /// the program stopped reading, since no child starts meanwhile.
    unsent: Vec<u64>,
    /// The children, if the program may have to be started again.
    listed: BTreeMap<u64, Listed>,
}

#[derive(Debug)]
struct Program {
    pid: libc::pid_t,
    pidfd: Option<OwnedFd>,
}

#[derive(Clone, Copy, Debug)]
struct Listed {
    pid: libc::pid_t,
    leads_group: bool,
}

/// One child on the list of the program, from before its first step until right before it is reaped.
#[derive(Debug)]
pub(crate) struct Registration {
    link: Arc<GuardianLink>,
    channel: Arc<Channel>,
    id: u64,
}

/// A [`Registration`] that does not keep the connection open.
pub(in crate::sys) struct WeakRegistration {
    link: Weak<GuardianLink>,
    id: u64,
}

impl GuardianLink {
    /// Takes a child off the list. Returns the connection if this removal is the only one that its socket
    /// has no room for.
    fn take_off(&self, id: u64) -> Option<Arc<Channel>> {
        // A fork of the host has copies of the host's children, which it cannot reap.
        if !self.is_of_this_process() {
            return None;
        }
        let mut state = self.state.lock();
        state.listed.remove(&id);
        state.unsent.push(id);
        // A program that does not read gets it later. It identifies processes by pidfds, so the delay
        // harms no other process.
        match flush(&mut state) {
            Err(_) if state.unsent.len() == 1 => state.channel.clone(),
            _ => None,
        }
    }

    /// Creates one that is not connected.
    pub(crate) fn new(settings: GuardianSettings, start: Start) -> Self {
        let tag = if settings.tag { random() } else { 0 };
        let variable = (tag != 0).then(|| variable(tag, std::env::var_os(TAG).as_deref()));
        Self {
            settings,
            start,
            host: std::process::id(),
            tag,
            variable,
            next_id: AtomicU64::new(1),
            state: Mutex::new(State::default()),
        }
    }

    /// Starts the program, unless it runs.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), GuardianError> {
        (self.start)(self)
    }

    pub(crate) fn settings(&self) -> &GuardianSettings {
        &self.settings
    }

    /// Returns the pid of the program.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.state.lock().program.as_ref().map(|program| program.pid.unsigned_abs())
    }

    pub(in crate::sys) fn tag(&self) -> u64 {
        self.tag
    }

    /// Returns the variable that tags a child.
    pub(in crate::sys) fn variable(&self) -> Option<&CStr> {
        self.variable.as_deref()
    }

    /// Returns whether this process is the one that started the guardian.
    pub(in crate::sys) fn is_of_this_process(&self) -> bool {
        std::process::id() == self.host
    }

    /// Connects with a program that has just started, and sends it the list of the children. `start`
    /// is called only if there is no program that reads. It gets the time at which the start has failed.
    pub(in crate::sys) fn connect_by<E: From<io::Error>>(
        &self,
        start: impl FnOnce(Option<Instant>) -> Result<(Channel, libc::pid_t), E>,
    ) -> Result<(), E> {
        // The lock delays children that are being reaped by other threads: none may leave the list
        // between its copy and the first record to the new program.
        let mut state = self.state.lock();
        if state.channel.as_ref().is_some_and(|channel| !channel.is_closed()) {
            return Ok(());
        }
        if let Some(program) = state.program.take() {
            program.end();
        }
        // The pid of a child that other code has reaped may be that of another process.
        state.listed.retain(|_, child| is_unreaped_child(child.pid));
        let deadline = Instant::now().checked_add(self.settings.start_timeout);
        let (channel, pid) = start(deadline)?;
        let program = Program { pid, pidfd: open_pidfd(pid).ok().flatten() };
        if let Err(error) = send_list(&state.listed, &channel, deadline) {
            program.end();
            return Err(error.into());
        }
        state.unsent.clear();
        state.channel = Some(Arc::new(channel));
        state.program = Some(program);
        Ok(())
    }

    /// Prepares the registration of a child that is about to start.
    pub(in crate::sys) fn register(self: &Arc<Self>) -> io::Result<Registration> {
        if !self.is_of_this_process() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut state = self.state.lock();
        flush(&mut state)?;
        let channel = state.channel.clone().ok_or(io::ErrorKind::BrokenPipe)?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Ok(Registration { link: Arc::clone(self), channel, id })
    }

    /// Registers a child of this process that other code has started. Starts the program again if it has
    /// exited and the settings ask for that.
    ///
    /// # Errors
    /// - `PermissionDenied`: this process is a fork of the host.
    /// - `ESRCH`: the pid is not that of a child that is not reaped.
    /// - `InvalidInput`: it is the pid of the program.
    /// - `WouldBlock`: the program does not read.
    /// - `BrokenPipe`: the program has exited.
    /// - Otherwise the program cannot be started again.
    pub(crate) fn guard(self: &Arc<Self>, pid: u32) -> io::Result<Registration> {
        match self.register_process(pid) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && self.settings.restart => {
                self.start().map_err(io::Error::other)?;
                self.register_process(pid)
            }
            result => result,
        }
    }

    fn register_process(self: &Arc<Self>, pid: u32) -> io::Result<Registration> {
        if !self.is_of_this_process() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // The program would stop itself before it kills the others.
        if self.pid() == Some(pid) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let unknown = || io::Error::from_raw_os_error(libc::ESRCH);
        // A pid of 0 would be this process for getpgid.
        let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0).ok_or_else(unknown)?;
        // The order is the proof that all three calls are about one process: if the child is not reaped at
        // the last one, its pid was its own at the others. Without a free descriptor the program opens the
        // pidfd.
        let pidfd = open_pidfd(pid).ok().flatten();
        // rustix takes no 0, which is a group of another PID namespace.
        // SAFETY: a number.
        let leads_group = unsafe { libc::getpgid(pid) } == pid;
        wait_id(pid, pidfd.as_ref(), libc::WEXITED | libc::WNOHANG | libc::WNOWAIT, None)
            .map_err(|_| unknown())?;
        let registration = self.register()?;
        registration.send_with_pidfd(pid, leads_group, pidfd.as_ref())?;
        registration.confirm(pid, leads_group);
        Ok(registration)
    }
}

impl Listed {
    fn record(self, id: u64) -> Record {
        let kind = if self.leads_group { Kind::AddGroupByHost } else { Kind::AddProcessByHost };
        Record { id, ..Record::new(kind) }
    }
}

impl Registration {
    /// Registers the calling process, which is the child and shares our memory. Makes system calls
    /// only. Returns 0 or the error number.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        allow(dead_code, reason = "only clone has a step in the child")
    )]
    pub(in crate::sys) fn send_from_child(&self, leads_group: bool) -> i32 {
        let kind = if leads_group { Kind::AddGroup } else { Kind::AddProcess };
        self.channel.send_from_child(Record { id: self.id, ..Record::new(kind) })
    }

    /// Registers a child that runs already.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(in crate::sys) fn send(&self, pid: libc::pid_t, leads_group: bool) -> io::Result<()> {
        self.send_with_pidfd(pid, leads_group, None)
    }

    /// Registers a child that runs already, with a pidfd of it if there is one.
    fn send_with_pidfd(
        &self,
        pid: libc::pid_t,
        leads_group: bool,
        pidfd: Option<&OwnedFd>,
    ) -> io::Result<()> {
        let record = Record { pid, ..Listed { pid, leads_group }.record(self.id) };
        match pidfd {
            Some(pidfd) => self.channel.send_with_pidfd(record, pidfd),
            None => self.channel.send(record),
        }
    }

    /// Notes a child that was registered, for a program that is started later. If that has happened
    /// already, registers the child there.
    pub(in crate::sys) fn confirm(&self, pid: libc::pid_t, leads_group: bool) {
        if !self.link.settings.restart {
            return;
        }
        let mut state = self.link.state.lock();
        state.listed.insert(self.id, Listed { pid, leads_group });
        if let Some(channel) = state.channel.clone()
            && !Arc::ptr_eq(&channel, &self.channel)
        {
            // A program that has exited again is noticed by the next start.
            let _ = channel.send(Record { pid, ..Listed { pid, leads_group }.record(self.id) });
        }
    }

    /// Returns what removes the child later, if the link is still there.
    pub(in crate::sys) fn downgrade(&self) -> WeakRegistration {
        WeakRegistration { link: Arc::downgrade(&self.link), id: self.id }
    }

    /// Removes the child from the list. To be called right before the child is reaped.
    ///
    /// The order is the proof that no other process is ever on the list: before the child is reaped,
    /// its pid and its group id belong to it; the kernel may give them away afterwards. Records arrive
    /// in the order of their sends, so the program forgets the child before it learns of any later one
    /// with the same pid.
    pub(crate) fn remove(&self) {
        self.link.take_off(self.id);
    }

    /// Removes a process that may live on. The program would kill it if the host exited before the
    /// removal is sent, so this waits for room in the socket, at most [`RELEASE_TIMEOUT`]. It does not wait
    /// if earlier removals wait already: the program has stopped reading.
    pub(crate) fn release(&self) {
        let Some(channel) = self.link.take_off(self.id) else { return };
        let deadline = Instant::now().checked_add(RELEASE_TIMEOUT);
        while channel.wait_for_room(deadline).is_ok() {
            match flush(&mut self.link.state.lock()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
                _ => return,
            }
        }
    }
}

impl WeakRegistration {
    /// Removes the child from the list, as [`Registration::remove`].
    pub(in crate::sys) fn remove(&self) {
        if let Some(link) = self.link.upgrade() {
            link.take_off(self.id);
        }
    }
}

/// Sends all children to a program that has just started. The socket may have less room than that.
fn send_list(listed: &BTreeMap<u64, Listed>, channel: &Channel, deadline: Option<Instant>) -> io::Result<()> {
    for (id, child) in listed {
        let record = Record { pid: child.pid, ..child.record(*id) };
        loop {
            match channel.send(record) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => channel.wait_for_room(deadline)?,
                sent => break sent?,
            }
        }
    }
    // The child that is about to start does not wait for room.
    channel.wait_for_room(deadline)
}

/// Sends the removals that wait.
fn flush(state: &mut State) -> io::Result<()> {
    while let (Some(&id), Some(channel)) = (state.unsent.last(), &state.channel) {
        match channel.send(Record { id, ..Record::new(Kind::Remove) }) {
            // A program that has exited needs no removals.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
            _ => state.unsent.pop(),
        };
    }
    Ok(())
}

impl Program {
    /// Waits until the program has exited, for a bounded time.
    fn wait(&self, deadline: Instant) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        use rustix::thread::nanosleep;
        loop {
            // Other code of the host may have reaped it, which counts as exited.
            if !matches!(wait_for_exit(self.pid, self.pidfd.as_ref(), libc::WNOHANG), Ok(None)) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let time = crate::sys::time::timespec(left);
            // An error is ignored: the next round looks again.
            let _ = match &self.pidfd {
                Some(pidfd) => poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&time)).map(drop),
                None => {
                    let _ = nanosleep(&crate::sys::time::timespec(left.min(Duration::from_millis(1))));
                    Ok(())
                }
            };
        }
    }

    /// Kills the program if it is still there, and reaps it.
    fn end(&self) {
        if is_unreaped_child(self.pid) {
            // SAFETY: two numbers. The pid is that of our child, which is not reaped.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.wait(Instant::now() + LEAVE_TIMEOUT);
        }
    }
}

impl Drop for GuardianLink {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            return;
        }
        let mut state = self.state.lock();
        let Some(program) = state.program.take() else { return };
        let sent =
            state.channel.as_ref().is_some_and(|channel| channel.send(Record::new(Kind::Leave)).is_ok());
        // A program that is stopped does not read. Killing it releases the children, too.
        if !sent || !program.wait(Instant::now() + LEAVE_TIMEOUT) {
            program.end();
        }
    }
}

/// Returns a number that no other guardian uses as a tag. Not 0.
fn random() -> u64 {
    // The keys come from the operating system.
    RandomState::new().build_hasher().finish() | 1
}

/// Returns the variable for children: the tags that this process inherited, and the new one.
fn variable(tag: u64, inherited: Option<&std::ffi::OsStr>) -> CString {
    let inherited = inherited.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
    let is_tag = |text: &&str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut tags: Vec<&str> = inherited.split(':').filter(is_tag).collect();
    let own = format!("{tag:016x}");
    tags.push(&own);
    let nearest = tags.len().saturating_sub(TAGS_MAX);
    CString::new(format!("{TAG}={}", tags[nearest..].join(":"))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_outer_guardians_are_kept_and_bounded() {
        let of = |tag, inherited: &str| variable(tag, Some(inherited.as_ref())).into_string().expect("UTF-8");
        assert_eq!(of(1, ""), "MINDER_GUARDIAN_ID=0000000000000001");
        assert_eq!(of(2, "0000000000000001"), "MINDER_GUARDIAN_ID=0000000000000001:0000000000000002");
        assert_eq!(of(2, "not a tag:"), "MINDER_GUARDIAN_ID=0000000000000002");
        let many = vec!["00000000000000ab"; 40].join(":");
        let kept = of(7, &many);
        assert_eq!(kept.matches(':').count(), TAGS_MAX - 1);
        assert!(kept.ends_with(":0000000000000007"));
        assert_ne!(random(), random());
    }
}
