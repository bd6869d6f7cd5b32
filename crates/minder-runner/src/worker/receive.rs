//! The output of a running job, as it arrives: shown at once, kept in files, or gathered until the
//! job ends.

use minder::jobs::ChildControl;
use minder::{Chunk, SpillFile, Stream};

use super::running_job::RunningJob;
use crate::config::OutputView;
use crate::context::RunContext;
use crate::output::store::JobFile;
use crate::results::cannot_write;

/// After this many bytes, live output is forwarded by the kernel without passing through this
/// process.
const FORWARD_FROM: u64 = 1 << 20;

impl RunningJob {
    /// Writes the header of the job before its output.
    pub(super) fn write_header(&mut self, context: &RunContext<'_>) {
        if self.output.is_live {
            return self.output.show_header(context.sequencer);
        }
        let header = std::mem::take(&mut self.output.header);
        if context.config.view == OutputView::Lines {
            let (lines, mut sink) = self.output.lines(context, self.number);
            lines.begin(header, &mut sink);
        } else {
            self.output.gathered.push(Stream::Stdout, &header);
        }
    }

    /// Handles bytes that the job wrote. Returns whether a line waits for another job's line.
    pub(super) fn receive_chunk(&mut self, context: &RunContext<'_>, stream: Stream, chunk: Chunk) -> bool {
        if self.is_interrupted {
            return false;
        }
        self.begin_output(context, stream, chunk.len() as u64);
        if let Some(results) = &mut self.output.results {
            if let Err(error) = results.push(stream, &chunk) {
                context.fail(cannot_write(results.place(), &error));
                return false;
            }
            if !results.shows(stream) {
                self.output.note_passed(stream, &chunk);
                return false;
            }
        }
        if context.config.view == OutputView::Lines {
            self.output.note_passed(stream, &chunk);
            let (lines, mut sink) = self.output.lines(context, self.number);
            if lines.push(stream, chunk, &mut sink) {
                context.pool.wake();
            }
            return lines.is_blocked();
        }
        if self.output.is_live {
            self.output.note_passed(stream, &chunk);
            let decoration = self.output.line_decoration(stream);
            context.sequencer.show_chunk(self.number, stream, chunk, decoration);
        } else {
            self.output.gathered.push(stream, &chunk);
        }
        false
    }

    /// Handles a spill file with output of the job.
    pub(super) fn receive_file(&mut self, context: &RunContext<'_>, stream: Stream, spilled: SpillFile) {
        if self.is_interrupted {
            return JobFile::from(spilled).remove();
        }
        self.begin_output(context, stream, spilled.len);
        let end = spilled.start + spilled.len;
        if let Some(results) = &mut self.output.results {
            if let Err(error) = results.push_file(stream, &spilled.file, spilled.start, end) {
                return context.fail(cannot_write(results.place(), &error));
            }
            if !results.shows(stream) {
                self.output.note_passed_file(stream, &spilled.file, spilled.start..end);
                return JobFile::from(spilled).remove();
            }
        }
        if self.output.is_live {
            self.output.note_passed_file(stream, &spilled.file, spilled.start..end);
            let decoration = self.output.line_decoration(stream);
            context.sequencer.show_file(self.number, stream, spilled, decoration);
        } else {
            self.output.gathered.push_file(stream, JobFile::from(spilled));
        }
    }

    /// Writes the header before the first output of the job, and counts the output.
    fn begin_output(&mut self, context: &RunContext<'_>, stream: Stream, bytes: u64) {
        if !self.output.header.is_empty() {
            self.write_header(context);
        }
        self.output.count(stream, bytes);
    }

    /// Lets the kernel forward the standard output of the job if it is live, if nothing is to be done to the
    /// bytes and there are many of them. Forwarding is not used from the start, because the tail of a
    /// stream is known only for bytes that pass through this process.
    pub(super) fn forward(&mut self, context: &RunContext<'_>, children: &mut ChildControl<'_>) {
        let output = &mut self.output;
        let is_large = output.written[Stream::Stdout as usize] >= FORWARD_FROM;
        if !output.is_live || output.forward_tried || !is_large {
            return;
        }
        // What waits for the reader comes before what the kernel would forward.
        if context.sequencer.is_stalled() {
            return;
        }
        output.forward_tried = true;
        if output.style.is_some() || output.results.is_some() || output.copy.is_some() || context.config.pty {
            return;
        }
        if let (Some(child), Some(file)) = (self.child, context.sequencer.open_to_forward()) {
            // If the child set refuses, the bytes keep passing through this process.
            output.is_forwarded = children.forward(child, Stream::Stdout, &file).is_ok();
            if output.is_forwarded {
                context.status.note_forwarding();
            }
        }
    }

    /// Counts bytes that the kernel forwarded.
    pub(super) fn count_forwarded(&mut self, context: &RunContext<'_>, stream: Stream, bytes: u64) {
        self.output.count(stream, bytes);
        context.sequencer.stdio.note_forwarded();
        // These bytes did not pass through minder, so the tail from before them is no longer the tail.
        self.output.tails[stream as usize].take();
    }

    /// Writes the rest of the lines that were partly written. Returns what has to be written before the
    /// event of the job, if that waits for a reader.
    pub(super) fn unread_output(&mut self, context: &RunContext<'_>) -> Option<[u64; 2]> {
        if self.is_interrupted {
            return None;
        }
        if context.config.view == OutputView::Lines {
            let (lines, mut sink) = self.output.lines(context, self.number);
            lines.finish_open_lines(&mut sink);
        }
        context.sequencer.take_queued(self.number)
    }
}
