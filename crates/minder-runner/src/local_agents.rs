//! Agents as processes of this machine (`--on local:N`).

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use minder::{
    ChildId, ChildSet, ChildSetOptions, Command, Event, NextEvent, OutputMode, SpawnOptions, Stdio, Stream,
    Termination,
};
use minder_cluster::round::Round;
use minder_os::sync::Mutex;

use crate::config::AgentsConfig;

/// The time that agents have to end beyond that of their jobs.
const END_EXTRA: Duration = Duration::from_secs(5);
/// The time between two looks at signals while agents end.
const SIGNAL_PAUSE: Duration = Duration::from_millis(50);
/// The most bytes of messages of agents that are kept.
const MESSAGES_MAX: usize = 4096;

/// The agents of a run on this machine. They are killed if this process dies.
#[derive(Debug)]
pub(crate) struct LocalAgents {
    state: Mutex<State>,
    /// Set before the agents are asked to end, so that their end is not an error.
    is_ending: AtomicBool,
}

#[derive(Debug)]
struct State {
    set: ChildSet,
    agents: Vec<ChildId>,
    /// What agents have written to their standard error.
    messages: Vec<u8>,
}

impl LocalAgents {
    /// Starts agents for the round of an attempt.
    ///
    /// # Errors
    /// One cannot be started. The others have ended then.
    pub(crate) fn start(config: &AgentsConfig, run: &Path, attempt: u32) -> Result<Self> {
        let mut set = ChildSet::new(ChildSetOptions::default())?;
        let mut agents = Vec::new();
        for place in &config.places {
            let mut command = Command::new(&config.program);
            command.args(["agent", "--attempt", &attempt.to_string(), "--lost-after"]);
            command.arg(config.lost_after.as_secs().max(1).to_string());
            if let Some(host) = &place.host {
                command.args(["--host", &host.login]);
            }
            if let Some(jobs) = &place.jobs {
                command.args(["--jobs", jobs]);
            }
            command.arg(run);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            let options = SpawnOptions::default().output_mode(OutputMode::Stream);
            agents.push(set.spawn(&command, options).context("cannot start an agent")?);
        }
        let state = Mutex::new(State { set, agents, messages: Vec::new() });
        Ok(Self { state, is_ending: AtomicBool::new(false) })
    }

    /// Waits until an agent ends or writes something, at most for this time. Returns whether any works.
    ///
    /// # Errors
    /// The operating system cannot wait for them.
    pub(crate) fn wait(&self, pause: Duration) -> Result<bool> {
        let state = &mut *self.state.lock();
        let deadline = Instant::now() + pause;
        match state.set.next_event_deadline(Some(deadline))? {
            NextEvent::Event(Event::Output { stream: Stream::Stderr, chunk, .. }) => {
                let room = MESSAGES_MAX.saturating_sub(state.messages.len());
                state.messages.extend(chunk.iter().take(room));
            }
            NextEvent::Empty => return Ok(false),
            _ => (),
        }
        Ok(!state.set.is_empty())
    }

    /// Returns the first line that an agent has written.
    pub(crate) fn message(&self) -> Option<String> {
        let state = self.state.lock();
        let line = state.messages.split(|byte| *byte == b'\n').next()?;
        let line = String::from_utf8_lossy(line).into_owned();
        let line = line.strip_prefix("minder: ").unwrap_or(&line).to_owned();
        Some(line).filter(|line| !line.is_empty())
    }

    /// Returns whether the agents were asked to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// Ends the round and its agents, and waits for them. They give their jobs this time to end, unless
    /// `is_urgent` returns `true`, which is asked again and again.
    pub(crate) fn end(&self, round: &Round, grace: Duration, mut is_urgent: impl FnMut() -> bool) {
        self.is_ending.store(true, Ordering::SeqCst);
        let until = Instant::now() + grace + END_EXTRA;
        // Agents that do not see it are asked to end as well.
        let _ = round.cancel();
        let mut state = self.state.lock();
        let agents = std::mem::take(&mut state.agents);
        // One that has ended is not known any more.
        for agent in &agents {
            let _ = state.set.kill(*agent, Termination::graceful(grace + END_EXTRA));
        }
        let mut has_hurried = false;
        while Instant::now() < until && !state.set.is_empty() {
            if !has_hurried && is_urgent() {
                has_hurried = true;
                for agent in &agents {
                    let _ = state.set.kill(*agent, Termination::IMMEDIATE);
                }
            }
            if state.set.next_event_deadline(Some(Instant::now() + SIGNAL_PAUSE)).is_err() {
                return;
            }
        }
    }
}
