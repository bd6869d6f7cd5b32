//! Estimates how long the rest of a run takes, from the recent rate of completions and from the
//! ages of the running jobs.
//!
//! The code reads no clock: its caller passes the time. A running job counts as a fraction of a
//! completion, which is its age divided by the usual duration of a job. Otherwise jobs that start
//! and finish together would make the rate alternate between zero and very high.

use std::time::Duration;

/// The minimum time constant, in seconds, with which past completions lose weight. The time
/// constant is half of the run if that is longer.
const FADE_MIN: f64 = 30.0;
/// The maximum fraction of a completion that a running job counts as.
const CREDIT_MAX: f64 = 0.95;
/// The fraction of a completion that a running job of unknown age counts as.
const CREDIT_UNKNOWN: f64 = 0.5;
/// The assumed remaining time of a job that is older than usual, as a fraction of its age.
const OVERDUE: f64 = 0.3;
/// At the end of a run the slots become idle one after another. This is the time that it costs, as
/// a fraction of the usual duration of a job. It is less if there are few slots.
const ENDING: f64 = 0.3;
/// The maximum estimate in seconds; a longer one is reported as unknown.
const ESTIMATE_MAX: f64 = 1000.0 * 86_400.0;

/// The state of a run at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample<'a> {
    /// The time since the start of the run.
    pub(super) elapsed: Duration,
    /// The number of finished jobs.
    pub(super) done: u64,
    /// The number of jobs that run or wait, if it is known.
    pub(super) rest: Option<u64>,
    /// The number of running jobs.
    pub(super) running: u64,
    /// The ages of the oldest running jobs, the oldest first.
    pub(super) ages: &'a [Duration],
    /// The median duration of finished jobs, or `expected` until there are some.
    pub(super) median: Option<Duration>,
    /// The mean duration of a job in earlier runs of the command.
    pub(super) expected: Option<Duration>,
    /// `true` if all running jobs are suspended.
    pub(super) suspended: bool,
}

/// An estimate that is updated by samples.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    /// The time of the last sample, in seconds since the start of the run.
    elapsed: f64,
    /// The part of this time in which jobs were not suspended.
    active: f64,
    /// The completions at the last sample, including the fractions of running jobs.
    work_before: f64,
    /// The weighted number of completions.
    work: f64,
    /// The time of these completions, with the same weights.
    time: f64,
}

impl Estimate {
    /// Adds a sample.
    pub(super) fn add(&mut self, sample: &Sample<'_>) {
        let elapsed = sample.elapsed.as_secs_f64();
        let passed = (elapsed - self.elapsed).max(0.0);
        self.elapsed = elapsed;
        if sample.suspended {
            return;
        }
        self.active += passed;
        let work_now = sample.done as f64 + self.credit(sample);
        let kept = (-passed / FADE_MIN.max(self.active / 2.0)).exp();
        self.work = self.work * kept + work_now - self.work_before;
        self.time = self.time * kept + passed;
        self.work_before = work_now;
    }

    /// Returns how long the rest of the run takes, if it can be estimated.
    pub(super) fn left(&self, sample: &Sample<'_>) -> Option<Duration> {
        let rest = sample.rest.filter(|rest| *rest > 0 && !sample.suspended)?;
        // The first jobs that finish are the shortest.
        if let Some(expected) = sample.expected
            && sample.done < sample.running
        {
            return self.by_earlier_runs(sample, rest, expected.as_secs_f64());
        }
        if sample.done == 0 {
            return None;
        }
        if self.work <= 0.0 || self.time <= 0.0 {
            return None;
        }
        let by_rate = (rest as f64 - self.credit(sample)).max(0.0) * self.time / self.work;
        let usual = self.usual(sample);
        let waiting = rest > sample.running;
        let ending = if waiting { usual * ENDING * (1.0 - 1.0 / sample.running.max(1) as f64) } else { 0.0 };
        // A waiting job takes at least the usual duration.
        let least = if waiting { usual } else { 0.0 };
        let left = (by_rate + ending).max(least).max(Self::of_running(sample, usual));
        (left <= ESTIMATE_MAX).then(|| Duration::from_secs_f64(left))
    }

    /// Returns how long the rest takes if its jobs take as long as in earlier runs, with as many at
    /// once as now.
    fn by_earlier_runs(&self, sample: &Sample<'_>, rest: u64, expected: f64) -> Option<Duration> {
        let jobs = (rest as f64 - self.credit(sample)).max(0.0);
        let least = if rest > sample.running { expected } else { 0.0 };
        let left = (jobs * expected / sample.running.max(1) as f64).max(least);
        let left = left.max(Self::of_running(sample, expected));
        (left <= ESTIMATE_MAX).then(|| Duration::from_secs_f64(left))
    }

    /// Returns how long the running jobs will take. The youngest takes the usual time, and the
    /// oldest may take longer.
    fn of_running(sample: &Sample<'_>, usual: f64) -> f64 {
        let seconds = |age: Option<&Duration>| age.map_or(0.0, Duration::as_secs_f64);
        let oldest = seconds(sample.ages.first());
        let youngest = seconds(sample.ages.last());
        let overdue = if oldest < usual { 0.0 } else { oldest * OVERDUE };
        if sample.running > 0 { overdue.max(usual - youngest) } else { 0.0 }
    }

    /// Returns the usual duration of a job in this run, in seconds.
    fn usual(&self, sample: &Sample<'_>) -> f64 {
        let by_rate = || if self.work > 0.0 { self.time / self.work * sample.running as f64 } else { 0.0 };
        sample.median.map_or_else(by_rate, |median| median.as_secs_f64())
    }

    /// Returns the sum of the fractions of a completion that the running jobs count as.
    fn credit(&self, sample: &Sample<'_>) -> f64 {
        let Some(usual) = sample.median.map(|median| median.as_secs_f64()).filter(|usual| *usual > 0.0)
        else {
            return sample.running as f64 * CREDIT_UNKNOWN;
        };
        let parts = || sample.ages.iter().map(|age| age.as_secs_f64() / usual);
        let unknown = sample.running.saturating_sub(sample.ages.len() as u64) as f64;
        let (Some(first), Some(last)) = (parts().next(), parts().next_back()) else {
            return unknown * CREDIT_UNKNOWN;
        };
        // The ages of younger jobs are unknown. They are assumed to continue the series of the known
        // ages: all equal if the known ones are equal, else in equal steps down to zero.
        let step = (first - last) / (sample.ages.len().max(2) - 1) as f64;
        let counted = if step > 0.0 { (last / step).min(unknown) } else { unknown };
        let younger = (counted * last - step * counted * counted / 2.0).clamp(0.0, unknown * CREDIT_MAX);
        parts().map(|part| part.min(CREDIT_MAX)).sum::<f64>() + younger
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated run: jobs with given durations, in a number of slots.
    struct Simulation {
        durations: Vec<f64>,
        slots: usize,
        estimate: Estimate,
        /// The start and the end of each job.
        spans: Vec<(f64, f64)>,
        end: f64,
    }

    /// A moment of a simulated run.
    struct Point {
        now: f64,
        /// The estimated time that is left.
        estimated: Option<f64>,
        /// The time that is left.
        left: f64,
    }

    impl Simulation {
        fn new(slots: usize, durations: Vec<f64>) -> Self {
            let mut free_at = vec![0.0_f64; slots];
            let mut spans = Vec::new();
            for duration in &durations {
                let slot = free_at.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("find free slot");
                spans.push((*slot, *slot + duration));
                *slot += duration;
            }
            let end = free_at.into_iter().fold(0.0, f64::max);
            Self { durations, slots, estimate: Estimate::default(), spans, end }
        }

        fn run(mut self) -> Vec<Point> {
            let step = (self.end / 400.0).max(0.1);
            let mut points = Vec::new();
            for tick in 0.. {
                let now = f64::from(tick) * step;
                if now >= self.end {
                    break;
                }
                let mut finished: Vec<f64> = Vec::new();
                let mut ages = Vec::new();
                for ((start, end), duration) in self.spans.iter().zip(&self.durations) {
                    if *end <= now {
                        finished.push(*duration);
                    } else if *start <= now {
                        ages.push(Duration::from_secs_f64(now - start));
                    }
                }
                finished.sort_by(f64::total_cmp);
                ages.sort_by(|a, b| b.cmp(a));
                let running = ages.len() as u64;
                assert!(ages.len() <= self.slots);
                ages.truncate(8);
                let sample = Sample {
                    elapsed: Duration::from_secs_f64(now),
                    done: finished.len() as u64,
                    rest: Some((self.durations.len() - finished.len()) as u64),
                    running,
                    ages: &ages,
                    expected: None,
                    median: finished.get(finished.len() / 2).map(|time| Duration::from_secs_f64(*time)),
                    suspended: false,
                };
                self.estimate.add(&sample);
                let estimated = self.estimate.left(&sample).map(|left| left.as_secs_f64());
                points.push(Point { now, estimated, left: self.end - now });
            }
            points
        }
    }

    /// Returns a generator of pseudo-random numbers in 0..1. The same seed gives the same numbers.
    fn random(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    /// Asserts that in this part of the run the estimates are right within a relative error.
    fn assert_right(name: &str, points: &[Point], part: std::ops::Range<f64>, error_max: f64) {
        let end = points.last().map_or(0.0, |point| point.now + point.left);
        for Point { now, estimated, left } in points {
            if part.contains(&(now / end)) {
                let estimated =
                    estimated.unwrap_or_else(|| panic!("{name}: no estimate at {now:.1} of {end:.1} s"));
                let ratio = estimated / left;
                assert!(
                    (1.0 - error_max..=1.0 + error_max).contains(&ratio),
                    "{name}: at {now:.1} of {end:.1} s the estimate is {estimated:.1} s, {left:.1} s are left"
                );
            }
        }
    }

    #[test]
    fn estimate_of_steady_work_is_right_within_a_fifth() {
        let precise =
            [(1, 40, 3.0), (2, 100, 600.0), (4, 400, 0.5), (8, 200, 30.0), (64, 2000, 10.0), (16, 400, 2.0)];
        // With few jobs per slot, it matters how many slots are busy with the last jobs.
        let rough = [(16, 100, 2.0), (3, 30, 20.0)];
        let all = precise.map(|run| (run, 0.2)).into_iter().chain(rough.map(|run| (run, 0.35)));
        for ((slots, jobs, duration), error_max) in all {
            // Durations that differ more allow less precise estimates.
            for (jitter, more) in [(0.0, 0.0), (0.2, 0.0), (0.5, 0.1)] {
                let mut random = random(7);
                let durations =
                    (0..jobs).map(|_| duration * (1.0 + jitter * (2.0 * random() - 1.0))).collect();
                let points = Simulation::new(slots, durations).run();
                let name = format!("{jobs} jobs of {duration} s ± {jitter} in {slots} slots");
                let part = 0.2..if error_max > 0.2 { 0.8 } else { 0.9 };
                assert_right(&name, &points, part, error_max + more);
            }
        }
    }

    #[test]
    fn estimate_of_uneven_work_is_roughly_right() {
        let mut random = random(3);
        // From a tenth of a second to a minute; long jobs are rare.
        let durations = (0..1000).map(|_| 0.1 + 60.0 * random().powi(6)).collect();
        assert_right("uneven", &Simulation::new(4, durations).run(), 0.3..0.9, 0.4);
    }

    #[test]
    fn estimate_follows_a_change_of_speed() {
        // Jobs that have nothing to do, followed by jobs with work.
        let mut durations = vec![0.001; 1000];
        durations.resize(1300, 2.0);
        let points = Simulation::new(2, durations).run();
        assert!(points.iter().all(|point| point.estimated.is_none_or(|estimated| estimated < 10_000.0)));
        assert_right("slower", &points, 0.5..0.9, 0.5);
        let mut durations = vec![10.0; 40];
        durations.resize(400, 1.0);
        let points = Simulation::new(4, durations).run();
        assert_right("faster", &points, 0.85..0.95, 0.8);
    }

    #[test]
    fn estimate_does_not_approach_zero_while_a_job_is_overdue() {
        let mut durations = vec![1.0; 50];
        durations.push(300.0);
        let points = Simulation::new(2, durations).run();
        let late: Vec<f64> =
            points.iter().filter(|point| point.now > 30.0).filter_map(|point| point.estimated).collect();
        assert!(!late.is_empty() && late.iter().all(|estimated| *estimated >= 1.0), "{late:?}");
        assert!(late.windows(2).all(|pair| pair[1] >= pair[0]), "the estimate decreases: {late:?}");
    }

    #[test]
    fn estimate_is_unknown_without_data() {
        let mut estimate = Estimate::default();
        let at = |seconds| Sample { elapsed: Duration::from_secs(seconds), ..Sample::default() };
        // No data; no total; no finished job; no job left; suspended jobs; an absurd count.
        for sample in [
            at(0),
            Sample { done: 3, ..at(0) },
            Sample { running: 2, rest: Some(2), ..at(1) },
            Sample { done: 5, rest: Some(0), ..at(1) },
            Sample { done: 5, rest: Some(3), suspended: true, ..at(9) },
            Sample { done: u64::MAX, rest: Some(0), ..at(9) },
        ] {
            estimate.add(&sample);
            assert_eq!(estimate.left(&sample), None, "{sample:?}");
        }
        let mut estimate = Estimate::default();
        let all = Sample { done: 5, rest: Some(u64::MAX), running: 3, ..at(0) };
        estimate.add(&all);
        assert_eq!(estimate.left(&all), None);
        let later = Sample { elapsed: Duration::from_secs(1 << 40), ..all };
        estimate.add(&later);
        assert_eq!(estimate.left(&later), None, "the estimate is too long");
        let backwards = Sample { done: 2, rest: Some(4), ages: &[Duration::MAX], ..at(1) };
        estimate.add(&backwards);
        assert_eq!(estimate.left(&backwards), None);
    }

    #[test]
    fn earlier_runs_give_an_estimate_before_the_first_jobs_have_finished() {
        let estimate = Estimate::default();
        let expected = Some(Duration::from_secs(10));
        let ages = [Duration::from_secs(5); 2];
        let start = Sample { rest: Some(20), running: 2, expected, median: expected, ..Sample::default() };
        let left = |sample: &Sample<'_>| estimate.left(sample).map(|left| left.as_secs_f64().round());
        let early = Sample { ages: &ages, elapsed: Duration::from_secs(5), ..start.clone() };
        assert_eq!(left(&early), Some(95.0));
        assert_eq!(left(&Sample { expected: None, ..early.clone() }), None);
        assert_eq!(left(&Sample { rest: None, ..early.clone() }), None);
        let last = Sample { rest: Some(2), ..early };
        assert_eq!(left(&last), Some(5.0));
    }

    #[test]
    fn suspended_time_does_not_count() {
        let mut estimate = Estimate::default();
        let sample = |seconds, done, suspended| Sample {
            elapsed: Duration::from_secs(seconds),
            done,
            rest: Some(20 - done),
            running: 1,
            median: Some(Duration::from_secs(1)),
            expected: None,
            ages: &[Duration::ZERO],
            suspended,
        };
        (1..=10).for_each(|second| estimate.add(&sample(second, second, false)));
        (11..=500).for_each(|second| estimate.add(&sample(second, 10, true)));
        let last = sample(501, 11, false);
        estimate.add(&last);
        let left = estimate.left(&last).expect("estimate time left").as_secs_f64();
        assert!((7.5..=10.5).contains(&left), "{left}");
    }
}
