//! `posix_spawn`, for systems other than Linux. The C library makes it without copying our memory where the
//! operating system can.

#![expect(unsafe_code, reason = "the posix_spawn family")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use super::null_device::open_null;
use super::request::{NULL_DEVICE, Request};
use super::{SpawnError, SpawnStep};
use crate::command::Kept;
use crate::group::Group;
use crate::sys::guard::ignored_by_us;
use crate::sys::pid::open_pidfd;
use crate::sys::reap::Process;

#[cfg(target_vendor = "apple")]
const SETSID: i32 = 0x400;
/// Others have no flag for it: a session is refused there.
#[cfg(not(target_vendor = "apple"))]
const SETSID: i32 = 0;

/// Starts a child.
pub(super) fn spawn(request: &Request<'_>) -> Result<Process, SpawnError> {
    if request.command.nice != 0 {
        // Set from here it would come late, when the program runs already.
        return Err(SpawnStep::Niceness.failed(io::ErrorKind::Unsupported));
    }
    if request.command.timer_slack.is_some() {
        return Err(SpawnStep::TimerSlack.failed(io::ErrorKind::Unsupported));
    }
    if let Some(step) = request.command.attributes.as_ref().and_then(|attributes| attributes.first_step()) {
        return Err(SpawnStep::Attribute(step).failed(io::ErrorKind::Unsupported));
    }
    let setup = |error| SpawnStep::Setup.failed(error);
    let attributes = Attributes::new(request).map_err(setup)?;
    // A source below 3 would be overwritten by another stream before it is copied.
    let mut raised = Vec::new();
    let mut streams = request.streams;
    for stream in streams.iter_mut().filter(|stream| (0..3).contains(*stream)) {
        // SAFETY: the caller keeps the descriptor open for the call.
        let source = unsafe { BorrowedFd::borrow_raw(*stream) };
        let copy =
            rustix::io::fcntl_dupfd_cloexec(source, 3).map_err(|error| SpawnStep::Streams.failed(error))?;
        *stream = copy.as_raw_fd();
        raised.push(copy);
    }
    for stream in streams.iter_mut().filter(|stream| **stream == NULL_DEVICE) {
        let null = open_null_above_streams().map_err(|error| SpawnStep::NullDevice.failed(error))?;
        *stream = null.as_raw_fd();
        raised.push(null);
    }
    let actions = Actions::new(request, streams).map_err(setup)?;
    let mut pid = 0;
    // SAFETY: all pointers are to initialised values that outlive the call; the lists are ended by
    // nulls.
    let error = unsafe {
        libc::posix_spawn(
            &mut pid,
            request.image.path().as_ptr(),
            &actions.0,
            &attributes.0,
            request.image.argv().cast::<*mut libc::c_char>(),
            request.image.envp().cast::<*mut libc::c_char>(),
        )
    };
    if error != 0 {
        let error = io::Error::from_raw_os_error(error);
        let step = match (crate::sys::error::is_exhausted(&error), request.dir) {
            (true, _) => SpawnStep::Process,
            (false, Some(dir)) if !is_dir(dir) => SpawnStep::Directory,
            (false, _) => SpawnStep::Exec,
        };
        return Err(step.failed(error));
    }
    // Only we reap the child, so its number is still its own. Without a free descriptor it is looked at
    // by that.
    let mut process = Process::new(pid, open_pidfd(pid).ok().flatten());
    // The child runs already: if this process is killed before the next line, no guardian knows it.
    if let Some(registration) = request.registration
        && let Err(error) = registration.send(pid, request.leads_group())
    {
        let _ = process.signal(libc::SIGKILL);
        let _ = process.wait_and_reap();
        return Err(SpawnStep::Guardian.failed(error));
    }
    Ok(process)
}

/// Opens the null device. Its number is not that of a stream, even if one of those is closed.
fn open_null_above_streams() -> io::Result<OwnedFd> {
    let null = open_null()?;
    if null.as_raw_fd() > 2 {
        return Ok(null);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&null, 3)?)
}

fn is_dir(dir: &std::ffi::CStr) -> bool {
    use std::os::unix::ffi::OsStrExt;
    std::path::Path::new(std::ffi::OsStr::from_bytes(dir.to_bytes())).is_dir()
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new(request: &Request<'_>) -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: init fills in what it is given.
        check(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: initialised by the line above.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        let mut flags =
            i32::from(libc::POSIX_SPAWN_SETSIGMASK as i16) | i32::from(libc::POSIX_SPAWN_SETSIGDEF as i16);
        match request.command.group {
            Group::Inherit => (),
            Group::New => flags |= i32::from(libc::POSIX_SPAWN_SETPGROUP as i16),
            Group::Session | Group::Terminal(_) if SETSID == 0 => {
                return Err(io::ErrorKind::Unsupported.into());
            }
            Group::Session | Group::Terminal(_) => flags |= SETSID,
        }
        // Only what the file actions name reaches the child.
        #[cfg(target_vendor = "apple")]
        {
            flags |= libc::POSIX_SPAWN_CLOEXEC_DEFAULT;
        }
        // SAFETY: initialised attributes, a number.
        check(unsafe { libc::posix_spawnattr_setflags(&mut attributes.0, flags as libc::c_short) })?;
        let mut set = signals(None);
        // SAFETY: initialised attributes and set; none is blocked in the child.
        check(unsafe { libc::posix_spawnattr_setsigmask(&mut attributes.0, &set) })?;
        set = signals(ignored_by_us());
        // SAFETY: initialised attributes and set.
        check(unsafe { libc::posix_spawnattr_setsigdefault(&mut attributes.0, &set) })?;
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new(request: &Request<'_>, streams: [RawFd; 3]) -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: init fills in what it is given.
        check(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        // SAFETY: initialised by the line above.
        let mut actions = Self(unsafe { actions.assume_init() });
        if let Some(dir) = request.dir {
            actions.dir(dir)?;
        }
        for (place, &fd) in streams.iter().enumerate() {
            let target = place as libc::c_int;
            let source = if fd < 0 { target } else { fd };
            // A descriptor that is copied onto itself becomes inheritable (POSIX.1-2024; glibc 2.29, Darwin).
            if fd < 0 && cfg!(not(target_vendor = "apple")) {
                continue;
            }
            // SAFETY: initialised actions, two numbers.
            check(unsafe { libc::posix_spawn_file_actions_adddup2(&mut actions.0, source, target) })?;
        }
        actions.keep(request.command.descriptors.kept())?;
        Ok(actions)
    }

    /// Lets the child inherit these descriptors, and none between them.
    fn keep(&mut self, kept: &[Kept]) -> io::Result<()> {
        let Some(last) = kept.last() else { return Ok(()) };
        let left_open = super::inherited();
        for kept in kept {
            let is_left_open = left_open.binary_search(&kept.number).is_ok();
            // One that no object holds has to be as it was found; elsewhere than on Apple's systems it then
            // needs no action.
            if kept.file.is_none() && !(is_left_open && cfg!(target_vendor = "apple")) {
                continue;
            }
            // It is copied onto itself: see above.
            // SAFETY: initialised actions, two numbers.
            check(unsafe { libc::posix_spawn_file_actions_adddup2(&mut self.0, kept.number, kept.number) })?;
        }
        if cfg!(target_vendor = "apple") {
            return Ok(());
        }
        // What the host left open without a mark. Everything else is closed by execve.
        for number in left_open.into_iter().take_while(|number| *number < last.number) {
            if kept.binary_search_by_key(&number, |kept| kept.number).is_err() {
                // SAFETY: initialised actions, a number.
                check(unsafe { libc::posix_spawn_file_actions_addclose(&mut self.0, number) })?;
            }
        }
        Ok(())
    }

    #[cfg(target_vendor = "apple")]
    fn dir(&mut self, dir: &std::ffi::CStr) -> io::Result<()> {
        // SAFETY: initialised actions, a C string that outlives the spawn.
        check(unsafe { libc::posix_spawn_file_actions_addchdir_np(&mut self.0, dir.as_ptr()) })
    }

    #[cfg(not(target_vendor = "apple"))]
    fn dir(&mut self, _dir: &std::ffi::CStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

fn check(error: libc::c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// The empty set, or that of one signal.
fn signals(these: impl IntoIterator<Item = libc::c_int>) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises what it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised by the line above.
    let mut set = unsafe { set.assume_init() };
    for signal in these {
        // SAFETY: an initialised set and one of the operating system's signals.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    set
}
