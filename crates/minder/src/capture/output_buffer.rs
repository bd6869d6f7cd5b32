//! Captured output, and what remains of it when it is too much.

use super::options::{CaptureOptions, Truncate};
use super::read_order::ReadOrder;
use crate::event::Stream;
use crate::{Error, ErrorKind, Operation, Result};

/// The captured bytes of one output.
#[derive(Debug, Default)]
pub(super) struct OutputBuffer {
    bytes: Vec<u8>,
    /// The number of bytes at the front that were dropped and are not removed yet.
    start: usize,
    dropped: u64,
}

impl OutputBuffer {
    /// Returns the memory to append to. [`OutputLimit::apply`] follows.
    pub(super) fn memory(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Returns the bytes that were kept, and how many were not.
    pub(super) fn into_kept(mut self) -> (Vec<u8>, u64) {
        self.bytes.drain(..self.start);
        (self.bytes, self.dropped)
    }

    fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    fn drop_end(&mut self, count: usize) {
        self.bytes.truncate(self.bytes.len() - count);
        self.dropped += count as u64;
    }

    fn drop_front(&mut self, count: usize) {
        self.start += count;
        self.dropped += count as u64;
        // Each byte is moved once at most on average.
        if self.start > self.len() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }
}

/// The limit on the bytes of all outputs, and the bytes that are kept beyond it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputLimit {
    max_bytes: usize,
    truncate: Option<Truncate>,
    record_order: bool,
}

impl OutputLimit {
    pub(super) fn new(options: &CaptureOptions) -> Self {
        let CaptureOptions { max_bytes, truncate, record_order, .. } = *options;
        Self { max_bytes, truncate, record_order }
    }

    /// Adds a piece to the order, if it is to be recorded, after [`apply`](Self::apply). `outputs` are the
    /// standard output and the standard error.
    pub(super) fn record(
        self,
        order: &mut ReadOrder,
        stream: Stream,
        count: usize,
        outputs: [&OutputBuffer; 2],
    ) {
        if !self.record_order {
            return;
        }
        let dropped = outputs.map(|output| output.dropped);
        match self.truncate {
            // What follows the gap is not kept.
            Some(Truncate::KeepHead) if dropped[stream as usize] > count as u64 => (),
            Some(Truncate::KeepTail) => {
                order.push(stream, count);
                order.skip(dropped);
            }
            _ => order.push(stream, count),
        }
    }

    /// Drops what is too much, after `count` bytes were appended to the buffer at `place`.
    ///
    /// # Errors
    /// - `Limit`: nothing may be dropped.
    pub(super) fn apply(self, buffers: &mut [OutputBuffer], place: usize, count: usize) -> Result<()> {
        // Bytes after a gap are not part of the head.
        if self.truncate == Some(Truncate::KeepHead) && buffers[place].dropped > 0 {
            buffers[place].drop_end(count);
        }
        let kept: usize = buffers.iter().map(OutputBuffer::len).sum();
        let mut excess = kept.saturating_sub(self.max_bytes);
        while excess > 0 {
            let Some(truncate) = self.truncate else { return Err(too_much()) };
            // The longest becomes as short as the next, so that a few lines of one output survive a flood
            // of another.
            let (longest, next) = longest(buffers);
            let count = (longest.len() - next).max(excess.div_ceil(2)).min(excess).min(longest.len());
            match truncate {
                Truncate::KeepHead => longest.drop_end(count),
                Truncate::KeepTail => longest.drop_front(count),
            }
            excess -= count;
        }
        Ok(())
    }
}

/// The error of outputs that are longer than may be kept.
pub(super) fn too_much() -> Error {
    let reason = "it wrote more than may be captured";
    Error::of_kind(ErrorKind::Limit, "capture the output of", reason).during(Operation::Read)
}

/// Returns the longest buffer, and the length of the next.
fn longest(buffers: &mut [OutputBuffer]) -> (&mut OutputBuffer, usize) {
    let mut place = 0;
    let mut next = 0;
    for other in 1..buffers.len() {
        next = next.max(buffers[place].len().min(buffers[other].len()));
        if buffers[other].len() > buffers[place].len() {
            place = other;
        }
    }
    (&mut buffers[place], next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends these texts in turn, each to its output. Returns what is kept of two outputs.
    fn kept(max_bytes: usize, truncate: Truncate, texts: &[(usize, &str)]) -> [(String, u64); 2] {
        let limit = OutputLimit { max_bytes, truncate: Some(truncate), record_order: false };
        let mut buffers = <[OutputBuffer; 2]>::default();
        for (place, text) in texts {
            buffers[*place].memory().extend_from_slice(text.as_bytes());
            limit.apply(&mut buffers, *place, text.len()).expect("bytes may be dropped");
        }
        buffers.map(|buffer| {
            let (bytes, dropped) = buffer.into_kept();
            (String::from_utf8(bytes).expect("text"), dropped)
        })
    }

    #[test]
    fn head_has_no_gap_and_tail_ends_with_the_last_byte() {
        let texts = [(0, "abc"), (0, "def"), (1, "x"), (0, "ghi")];
        assert_eq!(kept(4, Truncate::KeepHead, &texts), [("abc".into(), 6), ("x".into(), 0)]);
        assert_eq!(kept(4, Truncate::KeepTail, &texts), [("ghi".into(), 6), ("x".into(), 0)]);
        assert_eq!(kept(0, Truncate::KeepTail, &texts), [(String::new(), 9), (String::new(), 1)]);
        assert_eq!(kept(10, Truncate::KeepHead, &texts), [("abcdefghi".into(), 0), ("x".into(), 0)]);
    }

    #[test]
    fn each_output_keeps_half_if_both_are_long() {
        for truncate in [Truncate::KeepHead, Truncate::KeepTail] {
            let texts = ["a".repeat(1000), "b".repeat(900)];
            let [(first, _), (second, dropped)] = kept(100, truncate, &[(0, &texts[0]), (1, &texts[1])]);
            assert_eq!((first.len(), second.len(), dropped), (50, 50, 850));
        }
    }
}
