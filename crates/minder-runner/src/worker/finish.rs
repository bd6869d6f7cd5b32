//! The end of a job: its output is saved, then recorded, then written.

use std::io::{BufWriter, Write};
use std::time::Duration;

use minder::jobs::{Attempt, JobResult};
use minder::{ExitStatus, Outcome, Stream};
use minder_record::event::{JobFinished, JournalEvent, OsBytes, OutputSegment};
use minder_record::{codec, joblog};

use super::held::{HeldJob, HeldJobs};
use super::job_values::job_values;
use super::running_job::{AttemptEnd, RunningJob, unstarted_event};
use crate::commit::PendingEvents;
use crate::config::{OutputTime, OutputView};
use crate::context::RunContext;
use crate::input::JobArgs;
use crate::notice::Notice;
use crate::output::batch::OutputBatch;
use crate::output::decorate::LineStyle;
use crate::output::gathered::GatheredOutput;
use crate::output::store::{FinishedJob, JobFile, Location, Segment};
use crate::queue::Task;
use crate::recorder::command_of;
use crate::remote_results::RemoteResult;
use crate::report::{EndCause, FailureReason, JobEnd, RunStats};
use crate::results::table::{Output, ResultsTable};
use crate::splitter::InputBlock;
use crate::text::{os_error_text, shorten};

/// A table row whose output is larger than this is built in a file, not in memory.
const ROW_MAX: u64 = 256 << 10;

/// The exit status of a job that could not be started, as shells have it.
const NOT_STARTED: i32 = 127;

/// The decision whether a finished job has an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recorded {
    /// It has one.
    Yes,
    /// The end of the run cut it off. It runs again.
    CutOff,
    /// Its live output may be lost, or minder itself failed. It runs again.
    Unseen,
}

/// Records and counts the finished jobs of one worker thread, and gives their output to the committer.
pub(super) struct Finisher<'a> {
    context: &'a RunContext<'a>,
    batch: OutputBatch,
    /// Encoded events of the jobs in the batch.
    events: PendingEvents,
    pub(super) stats: RunStats,
    pub(super) held: HeldJobs<'a>,
    /// The most jobs in a batch.
    slots: usize,
}

impl<'a> Finisher<'a> {
    pub(super) fn new(context: &'a RunContext<'a>, batch: OutputBatch, slots: usize) -> Self {
        Self {
            context,
            batch,
            events: PendingEvents::default(),
            stats: RunStats::default(),
            held: HeldJobs::new(context),
            slots,
        }
    }

    /// Records the held jobs, writes the batch, and returns what was counted.
    pub(super) fn into_stats(mut self) -> RunStats {
        while let Some(held) = self.held.wait_for_next() {
            self.finish_held(held);
        }
        self.flush();
        self.stats
    }

    /// Returns what messages call a job.
    pub(super) fn name(&self, attempt: Attempt, task: &Task) -> String {
        name(self.context, attempt, task)
    }

    /// Records, shows and counts a job whose last attempt ended, or holds it back for that.
    pub(super) fn finish(&mut self, end: AttemptEnd<'_>, mut running: Box<RunningJob>) {
        // The limit of memory is a cause that does not end the run.
        let has_own_cause = matches!(end.cause, EndCause::MemoryMax(_));
        let may_be_cut_off = !has_own_cause && self.held.must_hold(&running, end.outcome);
        let queued = running.unread_output(self.context);
        if may_be_cut_off || queued.is_some() {
            self.held.push(end, running, may_be_cut_off, queued);
            while let Some(held) = self.held.pop_excess() {
                self.finish_held(held);
            }
        } else {
            self.record(end, &mut running);
        }
        self.flush_if_full();
    }

    /// Records the held jobs that are due.
    pub(super) fn release_held(&mut self) {
        while let Some(held) = self.held.pop_due() {
            self.finish_held(held);
        }
    }

    fn finish_held(&mut self, held: HeldJob) {
        let HeldJob { attempt, task, mut running, outcome, cause, .. } = held;
        running.output.gathered.reopen_files();
        self.record(AttemptEnd { attempt, task: &task, outcome: &outcome, cause }, &mut running);
        self.flush_if_full();
        // Only now: the job is in the batch and counted there again, so no other job can claim live
        // output in between.
        self.context.sequencer.forget_finished();
    }

    /// Records, shows and counts a finished job.
    fn record(&mut self, end: AttemptEnd<'_>, running: &mut RunningJob) {
        let recorded = self.record_and_show(end, running);
        let AttemptEnd { attempt, task, outcome, cause } = end;
        let stats = &mut self.stats;
        let wall = running.wall();
        let name = || name(self.context, attempt, task);
        match recorded {
            Recorded::Yes => {
                if running.succeeded && attempt.attempt > 1 {
                    stats.add_flaky(attempt.attempt, name);
                }
                stats.add(cause, outcome, running.succeeded, wall, name);
            }
            Recorded::CutOff if running.succeeded => stats.add_withdrawn(outcome.exit, wall),
            Recorded::Unseen if running.succeeded => stats.add_unseen(outcome.exit, wall),
            Recorded::CutOff | Recorded::Unseen => {
                stats.add_cancelled(cause, outcome.exit, wall, running.is_last_attempt, name);
            }
        }
    }

    /// Records, reports and counts an attempt that failed, of a job that is to be started again. What it left
    /// behind is dropped.
    pub(super) fn finish_attempt(
        &mut self,
        end: AttemptEnd<'_>,
        mut running: Box<RunningJob>,
        result: JobResult,
    ) {
        let context = self.context;
        if matches!(result, JobResult::Failure) {
            self.record_attempt(end, &mut running);
            if context.observer.wants_job_end(false) {
                let job_end = self.job_end_of(end, &running, false);
                let attempts_max = Some(context.config.control.attempts).filter(|max| *max < u32::MAX);
                context.observer.job_retried(&job_end, end.attempt.attempt, attempts_max);
            }
        }
        self.discard_attempt(&mut running, end.task);
        self.stats.add_attempt(end.cause, end.outcome.exit, running.wall());
    }

    /// Counts and reports a job that could not be started.
    pub(super) fn fail_unstarted(&mut self, attempt: Attempt, task: &Task, why: &str) -> JobResult {
        let name = self.name(attempt, task);
        // The coordinator reports those of agents.
        if self.context.recorder.agent().is_none() {
            self.context.observer.notice(&Notice::CannotRun { job: name.clone(), reason: why.to_owned() });
        }
        self.stats.add_unstarted(&name, why);
        let mut event = unstarted_event(task.number, self.args(task), why);
        let mut output = GatheredOutput::default();
        let mut needs_shown_event = false;
        if let Some(table) = &self.context.table {
            if let Err(error) = self.replace_with_table_row(table, (&event, None), attempt, task, &mut output)
            {
                self.context.fail(error);
                return JobResult::PermanentFailure;
            }
            event.kept = self.kept_segments(&output);
            needs_shown_event = self.context.recorder.is_kept();
        }
        self.encode_event(attempt, task, event);
        let failure = Some(FailureReason::NotStarted(why.to_owned()));
        let has_reader = self.context.observer.wants_job_end(false);
        let end = has_reader.then(|| Box::new(self.job_end((attempt, task), Duration::ZERO, failure, false)));
        self.push(&mut output, FinishedJob { needs_shown_event, end, ..FinishedJob::new(task.number) });
        JobResult::PermanentFailure
    }

    /// Shows the command of a job that an agent has run, as it was shown if it ran here.
    fn show_command(&self, attempt: Attempt, task: &Task, output: &mut GatheredOutput) {
        let config = self.context.config;
        let line = || config.template.display(&job_values(self.context, task, attempt));
        if config.verbose {
            self.context.observer.command(&line());
        }
        if config.print {
            output.push(Stream::Stdout, format!("{}\n", line()).as_bytes());
        }
    }

    /// Counts, reports and shows a job that an agent has run. Its result is in the journal of the agent.
    /// Returns how it failed, if it did.
    pub(super) fn finish_remote(
        &mut self,
        attempt: Attempt,
        task: &Task,
        result: &RemoteResult,
    ) -> Result<Option<ExitStatus>, String> {
        let context = self.context;
        let ended = &result.ended;
        let wall = Duration::try_from_secs_f64(ended.wall).unwrap_or_default();
        let status = match (ended.exit, ended.signal) {
            (_, Some(signal)) => ExitStatus::Signaled { signal, core_dumped: false },
            (code, None) => ExitStatus::Exited(code.unwrap_or(NOT_STARTED)),
        };
        let failure = (!ended.succeeded()).then(|| match &ended.error {
            Some(why) => FailureReason::NotStarted(why.clone()),
            None if ended.timed_out => FailureReason::TimedOut(wall),
            None => FailureReason::Exited(status, wall),
        });
        self.stats.add_remote(ended, wall, failure.clone(), || self::name(context, attempt, task));
        context.status.count_recorded(failure.is_none());
        if result.is_shown {
            self.push(&mut GatheredOutput::default(), FinishedJob::new(task.number));
            self.flush_if_full();
            return Ok(failure.map(|_| status));
        }
        if let Some(why) = &ended.error {
            let job = self.name(attempt, task);
            context.observer.notice(&Notice::CannotRun { job, reason: why.clone() });
        }
        self.log_remote(attempt, task, result);

        let mut output = GatheredOutput::default();
        self.show_command(attempt, task, &mut output);
        // Its output, in the files of the agent.
        for segment in &ended.kept {
            let cannot = |error| format!("cannot read `{}`: {}", result.dir.display(), os_error_text(&error));
            output.push_saved(Segment::saved(segment, &result.dir).map_err(cannot)?);
        }
        if let Some(table) = &context.table {
            let node = result.node.as_deref();
            self.replace_with_table_row(table, (ended, node), attempt, task, &mut output)?;
        }
        let time =
            if failure.is_none() { context.config.times.success } else { context.config.times.failure };
        self.prepare_for(time, &mut output)?;

        let style = LineStyle::of(context.config, &job_values(context, task, attempt));
        let style = self.style(style, failure.is_some() && ended.signal.is_none());
        let has_reader = time.is_final() || context.observer.wants_job_end(failure.is_none());
        let end = has_reader.then(|| Box::new(self.job_end((attempt, task), wall, failure.clone(), false)));
        let finished = FinishedJob {
            style,
            time,
            end,
            // Also without output: a later coordinator then knows that the result was reported.
            needs_shown_event: true,
            from_earlier_attempt: context.table.is_none(),
            ..FinishedJob::new(task.number)
        };
        self.push(&mut output, finished);
        self.flush_if_full();
        Ok(failure.map(|_| status))
    }

    /// Adds the joblog line of a job that an agent has run, unless an earlier coordinator did.
    fn log_remote(&mut self, attempt: Attempt, task: &Task, result: &RemoteResult) {
        let recorder = self.context.recorder;
        if recorder.has_joblog() {
            let command = command_of(&self.args(task), task.number, attempt.slot, self.context.config);
            let before = self.events.joblog.len();
            let node = result.node.as_deref();
            joblog::encode(&result.ended, node, command.as_bytes(), &mut self.events.joblog);
            if recorder.is_logged(&self.events.joblog[before..]) {
                self.events.joblog.truncate(before);
            }
        }
    }

    fn args(&self, task: &Task) -> Vec<OsBytes> {
        if self.context.config.record.redact {
            return Vec::new();
        }
        task.columns().iter().map(|value| OsBytes::from(value.as_os_str())).collect()
    }

    fn encode_event(&mut self, attempt: Attempt, task: &Task, mut event: JobFinished) {
        let context = self.context;
        if let Some(InputBlock { range, checksum }) = &task.input_block {
            event.block_at = range.start;
            event.block_len = range.end - range.start;
            event.block_crc = *checksum;
        }
        if context.recorder.has_joblog() {
            let command = command_of(&self.args(task), task.number, attempt.slot, context.config);
            joblog::encode(&event, None, command.as_bytes(), &mut self.events.joblog);
        }
        context.status.count_recorded(event.succeeded());
        if context.recorder.is_kept() {
            codec::encode(&JournalEvent::JobFinished(event), &mut self.events.journal);
        }
    }

    /// Commits the batch: saves the output of its jobs, appends their events, and writes what may
    /// be written now.
    pub(super) fn flush(&mut self) {
        if self.batch.is_empty() && self.events.journal.is_empty() {
            return;
        }
        let pool = self.context.pool;
        let flushed =
            self.context.committer.flush(&mut self.batch, &mut self.events, self.slots, &|| pool.wake());
        if let Err(error) = flushed {
            self.context.fail(error);
        }
        if self.context.sequencer.stdio.is_broken() {
            pool.cancel();
        }
    }

    fn flush_if_full(&mut self) {
        if self.batch.is_full(self.slots) {
            self.flush();
        }
    }

    /// Returns where the output of a job is saved that is the next one in the batch.
    fn kept_segments(&self, output: &GatheredOutput) -> Vec<OutputSegment> {
        let mut kept = Vec::new();
        for segment in output.segments() {
            let stream = segment.stream as u8 + 1;
            match &segment.location {
                Location::Batch(range) => {
                    kept.extend(self.batch.place_of_next(range).map(|(file, at)| OutputSegment {
                        stream,
                        file: file.to_owned(),
                        at,
                        len: range.len() as u64,
                    }));
                }
                Location::Own(job_file) => {
                    let name = job_file.path.as_deref().and_then(|path| path.file_name());
                    kept.extend(name.map(|name| OutputSegment {
                        stream,
                        file: name.to_string_lossy().into_owned(),
                        at: job_file.range.start,
                        len: job_file.range.end - job_file.range.start,
                    }));
                }
                // No event refers to them: such a run has no record, or the job is an earlier one.
                Location::Held(_) | Location::Shared(..) | Location::Named(..) => (),
            }
        }
        kept
    }

    /// Replaces the output of a job by its row of the table.
    fn replace_with_table_row(
        &self,
        table: &ResultsTable,
        event: (&JobFinished, Option<&str>),
        attempt: Attempt,
        task: &Task,
        output: &mut GatheredOutput,
    ) -> Result<(), String> {
        let context = self.context;
        let cannot_save = |error| context.committer.cannot_save(&error);
        let command = context.config.template.display(&job_values(context, task, attempt));
        table.begin(task.columns().len(), |line| context.sequencer.show(Stream::Stdout, line, None));
        let is_large = output.len() > ROW_MAX;
        let job_file = if is_large { Some(context.recorder.create_job_file()?) } else { None };
        let chunks: Output<'_> = &|stream, take| output.for_each_chunk(stream, take);
        let mut row = Vec::new();
        let written = match job_file.as_ref().and_then(|job_file| job_file.file.as_ref()) {
            Some(file) => {
                let mut file = BufWriter::new(file);
                let written = table.row(event, &command, task.columns(), chunks, &mut file);
                written.and_then(|()| file.flush())
            }
            None => table.row(event, &command, task.columns(), chunks, &mut row),
        };
        let written = written.and_then(|()| job_file.as_ref().map_or(Ok(0), JobFile::written));
        output.discard();
        output.push(Stream::Stdout, &row);
        if let Some(mut job_file) = job_file {
            job_file.range = 0..*written.as_ref().unwrap_or(&0);
            output.push_file(Stream::Stdout, job_file);
        }
        // The file of a row that could not be written is removed with the output.
        written.map(drop).map_err(cannot_save)
    }

    /// Adds a finished job to the batch, with its output.
    fn push(&mut self, output: &mut GatheredOutput, finished: FinishedJob) {
        self.context.sequencer.note_finished();
        self.batch.push(output, finished);
    }

    /// Prepares the output of a job for the time at which it is written.
    fn prepare_for(&self, time: OutputTime, output: &mut GatheredOutput) -> Result<(), String> {
        if time == OutputTime::Never {
            output.discard();
        }
        // The worker thread's file grows while anything in it waits. If it also has output that does not
        // wait, a job that does gets a separate file.
        let context = self.context;
        let mixes = context.config.times.success == OutputTime::Immediate && context.recorder.is_kept();
        if time.is_final() && mixes && output.in_memory() > 0 {
            let job_file = context.recorder.create_job_file()?;
            output.move_to(job_file).map_err(|error| context.committer.cannot_save(&error))?;
        }
        Ok(())
    }

    /// Records an attempt that failed, of a job that is to be started again.
    fn record_attempt(&mut self, end: AttemptEnd<'_>, running: &mut RunningJob) {
        if !self.context.recorder.is_kept() {
            return;
        }
        // The last bytes are read from the gathered output. The files of `--results` are those of the next
        // attempt.
        if running.output.results.is_none()
            && let Err(error) = running.output.gather_rest()
        {
            self.context.fail(error);
            return;
        }
        let mut event = self.event(end, running);
        event.attempts = Some(end.attempt.attempt);
        codec::encode(&JournalEvent::JobTried(event), &mut self.events.journal);
    }

    /// Drops what an attempt left behind, before the job runs again.
    pub(super) fn discard_attempt(&mut self, running: &mut RunningJob, task: &Task) {
        let context = self.context;
        running.output.close_styled_lines(context.sequencer);
        let (lines, mut sink) = running.output.lines(context, running.number);
        lines.finish_open_lines(&mut sink);
        if lines.close_open_lines(&mut sink) {
            context.pool.wake();
        }
        // Other lines of this attempt were shown already.
        let shows_lines = context.config.view == OutputView::Lines;
        if shows_lines {
            running.output.gather_rest_of_lines();
        }
        running.output.delete_files();
        if let (Some(splitter), Some(feeder)) = (context.queue.splitter(), running.stdin.take()) {
            *task.block() = feeder.rewind(splitter);
        }
        if shows_lines && running.output.gathered.in_memory() > 0 {
            let style = running.output.style.take();
            let finished = FinishedJob { style, ..FinishedJob::new(task.number) };
            self.push(&mut running.output.gathered, finished);
        }
    }

    /// Records a finished job and writes its output.
    fn record_and_show(&mut self, end: AttemptEnd<'_>, running: &mut RunningJob) -> Recorded {
        let context = self.context;
        let number = end.task.number;
        running.output.close_styled_lines(context.sequencer);
        // The user has seen its output already.
        let was_shown = running.output.is_live || context.config.view == OutputView::Lines;

        // A job that was killed because minder failed: its incomplete output is dropped.
        if running.is_interrupted {
            if let Some(results) = running.output.results.take() {
                results.discard();
            }
            // If part of a line is on the screen, nothing may follow it: the next output would
            // continue that line.
            if !(was_shown && context.sequencer.is_live(number)) {
                self.push(&mut GatheredOutput::default(), FinishedJob::new(number));
            }
            return Recorded::Unseen;
        }

        // All of its output, in one place.
        let header = std::mem::take(&mut running.output.header);
        running.output.gathered.push(Stream::Stdout, &header);
        if let Err(error) = running.output.gather_rest() {
            context.fail(error);
            return Recorded::Unseen;
        }

        // A job that the run cut off has no event and runs again. So does a job whose live output
        // may have been lost with standard output.
        let unseen = was_shown && running.output.written != [0; 2] && context.sequencer.stdio.is_broken();
        let recorded = match () {
            () if self.is_cut_off(running) => Recorded::CutOff,
            () if unseen => Recorded::Unseen,
            () => Recorded::Yes,
        };
        let cut = recorded != Recorded::Yes;
        if cut && context.table.is_some() {
            running.output.gathered.discard();
        }

        // Its event, and with `--csv` and the like the row that is written instead of its output.
        let has_event =
            context.recorder.is_kept() || context.recorder.has_joblog() || context.table.is_some();
        let event = (!cut && has_event).then(|| self.event(end, running));
        if let (Some(event), Some(table)) = (&event, &context.table) {
            let output = &mut running.output.gathered;
            if let Err(error) =
                self.replace_with_table_row(table, (event, None), end.attempt, end.task, output)
            {
                context.fail(error);
                return Recorded::Unseen;
            }
        }

        // When its output is written. From here on its place is known, which the event names.
        let times = context.config.times;
        let time = match () {
            () if recorded == Recorded::CutOff => times.cancelled,
            () if running.succeeded => times.success,
            () => times.failure,
        };
        if let Err(error) = self.prepare_for(time, &mut running.output.gathered) {
            context.fail(error);
            return Recorded::Unseen;
        }
        let mut needs_shown_event = false;
        if let Some(mut event) = event {
            event.kept = self.kept_segments(&running.output.gathered);
            needs_shown_event = context.recorder.is_kept() && !event.kept.is_empty();
            self.encode_event(end.attempt, end.task, event);
        }

        // The batch gets it, with what the observer wants to know.
        let style = running.output.style.take();
        let style = self.style(style, looks_failed(end.outcome, end.cause));
        let has_reader = time.is_final() || context.observer.wants_job_end(running.succeeded);
        let job_end = has_reader.then(|| Box::new(self.job_end_of(end, running, cut)));
        let finished =
            FinishedJob { style, time, end: job_end, needs_shown_event, ..FinishedJob::new(number) };
        self.push(&mut running.output.gathered, finished);
        recorded
    }

    /// Returns `true` if the end of the run cut this finished job off.
    fn is_cut_off(&self, running: &RunningJob) -> bool {
        let ends = self.context.status.is_shutting_down();
        match () {
            // Its own processes may have been killed by what ends the run, whatever its exit status says.
            () if ends && self.context.config.hold_results.is_some() => true,
            () if running.succeeded => false,
            // A job whose event was held back exited before the run was asked to end. A halt that this
            // job caused does not cut it off.
            () if running.is_held => ends,
            () => self.context.pool.is_cancelled(),
        }
    }

    /// Returns the event of an attempt that ended, without the place of its output.
    fn event(&self, end: AttemptEnd<'_>, running: &mut RunningJob) -> JobFinished {
        let AttemptEnd { attempt, task, outcome, cause } = end;
        let mut event = running.event(self.args(task), outcome.exit);
        event.rss = event.rss.and_then(|rss| self.context.status.own_peak.of_job(rss));
        event.leaked = outcome.leaked;
        event.attempts = Some(attempt.attempt).filter(|attempt| *attempt > 1);
        if !running.succeeded {
            event.timed_out = matches!(cause, EndCause::TimedOut(_));
            event.cause = cause.journal_value().map(str::to_owned);
        }
        if let Some(copy) = &mut running.output.copy {
            event.stored = copy.take_segments();
        }
        // The output may contain arguments.
        if !event.succeeded() && !self.context.config.record.redact {
            event.tail = running.output.tail(Stream::Stderr);
            event.out_tail = running.output.tail(Stream::Stdout);
        }
        event
    }

    /// Returns what the observer learns about an attempt that ended.
    fn job_end_of(&self, end: AttemptEnd<'_>, running: &RunningJob, is_cut_off: bool) -> JobEnd {
        let AttemptEnd { attempt, task, outcome, cause } = end;
        let wall = running.wall();
        let failure = (!running.succeeded).then(|| FailureReason::new(cause, outcome.exit.status, wall));
        self.job_end((attempt, task), wall, failure, is_cut_off)
    }

    /// Returns what the observer learns about the end of a job.
    fn job_end(
        &self,
        (attempt, task): (Attempt, &Task),
        wall: Duration,
        failure: Option<FailureReason>,
        is_cut_off: bool,
    ) -> JobEnd {
        let command = self.wanted_command(attempt, task, failure.as_ref());
        let total = self.context.queue.total();
        JobEnd {
            number: task.number,
            name: self.name(attempt, task),
            wall,
            failure,
            is_cut_off,
            command,
            total,
        }
    }

    /// Returns the decoration of the output of a job.
    fn style(&self, style: Option<LineStyle>, looks_failed: bool) -> Option<LineStyle> {
        if self.context.config.color_failed && looks_failed { LineStyle::failed(style) } else { style }
    }

    /// Returns the whole command line of a job that ended, if the observer wants it.
    fn wanted_command(
        &self,
        attempt: Attempt,
        task: &Task,
        failure: Option<&FailureReason>,
    ) -> Option<String> {
        let context = self.context;
        let is_wanted = matches!(task.item, JobArgs::Columns(_)) && context.observer.wants_command(failure);
        is_wanted.then(|| context.config.template.display(&job_values(context, task, attempt)))
    }
}

/// Returns what messages call a job.
fn name(context: &RunContext<'_>, attempt: Attempt, task: &Task) -> String {
    if let Some(name) = context.config.name_of(task.number) {
        return name.to_owned();
    }
    match &task.item {
        JobArgs::Columns(_) => {
            shorten(&context.config.template.display_name(&job_values(context, task, attempt)))
        }
        JobArgs::Unfit(_) => format!("job {}", task.number),
    }
}

/// Returns `true` if the output of a job is colored as that of a failed job. As in GNU parallel, a
/// job that was killed by a signal does not count.
fn looks_failed(outcome: &Outcome, cause: EndCause) -> bool {
    match outcome.exit.status {
        ExitStatus::Exited(code) if code != 0 => true,
        _ => matches!(cause, EndCause::TimedOut(_)),
    }
}
