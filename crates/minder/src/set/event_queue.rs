//! The events that wait for the caller.

use std::collections::VecDeque;

use super::child::ChildState;
use super::event::QueuedEvent;
use crate::event::{ChildId, Stream};

/// The queue of events.
#[derive(Debug, Default)]
pub(super) struct EventQueue(VecDeque<QueuedEvent>);

impl EventQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, event: QueuedEvent) {
        self.0.push_back(event);
    }

    /// Puts an event before all others.
    pub(super) fn push_first(&mut self, event: QueuedEvent) {
        self.0.push_front(event);
    }

    pub(super) fn pop(&mut self) -> Option<QueuedEvent> {
        self.0.pop_front()
    }

    /// Removes the last event if it is a wake-up.
    pub(super) fn remove_last_wakeup(&mut self) {
        if matches!(self.0.back(), Some(QueuedEvent::Woken)) {
            self.0.pop_back();
        }
    }

    /// Removes the room in the input of a child's last run.
    pub(super) fn remove_writable(&mut self, id: ChildId) {
        self.0.retain(|event| !matches!(event, QueuedEvent::Writable(other) if *other == id));
    }

    /// Removes the end of a child that is started again after all.
    pub(super) fn remove_abandoned(&mut self, id: ChildId) {
        self.0.retain(|event| !matches!(event, QueuedEvent::Abandoned(other) if *other == id));
    }

    /// Queues an event for each chunk in memory that has none.
    pub(super) fn push_output(&mut self, id: ChildId, child: &mut ChildState, stream: Stream) {
        let state = child.output.stream(stream);
        while state.queued_events < state.buffered.len() {
            state.queued_events += 1;
            self.push(QueuedEvent::Output(id, stream));
        }
    }

    /// Queues the end of a stream whose output is handed over as it arrives, once all of it is queued.
    pub(super) fn push_eof(&mut self, id: ChildId, child: &mut ChildState, stream: Stream) {
        if child.output.take_streamed_eof(stream) {
            self.push(QueuedEvent::Eof(id, stream));
        }
    }

    /// Queues that there is room in the standard input of a child, if there is.
    pub(super) fn push_room(&mut self, id: ChildId, has_room: bool) {
        if has_room {
            self.push(QueuedEvent::Writable(id));
        }
    }

    /// Queues the end of a child, once it exited, its outputs ended and no kill is under way.
    pub(super) fn push_drain(&mut self, id: ChildId, child: &mut ChildState) {
        if child.begin_drain() {
            self.push(QueuedEvent::Drain(id));
        }
    }
}
