//! One loop's part: from a job to a command, from an event to the screen and the record, from an
//! end to the tally.

mod launch;
mod hear;
mod steer;
mod conclude;
pub(super) mod held;

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use minder::exec::{Launch, Outputs, Start, Supply, Verdict, Worker};
use minder::{Error, ErrorKind, Event, Kill, Outcome, Token};
use minder_os::system_paths::TEMP_DIR_VARIABLE;

use self::hear::{forward, show_head};
use self::launch::job;
use super::batch::Batch;
use super::gates::Permit;
use super::input::Task;
use super::job::Running;
use super::lines::line_max;
use super::output::Own;
use super::results::{Refusal, Results};
use super::shared::Shared;
use super::spread::Meal;
use super::tags::{Marker, Marks};
use crate::input::Arguments;
use crate::plan::{Timeout, View};
use crate::report::table::escape;
use crate::report::{Cause, Tally, count, say};
use crate::spawn_command::spawn_command;
use minder_template as template;

/// How long a job that wants the terminal has to end.
const TERMINAL_GRACE: Duration = Duration::from_secs(1);

/// One loop's worker.
pub(super) struct Hand<'a> {
    shared: &'a Shared<'a>,
    batch: Batch,
    /// Rows of the jobs in the batch.
    rows: Vec<u8>,
    joblog: Vec<u8>,
    tally: Tally,
    /// Ends whose rows wait.
    held: held::Queue,
    /// By slot.
    running: Vec<Option<Running>>,
    /// The slots of the jobs that run here, by number. With these lists a wait costs what waits,
    /// not what runs.
    here: HashMap<u64, usize>,
    /// Slots of jobs with lines that wait for the screen, that are to be fed again, and that have
    /// no time-out yet. What ended meanwhile is passed over.
    lined_up: BTreeSet<usize>,
    hungry: BTreeSet<usize>,
    untimed: BTreeSet<usize>,
    slots: usize,
    line_max: usize,
    /// How many files were made for jobs to write to.
    spools: u64,
    /// How many jobs there had been when the other loop was last told that its job is the only one.
    rung: u64,
    place: usize,
    /// What allows the job that is being started.
    permit: Option<Permit>,
    /// The median that time-outs were set by.
    median: Option<Duration>,
}

impl<'a> Hand<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, batch: Batch, place: usize, loops: usize) -> Self {
        Self {
            shared,
            batch,
            rows: Vec::new(),
            joblog: Vec::new(),
            tally: Tally::default(),
            held: held::Queue::new(),
            running: Vec::new(),
            here: HashMap::new(),
            lined_up: BTreeSet::new(),
            hungry: BTreeSet::new(),
            untimed: BTreeSet::new(),
            slots: shared.degree.div_ceil(loops),
            line_max: line_max(shared.plan.buffer, shared.degree),
            spools: 0,
            rung: 0,
            place,
            permit: None,
            median: None,
        }
    }

    /// Writes out what is left, and says what came of all jobs.
    pub(super) fn finish(mut self) -> Tally {
        self.release_all();
        self.flush();
        self.tally
    }
}

impl Hand<'_> {
    fn name(&self, start: Start, task: &Task) -> String {
        match &task.item {
            Arguments::Columns(_) => {
                shorten(&self.shared.plan.template.display_escaped(&job(self.shared, task, start)))
            }
            Arguments::Unfit(_) => format!("job {}", task.number),
        }
    }

    fn at(&mut self, start: Start) -> Option<&mut Running> {
        self.in_slot(start.slot as usize)
    }

    fn in_slot(&mut self, slot: usize) -> Option<&mut Running> {
        self.running.get_mut(slot)?.as_mut()
    }

    /// The job runs here no longer.
    fn leave(&mut self, start: Start) -> Option<Running> {
        let running = self.running.get_mut(start.slot as usize)?.take()?;
        self.here.remove(&running.number);
        Some(running)
    }
}

impl Hand<'_> {
    /// Records, shows and counts a job that is over.
    fn end(&mut self, start: Start, task: &Task, running: &mut Running, outcome: &Outcome, cause: Cause) {
        let cut = self.conclude(start, task, running, outcome, cause);
        let mut tally = std::mem::take(&mut self.tally);
        match cut {
            true => tally.add_cut(cause, outcome.exit, running.wall(), || self.name(start, task)),
            false => tally.add_as(cause, outcome, running.wall(), || self.name(start, task)),
        }
        self.tally = tally;
    }
}

impl Worker for Hand<'_> {
    type Job = Task;

    fn supply(&mut self) -> Supply<Task> {
        if self.shared.stage.is_crowded() {
            return Supply::Later;
        }
        self.shared.input.supply()
    }

    fn admit(&mut self, _start: Start, running: u64) -> bool {
        self.permit = self.shared.admission.admit(usize::try_from(running).unwrap_or(usize::MAX));
        self.permit.is_some()
    }

    fn launch(&mut self, start: Start, task: &Task) -> Result<Launch, Verdict> {
        let plan = self.shared.plan;
        // Dropped wherever the job does not start.
        let permit = self.permit.take();
        if let Arguments::Unfit(why) = &task.item {
            return Err(self.give_up(start, task, &format!("job {}", task.number), &why.to_string()));
        }
        let call = match plan.template.invocation(&job(self.shared, task, start)) {
            Ok(call) => call,
            Err(error) if error.kind() == template::ErrorKind::Column => {
                // The same for every job: said once, and no other job is tried.
                self.shared.fail(error.to_string());
                return Err(Verdict::FailedForGood);
            }
            Err(error) => {
                let name = self.name(start, task);
                return Err(self.give_up(start, task, &name, &error.to_string()));
            }
        };
        let mut command = spawn_command(&call);
        let mut running = Running::new(task.number);
        running.permit = permit;
        running.last = self.shared.is_last(start);
        running.may_live = running.last && !plan.may_put_back() && !plan.colour_failed;
        running.marks = Marks::of(plan, &job(self.shared, task, start));
        if plan.view == View::Ordered {
            running.markers = [(); 2].map(|()| Marker::new(running.marks.as_ref()));
        }
        let options = match self.prepare(&mut command, &mut running, task, start) {
            Ok(options) => options,
            Err(Refusal::All(why)) => {
                self.shared.fail(why);
                return Err(Verdict::FailedForGood);
            }
            Err(Refusal::Own(why)) => {
                if let (Some(pipe), Some(meal)) = (self.shared.input.pipe(), &mut running.meal) {
                    meal.end(pipe);
                }
                let name = self.name(start, task);
                return Err(self.give_up(start, task, &name, &why));
            }
        };
        // It may have become another command.
        for (name, value) in &call.variables {
            command.env(name, value);
        }
        if plan.verbose {
            let line = plan.template.display(&job(self.shared, task, start));
            self.shared.stage.screen.aside(|| crate::report::say_command(&line));
        }
        let slot = start.slot as usize;
        if self.running.len() <= slot {
            self.running.resize_with(slot + 1, || None);
        }
        self.here.insert(running.number, slot);
        self.running[slot] = Some(running);
        self.shared.roster.enter(task, start);
        Ok(Launch { command, options })
    }

    fn postponed(&mut self, start: Start, task: &Task) {
        if let Some(mut running) = self.leave(start) {
            self.forget(&mut running, task);
            self.shared.roster.leave(task.number, None);
        }
    }

    fn started(&mut self, start: Start, _task: &Task, token: Token, outputs: &mut Outputs<'_>) {
        let shared = self.shared;
        let Some(running) = self.at(start) else { return };
        running.token = Some(token);
        if running.live {
            show_head(shared, running);
        } else if shared.plan.view == View::Lines {
            self.begin(start);
        }
        if matches!(shared.plan.control.timeout, Some(Timeout::Median(_))) {
            self.untimed.insert(start.slot as usize);
        }
        self.feed(start.slot as usize, outputs);
    }

    fn event(&mut self, start: Start, task: &Task, event: Event, outputs: &mut Outputs<'_>) -> Option<Kill> {
        match event {
            Event::Writable(_) => self.feed(start.slot as usize, outputs),
            Event::Output(token, stream, chunk) => {
                self.heard(start, stream, chunk);
                let shared = self.shared;
                self.at(start).into_iter().for_each(|running| forward(shared, running, token, outputs));
            }
            Event::Spilled(_, stream, spilled) => self.heard_file(start, stream, spilled),
            Event::Forwarded(_, stream, bytes) => {
                if let Some(running) = self.at(start) {
                    running.count(stream, bytes);
                    // What came before these bytes is no longer the last.
                    running.tails[stream as usize].take();
                }
            }
            Event::Exited(_, exit) if minder::os::may_be_killed(exit.status) && self.shared.has_failed() => {
                self.at(start).into_iter().for_each(|running| running.torn = true);
            }
            Event::Stopped(_, signal) if minder::os::wants_terminal(signal) => {
                let name = self.name(start, task);
                self.shared.stage.screen.aside(|| {
                    say(&format!("`{name}` wants the terminal, which jobs do not have, and is ended: give it a file as input, or the answer as an argument"));
                });
                return Some(Kill::after(TERMINAL_GRACE));
            }
            _ => (),
        }
        None
    }

    fn done(&mut self, start: Start, task: &Task, outcome: Outcome) -> Verdict {
        let Some(mut running) = self.leave(start) else {
            return Verdict::FailedForGood;
        };
        let shared = self.shared;
        // A build's token is not kept while somebody reads slowly.
        drop(running.permit.take());
        let (wall, status) = (running.wall(), outcome.exit.status);
        running.took = Some(wall);
        let halted_now = shared.crew.is_cancelled() && shared.crew.halted_by().is_some_and(|by| by.now);
        let cause = running.cause(&outcome, halted_now);
        // What it made of half of its input is no result: it has no row, and the error ends the run.
        running.torn |= running.meal.as_ref().is_some_and(Meal::is_torn);
        let took = wall.saturating_sub(outcome.suspended);
        shared.roster.leave(task.number, status.success().then_some(took));
        if shared.plan.slots.may_change() {
            shared.follow_slots();
        }
        if !status.success() && !running.torn && !shared.crew.is_cancelled() {
            let again = match cause {
                Cause::Memory => Some(Verdict::PutBack),
                _ if !running.last => Some(Verdict::Failed),
                _ => None,
            };
            if let Some(verdict) = again {
                self.forget(&mut running, task);
                self.tally.add_attempt(cause, outcome.exit, wall);
                return verdict;
            }
        }
        if let (Some(pipe), Some(meal)) = (shared.input.pipe(), &mut running.meal) {
            meal.end(pipe);
        }
        if self.is_to_hold(&running, &outcome) {
            self.hold(start, task, running, outcome, cause);
        } else {
            self.end(start, task, &mut running, &outcome, cause);
        }
        if self.batch.is_full(self.slots) {
            self.flush();
        }
        if status.success() {
            return Verdict::Succeeded;
        }
        shared.note_failure(status);
        if let Some(pipe) = shared.input.pipe()
            && shared.crew.is_cancelled()
        {
            pipe.close();
        }
        Verdict::Failed
    }

    fn refused(&mut self, start: Start, task: &Task, error: Error) -> Verdict {
        if let Some(mut running) = self.leave(start) {
            running.spool.drain(..).for_each(Own::remove);
            running.results.take().into_iter().for_each(Results::discard);
            if let (Some(pipe), Some(mut meal)) = (self.shared.input.pipe(), running.meal.take()) {
                meal.end(pipe);
            }
            self.shared.roster.leave(task.number, None);
        }
        // A folder that cannot be entered is no matter of the program.
        let text = error.to_string();
        let is_folder = text.starts_with("failed to enter");
        let why = match text {
            text if is_folder => text,
            // Of one record there are no fewer.
            _ if error.kind() == ErrorKind::TooLong
                && self.shared.plan.gathers
                && task.columns().len() > 1 =>
            {
                format!("{}; or give each job fewer arguments (-s)", error.reason())
            }
            _ => error.reason(),
        };
        let hopeless = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
        if hopeless && self.shared.plan.is_same_for_all(is_folder) {
            // The same for every job: said once, and no other job is tried.
            let ran = self.shared.crew.counts();
            let jobs = match (ran.succeeded + ran.failed, self.shared.input.early_total()) {
                (0, Some(total)) => format!(" ({}, none started)", count(total, "job")),
                (0, None) => " (no job was started)".to_owned(),
                (ran, _) => format!(" ({} ran before)", count(ran, "job")),
            };
            self.shared
                .fail(format!("{}{jobs}", error.to_string().replacen("failed to start", "cannot run", 1)));
            return Verdict::FailedForGood;
        }
        let name = self.name(start, task);
        self.give_up(start, task, &name, &why)
    }

    fn broken(&mut self, error: &Error) {
        self.shared.fail(match error.kind() {
            ErrorKind::Exhausted => {
                format!("{error}, and no job runs whose end could free some (`minder doctor` shows the limits)")
            }
            // The only files that the library writes.
            _ if error.to_string().contains("spill") => {
                format!(
                    "{error} (--tmpdir or {TEMP_DIR_VARIABLE} name another folder for output that does not fit \
                     into memory)"
                )
            }
            _ => error.to_string(),
        });
    }

    fn due(&self) -> Option<Instant> {
        self.held_until()
    }

    fn idle(&mut self, outputs: &mut Outputs<'_>) {
        self.release();
        self.flush();
        if self.shared.plan.view == View::Lines {
            self.go_on();
            if self.shared.stage.is_due() {
                self.shared.show_more(false);
            }
        }
        self.promote(outputs);
        self.feed_hungry(outputs);
        self.obey(outputs);
        self.limit(outputs);
        if self.shared.stage.screen.is_broken() {
            self.shared.crew.cancel();
        }
    }
}

/// A command line for a message: its beginning, if it is long.
pub(super) fn shorten(line: &str) -> String {
    const SHOWN_MAX: usize = 120;
    // A value may turn the direction of what stands behind it.
    let line = escape(line.as_bytes());
    match line.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
