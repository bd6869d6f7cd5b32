//! Control of running jobs: their standard input, requests from other threads, and time-outs that
//! depend on the median.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use minder::Size;
use minder::jobs::ChildControl;
use minder_os::terminal::terminal_size;

use super::state::RunWorker;
use crate::config::{PipeConfig, Timeout};
use crate::job_table::JobRequest;

/// A time-out relative to the median is at least this much above it. What a scheduler adds to the time of a
/// job of some milliseconds is a multiple of it.
const ABOVE_MEDIAN: Duration = Duration::from_millis(500);

/// How long a start of a job with a stream may fail because the system is short of something, while the input
/// waits for it.
const STREAMS_SHORTAGE_MAX: Duration = Duration::from_secs(1);

/// Returns the time-out that is `times` the median, if there is such a time.
fn median_limit(median: Duration, times: f64) -> Option<Duration> {
    let limit = Duration::try_from_secs_f64(median.as_secs_f64() * times).ok()?;
    Some(limit.max(median + ABOVE_MEDIAN))
}

impl RunWorker<'_> {
    /// Ends the run if a job whose stream waits could not be started for a while: those that run get no
    /// more input before, and so do not end.
    pub(super) fn check_streams(&mut self) {
        let context = self.context;
        let flag = context.config.pipe.as_ref().and_then(PipeConfig::stream_flag);
        let Some((flag, splitter)) = flag.zip(context.queue.splitter()) else { return };
        let since = *self.short_since.get_or_insert_with(Instant::now);
        if since.elapsed() < STREAMS_SHORTAGE_MAX || !splitter.waits_for_starts() {
            return;
        }
        context.fail(format!(
            "cannot start all jobs of `{flag}`, which run at once: no process, descriptor or memory is free \
             (use a lower -j; `minder doctor` shows the limits)"
        ));
    }

    /// Writes more input to the job in a slot, and wakes the worker threads if that unblocks
    /// another job.
    pub(crate) fn feed_stdin(&mut self, slot: u32, children: &mut ChildControl<'_>) {
        let context = self.context;
        let Some(splitter) = context.queue.splitter() else { return };
        let Some(running) = self.running.get_mut(slot) else { return };
        let (Some(feeder), Some(child)) = (&mut running.stdin, running.child) else { return };
        let again = feeder.write(splitter, child, children);
        if feeder.waiting {
            self.running.starved_stdin.insert(slot);
        }
        if again {
            context.pool.wake();
        }
    }

    /// Writes input to the jobs that had to wait for the reader.
    pub(crate) fn feed_starved(&mut self, children: &mut ChildControl<'_>) {
        for slot in std::mem::take(&mut self.running.starved_stdin) {
            let feeder = self.running.get_mut(slot).and_then(|running| running.stdin.as_ref());
            if feeder.is_some_and(|feeder| feeder.waiting) {
                self.feed_stdin(slot, children);
            }
        }
    }

    /// Carries out the requests for jobs that run on this worker thread.
    pub(crate) fn apply_requests(&mut self, children: &mut ChildControl<'_>) {
        let job_table = self.context.job_table;
        for (job, request) in job_table.take_requests(|job| self.running.slot_of(job).is_some()) {
            let Some(slot) = self.running.slot_of(job) else { continue };
            let Some(running) = self.running.get_mut(slot) else { continue };
            let Some(child) = running.child else { continue };
            // These calls fail only for a child that has exited.
            let _ = match request {
                JobRequest::Requeue => {
                    running.is_requeued = true;
                    children.kill(child, self.context.config.kill())
                }
                JobRequest::Suspend => children.suspend(child),
                JobRequest::Resume => children.resume(child),
            };
        }
    }

    /// Gives the terminals of `--pty` the size of that of minder, if it has changed.
    pub(crate) fn resize_terminals(&mut self, children: &mut ChildControl<'_>) {
        let resizes = self.context.status.resizes.load(Ordering::SeqCst);
        if std::mem::replace(&mut self.resizes, resizes) == resizes {
            return;
        }
        let Some(size) = terminal_size() else { return };
        let size = Size::new(size.rows, size.columns);
        for slot in self.running.slots().collect::<Vec<_>>() {
            if let Some(child) = self.running.get_mut(slot).and_then(|running| running.child) {
                // It fails only for a child that has exited.
                let _ = children.resize_terminal(child, size);
            }
        }
    }

    /// Sets the time-outs that depend on the median wall time of finished jobs.
    pub(crate) fn update_median_timeouts(&mut self, children: &mut ChildControl<'_>) {
        let Some(Timeout::Median(times)) = self.context.config.control.timeout else { return };
        let median = self.context.job_table.median();
        let changed = self.median != median;
        self.median = median;
        let Some(limit) = median.and_then(|median| median_limit(median, times)) else { return };
        let new = std::mem::take(&mut self.running.without_timeout);
        let slots = if changed { self.running.slots().collect() } else { new };
        for slot in slots {
            let Some(running) = self.running.get_mut(slot) else { continue };
            // The time in which the job was suspended does not count.
            let Some(child) = running.child else { continue };
            let Ok(suspended_time) = children.suspended_time(child) else { continue };
            let Some(at) = running.started_at.checked_add(limit.saturating_add(suspended_time)) else {
                continue;
            };
            running.timeout = Some(limit);
            let _ = children.set_deadline(child, Some((at, self.context.config.kill())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_out_by_the_median_spares_small_jobs() {
        let ms = Duration::from_millis;
        assert_eq!(median_limit(ms(2), 2.0), Some(ms(502)));
        assert_eq!(median_limit(ms(400), 2.0), Some(ms(900)));
        assert_eq!(median_limit(ms(4000), 2.0), Some(ms(8000)));
        assert_eq!(median_limit(ms(1), f64::INFINITY), None);
    }
}
