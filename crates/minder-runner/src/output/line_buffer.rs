//! `--line-buffer`: output is written line by line, as it arrives.

use std::collections::VecDeque;

use minder::{Chunk, Stream};

use crate::output::decorate::LineDecorator;
use crate::output::decorate::LineStyle;
use crate::output::sequencer::OutputSequencer;

/// The longest line that is kept in memory until it is complete. A longer one is written as it
/// arrives, and no other job writes until it ends.
const LINE_MAX: usize = 1 << 20;
/// The least that is kept of an incomplete line, however many jobs run.
const LINE_MIN: usize = 4 << 10;

/// Returns how much of an incomplete line each stream of a job may keep, so that all jobs together
/// keep half of `buffer`.
pub(crate) fn line_max(buffer: usize, slots: usize) -> usize {
    (buffer / slots.max(1) / 4).clamp(LINE_MIN, LINE_MAX)
}

/// The lines of one job.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    /// The beginning of an incomplete line of each stream.
    partial: [Vec<u8>; 2],
    /// `true` for each stream with an incomplete line that was partly written: the job stays live until
    /// it ends.
    open_lines: [bool; 2],
    /// Chunks that arrived while another job was live. They stay charged to the child set until
    /// they are written.
    queued: VecDeque<(Stream, Chunk)>,
}

/// The destination and the decoration of a job's lines.
pub(crate) struct LineSink<'a> {
    pub(crate) sequencer: &'a OutputSequencer,
    pub(crate) job: u64,
    pub(crate) line_max: usize,
    pub(crate) style: Option<&'a LineStyle>,
    pub(crate) decorators: &'a mut [LineDecorator; 2],
}

impl LineBuffer {
    /// Writes the header of a job, or keeps it for the first line if another job is live.
    pub(crate) fn begin(&mut self, header: Vec<u8>, sink: &mut LineSink<'_>) {
        let decoration = sink.style.map(|style| (style, &mut sink.decorators[Stream::Stdout as usize]));
        if !header.is_empty()
            && !sink.sequencer.show_lines(sink.job, Stream::Stdout, [&header, &[]], decoration, false)
        {
            self.partial[Stream::Stdout as usize] = header;
        }
    }

    /// Writes the lines of a chunk, or queues it. Returns `true` if the job stopped being live.
    pub(crate) fn push(&mut self, stream: Stream, chunk: Chunk, sink: &mut LineSink<'_>) -> bool {
        if !self.queued.is_empty() {
            self.queued.push_back((stream, chunk));
            return self.retry(sink);
        }
        match self.show(stream, &chunk, sink) {
            Some(released) => released,
            None => {
                self.queued.push_back((stream, chunk));
                false
            }
        }
    }

    /// Writes what was queued, as far as possible. Returns `true` if the job stopped being live.
    pub(crate) fn retry(&mut self, sink: &mut LineSink<'_>) -> bool {
        let mut released = false;
        while let Some((stream, chunk)) = self.queued.pop_front() {
            match self.show(stream, &chunk, sink) {
                Some(was_released) => released |= was_released,
                None => {
                    self.queued.push_front((stream, chunk));
                    break;
                }
            }
        }
        released
    }

    /// Writes what was queued of the streams whose line was partly written, at the end of the job: the rest
    /// of a line belongs to its beginning, even while a reader takes nothing. Another job is not live then.
    pub(crate) fn finish_open_lines(&mut self, sink: &mut LineSink<'_>) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if !self.open_lines[stream as usize] {
                continue;
            }
            let mut others = VecDeque::new();
            for (of, chunk) in self.queued.drain(..) {
                if of == stream {
                    let decoration = sink.style.map(|style| (style, &mut sink.decorators[stream as usize]));
                    sink.sequencer.show_chunk(sink.job, stream, chunk, decoration);
                } else {
                    others.push_back((of, chunk));
                }
            }
            self.queued = others;
        }
    }

    /// Ends the incomplete lines that were partly written, before the job runs again, which may be
    /// much later or never. Returns `true` if the job was live.
    pub(crate) fn close_open_lines(&mut self, sink: &mut LineSink<'_>) -> bool {
        let mut had_stdout = false;
        for stream in [Stream::Stdout, Stream::Stderr] {
            if std::mem::take(&mut self.open_lines[stream as usize]) {
                let decoration = sink.style.map(|style| (style, &mut sink.decorators[stream as usize]));
                had_stdout |= sink.sequencer.close_line(sink.job, stream, decoration);
            }
        }
        if had_stdout {
            sink.sequencer.release(sink.job);
        }
        had_stdout
    }

    /// Returns `true` if chunks are queued because another job is live.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Passes on what was not written by the end of the job, stream by stream, in the order of the
    /// bytes.
    pub(crate) fn take_rest(&mut self, mut take: impl FnMut(Stream, &[u8])) {
        if self.queued.is_empty() && self.partial.iter().all(Vec::is_empty) {
            return;
        }
        for stream in [Stream::Stdout, Stream::Stderr] {
            take(stream, &std::mem::take(&mut self.partial[stream as usize]));
            self.queued.iter().filter(|(of, _)| *of == stream).for_each(|(_, chunk)| take(stream, chunk));
        }
        self.queued.clear();
    }

    /// Writes the complete lines of `bytes` and keeps the rest. Returns whether the job stopped
    /// being live, or `None` if another job is live.
    fn show(&mut self, stream: Stream, bytes: &[u8], sink: &mut LineSink<'_>) -> Option<bool> {
        let partial = &mut self.partial[stream as usize];
        let open_lines = self.open_lines[stream as usize];
        let end = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        let long = !open_lines && partial.len() * usize::from(end == 0) + bytes.len() - end > sink.line_max;
        let shown = if long || (open_lines && end == 0) { bytes } else { &bytes[..end] };
        if shown.is_empty() {
            partial.extend_from_slice(bytes);
            return Some(false);
        }
        let decoration = sink.style.map(|style| (style, &mut sink.decorators[stream as usize]));
        if !sink.sequencer.show_lines(sink.job, stream, [partial, shown], decoration, long) {
            return None;
        }
        partial.clear();
        partial.extend_from_slice(&bytes[shown.len()..]);
        // The line stays open until its end is written.
        self.open_lines[stream as usize] = long || (open_lines && end == 0);
        let released = open_lines && self.open_lines == [false; 2];
        if released {
            sink.sequencer.release(sink.job);
        }
        Some(released)
    }
}
