//! Random graphs of jobs, compared step by step with a model: a list of jobs that is searched anew
//! for each answer.

use super::*;

/// The number of graphs that are drawn, and that with `MINDER_LONG=1`.
const GRAPHS: (u64, u64) = (500, 10_000);
const STEPS: u64 = 120;

/// The place of a waiting job: the lowest starts first.
type Place = (i8, i128, u64);

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// It waits for its dependencies.
    Blocked,
    Ready(Place),
    Retry(Instant),
    Running(Attempt),
    Succeeded,
    Failed,
    Skipped,
    /// The scheduler was halted first.
    Dropped,
}

#[derive(Debug)]
struct Job {
    after: Vec<u64>,
    cost: u64,
    attempt: u32,
    state: State,
    /// `true` if it finished or was dropped before results were kept.
    is_forgotten: bool,
}

#[derive(Debug)]
struct Model {
    order: QueueOrder,
    max_running: u64,
    max_attempts: u32,
    jobs: Vec<Job>,
    keeps_results: bool,
    closed: bool,
    halted: bool,
    paused: bool,
    retried: u64,
    /// The number of jobs that were queued.
    queued: i128,
}

const BACKOFF: Duration = Duration::from_secs(1);

impl Model {
    fn numbers(&self, is: impl Fn(State) -> bool) -> Vec<u64> {
        (1..).zip(&self.jobs).filter(|(_, job)| is(job.state)).map(|(number, _)| number).collect()
    }

    fn count(&self, state: State) -> u64 {
        self.numbers(|other| other == state).len() as u64
    }

    fn job(&mut self, number: u64) -> &mut Job {
        &mut self.jobs[number as usize - 1]
    }

    fn state(&self, number: u64) -> State {
        self.jobs[number as usize - 1].state
    }

    fn running(&self) -> Vec<Attempt> {
        let running = self.jobs.iter().filter_map(|job| match job.state {
            State::Running(attempt) => Some(attempt),
            _ => None,
        });
        running.collect()
    }

    /// Adds a job, or returns the number that it cannot depend on.
    fn submit(&mut self, after: Vec<u64>, cost: u64) -> Result<(), u64> {
        self.keeps_results |= !after.is_empty();
        let cannot = |number: u64| {
            number == 0 || self.jobs.get(number as usize - 1).is_none_or(|job| job.is_forgotten)
        };
        if let Some(wrong) = after.iter().find(|number| cannot(**number)) {
            return Err(*wrong);
        }
        self.jobs.push(Job { after, cost, attempt: 1, state: State::Blocked, is_forgotten: false });
        self.settle();
        Ok(())
    }

    fn queue(&mut self, number: u64) {
        self.queued += 1;
        let cost = i128::from(self.job(number).cost);
        let place = match self.order {
            QueueOrder::Fifo => self.queued,
            QueueOrder::ShortestFirst => cost,
            QueueOrder::LongestFirst => -cost,
            QueueOrder::Random => 0,
        };
        self.job(number).state = State::Ready((0, place, number));
    }

    /// Queues the jobs whose dependencies have succeeded, and skips those that depend on a failed job.
    fn settle(&mut self) {
        let is_done = |state| matches!(state, State::Failed | State::Skipped);
        for number in self.numbers(|state| state == State::Blocked) {
            let after: Vec<State> =
                self.jobs[number as usize - 1].after.iter().map(|other| self.state(*other)).collect();
            if after.iter().any(|state| is_done(*state)) {
                self.job(number).state = State::Skipped;
            } else if after.iter().all(|state| *state == State::Succeeded) {
                self.queue(number);
            }
        }
    }

    /// Checks an answer of the scheduler, and carries it out.
    fn check(&mut self, action: &NextAction<u64>, now: Instant) {
        let places = self.jobs.iter().filter_map(|job| match job.state {
            State::Ready(place) => Some(place),
            _ => None,
        });
        let first = places.min();
        let retries = (1..).zip(&self.jobs).filter_map(|(number, job)| match job.state {
            State::Retry(at) => Some((at, number)),
            _ => None,
        });
        let retry: Option<(Instant, u64)> = retries.min();
        let is_due = retry.is_some_and(|(at, _)| at <= now);
        let waits = first.is_some() || retry.is_some() || self.count(State::Blocked) > 0;
        let expected = match retry {
            _ if self.halted || self.closed && !waits => NextAction::Finished,
            _ if self.running().len() as u64 >= self.max_running => NextAction::Full,
            _ if self.paused && (self.closed || is_due || first.is_some()) => NextAction::Paused,
            _ if is_due || first.is_some() => return self.check_start(action, now, retry, first),
            Some((at, _)) if self.closed => NextAction::Later(at),
            Some((at, _)) => NextAction::EmptyUntil(at),
            None => NextAction::Empty,
        };
        assert_eq!(*action, expected);
    }

    fn check_start(
        &mut self,
        action: &NextAction<u64>,
        now: Instant,
        retry: Option<(Instant, u64)>,
        first: Option<Place>,
    ) {
        let &NextAction::Start(attempt, number) = action else { panic!("a job can start, not {action:?}") };
        match (self.state(number), retry, first) {
            (State::Retry(at), Some(retry), _) => assert_eq!((at, number), retry),
            (State::Ready(place), _, Some(first)) => {
                assert!(retry.is_none_or(|(at, _)| at > now), "a retry is due");
                let by_chance = self.order == QueueOrder::Random && place.0 == 0 && first.0 == 0;
                assert!(by_chance || place == first, "{place:?} starts before {first:?}");
            }
            (state, ..) => panic!("job {number} starts while it is {state:?}"),
        }
        let slots: Vec<u32> = self.running().iter().map(|attempt| attempt.slot).collect();
        assert_eq!(Some(attempt.slot), (1..).find(|slot| !slots.contains(slot)), "the lowest free slot");
        let job = self.job(number);
        assert_eq!((attempt.job, attempt.attempt), (number, job.attempt));
        job.state = State::Running(attempt);
        self.retried += u64::from(attempt.attempt > 1);
    }

    fn requeue(&mut self, attempt: Attempt) {
        self.retried -= u64::from(attempt.attempt > 1);
        self.queued += 1;
        let place = State::Ready((-1, -self.queued, attempt.job));
        if self.halted {
            self.drop_job(attempt.job);
        } else {
            self.job(attempt.job).state = place;
        }
    }

    fn finish(&mut self, attempt: Attempt, result: JobResult, now: Instant) {
        let number = attempt.job;
        let may_retry = result == JobResult::Failure && attempt.attempt < self.max_attempts;
        self.job(number).state = match result {
            JobResult::Requeue if self.halted => State::Dropped,
            JobResult::Requeue => {
                self.retried -= u64::from(attempt.attempt > 1);
                self.queued += 1;
                let is_fifo = self.order == QueueOrder::Fifo;
                State::Ready(if is_fifo { (0, self.queued, number) } else { (1, 0, number) })
            }
            _ if may_retry && !self.halted => {
                self.job(number).attempt += 1;
                State::Retry(now + BACKOFF * 2_u32.pow(attempt.attempt - 1))
            }
            JobResult::Success => State::Succeeded,
            _ => State::Failed,
        };
        let is_final = matches!(self.state(number), State::Succeeded | State::Failed | State::Dropped);
        self.job(number).is_forgotten = is_final && !self.keeps_results;
        self.settle();
    }

    fn drop_job(&mut self, number: u64) {
        let is_forgotten = !self.keeps_results;
        let job = self.job(number);
        (job.state, job.is_forgotten) = (State::Dropped, is_forgotten);
    }

    fn halt(&mut self) {
        self.halted = true;
        let waits = |state| matches!(state, State::Blocked | State::Ready(_) | State::Retry(_));
        for number in self.numbers(waits) {
            self.drop_job(number);
        }
    }
}

/// Returns a number below `end`.
fn below(random: &mut Random, end: u64) -> u64 {
    random.draw() % end
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> Option<T> {
    let index = below(random, (from.len() as u64).max(1)) as usize;
    from.get(index).copied()
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let orders = [QueueOrder::Fifo, QueueOrder::ShortestFirst, QueueOrder::LongestFirst, QueueOrder::Random];
    let mut model = Model {
        order: pick(&mut random, &orders).expect("there are orders"),
        max_running: 1 + below(&mut random, 4),
        max_attempts: 1 + below(&mut random, 3) as u32,
        jobs: Vec::new(),
        keeps_results: false,
        closed: false,
        halted: false,
        paused: false,
        retried: 0,
        queued: 0,
    };
    let retry = RetryPolicy::new().max_attempts(model.max_attempts).backoff(BACKOFF);
    let config =
        SchedulerOptions::new().max_running(model.max_running as usize).order(model.order).retry(retry);
    let mut scheduler = Scheduler::new(config.seed(seed));
    let mut now = Instant::now();
    for step in 0.. {
        let is_ending = step > STEPS;
        if is_ending && !model.closed {
            (model.closed, model.paused) = (true, false);
            scheduler.close();
            scheduler.set_paused(false);
        }
        let running = model.running();
        match below(&mut random, 100) {
            0..30 if !is_ending => submit(&mut scheduler, &mut model, &mut random),
            0..65 => model.check(&scheduler.next(now), now),
            65..90 => {
                let Some(attempt) = pick(&mut random, &running) else { continue };
                use JobResult::{Failure, PermanentFailure, Requeue, Success};
                let result =
                    [Success, Success, Success, Success, Failure, Failure, PermanentFailure, Requeue];
                let result = pick(&mut random, &result).expect("there are results");
                scheduler.finish(attempt, attempt.job, result, now);
                model.finish(attempt, result, now);
            }
            90..93 => {
                let Some(attempt) = pick(&mut random, &running) else { continue };
                scheduler.requeue(attempt, attempt.job);
                model.requeue(attempt);
            }
            93..98 => now += Duration::from_millis(400),
            98 if !is_ending => {
                model.paused ^= true;
                scheduler.set_paused(model.paused);
            }
            _ if below(&mut random, 20) == 0 => {
                scheduler.halt();
                model.halt();
            }
            _ => (),
        }
        assert_eq!(scheduler.counts().running, model.running().len() as u64);
        if is_ending && scheduler.is_exhausted() {
            break;
        }
        assert!(step < 100 * STEPS, "the run does not end: {model:?}");
    }
    let ended = [State::Succeeded, State::Failed, State::Skipped].map(|state| model.count(state));
    let counts = scheduler.counts();
    assert_eq!([counts.succeeded, counts.failed, counts.skipped], ended);
    assert_eq!((counts.submitted, counts.retried), (model.jobs.len() as u64, model.retried));
    assert!(model.halted || ended.iter().sum::<u64>() == counts.submitted, "a job is lost: {model:?}");
}

/// Submits a job with up to three dependencies, some of which are wrong.
fn submit(scheduler: &mut Scheduler<u64>, model: &mut Model, random: &mut Random) {
    let number = model.jobs.len() as u64 + 1;
    let cost = 1 + below(random, 5);
    let names_any = below(random, 10) == 0;
    let limit = if names_any { number + 3 } else { number };
    let mut after: Vec<u64> = (0..below(random, 4)).map(|_| below(random, limit)).collect();
    if !names_any {
        after.retain(|other| *other > 0);
    }
    let answer = if after.is_empty() {
        Ok(scheduler.submit(number, cost))
    } else {
        scheduler.submit_after(number, &after, cost).map_err(|error| error.dependency())
    };
    assert_eq!(answer, model.submit(after, cost).map(|()| number));
}

#[test]
fn random_graphs_run_as_a_model_of_them_does() {
    let is_long = std::env::var("MINDER_LONG").is_ok_and(|value| value == "1");
    let first = std::env::var("MINDER_SEED").ok().map(|seed| seed.parse().expect("a seed is a number"));
    let seeds = match first {
        Some(seed) => seed..seed + 1,
        None => 0..if is_long { GRAPHS.1 } else { GRAPHS.0 },
    };
    for seed in seeds {
        std::panic::catch_unwind(|| run(seed))
            .unwrap_or_else(|_| panic!("repeat it with MINDER_SEED={seed}"));
    }
}
