//! What running jobs write: to the screen, to files, or into the batch.

use minder::jobs::{Attempt, ChildControl};
use minder::{SpillFile, Stream, Token};

use super::state::RunWorker;
use crate::config::OutputView;
use crate::context::RunContext;
use crate::output::line_buffer::LineSink;
use crate::output::store::JobFile;
use crate::results::cannot_write;
use crate::worker::running_job::RunningJob;
use crate::worker::running_job::last_bytes;

/// From this size on the output of a job that is seen as it writes passes without us.
const FORWARD_FROM: u64 = 1 << 20;

impl RunWorker<'_> {
    /// Shows as it comes the job that has the stage, if it runs here.
    pub(crate) fn start_live_output(&mut self, outputs: &mut ChildControl<'_>) {
        let shared = self.context;
        if !matches!(shared.config.view, OutputView::Grouped | OutputView::Ordered)
            || !shared.config.may_be_live()
        {
            return;
        }
        // Pieces of what is being killed are not shown.
        if shared.pool.is_cancelled() {
            return;
        }
        let stage = shared.sequencer;
        let sole =
            (stage.is_free() && shared.queue.is_over()).then(|| shared.pool.counts()).filter(|counts| {
                counts.running == 1
                    && counts.submitted == 1 + counts.succeeded + counts.failed + counts.skipped
            });
        // The one before it had an end that was held back when this one started.
        let alone = sole.is_some() || (shared.slots == 1 && stage.is_free());
        let slot = match alone {
            // If it runs here it is the only one.
            true => self.slot_of_job.values().next().copied(),
            false => self.slot_of_job.get(&stage.live_job()).copied(),
        };
        let waiting = slot
            .and_then(|slot| self.running.get_mut(slot)?.as_mut())
            .filter(|running| !running.live && running.may_live);
        // Without a token it was put back, and is another loop's by now.
        let waiting = waiting.and_then(|running| running.token.map(|token| (running, token)));
        let is_here = waiting.is_some();
        if let Some((running, token)) = waiting
            && (stage.is_live(running.number) || (alone && stage.try_claim(running.number)))
        {
            running.live = true;
            show_header(shared, running);
            // It fails only for a child that is over, which is shown then anyway.
            let _ = outputs.start_streaming(token);
        }
        // The other loop has it, and may sleep. Rung once, since it may hang in a write.
        if let Some(counts) = sole.filter(|_| !is_here)
            && std::mem::replace(&mut self.woken_for, counts.submitted) != counts.submitted
        {
            shared.pool.wake();
        }
    }

    /// Goes on with lines that had to wait.
    pub(crate) fn retry_blocked_lines(&mut self) {
        let shared = self.context;
        let mut released = false;
        for slot in std::mem::take(&mut self.blocked_lines) {
            let Some(running) = self.running.get_mut(slot).and_then(Option::as_mut) else { continue };
            let RunningJob { number, lines, style: marks, decorators: markers, .. } = running;
            let (stage, marks) = (shared.sequencer, marks.as_ref());
            released |=
                lines.go_on(&mut LineSink { stage, job: *number, line_max: self.line_max, marks, markers });
            if lines.waits() {
                self.blocked_lines.insert(slot);
            }
        }
        if released {
            shared.pool.wake();
        }
    }

    /// Prints what stands before a job's output.
    pub(crate) fn write_header(&mut self, start: Attempt) {
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if running.live {
            return show_header(self.context, running);
        }
        let head = std::mem::take(&mut running.header);
        if self.context.config.view == OutputView::Lines {
            let RunningJob { number, lines, style: marks, decorators: markers, .. } = running;
            let (stage, marks) = (&self.context.sequencer, marks.as_ref());
            lines.begin(head, &mut LineSink { stage, job: *number, line_max: self.line_max, marks, markers });
        } else {
            self.batch.push(Stream::Stdout, &head);
        }
    }

    /// Takes bytes of a running job.
    pub(crate) fn receive_chunk(&mut self, start: Attempt, stream: Stream, chunk: minder::Chunk) {
        let (shared, line_max) = (self.context, self.line_max);
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if running.interrupted {
            return;
        }
        if !running.header.is_empty() {
            self.write_header(start);
        }
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        running.count(stream, chunk.len() as u64);
        if let Some(results) = &mut running.results {
            if let Err(error) = results.push(stream, &chunk) {
                return shared.fail(cannot_write(results.place(), &error));
            }
            if !results.shows(stream) {
                return running.tails[stream as usize].push(&chunk);
            }
        }
        let lines = shared.config.view == OutputView::Lines;
        if running.live || lines {
            running.tails[stream as usize].push(&chunk);
        }
        if lines {
            let RunningJob { number, lines: pen_lines, style: marks, decorators: markers, .. } = running;
            let (stage, marks) = (shared.sequencer, marks.as_ref());
            let pen = &mut LineSink { stage, job: *number, line_max, marks, markers };
            if pen_lines.push(stream, chunk, pen) {
                shared.pool.wake();
            }
            if pen_lines.waits() {
                self.blocked_lines.insert(start.slot as usize);
            }
        } else if running.live {
            shared.sequencer.show(stream, &chunk, running.marking(stream));
        } else {
            self.batch.push(stream, &chunk);
        }
    }

    /// Takes a file with output of a running job.
    pub(crate) fn receive_file(&mut self, start: Attempt, stream: Stream, spilled: SpillFile) {
        let shared = self.context;
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if running.interrupted {
            return JobFile::from(spilled).remove();
        }
        if !running.header.is_empty() {
            self.write_header(start);
        }
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        running.count(stream, spilled.len);
        if let Some(results) = &mut running.results {
            let end = spilled.start + spilled.len;
            if let Err(error) = results.push_file(stream, &spilled.file, spilled.start, end) {
                return shared.fail(cannot_write(results.place(), &error));
            }
            if !results.shows(stream) {
                running.tails[stream as usize].push(&last_bytes(&spilled.file, end));
                return JobFile::from(spilled).remove();
            }
        }
        if running.live {
            running.tails[stream as usize].push(&last_bytes(&spilled.file, spilled.start + spilled.len));
            shared.sequencer.show_file(stream, spilled, running.marking(stream));
        } else {
            self.batch.push_file(stream, JobFile::from(spilled));
        }
    }
}

/// Shows what stands before the output of a job that is seen as it writes.
pub(crate) fn show_header(shared: &RunContext<'_>, running: &mut RunningJob) {
    let head = std::mem::take(&mut running.header);
    shared.sequencer.show(Stream::Stdout, &head, running.marking(Stream::Stdout));
}

/// Ends the coloured lines of such a job, which is over.
pub(crate) fn close_styled_lines(shared: &RunContext<'_>, running: &mut RunningJob) {
    for stream in [Stream::Stdout, Stream::Stderr] {
        if let Some(marking) = running.marking(stream) {
            shared.sequencer.end_line(stream, marking);
        }
    }
}

/// Lets the bytes of a job that has the stage pass without us, where nothing is to be done to them
/// and there are many: the last of what a job wrote is known only of bytes that come to us.
pub(crate) fn forward(
    shared: &RunContext<'_>,
    running: &mut RunningJob,
    token: Token,
    outputs: &mut ChildControl<'_>,
) {
    if !running.live || running.forwards || running.wrote[Stream::Stdout as usize] < FORWARD_FROM {
        return;
    }
    running.forwards = true;
    if running.style.is_some() || running.results.is_some() || shared.config.pty {
        return;
    }
    if let Some(file) = shared.sequencer.open_to_forward() {
        // Where it is refused, the bytes come to us.
        let _ = outputs.forward(token, Stream::Stdout, &file);
    }
}
