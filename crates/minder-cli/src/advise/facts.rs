//! The facts that the record has about a run: the times of its jobs, and the load of the machine.

use std::fmt;
use std::time::Duration;

use minder_record::event::{AttemptFinished, AttemptHost, JobFinished};

use super::simulation::Work;

/// The most jobs that are considered: they take 44 bytes each.
pub(crate) const JOBS_MAX: usize = 4_000_000;
/// If the main thread did less than this part of a job's work, its time in the queue of a processor
/// tells nothing about the job.
const MAIN_MIN: f64 = 0.5;

/// The times of one job, compact, since there may be millions. A time that is not known is NaN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobTimes {
    pub(super) number: u64,
    pub(super) at: f64,
    wall: f32,
    cpu: f32,
    ready: f32,
    main: f32,
    /// The maximum resident set in KiB, or 0.
    rss: u32,
    retried: bool,
    end: End,
}

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// By itself. A job that failed counts as well, because many programs report a result by their
    /// exit code.
    Own,
    /// By a signal or a time-out: it may need longer than it ran.
    Early,
    NotStarted,
}

impl JobTimes {
    /// Returns the times of a job.
    fn of(ended: &JobFinished) -> Self {
        let end = if ended.error.is_some() {
            End::NotStarted
        } else if ended.timed_out || ended.cause.is_some() || ended.signal.is_some() {
            End::Early
        } else {
            End::Own
        };
        let known = |time: Option<f64>| time.filter(|time| time.is_finite() && *time >= 0.0);
        // Where the system does not tell what a child used, the size is zero as well. A job that needed
        // less memory than minder has no size.
        let tells_cpu = ended.rss != Some(0);
        let cpu = if tells_cpu { known(ended.user).zip(known(ended.system)) } else { None };
        let compact = |time: Option<f64>| known(time).map_or(f32::NAN, |time| time as f32);
        Self {
            number: ended.job,
            at: ended.at,
            wall: compact(Some(ended.wall)).max(0.0),
            cpu: compact(cpu.map(|(user, system)| user + system)),
            ready: compact(ended.ready),
            main: compact(ended.main),
            rss: ended.rss.map_or(0, |rss| u32::try_from(rss >> 10).unwrap_or(u32::MAX)),
            retried: ended.attempts.is_some_and(|attempts| attempts > 1),
            end,
        }
    }

    pub(super) fn wall(&self) -> f64 {
        self.wall.into()
    }

    pub(super) fn end(&self) -> f64 {
        self.at + self.wall()
    }

    /// Returns the CPU time, if it is known.
    pub(super) fn cpu(&self) -> Option<f64> {
        (!self.cpu.is_nan()).then_some(self.cpu.into())
    }

    pub(super) fn rss(&self) -> u64 {
        u64::from(self.rss) << 10
    }

    pub(super) fn was_retried(&self) -> bool {
        self.retried
    }

    /// Returns how long the job was ready to run, if that is known: what its main thread was,
    /// scaled to all of its work.
    pub(super) fn ready(&self) -> Option<f64> {
        let cpu = self.cpu()?;
        if self.ready.is_nan() {
            return None;
        }
        let scale = match f64::from(self.main) {
            main if main.is_nan() => 1.0,
            main if main < MAIN_MIN * cpu => return None,
            main => cpu / main,
        };
        Some((f64::from(self.ready) * scale).min(self.rest()))
    }

    /// Returns the time in which the job did not compute.
    pub(super) fn rest(&self) -> f64 {
        (self.wall() - self.cpu().unwrap_or(0.0)).max(0.0)
    }

    /// Returns the work of the job. `waits` is the part of [`rest`](Self::rest) that counts as waiting if
    /// the time in the queue of a processor is not known.
    pub(super) fn work(&self, waits: f64) -> Work {
        let wall = self.wall();
        let Some(cpu) = self.cpu() else { return Work { cpu: 0.0, width: 1.0, wait: wall } };
        if cpu > wall && wall > 0.0 {
            // Several threads compute at once.
            return Work { cpu: wall, width: cpu / wall, wait: 0.0 };
        }
        let rest = self.rest();
        let wait = self.ready().map_or(rest * waits, |ready| rest - ready);
        Work { cpu, width: 1.0, wait }
    }
}

/// Why no advice can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unadvisable {
    NoJob,
    OneJob,
    NoCpuTimes,
}

impl fmt::Display for Unadvisable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoJob => "no job has ended: there is nothing to advise",
            Self::OneJob => "only one job has ended: there is nothing to order",
            Self::NoCpuTimes => "its record has no CPU times: nothing tells whether jobs wait or compute",
        })
    }
}

/// The facts that a record has about a run.
#[derive(Debug, Default)]
pub(crate) struct RunFacts {
    /// The jobs that were started and have ended, in the order of their starts.
    pub(super) jobs: Vec<JobTimes>,
    pub(super) not_started: u64,
    /// The number of `jobs` that a signal or a time-out ended.
    pub(super) early: u64,
    /// The number of jobs of the run, if its manifest has it.
    total: Option<u64>,
    /// The least time between two starts, in seconds.
    pub(super) delay: f64,
    /// Jobs beyond [`JOBS_MAX`].
    pub(super) too_many: u64,
    pub(super) attempts: u32,
    pub(super) host: Option<AttemptHost>,
    /// The last event of each attempt.
    finished: Vec<AttemptFinished>,
    /// `true` if the last attempt has no last event, because it was killed.
    pub(super) killed: bool,
}

impl RunFacts {
    /// Begins an attempt.
    pub(crate) fn begin_attempt(&mut self) {
        self.attempts += 1;
        self.killed = true;
    }

    pub(crate) fn set_host(&mut self, host: AttemptHost) {
        self.host = Some(host);
    }

    pub(crate) fn add_end(&mut self, finished: AttemptFinished) {
        self.finished.push(finished);
        self.killed = false;
    }

    /// Sets how many jobs the run has, if its manifest tells it, and the least time between two starts.
    pub(crate) fn set_request(&mut self, total: Option<u64>, delay: Duration) {
        self.total = total;
        self.delay = delay.as_secs_f64();
    }

    /// Adds a job. The last event of a job is the valid one.
    pub(crate) fn add_job(&mut self, ended: &JobFinished) {
        if self.jobs.len() < JOBS_MAX {
            self.jobs.push(JobTimes::of(ended));
        } else {
            self.too_many += 1;
        }
    }

    /// Sorts the jobs by their starts. Removes earlier results of the same job, and jobs that did not
    /// start.
    pub(crate) fn complete(&mut self) {
        self.jobs.reverse();
        self.jobs.sort_by_key(|job| job.number);
        self.jobs.dedup_by_key(|job| job.number);
        let ended = self.jobs.len();
        self.jobs.retain(|job| job.end != End::NotStarted);
        self.not_started = (ended - self.jobs.len()) as u64;
        self.early = self.jobs.iter().filter(|job| job.end == End::Early).count() as u64;
        self.jobs.sort_by(|one, other| one.at.total_cmp(&other.at).then(one.number.cmp(&other.number)));
    }

    /// Returns how many jobs have an end in the record.
    pub(super) fn recorded(&self) -> u64 {
        self.jobs.len() as u64 + self.not_started + self.too_many
    }

    /// Returns the last event of the run, unless it was killed.
    fn last_end(&self) -> Option<&AttemptFinished> {
        if self.killed { None } else { self.finished.last() }
    }

    /// Returns how many jobs have no end in the record, if that is known: minder terminated them, or
    /// they did not run.
    fn missing(&self) -> Option<u64> {
        let by_manifest = self.total.map(|total| total.saturating_sub(self.recorded()));
        match self.last_end() {
            // All jobs ran. The number of jobs in the manifest may be an estimate of the user.
            Some(last) if last.why.is_none() && self.attempts == 1 => Some(last.cut),
            Some(AttemptFinished { not_run: Some(not_run), cut, .. }) => {
                by_manifest.or(Some(not_run.saturating_add(*cut)))
            }
            Some(last) if last.why.is_none() => by_manifest.or(Some(last.cut)),
            _ => by_manifest,
        }
    }

    /// Returns how many jobs the run has, if that is known.
    pub(super) fn total(&self) -> Option<u64> {
        self.missing().map(|missing| self.recorded() + missing)
    }

    /// Returns how many jobs minder terminated with the run. They have no end in the record.
    fn cut(&self) -> u64 {
        let cut = self.last_end().map_or(0, |last| last.cut);
        cut.min(self.missing().unwrap_or(cut))
    }

    /// Returns how many jobs a signal, a time-out or the end of the run ended.
    pub(super) fn ended_early(&self) -> u64 {
        self.early + self.cut()
    }

    /// Returns how many jobs did not run, if that is known. In a run that was killed, some of them ran.
    pub(super) fn not_run(&self) -> Option<u64> {
        self.missing().map(|missing| missing - self.cut())
    }

    /// Returns how many jobs the simulation has that are not in the record.
    fn copies(&self) -> usize {
        let missing = self.missing().unwrap_or_else(|| self.cut());
        usize::try_from(missing).unwrap_or(usize::MAX).min(JOBS_MAX - self.jobs.len().min(JOBS_MAX))
    }

    /// Returns how many jobs the simulation has.
    pub(super) fn simulated(&self) -> usize {
        self.jobs.len() + self.copies()
    }

    /// Returns the jobs, and for each one that is not in the record another one in its place.
    pub(super) fn all_jobs(&self) -> impl Iterator<Item = &JobTimes> {
        self.jobs.iter().chain(self.jobs.iter().cycle().take(self.copies()))
    }

    /// Returns the time from the first start to the last end in the record, if the run was not resumed.
    pub(super) fn span(&self) -> Option<f64> {
        let first = if self.attempts == 1 { self.jobs.first()? } else { return None };
        let last = self.jobs.iter().map(JobTimes::end).fold(first.at, f64::max);
        Some(last - first.at).filter(|span| *span > 0.0)
    }

    /// Returns how long the run took, if it was not killed.
    pub(super) fn elapsed(&self) -> Option<f64> {
        let all: f64 = self.finished.iter().map(|finished| finished.elapsed).sum();
        (!self.killed && self.finished.len() == self.attempts as usize && all > 0.0).then_some(all)
    }

    /// Returns the times of all processors of the machine, busy and idle, if they are known.
    pub(super) fn processor_times(&self) -> Option<(f64, f64)> {
        let times = |finished: &AttemptFinished| Some((finished.cpu_busy?, finished.cpu_idle?));
        let all: Option<Vec<_>> = self.finished.iter().map(times).collect();
        let sum = all?.into_iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (self.elapsed().is_some() && sum.0 + sum.1 > 0.0).then_some(sum)
    }

    /// Returns the memory above which the resident set of a job is its own.
    pub(super) fn own_rss(&self) -> Option<u64> {
        self.finished.iter().map(|finished| finished.own_rss).max().flatten()
    }

    /// Returns the most jobs that ran at once, by their times.
    pub(super) fn most_at_once(&self) -> usize {
        let mut ends: Vec<f64> = self.jobs.iter().map(JobTimes::end).collect();
        ends.sort_by(f64::total_cmp);
        let mut ended = 0;
        let mut most = 0;
        for (started, job) in self.jobs.iter().enumerate() {
            while ends.get(ended).is_some_and(|end| *end <= job.at) {
                ended += 1;
            }
            most = most.max(started + 1 - ended.min(started + 1));
        }
        most.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn ended(job: u64, at: f64, wall: f64, cpu: f64, ready: Option<f64>) -> JobFinished {
        JobFinished {
            job,
            at,
            wall,
            user: Some(cpu),
            system: Some(0.0),
            ready,
            rss: Some(4 << 20),
            exit: Some(0),
            ..JobFinished::default()
        }
    }

    fn work(ended: &JobFinished, waits: f64) -> Work {
        JobTimes::of(ended).work(waits)
    }

    fn assert_work(work: Work, expected: [f64; 3]) {
        let near = |one: f64, other: f64| (one - other).abs() < 1e-6;
        assert!(
            near(work.cpu, expected[0]) && near(work.width, expected[1]) && near(work.wait, expected[2]),
            "{work:?}"
        );
    }

    #[test]
    fn work_separates_computing_waiting_and_the_queue() {
        assert_work(work(&ended(1, 0.0, 10.0, 4.0, Some(2.0)), 1.0), [4.0, 1.0, 4.0]);
        // The clocks differ by a little.
        assert_work(work(&ended(1, 0.0, 10.0, 4.0, Some(7.0)), 1.0), [4.0, 1.0, 0.0]);
        assert_work(work(&ended(1, 0.0, 10.0, 40.0, Some(7.0)), 1.0), [10.0, 4.0, 0.0]);
        // Not known: a part of the rest counts as waiting.
        assert_work(work(&ended(1, 0.0, 10.0, 4.0, None), 0.5), [4.0, 1.0, 3.0]);
        let of_shell = |main| JobFinished { main: Some(main), ..ended(1, 0.0, 10.0, 4.0, Some(1.0)) };
        assert_work(work(&of_shell(2.0), 1.0), [4.0, 1.0, 4.0]);
        assert_work(work(&of_shell(0.1), 1.0), [4.0, 1.0, 6.0]);
        let nowhere = JobFinished { rss: Some(0), ..ended(1, 0.0, 3.0, 0.0, None) };
        assert_work(work(&nowhere, 1.0), [0.0, 1.0, 3.0]);
        assert_eq!(JobTimes::of(&nowhere).cpu(), None);
    }

    #[test]
    fn facts_count_jobs_that_were_ended_early() {
        let mut facts = RunFacts::default();
        facts.begin_attempt();
        facts.add_job(&ended(2, 5.0, 1.0, 1.0, None));
        facts.add_job(&JobFinished { timed_out: true, ..ended(3, 5.1, 3.0, 1.0, None) });
        // Ended early first, and by itself when it ran again.
        facts.add_job(&JobFinished { signal: Some(9), ..ended(1, 5.0, 1.0, 1.0, None) });
        facts.add_job(&JobFinished { error: Some("no".into()), ..JobFinished::default() });
        facts.add_job(&JobFinished { exit: Some(1), ..ended(1, 5.5, 1.0, 1.0, None) });
        facts.add_job(&ended(2, 6.0, 7.0, 1.0, None));
        assert!(facts.killed && facts.elapsed().is_none());
        facts.add_end(AttemptFinished { elapsed: 8.0, own_rss: Some(9), ..AttemptFinished::default() });
        facts.complete();
        assert_eq!((facts.not_started, facts.ended_early(), facts.elapsed()), (1, 1, Some(8.0)));
        assert_eq!((facts.recorded(), facts.not_run(), facts.simulated()), (4, Some(0), 3));
        let jobs: Vec<(u64, f64)> = facts.jobs.iter().map(|job| (job.number, job.wall())).collect();
        assert_eq!(jobs, [(3, 3.0), (1, 1.0), (2, 7.0)]);
        assert_eq!((facts.most_at_once(), facts.own_rss(), facts.processor_times()), (3, Some(9), None));
    }

    #[test]
    fn facts_know_how_many_jobs_are_missing() {
        let facts = |total: Option<u64>, end: Option<AttemptFinished>| {
            let mut facts = RunFacts::default();
            facts.begin_attempt();
            facts.set_request(total, Duration::ZERO);
            facts.add_job(&ended(1, 0.0, 1.0, 0.0, None));
            facts.add_job(&ended(2, 0.0, 2.0, 0.0, None));
            if let Some(end) = end {
                facts.add_end(end);
            }
            facts.complete();
            (facts.ended_early(), facts.not_run(), facts.simulated())
        };
        let over = |why: Option<&str>, cut, not_run| {
            let why = why.map(str::to_owned);
            Some(AttemptFinished { elapsed: 2.0, why, cut, not_run, ..AttemptFinished::default() })
        };
        assert_eq!(facts(None, over(None, 0, None)), (0, Some(0), 2));
        // The user's number of jobs was wrong.
        assert_eq!(facts(Some(9), over(None, 0, None)), (0, Some(0), 2));
        assert_eq!(facts(Some(9), over(Some("interrupted"), 3, Some(4))), (3, Some(4), 9));
        assert_eq!(facts(None, over(Some("interrupted"), 3, Some(4))), (3, Some(4), 9));
        assert_eq!(facts(None, over(Some("interrupted"), 3, None)), (3, None, 5));
        // Killed.
        assert_eq!(facts(Some(9), None), (0, Some(7), 9));
        assert_eq!(facts(None, None), (0, None, 2));
    }

    #[test]
    fn most_at_once_counts_overlaps() {
        let mut facts = RunFacts::default();
        for (job, at, wall) in [(1, 0.0, 2.0), (2, 0.0, 1.0), (3, 1.0, 2.0), (4, 2.5, 1.0), (5, 2.6, 1.0)] {
            facts.add_job(&ended(job, at, wall, 0.0, None));
        }
        facts.complete();
        assert_eq!(facts.most_at_once(), 3);
        assert_eq!(RunFacts::default().most_at_once(), 1);
    }
}
