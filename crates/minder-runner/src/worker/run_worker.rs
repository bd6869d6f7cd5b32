//! The callbacks of one worker thread: each job becomes a command, each event becomes output and
//! journal events, and each end is counted.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use minder::jobs::{
    Attempt, ChildControl, HaltTrigger, JobHandler, JobResult, JobSource, NextJob, SpawnRequest,
};
use minder::{ChildId, Error, ErrorKind, Event, Operation, Outcome, Termination};
use minder_os::signals;

use super::finish::Finisher;
use super::job_values::waiting_job_values;
use super::prepare::Preparer;
use super::running_job::{AttemptEnd, RunningJob};
use super::running_jobs::RunningJobs;
use super::start_hint::start_hint;
use crate::admission::JobPermit;
use crate::config::{OutputView, Timeout};
use crate::context::RunContext;
use crate::input::JobArgs;
use crate::notice::Notice;
use crate::output::batch::OutputBatch;
use crate::queue::Task;
use crate::remote_results::RemoteResult;
use crate::report::{EndCause, RunStats};
use crate::results::Refusal;
use crate::splitter::StdinFeeder;
use crate::text::{cannot_save_in, count, format_error};

/// The time that a job has to end after it was stopped for using the terminal.
const TERMINAL_GRACE: Duration = Duration::from_secs(1);

/// One worker thread of a run. Only that thread uses it; everything shared is in `context`.
pub(crate) struct RunWorker<'a> {
    context: &'a RunContext<'a>,
    preparer: Preparer<'a>,
    running: RunningJobs<'a>,
    finisher: Finisher<'a>,
    /// The permission to run for the job that is being started.
    permit: Option<JobPermit>,
    /// The success of the job that ended last, until the halt policy was looked at.
    last_success: Option<bool>,
}

impl<'a> RunWorker<'a> {
    pub(crate) fn new(context: &'a RunContext<'a>, batch: OutputBatch, workers: usize) -> Self {
        Self {
            context,
            preparer: Preparer::new(context),
            running: RunningJobs::new(context),
            finisher: Finisher::new(context, batch, context.slots.div_ceil(workers)),
            permit: None,
            last_success: None,
        }
    }

    /// Records the held jobs, writes the batch, and returns what this worker thread counted.
    pub(crate) fn into_stats(self) -> RunStats {
        self.finisher.into_stats()
    }

    /// Reports that the halt policy lets no more jobs start, after each job that it counts.
    fn report_halt(&mut self) {
        let Some(success) = self.last_success.take() else { return };
        let Some(reason) = self.context.pool.halted_by().filter(|reason| !reason.now) else { return };
        let is_counted = match reason.on {
            HaltTrigger::Failed => !success,
            HaltTrigger::Succeeded => success,
            _ => true,
        };
        let running = self.context.pool.counts().running;
        if is_counted && running > 0 {
            self.context.observer.notice(&Notice::Halting { running });
        }
    }

    /// Reports that a job is not started, and ends the run if that is so for every job.
    fn refuse(&mut self, attempt: Attempt, task: &Task, refusal: Refusal) -> JobResult {
        match refusal {
            Refusal::Own(why) => return self.finisher.fail_unstarted(attempt, task, &why),
            Refusal::All(why) => self.context.fail(why),
            Refusal::Input(why) => self.context.fail_input(why),
        }
        JobResult::PermanentFailure
    }

    /// Finishes a job that an agent has run.
    fn finish_remote(&mut self, attempt: Attempt, task: &Task, result: &RemoteResult) -> JobResult {
        let context = self.context;
        let failure = match self.finisher.finish_remote(attempt, task, result) {
            Ok(failure) => failure,
            Err(error) => {
                context.fail(error);
                return JobResult::PermanentFailure;
            }
        };
        self.last_success = Some(failure.is_none());
        match failure {
            None => JobResult::Success,
            Some(status) => {
                if result.ended.error.is_none() {
                    context.status.add_failure(status);
                }
                JobResult::PermanentFailure
            }
        }
    }

    /// Ends the run because of a program or directory that no job can be started with. The error is the same
    /// for every job: it is reported once.
    fn fail_start(&self, error: &Error) {
        let ran = self.context.pool.counts();
        let jobs = match (ran.succeeded + ran.failed, self.context.queue.early_total()) {
            (0, Some(total)) => format!(" ({}, none started)", count(total, "job")),
            (0, None) => " (no job was started)".to_owned(),
            (ran, _) => format!(" ({} ran before)", count(ran, "job")),
        };
        let error = match (error.operation(), error.subject()) {
            (Operation::Spawn, Some(program)) => {
                let has_directory = self.context.config.control.directory.is_some();
                let hint = start_hint(program, error.kind(), has_directory);
                format!("cannot run `{program}`: {}{hint}", error.reason())
            }
            _ => error.to_string(),
        };
        self.context.fail(format!("{error}{jobs}"));
    }
}

impl JobSource for RunWorker<'_> {
    type Job = Task;

    fn next_job(&mut self) -> NextJob<Task> {
        if self.context.sequencer.is_backlogged() || self.finisher.held.are_too_many() {
            return NextJob::Pending;
        }
        self.context.queue.next_job()
    }

    fn key(&mut self, task: &Task) -> Option<u64> {
        let limit = self.context.config.control.limit_per.as_ref()?;
        // An error is reported when the job is prepared.
        let key = limit.key.argv(&waiting_job_values(self.context, task)).ok()?;
        // Two keys with one hash share a limit, which is unlikely and does no harm.
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Some(hasher.finish())
    }

    fn admit(&mut self, _start: Attempt, running: u64) -> bool {
        self.permit = self.context.admission.admit(usize::try_from(running).unwrap_or(usize::MAX));
        self.permit.is_some()
    }
}

impl JobHandler for RunWorker<'_> {
    fn prepare(&mut self, attempt: Attempt, task: &Task) -> Result<SpawnRequest, JobResult> {
        self.finisher.stats.retrying -= i64::from(attempt.attempt > 1);
        // The permit is returned on every path that does not start the job.
        let permit = self.permit.take();
        if let Some(result) = &task.remote {
            return Err(self.finish_remote(attempt, task, result));
        }
        if let JobArgs::Unfit(why) = &task.item {
            return Err(self.finisher.fail_unstarted(attempt, task, &why.to_string()));
        }
        if let Some(why) = &task.refusal {
            return Err(self.finisher.fail_unstarted(attempt, task, why));
        }
        let mut running = RunningJob::new(task.number);
        running.permit = permit;
        let request = match self.preparer.prepare(attempt, task, &mut running) {
            Ok(request) => request,
            Err(refusal) => return Err(self.refuse(attempt, task, refusal)),
        };
        self.running.insert(attempt.slot, running);
        self.context.job_table.insert(task, attempt);
        Ok(request)
    }

    fn deferred(&mut self, attempt: Attempt, task: &Task) {
        self.finisher.stats.retrying += i64::from(attempt.attempt > 1);
        if let Some(mut running) = self.running.remove(attempt.slot) {
            self.finisher.discard_attempt(&mut running, task);
            self.context.job_table.remove(task.number, None);
        }
        self.preparer.note_deferred(attempt, task);
    }

    fn started(&mut self, attempt: Attempt, _task: &Task, child: ChildId, children: &mut ChildControl<'_>) {
        let context = self.context;
        self.preparer.note_started();
        let Some(running) = self.running.get_mut(attempt.slot) else { return };
        running.child = Some(child);
        if running.output.is_live || context.config.view == OutputView::Lines {
            running.write_header(context);
        }
        if matches!(context.config.control.timeout, Some(Timeout::Median(_))) {
            self.running.without_timeout.insert(attempt.slot);
        }
        self.running.feed_stdin(attempt.slot, children);
    }

    fn event(
        &mut self,
        attempt: Attempt,
        task: &Task,
        event: Event,
        children: &mut ChildControl<'_>,
    ) -> Option<Termination> {
        let context = self.context;
        let slot = attempt.slot;
        let running = self.running.get_mut(slot)?;
        match event {
            Event::Writable { .. } => self.running.feed_stdin(slot, children),
            Event::Output { stream, chunk, .. } => {
                let is_blocked = running.receive_chunk(context, stream, chunk);
                running.forward(context, children);
                if is_blocked {
                    self.running.blocked_lines.insert(slot);
                }
            }
            Event::Spilled { stream, file, .. } => running.receive_file(context, stream, file),
            Event::Forwarded { stream, count, .. } => running.count_forwarded(context, stream, count),
            Event::Exited { exit, .. } => {
                running.has_exited = true;
                let status = exit.status;
                if context.config.control.tty {
                    context.note_terminal_job_exit();
                }
                if signals::looks_killed(status.code(), status.signal()) && context.status.has_failed() {
                    running.is_interrupted = true;
                } else if context.config.control.tty
                    && status.signal().is_some_and(|by| signals::number("INT") == Some(by))
                {
                    running.is_interrupted = true;
                    context.interrupt();
                }
            }
            Event::Stopped { signal, .. } if minder::os::wants_terminal(signal) => {
                running.wants_terminal = true;
                let job = self.finisher.name(attempt, task);
                let is_first = !context.status.has_named_terminal.swap(true, Ordering::Relaxed);
                context.observer.notice(&Notice::NeedsTerminal { job, is_first });
                return Some(Termination::graceful(TERMINAL_GRACE));
            }
            _ => (),
        }
        None
    }

    fn finished(&mut self, attempt: Attempt, task: &Task, outcome: Outcome) -> JobResult {
        let Some(mut running) = self.running.remove(attempt.slot) else {
            return JobResult::PermanentFailure;
        };
        let context = self.context;
        // The token of the jobserver is returned before output is written: a slow reader must not
        // keep it.
        drop(running.permit.take());
        let wall = running.wall();
        let status = outcome.exit.status;
        running.wall_time = Some(wall);
        // As a shell does: a job that was killed may have left the terminal without echo. One that exited has
        // set the modes on purpose, such as `stty`.
        if let (Some(modes), Some(_)) = (running.terminal_modes.take(), status.signal()) {
            modes.restore();
        }

        // How it ended, and whether it did its work.
        let is_halted = context.pool.is_cancelled() && context.pool.halted_by().is_some_and(|by| by.now);
        let cause = running.cause(&outcome, is_halted);
        running.cgroup = None;
        // A job that read only part of its input has no valid result. It gets no event, and the
        // read error ends the run.
        running.is_interrupted |= running.stdin.as_deref().is_some_and(StdinFeeder::is_torn);
        let run_time = wall.saturating_sub(outcome.suspended);
        let succeeded = status.success() && !outcome.killed && !outcome.timed_out;
        running.succeeded = succeeded;
        context.job_table.remove(task.number, succeeded.then_some(run_time));
        if context.config.slots.may_change() {
            reload_slots(context);
        }
        let end = AttemptEnd { attempt, task, outcome: &outcome, cause };

        // It runs again.
        if !succeeded && !running.is_interrupted && !context.pool.is_cancelled() {
            let again = match cause {
                EndCause::Memory => Some(JobResult::Requeue),
                _ if !running.is_last_attempt => Some(JobResult::Failure),
                _ => None,
            };
            if let Some(result) = again {
                self.finisher.finish_attempt(end, running, result);
                return result;
            }
        }

        // It is done.
        if let (Some(splitter), Some(feeder)) = (context.queue.splitter(), &mut running.stdin) {
            feeder.end(splitter);
        }
        self.finisher.finish(end, running);
        self.last_success = Some(succeeded);
        if succeeded {
            return JobResult::Success;
        }
        if !context.pool.is_cancelled() {
            context.status.add_failure(status);
        }
        if let Some(splitter) = context.queue.splitter()
            && context.pool.is_cancelled()
        {
            splitter.close();
        }
        JobResult::Failure
    }

    fn spawn_failed(&mut self, attempt: Attempt, task: &Task, error: Error) -> JobResult {
        let context = self.context;
        context.status.add_start_failure(error.kind());
        if let Some(mut running) = self.running.remove(attempt.slot) {
            running.output.delete_files();
            if let (Some(splitter), Some(mut feeder)) = (context.queue.splitter(), running.stdin.take()) {
                feeder.end(splitter);
            }
            context.job_table.remove(task.number, None);
        }
        let is_directory = error.operation() == Operation::EnterDirectory;
        let has_fewer = context.config.batches_arguments && task.columns().len() > 1;
        let hopeless = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
        if hopeless && context.config.is_same_for_all(is_directory) {
            self.fail_start(&error);
            return JobResult::PermanentFailure;
        }
        let why = if is_directory {
            error.to_string()
        } else if error.kind() == ErrorKind::TooLong && has_fewer {
            format!("{}; or give each job fewer arguments (-s)", error.reason())
        } else {
            error.reason()
        };
        self.finisher.fail_unstarted(attempt, task, &why)
    }

    fn worker_failed(&mut self, error: &Error) {
        self.context.fail(match error.kind() {
            ErrorKind::Exhausted => {
                format!(
                    "{error}, and no job runs whose end could free some \
                     (`minder doctor` shows the limits)"
                )
            }
            _ if error.operation() == Operation::Spill => {
                let dir = error.subject().unwrap_or_default();
                cannot_save_in(dir, &error.reason())
            }
            _ => error.to_string(),
        });
    }

    fn due(&self) -> Option<Instant> {
        self.finisher.held.due()
    }

    fn idle(&mut self, children: &mut ChildControl<'_>) {
        let context = self.context;
        self.finisher.release_held();
        self.finisher.flush();
        self.report_halt();
        if let Some(failure) = context.admission.take_failure() {
            context.fail(failure);
        }
        let sequencer = context.sequencer;
        let shows_lines = context.config.view == OutputView::Lines;
        if shows_lines {
            self.running.retry_blocked_lines();
        }
        if sequencer.can_continue() || shows_lines && sequencer.is_due() {
            write_waiting(context);
        }
        self.running.idle(children);
        if sequencer.stdio.is_broken() {
            context.pool.cancel();
        }
    }
}

/// Writes output that waited for another job.
fn write_waiting(context: &RunContext<'_>) {
    if let Err(error) = context.committer.write_waiting(false, context.slots) {
        context.fail(error);
    }
}

/// Applies the number of slots that the file of `-j` contains now.
fn reload_slots(context: &RunContext<'_>) {
    match context.config.slots.now() {
        Ok(slots) => {
            let max = context.max_slots;
            context.pool.set_max_running(slots.unwrap_or(max).min(max));
        }
        Err(error) => {
            context.observer.notice(&Notice::Condition { line: format_error(&error) });
        }
    }
}
