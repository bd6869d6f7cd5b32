//! Termination: how to kill a child with everything that it started.
//!
//! A kill reaches the process group of the child (on Windows its job object), and the descendants that
//! left it and can be found. Pass NULL to kill at once, MINDER_GRACEFUL(5 * MINDER_SECOND) to ask by
//! SIGTERM and to kill what is left after five seconds, or a structure with a sequence of signals. On
//! Windows there is no signal to ask with, and the child is killed at once.
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::time::Duration;

use minder::{Signal, Termination};

use crate::arg::{self, Growing};
use crate::status::Failure;

/// The most signals before the kill.
pub const MINDER_SIGNALS_MAX: u32 = 8;

/// A signal, and the pause after it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_signal_step {
    /// The number of the signal, such as SIGINT.
    pub signal: i32,
    /// Zero.
    pub reserved: u32,
    /// The longest wait for the tree to exit after the signal, in nanoseconds.
    pub pause: i64,
}

/// The way in which a child is killed: signals that ask it to exit, and a kill after the last
/// pause.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_termination {
    /// The size of this structure.
    pub size: u32,
    /// The number of steps, at most MINDER_SIGNALS_MAX. If there are none, `grace` is used.
    pub step_count: u32,
    /// The signals in order.
    pub steps: *const minder_signal_step,
    /// The wait after SIGTERM. Zero kills at once.
    pub grace: i64,
}

// SAFETY: it begins with its size, and zero is a value of every member.
unsafe impl Growing for minder_termination {}

/// Returns the termination of the caller; NULL kills at once.
///
/// # Safety
/// `how` is NULL or a structure with its size, whose steps are readable.
pub(crate) unsafe fn termination_of(how: *const minder_termination) -> Result<Termination, Failure> {
    // SAFETY: the contract of this function.
    let how = unsafe { arg::read_structure(how, "how") }?;
    if how.step_count == 0 {
        let grace = arg::time_option(how.grace);
        return Ok(grace.map_or(Termination::IMMEDIATE, Termination::graceful));
    }
    if how.steps.is_null() {
        return Err(arg::null("steps"));
    }
    let count = how.step_count.min(MINDER_SIGNALS_MAX + 1) as usize;
    // SAFETY: the contract of this function.
    let steps = unsafe { std::slice::from_raw_parts(how.steps, count) };
    for step in steps {
        arg::check_reserved(step.reserved, "steps")?;
    }
    let pause = |step: &minder_signal_step| arg::timeout(step.pause).unwrap_or(Duration::ZERO);
    let signals = steps.iter().map(|step| (Signal::from_raw(step.signal), pause(step)));
    let signals: Vec<(Signal, Duration)> = signals.collect();
    Ok(Termination::signals(&signals)?)
}

/// The termination of the caller, by the name of the argument.
macro_rules! termination {
    ($name:expr) => {
        // SAFETY: the caller of a function of the header passes NULL or a structure with its size.
        unsafe { $crate::termination::termination_of($name) }?
    };
}
pub(crate) use termination;
