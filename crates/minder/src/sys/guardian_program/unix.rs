//! The loop of the program: records come in until the host is gone.
//!
//! Two signs tell that the host is gone. The end of the socket comes at once, unless a fork of the host
//! without an exec holds a copy of its end. The host's pidfd is not affected by that. Systems without
//! pidfds compare the parent's pid every second.

#![expect(unsafe_code, reason = "setsid, shutdown and the signal mask of the program")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

#[cfg(any(target_os = "linux", target_os = "android"))]
use super::linux::Ending;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use super::other::Ending;
use super::target::Target;
use crate::sys::guard::raise_descriptors;
use crate::sys::guardian::{Kind, Received, Record, Sender, VERSION, receive};
use crate::sys::pid::open_pidfd;
use crate::sys::time::timespec;

/// The longest time that the first records may take.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for which records are left to gather. Meanwhile the socket has room for a hundred
/// starts.
const GATHER_TIME: Duration = Duration::from_millis(2);
/// The interval at which the parent's pid is compared where the system has no pidfds.
const PARENT_INTERVAL: Duration = Duration::from_secs(1);
/// The longest time that the exit of a host may take after its descriptors were closed.
const EXIT_MAX: Duration = Duration::from_millis(200);
/// The interval at which the parent's pid is compared then.
const EXIT_INTERVAL: Duration = Duration::from_millis(2);
/// The least length of the list at which children are searched that other code of the host has reaped.
const PRUNE_MIN: usize = 1024;

/// The program's state while the host lives.
struct Program<'a> {
    socket: BorrowedFd<'a>,
    host: libc::pid_t,
    /// Readable when the host has exited.
    host_pidfd: Option<OwnedFd>,
    grace: Duration,
    tag: u64,
    /// Sorted by the numbers of the children. Its length is bounded by the processes of the system: the
    /// host removes a child before it reaps it.
    targets: Vec<Target>,
    prune_at: usize,
    /// `true` if the last look at the socket found records.
    has_read: bool,
}

/// The state of the connection after some records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The host may send more.
    Open,
    /// The host is gone.
    HostGone,
    /// The host has released its children.
    Left,
}

/// Runs the program to its end. Returns the exit status.
pub(crate) fn run() -> u8 {
    let stdin = io::stdin();
    let is_socket = rustix::fs::fstat(&stdin)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Socket);
    if !is_socket {
        report("a library starts this program, with a socket as its standard input");
        return 2;
    }
    prepare();
    let Some(mut program) = Program::greet(stdin.as_fd()) else { return 1 };
    loop {
        match program.wait() {
            Progress::Open => (),
            Progress::Left => return 0,
            Progress::HostGone => break,
        }
    }
    program.wait_for_end_of_host();
    let mut ending = Ending::new(program.targets, program.tag);
    if !program.grace.is_zero() {
        ending.ask(program.grace);
    }
    if let Some((count, first)) = ending.kill() {
        report(&format!("cannot kill {count} of the processes, such as {first}: see `ps -p {first}`"));
    }
    0
}

/// Makes this process independent of the host: what is sent to the host's group, session or name does
/// not reach it.
fn prepare() {
    // It fails if the host has made the session.
    // SAFETY: no arguments.
    unsafe { libc::setsid() };
    // The program has to outlive a host that is asked to exit, with everything else of its user. Only
    // SIGKILL ends it early, and SIGSTOP stops it.
    let mut all = std::mem::MaybeUninit::uninit();
    // SAFETY: sigfillset initialises what it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the set is initialised by the line above; only this thread's mask changes.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut()) };
    // Each child takes a descriptor.
    let _ = raise_descriptors();
    #[cfg(target_os = "linux")]
    crate::sys::guard::rename(c"minder-guardian", "minder-guardian");
}

impl<'a> Program<'a> {
    /// Takes the first records, and replies.
    fn greet(socket: BorrowedFd<'a>) -> Option<Self> {
        let deadline = Instant::now() + GREETING_TIMEOUT;
        let next = || loop {
            match receive(socket) {
                Received::Record(record, _) => return Some(record),
                Received::End => return None,
                Received::Nothing => (),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            // An error is ignored: the next round looks again.
            let _ = poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], Some(&timespec(left)));
        };
        let hello = next().filter(|record| record.is(Kind::Hello))?;
        let tag = next().filter(|record| record.is(Kind::Tag))?;
        let host_pidfd = open_pidfd(hello.pid).ok().flatten();
        let mut program = Program {
            socket,
            host: hello.pid,
            host_pidfd,
            grace: Duration::from_millis(hello.value),
            tag: tag.value,
            targets: Vec::new(),
            prune_at: PRUNE_MIN,
            has_read: false,
        };
        // Compared after the pidfd was opened: it is that of the host if the host still lives.
        if !program.is_child_of_host() {
            program.host_pidfd = None;
            return None;
        }
        // The version is the program's own: the host decides whether that will do.
        let reply = Record { id: VERSION, ..Record::new(Kind::Ready) };
        rustix::io::write(socket, &reply.to_bytes()).ok()?;
        Some(program)
    }

    fn is_child_of_host(&self) -> bool {
        rustix::process::getppid().is_some_and(|parent| parent.as_raw_nonzero().get() == self.host)
    }

    /// Waits for records or the end of the host, and handles what came.
    fn wait(&mut self) -> Progress {
        let Some(host_pidfd) = &self.host_pidfd else {
            let mut socket = [PollFd::from_borrowed_fd(self.socket, PollFlags::IN)];
            // An error, such as no memory, is ignored: the next round looks again.
            let _ = poll(&mut socket, Some(&timespec(PARENT_INTERVAL)));
            return if self.is_child_of_host() { self.take_records() } else { self.take_last_records() };
        };
        let mut sources =
            [PollFd::new(host_pidfd, PollFlags::IN), PollFd::from_borrowed_fd(self.socket, PollFlags::IN)];
        // After a record more are likely. For a moment only the host is watched, and then all that came is
        // read: a wake-up for each record costs three times as much (measured). Processes are identified
        // by the kernel when it sends a record, so that moment changes nothing else.
        let watched = if self.has_read { 1 } else { 2 };
        let pause = self.has_read.then_some(timespec(GATHER_TIME));
        // As above.
        let _ = poll(&mut sources[..watched], pause.as_ref());
        if sources[0].revents().is_empty() { self.take_records() } else { self.take_last_records() }
    }

    /// Handles the records of a host that is gone. A child that the host started in its last moment may
    /// not have sent its record yet. After the shutdown its send fails, and it does not run its program.
    /// Records that were sent before are still read.
    fn take_last_records(&mut self) -> Progress {
        // SAFETY: an open socket and a constant.
        unsafe { libc::shutdown(self.socket.as_raw_fd(), libc::SHUT_RD) };
        match self.take_records() {
            Progress::Left => Progress::Left,
            Progress::Open | Progress::HostGone => Progress::HostGone,
        }
    }

    /// Waits until the host has exited, for a bounded time: it may also have executed another program.
    ///
    /// The descriptors of a process are closed before its children lose their parent. At that moment the
    /// kernel sends SIGHUP and SIGCONT to each group of children that contains a stopped process
    /// (setpgid(2), orphaned groups). A child that is stopped earlier would exit by that, and nothing would
    /// show any more which processes were its children.
    fn wait_for_end_of_host(&self) {
        let deadline = Instant::now() + EXIT_MAX;
        while Instant::now() < deadline {
            match &self.host_pidfd {
                Some(pidfd) => {
                    let left = timespec(deadline.saturating_duration_since(Instant::now()));
                    if poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&left)) == Ok(1) {
                        return;
                    }
                }
                None if !self.is_child_of_host() => return,
                None => minder_os::time::pause(EXIT_INTERVAL, Some(deadline)),
            }
        }
    }

    fn take_records(&mut self) -> Progress {
        self.has_read = false;
        loop {
            match receive(self.socket) {
                Received::Record(record, _) if record.is(Kind::Leave) => return Progress::Left,
                Received::Record(record, sender) => {
                    self.has_read = true;
                    self.apply(record, sender);
                }
                Received::Nothing => break,
                Received::End => return Progress::HostGone,
            }
        }
        Progress::Open
    }

    fn apply(&mut self, record: Record, sender: Sender) {
        let leads_group = record.is(Kind::AddGroup) || record.is(Kind::AddGroupByHost);
        let by_host = record.is(Kind::AddGroupByHost) || record.is(Kind::AddProcessByHost);
        let at = self.targets.partition_point(|target| target.id < record.id);
        let is_listed = self.targets.get(at).is_some_and(|target| target.id == record.id);
        if record.is(Kind::Remove) {
            if is_listed {
                self.targets.remove(at);
            }
        } else if leads_group || by_host || record.is(Kind::AddProcess) {
            // The kernel names the sender for certain, and the process of a pidfd that the host has sent.
            // A pid that is opened here may be that of another process already, if the host is gone and
            // this record was late.
            let (pid, pidfd) =
                if by_host { (Some(record.pid), sender.named) } else { (sender.pid, sender.pidfd) };
            // A process of another PID namespace has no pid here.
            let Some(pid) = pid.filter(|pid| *pid > 1) else { return };
            let pidfd = pidfd.or_else(|| open_pidfd(pid).ok().flatten());
            let target = Target { id: record.id, pid, leads_group, pidfd };
            if is_listed {
                self.targets[at] = target;
            } else {
                self.targets.insert(at, target);
            }
            self.prune();
        }
    }

    /// Removes children that the library does not reap, since its caller has dropped them, and that other
    /// code of the host has reaped.
    fn prune(&mut self) {
        if self.targets.len() >= self.prune_at {
            self.targets.retain(Target::exists);
            self.prune_at = (self.targets.len() * 2).max(PRUNE_MIN);
        }
    }
}

/// Prints one line to stderr, which is the null device unless the host asked for it.
fn report(line: &str) {
    // Nothing can be done about an error.
    let _ = io::Write::write_all(&mut io::stderr(), format!("minder-guardian: {line}\n").as_bytes());
}
