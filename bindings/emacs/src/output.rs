//! The items that Lisp takes: joined output, messages and ends of children.

use std::collections::{HashMap, VecDeque};

use minder::frame::{FrameDecoder, FrameFormat};
use minder::{BackgroundSet, Chunk, Event, ExitStatus, Stream};

/// One thing that happened to a child.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) child: u64,
    pub(crate) event: ChildEvent,
}

/// An event of a child. `minder.el` has the same names for the numbers of [`ChildEvent::kind`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChildEvent {
    Output(Vec<u8>),
    ErrorOutput(Vec<u8>),
    /// A whole message of a child with framing.
    Message(Vec<u8>),
    /// A message that was skipped, and why.
    MessageError(String),
    /// There is room again in the queue of the input.
    Writable,
    /// It exited with this code. Nothing follows.
    Exited(i32),
    /// This signal killed it. Nothing follows.
    Signaled(i32),
    /// The same, and it wrote a core file.
    DumpedCore(i32),
}

impl ChildEvent {
    /// Returns the number of the kind.
    pub(crate) fn kind(&self) -> i64 {
        match self {
            Self::Output(_) => 0,
            Self::ErrorOutput(_) => 1,
            Self::Message(_) => 2,
            Self::MessageError(_) => 3,
            Self::Writable => 4,
            Self::Exited(_) => 5,
            Self::Signaled(_) => 6,
            Self::DumpedCore(_) => 7,
        }
    }

    /// Returns how many bytes of output it has.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Output(bytes) | Self::ErrorOutput(bytes) | Self::Message(bytes) => bytes.len(),
            _ => 0,
        }
    }

    fn of_exit(status: ExitStatus) -> Self {
        match status {
            ExitStatus::Signaled { signal, core_dumped: true } => Self::DumpedCore(signal),
            ExitStatus::Signaled { signal, .. } => Self::Signaled(signal),
            // The status is unknown if other code of Emacs has taken it.
            status => Self::Exited(status.code().unwrap_or(-1)),
        }
    }
}

/// The items that were taken from the set and not yet by Lisp, and the decoders of messages.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    items: VecDeque<Item>,
    decoders: HashMap<u64, FrameDecoder>,
}

impl Outbox {
    /// Makes messages of the standard output of a child.
    pub(crate) fn decode(&mut self, child: u64, format: FrameFormat) {
        self.decoders.insert(child, FrameDecoder::new(format));
    }

    /// Takes events of a set, at most this many bytes, if no item is left.
    pub(crate) fn fill(&mut self, set: &BackgroundSet, max_bytes: usize) {
        if !self.items.is_empty() {
            return;
        }
        let mut events = Vec::new();
        set.drain_events(&mut events, max_bytes);
        for event in events {
            self.push(event, max_bytes);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn pop(&mut self) -> Option<Item> {
        self.items.pop_front()
    }

    /// Returns an item that could not be handed over.
    pub(crate) fn unpop(&mut self, item: Item) {
        self.items.push_front(item);
    }

    fn push(&mut self, event: Event, max_bytes: usize) {
        let Some(child) = event.child().map(minder::ChildId::as_u64) else { return };
        let event = match event {
            Event::Output { stream, chunk, .. } => return self.push_output(child, stream, chunk, max_bytes),
            Event::Writable { .. } => ChildEvent::Writable,
            Event::Done { outcome, .. } => {
                self.decoders.remove(&child);
                ChildEvent::of_exit(outcome.exit.status)
            }
            // The exit comes with `Done`; children are not started again.
            _ => return,
        };
        self.items.push_back(Item { child, event });
    }

    fn push_output(&mut self, child: u64, stream: Stream, chunk: Chunk, max_bytes: usize) {
        if stream == Stream::Stdout
            && let Some(decoder) = self.decoders.get_mut(&child)
        {
            push_messages(&mut self.items, child, decoder, &chunk);
            return;
        }
        let is_error = stream == Stream::Stderr;
        if let Some(Item { child: last, event }) = self.items.back_mut()
            && *last == child
        {
            match event {
                ChildEvent::Output(bytes) if !is_error && bytes.len() + chunk.len() <= max_bytes => {
                    return bytes.extend_from_slice(&chunk);
                }
                ChildEvent::ErrorOutput(bytes) if is_error && bytes.len() + chunk.len() <= max_bytes => {
                    return bytes.extend_from_slice(&chunk);
                }
                _ => (),
            }
        }
        let bytes = chunk.into_vec();
        let event = if is_error { ChildEvent::ErrorOutput(bytes) } else { ChildEvent::Output(bytes) };
        self.items.push_back(Item { child, event });
    }
}

/// Appends the messages that end in these bytes. A message that cannot be read is skipped.
fn push_messages(items: &mut VecDeque<Item>, child: u64, decoder: &mut FrameDecoder, bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let event = match decoder.next_frame(&mut rest) {
            Ok(Some(frame)) => ChildEvent::Message(frame.bytes().to_vec()),
            Ok(None) => return,
            Err(error) => {
                let text = error.to_string();
                decoder.resync();
                ChildEvent::MessageError(text)
            }
        };
        items.push_back(Item { child, event });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_do_not_depend_on_where_the_bytes_are_cut() {
        let bytes = b"Content-Length: 3\r\n\r\n[1]Content-Length: 2\r\n\r\n{}";
        for cut in 0..bytes.len() {
            let mut items = VecDeque::new();
            let mut decoder = FrameDecoder::new(FrameFormat::ContentLength);
            push_messages(&mut items, 7, &mut decoder, &bytes[..cut]);
            push_messages(&mut items, 7, &mut decoder, &bytes[cut..]);
            let event: Vec<ChildEvent> = items.into_iter().map(|item| item.event).collect();
            assert_eq!(
                event,
                [ChildEvent::Message(b"[1]".to_vec()), ChildEvent::Message(b"{}".to_vec())],
                "{cut}"
            );
        }
    }

    #[test]
    fn message_that_cannot_be_read_is_skipped() {
        let mut items = VecDeque::new();
        let mut decoder = FrameDecoder::new(FrameFormat::ContentLength);
        push_messages(&mut items, 7, &mut decoder, b"nonsense\r\n\r\nContent-Length: 2\r\n\r\n{}");
        let errors = items.iter().filter(|item| matches!(item.event, ChildEvent::MessageError(_))).count();
        assert_eq!(errors, 1, "{items:?}");
        assert_eq!(items.pop_back().map(|item| item.event), Some(ChildEvent::Message(b"{}".to_vec())));
    }
}
