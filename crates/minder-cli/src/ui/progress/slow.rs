//! Jobs that run far longer than the others: said once of each, so that nobody waits for a job that
//! hangs.

use std::time::Duration;

use super::line::{coarse, rough};

/// No job is slow before.
const AGE_MIN: Duration = Duration::from_secs(60);
/// How many times longer than half of the others a slow job runs.
const TIMES: u32 = 10;
/// How many jobs are named in a run.
const SAID_MAX: usize = 10;

/// The jobs of which it was said.
#[derive(Debug, Default)]
pub(crate) struct SlowJobs {
    said: Vec<u64>,
}

impl SlowJobs {
    /// Looks at the jobs that run, by number and age, the oldest first; `median` is what those took
    /// that ended. Returns a line for each that is to be told of. `name` is asked for those
    /// alone.
    pub(crate) fn check(
        &mut self,
        running: impl IntoIterator<Item = (u64, Duration)>,
        median: Option<Duration>,
        name: impl Fn(u64) -> String,
    ) -> Vec<String> {
        let Some(median) = median.filter(|_| !self.is_over()) else { return Vec::new() };
        let limit = median.saturating_mul(TIMES).max(AGE_MIN);
        let mut lines = Vec::new();
        for (job, age) in running.into_iter().take_while(|(_, age)| *age > limit) {
            if !self.said.contains(&job) && !self.is_over() {
                self.said.push(job);
                let (age, others) = (coarse(age), rough(median));
                lines.push(format!("job {job} runs for {age}: `{}` (others took {others})", name(job)));
            }
        }
        lines
    }

    /// Whether nothing more will be said in this run: nobody has to look any more.
    pub(crate) fn is_over(&self) -> bool {
        self.said.len() >= SAID_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(slow: &mut SlowJobs, running: &[(u64, u64)], median: Option<u64>) -> Vec<String> {
        let running = running.iter().map(|(job, age)| (*job, Duration::from_secs(*age)));
        slow.check(running, median.map(Duration::from_millis), |job| format!("./test.sh {job}"))
    }

    #[test]
    fn a_slow_job_is_told_of_once() {
        let mut slow = SlowJobs::default();
        assert_eq!(look(&mut slow, &[(17, 60)], Some(3100)), [""; 0]);
        assert_eq!(
            look(&mut slow, &[(17, 120), (18, 30)], Some(3100)),
            ["job 17 runs for 2 min: `./test.sh 17` (others took 3.1 s)"]
        );
        assert_eq!(look(&mut slow, &[(17, 500), (18, 30)], Some(3100)), [""; 0]);
        assert_eq!(look(&mut slow, &[(17, 600), (18, 130)], Some(3100)).len(), 1);
    }

    #[test]
    fn slow_is_what_is_slow_beside_the_others() {
        let mut slow = SlowJobs::default();
        assert_eq!(look(&mut slow, &[(1, 100_000)], None), [""; 0], "there are no others");
        assert_eq!(look(&mut slow, &[(1, 599)], Some(60_000)), [""; 0]);
        assert_eq!(look(&mut slow, &[(1, 601)], Some(60_000)).len(), 1);
        assert_eq!(look(&mut slow, &[(2, 59)], Some(0)), [""; 0]);
        assert_eq!(slow.check([(3, Duration::MAX)], Some(Duration::MAX), |_| String::new()), [""; 0]);
    }

    #[test]
    fn no_run_complains_for_ever() {
        let mut slow = SlowJobs::default();
        let running: Vec<(u64, u64)> = (1..=8).map(|job| (job, 1000)).collect();
        assert_eq!(look(&mut slow, &running, Some(10)).len(), 8);
        let running: Vec<(u64, u64)> = (5..=12).map(|job| (job, 1000)).collect();
        assert_eq!(look(&mut slow, &running, Some(10)).len(), 2);
        assert!(slow.is_over());
        assert_eq!(look(&mut slow, &running, Some(10)), [""; 0]);
    }
}
