//! The contract of a mechanism that observes exits, and the loop that is measured.

use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use minder::Child;

use super::process;
use super::types::{EXIT_TIMEOUT, ExitMeasurement, KillMode, ObservedExit};
use crate::sys::cpu_clock::cpu_time;

/// The longest time for which a deadline is used for several exits.
const DEADLINE_REUSE: Duration = Duration::from_secs(1);

/// A mechanism that observes the exits of children.
pub(crate) trait ExitWatcher: Debug {
    /// Watches a child that was started on this thread, and reaps it after its exit.
    fn add(&mut self, child: Child) -> io::Result<()>;

    /// Waits for the next exit; returns `None` if the deadline passed before. `awaited` is a child
    /// that was killed, for mechanisms that can wait for one given child only.
    fn next(&mut self, awaited: u32, deadline: Instant) -> io::Result<Option<ObservedExit>>;

    /// Kills these children, observes their exits, and measures both together.
    fn measure(&mut self, victims: &[u32], mode: KillMode) -> io::Result<ExitMeasurement> {
        measure(self, victims, mode, &AtomicUsize::new(0))
    }
}

/// Kills the victims and observes their exits. `observed` counts them for other threads.
pub(super) fn measure<W: ExitWatcher + ?Sized>(
    watcher: &mut W,
    victims: &[u32],
    mode: KillMode,
    observed: &AtomicUsize,
) -> io::Result<ExitMeasurement> {
    let mut exits = Vec::with_capacity(victims.len());
    // Mechanisms that keep the deadline in the kernel need a system call for each new one, so a
    // deadline is used for several exits.
    let mut deadline = Instant::now() + EXIT_TIMEOUT + DEADLINE_REUSE;
    let wall_before = Instant::now();
    let cpu_before = cpu_time();
    if mode == KillMode::Burst {
        for &victim in victims {
            process::kill(victim)?;
        }
    }
    while let Some(&awaited) = victims.get(exits.len()) {
        if mode == KillMode::OneByOne {
            process::kill(awaited)?;
        }
        let earliest = Instant::now() + EXIT_TIMEOUT;
        if deadline < earliest {
            deadline = earliest + DEADLINE_REUSE;
        }
        let Some(exit) = watcher.next(awaited, deadline)? else { break };
        exits.push(exit);
        observed.store(exits.len(), Ordering::Relaxed);
        // Another child exited by itself: the next exits would measure something else.
        if mode == KillMode::OneByOne && exit.pid != awaited {
            break;
        }
    }
    let cpu = cpu_time().saturating_sub(cpu_before);
    Ok(ExitMeasurement { exits, cpu, wall: wall_before.elapsed() })
}
