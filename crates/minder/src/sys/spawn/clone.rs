//! `clone3` (Linux 5.5), or `clone` where the kernel or a sandbox refuses that: starts a child that
//! shares this process's memory until it loads its program, and returns a pidfd from the same call.
//!
//! The child runs on a separate stack while the kernel suspends the calling thread (`CLONE_VFORK`).
//! It shares the memory of this process, so it makes system calls only: no allocation, no lock, no
//! panic. Other threads continue to run.
//!
//! The kernel copies the descriptor table for a child, and the cost grows with the open
//! descriptors: with 6000 open, a start takes six times as long (measured). The table is therefore
//! shared (`CLONE_FILES`). The child drops all descriptors above its own few while it unshares
//! (`close_range` with `CLOSE_RANGE_UNSHARE`, Linux 5.9). A single start in a small host does not
//! need this, because its table is small. If a child keeps descriptors, the cut is above the
//! highest of them.
//!
//! A child that is to start in a cgroup is created there by the kernel (`CLONE_INTO_CGROUP`, Linux 5.7).
//! Where that is refused, it writes to the file `cgroup.procs`, which the parent has opened.

#![expect(unsafe_code, reason = "clone, and the system calls between it and execve")]

use std::cell::Cell;
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::attributes::{self, DumpableGuard};
use super::clone3::{CloneArgs, clone3};
use super::null_device::{null_error, open_null};
use super::request::{NULL_DEVICE, Request};
use super::{SpawnError, SpawnStep};
use crate::command::Kept;
use crate::group::Group;
use crate::process_attributes::AttributeStep;
use crate::sys::guard::ignored_by_us;
use crate::sys::pid::pidfd_available;
use crate::sys::reap::Process;

/// A single start shares the table if one of its descriptors has this number or a higher one. A
/// spawner for many starts always shares it.
const SHARED_FROM: RawFd = 64;
/// The child's stack, without the page below it that catches an overflow.
const STACK_SIZE: usize = 64 << 10;

thread_local! {
    /// The stack that this thread used last and that is free. Mapping, touching and unmapping a
    /// stack is a quarter of the cost of a single start (measured).
    static SPARE: Cell<Option<Stack>> = const { Cell::new(None) };
}

/// The resources that this mechanism keeps from one start to the next.
#[derive(Debug, Default)]
pub(super) struct CloneSpawner {
    stack: Option<Stack>,
    /// Low descriptors that the child's streams are copied onto before a shared table is cut.
    /// Otherwise they refer to `/dev/null`.
    low: Option<ReservedFds>,
    /// `true` once the kernel refused `clone3`, the cut, or `clone3` with a cgroup.
    refused: bool,
    cut_refused: bool,
    cgroup_refused: bool,
}

/// Three descriptors from 3 upwards, and the file that they refer to while no child starts.
#[derive(Debug)]
struct ReservedFds {
    null: OwnedFd,
    slots: [OwnedFd; 3],
}

/// The child's stack.
#[derive(Debug)]
struct Stack {
    base: *mut c_void,
    size: usize,
}

// SAFETY: the mapping belongs to this object alone; the address is used by one spawn at a time,
// through `&mut`.
unsafe impl Send for Stack {}

/// The input of the child, and the memory for its error. It lives on the stack of the spawning
/// thread, which waits.
struct ChildArgs<'a> {
    request: &'a Request<'a>,
    streams: [RawFd; 3],
    /// The first descriptor to cut off, with the table unshared; 0 for a table that was copied.
    cut: u32,
    /// This process, if the child is to die with it.
    parent: libc::pid_t,
    nofile: Option<libc::rlimit64>,
    /// `true` if `clone` starts the child, which then has the signal handlers of this process.
    by_clone: bool,
    /// `true` if the kernel has no `close_range`, and the descriptors that execve does not close then.
    without_close_range: bool,
    left_open: Vec<RawFd>,
    cgroup: Option<CgroupEntry>,
    error: i32,
    step: SpawnStep,
}

/// How the child gets into a cgroup.
#[derive(Debug)]
enum CgroupEntry {
    /// The kernel creates it there. This is the directory.
    Created(RawFd),
    /// It writes to this file, `cgroup.procs`.
    Written(OwnedFd),
}

const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
const CLOSE_RANGE_UNSHARE: libc::c_uint = 1 << 1;

/// Set once a child had no `close_range`, which came with Linux 5.9.
static NO_CLOSE_RANGE: AtomicBool = AtomicBool::new(false);

impl CloneSpawner {
    /// Starts a child.
    pub(super) fn spawn(&mut self, request: &Request<'_>) -> Result<Process, SpawnError> {
        let stack = self.stack()?;
        let (streams, cut) = self.place(request)?;
        let without_close_range = NO_CLOSE_RANGE.load(Ordering::Relaxed);
        let mut context = ChildArgs {
            request,
            streams,
            cut,
            parent: if request.command.die_with_parent { getpid() } else { 0 },
            nofile: soft_limit(request.nofile),
            by_clone: self.refused,
            without_close_range,
            left_open: without_close_range.then(super::inherited).unwrap_or_default(),
            cgroup: self.cgroup_entry(request)?,
            error: 0,
            step: SpawnStep::Exec,
        };
        let guard = request.command.attributes.as_deref().and_then(DumpableGuard::new);
        let result = start(&mut context, stack, cut != 0);
        drop(guard);
        let error = context.error;
        let step = context.step;
        if let Some(low) = &self.low
            && streams != request.streams
        {
            low.clear(streams);
        }
        match result {
            Ok(process) if error == 0 => Ok(process),
            Ok(mut process) => {
                // The child failed before exec: reap it and return its error.
                if let Some(registration) = request.registration {
                    registration.remove();
                }
                let _ = process.wait_and_reap();
                if cut != 0 && step == SpawnStep::Process {
                    self.cut_refused = true;
                    return self.spawn(request);
                }
                if step == SpawnStep::Process && !without_close_range {
                    NO_CLOSE_RANGE.store(true, Ordering::Relaxed);
                    return self.spawn(request);
                }
                let error = io::Error::from_raw_os_error(error);
                Err(step.failed(if step == SpawnStep::NullDevice { null_error(error) } else { error }))
            }
            Err(error)
                if matches!(context.cgroup, Some(CgroupEntry::Created(_)))
                    && error.raw_os_error() == Some(libc::E2BIG) =>
            {
                self.cgroup_refused = true;
                self.spawn(request)
            }
            Err(error)
                if !self.refused
                    && matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EINVAL)) =>
            {
                self.refused = true;
                self.spawn(request)
            }
            Err(error) if context.cgroup.is_some() && is_of_cgroup(&error) => {
                Err(SpawnStep::Attribute(AttributeStep::Cgroup).failed(error))
            }
            Err(error) => Err(SpawnStep::Process.failed(error)),
        }
    }

    /// Returns how the child gets into its cgroup, if its command names one.
    fn cgroup_entry(&self, request: &Request<'_>) -> Result<Option<CgroupEntry>, SpawnError> {
        let attributes = request.command.attributes.as_deref();
        let Some(dir) = attributes.and_then(|attributes| attributes.cgroup.as_deref()) else {
            return Ok(None);
        };
        if !self.refused && !self.cgroup_refused {
            return Ok(Some(CgroupEntry::Created(dir.as_raw_fd())));
        }
        let procs =
            open_procs(dir).map_err(|error| SpawnStep::Attribute(AttributeStep::Cgroup).failed(error))?;
        Ok(Some(CgroupEntry::Written(procs)))
    }

    /// Reserves the low descriptors while low numbers are free: the kernel copies all descriptors
    /// below them for every child.
    pub(super) fn reserve(&mut self) -> io::Result<()> {
        if self.low.is_none() {
            self.low = Some(ReservedFds::new()?);
        }
        Ok(())
    }

    /// Returns the child's streams as descriptors from 3 upwards, and the first descriptor to cut
    /// off. That is 0 for a table that is copied.
    fn place(&mut self, request: &Request<'_>) -> Result<([RawFd; 3], u32), SpawnError> {
        let given = request.streams.iter().copied().filter(|&fd| fd >= 0);
        let highest = given.clone().max().unwrap_or(0);
        let crossed = given.clone().any(|fd| fd < 3);
        // valgrind ends a program that calls clone with other flags than those of vfork.
        let may_share = !self.cut_refused && !self.refused;
        let shared = may_share && (self.low.is_some() || highest >= SHARED_FROM);
        if !shared && !crossed {
            return Ok((request.streams, 0));
        }
        self.reserve().map_err(|error| SpawnStep::Streams.failed(error))?;
        let Some(low) = &self.low else { return Ok((request.streams, 0)) };
        // Descriptors that the child keeps have to survive the cut, too.
        let kept = request.command.descriptors.kept().last().map(|kept| kept.number);
        let slots = low.slots.iter().map(AsRawFd::as_raw_fd);
        let cut = slots.chain(kept).max().map_or(3, |highest| highest + 1);
        let mut streams = request.streams;
        for (place, stream) in
            streams.iter_mut().enumerate().filter(|(_, fd)| **fd >= 0 && !(3..cut).contains(*fd))
        {
            let slot = low.slots[place].as_raw_fd();
            copy_onto(*stream, slot).map_err(|error| SpawnStep::Streams.failed(error))?;
            *stream = slot;
        }
        Ok((streams, if shared { cut.unsigned_abs() } else { 0 }))
    }

    /// Returns the address and size of the stack, with the guard page. The child starts at its
    /// upper end.
    fn stack(&mut self) -> Result<(u64, u64), SpawnError> {
        let spare = || SPARE.try_with(Cell::take).ok().flatten();
        let stack = match self.stack.take().or_else(spare) {
            Some(stack) => stack,
            None => Stack::map().map_err(|error| SpawnStep::Process.failed(error))?,
        };
        let stack = self.stack.insert(stack);
        Ok((stack.base.expose_provenance() as u64, stack.size as u64))
    }
}

impl Drop for CloneSpawner {
    fn drop(&mut self) {
        if let Some(stack) = self.stack.take() {
            // The thread-local is gone if the thread is exiting.
            let _ = SPARE.try_with(|spare| spare.set(Some(stack)));
        }
    }
}

impl ReservedFds {
    fn new() -> io::Result<Self> {
        let null = open_null()?;
        let copy = || rustix::io::fcntl_dupfd_cloexec(&null, 3).map_err(io::Error::from);
        let slots = [copy()?, copy()?, copy()?];
        Ok(Self { null, slots })
    }

    /// Closes this process's copies of the child's streams, which would hide the end of file.
    fn clear(&self, streams: [RawFd; 3]) {
        for slot in self.slots.iter().filter(|slot| streams.contains(&slot.as_raw_fd())) {
            // Both are open, so dup3 cannot fail, except by a signal. It is not interrupted for these
            // files.
            let _ = copy_onto(self.null.as_raw_fd(), slot.as_raw_fd());
        }
    }
}

/// Makes `to` refer to the file of `from`. execve closes it.
fn copy_onto(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: both are open descriptors; `to` is a slot of ours, and ours to overwrite.
    match unsafe { libc::dup3(from, to, libc::O_CLOEXEC) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

impl Stack {
    fn map() -> io::Result<Self> {
        let guard = rustix::param::page_size();
        let size = guard + STACK_SIZE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base =
            unsafe { libc::mmap(ptr::null_mut(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Self { base, size };
        // SAFETY: the lowest page of the mapping made above, which nothing uses yet.
        match unsafe { libc::mprotect(base, guard, libc::PROT_NONE) } {
            0 => Ok(stack),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no child runs on it: the spawning call returned.
        unsafe { libc::munmap(self.base, self.size) };
    }
}

/// Opens the file of a cgroup that a process writes to in order to join it.
fn open_procs(dir: &File) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags, openat};
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(openat(dir, c"cgroup.procs", flags, Mode::empty())?)
}

/// Returns whether this is an error of `clone3` that concerns the cgroup, and not the process.
fn is_of_cgroup(error: &io::Error) -> bool {
    let errors = [libc::EACCES, libc::EBADF, libc::EBUSY, libc::ENODEV, libc::ENOENT, libc::EOPNOTSUPP];
    error.raw_os_error().is_some_and(|error| errors.contains(&error))
}

fn soft_limit(soft: Option<u64>) -> Option<libc::rlimit64> {
    let soft = soft?;
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile)
        .maximum
        .unwrap_or(libc::RLIM64_INFINITY);
    Some(libc::rlimit64 { rlim_cur: soft.min(hard), rlim_max: hard })
}

fn getpid() -> libc::pid_t {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Starts the child. Returns when it runs its program, or could not start it.
fn start(context: &mut ChildArgs<'_>, (stack, stack_size): (u64, u64), shared: bool) -> io::Result<Process> {
    let mut pidfd: RawFd = -1;
    let mut flags = libc::CLONE_VM | libc::CLONE_VFORK;
    if pidfd_available() {
        flags |= libc::CLONE_PIDFD;
    }
    if shared {
        flags |= libc::CLONE_FILES;
    }
    // All signals are blocked until the child has left this process's memory. The child must not run
    // a handler of the parent, and a stop (Ctrl-Z) would leave this thread waiting for a stopped
    // child. `become_program` describes what happens to these signals. SIGCHLD alone stays as it is: a
    // SIGCHLD of another child would be queued, and wake another thread for nothing (measured: 3 us
    // a job). The child ignores it by default, but not before it has dropped the handlers of this process.
    let unblocked = if context.by_clone { 0 } else { 1 << (libc::SIGCHLD - 1) };
    let before = mask(libc::SIG_BLOCK, !unblocked);
    let result = if context.by_clone {
        let top = ptr::with_exposed_provenance_mut((stack + stack_size) as usize);
        let context = ptr::from_mut(context).cast();
        // SAFETY: `context` and `pidfd` outlive the call, since the thread waits for the child
        // (CLONE_VFORK). The stack is used by no other child for the same reason, and `top` is its upper
        // end. `enter` never returns.
        match unsafe { libc::clone(enter, top, flags | libc::SIGCHLD, context, &raw mut pidfd) } {
            -1 => Err(io::Error::last_os_error()),
            pid => Ok(pid),
        }
    } else {
        let (into_cgroup, cgroup) = match context.cgroup {
            Some(CgroupEntry::Created(dir)) => (CLONE_INTO_CGROUP, u64::from(dir.unsigned_abs())),
            _ => (0, 0),
        };
        let args = CloneArgs {
            flags: flags as u64 | CLONE_CLEAR_SIGHAND | into_cgroup,
            pidfd: ptr::from_mut(&mut pidfd).expose_provenance() as u64,
            exit_signal: libc::SIGCHLD as u64,
            stack,
            stack_size,
            cgroup,
            ..CloneArgs::default()
        };
        // SAFETY: as above; `args` outlives the call, too, and `child` never returns.
        match unsafe { clone3(&args, child, ptr::from_mut(context).cast()) } {
            error if error < 0 => Err(io::Error::from_raw_os_error(-error as i32)),
            pid => Ok(pid as libc::pid_t),
        }
    };
    mask(libc::SIG_SETMASK, before);
    let pid = result?;
    if pidfd < 0 {
        return Ok(Process::new(pid, None));
    }
    // SAFETY: the kernel created this descriptor for this call, and nothing else owns it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Process::new(pid, Some(pidfd)))
}

/// Sets this thread's signal mask by the system call itself: the C library's function excludes two
/// signals that it uses internally.
fn mask(how: i32, set: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: both point to eight bytes, which is the size argument.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &set, &mut before, 8) };
    before
}

/// Begins the child of `clone`.
extern "C" fn enter(context: *mut c_void) -> libc::c_int {
    // SAFETY: `start` passed this pointer for `child`.
    unsafe { child(context) }
}

/// Runs the child from its first instruction to its program. It shares the parent's memory, so it
/// makes system calls only.
unsafe extern "C" fn child(context: *mut c_void) -> ! {
    // SAFETY: `start` passed a pointer to its context, which the waiting thread does not touch.
    let context = unsafe { &mut *context.cast::<ChildArgs<'_>>() };
    context.error = match register(context) {
        0 => match join_cgroup(context) {
            0 => become_program(context),
            error => error,
        },
        error => error,
    };
    // SAFETY: exits this process without running code of the parent.
    unsafe { libc::_exit(127) }
}

/// Registers the child with the guardian, if there is one; returns an error number. It is the first
/// step: if the host is killed from here on, the guardian either has the record or has refused it, and
/// then this child does not run its program. The descriptor of the socket is in the table until the
/// next step drops it.
fn register(context: &mut ChildArgs<'_>) -> i32 {
    let request = context.request;
    let error = request.registration.map_or(0, |it| it.send_from_child(request.leads_group()));
    context.step = if error == 0 { SpawnStep::Setup } else { SpawnStep::Guardian };
    error
}

/// Joins the cgroup, unless the kernel created the child there; returns an error number. The file is in
/// the table until the next step drops it.
fn join_cgroup(context: &mut ChildArgs<'_>) -> i32 {
    let Some(CgroupEntry::Written(procs)) = &context.cgroup else { return 0 };
    context.step = SpawnStep::Attribute(AttributeStep::Cgroup);
    // The zero stands for the process that writes.
    // SAFETY: an open descriptor, and one byte of a constant.
    if unsafe { libc::write(procs.as_raw_fd(), c"0".as_ptr().cast(), 1) } < 0 {
        return errno();
    }
    context.step = SpawnStep::Setup;
    0
}

/// Executes the steps of the child, whose order matters. Returns only after an error.
fn become_program(context: &mut ChildArgs<'_>) -> i32 {
    // 1. The child gets its own table first, so that no later step changes the parent's. After a
    //    failure here no later step may run.
    if context.cut != 0 {
        context.step = SpawnStep::Process;
        // SAFETY: three numbers.
        if unsafe { libc::syscall(libc::SYS_close_range, context.cut, u32::MAX, CLOSE_RANGE_UNSHARE) } != 0 {
            return errno();
        }
        context.step = SpawnStep::Setup;
    }
    // 2. The group, before another process can signal it.
    linger(context.request.command.late);
    if let Err(error) = join_group(context) {
        return error;
    }
    // Then discard the signals that were sent to the parent's group while this process was still in
    // it. The order of steps shows that this is correct:
    // (a) Until here a key of the terminal also reaches this process, and the kernel gives it each
    // signal that arrives during the clone. All of them are blocked, so they are pending now.
    // (b) No process knows the new group id yet, so none of the pending signals was meant for the
    // new group. The kernel's own SIGKILL (the parent-death signal of step 6) comes later.
    // (c) The parent receives the same signals itself. It stops or terminates this child as soon as
    // its call returns.
    // Without this step, a Ctrl-Z would stop the child at step 8, in a group that the shell cannot
    // continue, while the parent's thread waits in the kernel for the child's exec. A Ctrl-C would
    // terminate a job before it ran.
    if context.request.command.group != Group::Inherit {
        discard_pending();
    }
    if let Err(error) = restore(context) {
        return error;
    }
    if context.request.command.nice != 0 {
        context.step = SpawnStep::Niceness;
        if let Err(error) = be_nice(context.request.command.nice) {
            return error;
        }
    }
    if let Some(slack) = context.request.command.timer_slack {
        context.step = SpawnStep::TimerSlack;
        if let Err(error) = set_timer_slack(slack) {
            return error;
        }
    }
    // 3. The streams. No source is below 3, so none is overwritten before it is copied.
    for (place, &fd) in context.streams.iter().enumerate() {
        let place = place as RawFd;
        context.step = if fd == NULL_DEVICE { SpawnStep::NullDevice } else { SpawnStep::Streams };
        let connected = match fd {
            NULL_DEVICE => become_null(place),
            // SAFETY: numbers only; the new descriptor is not closed by execve.
            fd if fd >= 0 => unsafe { libc::dup2(fd, place) },
            _ => place,
        };
        if connected < 0 {
            return errno();
        }
    }
    // 4. The controlling terminal, which is standard output now.
    if matches!(context.request.command.group, Group::Terminal(_)) {
        // SAFETY: descriptor 1 is the terminal. With 0 it is not stolen from another session.
        if unsafe { libc::ioctl(1, libc::TIOCSCTTY as _, 0) } != 0 {
            return errno();
        }
    }
    // 5. Only requested descriptors are inherited, even if others are not marked close-on-exec.
    if !keep(context.request.command.descriptors.kept(), &context.left_open) && !context.without_close_range {
        context.step = SpawnStep::Process;
        return errno();
    }
    // 6. Limits and the user, while this process still has the rights to set them.
    if let Err(error) = set_attributes(context) {
        return error;
    }
    // 7. The directory comes after that: a slow file server may delay this step, and must not delay the
    //    end of file of a sibling's pipe.
    if let Some(dir) = context.request.dir {
        context.step = SpawnStep::Directory;
        // SAFETY: it is a C string of the waiting parent.
        if unsafe { libc::chdir(dir.as_ptr()) } != 0 {
            return errno();
        }
    }
    // 8. Signals last: from here on a signal may kill this process, as it should. No handler of the parent
    //    may run in its memory.
    if context.by_clone {
        reset_handlers();
    }
    mask(libc::SIG_SETMASK, 0);
    context.step = SpawnStep::Exec;
    let image = context.request.image;
    // SAFETY: the strings and lists belong to the waiting parent, and nulls end them.
    unsafe { libc::execve(image.path().as_ptr(), image.argv(), image.envp()) };
    errno()
}

/// Makes one of the streams the null device; returns a negative number after an error. The stream is
/// closed first, so that its own number is free: the child may have as many descriptors as it may have.
fn become_null(place: RawFd) -> RawFd {
    // SAFETY: a number. The table belongs to the child alone, and no source is below 3.
    unsafe { libc::close(place) };
    // SAFETY: a C string. The new descriptor is not closed by execve.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    if null < 0 || null == place {
        return null;
    }
    // A lower stream is closed, as it was in the parent.
    // SAFETY: numbers only.
    let copied = unsafe { libc::dup2(null, place) };
    // SAFETY: a number; the descriptor is the one from above.
    unsafe { libc::close(null) };
    copied
}

/// Closes all descriptors above the streams except the `kept` ones. Without close_range (Linux 5.9) these
/// are the ones `left_open`, and those that are marked close-on-exec. Returns whether there is close_range.
fn keep(kept: &[Kept], left_open: &[RawFd]) -> bool {
    for &number in left_open {
        if kept.binary_search_by_key(&number, |kept| kept.number).is_err() {
            // SAFETY: a number. The table belongs to the child alone.
            unsafe { libc::close(number) };
        }
    }
    let mut next = 3u32;
    for kept in kept {
        let number = kept.number.unsigned_abs();
        if number > next {
            // SAFETY: three numbers.
            unsafe { libc::syscall(libc::SYS_close_range, next, number - 1, 0u32) };
        }
        if kept.file.is_some() {
            // SAFETY: three numbers. The table belongs to the child alone, and the call refuses closed
            // descriptors.
            unsafe { libc::fcntl(kept.number, libc::F_SETFD, 0) };
        }
        next = number + 1;
    }
    // SAFETY: three numbers.
    unsafe { libc::syscall(libc::SYS_close_range, next, u32::MAX, 0u32) == 0 }
}

/// Gives each signal that has a handler its default action, as CLONE_CLEAR_SIGHAND does.
fn reset_handlers() {
    // More than the kernel's structure has, whose first word is the handler. All zero is the default
    // action.
    type Action = [usize; 8];
    for signal in 1..=64 {
        let mut before: Action = [0; 8];
        let nothing: *const Action = ptr::null();
        // SAFETY: the kernel writes no more than `before` has. The set has eight bytes.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, nothing, &mut before, 8usize) };
        if before[0] != libc::SIG_DFL && before[0] != libc::SIG_IGN {
            let default: Action = [0; 8];
            let nowhere: *mut Action = ptr::null_mut();
            // SAFETY: the kernel reads no more than `default` has. The child has its own table of handlers.
            unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, &default, nowhere, 8usize) };
        }
    }
}

fn join_group(context: &ChildArgs<'_>) -> Result<(), i32> {
    let result = match context.request.command.group {
        Group::Inherit => 0,
        // SAFETY: two numbers.
        Group::New => unsafe { libc::setpgid(0, 0) },
        // SAFETY: no arguments.
        Group::Session | Group::Terminal(_) => unsafe { libc::setsid() },
    };
    if result < 0 { Err(errno()) } else { Ok(()) }
}

/// Takes all pending signals from the queue, so that they have no effect.
fn discard_pending() {
    let all = u64::MAX;
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let nowhere: *mut libc::siginfo_t = ptr::null_mut();
    // The loop ends: no further signal of the parent's group arrives, and pending ones are bounded
    // (RLIMIT_SIGPENDING).
    loop {
        // SAFETY: the set and the time-out are initialised and have the sizes that the kernel expects. The
        // kernel writes no details through a null pointer.
        let taken = unsafe { libc::syscall(libc::SYS_rt_sigtimedwait, &all, nowhere, &at_once, 8) };
        if taken < 0 && errno() != libc::EINTR {
            return;
        }
    }
}

/// Delays the child, as a busy machine may. For tests.
fn linger(time: Duration) {
    if !time.is_zero() {
        let time =
            libc::timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        // SAFETY: the time belongs to the waiting parent, and the kernel writes nothing back.
        unsafe { libc::nanosleep(&time, ptr::null_mut()) };
    }
}

/// Restores settings that the host changed for itself.
fn restore(context: &ChildArgs<'_>) -> Result<(), i32> {
    // Rust's runtime ignores SIGPIPE, and execve keeps ignored signals ignored: `yes | head` would not
    // end.
    if let Some(signal) = ignored_by_us() {
        // SAFETY: SIG_DFL for a signal that exists. The child has its own table of handlers, without
        // CLONE_SIGHAND.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    if let Some(limit) = &context.nofile {
        // SAFETY: the value lies in memory of the waiting parent. The call sets the limit of this process
        // only.
        if unsafe { libc::prlimit64(0, libc::RLIMIT_NOFILE, limit, ptr::null_mut()) } != 0 {
            return Err(errno());
        }
    }
    Ok(())
}

/// Sets limits and the user, and then requests the parent-death signal, if the caller wants it: a change of
/// the user would cancel it (prctl(2)).
fn set_attributes(context: &mut ChildArgs<'_>) -> Result<(), i32> {
    if let Some(attributes) = &context.request.command.attributes {
        attributes::apply(attributes, &mut context.step)?;
        context.step = SpawnStep::Setup;
    }
    if context.request.command.die_with_parent { die_with(context.parent) } else { Ok(()) }
}

/// Requests the parent-death signal.
fn die_with(parent: libc::pid_t) -> Result<(), i32> {
    // SAFETY: numbers only.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // If the parent exited before that call, the signal never arrives.
    // SAFETY: no arguments.
    if unsafe { libc::getppid() } != parent { Err(libc::ESRCH) } else { Ok(()) }
}

/// Adds to the niceness inherited from the parent's thread.
fn be_nice(nice: i32) -> Result<(), i32> {
    // SAFETY: numbers only; 0 is this process.
    let before = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
    if before < 0 {
        return Err(errno());
    }
    // The call returns 20 minus the niceness, so that no result is negative (getpriority(2)).
    let nice = (20 - before as i32).saturating_add(nice).clamp(-20, 19);
    // SAFETY: as above.
    match unsafe { libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, nice) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// Sets the slack of the child's only thread. The thread that started it has another one, although both
/// share their memory.
fn set_timer_slack(slack: Duration) -> Result<(), i32> {
    // Zero would restore the default, which is inherited (prctl(2)).
    let nanos = libc::c_ulong::try_from(slack.as_nanos()).unwrap_or(libc::c_ulong::MAX).max(1);
    // SAFETY: numbers only.
    match unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanos) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

fn errno() -> i32 {
    // SAFETY: no arguments.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the address of this thread's errno, which the child shares with the waiting parent.
    unsafe { *place }
}
