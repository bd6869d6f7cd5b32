//! One child of a set.

use std::sync::Arc;
use std::time::Instant;

use super::config::{OutputMode, SpawnOptions};
use super::read_turn::ReadTurn;
use super::restart_policy::RestartState;
use super::stream::StreamState;
use super::suspension::Suspension;
use super::timers::Armed;
use crate::chunk::MemoryQuota;
use crate::event::Stream;
use crate::exit_status::{ExitInfo, Outcome};
use crate::sys::pipe::Writer;
use crate::sys::process_tree::ProcessTree;
use crate::sys::reactor::Reactor;
use crate::sys::reap::Process;
use crate::sys::spawn::Spawned;
use crate::termination::TerminationState;

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
    pub(super) stdin: Option<Writer>,
    /// Indexed by `Stream`.
    pub(super) streams: [StreamState; 2],
    pub(super) quota: Arc<MemoryQuota>,
    pub(super) options: SpawnOptions,
    pub(super) phase: Phase,
    /// The start of its process, if that decides whether its thread times are read.
    pub(super) started_at: Option<Instant>,
    /// The time of the last activity of its outputs after the exit, or of the exit itself: see
    /// `exit.rs`.
    pub(super) last_activity: Option<Instant>,
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
    /// `true` if it is in the list of children that wait for memory.
    pub(super) waits_for_memory: bool,
    pub(super) turn: ReadTurn,
    pub(super) leaked: bool,
    /// The number of bytes of its output that were dropped.
    pub(super) dropped: u64,
    /// The state that is needed to start it again. Boxed, because few children are restarted.
    pub(super) restart: Option<Box<RestartState>>,
}

impl ChildState {
    pub(super) fn new(spawned: Spawned, quota: Arc<MemoryQuota>, options: SpawnOptions) -> Self {
        let Spawned { process, tree, stdin, stdout, stderr } = spawned;
        Self {
            process,
            tree,
            stdin,
            streams: [StreamState::new(stdout), StreamState::new(stderr)],
            quota,
            options,
            phase: Phase::Running,
            started_at: None,
            last_activity: None,
            termination: None,
            suspension: Suspension::default(),
            killed: false,
            timed_out: false,
            armed: Armed::default(),
            read_deferred: false,
            waits_for_memory: false,
            turn: ReadTurn::NEW,
            leaked: false,
            dropped: 0,
            restart: None,
        }
    }

    pub(super) fn stream(&mut self, stream: Stream) -> &mut StreamState {
        &mut self.streams[stream as usize]
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

    /// Returns whether its output is handed over as it arrives.
    pub(super) fn is_streaming(&self) -> bool {
        self.options.output_mode == OutputMode::Stream
    }

    /// Returns whether its process is alive as far as the kernel knows now. The set may not have observed an
    /// exit yet.
    pub(super) fn is_alive(&mut self) -> bool {
        !self.has_exited() && matches!(self.process.peek(), Ok(None))
    }

    /// Closes every endpoint.
    pub(super) fn close(&mut self, reactor: &mut Reactor) {
        // Closing fails only for a descriptor that is not ours. Nothing can be done about that.
        let _ = self.process.unwatch(reactor);
        if let Some(writer) = self.stdin.take() {
            let _ = writer.close(reactor);
        }
        for stream in &mut self.streams {
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
