//! The events that wait for the host: child by child, with joined chunks.

use std::collections::{HashMap, VecDeque};

use super::stdin_queue::StdinQueue;
use crate::{ChildId, Chunk, Event, ExitInfo, Outcome, OverflowPolicy, Stream};

/// The children that were started and whose `Done` was not taken, with their queued events.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    children: HashMap<ChildId, ChildQueue>,
    /// The children with queued events that are not paused, in the order of their oldest event.
    ready: VecDeque<ChildId>,
    /// The number of queued bytes of output.
    bytes: usize,
}

/// The queues of one child.
#[derive(Debug)]
pub(super) struct ChildQueue {
    pub(super) pid: u32,
    /// The value by which the host identifies the child.
    pub(super) user: u64,
    pub(super) stdin: StdinQueue,
    overflow: OverflowPolicy,
    events: VecDeque<Event>,
    bytes: usize,
    /// The number of bytes of this run, or of the last one between two runs, that were dropped here.
    dropped: u64,
    /// The exit, until all output is queued before it.
    exit: Option<ExitInfo>,
    /// `true` if each run has a standard input that can be written to.
    has_input: bool,
    /// The number of queued events of the kinds that report a restart.
    restarts: usize,
    /// `true` if its events stay here.
    is_paused: bool,
}

/// The most restarts of one child that wait for the host.
const RESTARTS_MAX: usize = 64;

impl ChildQueue {
    pub(super) fn new(pid: u32, user: u64, overflow: OverflowPolicy, has_input: bool) -> Self {
        Self {
            pid,
            user,
            stdin: StdinQueue::new(has_input),
            overflow,
            events: VecDeque::new(),
            bytes: 0,
            dropped: 0,
            exit: None,
            has_input,
            restarts: 0,
            is_paused: false,
        }
    }
}

/// The configuration of an event queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLimits {
    /// Small chunks are joined up to this size.
    pub(super) max_chunk_bytes: usize,
    /// The most queued bytes of a child whose oldest output may be dropped.
    pub(super) max_child_bytes: usize,
    /// `true` if an exit is queued at once, instead of after the last byte.
    pub(super) eager_exit: bool,
}

impl EventQueue {
    pub(super) fn insert(&mut self, id: ChildId, child: ChildQueue) {
        self.children.insert(id, child);
    }

    pub(super) fn get(&mut self, id: ChildId) -> Option<&mut ChildQueue> {
        self.children.get_mut(&id)
    }

    /// Removes a child that has no queued events.
    pub(super) fn remove(&mut self, id: ChildId) {
        self.children.remove(&id);
    }

    /// Returns how many children were started whose `Done` was not taken.
    pub(super) fn children(&self) -> usize {
        self.children.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn has_events(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns whether events are queued, of children that are paused too.
    pub(super) fn holds_events(&self) -> bool {
        self.has_events() || self.children.values().any(|child| !child.events.is_empty())
    }

    /// Removes all children and returns them, so that the caller can drop their chunks without the
    /// lock.
    pub(super) fn clear(&mut self) -> Vec<ChildQueue> {
        self.ready.clear();
        self.bytes = 0;
        self.children.drain().map(|(_, child)| child).collect()
    }

    /// Appends an event to those of its child. An event of a child that is not here is dropped.
    pub(super) fn push(&mut self, event: Event, limits: QueueLimits) {
        let Some(id) = event.child() else { return };
        let Some(child) = self.children.get_mut(&id) else { return };
        let was_empty = child.events.is_empty();
        let bytes_before = child.bytes;
        match event {
            Event::Output { stream, chunk, .. } => child.push_output(id, stream, chunk, limits),
            Event::Exited { exit, .. } if !limits.eager_exit => child.exit = Some(exit),
            Event::Done { mut outcome, .. } => {
                child.end_run(id, &mut outcome);
                child.events.push_back(Event::Done { child: id, outcome });
            }
            Event::Restarting { mut outcome, delay, restarts, .. } => {
                child.end_run(id, &mut outcome);
                child.push_restart(Event::Restarting { child: id, outcome, delay, restarts });
            }
            Event::RestartFailed { .. } => child.push_restart(event),
            Event::Restarted { pid, .. } => {
                child.pid = pid;
                child.dropped = 0;
                child.stdin = StdinQueue::new(child.has_input);
                child.events.push_back(event);
            }
            Event::Writable { .. } => child.push_writable(id),
            Event::Stopped { signal, .. } => child.push_stop(id, signal),
            event => child.events.push_back(event),
        }
        self.bytes = self.bytes - bytes_before + child.bytes;
        if was_empty && !child.events.is_empty() && !child.is_paused {
            self.ready.push_back(id);
        }
    }

    /// Keeps the events of a child here, or lets them go. Returns whether there is such a child.
    pub(super) fn set_paused(&mut self, id: ChildId, is_paused: bool) -> bool {
        let Some(child) = self.children.get_mut(&id) else { return false };
        if child.is_paused != is_paused {
            child.is_paused = is_paused;
            if is_paused {
                self.ready.retain(|ready| *ready != id);
            } else if !child.events.is_empty() {
                self.ready.push_back(id);
            }
        }
        true
    }

    /// Moves events to `into`, child by child, starting with the child whose oldest event is oldest,
    /// until `max_bytes` of output are moved; at least one event if there is one. Returns how many. A
    /// child with events left is moved behind the others. `item` gets an event and the user value of its
    /// child.
    pub(super) fn drain<T>(
        &mut self,
        into: &mut Vec<T>,
        max_bytes: usize,
        item: impl Fn(Event, u64) -> T,
    ) -> usize {
        let len_before = into.len();
        let mut moved_bytes = 0;
        while let Some(id) = self.ready.pop_front() {
            let Some(child) = self.children.get_mut(&id) else { continue };
            let mut is_done = false;
            while let Some(event) = child.events.front() {
                let bytes = output_bytes(event);
                if moved_bytes + bytes > max_bytes && into.len() > len_before {
                    self.ready.push_back(id);
                    return into.len() - len_before;
                }
                is_done = matches!(event, Event::Done { .. });
                child.bytes -= bytes;
                self.bytes -= bytes;
                moved_bytes += bytes;
                let mut event = child.events.pop_front();
                child.restarts -= usize::from(event.as_ref().is_some_and(is_restart));
                if let Some(Event::Output { chunk, .. }) = &mut event {
                    chunk.set_counted(true);
                }
                into.extend(event.map(|event| item(event, child.user)));
            }
            if is_done {
                self.children.remove(&id);
            }
        }
        into.len() - len_before
    }
}

impl ChildQueue {
    /// Appends a chunk, joined with the last one if both are small.
    ///
    /// With `DropOldest`, the oldest queued output is dropped here, and queued chunks do not count in
    /// the child's quota. Otherwise old bytes would fill the quota, and the set would drop new ones.
    fn push_output(&mut self, id: ChildId, stream: Stream, mut chunk: Chunk, limits: QueueLimits) {
        let drops_oldest = self.overflow == OverflowPolicy::DropOldest;
        self.bytes += chunk.len();
        chunk.set_counted(!drops_oldest);
        let separate = match self.events.back_mut() {
            Some(Event::Output { stream: last, chunk: target, .. }) if *last == stream => {
                target.try_append(chunk, limits.max_chunk_bytes)
            }
            _ => Some(chunk),
        };
        if let Some(chunk) = separate {
            self.events.push_back(Event::Output { child: id, stream, chunk });
        }
        while drops_oldest && self.bytes > limits.max_child_bytes && self.drop_oldest() {}
    }

    /// Ends a run: its exit is queued now, and its input is closed.
    fn end_run(&mut self, id: ChildId, outcome: &mut Outcome) {
        outcome.dropped += self.dropped;
        self.stdin = StdinQueue::new(false);
        if let Some(exit) = self.exit.take() {
            self.events.push_back(Event::Exited { child: id, exit });
        }
    }

    /// Appends an event that tells of a restart. If the host takes no events, the oldest restart is
    /// removed with what led to it, except output.
    fn push_restart(&mut self, event: Event) {
        if self.restarts == RESTARTS_MAX
            && let Some(oldest) = self.events.iter().position(is_restart)
        {
            let mut index = 0;
            self.events.retain(|event| {
                index += 1;
                index > oldest + 1 || output_bytes(event) > 0
            });
            self.restarts -= 1;
        }
        self.events.push_back(event);
        self.restarts += 1;
    }

    /// Drops the oldest chunk, but not the newest. Returns whether it did. Its bytes count in the outcome of
    /// the run that wrote them, which may be queued behind them.
    fn drop_oldest(&mut self) -> bool {
        let mut outputs =
            self.events.iter().enumerate().filter(|(_, event)| matches!(event, Event::Output { .. }));
        let (Some((oldest, _)), Some(_)) = (outputs.next(), outputs.next()) else { return false };
        if let Some(event) = self.events.remove(oldest) {
            let bytes = output_bytes(&event);
            self.bytes -= bytes;
            let outcome = self.events.range_mut(oldest..).find_map(|event| match event {
                Event::Restarting { outcome, .. } | Event::Done { outcome, .. } => Some(outcome),
                _ => None,
            });
            *outcome.map_or(&mut self.dropped, |outcome| &mut outcome.dropped) += bytes as u64;
        }
        true
    }

    /// Appends an event that there is room, unless one is queued. A host that takes no events would
    /// otherwise let these fill the queue.
    fn push_writable(&mut self, id: ChildId) {
        if !self.events.iter().any(|event| matches!(event, Event::Writable { .. })) {
            self.events.push_back(Event::Writable { child: id });
        }
    }

    /// Appends a stop, in place of an earlier one.
    fn push_stop(&mut self, id: ChildId, signal: i32) {
        self.events.retain(|event| !matches!(event, Event::Stopped { .. }));
        self.events.push_back(Event::Stopped { child: id, signal });
    }
}

fn is_restart(event: &Event) -> bool {
    matches!(event, Event::Restarting { .. } | Event::RestartFailed { .. })
}

fn output_bytes(event: &Event) -> usize {
    match event {
        Event::Output { chunk, .. } => chunk.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ExitStatus;
    use crate::chunk::{MemoryBudget, MemoryQuota};

    const LIMITS: QueueLimits = QueueLimits { max_chunk_bytes: 64, max_child_bytes: 100, eager_exit: false };
    const EXIT: ExitInfo = ExitInfo { status: ExitStatus::Exited(0), usage: None };

    const OUTCOME: Outcome = Outcome {
        exit: EXIT,
        leaked: false,
        left_running: false,
        dropped: 1,
        killed: false,
        timed_out: false,
        suspended: std::time::Duration::ZERO,
    };

    struct Fixture {
        quota: Arc<MemoryQuota>,
        queue: EventQueue,
    }

    impl Fixture {
        fn new(children: u64, overflow: OverflowPolicy) -> Self {
            let budget = MemoryBudget::new(1 << 20, 64, Box::new(|| ()));
            let mut queue = EventQueue::default();
            for id in 0..children {
                queue.insert(ChildId::from_u64(id), ChildQueue::new(0, 0, overflow, false));
            }
            Self { quota: MemoryQuota::new(&budget, 1 << 20), queue }
        }

        fn push_output(&mut self, id: u64, stream: Stream, text: &str) {
            let chunk = Chunk::new(text.as_bytes().to_vec(), &self.quota);
            self.queue.push(Event::Output { child: ChildId::from_u64(id), stream, chunk }, LIMITS);
        }

        fn push_done(&mut self, id: u64) {
            self.queue.push(Event::Done { child: ChildId::from_u64(id), outcome: OUTCOME }, LIMITS);
        }

        fn drain(&mut self, max: usize) -> String {
            let mut events = Vec::new();
            assert_eq!(self.queue.drain(&mut events, max, |event, _| event), events.len());
            let texts = events.iter().map(|event| match event {
                Event::Output { child: id, stream, chunk } => {
                    let stream = if *stream == Stream::Stdout { '>' } else { '!' };
                    format!("{}{stream}{}", id.as_u64(), String::from_utf8_lossy(chunk))
                }
                Event::Exited { child: id, .. } => format!("{} exited", id.as_u64()),
                Event::Done { child: id, outcome } => format!("{} done-{}", id.as_u64(), outcome.dropped),
                Event::Stopped { child: id, signal } => format!("{} stopped {signal}", id.as_u64()),
                Event::Writable { child: id } => format!("{} writable", id.as_u64()),
                Event::Restarting { child: id, restarts, .. } => {
                    format!("{} restart-{restarts}", id.as_u64())
                }
                Event::Restarted { child: id, pid } => format!("{} restarted-{pid}", id.as_u64()),
                event => format!("{event:?}"),
            });
            texts.collect::<Vec<_>>().join(", ")
        }
    }

    #[test]
    fn drain_returns_joined_chunks_child_by_child_and_the_exit_last() {
        let mut fixture = Fixture::new(2, OverflowPolicy::Block);
        fixture.push_output(0, Stream::Stdout, "a");
        fixture.push_output(1, Stream::Stdout, "x");
        fixture.queue.push(Event::Exited { child: ChildId::from_u64(0), exit: EXIT }, LIMITS);
        fixture.push_output(0, Stream::Stdout, "b");
        fixture.push_output(0, Stream::Stderr, "c");
        fixture.push_output(0, Stream::Stdout, "d");
        fixture.push_done(0);
        assert_eq!(fixture.drain(usize::MAX), "0>ab, 0!c, 0>d, 0 exited, 0 done-1, 1>x");
        assert_eq!(
            (fixture.queue.children(), fixture.queue.bytes(), fixture.queue.has_events()),
            (1, 0, false)
        );
    }

    #[test]
    fn events_of_a_paused_child_stay_until_it_is_resumed() {
        let mut fixture = Fixture::new(2, OverflowPolicy::Block);
        let paused = ChildId::from_u64(0);
        fixture.push_output(0, Stream::Stdout, "a");
        assert!(fixture.queue.set_paused(paused, true));
        fixture.push_output(1, Stream::Stdout, "x");
        fixture.push_output(0, Stream::Stdout, "b");
        fixture.push_done(0);
        assert_eq!(fixture.drain(usize::MAX), "1>x");
        assert_eq!((fixture.queue.has_events(), fixture.queue.bytes()), (false, 2));
        assert!(fixture.queue.holds_events());
        assert!(fixture.queue.set_paused(paused, false));
        assert_eq!(fixture.drain(usize::MAX), "0>ab, 0 done-1");
        assert!(!fixture.queue.set_paused(paused, true));
    }

    #[test]
    fn child_with_events_left_is_moved_behind_the_others() {
        let mut fixture = Fixture::new(2, OverflowPolicy::Block);
        fixture.push_output(0, Stream::Stdout, "aaaa");
        fixture.push_output(0, Stream::Stderr, "bbbb");
        fixture.push_output(1, Stream::Stdout, "x");
        assert_eq!(
            (fixture.drain(4), fixture.drain(0), fixture.drain(4)),
            ("0>aaaa".into(), "1>x".into(), "0!bbbb".into())
        );
        assert_eq!(fixture.drain(4), "");
    }

    #[test]
    fn drop_oldest_drops_and_counts_the_oldest_chunk() {
        let mut fixture = Fixture::new(1, OverflowPolicy::DropOldest);
        for text in ["a", "b", "c"] {
            fixture.push_output(0, Stream::Stdout, &text.repeat(50));
        }
        fixture.push_done(0);
        assert_eq!(fixture.queue.bytes(), 100);
        assert_eq!(
            fixture.drain(usize::MAX),
            format!("0>{}, 0>{}, 0 done-51", "b".repeat(50), "c".repeat(50))
        );
    }

    #[test]
    fn dropped_bytes_count_in_the_run_that_wrote_them() {
        let mut fixture = Fixture::new(1, OverflowPolicy::DropOldest);
        let child = ChildId::from_u64(0);
        let delay = std::time::Duration::ZERO;
        fixture.push_output(0, Stream::Stdout, &"a".repeat(90));
        fixture.queue.push(Event::Restarting { child, outcome: OUTCOME, delay, restarts: 1 }, LIMITS);
        fixture.queue.push(Event::Restarted { child, pid: 1 }, LIMITS);
        fixture.push_output(0, Stream::Stdout, &"b".repeat(60));
        fixture.push_output(0, Stream::Stdout, &"c".repeat(60));
        fixture.push_output(0, Stream::Stdout, &"d".repeat(60));
        fixture.queue.push(Event::Restarting { child, outcome: OUTCOME, delay, restarts: 2 }, LIMITS);
        // It is killed before its next run: the result is that of the last.
        fixture.push_done(0);
        let mut events = Vec::new();
        fixture.queue.drain(&mut events, usize::MAX, |event, _| event);
        let dropped = |event: &Event| match event {
            Event::Restarting { outcome, .. } | Event::Done { outcome, .. } => Some(outcome.dropped),
            _ => None,
        };
        assert_eq!(events.iter().filter_map(dropped).collect::<Vec<_>>(), [91, 121, 121]);
    }

    #[test]
    fn at_most_one_stop_and_one_writable_are_queued() {
        let mut fixture = Fixture::new(1, OverflowPolicy::Block);
        for signal in [19, 20, 21] {
            fixture.queue.push(Event::Writable { child: ChildId::from_u64(0) }, LIMITS);
            fixture.queue.push(Event::Stopped { child: ChildId::from_u64(0), signal }, LIMITS);
        }
        assert_eq!(fixture.drain(0), "0 writable, 0 stopped 21");
    }

    #[test]
    fn oldest_restarts_are_removed_and_their_output_is_kept() {
        let mut fixture = Fixture::new(1, OverflowPolicy::Block);
        let child = ChildId::from_u64(0);
        let runs = RESTARTS_MAX as u64 + 2;
        for restarts in 1..=runs {
            fixture.push_output(0, Stream::Stdout, if restarts <= 3 { "a" } else { "" });
            fixture.queue.push(Event::Exited { child, exit: EXIT }, LIMITS);
            let delay = std::time::Duration::ZERO;
            fixture.queue.push(Event::Restarting { child, outcome: OUTCOME, delay, restarts }, LIMITS);
            fixture.queue.push(Event::Restarted { child, pid: restarts as u32 }, LIMITS);
        }
        let drained = fixture.drain(usize::MAX);
        let first = "0>a, 0>a, 0 restarted-2, 0>a, 0 exited, 0 restart-3, 0 restarted-3";
        assert!(drained.starts_with(first), "{drained}");
        assert!(drained.ends_with(&format!("0 restart-{runs}, 0 restarted-{runs}")), "{drained}");
        assert_eq!(fixture.queue.get(child).unwrap().pid, runs as u32);
        // All of them are taken, so the next is not one too many.
        assert_eq!(fixture.queue.get(child).unwrap().restarts, 0);
    }
}
