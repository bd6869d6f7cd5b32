//! One child of a set.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::config::SpawnOptions;
use super::input::ChildInput;
use super::output::ChildOutput;
use super::read_turn::ReadTurn;
use super::restart_policy::RestartState;
use super::stream::StreamState;
use super::suspension::Suspension;
use super::timers::Armed;
use crate::chunk::MemoryQuota;
use crate::exit_status::{ExitInfo, Outcome};
use crate::sys::process_tree::{ProcessTree, TreeSignal};
use crate::sys::reactor::Reactor;
use crate::sys::reap::Process;
use crate::sys::spawn::Spawned;
use crate::termination::TerminationState;

/// The longest time for which a start waits for a child that it had to kill.
const ABANDON_TIMEOUT: Duration = Duration::from_millis(20);

/// The life of a child in its set.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    Running,
    /// The process exited and is not reaped. Outputs may be open, and a kill may be under way.
    Exited(ExitInfo),
    /// `QueuedEvent::Drain` is queued. Back to `Exited` if a kill begins before it is taken.
    Draining(ExitInfo),
    /// The run ended with this outcome, and the child is started again later. It has no process.
    BetweenRuns(Outcome),
}

/// One child.
#[derive(Debug)]
pub(super) struct ChildState {
    pub(super) process: Process,
    pub(super) tree: ProcessTree,
    pub(super) input: ChildInput,
    pub(super) output: ChildOutput,
    pub(super) options: SpawnOptions,
    pub(super) phase: Phase,
    /// The start of its process, if that decides whether its thread times are read.
    pub(super) started_at: Option<Instant>,
    /// The kill of its tree that is under way. Boxed, because few children are killed.
    pub(super) termination: Option<Box<TerminationState>>,
    pub(super) suspension: Suspension,
    /// `true` if a kill was requested while its process ran.
    pub(super) killed: bool,
    /// `true` if its deadline came while its process ran, or while its outputs were open without a
    /// limit.
    pub(super) timed_out: bool,
    pub(super) armed: Armed,
    /// `true` if its outputs are in the list of deferred reads.
    pub(super) read_deferred: bool,
    pub(super) turn: ReadTurn,
    pub(super) leaked: bool,
    /// How often its silent outputs were not judged because a start was in progress.
    pub(super) leak_checks: u8,
    /// The state that is needed to start it again. Boxed, because few children are restarted.
    pub(super) restart: Option<Box<RestartState>>,
}

impl ChildState {
    pub(super) fn new(spawned: Spawned, quota: Arc<MemoryQuota>, options: SpawnOptions) -> Self {
        let Spawned { process, tree, stdin, stdout, stderr } = spawned;
        Self {
            process,
            tree,
            input: ChildInput::new(stdin),
            output: ChildOutput::new([stdout, stderr], quota, &options),
            options,
            phase: Phase::Running,
            started_at: None,
            termination: None,
            suspension: Suspension::default(),
            killed: false,
            timed_out: false,
            armed: Armed::default(),
            read_deferred: false,
            turn: ReadTurn::NEW,
            leaked: false,
            leak_checks: 0,
            restart: None,
        }
    }

    /// Returns how the process exited, once the set has observed that.
    pub(super) fn exit(&self) -> Option<ExitInfo> {
        match self.phase {
            Phase::Running => None,
            Phase::Exited(exit) | Phase::Draining(exit) => Some(exit),
            Phase::BetweenRuns(outcome) => Some(outcome.exit),
        }
    }

    pub(super) fn has_exited(&self) -> bool {
        !matches!(self.phase, Phase::Running)
    }

    /// Returns the outcome of the last run, if the child waits to be started again.
    pub(super) fn between_runs(&self) -> Option<Outcome> {
        match self.phase {
            Phase::BetweenRuns(outcome) => Some(outcome),
            _ => None,
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining(_))
    }

    /// Returns whether it may always be read: its output is handed over as it arrives, it is ending, or all
    /// of its output is in memory.
    pub(super) fn needs_no_turn(&self) -> bool {
        self.output.is_streaming()
            || self.has_exited()
            || self.termination.is_some()
            || !self.output.streams.iter().any(StreamState::is_spilled)
    }

    /// Returns whether the child makes no event before chunks are dropped that the caller keeps. If it
    /// is being killed, its exit comes first.
    pub(super) fn is_starved(&self, read_size: usize) -> bool {
        (self.has_exited() || self.termination.is_none()) && self.output.is_starved(read_size)
    }

    /// Returns whether its process is alive as far as the kernel knows now. The set may not have observed an
    /// exit yet.
    pub(super) fn is_alive(&mut self) -> bool {
        !self.has_exited() && matches!(self.process.peek(), Ok(None))
    }

    /// Kills a process that could not be watched. If it does not exit within a bounded time, it is
    /// reaped later: it may be in an uninterruptible system call, and other children wait for this
    /// thread.
    pub(super) fn abandon(mut self, reactor: &mut Reactor) {
        let _ = self.tree.signal_all(&self.process, TreeSignal::Kill);
        self.close(reactor);
        // Its drop reaps it, or leaves that to later calls.
        let _ = self.process.wait(Some(Instant::now() + ABANDON_TIMEOUT));
    }

    /// Closes every endpoint.
    pub(super) fn close(&mut self, reactor: &mut Reactor) {
        // Closing fails only for a descriptor that is not ours. Nothing can be done about that.
        let _ = self.process.unwatch(reactor);
        let _ = self.input.close(reactor);
        for stream in &mut self.output.streams {
            stream.close(reactor);
            stream.hung_up = None;
        }
    }
}

impl Drop for ChildState {
    fn drop(&mut self) {
        self.process.leave();
    }
}
