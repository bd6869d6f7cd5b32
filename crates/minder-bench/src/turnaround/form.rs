//! The forms in which the computations of a case run.

use std::fmt;

/// What runs the computations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Runner {
    /// One after the other on the caller's thread: [`Executor::serial`](minder::jobs::Executor::serial).
    Serial,
    /// Threads of an [`Executor`](minder::jobs::Executor).
    Threads,
    /// A child of a [`ChildSet`](minder::ChildSet) for each computation.
    Children,
    /// Timers of a [`Poller`](minder::poll::Poller), all on the caller's thread. For waits only.
    Timers,
}

impl Runner {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Serial, Self::Threads, Self::Children, Self::Timers];

    /// Returns the name in rows and flags.
    ///
    /// ```
    /// use minder_bench::Runner;
    /// assert_eq!(Runner::Threads.name(), "threads");
    /// assert!(Runner::ALL.into_iter().all(|runner| Runner::from_name(runner.name()) == Some(runner)));
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Threads => "threads",
            Self::Children => "children",
            Self::Timers => "timers",
        }
    }

    /// Returns the runner with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|runner| runner.name() == name)
    }
}

/// In which order the computations start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// The longest one first: the worst order for turnaround, and that of the publication.
    Longest,
    /// The shortest one first: the best order for turnaround.
    Shortest,
}

impl Order {
    /// Returns the name in rows.
    ///
    /// ```
    /// use minder_bench::Order;
    /// assert_eq!(Order::from_name("shortest"), Some(Order::Shortest));
    /// assert_eq!(Order::Longest.name(), "longest");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Longest => "longest",
            Self::Shortest => "shortest",
        }
    }

    /// Returns the order with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Longest, Self::Shortest].into_iter().find(|order| order.name() == name)
    }
}

/// How the computations of a case run.
///
/// ```
/// use minder_bench::{Form, Order, Runner};
/// let form = Form { runner: Runner::Threads, degree: 8, order: Order::Shortest };
/// assert_eq!(form.to_string(), "8 threads, shortest first");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Form {
    /// What runs them.
    pub runner: Runner,
    /// How many run at once, at most. 1 if they run serially.
    pub degree: usize,
    /// In which order they start.
    pub order: Order,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.runner, self.degree) {
            (Runner::Serial, _) => f.write_str("serial")?,
            (Runner::Timers, _) => f.write_str("timers")?,
            (Runner::Threads, 1) => f.write_str("1 thread")?,
            (Runner::Children, 1) => f.write_str("1 child")?,
            (runner, degree) => write!(f, "{degree} {}", runner.name())?,
        }
        if self.order == Order::Shortest { f.write_str(", shortest first") } else { Ok(()) }
    }
}
