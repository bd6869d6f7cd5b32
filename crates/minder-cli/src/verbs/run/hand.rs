//! One loop's part: from an argument to a command, from an event to the screen and the record, from an end to the tally.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use minder::exec::{Crew, Launch, Outputs, Start, Supply, Verdict, Worker};
use minder::{
    ChildSet, Command, Delivery, Error, ErrorKind, Event, Group, Kill, Outcome, Size, SpawnOptions, Spilled,
    Status, Stdio, Stream, Token, WhenFull,
};

use super::batch::Batch;
use super::book::{Book, command_of, tag_of};
use super::input::{Input, Task, too_long};
use super::job::{Running, is_cut, refused};
use super::lines::{Pen, line_max};
use super::output::{Own, Place};
use super::results::Results;
use super::stage::{Shown, Stage};
use crate::input::Arguments;
use crate::journal::row::{Ended, Piece, Row, TAIL_MAX, Text};
use crate::journal::{joblog, line};
use crate::plan::{Plan, View};
use crate::report::{Tally, count, reason, say};
use crate::template::{self, Job};

/// How long a job that wants the terminal has to end.
const TERMINAL_GRACE: Duration = Duration::from_secs(1);
/// The size of a job's own terminal where ours has none.
const TERMINAL: Size = Size { rows: 24, columns: 80 };

/// What the loops and the main thread share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan,
    pub(super) degree: usize,
    pub(super) crew: &'a Arc<Crew<Task>>,
    pub(super) stage: &'a Stage,
    pub(super) input: &'a Input,
    pub(super) book: &'a Book,
    fatal: Mutex<Option<String>>,
    /// What an earlier attempt did not show is shown before the first job of any loop.
    first: Once,
    /// Jobs that have a row: those that failed, and those that did not.
    rows: [AtomicU64; 2],
}

impl<'a> Shared<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        degree: usize,
        crew: &'a Arc<Crew<Task>>,
        stage: &'a Stage,
        input: &'a Input,
        book: &'a Book,
    ) -> Self {
        let (fatal, first) = (Mutex::new(None), Once::new());
        Self { plan, degree, crew, stage, input, book, fatal, first, rows: Default::default() }
    }

    /// Ends the run with this message. The first one counts.
    pub(super) fn fail(&self, message: String) {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
        self.crew.kill();
    }

    /// Whether something of ours failed, and the jobs are killed for it.
    pub(super) fn has_failed(&self) -> bool {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What ended the run, if something did.
    pub(super) fn take_failure(&self) -> Option<String> {
        let fatal = self.fatal.lock().unwrap_or_else(PoisonError::into_inner).take();
        fatal.or_else(|| self.stage.screen.take_failure()).or_else(|| self.input.error())
    }

    fn count_row(&self, succeeded: bool) {
        self.rows[usize::from(succeeded)].fetch_add(1, Ordering::Relaxed);
    }

    /// How many jobs have a row in the record: how many failed, and how many did not.
    pub(super) fn rows(&self) -> [u64; 2] {
        [0, 1].map(|place: usize| self.rows[place].load(Ordering::Relaxed))
    }

    fn cannot_keep(&self, error: &std::io::Error) -> String {
        let folder = self.book.folder();
        let why = reason(error);
        format!(
            "cannot keep output in `{}`: {why} (--tmpdir or TMPDIR name another folder)",
            folder.display()
        )
    }

    /// Shows what waits when no job runs any more, be it out of order: the jobs before it were cut off.
    pub(super) fn show_rest(&self) {
        if !self.has_failed() && !self.stage.screen.is_broken() {
            self.show_more(true);
        }
    }

    fn show_more(&self, all: bool) {
        let mut more = true;
        while more && !self.stage.screen.is_broken() {
            let shown = self.stage.show_more(all, self.degree);
            more = shown.more;
            if let Err(error) = self.note(shown) {
                return self.fail(error);
            }
        }
    }

    /// Records what was shown. Says whether no output waits in any loop's file.
    fn note(&self, shown: Shown) -> Result<bool, String> {
        let jobs = shown.jobs.len();
        // What could not be shown stays owed.
        if !self.stage.screen.is_broken() {
            self.book.shown(shown.jobs)?;
            shown.files.into_iter().for_each(Own::remove);
        }
        Ok(self.stage.noted(jobs))
    }

    /// Runs one of `loops` loops to its end. `place` is its number.
    pub(super) fn work(&self, set: &mut ChildSet, place: usize, loops: usize) -> Tally {
        self.first.call_once(|| self.show_more(false));
        let mut store = self.book.store(place);
        // Before the first job, so that none is done in vain.
        if self.book.is_kept()
            && let Err(error) = store.append(&[], self.book.syncs())
        {
            self.fail(self.cannot_keep(&error));
        }
        let mut hand = Hand {
            shared: self,
            batch: Batch::new(store, self.book.syncs()),
            rows: Vec::new(),
            joblog: Vec::new(),
            tally: Tally::default(),
            running: Vec::new(),
            slots: self.degree.div_ceil(loops),
            line_max: line_max(self.plan.buffer, self.degree),
            spools: 0,
            rung: 0,
            place,
        };
        let _alarm = Alarm(self);
        // Its error was told to the hand.
        let _ = self.crew.drive(set, place, loops, &mut hand);
        hand.flush();
        hand.tally
    }
}

/// Ends the run if its loop panics: nobody else would go on with what it had.
struct Alarm<'a, 'b>(&'a Shared<'b>);

impl Drop for Alarm<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("a part of minder panicked; this is a defect of minder".to_owned());
        }
    }
}

/// One loop's worker.
struct Hand<'a> {
    shared: &'a Shared<'a>,
    batch: Batch,
    /// Rows of the jobs in the batch.
    rows: Vec<u8>,
    joblog: Vec<u8>,
    tally: Tally,
    /// By slot.
    running: Vec<Option<Running>>,
    slots: usize,
    line_max: usize,
    /// How many files were made for jobs to write to.
    spools: u64,
    /// How many jobs there had been when the other loop was last told that its job is the only one.
    rung: u64,
    place: usize,
}

impl Hand<'_> {
    fn name(&self, start: Start, task: &Task) -> String {
        match &task.item {
            Arguments::Columns(_) => shorten(&self.shared.plan.template.display(&job(task, start))),
            Arguments::TooLong(_) => format!("job {}", task.number),
        }
    }

    /// Counts a job that was not started, and says why.
    fn give_up(&mut self, start: Start, task: &Task, name: &str, why: &str) -> Verdict {
        self.shared.stage.screen.aside(|| say(&format!("cannot run `{name}`: {why}")));
        self.tally.add_refused(name, why);
        let ended = refused(task.number, self.args(task), why);
        self.write_row(start, task, ended);
        self.batch.end_job(task.number, None, false);
        Verdict::FailedForGood
    }

    fn args(&self, task: &Task) -> Vec<Text> {
        match self.shared.plan.record.redact {
            false => task.columns().iter().map(|value| Text::from(value.as_os_str())).collect(),
            true => Vec::new(),
        }
    }

    fn write_row(&mut self, start: Start, task: &Task, ended: Ended) {
        let shared = self.shared;
        if shared.book.has_joblog() {
            let command = command_of(&self.args(task), task.number, start.slot, shared.plan);
            joblog::encode(&ended, command.as_bytes(), &mut self.joblog);
        }
        shared.count_row(ended.succeeded());
        if shared.book.is_kept() {
            line::encode(&Row::Ended(ended), &mut self.rows);
        }
    }

    fn at(&mut self, start: Start) -> Option<&mut Running> {
        self.running.get_mut(start.slot as usize)?.as_mut()
    }

    /// Makes safe what the jobs of the batch wrote, then their rows, and shows what may be shown.
    fn flush(&mut self) {
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

    fn try_flush(&mut self) -> Result<(), String> {
        let shared = self.shared;
        let unsafe_output = |error: std::io::Error| shared.cannot_keep(&error);
        if shared.book.is_kept() {
            self.batch.save().map_err(unsafe_output)?;
        }
        let (rows, joblog) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.joblog));
        // In this order: a row that a kill kept out of the joblog is put there when the run is taken up again.
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

    /// Shows as it comes the job that has the stage, if it runs here.
    fn promote(&mut self, outputs: &mut Outputs<'_>) {
        let shared = self.shared;
        if !matches!(shared.plan.view, View::Grouped | View::Ordered) || shared.plan.spool {
            return;
        }
        // Pieces of what is being killed are not shown.
        if shared.crew.is_cancelled() {
            return;
        }
        let stage = shared.stage;
        let sole =
            (stage.is_free() && shared.input.is_over()).then(|| shared.crew.counts()).filter(|counts| {
                counts.running == 1 && counts.offered == 1 + counts.succeeded + counts.failed + counts.skipped
            });
        let mut is_here = false;
        for running in self.running.iter_mut().flatten().filter(|running| !running.live) {
            // Without a token it was put back, and is another loop's by now.
            let Some(token) = running.token else { continue };
            is_here = true;
            if stage.has(running.number) || (sole.is_some() && stage.claim(running.number)) {
                running.live = true;
                // It fails only for a child that is over, which is shown then anyway.
                let _ = outputs.go_live(token);
                forward(shared, running, token, outputs);
            }
        }
        // The other loop has it, and may sleep. Rung once, since it may hang in a write.
        if let Some(counts) = sole.filter(|_| !is_here)
            && std::mem::replace(&mut self.rung, counts.offered) != counts.offered
        {
            shared.crew.wake();
        }
    }

    /// Goes on with lines that had to wait.
    fn go_on(&mut self) {
        let shared = self.shared;
        let mut released = false;
        for running in self.running.iter_mut().flatten().filter(|running| running.lines.waits()) {
            let Running { number, lines, tag, taggers, .. } = running;
            let (stage, tag) = (shared.stage, tag.as_deref());
            released |= lines.go_on(&mut Pen { stage, job: *number, line_max: self.line_max, tag, taggers });
        }
        if released {
            shared.crew.wake();
        }
    }

    /// Takes bytes of a running job.
    fn heard(&mut self, start: Start, stream: Stream, chunk: minder::Chunk) {
        let (shared, line_max) = (self.shared, self.line_max);
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if running.torn {
            return;
        }
        running.count(stream, chunk.len() as u64);
        if let Some(results) = &mut running.results
            && let Err(error) = results.push(stream, &chunk)
        {
            return shared.fail(cannot_write(results.folder(), &error));
        }
        let lines = shared.plan.view == View::Lines;
        if stream == Stream::Stderr && (running.live || lines) {
            running.tail.push(&chunk);
        }
        let Running { number, lines: pen_lines, tag, taggers, live, .. } = running;
        if lines {
            let pen = &mut Pen { stage: shared.stage, job: *number, line_max, tag: tag.as_deref(), taggers };
            if pen_lines.push(stream, chunk, pen) {
                shared.crew.wake();
            }
        } else if *live {
            let tag = tag.as_deref().map(|tag| (tag, &mut taggers[stream as usize]));
            shared.stage.show(stream, &chunk, tag);
        } else {
            self.batch.push(stream, &chunk);
        }
    }

    /// Takes a file with output of a running job.
    fn heard_file(&mut self, start: Start, stream: Stream, spilled: Spilled) {
        let shared = self.shared;
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if running.torn {
            return Own::from(spilled).remove();
        }
        running.count(stream, spilled.len);
        if let Some(results) = &mut running.results {
            let end = spilled.start + spilled.len;
            if let Err(error) = results.push_file(stream, &spilled.file, spilled.start, end) {
                return shared.fail(cannot_write(results.folder(), &error));
            }
        }
        let Running { tag, taggers, live, tail, .. } = running;
        if *live {
            if stream == Stream::Stderr {
                tail.push(&last_of(&spilled.file, spilled.start + spilled.len));
            }
            let tag = tag.as_deref().map(|tag| (tag, &mut taggers[stream as usize]));
            shared.stage.show_file(stream, spilled, tag);
        } else {
            self.batch.push_file(stream, Own::from(spilled));
        }
    }

    /// Prepares what a job needs beside its command.
    fn prepare(
        &mut self,
        command: &mut Command,
        running: &mut Running,
        task: &Task,
    ) -> Result<SpawnOptions, String> {
        let plan = self.shared.plan;
        command.stdin(Stdio::Null).die_with_parent(true);
        if let Some(folder) = &plan.results {
            let made = Results::create(folder, task.columns(), running.number);
            running.results = Some(made.map_err(|error| cannot_write(folder, &error))?);
        }
        let options = SpawnOptions::default();
        if plan.pty {
            command.group(Group::Terminal(minder::os::terminal_size().unwrap_or(TERMINAL)));
        } else if plan.spool {
            let files = [self.spool(running)?, self.spool(running)?];
            let [out, err] = files.map(Stdio::from);
            command.stdout(out).stderr(err);
            return Ok(options);
        } else if plan.view == View::Straight {
            command.stdout(Stdio::Inherit).stderr(Stdio::Inherit);
            return Ok(options);
        } else {
            command.stdout(Stdio::Piped).stderr(Stdio::Piped);
        }
        running.live = match plan.view {
            View::Ordered => self.shared.stage.start(running.number),
            View::Grouped => {
                let alone = self.shared.degree == 1 || self.shared.input.total() == Some(1);
                alone && self.shared.stage.claim(running.number)
            }
            View::Lines | View::Straight => false,
        };
        Ok(match running.live || plan.view == View::Lines {
            true => options.delivery(Delivery::Live).when_full(WhenFull::Hold),
            false => options.delivery(Delivery::AtEnd).when_full(WhenFull::Spill).files(true),
        })
    }

    /// A file for a job to write to.
    fn spool(&mut self, running: &mut Running) -> Result<std::fs::File, String> {
        let shared = self.shared;
        let folder = shared.book.folder();
        let made = match shared.book.name("spill", self.place) {
            None => minder::os::nameless_file(folder).map(|file| (file, None)),
            Some(name) => {
                self.spools += 1;
                let path = folder.join(format!("{name}-job{}", self.spools));
                minder::os::private_file(&path).map(|file| (file, Some(path)))
            }
        };
        let made = made
            .and_then(|(file, path)| Ok((file.try_clone()?, Own { file: Some(file), path, range: 0..0 })));
        let (file, own) = made.map_err(|error| {
            format!("cannot make a file for output in `{}`: {}", folder.display(), reason(&error))
        })?;
        running.spool.push(own);
        Ok(file)
    }

    /// Gathers what a job left when it ended, and says where it lies.
    fn gather(&mut self, running: &mut Running) -> Result<Vec<Piece>, String> {
        for (stream, mut own) in [Stream::Stdout, Stream::Stderr].into_iter().zip(running.spool.drain(..)) {
            let len = own.file.as_ref().map_or(Ok(0), |file| file.metadata().map(|about| about.len()));
            let len = len.map_err(|error| format!("cannot read the output of a job: {}", reason(&error)))?;
            running.wrote[stream as usize] = len;
            own.range = 0..len;
            if let (Some(results), Some(file)) = (&mut running.results, &own.file) {
                let pushed = results.push_file(stream, file, 0, len);
                pushed.map_err(|error| cannot_write(results.folder(), &error))?;
            }
            match len {
                0 => own.remove(),
                _ => self.batch.push_file(stream, own),
            }
        }
        let batch = &mut self.batch;
        running.lines.rest(|stream, bytes| batch.push(stream, bytes));
        let mut kept = Vec::new();
        for piece in batch.pieces() {
            let stream = piece.stream as u8 + 1;
            match &piece.place {
                Place::Batch(range) => kept.extend(batch.place(range).map(|(file, at)| Piece {
                    stream,
                    file: file.to_owned(),
                    at,
                    len: range.len() as u64,
                })),
                Place::Own(own) => {
                    let name = own.path.as_deref().and_then(|path| path.file_name());
                    kept.extend(name.map(|name| Piece {
                        stream,
                        file: name.to_string_lossy().into_owned(),
                        at: own.range.start,
                        len: own.range.end - own.range.start,
                    }));
                }
                Place::Shared(..) => (),
            }
        }
        Ok(kept)
    }

    /// The last of what a failed job wrote to its standard error.
    fn tail(&self, running: &mut Running) -> Option<Text> {
        for piece in self.batch.pieces().iter().filter(|piece| piece.stream == Stream::Stderr) {
            match &piece.place {
                Place::Batch(range) => running.tail.push(self.batch.slice(range.clone())),
                Place::Own(Own { file: Some(file), range, .. }) => {
                    running.tail.push(&last_of(file, range.end))
                }
                _ => (),
            }
        }
        let tail = running.tail.take();
        (!tail.is_empty()).then(|| Text::from(tail.as_slice()))
    }

    /// Records and shows a job that is over.
    fn conclude(&mut self, start: Start, task: &Task, running: &mut Running, outcome: &Outcome) {
        let shared = self.shared;
        if running.torn {
            self.batch.discard();
            return self.batch.end_job(task.number, None, false);
        }
        let kept = match self.gather(running) {
            Ok(kept) => kept,
            Err(error) => return shared.fail(error),
        };
        // What was cut off by our order runs again, and has no row. So does what was to be seen as it came and perhaps was
        // not.
        let passed = running.live || shared.plan.view == View::Lines;
        let unseen = passed && running.wrote != [0; 2] && shared.stage.screen.is_broken();
        let cut = unseen || is_cut(outcome, shared.crew.is_cancelled());
        let owed = shared.book.is_kept() && !kept.is_empty() && !cut;
        if !cut && (shared.book.is_kept() || shared.book.has_joblog()) {
            let mut row = running.row(self.args(task), outcome.exit, kept);
            row.leaked = outcome.leaked;
            // Messages name arguments.
            if !row.succeeded() && !shared.plan.record.redact {
                row.tail = self.tail(running);
            }
            self.write_row(start, task, row);
        }
        self.batch.end_job(task.number, running.tag.take(), owed);
    }
}

/// Lets the bytes of a job that has the stage pass without us, where nothing is to be done to them.
fn forward(shared: &Shared<'_>, running: &Running, token: Token, outputs: &mut Outputs<'_>) {
    if running.tag.is_some() || running.results.is_some() || shared.plan.pty {
        return;
    }
    if let Some(file) = shared.stage.open_to_forward() {
        // Where it is refused, the bytes come to us.
        let _ = outputs.forward(token, Stream::Stdout, &file);
    }
}

/// The last bytes of a file, up to `end`; nothing if it cannot be read.
fn last_of(file: &std::fs::File, end: u64) -> Vec<u8> {
    let mut tail = vec![0; TAIL_MAX.min(usize::try_from(end).unwrap_or(TAIL_MAX))];
    let at = end - tail.len() as u64;
    let read = minder::os::read_at(file, &mut tail, at).unwrap_or(0);
    tail.truncate(read);
    tail
}

impl Worker for Hand<'_> {
    type Job = Task;

    fn supply(&mut self) -> Supply<Task> {
        if self.shared.stage.is_crowded() {
            return Supply::Later;
        }
        self.shared.input.supply()
    }

    fn launch(&mut self, start: Start, task: &Task) -> Result<Launch, Verdict> {
        let plan = self.shared.plan;
        if let Arguments::TooLong(len) = &task.item {
            return Err(self.give_up(start, task, &format!("job {}", task.number), &too_long(*len)));
        }
        let argv = match plan.template.argv(&job(task, start)) {
            Ok(argv) => argv,
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
        let mut words = argv.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        let mut running = Running::new(task.number);
        running.tag = plan.tag.as_ref().map(|tag| tag_of(tag, &job(task, start)));
        let options = match self.prepare(&mut command, &mut running, task) {
            Ok(options) => options,
            Err(error) => {
                self.shared.fail(error);
                return Err(Verdict::FailedForGood);
            }
        };
        if plan.verbose {
            let line = plan.template.display(&job(task, start));
            self.shared.stage.screen.aside(|| crate::report::say_command(&line));
        }
        let slot = start.slot as usize;
        if self.running.len() <= slot {
            self.running.resize_with(slot + 1, || None);
        }
        self.running[slot] = Some(running);
        Ok(Launch { command, options })
    }

    fn started(&mut self, start: Start, _task: &Task, token: Token, outputs: &mut Outputs<'_>) {
        let shared = self.shared;
        let Some(running) = self.at(start) else { return };
        running.token = Some(token);
        if running.live {
            forward(shared, running, token, outputs);
        }
    }

    fn event(&mut self, start: Start, task: &Task, event: Event, _outputs: &mut Outputs<'_>) -> Option<Kill> {
        match event {
            Event::Output(_, stream, chunk) => self.heard(start, stream, chunk),
            Event::Spilled(_, stream, spilled) => self.heard_file(start, stream, spilled),
            Event::Forwarded(_, stream, bytes) => {
                self.at(start).into_iter().for_each(|running| running.count(stream, bytes));
            }
            Event::Exited(_, exit)
                if matches!(exit.status, Status::Signaled { .. }) && self.shared.has_failed() =>
            {
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
        let Some(mut running) = self.running.get_mut(start.slot as usize).and_then(Option::take) else {
            return Verdict::FailedForGood;
        };
        self.conclude(start, task, &mut running, &outcome);
        let mut tally = std::mem::take(&mut self.tally);
        tally.add(&outcome, running.wall(), || self.name(start, task));
        self.tally = tally;
        if self.batch.is_full(self.slots) {
            self.flush();
        }
        if outcome.exit.status.success() { Verdict::Succeeded } else { Verdict::Failed }
    }

    fn refused(&mut self, start: Start, task: &Task, error: Error) -> Verdict {
        if let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::take) {
            running.spool.into_iter().for_each(Own::remove);
        }
        let why = error.reason();
        let hopeless = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
        if hopeless && self.shared.plan.template.has_fixed_program() {
            // The same for every job: said once, and no other job is tried.
            let ran = self.shared.crew.counts();
            let jobs = match (ran.succeeded + ran.failed, self.shared.input.total()) {
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
                format!("{error} (--tmpdir or TMPDIR name another folder for output that does not fit into memory)")
            }
            _ => error.to_string(),
        });
    }

    fn idle(&mut self, outputs: &mut Outputs<'_>) {
        self.flush();
        if self.shared.plan.view == View::Lines {
            self.go_on();
            if self.shared.stage.is_due() {
                self.shared.show_more(false);
            }
        }
        self.promote(outputs);
        if self.shared.stage.screen.is_broken() {
            self.shared.crew.cancel();
        }
    }
}

fn cannot_write(results: &Path, error: &std::io::Error) -> String {
    format!("cannot write results in `{}`: {}", results.display(), reason(error))
}

/// What a job puts into the template.
fn job<'a>(task: &'a Task, start: Start) -> Job<'a> {
    Job { columns: task.columns(), number: task.number, slot: start.slot }
}

/// A command line for a message: its beginning, if it is long.
fn shorten(line: &str) -> String {
    const SHOWN_MAX: usize = 120;
    match line.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
