//! The policy that decides whether and when a child is started again after it exited.

use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, Seek, SeekFrom};
use std::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::command::{Command, Stdio, StdioKind};
use crate::error::Error;
use crate::exit_status::Outcome;
use crate::random::Random;
use crate::termination::Termination;

/// After which exits a child is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Restart {
    /// After none.
    #[default]
    Never,
    /// After a failure: a code other than 0, a signal, an unknown status.
    OnFailure,
    /// After every exit.
    Always,
}

/// The policy that decides whether and when a child of a [`ChildSet`](crate::ChildSet) is started
/// again after it exited, for supervisors of long-lived children.
///
/// The child keeps its id. Its next run begins when all output of the last run was handed over, and
/// after a delay. The delay doubles with each restart in a row; a run of at least
/// [`stable_after`](Self::stable_after) ends the row. A start that fails counts as a short run that
/// failed. [`ChildSet::kill`](crate::ChildSet::kill) and the child's deadline end the child, whatever its
/// policy is; [`ChildSet::restart`](crate::ChildSet::restart) starts it again on purpose.
///
/// What a run leaves in other processes is killed at the exit of the child: see
/// [`kill_leftovers`](Self::kill_leftovers).
///
/// The streams of each run:
///
/// - A file as standard input ([`Stdio::from`](crate::Stdio), [`Stdio::shared`](crate::Stdio::shared)): each
///   run reads from the position that the file had when the child was spawned. Other processes that share
///   the open file are affected.
/// - A file as an output: each run writes where the one before it stopped, or at the end of a file that was
///   opened for appending.
/// - A pipe, socket or terminal that was passed as a [`Stdio`](crate::Stdio), and every
///   [inherited](crate::Stdio::inherit) stream: what the last run has read is gone.
/// - [`Stdio::piped`](crate::Stdio::piped) and [`Group::Terminal`](crate::Group::Terminal): each run has a
///   new pipe or terminal. What was written to the last run and not read is gone.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildSet, ChildSetOptions, Command, Event, NextEvent, Restart, RestartPolicy, SpawnOptions};
/// use std::time::Duration;
///
/// let policy =
///     RestartPolicy::new(Restart::OnFailure).backoff(Duration::from_millis(1)).max_restarts(Some(2));
/// let mut set = ChildSet::new(ChildSetOptions::new())?;
/// set.spawn(&Command::new("false"), SpawnOptions::new().restart(policy))?;
/// let mut restarts = 0;
/// while let NextEvent::Event(event) = set.next_event(None)? {
///     restarts += usize::from(matches!(event, Event::Restarted { .. }));
/// }
/// assert_eq!(restarts, 2);
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct RestartPolicy {
    when: Restart,
    backoff: Backoff,
    stable_after: Duration,
    max_restarts: Option<u32>,
    kill_leftovers: Option<Duration>,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self::new(Restart::Never)
    }
}

impl From<Restart> for RestartPolicy {
    fn from(when: Restart) -> Self {
        Self::new(when)
    }
}

impl RestartPolicy {
    /// Returns the policy for these exits, with default delays and without a limit.
    pub fn new(when: Restart) -> Self {
        let backoff =
            Backoff { first: Duration::from_millis(100), max: Duration::from_secs(60), jitter: 0.1 };
        Self {
            when,
            backoff,
            stable_after: Duration::from_secs(10),
            max_restarts: None,
            kill_leftovers: Some(Duration::ZERO),
        }
    }

    /// Sets the delay before the first restart in a row. It doubles with each further one. Default:
    /// 100 ms.
    pub fn backoff(mut self, delay: Duration) -> Self {
        self.backoff.first = delay;
        self
    }

    /// Sets the longest delay, before [`jitter`](Self::jitter) is applied. Default: one minute.
    ///
    /// ```
    /// use minder::{Restart, RestartPolicy};
    /// use std::time::Duration;
    ///
    /// // 1 s, 2 s, 4 s, … up to 30 s, each up to a fifth shorter or longer. After a minute of work: 1 s.
    /// let policy = RestartPolicy::new(Restart::Always)
    ///     .backoff(Duration::from_secs(1))
    ///     .max_backoff(Duration::from_secs(30))
    ///     .jitter(0.2)
    ///     .stable_after(Duration::from_secs(60));
    /// # let _ = policy;
    /// ```
    pub fn max_backoff(mut self, delay: Duration) -> Self {
        self.backoff.max = delay;
        self
    }

    /// Sets the jitter, from 0 to 1: each delay is multiplied by a random factor between 1 - `jitter`
    /// and 1 + `jitter`, so that children that failed together are not started together. Default: 0.1.
    pub fn jitter(mut self, jitter: f64) -> Self {
        self.backoff.jitter = jitter;
        self
    }

    /// Sets how long a run must last to count as stable. The delay after it is that of a first
    /// restart. Default: 10 s.
    pub fn stable_after(mut self, time: Duration) -> Self {
        self.stable_after = time;
        self
    }

    /// Sets the most restarts in a row, without a stable run in between. After the last of them the
    /// child is [`Done`](crate::Event::Done). Default: `None`, no limit.
    pub fn max_restarts(mut self, count: Option<u32>) -> Self {
        self.max_restarts = count;
        self
    }

    /// Sets that what each run leaves of its process tree (see [`Termination`](crate::Termination)) is killed
    /// when the child has exited: at once if `grace` is zero, else by `SIGTERM`, and by `SIGKILL` after that
    /// time. The next run begins when these processes are gone, or about 5 s after a `SIGKILL` that they
    /// escape. `None` leaves them running: see [`Outcome::left_running`](crate::Outcome::left_running).
    /// Default: zero, at once.
    ///
    /// The default of systemd is the same, `KillMode=control-group`, with a grace period of 90 s. A kill that
    /// is under way when the child exits continues in place of this one.
    ///
    /// - Unix: a process that has left the group of the child, as a daemon does, is not found after the
    ///   exit of its parent, unless a suspension or a kill has found it before.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, Restart, RestartPolicy, SpawnOptions};
    /// use std::time::Duration;
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let policy = RestartPolicy::new(Restart::OnFailure)
    ///     .max_restarts(Some(0))
    ///     .kill_leftovers(Some(Duration::from_secs(5)));
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "sleep 60 & exit 1"]); // a worker outlives its server
    /// set.spawn(&command, SpawnOptions::new().restart(policy))?;
    /// set.wait_all(None, |event| {
    ///     if let Event::Done { outcome, .. } = event {
    ///         assert!(!outcome.left_running && !outcome.killed);
    ///     }
    /// })?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn kill_leftovers(mut self, grace: Option<Duration>) -> Self {
        self.kill_leftovers = grace;
        self
    }

    pub(super) fn is_never(&self) -> bool {
        self.when == Restart::Never
    }
}

/// The state that a set needs to start a child again.
#[derive(Debug)]
pub(super) struct RestartState {
    pub(super) command: Command,
    /// The position of the file that is the standard input, before the first start. `None` without a file
    /// or for one that has no position.
    input_start: Option<u64>,
    policy: RestartPolicy,
    random: Random,
    /// The start of the present run.
    started_at: Instant,
    /// The time at which the child of the present run exited, if it has.
    exited_at: Option<Instant>,
    /// The restarts since the last stable run.
    in_row: u32,
    /// All restarts.
    pub(super) restarts: u64,
    /// `true` if the caller has asked for the restart.
    pub(super) requested: bool,
    /// The error of the last start, until its event is taken.
    pub(super) error: Option<Error>,
}

impl RestartState {
    /// Returns the state of a child that is about to be started for the first time.
    pub(super) fn new(command: Command, policy: RestartPolicy) -> Self {
        let input_start = input_file(&command).and_then(|mut file| file.stream_position().ok());
        // A hasher of std is the one source of random numbers without a dependency.
        let seed = std::hash::RandomState::new().hash_one(0);
        Self {
            command,
            input_start,
            policy,
            random: Random::new(seed),
            started_at: Instant::now(),
            exited_at: None,
            in_row: 0,
            restarts: 0,
            requested: false,
            error: None,
        }
    }

    /// Sets the file that is the standard input back to where the first run began to read.
    pub(super) fn rewind_input(&self) -> io::Result<()> {
        match (input_file(&self.command), self.input_start) {
            (Some(mut file), Some(start)) => file.seek(SeekFrom::Start(start)).map(drop),
            _ => Ok(()),
        }
    }

    /// Notes that a run begins.
    pub(super) fn begin_run(&mut self) {
        self.started_at = Instant::now();
    }

    /// Notes that the child has exited: the run does not last until what it left has ended.
    pub(super) fn note_exit(&mut self) {
        self.exited_at = Some(Instant::now());
    }

    /// Returns how to kill what a run leaves.
    pub(super) fn kill_leftovers(&self) -> Option<Termination> {
        self.policy.kill_leftovers.map(Termination::after_grace)
    }

    /// Begins the row of restarts again.
    pub(super) fn begin_row(&mut self) {
        self.in_row = 0;
    }

    /// Returns the delay until the next start after a run with this outcome, or `None` if the child is
    /// done. `ended_at` is when the end of the run was observed.
    pub(super) fn after_run(&mut self, outcome: &Outcome) -> Option<Duration> {
        let ended_at = self.exited_at.take().unwrap_or_else(Instant::now);
        if std::mem::take(&mut self.requested) {
            self.in_row = 0;
            self.restarts += 1;
            return Some(Duration::ZERO);
        }
        let is_due = match self.policy.when {
            Restart::Never => false,
            Restart::OnFailure => !outcome.exit.status.success(),
            Restart::Always => true,
        };
        if !is_due {
            return None;
        }
        if ended_at.saturating_duration_since(self.started_at) >= self.policy.stable_after {
            self.in_row = 0;
        }
        let delay = self.next_attempt()?;
        self.restarts += 1;
        Some(delay)
    }

    /// Returns the delay until the next attempt to start, or `None` after the last.
    pub(super) fn next_attempt(&mut self) -> Option<Duration> {
        if self.policy.max_restarts.is_some_and(|max| self.in_row >= max) {
            return None;
        }
        self.in_row = self.in_row.saturating_add(1);
        Some(self.policy.backoff.delay(self.in_row, &mut self.random))
    }
}

/// Returns the file that is the standard input.
fn input_file(command: &Command) -> Option<&File> {
    match &command.stdin {
        Some(Stdio(StdioKind::File(file))) => Some(file),
        _ => None,
    }
}
