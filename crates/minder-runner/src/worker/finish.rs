//! The end of a job: what it left is made safe, then recorded, then shown.

use std::io::{BufWriter, Write};

use minder::jobs::{Attempt, JobResult};
use minder::{ExitStatus, Outcome, Stream};

use super::running_job::last_bytes;
use super::state::RunWorker;
use crate::config::OutputView;
use crate::notice::Notice;
use crate::output::decorate::LineStyle;
use crate::output::line_buffer::LineSink;
use crate::output::store::JobFile;
use crate::output::store::Location;
use crate::queue::Task;
use crate::recorder::command_of;
use crate::report::EndCause;
use crate::results::JobResults;
use crate::results::cannot_write;
use crate::results::table::Output;
use crate::results::table::ResultsTable;
use crate::text::os_error_text;
use crate::worker::job_values::job_values;
use crate::worker::output::close_styled_lines;
use crate::worker::running_job::RunningJob;
use crate::worker::running_job::unstarted_row;
use crate::worker::running_job::was_cancelled;
use minder_record::event::{JobFinished, JournalEvent, OsBytes, OutputSegment};
use minder_record::{codec, joblog};

/// From this size on a row is made in a file.
const ROW_MAX: u64 = 256 << 10;

impl RunWorker<'_> {
    /// Counts a job that was not started, and says why.
    pub(crate) fn fail_unstarted(&mut self, start: Attempt, task: &Task, name: &str, why: &str) -> JobResult {
        self.context.observer.notice(&Notice::CannotRun { job: name.to_owned(), reason: why.to_owned() });
        self.stats.add_unstarted(name, why);
        let mut ended = unstarted_row(task.number, self.args(task), why);
        let mut owed = false;
        if let Some(table) = &self.context.table {
            if let Err(error) =
                self.replace_with_table_row(table, &ended, start, task, &mut RunningJob::new(task.number))
            {
                self.batch.discard();
                self.context.fail(error);
                return JobResult::PermanentFailure;
            }
            ended.kept = self.kept_segments();
            owed = self.context.recorder.is_kept();
        }
        self.write_row(start, task, ended);
        self.push_finished(task.number, None, owed);
        JobResult::PermanentFailure
    }

    pub(crate) fn args(&self, task: &Task) -> Vec<OsBytes> {
        match self.context.config.record.redact {
            false => task.columns().iter().map(|value| OsBytes::from(value.as_os_str())).collect(),
            true => Vec::new(),
        }
    }

    pub(crate) fn write_row(&mut self, start: Attempt, task: &Task, ended: JobFinished) {
        let shared = self.context;
        if shared.recorder.has_joblog() {
            let command = command_of(&self.args(task), task.number, start.slot, shared.config);
            joblog::encode(&ended, command.as_bytes(), &mut self.events.joblog);
        }
        shared.status.count_recorded(ended.succeeded());
        if shared.recorder.is_kept() {
            codec::encode(&JournalEvent::JobFinished(ended), &mut self.events.journal);
        }
    }

    /// Makes safe what the jobs of the batch wrote, then their rows, and shows what may be shown.
    pub(crate) fn flush(&mut self) {
        if self.batch.is_empty() {
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

    /// Gathers what a job left when it ended.
    pub(crate) fn collect_output(&mut self, running: &mut RunningJob) -> Result<(), String> {
        for (stream, mut own) in [Stream::Stdout, Stream::Stderr].into_iter().zip(running.spool.drain(..)) {
            let len = own.file.as_ref().map_or(Ok(0), |file| file.metadata().map(|about| about.len()));
            let len =
                len.map_err(|error| format!("cannot read the output of a job: {}", os_error_text(&error)))?;
            running.wrote[stream as usize] = len;
            own.range = 0..len;
            if let (Some(results), Some(file)) = (&mut running.results, &own.file) {
                let pushed = results.push_file(stream, file, 0, len);
                pushed.map_err(|error| cannot_write(results.place(), &error))?;
            }
            match len {
                0 => own.remove(),
                _ => self.batch.push_file(stream, own),
            }
        }
        let batch = &mut self.batch;
        running.lines.rest(|stream, bytes| batch.push(stream, bytes));
        let Some(results) = &running.results else { return Ok(()) };
        for stream in [Stream::Stdout, Stream::Stderr] {
            let wrote = results.handed_over(stream);
            let wrote = wrote.map_err(|error| cannot_write(results.place(), &error))?;
            if let Some((file, len)) = wrote {
                running.wrote[stream as usize] = len;
                let end = file.metadata().map_or(len, |about| about.len());
                running.tails[stream as usize].push(&last_bytes(file, end));
            }
        }
        if let Some(line) = results.line() {
            batch.push(Stream::Stdout, &line);
        }
        Ok(())
    }

    /// Where lies what waits of the job that ends.
    fn kept_segments(&self) -> Vec<OutputSegment> {
        let batch = &self.batch;
        let mut kept = Vec::new();
        for piece in batch.pieces() {
            let stream = piece.stream as u8 + 1;
            match &piece.location {
                Location::Batch(range) => kept.extend(batch.place(range).map(|(file, at)| OutputSegment {
                    stream,
                    file: file.to_owned(),
                    at,
                    len: range.len() as u64,
                })),
                Location::Own(own) => {
                    let name = own.path.as_deref().and_then(|path| path.file_name());
                    kept.extend(name.map(|name| OutputSegment {
                        stream,
                        file: name.to_string_lossy().into_owned(),
                        at: own.range.start,
                        len: own.range.end - own.range.start,
                    }));
                }
                Location::Shared(..) => (),
            }
        }
        kept
    }

    /// Puts a row in the place of what a job wrote.
    fn replace_with_table_row(
        &mut self,
        table: &ResultsTable,
        ended: &JobFinished,
        start: Attempt,
        task: &Task,
        running: &mut RunningJob,
    ) -> Result<(), String> {
        let shared = self.context;
        let command = shared.config.template.display(&job_values(shared, task, start));
        table.begin(task.columns().len(), |line| shared.sequencer.show(Stream::Stdout, line, None));
        let large = self.batch.len() > ROW_MAX;
        let file = if large { Some(self.spool(running)?) } else { None };
        let batch = &self.batch;
        let output: Output<'_> = &|stream, take| batch.each(stream, take);
        let mut row = Vec::new();
        let written = match &file {
            Some(file) => {
                let mut file = BufWriter::new(file);
                let written = table.row(ended, &command, task.columns(), output, &mut file);
                written.and_then(|()| file.flush())
            }
            None => table.row(ended, &command, task.columns(), output, &mut row),
        };
        written.map_err(|error| shared.committer.cannot_keep(&error))?;
        self.batch.discard();
        self.batch.push(Stream::Stdout, &row);
        if let Some(mut own) = running.spool.pop() {
            let len = own.file.as_ref().map_or(Ok(0), |file| file.metadata().map(|about| about.len()));
            own.range = 0..len.map_err(|error| shared.committer.cannot_keep(&error))?;
            self.batch.push_file(Stream::Stdout, own);
        }
        Ok(())
    }

    /// The last of what a failed job wrote to one of its outputs.
    pub(crate) fn tail(&self, running: &mut RunningJob, stream: Stream) -> Option<OsBytes> {
        // What is shown in its place is not the job's.
        let is_own = running.results.as_ref().is_none_or(|results| results.shows(stream));
        let tail = &mut running.tails[stream as usize];
        for piece in self.batch.pieces().iter().filter(|piece| is_own && piece.stream == stream) {
            match &piece.location {
                Location::Batch(range) => tail.push(self.batch.slice(range.clone())),
                Location::Own(JobFile { file: Some(file), range, .. }) => {
                    tail.push(&last_bytes(file, range.end))
                }
                _ => (),
            }
        }
        let tail = tail.take();
        // What stands before its output is not the job's either.
        let wrote = usize::try_from(running.wrote[stream as usize]).unwrap_or(usize::MAX);
        let tail = &tail[tail.len().saturating_sub(wrote)..];
        (!tail.is_empty()).then(|| OsBytes::from(tail))
    }

    fn push_finished(&mut self, job: u64, marks: Option<LineStyle>, owed: bool) {
        self.context.sequencer.note_finished();
        self.batch.end_job(job, marks, owed);
    }

    /// Drops what an attempt left after which the job runs again.
    pub(crate) fn discard_attempt(&mut self, running: &mut RunningJob, task: &Task) {
        close_styled_lines(self.context, running);
        let RunningJob { number, lines, style: marks, decorators: markers, .. } = &mut *running;
        let (stage, marks) = (self.context.sequencer, marks.as_ref());
        if lines.give_back(&mut LineSink { stage, job: *number, line_max: self.line_max, marks, markers }) {
            self.context.pool.wake();
        }
        running.spool.drain(..).for_each(JobFile::remove);
        running.results.take().into_iter().for_each(JobResults::discard);
        if let (Some(pipe), Some(meal)) = (self.context.queue.splitter(), running.stdin.take()) {
            *task.block() = meal.again(pipe);
        }
        self.batch.discard();
    }

    /// Records and shows a job that is over. Says whether our order cut it off: then it has no row.
    pub(crate) fn record_and_show(
        &mut self,
        start: Attempt,
        task: &Task,
        running: &mut RunningJob,
        outcome: &Outcome,
        cause: EndCause,
    ) -> bool {
        let shared = self.context;
        close_styled_lines(shared, running);
        // What it wrote was seen as it came.
        let passed = running.live || shared.config.view == OutputView::Lines;
        if running.interrupted {
            running.results.take().into_iter().for_each(JobResults::discard);
            self.batch.discard();
            // Behind a piece that was seen nothing else is: it would go on in the middle of a line.
            if !(passed && shared.sequencer.is_live(task.number)) {
                self.push_finished(task.number, None, false);
            }
            return true;
        }
        let head = std::mem::take(&mut running.header);
        self.batch.push(Stream::Stdout, &head);
        if let Err(error) = self.collect_output(running) {
            // No other job's row may speak of it.
            self.batch.discard();
            shared.fail(error);
            return true;
        }
        // What was cut off by our order runs again, and has no row. So does what was to be seen as it came
        // and perhaps was not.
        let unseen = passed && running.wrote != [0; 2] && shared.sequencer.stdio.is_broken();
        // One whose end was held back ended before any order to end. A halt that it brought about is none
        // for itself.
        let ordered =
            if running.held { shared.status.is_shutting_down() } else { shared.pool.is_cancelled() };
        let cut = unseen || was_cancelled(outcome, ordered);
        if cut && shared.table.is_some() {
            self.batch.discard();
        }
        let mut owed = false;
        if !cut && (shared.recorder.is_kept() || shared.recorder.has_joblog() || shared.table.is_some()) {
            let mut row = running.row(self.args(task), outcome.exit, Vec::new());
            row.leaked = outcome.leaked;
            row.timed_out = matches!(cause, EndCause::TimedOut(_)) && !row.succeeded();
            row.attempts = Some(start.attempt).filter(|attempt| *attempt > 1);
            row.cause = cause.word().filter(|_| !row.succeeded()).map(str::to_owned);
            // Messages name arguments.
            if !row.succeeded() && !shared.config.record.redact {
                row.tail = self.tail(running, Stream::Stderr);
                row.out_tail = self.tail(running, Stream::Stdout);
            }
            if let Some(table) = &shared.table
                && let Err(error) = self.replace_with_table_row(table, &row, start, task, running)
            {
                self.batch.discard();
                shared.fail(error);
                return true;
            }
            row.kept = self.kept_segments();
            owed = shared.recorder.is_kept() && !row.kept.is_empty();
            self.write_row(start, task, row);
        }
        let marks = running.style.take();
        let marks = match shared.config.color_failed && looks_failed(outcome, cause) {
            true => LineStyle::failed(marks),
            false => marks,
        };
        self.push_finished(task.number, marks, owed);
        cut
    }
}

/// Whether the output of a job that ended so is coloured as that of one that failed: GNU parallel
/// leaves out those that others ended by a signal.
fn looks_failed(outcome: &Outcome, cause: EndCause) -> bool {
    match outcome.exit.status {
        ExitStatus::Exited(code) => code != 0,
        _ => matches!(cause, EndCause::TimedOut(_)),
    }
}
