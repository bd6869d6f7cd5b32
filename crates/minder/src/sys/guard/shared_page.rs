//! One page that the three processes of a guarded run share. Each finds there what it needs when
//! another has exited.
//!
//! Unlike a pipe, memory outlives its writer and needs no reader at the time. The outer guardian
//! finds the runner's status here even if it was stopped while the others exited.
#![expect(unsafe_code, reason = "shared memory")]

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::futex;
use rustix::time::Timespec;

/// All fields start at zero, which means "not yet".
#[derive(Debug)]
#[repr(C)]
pub(super) struct SharedPage {
    runner: AtomicI32,
    ready: AtomicU32,
    stopped: AtomicU32,
    /// Not zero if another signal than that of Ctrl-Z stopped the runner alone.
    held: AtomicU32,
    /// [`IS_SET`] and the exit status, once the runner exits without a signal.
    exit_status: AtomicU32,
    /// [`IS_SET`] and the runner's wait status, once it is reaped.
    wait_status: AtomicU32,
    survivor_count: AtomicU32,
    first_survivor: AtomicI32,
    /// Number of relayed signals that the runner has read.
    signals_read: AtomicU32,
    /// Number of signals that had been relayed when the run stopped last. The stop requests among
    /// them are done.
    stops_done: AtomicU32,
    /// Not zero while the outer guardian is stopping itself, or is stopped.
    outer_stops: AtomicU32,
    /// Not zero if the inner guardian is to kill the runner.
    kill_runner: AtomicU32,
    /// When the inner guardian kills the runner, if that is not moved on: see [`now_in_tenths`]. 0 if never.
    deadline: AtomicU32,
}

/// Distinguishes a status of 0 from none; wait statuses use 16 bits.
const IS_SET: u32 = 1 << 31;

impl SharedPage {
    /// Maps a page that this process shares with every process forked from now on. It is never
    /// unmapped: these processes use it until they exit.
    pub(super) fn new() -> io::Result<&'static SharedPage> {
        let read_write = libc::PROT_READ | libc::PROT_WRITE;
        let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping, placed by the kernel, touches no memory that exists.
        let page = unsafe { libc::mmap(ptr::null_mut(), size_of::<SharedPage>(), read_write, shared, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: page-aligned, zeroed, never unmapped, and all fields are atomics, for which all-zero is
        // valid.
        Ok(unsafe { &*page.cast::<SharedPage>() })
    }

    pub(super) fn set_runner(&self, pid: Pid) {
        self.runner.store(pid.as_raw_nonzero().get(), SeqCst);
    }

    pub(super) fn runner(&self) -> Option<Pid> {
        Pid::from_raw(self.runner.load(SeqCst))
    }

    pub(super) fn set_ready(&self) -> io::Result<()> {
        self.ready.store(1, SeqCst);
        futex::wake(&self.ready, futex::Flags::empty(), 1)?;
        Ok(())
    }

    /// Waits for [`SharedPage::set_ready`]. Returns whether it was called in time.
    pub(super) fn wait_ready(&self, timeout: Duration) -> io::Result<bool> {
        let deadline = std::time::Instant::now() + timeout;
        while self.ready.load(SeqCst) == 0 {
            let rest = deadline.saturating_duration_since(std::time::Instant::now());
            if rest.is_zero() {
                return Ok(false);
            }
            let rest = Timespec { tv_sec: rest.as_secs().cast_signed(), tv_nsec: rest.subsec_nanos().into() };
            match futex::wait(&self.ready, futex::Flags::empty(), 0, Some(&rest)) {
                Ok(()) => {}
                Err(e) if [rustix::io::Errno::INTR, rustix::io::Errno::AGAIN].contains(&e) => {}
                Err(rustix::io::Errno::TIMEDOUT) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(true)
    }

    pub(super) fn set_stopped(&self, stopped: bool) {
        self.stopped.store(stopped.into(), SeqCst);
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(SeqCst) != 0
    }

    pub(super) fn set_held(&self, held: bool) {
        self.held.store(held.into(), SeqCst);
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.load(SeqCst) != 0
    }

    pub(super) fn set_exit_status(&self, status: u8) {
        self.exit_status.store(IS_SET | u32::from(status), SeqCst);
    }

    /// Returns the exit status of a run that exits by itself. The guardians then kill nothing.
    pub(super) fn exit_status(&self) -> Option<u8> {
        let value = self.exit_status.load(SeqCst);
        (value & IS_SET != 0).then_some(value.to_le_bytes()[0])
    }

    pub(super) fn set_wait_status(&self, raw: i32) {
        self.wait_status.store(IS_SET | raw.cast_unsigned(), SeqCst);
    }

    pub(super) fn wait_status(&self) -> Option<i32> {
        let value = self.wait_status.load(SeqCst);
        (value & IS_SET != 0).then_some((value & !IS_SET).cast_signed())
    }

    /// Counts a relayed signal that the runner has read. Returns the number before.
    pub(super) fn count_read_signal(&self) -> u32 {
        self.signals_read.fetch_add(1, SeqCst)
    }

    pub(super) fn set_stops_done(&self, relayed: u32) {
        self.stops_done.store(relayed, SeqCst);
    }

    /// Returns whether the stop that was relayed as the signal with this index is done.
    pub(super) fn is_stop_done(&self, place: u32) -> bool {
        // Both counters may wrap around.
        self.stops_done.load(SeqCst).wrapping_sub(place).cast_signed() > 0
    }

    pub(super) fn signals_read(&self) -> u32 {
        self.signals_read.load(SeqCst)
    }

    pub(super) fn set_outer_stops(&self, stops: bool) {
        self.outer_stops.store(stops.into(), SeqCst);
    }

    pub(super) fn outer_stops(&self) -> bool {
        self.outer_stops.load(SeqCst) != 0
    }

    pub(super) fn request_kill(&self) {
        self.kill_runner.store(1, SeqCst);
    }

    pub(super) fn is_kill_requested(&self) -> bool {
        self.kill_runner.load(SeqCst) != 0
    }

    /// Sets the deadline of the runner: so long from now on, or none.
    pub(super) fn set_deadline(&self, left: Option<Duration>) {
        let deadline = left.map_or(0, |left| {
            let tenths = u32::try_from(left.as_millis().div_ceil(100)).unwrap_or(u32::MAX);
            now_in_tenths().saturating_add(tenths).max(1)
        });
        self.deadline.store(deadline, SeqCst);
    }

    /// Returns whether the deadline of the runner has passed.
    pub(super) fn is_late(&self) -> bool {
        let deadline = self.deadline.load(SeqCst);
        deadline != 0 && now_in_tenths() > deadline
    }

    pub(super) fn set_survivors(&self, count: u32, first: i32) {
        self.first_survivor.store(first, SeqCst);
        self.survivor_count.store(count, SeqCst);
    }

    /// Returns the number of processes that could not be killed, and the first of them.
    pub(super) fn survivors(&self) -> (u32, i32) {
        (self.survivor_count.load(SeqCst), self.first_survivor.load(SeqCst))
    }
}

/// Returns the time since the machine was started, in tenths of a second. It grows while the machine is
/// suspended (`CLOCK_BOOTTIME` of clock_gettime(2)), and lasts for 13 years.
fn now_in_tenths() -> u32 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u32::try_from(now.tv_sec * 10 + now.tv_nsec / 100_000_000).unwrap_or(u32::MAX)
}
