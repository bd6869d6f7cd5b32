//! What waits to be taken by the host: child by child, in large pieces.

use std::collections::{HashMap, VecDeque};

use super::stdin_queue::StdinQueue;
use crate::{Chunk, Event, ExitInfo, OverflowPolicy, Stream, Token};

/// The children that were started and whose `Done` was not taken, and what is to be told of them.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    children: HashMap<Token, ChildQueue>,
    /// Children with something to tell, by the age of the oldest of it.
    ready: VecDeque<Token>,
    /// Bytes of output that wait.
    bytes: usize,
}

/// One child.
#[derive(Debug)]
pub(super) struct ChildQueue {
    pub(super) id: u32,
    pub(super) input: StdinQueue,
    when_full: OverflowPolicy,
    items: VecDeque<Event>,
    bytes: usize,
    dropped: u64,
    /// Its end, kept back until all of its output is there.
    exit: Option<ExitInfo>,
}

impl ChildQueue {
    pub(super) fn new(id: u32, when_full: OverflowPolicy, input: StdinQueue) -> Self {
        Self { id, input, when_full, items: VecDeque::new(), bytes: 0, dropped: 0, exit: None }
    }
}

/// The sizes that an outbox goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLimits {
    /// Small pieces are joined up to this size.
    pub(super) piece: usize,
    /// For a child whose oldest output may be dropped: the most that waits of it.
    pub(super) child_bytes_max: usize,
    /// Whether an exit is told when it comes, instead of after the last byte.
    pub(super) exit_at_once: bool,
}

impl EventQueue {
    pub(super) fn insert(&mut self, token: Token, kid: ChildQueue) {
        self.children.insert(token, kid);
    }

    pub(super) fn get(&mut self, token: Token) -> Option<&mut ChildQueue> {
        self.children.get_mut(&token)
    }

    /// Forgets a child of which nothing was told yet.
    pub(super) fn remove(&mut self, token: Token) {
        self.children.remove(&token);
    }

    /// How many children are here: each started one until its `Done` is taken.
    pub(super) fn children(&self) -> usize {
        self.children.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn has_events(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) -> Vec<ChildQueue> {
        self.ready.clear();
        self.bytes = 0;
        self.children.drain().map(|(_, kid)| kid).collect()
    }

    /// Puts an event behind those of its child. One of a child that nobody knows is dropped.
    pub(super) fn push(&mut self, event: Event, bounds: QueueLimits) {
        let Some(token) = event.token() else { return };
        let Some(kid) = self.children.get_mut(&token) else { return };
        let before = (kid.items.is_empty(), kid.bytes);
        match event {
            Event::Output(_, stream, chunk) => kid.push_output(token, stream, chunk, bounds),
            Event::Exited(_, exit) if !bounds.exit_at_once => kid.exit = Some(exit),
            Event::Done(token, mut outcome) => {
                outcome.dropped += kid.dropped;
                kid.input = StdinQueue::new(false);
                kid.items.extend(kid.exit.take().map(|exit| Event::Exited(token, exit)));
                kid.items.push_back(Event::Done(token, outcome));
            }
            // A host that takes nothing must not make a queue of these: one of a kind says it all.
            Event::Writable(_) if kid.items.iter().any(|item| matches!(item, Event::Writable(_))) => (),
            Event::Stopped(_, signal) => kid.push_stop(token, signal),
            event => kid.items.push_back(event),
        }
        self.bytes = self.bytes - before.1 + kid.bytes;
        if before.0 && !kid.items.is_empty() {
            self.ready.push_back(token);
        }
    }

    /// Moves events to `into`, child by child, the one with the oldest news first, until
    /// `max_bytes` of output are moved; at least one, if there is one. A child that is not
    /// finished goes behind the others.
    pub(super) fn take(&mut self, into: &mut Vec<Event>, max_bytes: usize) -> usize {
        let (before, mut moved) = (into.len(), 0);
        while let Some(token) = self.ready.pop_front() {
            let Some(kid) = self.children.get_mut(&token) else { continue };
            let mut done = false;
            while let Some(item) = kid.items.front() {
                let length = length(item);
                if moved + length > max_bytes && into.len() > before {
                    self.ready.push_back(token);
                    return into.len() - before;
                }
                done = matches!(item, Event::Done(..));
                kid.bytes -= length;
                self.bytes -= length;
                moved += length;
                let mut item = kid.items.pop_front();
                if let Some(Event::Output(_, _, chunk)) = &mut item {
                    chunk.set_counted(true);
                }
                into.extend(item);
            }
            if done {
                self.children.remove(&token);
            }
        }
        into.len() - before
    }
}

impl ChildQueue {
    /// Joins small pieces. Where the oldest may be dropped it is dropped here, and what waits here
    /// leaves the child's share to what comes: with the share full of old bytes the set would
    /// drop new ones.
    fn push_output(&mut self, token: Token, stream: Stream, mut chunk: Chunk, bounds: QueueLimits) {
        self.bytes += chunk.len();
        chunk.set_counted(self.when_full != OverflowPolicy::DropOldest);
        let own = match self.items.back_mut() {
            Some(Event::Output(_, last, room)) if *last == stream => room.try_append(chunk, bounds.piece),
            _ => Some(chunk),
        };
        self.items.extend(own.map(|chunk| Event::Output(token, stream, chunk)));
        while self.when_full == OverflowPolicy::DropOldest && self.bytes > bounds.child_bytes_max {
            let mut outputs =
                self.items.iter().enumerate().filter(|(_, item)| matches!(item, Event::Output(..)));
            // The newest stays, whatever its size.
            let (Some((oldest, _)), Some(_)) = (outputs.next(), outputs.next()) else { break };
            if let Some(item) = self.items.remove(oldest) {
                self.bytes -= length(&item);
                self.dropped += length(&item) as u64;
            }
        }
    }

    /// Only the last stop counts.
    fn push_stop(&mut self, token: Token, signal: i32) {
        self.items.retain(|item| !matches!(item, Event::Stopped(..)));
        self.items.push_back(Event::Stopped(token, signal));
    }
}

fn length(event: &Event) -> usize {
    match event {
        Event::Output(_, _, chunk) => chunk.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::chunk::{MemoryBudget, MemoryQuota};
    use crate::{ExitStatus, Outcome};

    const BOUNDS: QueueLimits = QueueLimits { piece: 64, child_bytes_max: 100, exit_at_once: false };
    const EXIT: ExitInfo = ExitInfo { status: ExitStatus::Exited(0), usage: None };

    struct Scene {
        account: Arc<MemoryQuota>,
        outbox: EventQueue,
    }

    impl Scene {
        fn new(kids: u64, when_full: OverflowPolicy) -> Self {
            let budget = MemoryBudget::new(1 << 20, 64, Box::new(|| ()));
            let mut outbox = EventQueue::default();
            for token in 0..kids {
                outbox.insert(Token(token), ChildQueue::new(0, when_full, StdinQueue::new(false)));
            }
            Self { account: MemoryQuota::new(&budget, 1 << 20), outbox }
        }

        fn say(&mut self, token: u64, stream: Stream, text: &str) {
            let chunk = Chunk::new(text.as_bytes().to_vec(), &self.account);
            self.outbox.push(Event::Output(Token(token), stream, chunk), BOUNDS);
        }

        fn end(&mut self, token: u64) {
            let outcome = Outcome {
                exit: EXIT,
                leaked: false,
                left_running: false,
                dropped: 1,
                killed: false,
                timed_out: false,
                suspended: std::time::Duration::ZERO,
            };
            self.outbox.push(Event::Done(Token(token), outcome), BOUNDS);
        }

        fn take(&mut self, max: usize) -> String {
            let mut events = Vec::new();
            assert_eq!(self.outbox.take(&mut events, max), events.len());
            let told = events.iter().map(|event| match event {
                Event::Output(token, stream, chunk) => {
                    let stream = if *stream == Stream::Stdout { '>' } else { '!' };
                    format!("{}{stream}{}", token.0, String::from_utf8_lossy(chunk))
                }
                Event::Exited(token, _) => format!("{} exited", token.0),
                Event::Done(token, outcome) => format!("{} done-{}", token.0, outcome.dropped),
                Event::Stopped(token, signal) => format!("{} stopped {signal}", token.0),
                Event::Writable(token) => format!("{} writable", token.0),
                event => format!("{event:?}"),
            });
            told.collect::<Vec<_>>().join(", ")
        }
    }

    #[test]
    fn by_child_in_large_pieces_with_the_end_after_the_last_byte() {
        let mut scene = Scene::new(2, OverflowPolicy::Block);
        scene.say(0, Stream::Stdout, "a");
        scene.say(1, Stream::Stdout, "x");
        scene.outbox.push(Event::Exited(Token(0), EXIT), BOUNDS);
        scene.say(0, Stream::Stdout, "b");
        scene.say(0, Stream::Stderr, "c");
        scene.say(0, Stream::Stdout, "d");
        scene.end(0);
        assert_eq!(scene.take(usize::MAX), "0>ab, 0!c, 0>d, 0 exited, 0 done-1, 1>x");
        assert_eq!((scene.outbox.children(), scene.outbox.bytes(), scene.outbox.has_events()), (1, 0, false));
    }

    #[test]
    fn who_is_not_finished_goes_behind_the_others() {
        let mut scene = Scene::new(2, OverflowPolicy::Block);
        scene.say(0, Stream::Stdout, "aaaa");
        scene.say(0, Stream::Stderr, "bbbb");
        scene.say(1, Stream::Stdout, "x");
        assert_eq!(
            (scene.take(4), scene.take(0), scene.take(4)),
            ("0>aaaa".into(), "1>x".into(), "0!bbbb".into())
        );
        assert_eq!(scene.take(4), "");
    }

    #[test]
    fn the_oldest_is_dropped_and_counted_where_that_was_chosen() {
        let mut scene = Scene::new(1, OverflowPolicy::DropOldest);
        for text in ["a", "b", "c"] {
            scene.say(0, Stream::Stdout, &text.repeat(50));
        }
        scene.end(0);
        assert_eq!(scene.outbox.bytes(), 100);
        assert_eq!(scene.take(usize::MAX), format!("0>{}, 0>{}, 0 done-51", "b".repeat(50), "c".repeat(50)));
    }

    #[test]
    fn stops_and_room_make_no_queue() {
        let mut scene = Scene::new(1, OverflowPolicy::Block);
        for signal in [19, 20, 21] {
            scene.outbox.push(Event::Writable(Token(0)), BOUNDS);
            scene.outbox.push(Event::Stopped(Token(0), signal), BOUNDS);
        }
        assert_eq!(scene.take(0), "0 writable, 0 stopped 21");
    }
}
