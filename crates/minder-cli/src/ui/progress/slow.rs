//! Reports jobs that run far longer than the others, each of them once: such a job may hang.

use std::time::Duration;

use super::line::{coarse, rough};

/// The minimum age of a slow job.
const AGE_MIN: Duration = Duration::from_secs(60);
/// The minimum age of a slow job, as a multiple of the median duration of finished jobs.
const TIMES: u32 = 10;
/// The maximum number of slow jobs that a run reports.
const REPORTED_MAX: usize = 10;

/// The numbers of the slow jobs that were reported.
#[derive(Debug, Default)]
pub(crate) struct SlowJobs {
    reported: Vec<u64>,
}

impl SlowJobs {
    /// Checks the running jobs, given by number and age, the oldest first. `median` is the median
    /// duration of finished jobs. Returns a line for each job that is newly slow, and calls `name`
    /// for these only.
    pub(crate) fn check(
        &mut self,
        running: impl IntoIterator<Item = (u64, Duration)>,
        median: Option<Duration>,
        name: impl Fn(u64) -> String,
    ) -> Vec<String> {
        let Some(median) = median else { return Vec::new() };
        let limit = median.saturating_mul(TIMES).max(AGE_MIN);
        let mut lines = Vec::new();
        for (job, age) in running.into_iter().take_while(|(_, age)| *age > limit) {
            if self.is_exhausted() {
                break;
            }
            if !self.reported.contains(&job) {
                self.reported.push(job);
                let age = coarse(age);
                let median = rough(median);
                let name = name(job);
                lines.push(format!("job {job} has been running for {age}: `{name}` (median {median})"));
            }
        }
        lines
    }

    /// Returns `true` if this run reports no more slow jobs, so that no more checks are needed.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.reported.len() >= REPORTED_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(slow: &mut SlowJobs, running: &[(u64, u64)], median: Option<u64>) -> Vec<String> {
        let running = running.iter().map(|(job, age)| (*job, Duration::from_secs(*age)));
        slow.check(running, median.map(Duration::from_millis), |job| format!("./test.sh {job}"))
    }

    #[test]
    fn slow_job_is_reported_once() {
        let mut slow = SlowJobs::default();
        assert_eq!(check(&mut slow, &[(17, 60)], Some(3100)), [""; 0]);
        assert_eq!(
            check(&mut slow, &[(17, 120), (18, 30)], Some(3100)),
            ["job 17 has been running for 2 min: `./test.sh 17` (median 3.1 s)"]
        );
        assert_eq!(check(&mut slow, &[(17, 500), (18, 30)], Some(3100)), [""; 0]);
        assert_eq!(check(&mut slow, &[(17, 600), (18, 130)], Some(3100)).len(), 1);
    }

    #[test]
    fn job_is_slow_only_relative_to_the_median() {
        let mut slow = SlowJobs::default();
        assert_eq!(check(&mut slow, &[(1, 100_000)], None), [""; 0], "no job has finished");
        assert_eq!(check(&mut slow, &[(1, 599)], Some(60_000)), [""; 0]);
        assert_eq!(check(&mut slow, &[(1, 601)], Some(60_000)).len(), 1);
        assert_eq!(check(&mut slow, &[(2, 59)], Some(0)), [""; 0]);
        assert_eq!(slow.check([(3, Duration::MAX)], Some(Duration::MAX), |_| String::new()), [""; 0]);
    }

    #[test]
    fn number_of_reports_is_bounded() {
        let mut slow = SlowJobs::default();
        let running: Vec<(u64, u64)> = (1..=8).map(|job| (job, 1000)).collect();
        assert_eq!(check(&mut slow, &running, Some(10)).len(), 8);
        let running: Vec<(u64, u64)> = (5..=12).map(|job| (job, 1000)).collect();
        assert_eq!(check(&mut slow, &running, Some(10)).len(), 2);
        assert!(slow.is_exhausted());
        assert_eq!(check(&mut slow, &running, Some(10)), [""; 0]);
    }
}
