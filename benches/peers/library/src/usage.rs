//! The costs of a piece of work: processor time of this process and of its children, elapsed time,
//! threads, and memory.

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The times at the begin of the work.
pub(crate) struct Stopwatch {
    own: Duration,
    children: Duration,
    wall: Instant,
}

/// The most threads that were seen.
static THREADS: AtomicU64 = AtomicU64::new(1);

impl Stopwatch {
    pub(crate) fn start() -> Result<Self> {
        let children = spent(UsageWho::RUSAGE_CHILDREN)?;
        Ok(Self { own: spent(UsageWho::RUSAGE_SELF)?, children, wall: Instant::now() })
    }

    /// Returns the lines `name,value`: nanoseconds for each of this number of children.
    pub(crate) fn rows(self, children: u32) -> Result<String> {
        let own = spent(UsageWho::RUSAGE_SELF)? - self.own;
        let theirs = spent(UsageWho::RUSAGE_CHILDREN)? - self.children;
        let wall = self.wall.elapsed();
        let [own, theirs, wall] = [own, theirs, wall].map(|time| time.as_nanos() / u128::from(children));
        Ok(format!(
            "children,{children}\nself_ns,{own}\nchildren_ns,{theirs}\nwall_ns,{wall}\n\
             hwm_kib,{}\nthreads,{}\n",
            status("VmHWM:")?,
            THREADS.load(Ordering::Relaxed)
        ))
    }
}

/// Notes how many threads this process has now.
pub(crate) fn note_threads() -> Result<()> {
    THREADS.fetch_max(status("Threads:")?, Ordering::Relaxed);
    Ok(())
}

/// Returns nanoseconds of the monotonic clock.
pub(crate) fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Returns user and system time; of children, only of those that were reaped.
fn spent(who: UsageWho) -> Result<Duration> {
    let used = getrusage(who)?;
    let times = [used.user_time(), used.system_time()];
    Ok(times
        .map(|t| Duration::from_micros((t.tv_sec() * 1_000_000 + t.tv_usec()).unsigned_abs()))
        .iter()
        .sum())
}

fn status(name: &str) -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.with_context(|| format!("/proc/self/status has no {name}"))?.parse().context("a number")
}
