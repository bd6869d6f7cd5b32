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
pub(crate) fn line_max(buffer: usize, degree: usize) -> usize {
    (buffer / degree.max(1) / 4).clamp(LINE_MIN, LINE_MAX)
}

/// The lines of one job.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    /// The beginning of a line, of each output.
    begun: [Vec<u8>; 2],
    /// Which outputs have a line under way that was partly shown: the job has the screen until it
    /// ends.
    under_way: [bool; 2],
    /// What came while another job's long line had the screen. The set charges it until it is
    /// shown.
    queued: VecDeque<(Stream, Chunk)>,
}

/// How a job's lines are written.
pub(crate) struct LineSink<'a> {
    pub(crate) stage: &'a OutputSequencer,
    pub(crate) job: u64,
    pub(crate) line_max: usize,
    pub(crate) marks: Option<&'a LineStyle>,
    pub(crate) markers: &'a mut [LineDecorator; 2],
}

impl LineBuffer {
    /// Shows what stands before the first line, or with it if another job has the screen.
    pub(crate) fn begin(&mut self, head: Vec<u8>, pen: &mut LineSink<'_>) {
        let marking = pen.marks.map(|marks| (marks, &mut pen.markers[Stream::Stdout as usize]));
        if !head.is_empty() && !pen.stage.show_lines(pen.job, Stream::Stdout, [&head, &[]], marking, false) {
            self.begun[Stream::Stdout as usize] = head;
        }
    }

    /// Takes what the job wrote. Says whether it gave the screen back.
    pub(crate) fn push(&mut self, stream: Stream, chunk: Chunk, pen: &mut LineSink<'_>) -> bool {
        if !self.queued.is_empty() {
            self.queued.push_back((stream, chunk));
            return self.go_on(pen);
        }
        match self.show(stream, &chunk, pen) {
            Some(released) => released,
            None => {
                self.queued.push_back((stream, chunk));
                false
            }
        }
    }

    /// Shows what had to wait, as far as it may be shown now. Says whether the screen was given
    /// back.
    pub(crate) fn go_on(&mut self, pen: &mut LineSink<'_>) -> bool {
        let mut released = false;
        while let Some((stream, chunk)) = self.queued.pop_front() {
            match self.show(stream, &chunk, pen) {
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
    pub(crate) fn give_back(&mut self, pen: &mut LineSink<'_>) -> bool {
        let mut had = false;
        for stream in [Stream::Stdout, Stream::Stderr] {
            if std::mem::take(&mut self.under_way[stream as usize]) {
                let marking = pen.marks.map(|marks| (marks, &mut pen.markers[stream as usize]));
                had |= pen.stage.show_lines(pen.job, stream, [b"\n", &[]], marking, false);
            }
        }
        if had {
            pen.stage.release(pen.job);
        }
        had
    }

    /// Whether something waits for the screen.
    pub(crate) fn waits(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Gives up what was not shown: the job is over. In the order of the bytes, stream by stream.
    pub(crate) fn rest(&mut self, mut take: impl FnMut(Stream, &[u8])) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            take(stream, &std::mem::take(&mut self.begun[stream as usize]));
            self.queued.iter().filter(|(of, _)| *of == stream).for_each(|(_, chunk)| take(stream, chunk));
        }
        self.queued.clear();
    }

    /// Shows the whole lines of `bytes`, and what goes on from there; `None` if another job has the
    /// screen.
    fn show(&mut self, stream: Stream, bytes: &[u8], pen: &mut LineSink<'_>) -> Option<bool> {
        let begun = &mut self.begun[stream as usize];
        let under_way = self.under_way[stream as usize];
        let end = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        let long = !under_way && begun.len() * usize::from(end == 0) + bytes.len() - end > pen.line_max;
        let shown = if long || (under_way && end == 0) { bytes } else { &bytes[..end] };
        if shown.is_empty() {
            begun.extend_from_slice(bytes);
            return Some(false);
        }
        let marking = pen.marks.map(|marks| (marks, &mut pen.markers[stream as usize]));
        if !pen.stage.show_lines(pen.job, stream, [begun, shown], marking, long) {
            return None;
        }
        begun.clear();
        begun.extend_from_slice(&bytes[shown.len()..]);
        // The line is under way until its end was shown.
        self.under_way[stream as usize] = long || (under_way && end == 0);
        let released = under_way && self.under_way == [false; 2];
        if released {
            pen.stage.release(pen.job);
        }
        Some(released)
    }
}
