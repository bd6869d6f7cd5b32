//! Orders for running jobs: time-outs by the median of others, and what the gates want.

use std::time::Duration;

use minder::exec::{Outputs, Start};

use super::super::roster::Order;
use super::Hand;
use crate::plan::Timeout;

impl Hand<'_> {
    /// Gives a job more of what it reads.
    pub(super) fn feed(&mut self, start: Start, outputs: &mut Outputs<'_>) {
        let shared = self.shared;
        let Some(pipe) = shared.input.pipe() else { return };
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if let (Some(meal), Some(token)) = (&mut running.meal, running.token)
            && meal.feed(pipe, token, outputs)
        {
            shared.crew.wake();
        }
    }

    /// Gives more to the jobs for which there was nothing.
    pub(super) fn feed_hungry(&mut self, outputs: &mut Outputs<'_>) {
        let shared = self.shared;
        let Some(pipe) = shared.input.pipe() else { return };
        for running in self.running.iter_mut().flatten() {
            if let (Some(meal), Some(token)) = (&mut running.meal, running.token)
                && meal.hungry
                && meal.feed(pipe, token, outputs)
            {
                shared.crew.wake();
            }
        }
    }

    /// Carries out what was ordered for jobs of this loop.
    pub(super) fn obey(&mut self, outputs: &mut Outputs<'_>) {
        let roster = self.shared.roster;
        let here = |job: u64| self.running.iter().flatten().any(|running| running.number == job);
        for (job, order) in roster.take(here) {
            let Some(running) = self.running.iter_mut().flatten().find(|running| running.number == job)
            else {
                continue;
            };
            let Some(token) = running.token else { continue };
            // They fail only for a child that is over.
            let _ = match order {
                Order::PutBack => {
                    running.put_back = true;
                    outputs.kill(token, self.shared.plan.kill())
                }
                Order::Suspend => outputs.suspend(token),
                Order::Resume => outputs.resume(token),
            };
        }
    }

    /// Sets time-outs that depend on how long others took.
    pub(super) fn limit(&mut self, outputs: &mut Outputs<'_>) {
        let Some(Timeout::Median(times)) = self.shared.plan.control.timeout else { return };
        let median = self.shared.roster.median();
        let changed = self.median != median;
        self.median = median;
        let Some(limit) =
            median.and_then(|median| Duration::try_from_secs_f64(median.as_secs_f64() * times).ok())
        else {
            return;
        };
        for running in
            self.running.iter_mut().flatten().filter(|running| changed || running.timeout.is_none())
        {
            // The time in which it stood still does not count.
            let Some(token) = running.token else { continue };
            let Ok(stood) = outputs.suspended_time(token) else { continue };
            let Some(at) = running.begun.checked_add(limit.saturating_add(stood)) else { continue };
            running.timeout = Some(limit);
            let _ = outputs.set_deadline(token, Some((at, self.shared.plan.kill())));
        }
    }
}
