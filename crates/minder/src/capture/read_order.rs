//! The order in which the pieces of two outputs were read.

use std::collections::VecDeque;

use crate::event::Stream;

/// The lengths of the pieces, in the order in which they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadOrder {
    pieces: VecDeque<(Stream, u64)>,
    /// The number of bytes of each stream that precede the first piece.
    before: [u64; 2],
    /// The number of bytes of each stream that precede the first one that is kept.
    skipped: [u64; 2],
}

impl ReadOrder {
    /// Adds a piece. A piece of the same stream becomes longer.
    pub(super) fn push(&mut self, stream: Stream, count: usize) {
        match self.pieces.back_mut() {
            Some((last, length)) if *last == stream => *length += count as u64,
            _ => self.pieces.push_back((stream, count as u64)),
        }
    }

    /// Notes how many bytes at the start of each stream were dropped.
    pub(super) fn skip(&mut self, skipped: [u64; 2]) {
        self.skipped = skipped;
        while let Some(&(stream, length)) = self.pieces.front() {
            let end = self.before[stream as usize] + length;
            if end > skipped[stream as usize] {
                return;
            }
            self.before[stream as usize] = end;
            self.pieces.pop_front();
        }
    }

    /// Returns the pieces of these outputs.
    pub(super) fn pieces<'a>(&'a self, outputs: [&'a [u8]; 2]) -> impl Iterator<Item = (Stream, &'a [u8])> {
        let mut position = self.before;
        self.pieces.iter().filter_map(move |&(stream, length)| {
            let place = stream as usize;
            let kept = outputs[place];
            let within = |at: u64| {
                usize::try_from(at.saturating_sub(self.skipped[place]))
                    .map_or(kept.len(), |at| at.min(kept.len()))
            };
            let start = within(position[place]);
            position[place] += length;
            let piece = &kept[start..within(position[place])];
            (!piece.is_empty()).then_some((stream, piece))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_those_of_the_bytes_that_were_kept() {
        let mut order = ReadOrder::default();
        for (stream, count) in
            [(Stream::Stdout, 2), (Stream::Stdout, 1), (Stream::Stderr, 2), (Stream::Stdout, 3)]
        {
            order.push(stream, count);
        }
        let pieces = |order: &ReadOrder, outputs| {
            let text =
                |(stream, piece): (Stream, &[u8])| (stream, String::from_utf8_lossy(piece).into_owned());
            order.pieces(outputs).map(text).collect::<Vec<_>>()
        };
        let piece = |stream, text: &str| (stream, text.to_owned());
        let all = [piece(Stream::Stdout, "abc"), piece(Stream::Stderr, "xy"), piece(Stream::Stdout, "def")];
        assert_eq!(pieces(&order, [b"abcdef", b"xy"]), all);
        // The head.
        assert_eq!(pieces(&order, [b"ab", b"xy"]), [piece(Stream::Stdout, "ab"), all[1].clone()]);
        // The tail.
        order.skip([4, 1]);
        assert_eq!(order.pieces.len(), 2);
        let tail = [piece(Stream::Stderr, "y"), piece(Stream::Stdout, "ef")];
        assert_eq!(pieces(&order, [b"ef", b"y"]), tail);
    }
}
