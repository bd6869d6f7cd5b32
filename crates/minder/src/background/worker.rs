//! The pump's thread: carries out orders, listens, and puts what it hears into the outbox.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::event_queue::ChildQueue;
use super::request::{ReplySender, Request};
use super::stdin_queue::{StdinAction, StdinQueue};
use super::{STOP_PATIENCE, Shared, StopReason};
use crate::command::{Group, Stdio};
use crate::sys::thread::without_signals;
use crate::{ChildSet, Command, Error, ErrorKind, Event, Result, SpawnOptions, Termination, Token};

/// How many events go into the outbox at once.
const EVENTS_MAX: usize = 256;
/// No wait is longer than the life of a machine.
const EVER: Duration = Duration::from_secs(30 * 365 * 86_400);
/// How long the thread rests after a failure that may come again at once.
const REST: Duration = Duration::from_millis(10);
/// A first piece below this is worth gathering more; so much at once says that gathering holds a
/// child up.
const SMALL: usize = 2 << 10;
const LARGE: usize = 32 << 10;

/// Starts the thread.
pub(super) fn start(shared: Arc<Shared>, set: ChildSet) -> Result<JoinHandle<()>> {
    let body = move || {
        let worker = Worker {
            shared: &shared,
            set,
            events: Vec::new(),
            inputs: HashMap::new(),
            spare: Vec::new(),
            flows: false,
            leave: None,
            never: Instant::now() + EVER,
            room: 0,
        };
        // Nothing of the worker is used after a panic. Its set is dropped on the way, which closes the
        // pipes.
        let end = catch_unwind(AssertUnwindSafe(|| worker.run())).unwrap_or(Some(StopReason::Panicked));
        shared.close(end.unwrap_or(StopReason::Stopped));
    };
    let thread = without_signals(|| std::thread::Builder::new().name("minder-pump".into()).spawn(body));
    thread.map_err(|error| Error::new("start the thread of a pump", error))
}

struct Worker<'a> {
    shared: &'a Shared,
    set: ChildSet,
    /// Heard, and not in the outbox yet.
    events: Vec<Event>,
    /// What is being written, and how much of it is.
    inputs: HashMap<Token, (Vec<u8>, usize)>,
    spare: Vec<u8>,
    /// Whether the last gathering found so much that the next one would hold children up.
    flows: bool,
    leave: Option<StopRequest>,
    /// The end of waits that only end by news; one and the same, so that no timer has to be set for
    /// them.
    never: Instant,
    /// How many bytes the outbox may still be given.
    room: usize,
}

/// Why the thread is to end.
#[derive(Clone, Copy)]
enum StopRequest {
    /// When nobody is left, or then.
    Stop(Instant),
    Quit,
}

impl Worker<'_> {
    /// Works until it is told to stop; says nothing when it just ends.
    fn run(mut self) -> Option<StopReason> {
        loop {
            self.handle_requests();
            match self.leave {
                Some(StopRequest::Quit) => return None,
                Some(StopRequest::Stop(_)) if self.set.is_empty() => return Some(StopReason::Stopped),
                Some(StopRequest::Stop(until)) if Instant::now() >= until => {
                    return Some(StopReason::LeftSome);
                }
                _ => (),
            }
            let full = self.room == 0 && self.leave.is_none();
            let heard = if full { self.set.poll_without_events(self.never) } else { self.receive_events() };
            self.publish();
            if let Err(error) = heard {
                self.shared.lock().error.get_or_insert(error);
                self.sleep(REST);
            }
        }
    }

    /// Does what the handles asked for, and looks how much room there is.
    fn handle_requests(&mut self) {
        let mut state = self.shared.lock();
        let orders = std::mem::take(&mut state.requests);
        let inputs = std::mem::take(&mut state.inputs);
        self.room = self.shared.options.set.max_buffered_bytes.saturating_sub(state.queue.bytes());
        state.full = self.room == 0;
        drop(state);
        for order in orders {
            match order {
                Request::Spawn(command, options, promise) => self.spawn(&command, options, promise),
                Request::Kill(token, how, promise) => _ = promise.send(self.set.kill(token, how)),
                Request::Stop(grace) => self.stop(grace),
                Request::Quit => self.leave = Some(self.leave.unwrap_or(StopRequest::Quit)),
                #[cfg(test)]
                Request::Panic => panic!("as ordered"),
            }
        }
        for token in inputs {
            self.write_input(token);
        }
    }

    fn spawn(&mut self, command: &Command, options: SpawnOptions, promise: ReplySender<Token>) {
        // Somebody who gave up waiting wants no child; after a stop there is nobody to kill it.
        if !promise.is_wanted() || self.leave.is_some() {
            return;
        }
        let limit = self.shared.options.set.max_children;
        if self.shared.lock().queue.children() >= limit {
            let why = "as many children live, or wait to be taken, as this pump may have";
            promise.send(Err(
                Error::of_kind(ErrorKind::Limit, "start", why).with_subject(command.get_program())
            ));
            return;
        }
        let started = self.set.spawn(command, options).and_then(|token| Ok((token, self.set.id(token)?)));
        let (token, id) = match started {
            Ok(started) => started,
            Err(error) => {
                promise.send(Err(error));
                return;
            }
        };
        let has_input = matches!(command.stdin, Stdio::Piped) || matches!(command.group, Group::Terminal(_));
        // Before the answer, so that the handle's next call knows the child.
        self.shared
            .lock()
            .queue
            .insert(token, ChildQueue::new(id, options.overflow, StdinQueue::new(has_input)));
        if !promise.send(Ok(token)) {
            // The asker gave up meanwhile: nobody knows of this child, and nobody shall hear of it.
            self.shared.lock().queue.remove(token);
            let killed = self.set.kill(token, Termination::IMMEDIATE);
            self.record_error(killed);
        }
    }

    fn stop(&mut self, grace: Duration) {
        let how = if grace.is_zero() { Termination::IMMEDIATE } else { Termination::graceful(grace) };
        let until = Instant::now() + grace.min(EVER) + STOP_PATIENCE;
        self.leave = Some(StopRequest::Stop(until));
        // One that is another user's now is told by the end of the stop.
        let _ = self.set.kill_all(how);
    }

    /// Hands a child what waits for it, as far as its pipe takes it.
    fn write_input(&mut self, token: Token) {
        loop {
            let (bytes, done) = match self.inputs.remove(&token) {
                Some(begun) => begun,
                None => {
                    let spare = std::mem::take(&mut self.spare);
                    let next = self.shared.lock().queue.get(token).map(|kid| kid.input.next(spare));
                    match next {
                        Some(StdinAction::Write(bytes)) => (bytes, 0),
                        Some(StdinAction::Close) => {
                            let closed = self.set.close_stdin(token);
                            return self.record_error(closed);
                        }
                        Some(StdinAction::Nothing) | None => return,
                    }
                }
            };
            let told = match self.set.write(token, &bytes[done..]) {
                Ok(count) if done + count < bytes.len() => {
                    self.inputs.insert(token, (bytes, done + count));
                    self.written(token, count);
                    // A report of room will come.
                    return;
                }
                Ok(count) => {
                    self.spare = bytes;
                    self.written(token, count);
                    continue;
                }
                Err(error) => self
                    .shared
                    .lock()
                    .queue
                    .get(token)
                    .is_some_and(|kid| kid.input.broke(error.io_error().kind())),
            };
            if told {
                self.events.push(Event::Writable(token));
            }
            return;
        }
    }

    fn written(&mut self, token: Token, count: usize) {
        let max = self.shared.options.max_input_bytes;
        let room = self.shared.lock().queue.get(token).is_some_and(|kid| kid.input.written(count, max));
        if room {
            self.events.push(Event::Writable(token));
        }
    }

    /// Waits for events, and takes those that are there, up to a number.
    fn receive_events(&mut self) -> Result<()> {
        // What feeding had to say is told first.
        let until = match self.leave {
            _ if !self.events.is_empty() => Instant::now(),
            Some(StopRequest::Stop(until)) => until,
            _ => self.never,
        };
        let Some(first) = self.set.next(Some(until))? else { return Ok(()) };
        let gathers = self.gathers(&first);
        let mut bytes = self.store_event(first);
        let now = Instant::now();
        let gathered = bytes;
        while self.events.len() < EVENTS_MAX && (bytes < self.room || self.leave.is_some()) {
            // Without gathering only what is known already is taken: the outbox joins what follows.
            if !self.set.has_pending_events() && !gathers {
                break;
            }
            match self.set.next(Some(now))? {
                Some(event) => bytes += self.store_event(event),
                None => break,
            }
        }
        self.flows = if gathers { bytes - gathered >= LARGE } else { self.flows && gathered >= SMALL };
        Ok(())
    }

    /// Waits a moment for more, if what came is little and more may come.
    fn gathers(&mut self, first: &Event) -> bool {
        let gather = self.shared.options.coalesce_delay;
        let little = matches!(first, Event::Output(_, _, chunk) if chunk.len() < SMALL);
        if gather.is_zero() || !little || self.flows {
            return false;
        }
        self.sleep(gather);
        true
    }

    /// Keeps an event for the outbox; says how many bytes it has.
    fn store_event(&mut self, event: Event) -> usize {
        match &event {
            Event::Woken => return 0,
            Event::Writable(token) => {
                let token = *token;
                self.write_input(token);
                return 0;
            }
            Event::Done(token, _) => _ = self.inputs.remove(token),
            _ => (),
        }
        let bytes = if let Event::Output(_, _, chunk) = &event { chunk.len() } else { 0 };
        // A stopping pump has no reader any more.
        if self.leave.is_none() {
            self.events.push(event);
        }
        bytes
    }

    /// Puts what was heard into the outbox.
    fn publish(&mut self) {
        if self.leave.is_some() {
            self.events.clear();
            let mut state = self.shared.lock();
            let forgotten = state.queue.clear();
            self.shared.announce(&state);
            drop(state);
            // Their chunks make room for the last bytes of the children that are being killed.
            drop(forgotten);
            return;
        }
        if self.events.is_empty() {
            return;
        }
        let bounds = self.shared.bounds();
        let mut state = self.shared.lock();
        for event in self.events.drain(..) {
            state.queue.push(event, bounds);
        }
        self.shared.announce(&state);
    }

    /// Sleeps for at most `time`, or until there is an order.
    fn sleep(&self, time: Duration) {
        let state = self.shared.lock();
        let idle = |state: &mut super::State| state.requests.is_empty();
        drop(
            self.shared.changed.wait_timeout_while(state, time, idle).unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Keeps a failure for whoever asks, but for one that says that the child is gone.
    fn record_error(&self, result: Result<()>) {
        if let Err(error) = result
            && error.kind() != ErrorKind::Unknown
        {
            self.shared.lock().error.get_or_insert(error);
        }
    }
}
