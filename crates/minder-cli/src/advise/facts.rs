//! What the record tells about a run: the times of its jobs, and how busy the machine was.

use std::fmt;

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
}

/// Why a job does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Omission {
    NotStarted,
    Ended,
}

impl JobTimes {
    /// Returns the times of a job, or why they tell nothing: it did not start, or it did not end by
    /// itself. A job that failed counts, because many programs report a result by their exit code.
    pub(super) fn of(ended: &JobFinished) -> Result<Self, Omission> {
        if ended.error.is_some() {
            return Err(Omission::NotStarted);
        }
        if ended.timed_out || ended.cause.is_some() || ended.signal.is_some() {
            return Err(Omission::Ended);
        }
        let known = |time: Option<f64>| time.filter(|time| time.is_finite() && *time >= 0.0);
        // Where the system does not tell what a child used, the size is zero as well.
        let tells_cpu = ended.rss.is_some_and(|rss| rss > 0);
        let cpu = if tells_cpu { known(ended.user).zip(known(ended.system)) } else { None };
        let compact = |time: Option<f64>| known(time).map_or(f32::NAN, |time| time as f32);
        Ok(Self {
            number: ended.job,
            at: ended.at,
            wall: compact(Some(ended.wall)).max(0.0),
            cpu: compact(cpu.map(|(user, system)| user + system)),
            ready: compact(ended.ready),
            main: compact(ended.main),
            rss: ended.rss.map_or(0, |rss| u32::try_from(rss >> 10).unwrap_or(u32::MAX)),
            retried: ended.attempts.is_some_and(|attempts| attempts > 1),
        })
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
            Self::NoJob => "no job has ended by itself: there is nothing to advise",
            Self::OneJob => "only one job has ended by itself: there is nothing to order",
            Self::NoCpuTimes => "its record has no CPU times: nothing tells whether jobs wait or compute",
        })
    }
}

/// What a record tells about a run.
#[derive(Debug, Default)]
pub(crate) struct RunFacts {
    /// The jobs that count, in the order of their starts.
    pub(super) jobs: Vec<JobTimes>,
    pub(super) not_started: u64,
    pub(super) ended_early: u64,
    /// Jobs beyond [`JOBS_MAX`].
    pub(super) too_many: u64,
    pub(super) attempts: u32,
    pub(super) host: Option<AttemptHost>,
    /// The last event of each attempt.
    finished: Vec<AttemptFinished>,
    /// Whether the last attempt has no last event, because it was killed.
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

    /// Adds a job. The last event of a job is the valid one.
    pub(crate) fn add_job(&mut self, ended: &JobFinished) {
        match JobTimes::of(ended) {
            _ if self.jobs.len() >= JOBS_MAX => self.too_many += 1,
            Ok(times) => self.jobs.push(times),
            Err(Omission::NotStarted) => self.not_started += 1,
            Err(Omission::Ended) => self.ended_early += 1,
        }
    }

    /// Sorts the jobs by their starts, and removes earlier results of the same job.
    pub(crate) fn complete(&mut self) {
        self.jobs.reverse();
        self.jobs.sort_by_key(|job| job.number);
        self.jobs.dedup_by_key(|job| job.number);
        self.jobs.sort_by(|one, other| one.at.total_cmp(&other.at).then(one.number.cmp(&other.number)));
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
        JobTimes::of(ended).expect("job counts").work(waits)
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
        assert_eq!(JobTimes::of(&nowhere).expect("job counts").cpu(), None);
    }

    #[test]
    fn facts_leave_out_what_did_not_end_by_itself() {
        let mut facts = RunFacts::default();
        facts.begin_attempt();
        facts.add_job(&ended(2, 5.0, 1.0, 1.0, None));
        facts.add_job(&JobFinished { timed_out: true, ..ended(3, 5.0, 1.0, 1.0, None) });
        facts.add_job(&JobFinished { error: Some("no".into()), ..JobFinished::default() });
        facts.add_job(&JobFinished { exit: Some(1), ..ended(1, 5.5, 1.0, 1.0, None) });
        facts.add_job(&ended(2, 6.0, 7.0, 1.0, None));
        assert!(facts.killed && facts.elapsed().is_none());
        facts.add_end(AttemptFinished { elapsed: 8.0, own_rss: Some(9), ..AttemptFinished::default() });
        facts.complete();
        assert_eq!((facts.not_started, facts.ended_early, facts.elapsed()), (1, 1, Some(8.0)));
        let jobs: Vec<(u64, f64)> = facts.jobs.iter().map(|job| (job.number, job.wall())).collect();
        assert_eq!(jobs, [(1, 1.0), (2, 7.0)]);
        assert_eq!((facts.most_at_once(), facts.own_rss(), facts.processor_times()), (2, Some(9), None));
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
