//! Control of running jobs: their standard input, requests from other threads, and time-outs that
//! depend on the median.

use std::sync::atomic::Ordering;
use std::time::Duration;

use minder::Size;
use minder::jobs::ChildControl;
use minder_os::terminal::terminal_size;

use super::running_job::RunningJob;
use super::running_jobs::RunningJobs;
use crate::config::Timeout;
use crate::job_table::JobRequest;

/// A time-out relative to the median is at least this much above it. What a scheduler adds to the time of a
/// job of some milliseconds is a multiple of it.
const ABOVE_MEDIAN: Duration = Duration::from_millis(500);

/// Returns the time-out that is `times` the median, if there is such a time.
fn median_limit(median: Duration, times: f64) -> Option<Duration> {
    let limit = Duration::try_from_secs_f64(median.as_secs_f64() * times).ok()?;
    Some(limit.max(median + ABOVE_MEDIAN))
}

impl RunningJobs<'_> {
    /// Writes more input to the job in a slot, and wakes the worker threads if that unblocks
    /// another job.
    pub(super) fn feed_stdin(&mut self, slot: u32, children: &mut ChildControl<'_>) {
        let context = self.context;
        let Some(splitter) = context.queue.splitter() else { return };
        let Some(running) = self.get_mut(slot) else { return };
        let (Some(feeder), Some(child)) = (&mut running.stdin, running.child) else { return };
        let again = feeder.write(splitter, child, children);
        if feeder.waiting {
            self.starved_stdin.insert(slot);
        }
        if again {
            context.pool.wake();
        }
    }

    /// Writes input to the jobs that had to wait for the reader.
    pub(super) fn feed_starved(&mut self, children: &mut ChildControl<'_>) {
        for slot in std::mem::take(&mut self.starved_stdin) {
            let feeder = self.get_mut(slot).and_then(|running| running.stdin.as_ref());
            if feeder.is_some_and(|feeder| feeder.waiting) {
                self.feed_stdin(slot, children);
            }
        }
    }

    /// Carries out the requests for jobs that run on this worker thread.
    pub(super) fn apply_requests(&mut self, children: &mut ChildControl<'_>) {
        let context = self.context;
        for (job, request) in context.job_table.take_requests(|job| self.slot_of(job).is_some()) {
            let running = self.slot_of(job).and_then(|slot| self.get_mut(slot));
            let Some((running, child)) = running.and_then(RunningJob::with_child) else { continue };
            // These calls fail only for a child that has exited.
            let _ = match request {
                JobRequest::Requeue => {
                    running.is_requeued = true;
                    children.kill(child, context.config.kill())
                }
                JobRequest::Suspend => children.suspend(child),
                JobRequest::Resume => children.resume(child),
            };
        }
    }

    /// Gives the terminals of `--pty` the size of that of minder, if it has changed.
    pub(super) fn resize_terminals(&mut self, children: &mut ChildControl<'_>) {
        let resizes = self.context.status.resizes.load(Ordering::SeqCst);
        if std::mem::replace(&mut self.resizes, resizes) == resizes {
            return;
        }
        let Some(size) = terminal_size() else { return };
        let size = Size::new(size.rows, size.columns);
        for child in self.jobs_mut().filter_map(|running| running.child) {
            // It fails only for a child that has exited.
            let _ = children.resize_terminal(child, size);
        }
    }

    /// Sets the time-outs that depend on the median wall time of finished jobs.
    pub(super) fn update_median_timeouts(&mut self, children: &mut ChildControl<'_>) {
        let context = self.context;
        let Some(Timeout::Median(times)) = context.config.control.timeout else { return };
        let median = context.job_table.median();
        let changed = self.median != median;
        self.median = median;
        let Some(limit) = median.and_then(|median| median_limit(median, times)) else { return };
        let new = std::mem::take(&mut self.without_timeout);
        let slots = if changed { self.slots().collect() } else { new };
        for slot in slots {
            let running = self.get_mut(slot).and_then(RunningJob::with_child);
            let Some((running, child)) = running else { continue };
            // The time in which the job was suspended does not count.
            let Ok(suspended_time) = children.suspended_time(child) else { continue };
            let Some(at) = running.started_at.checked_add(limit.saturating_add(suspended_time)) else {
                continue;
            };
            running.timeout = Some(limit);
            let _ = children.set_deadline(child, Some((at, context.config.kill())));
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
