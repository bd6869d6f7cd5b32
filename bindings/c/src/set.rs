//! Set: many children, and a thread that reads their outputs all the time.
//!
//! The program watches one descriptor, minder_set_fd(), in its loop, or waits by minder_set_wait(). Then
//! it takes the events. Output in memory is limited, and so is everything that waits. Where there is no
//! room, a child blocks, its output goes to a file, or its oldest bytes are dropped.
//!
//!     while (minder_set_children(set) > 0 && minder_set_wait(set, MINDER_FOREVER) == MINDER_OK) {
//!         minder_set_take(set, events, SIZE_MAX, NULL);
//!         while ((event = minder_events_next(events)) != NULL)
//!             if (event->kind == MINDER_EVENT_OUTPUT) fwrite(event->bytes, 1, event->len, stdout);
//!     }
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::ffi::{c_char, c_void};
use std::time::{Duration, Instant};

use minder::{
    Backend, BackgroundSet, BackgroundSetOptions, ChildId, ChildSetOptions, OutputMode, OverflowPolicy,
    Restart, RestartPolicy, Size, SpawnOptions,
};

use crate::arg::{self, Growing, Opaque, handle, lock, options, required, store, text};
use crate::command::{minder_command, with_command};
use crate::event::{minder_child_id, minder_events, number_of, pointer_of};
use crate::fork::Origin;
use crate::guardian::minder_guardian;
use crate::native::{self, minder_fd};
use crate::status::{Failure, call, minder_status, value};
use crate::termination::{minder_termination, termination};

/// The treatment of output for which there is no room in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_overflow {
    /// Stop reading the child until events were taken and looked at. It blocks when its pipe is full.
    MINDER_OVERFLOW_BLOCK = 0,
    /// Write the output to a private file, and hand it over in order when there is room.
    MINDER_OVERFLOW_SPILL = 1,
    /// Drop the oldest bytes that were not taken, and count them in minder_exit.
    MINDER_OVERFLOW_DROP_OLDEST = 2,
}

/// The time at which output is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_output_mode {
    /// As it arrives.
    MINDER_OUTPUT_STREAM = 0,
    /// All of it after the exit. It needs MINDER_OVERFLOW_SPILL or MINDER_OVERFLOW_DROP_OLDEST.
    MINDER_OUTPUT_AT_EXIT = 1,
}

/// The condition under which a child is started again after it exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_restart {
    /// Never.
    MINDER_RESTART_NEVER = 0,
    /// After a signal and after any code except 0.
    MINDER_RESTART_ON_FAILURE = 1,
    /// Always.
    MINDER_RESTART_ALWAYS = 2,
}

/// The limits of a set. Zero is the default of each.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_set_options {
    /// The size of this structure.
    pub size: u32,
    /// Not 0: MINDER_EVENT_EXITED comes when a child exits, even before its last bytes.
    pub eager_exit: i32,
    /// The most children at once. A child counts until its end was taken. Default: 65,536.
    pub max_children: usize,
    /// The most bytes of output in memory, in the set and in lists of events. Default: 16 MiB.
    pub max_buffered_bytes: usize,
    /// The most bytes of output in memory for one child. Default: 1 MiB.
    pub max_child_bytes: usize,
    /// The size of one read, at most 16 MiB. Default: 64 KiB.
    pub read_buffer_bytes: usize,
    /// The most bytes that wait to be written to one child. Default: 256 KiB.
    pub max_input_bytes: usize,
    /// The time for which the thread waits for more after a small piece of output. Default: it does
    /// not.
    pub coalesce_delay: i64,
    /// The delay before the first read of an output. Default: none.
    pub read_delay: i64,
    /// The time for which an output may be silent after the exit before it is closed. Default: 100
    /// ms. MINDER_FOREVER: it is never closed.
    pub leak_timeout: i64,
    /// The interval at which the thread polls for children that were stopped by a signal. Default:
    /// never.
    pub stop_poll_interval: i64,
    /// The longest time for which a call waits for the thread. Default: 30 s.
    pub call_timeout: i64,
    /// The directory for spilled output; NULL: that for temporary files.
    pub spill_dir: *const c_char,
    /// The wait backend, as minder_poller_backend() names it; NULL: the best one.
    pub backend: *const c_char,
    /// Ends the children when this process is killed; NULL: nothing does. The set keeps the guardian.
    pub guardian: *const minder_guardian,
}

// SAFETY: it begins with its size, and zero is a value of every member.
unsafe impl Growing for minder_set_options {}

/// The options of one child of a set. Zero is the default of each.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_spawn_options {
    /// The size of this structure.
    pub size: u32,
    /// One of minder_overflow.
    pub overflow: i32,
    /// One of minder_output_mode.
    pub output_mode: i32,
    /// One of minder_restart.
    pub restart: i32,
    /// The longest time for which the child may run, restarts included. Default: without a limit.
    pub timeout: i64,
    /// The way in which it is killed after that.
    pub timeout_kill: *const minder_termination,
    /// The delay before the first restart. It doubles. Default: 100 ms.
    pub restart_delay: i64,
    /// The longest delay before a restart. Default: 60 s.
    pub restart_max_delay: i64,
    /// The time for which a child has to run so that the delay begins anew. Default: 10 s.
    pub restart_stable_after: i64,
    /// The most restarts in a row. Default: any number.
    pub restart_max_count: u32,
    /// Zero.
    pub reserved: u32,
    /// The place where minder_set_spawn() stores the pid, as minder_set_pid() returns it; NULL:
    /// nowhere. The pid is 0 if the start fails, or if another thread has taken the end of the
    /// child meanwhile.
    pub pid: *mut u32,
    /// A pointer of the host, such as to its object for this child: every event of the child has it, also
    /// after a restart. The library does not touch what it points to. Default: NULL.
    pub user: *mut c_void,
}

// SAFETY: it begins with its size, and zero is a value of every member.
unsafe impl Growing for minder_spawn_options {
    fn reserved(&self) -> u32 {
        self.reserved
    }
}

/// Many children, and the thread that serves them. Freed by minder_set_free().
#[derive(Debug)]
pub struct minder_set(());

/// A set, and the process that has its thread.
#[derive(Debug)]
pub(crate) struct Served {
    set: BackgroundSet,
    origin: Origin,
}

impl Opaque for minder_set {
    type Inner = Served;
    const TAG: [u8; 8] = *b"mnd_set\0";
}

impl Served {
    fn here(&self) -> Result<&BackgroundSet, Failure> {
        if !self.origin.is_left() {
            return Ok(&self.set);
        }
        let reason = "the thread of the set is in the parent of this forked process; make a set here";
        Err(Failure::new(minder_status::MINDER_FORKED, reason))
    }
}

fn child_id(id: minder_child_id) -> ChildId {
    ChildId::from_u64(id)
}

impl minder_set_options {
    fn config(&self) -> Result<BackgroundSetOptions, Failure> {
        let mut set = ChildSetOptions::new();
        let count = |number: usize| Some(number).filter(|number| *number != 0);
        if let Some(max) = count(self.max_children) {
            set = set.max_children(max);
        }
        if let Some(max) = count(self.max_buffered_bytes) {
            set = set.max_buffered_bytes(max);
        }
        if let Some(max) = count(self.max_child_bytes) {
            set = set.max_child_bytes(max);
        }
        if let Some(size) = count(self.read_buffer_bytes) {
            set = set.read_buffer_bytes(size);
        }
        if let Some(delay) = arg::time_option(self.read_delay) {
            set = set.read_delay(delay);
        }
        if self.leak_timeout != 0 {
            set = set.leak_timeout(arg::timeout(self.leak_timeout));
        }
        set = set.stop_poll_interval(arg::time_option(self.stop_poll_interval));
        let spill_dir = self.spill_dir;
        if !spill_dir.is_null() {
            set = set.spill_dir(text!(spill_dir));
        }
        let backend = self.backend;
        if !backend.is_null() {
            set = set.backend(Some(text!(backend).to_string_lossy().parse::<Backend>()?));
        }
        let guardian = self.guardian;
        if !guardian.is_null() {
            set = set.guardian(handle!(guardian));
        }
        let mut config = BackgroundSetOptions::new().set(set).eager_exit(self.eager_exit != 0);
        if let Some(max) = count(self.max_input_bytes) {
            config = config.max_input_bytes(max);
        }
        if let Some(delay) = arg::time_option(self.coalesce_delay) {
            config = config.coalesce_delay(delay);
        }
        if let Some(timeout) = arg::time_option(self.call_timeout) {
            config = config.call_timeout(timeout);
        }
        Ok(config)
    }
}

impl minder_spawn_options {
    fn options(&self) -> Result<SpawnOptions, Failure> {
        let unknown = |name: &str, number: i32| {
            Failure::invalid(format!("option `{name}` is {number}, which the library does not know"))
        };
        let mut options = SpawnOptions::new();
        options = options.overflow(match self.overflow {
            0 => OverflowPolicy::Block,
            1 => OverflowPolicy::Spill,
            2 => OverflowPolicy::DropOldest,
            number => return Err(unknown("overflow", number)),
        });
        options = options.output_mode(match self.output_mode {
            0 => OutputMode::Stream,
            1 => OutputMode::AtExit,
            number => return Err(unknown("output_mode", number)),
        });
        if let Some(timeout) = arg::time_option(self.timeout)
            && let Some(deadline) = Instant::now().checked_add(timeout)
        {
            options = options.deadline(deadline, termination!(self.timeout_kill));
        }
        let mut policy = RestartPolicy::new(match self.restart {
            0 => Restart::Never,
            1 => Restart::OnFailure,
            2 => Restart::Always,
            number => return Err(unknown("restart", number)),
        });
        if let Some(delay) = arg::time_option(self.restart_delay) {
            policy = policy.backoff(delay);
        }
        if let Some(delay) = arg::time_option(self.restart_max_delay) {
            policy = policy.max_backoff(delay);
        }
        if let Some(time) = arg::time_option(self.restart_stable_after) {
            policy = policy.stable_after(time);
        }
        if self.restart_max_count != 0 {
            policy = policy.max_restarts(Some(self.restart_max_count));
        }
        Ok(options.restart(policy))
    }
}

/// Starts the thread of a set, and stores the set. The options may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_new(
    options: *const minder_set_options,
    set: *mut *mut minder_set,
) -> minder_status {
    call(|| {
        required!(set);
        store!(set, std::ptr::null_mut());
        let options: minder_set_options = options!(options);
        let served = Served { set: BackgroundSet::new(options.config()?)?, origin: Origin::here() };
        store!(set, arg::new_handle(served));
        Ok(minder_status::MINDER_OK)
    })
}

/// Frees a set. It ends the thread and closes the pipes, and it kills no child: call minder_set_stop()
/// before. In a forked process it only frees what belongs to that process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_free(set: *mut minder_set) {
    value((), || {
        // SAFETY: the caller uses the handle no more.
        if let Some(served) = unsafe { arg::take_handle(set) }?
            && served.origin.is_left()
        {
            // Its locks may be held by threads that do not exist here.
            std::mem::forget(served);
        }
        Ok(())
    });
}

/// Starts a child on the thread of the set, waits until it was started, and stores its id. The options may
/// be NULL; their `pid` is where the pid is stored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_spawn(
    set: *const minder_set,
    command: *const minder_command,
    options: *const minder_spawn_options,
    child: *mut minder_child_id,
) -> minder_status {
    call(|| {
        let set = handle!(set).here()?;
        let options: minder_spawn_options = options!(options);
        let pid = options.pid;
        let user = number_of(options.user);
        store!(pid, 0);
        let options = options.options()?;
        let id = with_command(handle!(command), |command| Ok(set.spawn_with_user(command, options, user)?))?;
        store!(child, id.as_u64());
        if !pid.is_null() {
            store!(pid, set.pid(id).unwrap_or(0));
        }
        Ok(minder_status::MINDER_OK)
    })
}

/// Queues bytes for the standard input of a child, as many as there is room for, and stores how many. If
/// that is not all, MINDER_EVENT_WRITABLE reports that there is room again. Never blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_write(
    set: *const minder_set,
    child: minder_child_id,
    bytes: *const u8,
    len: usize,
    written: *mut usize,
) -> minder_status {
    call(|| {
        store!(written, 0);
        let set = handle!(set).here()?;
        let count = set.write(child_id(child), arg::bytes!(bytes, len))?;
        store!(written, count);
        Ok(minder_status::MINDER_OK)
    })
}

/// Closes the standard input of a child after the queued bytes were written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_close_stdin(
    set: *const minder_set,
    child: minder_child_id,
) -> minder_status {
    call(|| {
        handle!(set).here()?.close_stdin(child_id(child))?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Kills a child with everything that it started. Returns at once; MINDER_EVENT_DONE reports the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_kill(
    set: *const minder_set,
    child: minder_child_id,
    how: *const minder_termination,
) -> minder_status {
    call(|| {
        handle!(set).here()?.kill(child_id(child), termination!(how))?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Kills a child with everything that it started, and starts it again. The child has a restart policy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_restart(
    set: *const minder_set,
    child: minder_child_id,
    how: *const minder_termination,
) -> minder_status {
    call(|| {
        handle!(set).here()?.restart(child_id(child), termination!(how))?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Suspends a child with everything that it started. Its time-out does not run meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_suspend(set: *const minder_set, child: minder_child_id) -> minder_status {
    call(|| {
        handle!(set).here()?.suspend(child_id(child))?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Resumes a child that is suspended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_resume(set: *const minder_set, child: minder_child_id) -> minder_status {
    call(|| {
        handle!(set).here()?.resume(child_id(child))?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Sets the size of the terminal of a child that was started with minder_command_terminal().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_resize(
    set: *const minder_set,
    child: minder_child_id,
    rows: u16,
    columns: u16,
) -> minder_status {
    call(|| {
        handle!(set).here()?.resize_terminal(child_id(child), Size::new(rows, columns))?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Stores the pid of a child. Once the child is done, the pid may belong to another process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_pid(
    set: *const minder_set,
    child: minder_child_id,
    pid: *mut u32,
) -> minder_status {
    call(|| {
        let number = handle!(set).here()?.pid(child_id(child))?;
        store!(pid, number);
        Ok(minder_status::MINDER_OK)
    })
}

/// Stores the pointer that the host gave to a child: in its options, or by minder_set_set_user().
/// MINDER_UNKNOWN once MINDER_EVENT_DONE of the child was taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_user(
    set: *const minder_set,
    child: minder_child_id,
    user: *mut *mut c_void,
) -> minder_status {
    call(|| {
        let number = handle!(set).here()?.user(child_id(child))?;
        store!(user, pointer_of(number));
        Ok(minder_status::MINDER_OK)
    })
}

/// Gives another pointer of the host to a child. Events that are taken later have it; those in a list keep
/// the one before, so keep its object until they were looked at. MINDER_UNKNOWN once MINDER_EVENT_DONE of
/// the child was taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_set_user(
    set: *const minder_set,
    child: minder_child_id,
    user: *mut c_void,
) -> minder_status {
    call(|| {
        handle!(set).here()?.set_user(child_id(child), number_of(user))?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Returns a descriptor for the loop of the program: readable exactly while minder_set_take() would move an
/// event. Watch it level-triggered, do not read from it, and do not close it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_fd(set: *const minder_set) -> minder_fd {
    value(native::NO_FD, || Ok(native::fd_of(handle!(set).here()?)))
}

/// Waits until minder_set_take() would move an event, for at most `timeout`. Returns MINDER_TIMED_OUT if
/// there is none. A set without children waits, too: another thread may start one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_wait(set: *const minder_set, timeout: i64) -> minder_status {
    call(|| {
        let is_ready = handle!(set).here()?.wait(arg::timeout(timeout))?;
        Ok(if is_ready { minder_status::MINDER_OK } else { minder_status::MINDER_TIMED_OUT })
    })
}

/// Moves events to the end of a list, and stores how many; `count` may be NULL. Never blocks.
///
/// The events come child by child. The call stops before the moved bytes of output exceed `max_bytes`, but
/// moves one event if there is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_take(
    set: *const minder_set,
    events: *mut minder_events,
    max_bytes: usize,
    count: *mut usize,
) -> minder_status {
    call(|| {
        store!(count, 0);
        let set = handle!(set).here()?;
        let mut taken = lock(handle!(events));
        let mut moved = std::mem::take(&mut taken.spare);
        set.drain_events_with_user(&mut moved, max_bytes);
        store!(count, moved.len());
        taken.waiting.extend(moved.drain(..));
        taken.spare = moved;
        Ok(minder_status::MINDER_OK)
    })
}

/// Returns how many children were started whose end was not taken yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_children(set: *const minder_set) -> usize {
    value(0, || Ok(handle!(set).here()?.len()))
}

/// Returns how many bytes of output wait to be taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_queued_bytes(set: *const minder_set) -> usize {
    value(0, || Ok(handle!(set).here()?.buffered_bytes()))
}

/// Returns the first error since the last call that belongs to no other call, such as a spill file that
/// cannot be written; MINDER_OK if there was none. The set continues after such an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_take_error(set: *const minder_set) -> minder_status {
    call(|| match handle!(set).here()?.take_error() {
        Some(error) => Err(error.into()),
        None => Ok(minder_status::MINDER_OK),
    })
}

/// Kills all children with everything that they started, ends the thread, and waits for that. The children
/// are asked to exit, and killed after `grace`; at once if that is 0. Events that were not taken are
/// dropped. Later calls with this set fail.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_set_stop(set: *const minder_set, grace: i64) -> minder_status {
    call(|| {
        let set = handle!(set).here()?.clone();
        set.stop(arg::timeout(grace).unwrap_or(Duration::MAX))?;
        Ok(minder_status::MINDER_OK)
    })
}
