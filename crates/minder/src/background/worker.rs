//! The worker thread: handles requests, waits for the children, and queues their events.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::event_queue::ChildQueue;
use super::request::{ReplySender, Request};
use super::shared::{STOP_TIMEOUT, Shared, StopReason};
use super::stdin_queue::StdinAction;
use crate::command::StdioKind;
use crate::group::Group;
use crate::sys::thread::without_signals;
use crate::{
    ChildId, ChildSet, Command, Error, ErrorKind, Event, Operation, Result, SpawnOptions, Termination,
};

/// The number of events that are moved to the queue at a time.
const EVENTS_MAX: usize = 256;
/// The longest wait: longer than a machine runs, and short enough to be added to an `Instant`.
const WAIT_MAX: Duration = Duration::from_secs(30 * 365 * 86_400);
/// The pause after a failure that may occur again at once.
const FAILURE_PAUSE: Duration = Duration::from_millis(10);
/// A first chunk below this size is a reason to wait for more.
const SMALL_CHUNK: usize = 2 << 10;
/// If a wait for more brought this much, the next wait would delay the child.
const LARGE_BURST: usize = 32 << 10;

/// Starts the thread.
pub(super) fn start(shared: Arc<Shared>, set: ChildSet) -> Result<JoinHandle<()>> {
    let body = move || {
        let worker = Worker {
            shared: &shared,
            set,
            events: Vec::new(),
            writes: HashMap::new(),
            spare: Vec::new(),
            is_burst: false,
            stopping: None,
            wait_max: Instant::now() + WAIT_MAX,
            room: 0,
        };
        // After a panic nothing of the worker is used. Unwinding drops its set, which closes the pipes.
        let reason = catch_unwind(AssertUnwindSafe(|| worker.run())).unwrap_or(StopReason::Panicked);
        shared.close(reason);
    };
    let thread = without_signals(|| std::thread::Builder::new().name("minder-set".into()).spawn(body));
    thread.map_err(|error| Error::new("start the thread of a background set", error))
}

struct Worker<'a> {
    shared: &'a Shared,
    set: ChildSet,
    /// Events that are not in the queue yet.
    events: Vec<Event>,
    /// The writes that are under way.
    writes: HashMap<ChildId, PartialWrite>,
    /// An empty buffer, kept for its memory.
    spare: Vec<u8>,
    /// `true` if so much arrives that waiting for more would delay children.
    is_burst: bool,
    stopping: Option<StopRequest>,
    /// The deadline of waits that end with an event only. It stays the same, so that the backend does
    /// not set a timer for each.
    wait_max: Instant,
    /// The number of bytes for which the queue still has room.
    room: usize,
}

/// Bytes for a child's standard input, and how many of them are written.
struct PartialWrite {
    bytes: Vec<u8>,
    written: usize,
}

/// Why the thread is to end.
#[derive(Clone, Copy)]
enum StopRequest {
    /// The thread ends when no child is left, or at this time.
    Stop(Instant),
    Quit,
}

impl Worker<'_> {
    /// Runs until a handle requests the end.
    fn run(mut self) -> StopReason {
        loop {
            self.handle_requests();
            match self.stopping {
                Some(StopRequest::Quit) => return StopReason::Stopped,
                Some(StopRequest::Stop(_)) if self.set.is_empty() => return StopReason::Stopped,
                Some(StopRequest::Stop(until)) if Instant::now() >= until => return StopReason::LeftSome,
                _ => (),
            }
            let is_full = self.room == 0 && self.stopping.is_none();
            let received =
                if is_full { self.set.poll_without_events(self.wait_max) } else { self.receive_events() };
            self.publish();
            if let Err(error) = received {
                self.shared.state.lock().error.get_or_insert(error);
                self.sleep(FAILURE_PAUSE);
            }
        }
    }

    /// Handles the requests of the handles, and checks the room in the queue.
    fn handle_requests(&mut self) {
        let mut state = self.shared.state.lock();
        let requests = std::mem::take(&mut state.requests);
        let inputs = std::mem::take(&mut state.inputs);
        self.room = self.shared.max_queued_bytes().saturating_sub(state.queue.bytes());
        state.is_full = self.room == 0;
        drop(state);
        for request in requests {
            match request {
                Request::Spawn(command, options, user, reply) => self.spawn(&command, options, user, reply),
                Request::Kill(id, how, reply) => {
                    reply.send(self.set.kill(id, how));
                }
                Request::Signal(id, signal, reply) => {
                    reply.send(self.set.signal(id, signal));
                }
                Request::Restart(id, how, reply) => {
                    reply.send(self.set.restart(id, how));
                }
                Request::Resize(id, size, reply) => {
                    reply.send(self.set.resize_terminal(id, size));
                }
                Request::Suspend(id, reply) => {
                    reply.send(self.set.suspend(id));
                }
                Request::Resume(id, reply) => {
                    reply.send(self.set.resume(id));
                }
                Request::CheckStarved(reply) => {
                    reply.send(self.check_starved());
                }
                Request::Stop(grace) => self.stop(grace),
                Request::Quit => self.stopping = Some(self.stopping.unwrap_or(StopRequest::Quit)),
                #[cfg(test)]
                Request::Panic => panic!("as requested"),
            }
        }
        for id in inputs {
            self.write_input(id);
        }
    }

    fn spawn(&mut self, command: &Command, options: SpawnOptions, user: u64, reply: ReplySender<ChildId>) {
        // A caller that gave up wants no child. After a stop no thread would kill it.
        if !reply.is_wanted() || self.stopping.is_some() {
            return;
        }
        let max = self.shared.options.set.max_children;
        if self.shared.state.lock().queue.children() >= max {
            let reason = "as many children run, or wait to be taken, as this set may have";
            let error = Error::of_kind(ErrorKind::Limit, "start", reason).during(Operation::Spawn);
            reply.send(Err(error.with_subject(command.get_program())));
            return;
        }
        let started = self.set.spawn(command, options).and_then(|id| Ok((id, self.set.pid(id)?)));
        let (id, pid) = match started {
            Ok(started) => started,
            Err(error) => {
                reply.send(Err(error));
                return;
            }
        };
        let has_input = match command.stdin_kind() {
            StdioKind::Piped => true,
            StdioKind::Null => false,
            _ => matches!(command.group, Group::Terminal(_)),
        };
        // Before the reply, so that the caller's next call finds the child.
        let queue = ChildQueue::new(pid, user, options.overflow, has_input);
        self.shared.state.lock().queue.insert(id, queue);
        if !reply.send(Ok(id)) {
            // The caller gave up meanwhile and does not know the id. The host must not receive
            // events of this child.
            let mut state = self.shared.state.lock();
            state.queue.remove(id);
            self.shared.notify_if_empty(&state);
            drop(state);
            let killed = self.set.kill(id, Termination::IMMEDIATE);
            self.record_error(killed);
        }
    }

    /// Fails if all children wait for memory that chunks of the host hold. Chunks of events that the host
    /// has not taken, those of paused children too, are not its own.
    fn check_starved(&self) -> Result<()> {
        let has_events = self.set.has_pending_events() || self.shared.state.lock().queue.holds_events();
        if has_events { Ok(()) } else { self.set.check_starved() }
    }

    fn stop(&mut self, grace: Duration) {
        let until = Instant::now() + grace.min(WAIT_MAX) + STOP_TIMEOUT;
        self.stopping = Some(StopRequest::Stop(until));
        // A child that now runs as another user is reported when the stop times out.
        let _ = self.set.kill_all(Termination::after_grace(grace));
        // A child that has exited may wait for the memory of what the host did not take.
        self.publish();
    }

    /// Writes queued bytes to a child, as far as its pipe has room.
    fn write_input(&mut self, id: ChildId) {
        while let Some(PartialWrite { bytes, written }) = self.next_write(id) {
            match self.set.write(id, &bytes[written..]) {
                Ok(count) if written + count < bytes.len() => {
                    self.writes.insert(id, PartialWrite { bytes, written: written + count });
                    self.count_written(id, count);
                    // `Event::Writable` will report that there is room again.
                    return;
                }
                Ok(count) => {
                    self.spare = bytes;
                    self.count_written(id, count);
                }
                Err(error) => {
                    let kind = error.io_error().kind();
                    let mut state = self.shared.state.lock();
                    let is_waiting = state.queue.get(id).is_some_and(|child| child.stdin.set_broken(kind));
                    drop(state);
                    if is_waiting {
                        self.events.push(Event::Writable { child: id });
                    }
                    return;
                }
            }
        }
    }

    /// Returns the bytes that are written next to a child: the rest of a write that is under way, or
    /// what was queued since. Closes the child's input after the last byte.
    fn next_write(&mut self, id: ChildId) -> Option<PartialWrite> {
        if let Some(write) = self.writes.remove(&id) {
            return Some(write);
        }
        let spare = std::mem::take(&mut self.spare);
        let action = self.shared.state.lock().queue.get(id)?.stdin.next(spare);
        match action {
            StdinAction::Write(bytes) => Some(PartialWrite { bytes, written: 0 }),
            StdinAction::Close => {
                let closed = self.set.close_stdin(id);
                self.record_error(closed);
                None
            }
            StdinAction::Nothing => None,
        }
    }

    fn count_written(&mut self, id: ChildId, count: usize) {
        let max = self.shared.options.max_input_bytes;
        let mut state = self.shared.state.lock();
        let has_room = state.queue.get(id).is_some_and(|child| child.stdin.written(count, max));
        drop(state);
        if has_room {
            self.events.push(Event::Writable { child: id });
        }
    }

    /// Waits for an event, and takes those that are there, up to a number.
    fn receive_events(&mut self) -> Result<()> {
        // Events of writes that are done go to the host first.
        let until = match self.stopping {
            _ if !self.events.is_empty() => Instant::now(),
            Some(StopRequest::Stop(until)) => until,
            _ => self.wait_max,
        };
        let Some(first) = self.set.next_event_deadline(Some(until))?.into_event() else { return Ok(()) };
        let has_coalesced = self.coalesce(&first);
        let first_bytes = self.store_event(first);
        let mut bytes = first_bytes;
        let now = Instant::now();
        while self.events.len() < EVENTS_MAX && (bytes < self.room || self.stopping.is_some()) {
            // Without coalescing only events that are queued are taken. The event queue joins the
            // chunks that follow.
            if !self.set.has_pending_events() && !has_coalesced {
                break;
            }
            let Some(event) = self.set.next_event_deadline(Some(now))?.into_event() else { break };
            bytes += self.store_event(event);
        }
        self.is_burst = if has_coalesced {
            bytes - first_bytes >= LARGE_BURST
        } else {
            self.is_burst && first_bytes >= SMALL_CHUNK
        };
        Ok(())
    }

    /// Waits a moment for more output, if the first chunk is small and no burst is under way. Returns
    /// whether it waited.
    fn coalesce(&mut self, first: &Event) -> bool {
        let delay = self.shared.options.coalesce_delay;
        let is_small = matches!(first, Event::Output { chunk, .. } if chunk.len() < SMALL_CHUNK);
        if delay.is_zero() || !is_small || self.is_burst {
            return false;
        }
        self.sleep(delay);
        true
    }

    /// Keeps an event for the queue. Returns how many bytes of output it has.
    fn store_event(&mut self, event: Event) -> usize {
        let bytes = match &event {
            Event::Woken => return 0,
            Event::Writable { child: id } => {
                let id = *id;
                self.write_input(id);
                return 0;
            }
            Event::Done { child: id, .. } | Event::Restarting { child: id, .. } => {
                self.writes.remove(id);
                0
            }
            Event::Output { chunk, .. } => chunk.len(),
            _ => 0,
        };
        // While the thread stops, the host takes no events.
        if self.stopping.is_none() {
            self.events.push(event);
        }
        bytes
    }

    /// Moves the stored events to the queue.
    fn publish(&mut self) {
        if self.stopping.is_some() {
            self.events.clear();
            let mut state = self.shared.state.lock();
            let cleared = state.queue.clear();
            self.shared.update_poll_handle(&state);
            drop(state);
            // Dropping the chunks makes room for the last bytes of the children that are being killed.
            // It may wake the set, so it happens without the lock.
            drop(cleared);
            return;
        }
        if self.events.is_empty() {
            return;
        }
        let limits = self.shared.queue_limits();
        let mut state = self.shared.state.lock();
        for event in self.events.drain(..) {
            state.queue.push(event, limits);
        }
        self.shared.update_poll_handle(&state);
    }

    /// Sleeps for at most `time`, or until there is a request.
    fn sleep(&self, time: Duration) {
        let state = self.shared.state.lock();
        drop(self.shared.changed.wait_timeout_while(state, time, |state| state.requests.is_empty()));
    }

    /// Keeps the first error for `take_error`, except the error that the child is done.
    fn record_error(&self, result: Result<()>) {
        if let Err(error) = result
            && error.kind() != ErrorKind::Unknown
        {
            self.shared.state.lock().error.get_or_insert(error);
        }
    }
}
