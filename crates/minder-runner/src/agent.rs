//! The agent of a run that several machines work on: shows that it works, and stops when it is asked to.
//!
//! Its worker threads run jobs and record them as in every run. Its jobs come from ranges that it claims
//! (`claimed_jobs.rs`), its journal is in its own directory, and its output is saved and never shown.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use minder::guard::Watchdog;
use minder_cluster::beat::{BeatWriter, INTERVAL};
use minder_cluster::round::Round;
use minder_os::sync::{Condvar, Mutex};
use minder_record::agents::AgentKey;
use minder_record::writer::JournalWriter;

use crate::config::{AgentConfig, RunConfig};
use crate::patience::retry_unless_synced;
use crate::served::Served;
use crate::text::os_error_text;

/// The time in which an agent that others count as lost soon has to kill its jobs.
pub(crate) const END_MAX: Duration = Duration::from_secs(3);
/// The time between two looks whether the round is cancelled, for up to [`QUICK`] agents. More take longer.
const CANCEL_TIME: Duration = Duration::from_secs(1);
const QUICK: u32 = 20;

/// What the threads of an agent share.
#[derive(Debug)]
pub(crate) struct Agent {
    /// The directory of the run.
    pub(crate) run: PathBuf,
    pub(crate) key: AgentKey,
    /// The attempt that submitted its round.
    pub(crate) attempt: u32,
    pub(crate) journal: Arc<JournalWriter>,
    pub(crate) lost_after: Duration,
    /// `true` if each step waits for the disk.
    syncs: bool,
    /// Where its jobs come from, and its journal goes to, if it has no part in the directory of the run.
    pub(crate) served: Option<Arc<Served>>,
    /// The files that such an agent removes at the end.
    pub(crate) removed: Vec<PathBuf>,
    state: Mutex<State>,
    /// Notified when the agent ends, and when others should read its beat soon.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    beat: BeatWriter,
    /// The jobs that it has taken, and those of them that it has recorded.
    claimed: u64,
    recorded: u64,
    /// How many agents share the directory of the run, as far as this one knows.
    agents: u32,
    is_urgent: bool,
    has_ended: bool,
}

impl Agent {
    /// Becomes an agent of a run, if the configuration says so.
    ///
    /// # Errors
    /// The directory of the run cannot be written, or is not that of a run of this user.
    pub(crate) fn begin(config: &RunConfig) -> Result<Option<Arc<Self>>> {
        let Some(agent) = &config.record.agent else { return Ok(None) };
        let mut own = Self::start(agent, minder_os::machine::name(), config.record.sync)?;
        if agent.login.is_some() {
            own.served = Some(Served::start(Arc::clone(&own.journal))?);
        }
        Ok(Some(Arc::new(own)))
    }

    /// Becomes an agent of a run. `node` is the name of the machine that runs the jobs.
    ///
    /// # Errors
    /// The directory of the run cannot be written, or is not that of a run of this user.
    pub(crate) fn start(config: &AgentConfig, node: String, sync: bool) -> Result<Self> {
        let AgentConfig { run, attempt, lost_after, .. } = config;
        let key = AgentKey::random();
        let journal = JournalWriter::of_agent(run, key, *attempt, node, sync)?;
        let beat = BeatWriter::create(journal.dir())?;
        let state = State { beat, claimed: 0, recorded: 0, agents: 1, is_urgent: false, has_ended: false };
        Ok(Self {
            run: run.clone(),
            key,
            attempt: *attempt,
            journal: Arc::new(journal),
            lost_after: *lost_after,
            syncs: sync,
            served: None,
            removed: config.removed.clone(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// Appends lines to the journal. An error may pass.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(crate) fn append(&self, lines: &[u8]) -> io::Result<()> {
        retry_unless_synced(self.syncs, || self.journal.append(lines))
    }

    /// Takes how many agents share the directory of the run.
    pub(crate) fn note_agents(&self, agents: usize) {
        self.state.lock().agents = u32::try_from(agents).unwrap_or(u32::MAX);
    }

    /// Returns how many agents share the directory of the run, as far as this one knows.
    pub(crate) fn agents(&self) -> u32 {
        self.state.lock().agents
    }

    /// Counts jobs that this agent is to run. Others learn of it soon: they wait for it.
    pub(crate) fn note_claimed(&self, jobs: u64) {
        let mut state = self.state.lock();
        state.claimed += jobs;
        state.is_urgent = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Counts jobs that have a result. When none is left, others learn of it soon, and need not wait.
    pub(crate) fn note_recorded(&self, jobs: u64) {
        if let Some(served) = &self.served {
            served.notify();
        }
        let mut state = self.state.lock();
        state.recorded += jobs;
        if state.open() == 0 {
            state.is_urgent = true;
            self.changed.notify_all();
        }
    }

    /// Returns how many jobs have a result.
    pub(crate) fn recorded(&self) -> u64 {
        self.state.lock().recorded
    }

    /// Ends the beats.
    pub(crate) fn end(&self) {
        if let Some(served) = &self.served {
            served.end();
        }
        self.state.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits, at most for this time. Returns `false` if the agent ends.
    pub(crate) fn pause(&self, pause: Duration) -> bool {
        let state = self.state.lock();
        !self.changed.wait_timeout_while(state, pause, |state| !state.has_ended).has_ended
    }

    /// Writes beats until the agent ends. Calls `cancel` and returns if the round is cancelled, and `fail`
    /// with one line if the agent cannot show that it works. Then the watchdog kills the jobs, too, if this
    /// process does not.
    ///
    /// An agent looks each second whether the round is cancelled: that is one lookup of a name. Of many
    /// agents, each looks less often, and at least with each beat.
    pub(crate) fn beat(
        &self,
        round: &Round,
        watchdog: Option<Watchdog>,
        cancel: impl FnOnce(),
        fail: impl FnOnce(String),
    ) {
        // Of the usual 60 s, 5 s and 30 s.
        let interval = (self.lost_after / 12).min(INTERVAL);
        let silence_max = self.lost_after / 2;
        let mut due = Instant::now() + interval;
        loop {
            let state = self.state.lock();
            let waits = |state: &mut State| !state.has_ended && !state.is_urgent;
            let pause = due.saturating_duration_since(Instant::now()).min(cancel_time(state.agents));
            let mut state = self.changed.wait_timeout_while(state, pause, waits);
            if state.has_ended {
                if let Some(watchdog) = watchdog {
                    watchdog.set_deadline(None);
                }
                return;
            }
            if !state.is_urgent && Instant::now() < due {
                drop(state);
                if round.is_cancelled().unwrap_or(false) {
                    return cancel();
                }
                continue;
            }
            state.is_urgent = false;
            due = Instant::now() + interval;
            let open = state.open();
            let bytes = self.journal.bytes();
            // Also of a process that was stopped for long, and has continued.
            let is_late = state.beat.silence() >= silence_max;
            let written =
                if is_late { Err(io::ErrorKind::TimedOut.into()) } else { state.beat.beat(bytes, open) };
            if let Err(error) = written
                && state.beat.silence() >= silence_max
            {
                drop(state);
                let error = os_error_text(&error);
                set_deadline(watchdog, END_MAX);
                return fail(format!("cannot show that it works: {error}; other agents take the jobs over"));
            }
            set_deadline(watchdog, silence_max.saturating_sub(state.beat.silence()) + END_MAX);
            drop(state);
            if round.is_cancelled().unwrap_or(false) {
                return cancel();
            }
        }
    }
}

/// Returns the time between two looks of an agent whether the round is cancelled.
fn cancel_time(agents: u32) -> Duration {
    CANCEL_TIME * agents.div_ceil(QUICK).max(1)
}

/// Has the jobs killed after this time, unless it is set again.
pub(crate) fn set_deadline(watchdog: Option<Watchdog>, left: Duration) {
    if let Some(watchdog) = watchdog {
        watchdog.set_deadline(Some(left));
    }
}

impl State {
    fn open(&self) -> u64 {
        self.claimed.saturating_sub(self.recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancellation_is_looked_for_at_most_20_times_a_second_by_all_agents() {
        assert_eq!([1, 20, 21, 100, 1000].map(|agents| cancel_time(agents).as_secs()), [1, 1, 2, 5, 50]);
    }
}
