//! How long the rest of a run takes: from the rate of completions of late, and from the age of the
//! jobs that run.
//!
//! Time comes in as data. A job that runs counts as a part of a completion, as far as its age is a
//! part of what jobs take here; else jobs that start and end together would look like standstill
//! and rush in turn.

use std::time::Duration;

/// The past fades with this time, or with half of the run, whichever is longer.
const FADE_MIN: f64 = 30.0;
/// How much of a completion a running job is at most.
const CREDIT_MAX: f64 = 0.95;
/// What is assumed of a running job of which nothing is known.
const CREDIT_UNKNOWN: f64 = 0.5;
/// A job that is older than most become goes on for this part of its age.
const OVERDUE: f64 = 0.3;
/// At the end places become free one by one: that costs this part of a job, the less the fewer
/// places there are.
const ENDING: f64 = 0.3;
/// What takes longer than this cannot be told.
const TOLD_MAX: f64 = 1000.0 * 86_400.0;

/// What a run looks like at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample<'a> {
    /// Since the run began.
    pub(super) elapsed: Duration,
    /// Jobs that ran to their end.
    pub(super) done: u64,
    /// Jobs that run or are still to be run, if that is known.
    pub(super) rest: Option<u64>,
    /// Jobs that run.
    pub(super) running: u64,
    /// The ages of the oldest of them.
    pub(super) ages: &'a [Duration],
    /// What jobs took that ended.
    pub(super) median: Option<Duration>,
    /// Whether all of them stand still.
    pub(super) suspended: bool,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    elapsed: f64,
    /// Time that was not spent suspended.
    active: f64,
    /// Completions, with parts of them, at the last moment.
    work_before: f64,
    /// Completions and the time that they took, both faded.
    work: f64,
    time: f64,
}

impl Estimate {
    /// Takes what a moment shows.
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

    /// How long the rest takes, if that can be told.
    pub(super) fn left(&self, sample: &Sample<'_>) -> Option<Duration> {
        let rest = sample.rest.filter(|rest| *rest > 0 && sample.done > 0 && !sample.suspended)?;
        if self.work <= 0.0 || self.time <= 0.0 {
            return None;
        }
        let by_rate = (rest as f64 - self.credit(sample)).max(0.0) * self.time / self.work;
        let usual = self.usual(sample);
        let waiting = rest > sample.running;
        let ending = if waiting { usual * ENDING * (1.0 - 1.0 / sample.running.max(1) as f64) } else { 0.0 };
        // Whoever waits for a place takes its own time after that.
        let least = if waiting { usual } else { 0.0 };
        let left = (by_rate + ending).max(least).max(Self::of_running(sample, usual));
        (left <= TOLD_MAX).then(|| Duration::from_secs_f64(left))
    }

    /// How long the running jobs take: the youngest as long as jobs do, the oldest maybe longer.
    fn of_running(sample: &Sample<'_>, usual: f64) -> f64 {
        let age = |age: Option<&Duration>| age.map_or(0.0, Duration::as_secs_f64);
        let (oldest, youngest) = (age(sample.ages.first()), age(sample.ages.last()));
        let overdue = if oldest < usual { 0.0 } else { oldest * OVERDUE };
        if sample.running > 0 { overdue.max(usual - youngest) } else { 0.0 }
    }

    /// What a job takes here.
    fn usual(&self, sample: &Sample<'_>) -> f64 {
        let by_rate = || if self.work > 0.0 { self.time / self.work * sample.running as f64 } else { 0.0 };
        sample.median.map_or_else(by_rate, |median| median.as_secs_f64())
    }

    /// How many completions the running jobs amount to.
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
        // Younger ones go on as the known ones do: with the same age where all began together, else evenly
        // down to nothing.
        let step = (first - last) / (sample.ages.len().max(2) - 1) as f64;
        let begun = if step > 0.0 { (last / step).min(unknown) } else { unknown };
        let younger = (begun * last - step * begun * begun / 2.0).clamp(0.0, unknown * CREDIT_MAX);
        parts().map(|part| part.min(CREDIT_MAX)).sum::<f64>() + younger
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that is played: jobs of given lengths, in this many places.
    struct Play {
        lengths: Vec<f64>,
        places: usize,
        estimate: Estimate,
        /// Begin and end of each job.
        spans: Vec<(f64, f64)>,
        end: f64,
    }

    impl Play {
        fn new(places: usize, lengths: Vec<f64>) -> Self {
            let mut free = vec![0.0_f64; places];
            let mut spans = Vec::new();
            for length in &lengths {
                let place = free.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("a place");
                spans.push((*place, *place + length));
                *place += length;
            }
            let end = free.into_iter().fold(0.0, f64::max);
            Self { lengths, places, estimate: Estimate::default(), spans, end }
        }

        /// Plays all of it. Returns the moments, what was said to be left, and what was left.
        fn run(mut self) -> Vec<(f64, Option<f64>, f64)> {
            let step = (self.end / 400.0).max(0.1);
            let mut said = Vec::new();
            for tick in 0.. {
                let now = f64::from(tick) * step;
                if now >= self.end {
                    break;
                }
                let mut ended: Vec<f64> = Vec::new();
                let mut ages = Vec::new();
                for ((begin, end), length) in self.spans.iter().zip(&self.lengths) {
                    match () {
                        () if *end <= now => ended.push(*length),
                        () if *begin <= now => ages.push(Duration::from_secs_f64(now - begin)),
                        () => (),
                    }
                }
                ended.sort_by(f64::total_cmp);
                ages.sort_by(|a, b| b.cmp(a));
                let running = ages.len() as u64;
                assert!(ages.len() <= self.places);
                ages.truncate(8);
                let sample = Sample {
                    elapsed: Duration::from_secs_f64(now),
                    done: ended.len() as u64,
                    rest: Some((self.lengths.len() - ended.len()) as u64),
                    running,
                    ages: &ages,
                    median: ended.get(ended.len() / 2).map(|length| Duration::from_secs_f64(*length)),
                    suspended: false,
                };
                self.estimate.add(&sample);
                let left = self.estimate.left(&sample).map(|left| left.as_secs_f64());
                said.push((now, left, self.end - now));
            }
            said
        }
    }

    /// Numbers in 0..1 that are the same each time.
    fn random(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    /// Asserts that from one part of the run to another what was said is right within so much.
    fn assert_right(name: &str, said: &[(f64, Option<f64>, f64)], parts: std::ops::Range<f64>, within: f64) {
        let end = said.last().map_or(0.0, |(now, _, left)| now + left);
        for (now, said, left) in said {
            if parts.contains(&(now / end)) {
                let said = said.unwrap_or_else(|| panic!("{name}: nothing is said at {now:.1} of {end:.1}"));
                let off = said / left;
                assert!(
                    (1.0 - within..=1.0 + within).contains(&off),
                    "{name}: at {now:.1} of {end:.1} s {said:.1} s were said to be left, {left:.1} s were"
                );
            }
        }
    }

    #[test]
    fn steady_work_is_told_within_a_fifth() {
        let fifth =
            [(1, 40, 3.0), (2, 100, 600.0), (4, 400, 0.5), (8, 200, 30.0), (64, 2000, 10.0), (16, 400, 2.0)];
        // With few jobs a place it counts how many places work on the last of them.
        let all =
            fifth.map(|run| (run, 0.2)).into_iter().chain([((16, 100, 2.0), 0.35), ((3, 30, 20.0), 0.35)]);
        for ((places, jobs, length), within) in all {
            // The more the lengths differ, the less is to be known.
            for (jitter, more) in [(0.0, 0.0), (0.2, 0.0), (0.5, 0.1)] {
                let mut random = random(7);
                let lengths = (0..jobs).map(|_| length * (1.0 + jitter * (2.0 * random() - 1.0))).collect();
                let said = Play::new(places, lengths).run();
                let name = format!("{jobs} jobs of {length} s ± {jitter} in {places} places");
                assert_right(&name, &said, 0.2..if within > 0.2 { 0.8 } else { 0.9 }, within + more);
            }
        }
    }

    #[test]
    fn uneven_work_is_told_roughly() {
        let mut random = random(3);
        // From a tenth of a second to a minute, the long ones seldom.
        let lengths = (0..1000).map(|_| 0.1 + 60.0 * random().powi(6)).collect();
        assert_right("uneven", &Play::new(4, lengths).run(), 0.3..0.9, 0.4);
    }

    #[test]
    fn a_rush_is_forgotten() {
        // What was done already is passed over in no time; then comes the work.
        let mut lengths = vec![0.001; 1000];
        lengths.resize(1300, 2.0);
        let said = Play::new(2, lengths).run();
        assert!(said.iter().all(|(_, said, _)| said.is_none_or(|said| said < 10_000.0)));
        assert_right("rush", &said, 0.5..0.9, 0.5);
        // And a run that becomes quicker.
        let mut lengths = vec![10.0; 40];
        lengths.resize(400, 1.0);
        let said = Play::new(4, lengths).run();
        assert_right("quicker", &said, 0.85..0.95, 0.8);
    }

    #[test]
    fn the_end_is_never_about_to_come_for_ever() {
        let mut lengths = vec![1.0; 50];
        lengths.push(300.0);
        let said = Play::new(2, lengths).run();
        let late: Vec<f64> =
            said.iter().filter(|(now, ..)| *now > 30.0).filter_map(|(_, said, _)| *said).collect();
        assert!(!late.is_empty() && late.iter().all(|said| *said >= 1.0), "{late:?}");
        assert!(
            late.windows(2).all(|pair| pair[1] >= pair[0]),
            "an overdue job seems to come nearer to its end"
        );
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        let mut estimate = Estimate::default();
        let at = |seconds| Sample { elapsed: Duration::from_secs(seconds), ..Sample::default() };
        // Nothing at all; no total; nothing done yet; all done at once; time that stands still.
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
        assert_eq!(estimate.left(&later), None, "in a million years");
        let backwards = Sample { done: 2, rest: Some(4), ages: &[Duration::MAX], ..at(1) };
        estimate.add(&backwards);
        assert_eq!(estimate.left(&backwards), None);
    }

    #[test]
    fn time_that_stood_still_does_not_count() {
        let mut estimate = Estimate::default();
        let sample = |seconds, done, suspended| Sample {
            elapsed: Duration::from_secs(seconds),
            done,
            rest: Some(20 - done),
            running: 1,
            median: Some(Duration::from_secs(1)),
            ages: &[Duration::ZERO],
            suspended,
        };
        (1..=10).for_each(|second| estimate.add(&sample(second, second, false)));
        (11..=500).for_each(|second| estimate.add(&sample(second, 10, true)));
        let last = sample(501, 11, false);
        estimate.add(&last);
        let left = estimate.left(&last).expect("an estimate").as_secs_f64();
        assert!((7.5..=10.5).contains(&left), "{left}");
    }
}
