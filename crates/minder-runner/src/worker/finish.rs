//! The end of a job: its output is saved, then recorded, then written.

use std::io::{BufWriter, Write};
use std::time::Duration;

use minder::jobs::{Attempt, JobResult};
use minder::{ExitStatus, Outcome, Stream};

use super::job_output::last_bytes;
use super::state::RunWorker;
use crate::config::{OutputTime, OutputView};
use crate::input::JobArgs;
use crate::notice::Notice;
use crate::output::decorate::LineStyle;
use crate::output::store::{FinishedJob, JobFile, Location};
use crate::queue::Task;
use crate::recorder::command_of;
use crate::report::{EndCause, FailureReason, JobEnd};
use crate::results::cannot_write;
use crate::results::table::Output;
use crate::results::table::ResultsTable;
use crate::splitter::InputBlock;
use crate::text::os_error_text;
use crate::worker::job_values::job_values;
use crate::worker::output::close_styled_lines;
use crate::worker::running_job::RunningJob;
use crate::worker::running_job::unstarted_event;
use minder_record::event::{JobFinished, JournalEvent, OsBytes, OutputSegment};
use minder_record::{codec, joblog};

/// Whether a finished job has an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// It has one.
    Yes,
    /// The end of the run cut it off. It runs again.
    CutOff,
    /// Its live output may be lost, or minder itself failed. It runs again.
    Unseen,
}

/// A table row whose output is larger than this is built in a file, not in memory.
const ROW_MAX: u64 = 256 << 10;

impl RunWorker<'_> {
    /// Counts and reports a job that could not be started.
    pub(crate) fn fail_unstarted(
        &mut self,
        attempt: Attempt,
        task: &Task,
        name: &str,
        why: &str,
    ) -> JobResult {
        self.context.observer.notice(&Notice::CannotRun { job: name.to_owned(), reason: why.to_owned() });
        self.stats.add_unstarted(name, why);
        let mut event = unstarted_event(task.number, self.args(task), why);
        let mut needs_shown_event = false;
        if let Some(table) = &self.context.table {
            if let Err(error) =
                self.replace_with_table_row(table, &event, attempt, task, &mut RunningJob::new(task.number))
            {
                self.batch.discard();
                self.context.fail(error);
                return JobResult::PermanentFailure;
            }
            event.kept = self.kept_segments();
            needs_shown_event = self.context.recorder.is_kept();
        }
        self.encode_event(attempt, task, event);
        let failure = Some(FailureReason::NotStarted(why.to_owned()));
        let command = self.wanted_command(attempt, task, failure.as_ref());
        let name = name.to_owned();
        let end = JobEnd { name, wall: Duration::ZERO, failure, is_cut_off: false, command };
        let end = self.context.observer.wants_job_ends().then(|| Box::new(end));
        self.push_finished(FinishedJob { needs_shown_event, end, ..FinishedJob::new(task.number) });
        JobResult::PermanentFailure
    }

    pub(crate) fn args(&self, task: &Task) -> Vec<OsBytes> {
        if self.context.config.record.redact {
            return Vec::new();
        }
        task.columns().iter().map(|value| OsBytes::from(value.as_os_str())).collect()
    }

    pub(crate) fn encode_event(&mut self, attempt: Attempt, task: &Task, mut event: JobFinished) {
        let context = self.context;
        if let Some(InputBlock { range, checksum }) = &task.input_block {
            event.block_at = range.start;
            event.block_len = range.end - range.start;
            event.block_crc = *checksum;
        }
        if context.recorder.has_joblog() {
            let command = command_of(&self.args(task), task.number, attempt.slot, context.config);
            joblog::encode(&event, command.as_bytes(), &mut self.events.joblog);
        }
        context.status.count_recorded(event.succeeded());
        if context.recorder.is_kept() {
            codec::encode(&JournalEvent::JobFinished(event), &mut self.events.journal);
        }
    }

    /// Commits the batch: saves the output of its jobs, appends their events, and writes what may
    /// be written now.
    pub(crate) fn flush(&mut self) {
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

    /// Moves the rest of a finished job's output into the batch.
    pub(crate) fn collect_output(&mut self, running: &mut RunningJob) -> Result<(), String> {
        for (stream, mut job_file) in
            [Stream::Stdout, Stream::Stderr].into_iter().zip(running.output.spool.drain(..))
        {
            let len = job_file
                .written()
                .map_err(|error| format!("cannot read the output of a job: {}", os_error_text(&error)))?;
            running.output.written[stream as usize] = len;
            job_file.range = 0..len;
            if let (Some(results), Some(file)) = (&mut running.output.results, &job_file.file) {
                let pushed = results.push_file(stream, file, 0, len);
                pushed.map_err(|error| cannot_write(results.place(), &error))?;
            }
            match len {
                0 => job_file.remove(),
                _ => self.batch.push_file(stream, job_file),
            }
        }
        let batch = &mut self.batch;
        running.output.take_rest_of_lines(|stream, bytes| batch.push(stream, bytes));
        let Some(results) = &running.output.results else { return Ok(()) };
        for stream in [Stream::Stdout, Stream::Stderr] {
            let written = results.handed_over(stream);
            let written = written.map_err(|error| cannot_write(results.place(), &error))?;
            if let Some((file, len)) = written {
                running.output.written[stream as usize] = len;
                let end = file.metadata().map_or(len, |metadata| metadata.len());
                running.output.tails[stream as usize].push(&last_bytes(file, end));
            }
        }
        if let Some(line) = results.line() {
            batch.push(Stream::Stdout, &line);
        }
        Ok(())
    }

    /// Returns where the output of the current job is saved.
    fn kept_segments(&self) -> Vec<OutputSegment> {
        let batch = &self.batch;
        let mut kept = Vec::new();
        for segment in batch.segments() {
            let stream = segment.stream as u8 + 1;
            match &segment.location {
                Location::Batch(range) => kept.extend(batch.place(range).map(|(file, at)| OutputSegment {
                    stream,
                    file: file.to_owned(),
                    at,
                    len: range.len() as u64,
                })),
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
                Location::Held(_) | Location::Shared(..) => (),
            }
        }
        kept
    }

    /// Replaces the output of a job by its row of the table.
    fn replace_with_table_row(
        &mut self,
        table: &ResultsTable,
        event: &JobFinished,
        attempt: Attempt,
        task: &Task,
        running: &mut RunningJob,
    ) -> Result<(), String> {
        let context = self.context;
        let command = context.config.template.display(&job_values(context, task, attempt));
        table.begin(task.columns().len(), |line| context.sequencer.show(Stream::Stdout, line, None));
        let large = self.batch.len() > ROW_MAX;
        let file = if large { Some(self.spool(running)?) } else { None };
        let batch = &self.batch;
        let output: Output<'_> = &|stream, take| batch.for_each_chunk(stream, take);
        let mut row = Vec::new();
        let written = match &file {
            Some(file) => {
                let mut file = BufWriter::new(file);
                let written = table.row(event, &command, task.columns(), output, &mut file);
                written.and_then(|()| file.flush())
            }
            None => table.row(event, &command, task.columns(), output, &mut row),
        };
        written.map_err(|error| context.committer.cannot_save(&error))?;
        self.batch.discard();
        self.batch.push(Stream::Stdout, &row);
        if let Some(mut job_file) = running.output.spool.pop() {
            let len = job_file.written().map_err(|error| context.committer.cannot_save(&error))?;
            job_file.range = 0..len;
            self.batch.push_file(Stream::Stdout, job_file);
        }
        Ok(())
    }

    /// Returns the last bytes that a failed job wrote to one of its streams.
    pub(crate) fn tail(&self, running: &mut RunningJob, stream: Stream) -> Option<OsBytes> {
        // With `--files` the batch holds a file name instead of the job's output.
        let is_own = running.output.results.as_ref().is_none_or(|results| results.shows(stream));
        let tail = &mut running.output.tails[stream as usize];
        for segment in self.batch.segments().iter().filter(|segment| is_own && segment.stream == stream) {
            match &segment.location {
                Location::Batch(range) => tail.push(self.batch.slice(range.clone())),
                Location::Own(JobFile { file: Some(file), range, .. }) => {
                    tail.push(&last_bytes(file, range.end))
                }
                _ => (),
            }
        }
        let tail = tail.take();
        // The header before the output is not the job's either.
        let written = usize::try_from(running.output.written[stream as usize]).unwrap_or(usize::MAX);
        let tail = &tail[tail.len().saturating_sub(written)..];
        (!tail.is_empty()).then(|| OsBytes::from(tail))
    }

    fn push_finished(&mut self, finished: FinishedJob) {
        self.context.sequencer.note_finished();
        self.batch.finish_job(finished);
    }

    /// Prepares the output of the current job for the time at which it is written.
    fn prepare_for(&mut self, time: OutputTime, running: &mut RunningJob) -> Result<(), String> {
        if time == OutputTime::Never {
            self.batch.discard();
        }
        // The worker thread's file grows while anything in it waits. If it also has output that does not
        // wait, a job that does gets a separate file.
        let context = self.context;
        let mixes = context.config.times.success == OutputTime::Immediate && context.recorder.is_kept();
        if time.is_final() && mixes && self.batch.has_bytes() {
            self.spool(running)?;
            if let Some(job_file) = running.output.spool.pop() {
                self.batch.move_to(job_file).map_err(|error| context.committer.cannot_save(&error))?;
            }
        }
        Ok(())
    }

    /// Records a try that failed, of a job that is to be started again.
    pub(crate) fn record_try(
        &mut self,
        attempt: Attempt,
        task: &Task,
        running: &mut RunningJob,
        outcome: &Outcome,
        cause: EndCause,
    ) {
        if !self.context.recorder.is_kept() {
            return;
        }
        // The last bytes are read from the batch. The files of `--results` are those of the next try.
        if running.output.results.is_none()
            && let Err(error) = self.collect_output(running)
        {
            self.context.fail(error);
            return;
        }
        let mut event = self.finished_event(attempt, task, running, outcome, cause);
        event.attempts = Some(attempt.attempt);
        codec::encode(&JournalEvent::JobTried(event), &mut self.events.journal);
    }

    /// Drops what an attempt left behind, before the job runs again.
    pub(crate) fn discard_attempt(&mut self, running: &mut RunningJob, task: &Task) {
        close_styled_lines(self.context, running);
        let (lines, mut sink) = running.output.lines(self.context.sequencer, running.number, self.line_max);
        lines.finish_open_lines(&mut sink);
        if lines.close_open_lines(&mut sink) {
            self.context.pool.wake();
        }
        // Other lines of this attempt were shown already.
        if self.context.config.view == OutputView::Lines {
            let batch = &mut self.batch;
            running.output.take_rest_of_lines(|stream, bytes| batch.push(stream, bytes));
        }
        running.output.delete_files();
        if let (Some(splitter), Some(feeder)) = (self.context.queue.splitter(), running.stdin.take()) {
            *task.block() = feeder.rewind(splitter);
        }
        if self.context.config.view == OutputView::Lines && self.batch.has_bytes() {
            let style = running.output.style.take();
            self.push_finished(FinishedJob { style, ..FinishedJob::new(task.number) });
        } else {
            self.batch.discard();
        }
    }

    /// Records a finished job and writes its output.
    pub(crate) fn record_and_show(
        &mut self,
        attempt: Attempt,
        task: &Task,
        running: &mut RunningJob,
        outcome: &Outcome,
        cause: EndCause,
    ) -> Recorded {
        let context = self.context;
        close_styled_lines(context, running);
        // The user has seen its output already.
        let was_shown = running.output.is_live || context.config.view == OutputView::Lines;
        if running.is_interrupted {
            if let Some(results) = running.output.results.take() {
                results.discard();
            }
            self.batch.discard();
            // If part of a line is on the screen, nothing may follow it: the next output would
            // continue that line.
            if !(was_shown && context.sequencer.is_live(task.number)) {
                self.push_finished(FinishedJob::new(task.number));
            }
            return Recorded::Unseen;
        }
        let header = std::mem::take(&mut running.output.header);
        self.batch.push(Stream::Stdout, &header);
        if let Err(error) = self.collect_output(running) {
            // The events of other jobs must not refer to this output.
            self.batch.discard();
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
            self.batch.discard();
        }
        let mut event = None;
        if !cut && (context.recorder.is_kept() || context.recorder.has_joblog() || context.table.is_some()) {
            let finished = self.finished_event(attempt, task, running, outcome, cause);
            if let Some(table) = &context.table
                && let Err(error) = self.replace_with_table_row(table, &finished, attempt, task, running)
            {
                self.batch.discard();
                context.fail(error);
                return Recorded::Unseen;
            }
            event = Some(finished);
        }
        let times = context.config.times;
        let time = match () {
            () if recorded == Recorded::CutOff => times.cancelled,
            () if running.succeeded => times.success,
            () => times.failure,
        };
        if let Err(error) = self.prepare_for(time, running) {
            self.batch.discard();
            context.fail(error);
            return Recorded::Unseen;
        }
        let mut needs_shown_event = false;
        if let Some(mut event) = event {
            event.kept = self.kept_segments();
            needs_shown_event = context.recorder.is_kept() && !event.kept.is_empty();
            self.encode_event(attempt, task, event);
        }
        let style = running.output.style.take();
        let style = if context.config.color_failed && looks_failed(outcome, cause) {
            LineStyle::failed(style)
        } else {
            style
        };
        let has_reader = time.is_final() || context.observer.wants_job_ends();
        let end = has_reader.then(|| Box::new(self.job_end(attempt, task, running, outcome, cause, cut)));
        let number = task.number;
        self.push_finished(FinishedJob { style, time, end, needs_shown_event, ..FinishedJob::new(number) });
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

    /// Returns the event of a finished job, without the place of its output.
    fn finished_event(
        &self,
        attempt: Attempt,
        task: &Task,
        running: &mut RunningJob,
        outcome: &Outcome,
        cause: EndCause,
    ) -> JobFinished {
        let mut event = running.finished_event(self.args(task), outcome.exit, Vec::new());
        event.rss = event.rss.and_then(|rss| self.context.status.own_peak.of_job(rss));
        event.leaked = outcome.leaked;
        event.attempts = Some(attempt.attempt).filter(|attempt| *attempt > 1);
        if !running.succeeded {
            event.timed_out = matches!(cause, EndCause::TimedOut(_));
            event.cause = cause.journal_value().map(str::to_owned);
        }
        // The output may contain arguments.
        if !event.succeeded() && !self.context.config.record.redact {
            event.tail = self.tail(running, Stream::Stderr);
            event.out_tail = self.tail(running, Stream::Stdout);
        }
        event
    }

    /// Returns what the observer is told about a finished job.
    pub(crate) fn job_end(
        &self,
        attempt: Attempt,
        task: &Task,
        running: &RunningJob,
        outcome: &Outcome,
        cause: EndCause,
        is_cut_off: bool,
    ) -> JobEnd {
        let wall = running.wall();
        let status = outcome.exit.status;
        let failure = (!running.succeeded).then(|| FailureReason::new(cause, status, wall));
        let command = self.wanted_command(attempt, task, failure.as_ref());
        JobEnd { name: self.name(attempt, task), wall, failure, is_cut_off, command }
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

/// Returns `true` if the output of a job is colored as that of a failed job. As in GNU parallel, a
/// job that was killed by a signal does not count.
fn looks_failed(outcome: &Outcome, cause: EndCause) -> bool {
    match outcome.exit.status {
        ExitStatus::Exited(code) if code != 0 => true,
        _ => matches!(cause, EndCause::TimedOut(_)),
    }
}
