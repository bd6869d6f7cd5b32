//! One child of a set: what is known of it, and the output that waits with it.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::killing::Killing;
use super::spill::Spill;
use super::timers::Armed;
use super::turns::Turn;
use super::{Account, Chunk, SpawnOptions, Stream};
use crate::event::Exit;
use crate::sys::pipe::{Reader, Writer};
use crate::sys::reap::Process;
use crate::sys::spawn::Spawned;
use crate::sys::tree::Tree;
use crate::sys::wait::Port;

/// The least memory that a piece of output is given, and from where a read is handed over whole
/// instead of copied.
const PIECE_MIN: usize = 64;

/// One child.
#[derive(Debug)]
pub(super) struct Kid {
    pub(super) process: Process,
    pub(super) tree: Tree,
    pub(super) stdin: Option<Writer>,
    pub(super) outs: [Out; 2],
    pub(super) account: Arc<Account>,
    pub(super) options: SpawnOptions,
    pub(super) exit: Option<Exit>,
    /// When the last byte came, or the exit.
    pub(super) busy_at: Option<Instant>,
    /// The order to kill its tree that is being carried out.
    pub(super) killing: Option<Box<Killing>>,
    /// Since when it stands still, by our order; its deadline does not come nearer from here on.
    pub(super) suspended: Option<Instant>,
    /// How long it stood still before.
    pub(super) stood: Duration,
    /// Whether an order to kill it was given while its process ran, and whether its deadline came
    /// then.
    pub(super) struck: bool,
    pub(super) timed_out: bool,
    /// Its timers.
    pub(super) armed: Armed,
    /// Whether its outputs are looked at now and then, since they are not listened to.
    pub(super) looked_at: bool,
    /// Whether the exit is in the caller's hands.
    pub(super) told: bool,
    /// Whether the end is in the queue.
    pub(super) draining: bool,
    pub(super) starved: bool,
    /// Whether it may be read on while much waits in files.
    pub(super) turn: Turn,
    pub(super) leaked: bool,
    pub(super) dropped: u64,
}

/// One of its outputs.
#[derive(Debug)]
pub(super) struct Out {
    pub(super) reader: Option<Reader>,
    pub(super) held: bool,
    /// Bytes in memory, oldest first; those in the file follow them.
    pub(super) kept: VecDeque<Chunk>,
    /// How many notices of output are in the queue. A piece that is dropped leaves its notice to
    /// the next one.
    pub(super) noticed: usize,
    pub(super) spill: Option<Spill>,
    /// Bytes that the file did not take; the child is held while there are any. They come last.
    pub(super) unsaved: Vec<u8>,
    /// Whether a notice of the file is in the queue: what is in it and after it stays where it is
    /// until then.
    pub(super) offered: bool,
    /// Whether its bytes cannot go to the file but through our memory.
    pub(super) copies: bool,
    /// Where its bytes go without passing through our memory.
    pub(super) forward: Option<Arc<File>>,
    /// Bytes that went there and were not told of.
    pub(super) forwarded: u64,
    /// Whether its end is still to be told.
    pub(super) owes_eof: bool,
}

impl Out {
    fn new(reader: Option<Reader>) -> Self {
        Self {
            owes_eof: reader.is_some(),
            reader,
            held: false,
            kept: VecDeque::new(),
            noticed: 0,
            spill: None,
            unsaved: Vec::new(),
            offered: false,
            copies: false,
            forward: None,
            forwarded: 0,
        }
    }

    /// Whether its next bytes go on without passing through our memory: nothing that came before
    /// them waits here.
    pub(super) fn forwards(&self) -> bool {
        self.forward.is_some() && self.kept.is_empty() && !self.spilled()
    }

    /// Whether bytes wait outside of the memory that is told.
    pub(super) fn spilled(&self) -> bool {
        self.spill.as_ref().is_some_and(|spill| spill.len() > 0) || !self.unsaved.is_empty()
    }
}

impl Kid {
    pub(super) fn new(spawned: Spawned, account: Arc<Account>, options: SpawnOptions) -> Self {
        let Spawned { process, tree, stdin, stdout, stderr } = spawned;
        Self {
            process,
            tree,
            stdin,
            outs: [Out::new(stdout), Out::new(stderr)],
            account,
            options,
            exit: None,
            busy_at: None,
            killing: None,
            suspended: None,
            stood: Duration::ZERO,
            struck: false,
            timed_out: false,
            armed: Armed::default(),
            looked_at: false,
            told: false,
            draining: false,
            starved: false,
            turn: Turn::NEW,
            leaked: false,
            dropped: 0,
        }
    }

    /// Closes whatever is open.
    pub(super) fn close(&mut self, port: &mut Port) {
        // Closing cannot fail but for a descriptor that is not ours, and then there is nothing to do.
        let _ = self.process.unwatch(port);
        if let Some(writer) = self.stdin.take() {
            let _ = writer.close(port);
        }
        for out in &mut self.outs {
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
        self.exit.is_some() && self.killing.is_none() && self.outs.iter().all(|out| out.reader.is_none())
    }

    /// Keeps bytes that were read: in the last piece if they fit there, else in a new one.
    pub(super) fn keep(
        &mut self,
        stream: Stream,
        buffer: &mut Vec<u8>,
        spare: impl FnOnce() -> Vec<u8>,
        full: usize,
    ) {
        let out = &mut self.outs[stream as usize];
        if out.kept.back_mut().is_some_and(|last| last.extend_within(buffer)) {
            return;
        }
        let bytes = if buffer.len() * 2 > full {
            std::mem::replace(buffer, spare())
        } else {
            // A child that goes on writing gets larger pieces.
            let grown = out.kept.back().map_or(0, |last| last.len() * 2).min(full);
            let mut bytes = Vec::with_capacity(buffer.len().max(grown).max(PIECE_MIN));
            bytes.extend_from_slice(buffer);
            bytes
        };
        out.kept.push_back(Chunk::new(bytes, &self.account));
    }
}
