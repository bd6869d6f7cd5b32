//! The end of a job: what it left is made safe, then recorded, then shown.

use std::io::{BufWriter, Write};

use minder::exec::{Start, Verdict};
use minder::{Outcome, Status, Stream};

use super::super::book::command_of;
use super::super::input::Task;
use super::super::job::{Running, is_cut, refused};
use super::super::lines::Pen;
use super::super::output::{Own, Place};
use super::super::results::table::{Output, Table};
use super::super::results::{Results, cannot_write};
use super::super::tags::Marks;
use super::Hand;
use super::hear::end_lines;
use super::launch::job;
use crate::plan::View;
use crate::report::{Cause, reason, say};
use minder_record::event::{JobFinished, JournalEvent, OsBytes, OutputSegment, TAIL_MAX};
use minder_record::{codec, joblog};

/// From this size on a row is made in a file.
const ROW_MAX: u64 = 256 << 10;

impl Hand<'_> {
    /// Counts a job that was not started, and says why.
    pub(super) fn give_up(&mut self, start: Start, task: &Task, name: &str, why: &str) -> Verdict {
        self.shared.stage.screen.aside(|| say(&format!("cannot run `{name}`: {why}")));
        self.tally.add_refused(name, why);
        let mut ended = refused(task.number, self.args(task), why);
        let mut owed = false;
        if let Some(table) = &self.shared.table {
            if let Err(error) = self.tabulate(table, &ended, start, task, &mut Running::new(task.number)) {
                self.batch.discard();
                self.shared.fail(error);
                return Verdict::FailedForGood;
            }
            ended.kept = self.kept();
            owed = self.shared.book.is_kept();
        }
        self.write_row(start, task, ended);
        self.end_job(task.number, None, owed);
        Verdict::FailedForGood
    }

    pub(super) fn args(&self, task: &Task) -> Vec<OsBytes> {
        match self.shared.plan.record.redact {
            false => task.columns().iter().map(|value| OsBytes::from(value.as_os_str())).collect(),
            true => Vec::new(),
        }
    }

    pub(super) fn write_row(&mut self, start: Start, task: &Task, ended: JobFinished) {
        let shared = self.shared;
        if shared.book.has_joblog() {
            let command = command_of(&self.args(task), task.number, start.slot, shared.plan);
            joblog::encode(&ended, command.as_bytes(), &mut self.joblog);
        }
        shared.count_row(ended.succeeded());
        if shared.book.is_kept() {
            codec::encode(&JournalEvent::JobFinished(ended), &mut self.rows);
        }
    }

    /// Makes safe what the jobs of the batch wrote, then their rows, and shows what may be shown.
    pub(super) fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        if let Err(error) = self.try_flush() {
            // What has no row now runs again, and the places in rows that come count from here.
            self.rows.clear();
            self.joblog.clear();
            self.batch.forget();
            self.shared.fail(error);
        }
    }

    pub(super) fn try_flush(&mut self) -> Result<(), String> {
        let shared = self.shared;
        let unsafe_output = |error: std::io::Error| shared.cannot_keep(&error);
        if shared.book.is_kept() {
            self.batch.save().map_err(unsafe_output)?;
        }
        let (rows, joblog) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.joblog));
        // In this order: a row that a kill kept out of the joblog is put there when the run is taken up
        // again.
        shared.book.append(&rows)?;
        shared.book.append_joblog(&joblog)?;
        (self.rows, self.joblog) = (rows, joblog);
        self.rows.clear();
        self.joblog.clear();
        let mut shown = shared.stage.submit(&mut self.batch, self.slots).map_err(unsafe_output)?;
        let is_free = loop {
            let (more, ring) = (shown.more, shown.ring);
            let is_free = shared.note(shown)?;
            if ring {
                shared.crew.wake();
            }
            if !more || shared.stage.screen.is_broken() {
                break is_free;
            }
            shown = shared.stage.show_more(false, self.slots);
        };
        if is_free && !shared.stage.screen.is_broken() {
            self.batch.store().empty();
        }
        if shared.stage.screen.is_broken() {
            shared.crew.cancel();
        }
        Ok(())
    }

    /// Gathers what a job left when it ended.
    pub(super) fn gather(&mut self, running: &mut Running) -> Result<(), String> {
        for (stream, mut own) in [Stream::Stdout, Stream::Stderr].into_iter().zip(running.spool.drain(..)) {
            let len = own.file.as_ref().map_or(Ok(0), |file| file.metadata().map(|about| about.len()));
            let len = len.map_err(|error| format!("cannot read the output of a job: {}", reason(&error)))?;
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
                running.tails[stream as usize].push(&last_of(file, end));
            }
        }
        if let Some(line) = results.line() {
            batch.push(Stream::Stdout, &line);
        }
        Ok(())
    }

    /// Where lies what waits of the job that ends.
    fn kept(&self) -> Vec<OutputSegment> {
        let batch = &self.batch;
        let mut kept = Vec::new();
        for piece in batch.pieces() {
            let stream = piece.stream as u8 + 1;
            match &piece.place {
                Place::Batch(range) => kept.extend(batch.place(range).map(|(file, at)| OutputSegment {
                    stream,
                    file: file.to_owned(),
                    at,
                    len: range.len() as u64,
                })),
                Place::Own(own) => {
                    let name = own.path.as_deref().and_then(|path| path.file_name());
                    kept.extend(name.map(|name| OutputSegment {
                        stream,
                        file: name.to_string_lossy().into_owned(),
                        at: own.range.start,
                        len: own.range.end - own.range.start,
                    }));
                }
                Place::Shared(..) => (),
            }
        }
        kept
    }

    /// Puts a row in the place of what a job wrote.
    fn tabulate(
        &mut self,
        table: &Table,
        ended: &JobFinished,
        start: Start,
        task: &Task,
        running: &mut Running,
    ) -> Result<(), String> {
        let shared = self.shared;
        let command = shared.plan.template.display(&job(shared, task, start));
        table.begin(task.columns().len(), |line| shared.stage.show(Stream::Stdout, line, None));
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
        written.map_err(|error| shared.cannot_keep(&error))?;
        self.batch.discard();
        self.batch.push(Stream::Stdout, &row);
        if let Some(mut own) = running.spool.pop() {
            let len = own.file.as_ref().map_or(Ok(0), |file| file.metadata().map(|about| about.len()));
            own.range = 0..len.map_err(|error| shared.cannot_keep(&error))?;
            self.batch.push_file(Stream::Stdout, own);
        }
        Ok(())
    }

    /// The last of what a failed job wrote to one of its outputs.
    pub(super) fn tail(&self, running: &mut Running, stream: Stream) -> Option<OsBytes> {
        // What is shown in its place is not the job's.
        let is_own = running.results.as_ref().is_none_or(|results| results.shows(stream));
        let tail = &mut running.tails[stream as usize];
        for piece in self.batch.pieces().iter().filter(|piece| is_own && piece.stream == stream) {
            match &piece.place {
                Place::Batch(range) => tail.push(self.batch.slice(range.clone())),
                Place::Own(Own { file: Some(file), range, .. }) => tail.push(&last_of(file, range.end)),
                _ => (),
            }
        }
        let tail = tail.take();
        // What stands before its output is not the job's either.
        let wrote = usize::try_from(running.wrote[stream as usize]).unwrap_or(usize::MAX);
        let tail = &tail[tail.len().saturating_sub(wrote)..];
        (!tail.is_empty()).then(|| OsBytes::from(tail))
    }

    fn end_job(&mut self, job: u64, marks: Option<Marks>, owed: bool) {
        self.shared.stage.gather();
        self.batch.end_job(job, marks, owed);
    }

    /// Drops what an attempt left after which the job runs again.
    pub(super) fn forget(&mut self, running: &mut Running, task: &Task) {
        end_lines(self.shared, running);
        let Running { number, lines, marks, markers, .. } = &mut *running;
        let (stage, marks) = (self.shared.stage, marks.as_ref());
        if lines.give_back(&mut Pen { stage, job: *number, line_max: self.line_max, marks, markers }) {
            self.shared.crew.wake();
        }
        running.spool.drain(..).for_each(Own::remove);
        running.results.take().into_iter().for_each(Results::discard);
        if let (Some(pipe), Some(meal)) = (self.shared.input.pipe(), running.meal.take()) {
            *task.part() = meal.again(pipe);
        }
        self.batch.discard();
    }

    /// Records and shows a job that is over. Says whether our order cut it off: then it has no row.
    pub(super) fn conclude(
        &mut self,
        start: Start,
        task: &Task,
        running: &mut Running,
        outcome: &Outcome,
        cause: Cause,
    ) -> bool {
        let shared = self.shared;
        end_lines(shared, running);
        // What it wrote was seen as it came.
        let passed = running.live || shared.plan.view == View::Lines;
        if running.torn {
            running.results.take().into_iter().for_each(Results::discard);
            self.batch.discard();
            // Behind a piece that was seen nothing else is: it would go on in the middle of a line.
            if !(passed && shared.stage.has(task.number)) {
                self.end_job(task.number, None, false);
            }
            return true;
        }
        let head = std::mem::take(&mut running.head);
        self.batch.push(Stream::Stdout, &head);
        if let Err(error) = self.gather(running) {
            // No other job's row may speak of it.
            self.batch.discard();
            shared.fail(error);
            return true;
        }
        // What was cut off by our order runs again, and has no row. So does what was to be seen as it came
        // and perhaps was not.
        let unseen = passed && running.wrote != [0; 2] && shared.stage.screen.is_broken();
        // One whose end was held back ended before any order to end. A halt that it brought about is none
        // for itself.
        let ordered = if running.held { shared.is_told_to_end() } else { shared.crew.is_cancelled() };
        let cut = unseen || is_cut(outcome, ordered);
        if cut && shared.table.is_some() {
            self.batch.discard();
        }
        let mut owed = false;
        if !cut && (shared.book.is_kept() || shared.book.has_joblog() || shared.table.is_some()) {
            let mut row = running.row(self.args(task), outcome.exit, Vec::new());
            row.leaked = outcome.leaked;
            row.timed_out = matches!(cause, Cause::TimedOut(_)) && !row.succeeded();
            row.attempts = Some(start.attempt).filter(|attempt| *attempt > 1);
            row.cause = cause.word().filter(|_| !row.succeeded()).map(str::to_owned);
            // Messages name arguments.
            if !row.succeeded() && !shared.plan.record.redact {
                row.tail = self.tail(running, Stream::Stderr);
                row.out_tail = self.tail(running, Stream::Stdout);
            }
            if let Some(table) = &shared.table
                && let Err(error) = self.tabulate(table, &row, start, task, running)
            {
                self.batch.discard();
                shared.fail(error);
                return true;
            }
            row.kept = self.kept();
            owed = shared.book.is_kept() && !row.kept.is_empty();
            self.write_row(start, task, row);
        }
        let marks = running.marks.take();
        let marks = match shared.plan.colour_failed && looks_failed(outcome, cause) {
            true => Marks::failed(marks),
            false => marks,
        };
        self.end_job(task.number, marks, owed);
        cut
    }
}

/// Whether the output of a job that ended so is coloured as that of one that failed: GNU parallel
/// leaves out those that others ended by a signal.
fn looks_failed(outcome: &Outcome, cause: Cause) -> bool {
    match outcome.exit.status {
        Status::Exited(code) => code != 0,
        _ => matches!(cause, Cause::TimedOut(_)),
    }
}

/// The last bytes of a file, up to `end`; nothing if it cannot be read.
pub(super) fn last_of(file: &std::fs::File, end: u64) -> Vec<u8> {
    let mut tail = vec![0; TAIL_MAX.min(usize::try_from(end).unwrap_or(TAIL_MAX))];
    let at = end - tail.len() as u64;
    let read = minder_os::files::read_at(file, &mut tail, at).unwrap_or(0);
    tail.truncate(read);
    tail
}
