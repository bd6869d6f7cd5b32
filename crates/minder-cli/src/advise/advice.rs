//! The advice: how many jobs at once, in which order, and what that is predicted to take.

use super::facts::{JobTimes, RunFacts, Unadvisable};
use super::simulation::{Schedule, Work, percentile, simulate};

/// Above this part of their time, the processors count as fully used.
const BUSY: f64 = 0.9;
/// Jobs whose work is less CPU than this part do not need the processors.
const COMPUTING_MIN: f64 = 0.05;
/// Half as many jobs again run at once if that saves this part of the elapsed time.
const MORE_GAIN: f64 = 0.05;
/// If the long jobs (the 90th percentile) take less than this many times as long as the short ones
/// (the 10th), the order does not matter.
const SPREAD_MIN: f64 = 1.2;
/// Longest-first is advised if it saves this part of the elapsed time.
const LONGEST_GAIN: f64 = 0.1;
/// The most time between the end of a job and the start of the next that is ascribed to minder.
const GAP_MAX: f64 = 0.002;
/// The model is fitted to the run if it differs by more than this part.
const FIT: f64 = 0.01;
/// The number of bisections.
const FIT_STEPS: u32 = 6;
/// If this part of the jobs' time does not count, the measured run is not compared with the model.
const LEFT_OUT_MAX: f64 = 0.05;
/// The least error of a prediction: the same run again differs by that much.
const ERROR_MIN: f64 = 0.03;
/// Other programs that use less than this part of the processors are part of every run.
const OTHERS_MIN: f64 = 0.05;
/// The most that other programs take from the jobs.
const OTHERS_MAX: f64 = 0.95;
/// The error, as a fraction, of the part of unexplained time that counts as waiting.
const QUEUE_ERROR: f64 = 0.2;
/// The fraction by which the time of one job differs between two runs.
const JOB_ERROR: f64 = 0.1;
/// The error for each job that was ended early, or did not run, as a part of all jobs.
const MISSING_ERROR: f64 = 0.5;
/// The error of waiting for each doubling of the number of jobs that wait at once.
const DOUBLING_ERROR: f64 = 0.05;

/// The order in which jobs start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// That of the run.
    Given,
    Shortest,
    Longest,
}

impl Order {
    /// Returns the value of `--order`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Shortest => "shortest",
            Self::Longest => "longest",
        }
    }
}

/// Why not more jobs are advised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// There are no more jobs.
    Jobs,
    /// The processors are used fully then.
    Processors,
    /// The jobs used the processors fully.
    Busy,
    /// The processors were used fully, by other programs too, and it is not known how long jobs waited
    /// for one.
    BusyByOthers,
    /// The memory is used fully then.
    Memory,
    /// The time between two starts keeps more from running at once.
    Delay,
}

/// A fact that the prediction does not know, or that limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The time for which jobs waited for a processor.
    Queue,
    /// The load of the processors.
    Machine,
    /// The number of jobs that ran at once, which was counted from the times of the jobs.
    Slots,
    /// The number of processors of the run; the present number is taken.
    Processors,
    /// The duration of jobs that were ended early.
    EndedEarly,
    /// The duration of jobs that are not in the record: they did not run, or minder terminated
    /// them.
    NotRun,
    /// Other programs used this percentage of the processors.
    OtherPrograms(u32),
    /// More jobs wait at once than in the run.
    MoreWaiting,
    /// The model and the run differ by this percentage.
    Model(u32),
}

/// A run as it is predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    pub(crate) slots: usize,
    pub(crate) order: Order,
    /// Seconds.
    pub(crate) elapsed: f64,
    /// The mean of the relative turnarounds, and what 95 % of them do not exceed.
    pub(crate) mean: f64,
    pub(crate) p95: f64,
}

/// The advice for a run.
#[derive(Clone, Debug)]
pub(crate) struct Advice {
    /// The jobs whose times are in the record.
    pub(crate) jobs: u64,
    /// The jobs of the predictions: those of the record, and others in place of missing ones.
    pub(crate) simulated: u64,
    /// The bounds of the CPU part of the work, from 0. Above 1, jobs compute with several threads. They
    /// are equal if it is known.
    pub(crate) cpu_part: (f64, f64),
    /// The times of the jobs alone: the shortest, the median, the longest, in seconds.
    pub(crate) own: [f64; 3],
    pub(crate) cores: u64,
    /// The part of their time in which the processors were busy in the run.
    pub(crate) busy: Option<f64>,
    /// The part of the processors that other programs used, if it is notable.
    pub(crate) others: f64,
    /// The number of jobs that ran at once.
    pub(crate) slots: usize,
    /// The duration of the run. If jobs did not run, the predictions are about more jobs.
    pub(crate) measured: Option<f64>,
    /// The least time between two starts, in seconds.
    pub(crate) delay: f64,
    pub(crate) serial: Prediction,
    /// The run as it was, by the model.
    pub(crate) as_run: Prediction,
    pub(crate) advised: Prediction,
    /// The same number of slots in the other order, if the order matters.
    pub(crate) other: Option<Prediction>,
    pub(crate) limit: Limit,
    /// The memory of the largest jobs that run at once, if it is known, and that of the machine.
    pub(crate) memory: Option<(u64, u64)>,
    /// The relative error of the predictions, from 0.
    pub(crate) error: f64,
    pub(crate) doubts: Vec<Doubt>,
    pub(crate) attempts: u32,
    pub(crate) retried: u64,
    /// The number of jobs of the run, if it is known.
    pub(crate) total: Option<u64>,
    /// The jobs that have an end in the record.
    pub(crate) recorded: u64,
    pub(crate) not_started: u64,
    pub(crate) ended_early: u64,
    /// The jobs that did not run, if that is known. In a run that was killed, some of them ran.
    pub(crate) not_run: Option<u64>,
    pub(crate) too_many: u64,
    pub(crate) killed: bool,
}

impl Advice {
    /// Returns how long the run took, if all jobs ran.
    pub(crate) fn measured_whole(&self) -> Option<f64> {
        if self.not_run == Some(0) && self.simulated == self.jobs { self.measured } else { None }
    }
}

/// Returns the advice for a run on a machine that has `processors` now.
///
/// # Errors
/// The record does not tell enough.
pub(crate) fn advise(facts: &RunFacts, processors: usize) -> Result<Advice, Unadvisable> {
    match facts.jobs.len() {
        0 => return Err(Unadvisable::NoJob),
        1 => return Err(Unadvisable::OneJob),
        _ if facts.jobs.iter().all(|job| job.cpu().is_none()) => return Err(Unadvisable::NoCpuTimes),
        _ => (),
    }
    let usage = Usage::of(facts, processors);
    let count = facts.simulated();
    let mut model = Model::new(facts, &usage, usage.waits);
    let measured = if leaves_out_much(facts) { None } else { facts.elapsed() };
    if let Some(measured) = measured {
        model.calibrate(usage.slots, measured, usage.cores);
    }
    let recorded = &model.jobs[..facts.jobs.len()];
    let cpu_part = cpu_part_of(recorded.iter().copied());
    let mut times: Vec<f32> = recorded.iter().map(|job| job.own() as f32).collect();
    let own = [0.0, 0.5, 1.0].map(|fraction| percentile(&mut times, fraction));
    let (slots, limit) = degree(facts, &usage, &model, cpu_part);
    let as_run = model.predict(usage.slots, Order::Given);
    let (advised, other) = model.best(slots);
    let (error, doubts) = error_of(
        facts,
        &usage,
        &model,
        cpu_part,
        measured.map(|measured| (measured, as_run.elapsed)),
        &advised,
    );
    Ok(Advice {
        jobs: facts.jobs.len() as u64,
        simulated: count as u64,
        cpu_part: usage.cpu_bounds(facts).unwrap_or((cpu_part, cpu_part)),
        own,
        cores: usage.cores as u64,
        busy: usage.busy,
        others: usage.others,
        slots: usage.slots,
        measured: facts.elapsed(),
        delay: facts.delay,
        serial: model.predict(1, Order::Given),
        as_run,
        advised,
        other,
        limit,
        memory: memory_of(facts, slots).zip(facts.host.and_then(|host| host.memory)),
        error,
        doubts,
        attempts: facts.attempts,
        retried: facts.jobs.iter().filter(|job| job.was_retried()).count() as u64,
        total: facts.total(),
        recorded: facts.recorded(),
        not_started: facts.not_started,
        ended_early: facts.ended_early(),
        not_run: facts.not_run(),
        too_many: facts.too_many,
        killed: facts.killed,
    })
}

/// Returns the relative error of the predictions, and what they do not know. `measured` is how long
/// the run took, and how long by the model.
fn error_of(
    facts: &RunFacts,
    usage: &Usage,
    model: &Model,
    cpu_part: f64,
    measured: Option<(f64, f64)>,
    advised: &Prediction,
) -> (f64, Vec<Doubt>) {
    let mut doubts = usage.doubts.clone();
    let count = facts.simulated();
    let slots = advised.slots;
    let mut error = Error::new(count, slots);
    if let Some((measured, by_model)) = measured {
        error.add((by_model - measured) / measured);
        let percent = ((by_model / measured - 1.0).abs() * 100.0).round() as u32;
        doubts.extend((percent > 5).then_some(Doubt::Model(percent)));
    }
    if usage.doubts.contains(&Doubt::Queue) {
        error.add(queue_error(facts, usage, advised));
    }
    if facts.early > 0 {
        error.add(MISSING_ERROR * facts.early as f64 / count as f64);
        doubts.push(Doubt::EndedEarly);
    }
    if count > facts.jobs.len() || facts.not_run().is_none() {
        let part = (count - facts.jobs.len()) as f64 / count as f64;
        error.add(MISSING_ERROR * facts.not_run().map_or(1.0, |_| part));
        doubts.push(Doubt::NotRun);
    }
    if slots > usage.slots && cpu_part < 1.0 {
        let doublings = (slots as f64 / usage.slots as f64).log2();
        error.add((1.0 - cpu_part) * doublings * DOUBLING_ERROR);
        doubts.push(Doubt::MoreWaiting);
    }
    if usage.others > OTHERS_MIN {
        doubts.push(Doubt::OtherPrograms((usage.others * 100.0).round() as u32));
    }
    if usage.others > OTHERS_MIN && cpu_part >= COMPUTING_MIN {
        let on = |cores| {
            let model = Model { jobs: model.jobs.clone(), cores, delay: model.delay };
            model.predict(slots, advised.order).elapsed
        };
        let range = on(usage.cores * (1.0 - usage.others)) - on(usage.cores);
        error.add(range / 2.0 / advised.elapsed.max(f64::MIN_POSITIVE));
    }
    (error.total(), doubts)
}

/// Returns the CPU time of jobs as a part of the time that they take alone.
fn cpu_part_of(jobs: impl Iterator<Item = Work>) -> f64 {
    let (cpu, own) = jobs.fold((0.0, 0.0), |(cpu, own), job| (cpu + job.cpu_time(), own + job.own()));
    if own > 0.0 { cpu / own } else { 0.0 }
}

/// Returns the error of the advised run and of that one by one, because the time of some jobs in the queue
/// of a processor is not known. At most they waited for a processor whenever one was busy.
fn queue_error(facts: &RunFacts, usage: &Usage, advised: &Prediction) -> f64 {
    let elapsed = |waits: f64| {
        let model = Model::new(facts, usage, waits.clamp(0.0, 1.0));
        [(1, Order::Given), (advised.slots, advised.order)]
            .map(|(slots, order)| model.predict(slots, order).elapsed)
    };
    let expected = elapsed(usage.waits);
    let least = usage.waits.min(1.0 - usage.busy.unwrap_or(0.0)) - QUEUE_ERROR;
    let differences = [least, usage.waits + QUEUE_ERROR].map(|waits| {
        let others = elapsed(waits).into_iter().zip(expected);
        others
            .map(|(other, expected)| (other - expected).abs() / expected.max(f64::MIN_POSITIVE))
            .fold(0.0, f64::max)
    });
    differences.into_iter().fold(0.0, f64::max)
}

/// Returns `true` if the elapsed time is not about the same jobs as the model: jobs did not run, or
/// are not in the record; or jobs were tried again.
fn leaves_out_much(facts: &RunFacts) -> bool {
    let retried = facts.jobs.iter().filter(|job| job.was_retried()).count() as u64;
    let left_out = (facts.simulated() - facts.jobs.len()) as u64 + facts.too_many + retried;
    facts.attempts > 1
        || facts.not_run().is_none()
        || left_out as f64 > LEFT_OUT_MAX * facts.jobs.len() as f64
}

/// The use of the machine by the run.
///
/// What other programs used of the processors is not there for the jobs. That holds if the kernel
/// shares the processors among groups (control groups, sessions), and if other programs use less
/// than their share. If each thread gets the same share, more jobs at once would get more.
#[derive(Debug)]
struct Usage {
    slots: usize,
    /// The number of processors.
    cores: f64,
    /// The part of their time in which the processors were busy, with all programs.
    busy: Option<f64>,
    /// The same with the jobs alone.
    own_busy: Option<f64>,
    /// The part of the processors that other programs used, if it is notable.
    others: f64,
    /// The part of unexplained time that counts as waiting: as of the jobs about which it is known.
    waits: f64,
    doubts: Vec<Doubt>,
}

impl Usage {
    fn of(facts: &RunFacts, processors: usize) -> Self {
        let mut doubts = Vec::new();
        // A run of fewer jobs than slots ran as many at once as there were jobs.
        let most = if facts.not_run().is_some() { facts.simulated() } else { usize::MAX };
        let slots = match facts.host {
            Some(host) => usize::try_from(host.slots).unwrap_or(usize::MAX).clamp(1, most),
            None => {
                doubts.push(Doubt::Slots);
                facts.most_at_once()
            }
        };
        let cores = match facts.host {
            Some(host) => host.cpus.max(1) as f64,
            None => {
                doubts.push(Doubt::Processors);
                processors.max(1) as f64
            }
        };
        let sum = |of: &dyn Fn(&JobTimes) -> Option<f64>| facts.jobs.iter().filter_map(of).sum::<f64>();
        let cpu = sum(&JobTimes::cpu);
        let unknown = sum(&|job| job.ready().is_none().then(|| job.rest()));
        let known = sum(&|job| job.ready().map(|_| job.rest()));
        let ready = sum(&JobTimes::ready);
        let wall = sum(&|job| Some(job.wall()));
        let is_queue_known = unknown <= 0.05 * wall;
        doubts.extend((!is_queue_known).then_some(Doubt::Queue));
        let elapsed = facts.elapsed();
        // Jobs that may use a part of the processors compete with the programs on that part only.
        let whole =
            |(busy, idle): &(f64, f64)| elapsed.is_some_and(|time| (busy + idle) / time < cores + 0.5);
        let times = facts.processor_times().filter(whole);
        let span = elapsed.or_else(|| facts.span());
        let own_busy = span.map(|span| (cpu / (span * cores)).min(1.0));
        let busy = times.map(|(busy, idle)| busy / (busy + idle)).or(own_busy);
        doubts.extend(times.is_none().then_some(Doubt::Machine));
        let others = times.zip(elapsed).map(|((used, _), elapsed)| (used - cpu) / (elapsed * cores));
        let others = others.filter(|part| *part > OTHERS_MIN).map_or(0.0, |part| part.min(OTHERS_MAX));
        // If it is not known of any job, the jobs waited for each other's computing only: other programs
        // may have been busy while the jobs slept.
        let waits = if known > 0.0 { 1.0 - ready / known } else { 1.0 - own_busy.unwrap_or(0.0) };
        Self { slots, cores, busy, own_busy, others, waits, doubts }
    }

    /// Returns why no more jobs than before can run at once, if the processors tell that. Jobs that wait
    /// next to other programs that compute do not need the processors.
    fn limit(&self) -> Option<Limit> {
        let is_busy = |part: Option<f64>| part.is_some_and(|part| part > BUSY);
        if is_busy(self.own_busy) {
            return Some(Limit::Busy);
        }
        let hides_waiting = is_busy(self.busy) && self.doubts.contains(&Doubt::Queue);
        hides_waiting.then_some(Limit::BusyByOthers)
    }

    /// Returns the bounds of the CPU part if nothing tells whether jobs waited, or were ready to run and
    /// others had the processors.
    fn cpu_bounds(&self, facts: &RunFacts) -> Option<(f64, f64)> {
        let with = |waits| cpu_part_of(facts.jobs.iter().map(|job| job.work(waits)));
        let is_range = self.limit().is_some() && self.doubts.contains(&Doubt::Queue);
        is_range.then(|| (with(1.0), with(0.0)))
    }
}

/// Returns how many jobs are to run at once, and why not more. As many as the processors serve if
/// jobs computed and waited in turn; and more, as long as that gains notably, because their turns
/// differ.
fn degree(facts: &RunFacts, usage: &Usage, model: &Model, cpu_part: f64) -> (usize, Limit) {
    let (most, limit) = most_slots(facts, usage);
    let wanted = (usage.cores / cpu_part).round();
    if wanted >= most as f64 {
        return (most, limit);
    }
    let elapsed = |slots| model.predict(slots, Order::Given).elapsed;
    let mut slots = (wanted as usize).max(1);
    let mut best = elapsed(slots);
    while slots < most {
        let more = (slots + slots.div_ceil(2)).min(most);
        let sooner = elapsed(more);
        if sooner > best * (1.0 - MORE_GAIN) {
            return (slots, Limit::Processors);
        }
        (slots, best) = (more, sooner);
    }
    (slots, limit)
}

/// Returns how many jobs can run at once, and why not more.
fn most_slots(facts: &RunFacts, usage: &Usage) -> (usize, Limit) {
    // If it is not known how many jobs there are, there may be as many as slots.
    let mut slots = facts.simulated().max(usage.slots);
    let mut limit = Limit::Jobs;
    if let Some(busy) = usage.limit()
        && slots > usage.slots
    {
        (slots, limit) = (usage.slots, busy);
    }
    let longest = facts.jobs.iter().map(JobTimes::wall).fold(0.0, f64::max);
    let overlap = (longest / facts.delay).ceil();
    if facts.delay > 0.0 && overlap.max(usage.slots as f64) < slots as f64 {
        (slots, limit) = ((overlap as usize).max(usage.slots), Limit::Delay);
    }
    if let Some(fit) = memory_limit(facts)
        && fit < slots
    {
        (slots, limit) = (fit.max(1), Limit::Memory);
    }
    (slots, limit)
}

/// Returns the resident sets of the jobs whose own it is, the largest first. Others are at most as
/// large as minder, and do not count.
fn own_sets(facts: &RunFacts) -> Option<Vec<u64>> {
    let own = facts.own_rss()?;
    let mut sets: Vec<u64> = facts.jobs.iter().map(JobTimes::rss).filter(|rss| *rss > own).collect();
    sets.sort_unstable_by(|one, other| other.cmp(one));
    Some(sets)
}

/// Returns how many jobs fit into the memory that was available, even if the largest run at once.
fn memory_limit(facts: &RunFacts) -> Option<usize> {
    let memory = facts.host?.memory?;
    let mut rest = memory;
    let sets = own_sets(facts)?;
    sets.iter().position(|set| match rest.checked_sub(*set) {
        Some(less) => {
            rest = less;
            false
        }
        None => true,
    })
}

/// Returns the memory of the largest jobs that may run at once, if any is known.
fn memory_of(facts: &RunFacts, slots: usize) -> Option<u64> {
    let sets = own_sets(facts)?;
    (!sets.is_empty()).then(|| sets.iter().take(slots).sum())
}

/// The jobs as the simulation needs them.
struct Model {
    jobs: Vec<Work>,
    /// The processors that other programs leave.
    cores: f64,
    /// The least time between two starts.
    delay: f64,
}

impl Model {
    fn new(facts: &RunFacts, usage: &Usage, waits: f64) -> Self {
        let jobs = facts.all_jobs().map(|job| job.work(waits)).collect();
        Self { jobs, cores: usage.cores * (1.0 - usage.others), delay: facts.delay }
    }

    /// Fits the model to the run as it was. If the run was faster, the jobs had more of the
    /// processors than other programs left: these use what the jobs do not need. If it was slower
    /// by little, that is the time between two jobs.
    fn calibrate(&mut self, slots: usize, measured: f64, processors: f64) {
        let missing = |model: &Self| measured - model.predict(slots, Order::Given).elapsed;
        let mut least = self.cores;
        let mut most = processors;
        if least < most && missing(self) < -FIT * measured {
            for _ in 0..FIT_STEPS {
                self.cores = f64::midpoint(least, most);
                if missing(self) < 0.0 {
                    least = self.cores;
                } else {
                    most = self.cores;
                }
            }
        }
        let missing = missing(self);
        let gap = missing * slots as f64 / self.jobs.len() as f64;
        if gap > 0.0 && gap <= GAP_MAX {
            self.jobs.iter_mut().for_each(|job| job.wait += gap);
        }
    }

    fn predict(&self, slots: usize, order: Order) -> Prediction {
        let mut jobs: Vec<u32> = (0..self.jobs.len() as u32).collect();
        let own = |index: &u32| self.jobs[*index as usize].own();
        match order {
            Order::Given => (),
            Order::Shortest => jobs.sort_by(|one, other| own(one).total_cmp(&own(other))),
            Order::Longest => jobs.sort_by(|one, other| own(other).total_cmp(&own(one))),
        }
        let Schedule { elapsed, mean, p95 } = simulate(&self.jobs, &jobs, slots, self.cores, self.delay);
        Prediction { slots, order, elapsed, mean, p95 }
    }

    /// Returns the prediction in the better order; and the one in the other order, if the order
    /// matters.
    fn best(&self, slots: usize) -> (Prediction, Option<Prediction>) {
        let mut times: Vec<f32> = self.jobs.iter().map(|job| job.own() as f32).collect();
        let short = percentile(&mut times, 0.1);
        let long = percentile(&mut times, 0.9);
        if slots >= self.jobs.len() || long < short * SPREAD_MIN {
            return (self.predict(slots, Order::Given), None);
        }
        let shortest = self.predict(slots, Order::Shortest);
        let longest = self.predict(slots, Order::Longest);
        if longest.elapsed < shortest.elapsed * (1.0 - LONGEST_GAIN) {
            (longest, Some(shortest))
        } else {
            (shortest, Some(longest))
        }
    }
}

/// The relative error: the root of the sum of squares of independent ones.
struct Error(f64);

impl Error {
    /// The errors of every prediction. Those of single jobs cancel out in each slot.
    fn new(jobs: usize, slots: usize) -> Self {
        let per_slot = (jobs as f64 / slots as f64).max(1.0);
        let mut error = Self(0.0);
        error.add(ERROR_MIN);
        error.add(JOB_ERROR / per_slot.sqrt());
        error
    }

    fn add(&mut self, error: f64) {
        self.0 += error * error;
    }

    fn total(&self) -> f64 {
        self.0.sqrt()
    }
}

#[cfg(test)]
mod tests;
