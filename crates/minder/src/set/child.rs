//! One child of a set: what is known of it, and the output that waits with it.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::read_turns::ReadTurn;
use super::spill::SpillBuffer;
use super::termination::TerminationState;
use super::timers::Armed;
use super::{Chunk, MemoryQuota, SpawnOptions, Stream};
use crate::event::ExitInfo;
use crate::sys::pipe::{Reader, Writer};
use crate::sys::process_tree::ProcessTree;
use crate::sys::reactor::Reactor;
use crate::sys::reap::Process;
use crate::sys::spawn::Spawned;

/// The least memory that a piece of output is given, and from where a read is handed over whole
/// instead of copied.
const PIECE_MIN: usize = 64;

/// One child.
#[derive(Debug)]
pub(super) struct ChildState {
    pub(super) process: Process,
    pub(super) tree: ProcessTree,
    pub(super) stdin: Option<Writer>,
    pub(super) streams: [StreamState; 2],
    pub(super) quota: Arc<MemoryQuota>,
    pub(super) options: SpawnOptions,
    pub(super) exit: Option<ExitInfo>,
    /// When the last byte came, or the exit.
    pub(super) last_activity: Option<Instant>,
    /// The order to kill its tree that is being carried out.
    pub(super) termination: Option<Box<TerminationState>>,
    /// Since when it stands still, by our order; its deadline does not come nearer from here on.
    pub(super) suspended: Option<Instant>,
    /// How long it stood still before.
    pub(super) suspended_time: Duration,
    /// Whether an order to kill it was given while its process ran, and whether its deadline came
    /// then.
    pub(super) deadline_passed: bool,
    pub(super) timed_out: bool,
    /// Its timers.
    pub(super) armed: Armed,
    /// Whether its outputs are looked at now and then, since they are not listened to.
    pub(super) looked_at: bool,
    /// Whether the exit is in the caller's hands.
    pub(super) exit_reported: bool,
    /// Whether the end is in the queue.
    pub(super) done_queued: bool,
    pub(super) waiting_for_memory: bool,
    /// Whether it may be read on while much waits in files.
    pub(super) turn: ReadTurn,
    pub(super) leaked: bool,
    pub(super) dropped: u64,
}

/// One of its outputs.
#[derive(Debug)]
pub(super) struct StreamState {
    pub(super) reader: Option<Reader>,
    pub(super) paused: bool,
    /// Bytes in memory, oldest first; those in the file follow them.
    pub(super) buffered: VecDeque<Chunk>,
    /// How many notices of output are in the queue. A piece that is dropped leaves its notice to
    /// the next one.
    pub(super) queued_events: usize,
    pub(super) spill: Option<SpillBuffer>,
    /// Bytes that the file did not take; the child is held while there are any. They come last.
    pub(super) unwritten: Vec<u8>,
    /// Whether a notice of the file is in the queue: what is in it and after it stays where it is
    /// until then.
    pub(super) spill_queued: bool,
    /// Whether its bytes cannot go to the file but through our memory.
    pub(super) splice_unsupported: bool,
    /// Where its bytes go without passing through our memory.
    pub(super) forward: Option<Arc<File>>,
    /// Bytes that went there and were not told of.
    pub(super) forwarded: u64,
    /// Whether its end is still to be told.
    pub(super) eof_pending: bool,
}

impl StreamState {
    fn new(reader: Option<Reader>) -> Self {
        Self {
            eof_pending: reader.is_some(),
            reader,
            paused: false,
            buffered: VecDeque::new(),
            queued_events: 0,
            spill: None,
            unwritten: Vec::new(),
            spill_queued: false,
            splice_unsupported: false,
            forward: None,
            forwarded: 0,
        }
    }

    /// Whether its next bytes go on without passing through our memory: nothing that came before
    /// them waits here.
    pub(super) fn forwards(&self) -> bool {
        self.forward.is_some() && self.buffered.is_empty() && !self.spilled()
    }

    /// Whether bytes wait outside of the memory that is told.
    pub(super) fn spilled(&self) -> bool {
        self.spill.as_ref().is_some_and(|spill| spill.len() > 0) || !self.unwritten.is_empty()
    }
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
            exit: None,
            last_activity: None,
            termination: None,
            suspended: None,
            suspended_time: Duration::ZERO,
            deadline_passed: false,
            timed_out: false,
            armed: Armed::default(),
            looked_at: false,
            exit_reported: false,
            done_queued: false,
            waiting_for_memory: false,
            turn: ReadTurn::NEW,
            leaked: false,
            dropped: 0,
        }
    }

    /// Closes whatever is open.
    pub(super) fn close(&mut self, port: &mut Reactor) {
        // Closing cannot fail but for a descriptor that is not ours, and then there is nothing to do.
        let _ = self.process.unwatch(port);
        if let Some(writer) = self.stdin.take() {
            let _ = writer.close(port);
        }
        for out in &mut self.streams {
            if let Some(reader) = out.reader.take() {
                let _ = reader.close(port);
            }
        }
    }

    /// Whether its process has not ended, as far as the system knows now.
    pub(super) fn runs(&mut self) -> bool {
        self.exit.is_none() && matches!(self.process.peek(), Ok(None))
    }

    pub(super) fn is_over(&self) -> bool {
        self.exit.is_some()
            && self.termination.is_none()
            && self.streams.iter().all(|out| out.reader.is_none())
    }

    /// Keeps bytes that were read: in the last piece if they fit there, else in a new one.
    pub(super) fn buffer(
        &mut self,
        stream: Stream,
        buffer: &mut Vec<u8>,
        spare: impl FnOnce() -> Vec<u8>,
        full: usize,
    ) {
        let out = &mut self.streams[stream as usize];
        if out.buffered.back_mut().is_some_and(|last| last.extend_within(buffer)) {
            return;
        }
        let bytes = if buffer.len() * 2 > full {
            std::mem::replace(buffer, spare())
        } else {
            // A child that goes on writing gets larger pieces.
            let grown = out.buffered.back().map_or(0, |last| last.len() * 2).min(full);
            let mut bytes = Vec::with_capacity(buffer.len().max(grown).max(PIECE_MIN));
            bytes.extend_from_slice(buffer);
            bytes
        };
        out.buffered.push_back(Chunk::new(bytes, &self.quota));
    }
}
