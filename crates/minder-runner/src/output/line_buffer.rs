//! `--line-buffer`: whole lines as they come.

use std::collections::VecDeque;

use minder::{Chunk, Stream};

use crate::output::decorate::LineDecorator;
use crate::output::decorate::LineStyle;
use crate::output::sequencer::OutputSequencer;

/// The longest line that waits for its end in memory. A longer one has the screen for itself until
/// it ends.
const LINE_MAX: usize = 1 << 20;
/// The least that is kept of a line, however many jobs there are.
const LINE_MIN: usize = 4 << 10;

/// How much of an unfinished line each output of each job may keep, so that all together keep half
/// of the bound.
pub(crate) fn line_max(buffer: usize, slots: usize) -> usize {
    (buffer / slots.max(1) / 4).clamp(LINE_MIN, LINE_MAX)
}

/// The lines of one job.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    /// The beginning of a line, of each output.
    partial: [Vec<u8>; 2],
    /// Which outputs have a line under way that was partly shown: the job has the screen until it
    /// ends.
    open_lines: [bool; 2],
    /// What came while another job's long line had the screen. The set charges it until it is
    /// shown.
    queued: VecDeque<(Stream, Chunk)>,
}

/// How a job's lines are written.
pub(crate) struct LineSink<'a> {
    pub(crate) sequencer: &'a OutputSequencer,
    pub(crate) job: u64,
    pub(crate) line_max: usize,
    pub(crate) style: Option<&'a LineStyle>,
    pub(crate) decorators: &'a mut [LineDecorator; 2],
}

impl LineBuffer {
    /// Shows what stands before the first line, or with it if another job has the screen.
    pub(crate) fn begin(&mut self, header: Vec<u8>, sink: &mut LineSink<'_>) {
        let decoration = sink.style.map(|style| (style, &mut sink.decorators[Stream::Stdout as usize]));
        if !header.is_empty()
            && !sink.sequencer.show_lines(sink.job, Stream::Stdout, [&header, &[]], decoration, false)
        {
            self.partial[Stream::Stdout as usize] = header;
        }
    }

    /// Takes what the job wrote. Says whether it gave the screen back.
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

    /// Shows what had to wait, as far as it may be shown now. Says whether the screen was given
    /// back.
    pub(crate) fn retry(&mut self, sink: &mut LineSink<'_>) -> bool {
        let mut released = false;
        while let Some((stream, chunk)) = self.queued.pop_front() {
            match self.show(stream, &chunk, sink) {
                Some(gave_back) => released |= gave_back,
                None => {
                    self.queued.push_front((stream, chunk));
                    break;
                }
            }
        }
        released
    }

    /// Ends what was shown of lines without their ends, and gives the screen back: the job runs
    /// again, perhaps much later or never. Says whether it had the screen.
    pub(crate) fn close_open_lines(&mut self, sink: &mut LineSink<'_>) -> bool {
        let mut had_stdout = false;
        for stream in [Stream::Stdout, Stream::Stderr] {
            if std::mem::take(&mut self.open_lines[stream as usize]) {
                let decoration = sink.style.map(|style| (style, &mut sink.decorators[stream as usize]));
                had_stdout |= sink.sequencer.show_lines(sink.job, stream, [b"\n", &[]], decoration, false);
            }
        }
        if had_stdout {
            sink.sequencer.release(sink.job);
        }
        had_stdout
    }

    /// Whether something waits for the screen.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Gives up what was not shown: the job is over. In the order of the bytes, stream by stream.
    pub(crate) fn take_rest(&mut self, mut take: impl FnMut(Stream, &[u8])) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            take(stream, &std::mem::take(&mut self.partial[stream as usize]));
            self.queued.iter().filter(|(of, _)| *of == stream).for_each(|(_, chunk)| take(stream, chunk));
        }
        self.queued.clear();
    }

    /// Shows the whole lines of `bytes`, and what goes on from there; `None` if another job has the
    /// screen.
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
        // The line is under way until its end was shown.
        self.open_lines[stream as usize] = long || (open_lines && end == 0);
        let released = open_lines && self.open_lines == [false; 2];
        if released {
            sink.sequencer.release(sink.job);
        }
        Some(released)
    }
}
