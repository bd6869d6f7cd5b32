//! The output of running jobs that is shown while they run.

use std::sync::Arc;

use minder::Stream;
use minder::jobs::ChildControl;
use minder_os::files::create_unnamed_file;

use super::running_jobs::RunningJobs;
use crate::config::OutputView;

impl RunningJobs<'_> {
    /// Shows the output of the live job as it is written, if that job runs on this worker thread.
    pub(super) fn start_live_output(&mut self, children: &mut ChildControl<'_>) {
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
        // If the only job runs on this worker thread, it is the only entry.
        let slot = if alone { self.slots().next() } else { self.slot_of(sequencer.live_job()) };
        let waiting = slot
            .and_then(|slot| self.get_mut(slot))
            .filter(|running| !running.output.is_live && running.output.may_be_live);
        // A job without a child was deferred, and may be running on another worker thread by now.
        let waiting = waiting.and_then(|running| running.child.map(|child| (running, child)));
        let is_here = waiting.is_some();
        if let Some((running, child)) = waiting
            && (sequencer.is_live(running.number) || (alone && sequencer.try_claim(running.number)))
        {
            running.output.is_live = true;
            running.output.show_header(sequencer);
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
    pub(super) fn retry_blocked_lines(&mut self) {
        let context = self.context;
        let mut released = false;
        for slot in std::mem::take(&mut self.blocked_lines) {
            let Some(running) = self.get_mut(slot) else { continue };
            let (lines, mut sink) = running.output.lines(context, running.number);
            released |= lines.retry(&mut sink);
            if lines.is_blocked() {
                self.blocked_lines.insert(slot);
            }
        }
        if released {
            context.pool.wake();
        }
    }

    /// Reads to its end what the kernel forwards to a reader that takes nothing. The bytes are lost: a job
    /// that was forwarded has no event before all of it was written, and runs again.
    pub(super) fn abandon_forwarded(&mut self, children: &mut ChildControl<'_>) {
        let dir = self.context.recorder.dir();
        for running in self.jobs_mut().filter(|running| running.output.is_forwarded) {
            running.output.is_forwarded = false;
            // If this fails, the main thread does not wait for the job.
            if let Some(child) = running.child
                && let Ok(file) = create_unnamed_file(dir)
            {
                let _ = children.forward(child, Stream::Stdout, &Arc::new(file));
            }
        }
    }
}
