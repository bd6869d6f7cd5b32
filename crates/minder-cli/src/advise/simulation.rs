//! Simulates a run: a list of jobs, a number of slots, and processors that are shared.
//!
//! A job alternates between computing and waiting. The lengths of these phases vary at random
//! around their mean, since jobs that alternate in step would never share a processor. All threads
//! that compute share the processors equally (processor sharing).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The most phases of one kind that a job has.
const PHASES_MAX: u32 = 8;
/// The most phases of all jobs together: this bounds the time of a simulation.
const EVENTS_MAX: usize = 4_000_000;
/// The shortest time that a turnaround is compared with. For shorter jobs it says nothing.
const OWN_MIN: f64 = 0.001;

/// The work of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Work {
    /// The time for which each of its threads computes, in seconds.
    pub(super) cpu: f64,
    /// The number of threads that compute at once. At least 1. At least 1.
    pub(super) width: f64,
    /// The time for which it waits, in seconds.
    pub(super) wait: f64,
}

impl Work {
    /// Returns how long the job takes on a machine that does nothing else.
    pub(super) fn own(&self) -> f64 {
        self.cpu + self.wait
    }

    /// Returns its CPU time, of all its threads.
    pub(super) fn cpu_time(&self) -> f64 {
        self.cpu * self.width
    }
}

/// Returns how fast each of `threads` threads computes.
fn speed(threads: f64, cores: f64) -> f64 {
    if threads <= cores { 1.0 } else { cores / threads }
}

/// The result of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Schedule {
    /// The time at which the last job ends, in seconds.
    pub(super) elapsed: f64,
    /// The mean of the relative turnarounds: the time from the start of the run to the end of the
    /// job, divided by the time that the job takes alone.
    pub(super) mean: f64,
    /// The relative turnaround that 95 % of the jobs do not exceed.
    pub(super) p95: f64,
}

/// A job in a slot.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: usize,
    /// The rest of its work.
    work: Work,
    /// The number of phases of computing that are left.
    phases: u32,
    computes: bool,
}

/// The end of a phase: a time, and the index of the slot.
#[derive(Clone, Copy, Debug)]
struct End(f64, usize);

impl PartialEq for End {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for End {}

impl PartialOrd for End {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for End {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// Runs the jobs in this order, `slots` at once, on this number of processors, which may be a
/// fraction. Two starts are at least `delay` seconds apart.
pub(super) fn simulate(jobs: &[Work], order: &[u32], slots: usize, cores: f64, delay: f64) -> Schedule {
    let phases = u32::try_from(EVENTS_MAX / jobs.len().max(1) / 2).unwrap_or(u32::MAX).clamp(1, PHASES_MAX);
    let mut state = Simulation {
        cores,
        now: 0.0,
        progress: 0.0,
        threads: 0.0,
        computing: BinaryHeap::new(),
        waiting: BinaryHeap::new(),
        random: 0x9e37_79b9_7f4a_7c15,
    };
    let start = |job: usize| {
        let work = jobs[job];
        let alternates = work.cpu > 0.0 && work.wait > 0.0;
        Running { job, work, phases: if alternates { phases } else { 1 }, computes: false }
    };
    let mut next = order.iter().map(|index| *index as usize).peekable();
    let mut turnarounds: Vec<f32> = Vec::with_capacity(order.len());
    let mut running: Vec<Running> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut next_start = 0.0;
    loop {
        let is_free = |free: &[usize], running: &[Running]| !free.is_empty() || running.len() < slots;
        while state.now >= next_start
            && is_free(&free, &running)
            && let Some(job) = next.next()
        {
            next_start = state.now + delay;
            let mut job = start(job);
            let slot = free.last().copied().unwrap_or(running.len());
            if !state.begin(&mut job, slot) {
                // A job without any work ends at once.
                turnarounds.push((state.now / OWN_MIN).max(1.0) as f32);
            } else if free.pop().is_some() {
                running[slot] = job;
            } else {
                running.push(job);
            }
        }
        let start_at = (is_free(&free, &running) && next.peek().is_some()).then_some(next_start);
        match state.advance(&running, start_at) {
            Some(Event::Start) => (),
            Some(Event::PhaseEnd(slot)) => {
                if !state.begin(&mut running[slot], slot) {
                    let own = jobs[running[slot].job].own().max(OWN_MIN);
                    turnarounds.push((state.now.max(own) / own) as f32);
                    free.push(slot);
                }
            }
            None => break,
        }
    }
    let mean =
        turnarounds.iter().map(|value| f64::from(*value)).sum::<f64>() / turnarounds.len().max(1) as f64;
    Schedule { elapsed: state.now, mean, p95: percentile(&mut turnarounds, 0.95) }
}

/// Returns the value that this fraction of all values does not exceed, or 0 if there is none.
pub(super) fn percentile(values: &mut [f32], fraction: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let rank = (values.len() as f64 * fraction).ceil() as usize;
    let index = rank.clamp(1, values.len()) - 1;
    f64::from(*values.select_nth_unstable_by(index, f32::total_cmp).1)
}

/// The next event of the simulation.
enum Event {
    /// A job may start.
    Start,
    /// A phase of the job in this slot ends.
    PhaseEnd(usize),
}

struct Simulation {
    cores: f64,
    now: f64,
    /// The time for which a thread has computed that computed all the time. Threads of equal speed
    /// end their phases in the order of this measure, whatever their speed is.
    progress: f64,
    /// The number of threads that compute.
    threads: f64,
    /// The ends of phases of computing, by `progress`.
    computing: BinaryHeap<Reverse<End>>,
    /// The ends of phases of waiting, by `now`.
    waiting: BinaryHeap<Reverse<End>>,
    random: u64,
}

impl Simulation {
    /// Moves to the end of the next phase, or to `start_at` if that is earlier.
    fn advance(&mut self, running: &[Running], start_at: Option<f64>) -> Option<Event> {
        let speed = speed(self.threads, self.cores);
        let computed = self.computing.peek().map(|Reverse(end)| self.now + (end.0 - self.progress) / speed);
        let waited = self.waiting.peek().map(|Reverse(end)| end.0);
        let (end_at, computes) = match (computed, waited) {
            (None, None) => (f64::INFINITY, false),
            (Some(computed), Some(waited)) if waited < computed => (waited, false),
            (Some(computed), _) => (computed, true),
            (None, Some(waited)) => (waited, false),
        };
        let at = end_at.min(start_at.unwrap_or(f64::INFINITY));
        if at == f64::INFINITY {
            return None;
        }
        self.progress += (at - self.now).max(0.0) * speed;
        self.now = self.now.max(at);
        if at < end_at {
            return Some(Event::Start);
        }
        let Reverse(End(_, slot)) = if computes { self.computing.pop()? } else { self.waiting.pop()? };
        if computes {
            self.threads -= running[slot].work.width;
            if self.computing.is_empty() {
                // Removes what rounding has left.
                self.threads = 0.0;
            }
        }
        Some(Event::PhaseEnd(slot))
    }

    /// Begins the next phase of the job in a slot. Returns `false` if the job has ended.
    fn begin(&mut self, running: &mut Running, slot: usize) -> bool {
        loop {
            running.computes = !running.computes;
            let part = 0.5 + self.next_random();
            if running.computes {
                if running.phases == 0 {
                    return false;
                }
                let cpu = share(running.work.cpu, part, running.phases);
                running.work.cpu -= cpu;
                if cpu > 0.0 {
                    self.threads += running.work.width;
                    self.computing.push(Reverse(End(self.progress + cpu, slot)));
                    return true;
                }
            } else {
                let wait = share(running.work.wait, part, running.phases);
                running.work.wait -= wait;
                running.phases -= 1;
                if wait > 0.0 {
                    self.waiting.push(Reverse(End(self.now + wait, slot)));
                    return true;
                }
            }
        }
    }

    /// Returns a number in 0..1 by SplitMix64 (Steele, Lea, Flood 2014): always the same sequence.
    fn next_random(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Returns the length of a phase: the rest for the last one, otherwise `part` of the mean.
fn share(rest: f64, part: f64, phases: u32) -> f64 {
    if phases <= 1 { rest } else { (rest * part / f64::from(phases)).min(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(cpu: f64, wait: f64) -> Work {
        Work { cpu, width: 1.0, wait }
    }

    fn run(jobs: &[Work], slots: usize, cores: f64) -> Schedule {
        let order: Vec<u32> = (0..jobs.len() as u32).collect();
        simulate(jobs, &order, slots, cores, 0.0)
    }

    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 0.001 * expected.abs() + 1e-9, "{value}, not {expected}");
    }

    #[test]
    fn one_slot_adds_the_jobs_up() {
        let jobs = [job(1.0, 0.0), job(0.0, 2.0), job(1.5, 1.5)];
        let schedule = run(&jobs, 1, 4.0);
        assert_near(schedule.elapsed, 6.0);
        // 1/1, 3/2, 6/3
        assert_near(schedule.mean, 1.5);
        assert_near(schedule.p95, 2.0);
    }

    #[test]
    fn waiting_jobs_overlap_and_computing_jobs_share() {
        let waiting = vec![job(0.0, 3.0); 10];
        assert_near(run(&waiting, 10, 1.0).elapsed, 3.0);
        assert_near(run(&waiting, 5, 1.0).elapsed, 6.0);
        let computing = vec![job(3.0, 0.0); 10];
        assert_near(run(&computing, 10, 2.0).elapsed, 15.0);
        assert_near(run(&computing, 2, 2.0).elapsed, 15.0);
        assert_near(run(&computing, 1, 2.0).elapsed, 30.0);
        // All end at the end if they share, and one after the other if they do not.
        assert_near(run(&computing, 10, 1.0).mean, 10.0);
        assert_near(run(&computing, 1, 1.0).mean, 5.5);
    }

    #[test]
    fn starts_are_separated_by_the_delay() {
        let run = |jobs: &[Work], slots, delay| {
            let order: Vec<u32> = (0..jobs.len() as u32).collect();
            simulate(jobs, &order, slots, 1.0, delay).elapsed
        };
        // Starts at 0, 2, 4, 6, 8, with a free slot between them.
        assert_near(run(&[job(0.0, 0.5); 5], 4, 2.0), 8.5);
        // Slots are free later than the delay demands.
        assert_near(run(&[job(0.0, 5.0); 4], 2, 2.0), 12.0);
        assert_near(run(&[job(0.0, 0.5); 4], 1, 2.0), 6.5);
        // Jobs that compute share the processor while they overlap: 0-2 alone, then two at once.
        assert_near(run(&[job(3.0, 0.0); 2], 2, 2.0), 6.0);
        assert_near(run(&[job(0.0, 0.0); 3], 1, 2.0), 4.0);
    }

    #[test]
    fn threads_of_one_job_use_several_cores() {
        let wide = [Work { cpu: 2.0, width: 2.0, wait: 0.0 }; 4];
        assert_near(run(&wide, 1, 2.0).elapsed, 8.0);
        assert_near(run(&wide, 2, 2.0).elapsed, 8.0);
        assert_near(run(&wide, 2, 4.0).elapsed, 4.0);
        assert_near(run(&wide, 1, 1.0).elapsed, 16.0);
    }

    #[test]
    fn a_part_of_a_core_slows_a_single_job() {
        assert_near(run(&[job(1.0, 1.0); 4], 1, 0.5).elapsed, 12.0);
    }

    /// Graham's bounds of a list schedule without contention: at least the mean per slot and the
    /// longest job; at most their sum.
    #[test]
    fn schedule_is_within_the_bounds_of_list_scheduling() {
        let jobs: Vec<Work> =
            (1..=200).map(|i| job(f64::from(i * 37 % 11) / 10.0, f64::from(i * 17 % 7) / 10.0)).collect();
        let sum: f64 = jobs.iter().map(Work::own).sum();
        let longest = jobs.iter().map(Work::own).fold(0.0, f64::max);
        for slots in [1, 2, 3, 7, 64] {
            let elapsed = run(&jobs, slots, 1000.0).elapsed;
            let least = (sum / slots as f64).max(longest);
            assert!(elapsed >= least - 1e-6 && elapsed <= sum / slots as f64 + longest, "{slots}: {elapsed}");
            let shared = run(&jobs, slots, 2.0).elapsed;
            let cpu: f64 = jobs.iter().map(Work::cpu_time).sum();
            assert!(shared >= elapsed - 1e-6 && shared >= cpu / 2.0, "{slots}: {shared}");
        }
    }

    #[test]
    fn jobs_without_work_end_at_once() {
        let schedule = run(&[job(0.0, 0.0); 5], 2, 1.0);
        assert_near(schedule.elapsed, 0.0);
        assert_near(run(&[job(0.0, 0.0), job(1.0, 0.0), job(0.0, 0.0)], 1, 1.0).elapsed, 1.0);
        assert_eq!(percentile(&mut [], 0.95), 0.0);
        assert_eq!(percentile(&mut [3.0, 1.0, 2.0], 0.5), 2.0);
    }
}
