//! What the children of a set use together.

use super::config::ChildSetOptions;
use super::deferred_reads::DeferredReads;
use super::event_queue::EventQueue;
use super::memory_waiters::MemoryWaiters;
use super::read_turns::ReadTurns;
use super::stream::StreamIo;
use super::thread_times::ThreadTimeReads;
use super::timers::Timers;
use crate::chunk::MemoryBudget;
use crate::sys::process_tree::ProcessSnapshot;
use crate::sys::reactor::Reactor;
use crate::sys::spawn::Spawner;
use crate::{Error, Operation, Result};

/// What the children of a set use together: how they are started, read and waited for, and the queue, the
/// timers and the lists in which they stand.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) io: StreamIo,
    pub(super) spawner: Spawner,
    pub(super) events: EventQueue,
    pub(super) timers: Timers,
    pub(super) memory_waiters: MemoryWaiters,
    pub(super) deferred_reads: DeferredReads,
    pub(super) read_turns: ReadTurns,
    /// Decides which thread times are read, if not all are.
    pub(super) thread_time_reads: Option<ThreadTimeReads>,
    /// The processes of the machine after the last wait, if they were looked for.
    pub(super) snapshot: Option<ProcessSnapshot>,
}

impl SharedState {
    /// Opens the backend. The configuration is valid.
    pub(super) fn open(config: ChildSetOptions, spawner: Spawner) -> Result<Self> {
        let mut reactor = Reactor::open(config.backend)
            .map_err(|error| Error::new("open a wait backend", error).during(Operation::Watch))?;
        reactor.limit_descriptors(config.fault_capacity);
        let waker = reactor.waker();
        // A wake-up fails only if the counter of pending wake-ups is full.
        let on_room = move || drop(waker.wake());
        let budget =
            MemoryBudget::new(config.max_buffered_bytes, config.read_buffer_bytes, Box::new(on_room));
        let rate = if config.thread_times { config.thread_times_per_second } else { None };
        Ok(Self {
            spawner,
            events: EventQueue::default(),
            timers: Timers::new(config.stop_poll_interval),
            memory_waiters: MemoryWaiters::default(),
            deferred_reads: DeferredReads::default(),
            read_turns: ReadTurns::new(config.backlog.clone(), config.min_readers),
            thread_time_reads: rate.map(ThreadTimeReads::at_rate),
            snapshot: None,
            io: StreamIo {
                reactor,
                buffer: Vec::with_capacity(config.read_buffer_bytes),
                config,
                budget,
                spill_number: 0,
                splice_wait: None,
                poll_until: None,
            },
        })
    }
}
