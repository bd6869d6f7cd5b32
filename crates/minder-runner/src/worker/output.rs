//! Where the output of running jobs goes: to standard output and standard error, to files, or into
//! the batch.

use std::sync::Arc;

use minder::jobs::{Attempt, ChildControl};
use minder::{ChildId, SpillFile, Stream};
use minder_os::files::create_unnamed_file;

use super::state::RunWorker;
use crate::config::OutputView;
use crate::context::RunContext;
use crate::output::store::JobFile;
use crate::results::cannot_write;
use crate::worker::job_output::last_bytes;
use crate::worker::running_job::RunningJob;

/// After this many bytes, live output is forwarded by the kernel without passing through this
/// process.
const FORWARD_FROM: u64 = 1 << 20;

impl RunWorker<'_> {
    /// Shows the output of the live job as it is written, if that job runs on this worker thread.
    pub(crate) fn start_live_output(&mut self, children: &mut ChildControl<'_>) {
        let context = self.context;
        if !matches!(context.config.view, OutputView::Grouped | OutputView::Ordered)
            || !context.config.may_be_live()
        {
            return;
        }
        // A run that is being cancelled shows no more partial output.
        if context.pool.is_cancelled() {
            return;
        }
        let sequencer = context.sequencer;
        let sole = (sequencer.is_free() && context.queue.is_drained()).then(|| context.pool.counts()).filter(
            |counts| {
                counts.running == 1
                    && counts.submitted == 1 + counts.succeeded + counts.failed + counts.skipped
            },
        );
        // With one slot the job before this one may have been held back when this one started. Then
        // this one could not claim live output in `configure`.
        let alone = sole.is_some() || (context.slots == 1 && sequencer.is_free());
        let slot = if alone {
            // If the only job runs on this worker thread, it is the only entry.
            self.running.slots().next()
        } else {
            self.running.slot_of(sequencer.live_job())
        };
        let waiting = slot
            .and_then(|slot| self.running.get_mut(slot))
            .filter(|running| !running.output.is_live && running.output.may_be_live);
        // A job without a child was deferred, and may be running on another worker thread by now.
        let waiting = waiting.and_then(|running| running.child.map(|child| (running, child)));
        let is_here = waiting.is_some();
        if let Some((running, child)) = waiting
            && (sequencer.is_live(running.number) || (alone && sequencer.try_claim(running.number)))
        {
            running.output.is_live = true;
            show_header(context, running);
            // It fails only for a child that has exited, and the output of that is written anyway.
            let _ = children.start_streaming(child);
        }
        // The only job runs on the other worker thread, which may be asleep. It is woken once for
        // each count of submitted jobs: it may also be blocked in a write.
        if !is_here
            && let Some(counts) = sole
            && std::mem::replace(&mut self.woken_for, counts.submitted) != counts.submitted
        {
            context.pool.wake();
        }
    }

    /// Writes lines that had to wait for another job's line.
    pub(crate) fn retry_blocked_lines(&mut self) {
        let context = self.context;
        let mut released = false;
        for slot in std::mem::take(&mut self.running.blocked_lines) {
            let Some(running) = self.running.get_mut(slot) else { continue };
            let (lines, mut sink) = running.output.lines(context.sequencer, running.number, self.line_max);
            released |= lines.retry(&mut sink);
            if lines.is_blocked() {
                self.running.blocked_lines.insert(slot);
            }
        }
        if released {
            context.pool.wake();
        }
    }

    /// Reads to its end what the kernel forwards to a reader that takes nothing. The bytes are lost: a job
    /// that was forwarded has no event before all of it was written, and runs again.
    pub(crate) fn abandon_forwarded(&mut self, children: &mut ChildControl<'_>) {
        let dir = self.context.recorder.dir();
        for running in self.running.jobs_mut().filter(|running| running.output.is_forwarded) {
            running.output.is_forwarded = false;
            // If this fails, the main thread does not wait for the job.
            if let Some(child) = running.child
                && let Ok(file) = create_unnamed_file(dir)
            {
                let _ = children.forward(child, Stream::Stdout, &Arc::new(file));
            }
        }
    }

    /// Writes the header of a job before its output.
    pub(crate) fn write_header(&mut self, attempt: Attempt) {
        let Some(running) = self.running.get_mut(attempt.slot) else {
            return;
        };
        if running.output.is_live {
            return show_header(self.context, running);
        }
        let header = std::mem::take(&mut running.output.header);
        if self.context.config.view == OutputView::Lines {
            let (lines, mut sink) =
                running.output.lines(self.context.sequencer, running.number, self.line_max);
            lines.begin(header, &mut sink);
        } else {
            self.batch.push(Stream::Stdout, &header);
        }
    }

    /// Writes the header before the first output of a running job, and counts the output. Returns the
    /// job, or `None` if nothing more of it is shown.
    fn receive(&mut self, attempt: Attempt, stream: Stream, len: u64) -> Option<&mut RunningJob> {
        let running = self.running.get_mut(attempt.slot)?;
        if running.is_interrupted {
            return None;
        }
        if !running.output.header.is_empty() {
            self.write_header(attempt);
        }
        let running = self.running.get_mut(attempt.slot)?;
        running.output.count(stream, len);
        Some(running)
    }

    /// Handles bytes that a running job wrote.
    pub(crate) fn receive_chunk(&mut self, attempt: Attempt, stream: Stream, chunk: minder::Chunk) {
        let context = self.context;
        let line_max = self.line_max;
        let Some(running) = self.receive(attempt, stream, chunk.len() as u64) else {
            return;
        };
        if let Some(results) = &mut running.output.results {
            if let Err(error) = results.push(stream, &chunk) {
                return context.fail(cannot_write(results.place(), &error));
            }
            if !results.shows(stream) {
                return running.output.tails[stream as usize].push(&chunk);
            }
        }
        let lines = context.config.view == OutputView::Lines;
        if running.output.is_live || lines {
            running.output.tails[stream as usize].push(&chunk);
        }
        if lines {
            let (buffer, mut sink) = running.output.lines(context.sequencer, running.number, line_max);
            if buffer.push(stream, chunk, &mut sink) {
                context.pool.wake();
            }
            if buffer.is_blocked() {
                self.running.blocked_lines.insert(attempt.slot);
            }
        } else if running.output.is_live {
            context.sequencer.show_chunk(
                running.number,
                stream,
                chunk,
                running.output.line_decoration(stream),
            );
        } else {
            self.batch.push(stream, &chunk);
        }
    }

    /// Handles a spill file with output of a running job.
    pub(crate) fn receive_file(&mut self, attempt: Attempt, stream: Stream, spilled: SpillFile) {
        let context = self.context;
        let Some(running) = self.receive(attempt, stream, spilled.len) else {
            return JobFile::from(spilled).remove();
        };
        let end = spilled.start + spilled.len;
        if let Some(results) = &mut running.output.results {
            if let Err(error) = results.push_file(stream, &spilled.file, spilled.start, end) {
                return context.fail(cannot_write(results.place(), &error));
            }
            if !results.shows(stream) {
                running.output.tails[stream as usize].push(&last_bytes(&spilled.file, end));
                return JobFile::from(spilled).remove();
            }
        }
        if running.output.is_live {
            running.output.tails[stream as usize].push(&last_bytes(&spilled.file, end));
            context.sequencer.show_file(
                running.number,
                stream,
                spilled,
                running.output.line_decoration(stream),
            );
        } else {
            self.batch.push_file(stream, JobFile::from(spilled));
        }
    }
}

/// Writes the header of a job whose output is shown live.
pub(crate) fn show_header(context: &RunContext<'_>, running: &mut RunningJob) {
    let header = std::mem::take(&mut running.output.header);
    context.sequencer.show(Stream::Stdout, &header, running.output.line_decoration(Stream::Stdout));
}

/// Closes the colored lines of a finished job whose output was shown live.
pub(crate) fn close_styled_lines(context: &RunContext<'_>, running: &mut RunningJob) {
    for stream in [Stream::Stdout, Stream::Stderr] {
        if let Some(line_decoration) = running.output.line_decoration(stream) {
            context.sequencer.end_line(stream, line_decoration);
        }
    }
}

/// Lets the kernel forward the standard output of the live job, if nothing is to be done to the
/// bytes and there are many of them. Forwarding is not used from the start, because the tail of a
/// stream is known only for bytes that pass through this process.
pub(crate) fn forward(
    context: &RunContext<'_>,
    running: &mut RunningJob,
    child: ChildId,
    children: &mut ChildControl<'_>,
) {
    if !running.output.is_live
        || running.output.forward_tried
        || running.output.written[Stream::Stdout as usize] < FORWARD_FROM
    {
        return;
    }
    // What waits for the reader comes before what the kernel would forward.
    if context.sequencer.is_stalled() {
        return;
    }
    running.output.forward_tried = true;
    if running.output.style.is_some() || running.output.results.is_some() || context.config.pty {
        return;
    }
    if let Some(file) = context.sequencer.open_to_forward() {
        // If the child set refuses, the bytes keep passing through this process.
        running.output.is_forwarded = children.forward(child, Stream::Stdout, &file).is_ok();
        if running.output.is_forwarded {
            context.status.note_forwarding();
        }
    }
}
