//! Hearing the ends of many children: what a mechanism supplies, and the baselines as they are
//! known.
//!
//! A mechanism is told of each child that was started, and says which ended; what is measured, and
//! by which loop, is the same for all of them ([`strike`]).

#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod floor;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sigchld;
#[cfg(unix)]
mod threads;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
mod children;
#[cfg(windows)]
mod known;
#[cfg(windows)]
mod scan;
#[cfg(windows)]
mod thread_each;
mod news;

use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;
use crate::sys::lab::cpu_time;
use crate::sys::spawn::Spawned;

pub(crate) use self::system::{BASELINES, IDLE, SIZES, end_all, open, settle, was_killed};

/// How long an end may take to be heard, at least; then it counts as lost.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How often that time is counted anew, at most.
const RENEWED: Duration = Duration::from_secs(1);

/// An end that was noticed and taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) pid: u32,
    /// Whether it was killed: by `SIGKILL`, or with the exit code that we give.
    pub(crate) killed: bool,
}

/// In which way children are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// One, and the next when its end was heard.
    OneByOne,
    /// All at once.
    Burst,
}

/// What was heard, and what that cost.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Fewer than were killed if one was lost, or if another child ended by itself.
    pub(crate) ends: Vec<End>,
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

/// A mechanism that hears the ends of children.
pub(crate) trait Hear: Debug {
    /// Takes a child that was started on this thread.
    fn add(&mut self, child: Spawned) -> io::Result<()>;

    /// Waits for the next end and takes it; `None` when the deadline came first. `awaited` is one
    /// that was killed, for a mechanism that can wait for nothing but what it knows.
    fn next(&mut self, awaited: u32, deadline: Instant) -> io::Result<Option<End>>;

    /// Kills these children, hears their ends, and measures both together.
    fn strike(&mut self, victims: &[u32], how: How) -> io::Result<Batch> {
        strike(self, victims, how, &AtomicUsize::new(0))
    }
}

/// Kills the victims and hears their ends, which `heard` counts for those that look on.
fn strike<H: Hear + ?Sized>(
    hear: &mut H,
    victims: &[u32],
    how: How,
    heard: &AtomicUsize,
) -> io::Result<Batch> {
    let mut ends = Vec::with_capacity(victims.len());
    // A new deadline for each end would be a system call more for those that keep it in the kernel.
    let mut deadline = Instant::now() + PATIENCE + RENEWED;
    let (wall_before, cpu_before) = (Instant::now(), cpu_time());
    if how == How::Burst {
        victims.iter().try_for_each(|&victim| system::kill(victim))?;
    }
    while let Some(&awaited) = victims.get(ends.len()) {
        if how == How::OneByOne {
            system::kill(awaited)?;
        }
        let soonest = Instant::now() + PATIENCE;
        if deadline < soonest {
            deadline = soonest + RENEWED;
        }
        let Some(end) = hear.next(awaited, deadline)? else { break };
        ends.push(end);
        heard.store(ends.len(), Ordering::Relaxed);
        // Another one ended by itself: what follows would measure something else.
        if how == How::OneByOne && end.pid != awaited {
            break;
        }
    }
    let cpu = cpu_time().saturating_sub(cpu_before);
    Ok(Batch { ends, cpu, wall: wall_before.elapsed() })
}
