//! The callbacks of one worker thread: each job becomes a command, each event becomes output and
//! journal events, and each end is counted.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use minder::jobs::{
    Attempt, ChildControl, HaltTrigger, JobHandler, JobResult, JobSource, NextJob, SpawnRequest,
};
use minder::{ChildId, Error, ErrorKind, Event, Operation, Outcome, Termination};
use minder_os::signals;

use super::state::RunWorker;
use crate::config::OutputView;
use crate::config::Timeout;
use crate::context::RunContext;
use crate::input::JobArgs;
use crate::notice::Notice;
use crate::output::decorate::LineStyle;
use crate::queue::Task;
use crate::report::EndCause;
use crate::report::RunStats;
use crate::results::Refusal;
use crate::spawn_command::spawn_command;
use crate::splitter::StdinFeeder;
use crate::text::cannot_save_in;
use crate::text::count;
use crate::text::format_error;
use crate::worker::finish::Recorded;
use crate::worker::job_values::job_values;
use crate::worker::output::forward;
use crate::worker::output::show_header;
use crate::worker::running_job::RunningJob;
use crate::worker::search_path;
use crate::worker::start_cure::start_cure;
use minder_template as template;

/// How long a job that was stopped for using the terminal has to end.
const TERMINAL_GRACE: Duration = Duration::from_secs(1);

impl RunWorker<'_> {
    /// Records the held jobs, writes the batch, and returns what this worker thread counted.
    pub(crate) fn finish(mut self) -> RunStats {
        self.release_all();
        self.flush();
        self.stats
    }

    /// Writes output that waited for another job.
    fn write_waiting(&self) {
        if let Err(error) = self.context.committer.write_waiting(false, self.context.slots) {
            self.context.fail(error);
        }
    }
}

impl RunWorker<'_> {
    /// Records, shows and counts a finished job.
    pub(super) fn finish_job(
        &mut self,
        attempt: Attempt,
        task: &Task,
        running: &mut RunningJob,
        outcome: &Outcome,
        cause: EndCause,
    ) {
        let recorded = self.record_and_show(attempt, task, running, outcome, cause);
        let mut stats = std::mem::take(&mut self.stats);
        let exit = outcome.exit;
        let wall = running.wall();
        let name = || self.name(attempt, task);
        match recorded {
            Recorded::Yes => {
                if running.succeeded && attempt.attempt > 1 {
                    stats.add_flaky(attempt.attempt, name);
                }
                stats.add(cause, outcome, running.succeeded, wall, name);
            }
            Recorded::CutOff if running.succeeded => stats.add_withdrawn(exit, wall),
            Recorded::Unseen if running.succeeded => stats.add_unseen(exit, wall),
            Recorded::CutOff | Recorded::Unseen => {
                stats.add_cancelled(cause, exit, wall, running.is_last_attempt, name);
            }
        }
        self.stats = stats;
    }
}

impl RunWorker<'_> {
    /// Counts the jobs that have exited, and whose output could not be read to its end.
    fn count_unread(&mut self) {
        let unread = self.running.jobs_mut().filter(|running| running.has_exited).count();
        self.context.status.set_unread(std::mem::replace(&mut self.unread, unread), unread);
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
}

impl JobSource for RunWorker<'_> {
    type Job = Task;

    fn next_job(&mut self) -> NextJob<Task> {
        if self.context.sequencer.is_backlogged() || self.holds_too_much() {
            return NextJob::Pending;
        }
        self.context.queue.next_job()
    }

    fn admit(&mut self, _start: Attempt, running: u64) -> bool {
        self.permit = self.context.admission.admit(usize::try_from(running).unwrap_or(usize::MAX));
        self.permit.is_some()
    }
}

impl JobHandler for RunWorker<'_> {
    fn prepare(&mut self, attempt: Attempt, task: &Task) -> Result<SpawnRequest, JobResult> {
        let config = self.context.config;
        self.stats.retrying -= i64::from(attempt.attempt > 1);
        // The permit is returned on every path that does not start the job.
        let permit = self.permit.take();
        if let JobArgs::Unfit(why) = &task.item {
            return Err(self.fail_unstarted(
                attempt,
                task,
                &format!("job {}", task.number),
                &why.to_string(),
            ));
        }
        let values = job_values(self.context, task, attempt);
        let mut invocation = match config.template.invocation(&values) {
            Ok(invocation) => invocation,
            Err(error) if error.kind() == template::ErrorKind::Column => {
                // The error is the same for every job: it is reported once, and it ends the run.
                self.context.fail_input(error.to_string());
                return Err(JobResult::PermanentFailure);
            }
            Err(error) => {
                let name = self.name(attempt, task);
                return Err(self.fail_unstarted(attempt, task, &name, &error.to_string()));
            }
        };
        search_path::find_program(&config.control, &values, &mut invocation.argv);
        // `configure` may replace the command, so they are set afterwards.
        let variables = std::mem::take(&mut invocation.variables);
        let mut command = spawn_command(invocation);
        let mut running = Box::new(RunningJob::new(task.number));
        running.permit = permit;
        running.is_last_attempt = self.context.is_last_attempt(attempt);
        running.output.may_be_live = running.is_last_attempt
            && !config.may_requeue()
            && !config.color_failed
            && config.times.are_immediate();
        running.output.style = LineStyle::of(config, &values);
        if config.view == OutputView::Ordered {
            running.output.decorate_lines();
        }
        let options = match self.configure(&mut command, &mut running, task, &values) {
            Ok(options) => options,
            Err(Refusal::All(why)) => {
                self.context.fail(why);
                return Err(JobResult::PermanentFailure);
            }
            Err(Refusal::Own(why)) => {
                if let (Some(splitter), Some(feeder)) = (self.context.queue.splitter(), &mut running.stdin) {
                    feeder.end(splitter);
                }
                let name = self.name(attempt, task);
                return Err(self.fail_unstarted(attempt, task, &name, &why));
            }
        };
        for (name, value) in variables {
            command.env(name, value);
        }
        if config.verbose {
            let line = config.template.display(&values);
            if self.printed.remove(&task.number).as_ref() != Some(&line) {
                self.context.observer.command(&line);
            }
        }
        self.running.insert(attempt.slot, running);
        self.context.job_table.insert(task, attempt);
        Ok(SpawnRequest::new(command).options(options))
    }

    fn deferred(&mut self, attempt: Attempt, task: &Task) {
        self.stats.retrying += i64::from(attempt.attempt > 1);
        let config = self.context.config;
        if config.verbose {
            let line = config.template.display(&job_values(self.context, task, attempt));
            self.printed.insert(task.number, line);
        }
        if let Some(mut running) = self.running.remove(attempt.slot) {
            self.discard_attempt(&mut running, task);
            self.context.job_table.remove(task.number, None);
        }
        self.check_streams();
    }

    fn started(&mut self, attempt: Attempt, _task: &Task, child: ChildId, children: &mut ChildControl<'_>) {
        let context = self.context;
        self.short_since = None;
        let Some(running) = self.running.get_mut(attempt.slot) else { return };
        running.child = Some(child);
        if running.output.is_live {
            show_header(context, running);
        } else if context.config.view == OutputView::Lines {
            self.write_header(attempt);
        }
        if matches!(context.config.control.timeout, Some(Timeout::Median(_))) {
            self.running.without_timeout.insert(attempt.slot);
        }
        self.feed_stdin(attempt.slot, children);
    }

    fn event(
        &mut self,
        attempt: Attempt,
        task: &Task,
        event: Event,
        children: &mut ChildControl<'_>,
    ) -> Option<Termination> {
        match event {
            Event::Writable { .. } => self.feed_stdin(attempt.slot, children),
            Event::Output { child, stream, chunk, .. } => {
                self.receive_chunk(attempt, stream, chunk);
                let context = self.context;
                if let Some(running) = self.running.get_mut(attempt.slot) {
                    forward(context, running, child, children);
                }
            }
            Event::Spilled { stream, file: spilled, .. } => self.receive_file(attempt, stream, spilled),
            Event::Forwarded { stream, count: bytes, .. } => {
                if let Some(running) = self.running.get_mut(attempt.slot) {
                    running.output.count(stream, bytes);
                    self.context.sequencer.stdio.note_forwarded();
                    // These bytes did not pass through minder, so the tail from before them is no
                    // longer the tail.
                    running.output.tails[stream as usize].take();
                }
            }
            Event::Exited { exit, .. } => {
                let context = self.context;
                let running = self.running.get_mut(attempt.slot)?;
                running.has_exited = true;
                let status = exit.status;
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
                let job = self.name(attempt, task);
                let is_first = !self.context.status.has_named_terminal.swap(true, Ordering::Relaxed);
                self.context.observer.notice(&Notice::NeedsTerminal { job, is_first });
                if let Some(running) = self.running.get_mut(attempt.slot) {
                    running.wants_terminal = true;
                }
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
        let is_halted = context.pool.is_cancelled() && context.pool.halted_by().is_some_and(|by| by.now);
        let cause = running.cause(&outcome, is_halted);
        // A job that read only part of its input has no valid result. It gets no event, and the
        // read error ends the run.
        running.is_interrupted |= running.stdin.as_ref().is_some_and(StdinFeeder::is_torn);
        let run_time = wall.saturating_sub(outcome.suspended);
        running.succeeded = status.success() && !outcome.killed && !outcome.timed_out;
        context.job_table.remove(task.number, running.succeeded.then_some(run_time));
        if context.config.slots.may_change() {
            reload_slots(context);
        }
        if !running.succeeded && !running.is_interrupted && !context.pool.is_cancelled() {
            let again = match cause {
                EndCause::Memory => Some(JobResult::Requeue),
                _ if !running.is_last_attempt => Some(JobResult::Failure),
                _ => None,
            };
            if let Some(result) = again {
                if matches!(result, JobResult::Failure) {
                    self.record_try(attempt, task, &mut running, &outcome, cause);
                }
                if matches!(result, JobResult::Failure) && context.observer.wants_job_ends() {
                    let end = self.job_end(attempt, task, &running, &outcome, cause, false);
                    let attempts_max = Some(context.config.control.attempts).filter(|max| *max < u32::MAX);
                    context.observer.job_retried(&end, attempt.attempt, attempts_max);
                }
                self.discard_attempt(&mut running, task);
                self.stats.add_attempt(cause, outcome.exit, wall);
                return result;
            }
        }
        if let (Some(splitter), Some(feeder)) = (context.queue.splitter(), &mut running.stdin) {
            feeder.end(splitter);
        }
        let succeeded = running.succeeded;
        let may_be_cut_off = self.must_hold(&running, &outcome);
        let queued = self.unread_output(&mut running);
        if may_be_cut_off || queued.is_some() {
            self.hold(attempt, task, running, (outcome, cause), (may_be_cut_off, queued));
        } else {
            self.finish_job(attempt, task, &mut running, &outcome, cause);
        }
        if self.batch.is_full(self.slots) {
            self.flush();
        }
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
        self.context.status.add_start_failure(error.kind());
        if let Some(mut running) = self.running.remove(attempt.slot) {
            running.output.delete_files();
            if let (Some(splitter), Some(mut feeder)) = (self.context.queue.splitter(), running.stdin.take())
            {
                feeder.end(splitter);
            }
            self.context.job_table.remove(task.number, None);
        }
        let is_directory = error.operation() == Operation::EnterDirectory;
        let has_fewer = self.context.config.batches_arguments && task.columns().len() > 1;
        let why = if is_directory {
            error.to_string()
        } else if error.kind() == ErrorKind::TooLong && has_fewer {
            format!("{}; or give each job fewer arguments (-s)", error.reason())
        } else {
            error.reason()
        };
        let hopeless = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
        if hopeless && self.context.config.is_same_for_all(is_directory) {
            // The error is the same for every job: it is reported once, and it ends the run.
            let ran = self.context.pool.counts();
            let jobs = match (ran.succeeded + ran.failed, self.context.queue.early_total()) {
                (0, Some(total)) => format!(" ({}, none started)", count(total, "job")),
                (0, None) => " (no job was started)".to_owned(),
                (ran, _) => format!(" ({} ran before)", count(ran, "job")),
            };
            let error = match (error.operation(), error.subject()) {
                (Operation::Spawn, Some(program)) => {
                    let has_directory = self.context.config.control.directory.is_some();
                    let cure = start_cure(program, error.kind(), has_directory);
                    format!("cannot run `{program}`: {}{cure}", error.reason())
                }
                _ => error.to_string(),
            };
            self.context.fail(format!("{error}{jobs}"));
            return JobResult::PermanentFailure;
        }
        let name = self.name(attempt, task);
        self.fail_unstarted(attempt, task, &name, &why)
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
        self.held_until()
    }

    fn idle(&mut self, children: &mut ChildControl<'_>) {
        self.release();
        self.flush();
        self.report_halt();
        if let Some(failure) = self.context.admission.take_failure() {
            self.context.fail(failure);
        }
        if self.context.config.view == OutputView::Lines {
            self.retry_blocked_lines();
        }
        let sequencer = self.context.sequencer;
        if sequencer.can_continue() || self.context.config.view == OutputView::Lines && sequencer.is_due() {
            self.write_waiting();
        }
        self.start_live_output(children);
        self.feed_starved(children);
        self.apply_requests(children);
        self.resize_terminals(children);
        self.update_median_timeouts(children);
        if self.context.status.is_shutting_down() {
            self.count_unread();
        }
        let stdio = &self.context.sequencer.stdio;
        if stdio.is_abandoned() {
            self.abandon_forwarded(children);
        }
        if stdio.is_broken() {
            self.context.pool.cancel();
        }
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
