//! One case: computations of given lengths, and the form in which they run.

use std::time::Duration;

use super::computation::{Calibration, Work};
use super::form::{Form, Order};

/// What the computations do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Workload {
    /// Each computes until the CPU clock of its thread has advanced by its length.
    Cpu,
    /// Each is a number of loops that take its length when nothing else runs. The same work in every form,
    /// so the CPU time shows what a form costs.
    Loops,
    /// Each sleeps until its length has passed.
    Io,
    /// Alternates: the computation of length `bias × i` computes if `i` is odd, and sleeps if it is even.
    Mixed,
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Loops, Self::Io, Self::Mixed];

    /// Returns the name in rows and flags.
    ///
    /// ```
    /// use minder_bench::Workload;
    /// assert_eq!(Workload::Io.name(), "io");
    /// assert!(Workload::ALL.into_iter().all(|it| Workload::from_name(it.name()) == Some(it)));
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Loops => "loops",
            Self::Io => "io",
            Self::Mixed => "mixed",
        }
    }

    /// Returns the workload with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name() == name)
    }

    /// Returns whether the computation at `index`, which counts from 0, needs a processor.
    pub(super) fn needs_cpu(self, index: usize) -> bool {
        match self {
            Self::Cpu | Self::Loops => true,
            Self::Io => false,
            Self::Mixed => index.is_multiple_of(2),
        }
    }
}

/// How long the computations of a case are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lengths {
    /// Computation `i` lasts `bias × i`, for `i` from 1 on.
    Ramp,
    /// Each lasts `bias`.
    Equal,
}

impl Lengths {
    /// Returns the name in rows.
    ///
    /// ```
    /// use minder_bench::Lengths;
    /// assert_eq!(Lengths::from_name(Lengths::Ramp.name()), Some(Lengths::Ramp));
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ramp => "ramp",
            Self::Equal => "equal",
        }
    }

    /// Returns the rule with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Ramp, Self::Equal].into_iter().find(|lengths| lengths.name() == name)
    }
}

/// Computations and the form in which they run.
///
/// ```
/// use minder_bench::{Form, Lengths, Order, Runner, TurnaroundCase, Workload};
/// use std::time::Duration;
///
/// let case = TurnaroundCase {
///     workload: Workload::Io,
///     form: Form { runner: Runner::Serial, degree: 1, order: Order::Longest },
///     lengths: Lengths::Ramp,
///     bias_ms: 10,
///     count: 3,
/// };
/// assert_eq!(case.length(2), Duration::from_millis(30));
/// assert_eq!(case.to_string(), "io, serial, 3 of 10 ms × i");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TurnaroundCase {
    /// What they do.
    pub workload: Workload,
    /// How they run.
    pub form: Form,
    /// The rule of their lengths.
    pub lengths: Lengths,
    /// The length of the first one, in milliseconds.
    pub bias_ms: u64,
    /// Their number.
    pub count: usize,
}

impl TurnaroundCase {
    /// Returns the length of the computation at `index`, which counts from 0.
    #[must_use]
    pub fn length(&self, index: usize) -> Duration {
        let times = match self.lengths {
            Lengths::Ramp => index as u64 + 1,
            Lengths::Equal => 1,
        };
        Duration::from_millis(self.bias_ms.saturating_mul(times))
    }

    /// Returns the indexes in the order of starting.
    pub(super) fn start_order(&self) -> Vec<usize> {
        match self.form.order {
            Order::Longest => (0..self.count).rev().collect(),
            Order::Shortest => (0..self.count).collect(),
        }
    }

    /// Returns what the computation at `index` does.
    pub(super) fn work(&self, index: usize, calibration: &Calibration) -> Work {
        let length = self.length(index);
        if !self.workload.needs_cpu(index) {
            Work::Wait(length)
        } else if self.workload == Workload::Loops {
            calibration.loops(length)
        } else {
            calibration.cpu(length)
        }
    }
}

impl std::fmt::Display for TurnaroundCase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rule = if self.lengths == Lengths::Ramp { " × i" } else { "" };
        let Self { form, count, bias_ms, .. } = self;
        write!(f, "{}, {form}, {count} of {bias_ms} ms{rule}", self.workload.name())
    }
}
