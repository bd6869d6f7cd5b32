//! Orders for running jobs: time-outs by the median of others, and what the gates want.

use std::time::Duration;

use minder::exec::Outputs;

use super::super::roster::Order;
use super::Hand;
use crate::plan::Timeout;

impl Hand<'_> {
    /// Gives a job more of what it reads.
    pub(super) fn feed(&mut self, slot: usize, outputs: &mut Outputs<'_>) {
        let shared = self.shared;
        let Some(pipe) = shared.input.pipe() else { return };
        let Some(running) = self.in_slot(slot) else { return };
        let (Some(meal), Some(token)) = (&mut running.meal, running.token) else { return };
        let again = meal.feed(pipe, token, outputs);
        if meal.hungry {
            self.hungry.insert(slot);
        }
        if again {
            shared.crew.wake();
        }
    }

    /// Gives more to the jobs for which there was nothing.
    pub(super) fn feed_hungry(&mut self, outputs: &mut Outputs<'_>) {
        for slot in std::mem::take(&mut self.hungry) {
            let meal = self.in_slot(slot).and_then(|running| running.meal.as_ref());
            if meal.is_some_and(|meal| meal.hungry) {
                self.feed(slot, outputs);
            }
        }
    }

    /// Carries out what was ordered for jobs of this loop.
    pub(super) fn obey(&mut self, outputs: &mut Outputs<'_>) {
        let roster = self.shared.roster;
        for (job, order) in roster.take(|job| self.here.contains_key(&job)) {
            let Some(slot) = self.here.get(&job).copied() else { continue };
            let Some(running) = self.in_slot(slot) else { continue };
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
        let new = std::mem::take(&mut self.untimed);
        let slots = if changed { self.here.values().copied().collect() } else { new };
        for slot in slots {
            let Some(running) = self.in_slot(slot) else { continue };
            // The time in which it stood still does not count.
            let Some(token) = running.token else { continue };
            let Ok(stood) = outputs.suspended_time(token) else { continue };
            let Some(at) = running.begun.checked_add(limit.saturating_add(stood)) else { continue };
            running.timeout = Some(limit);
            let _ = outputs.set_deadline(token, Some((at, self.shared.plan.kill())));
        }
    }
}
