//! What the loops and the main thread share.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use minder::exec::{Crew, Start};
use minder::{ChildSet, Status};
use minder_os::system_paths::TEMP_DIR_VARIABLE;

use super::batch::Batch;
use super::book::Book;
use super::gates::Admission;
use super::hand::{Hand, shorten};
use super::input::{Input, Task};
use super::output::Own;
use super::results::table::Table;
use super::roster::{Entry, Roster};
use super::stage::{Lost, Shown, Stage};
use crate::plan::Plan;
use crate::report::{Tally, explain, reason, say};
use minder_template::Job;

/// What the loops and the main thread share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan,
    pub(super) degree: usize,
    /// The most jobs that there are descriptors for.
    pub(super) most: usize,
    pub(super) crew: &'a Arc<Crew<Task>>,
    pub(super) stage: &'a Stage,
    pub(super) input: &'a Input,
    pub(super) book: &'a Book,
    pub(super) roster: &'a Roster,
    pub(super) admission: Admission,
    pub(super) table: Option<Table>,
    fatal: Mutex<Option<String>>,
    /// What an earlier attempt did not show is shown before the first job of any loop.
    first: Once,
    /// Jobs that have a row: those that failed, and those that did not.
    rows: [AtomicU64; 2],
    /// How the first job that failed ended, as a shell says it; 0: none has.
    failure: AtomicU8,
    /// Whether a signal told the run to end, or all guardians are dead.
    told_to_end: Arc<AtomicBool>,
    /// See [`Self::has_lost`].
    has_lost: AtomicBool,
}

/// What it is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) degree: usize,
    pub(super) most: usize,
    pub(super) crew: &'a Arc<Crew<Task>>,
    pub(super) stage: &'a Stage,
    pub(super) input: &'a Input,
    pub(super) book: &'a Book,
    pub(super) roster: &'a Roster,
}

impl<'a> Shared<'a> {
    pub(super) fn new(plan: &'a Plan, parts: Parts<'a>, admission: Admission, table: Option<Table>) -> Self {
        let Parts { degree, most, crew, stage, input, book, roster } = parts;
        Self {
            plan,
            degree,
            most,
            crew,
            stage,
            input,
            book,
            roster,
            admission,
            table,
            fatal: Mutex::new(None),
            first: Once::new(),
            rows: Default::default(),
            failure: AtomicU8::new(0),
            told_to_end: Arc::default(),
            has_lost: AtomicBool::new(false),
        }
    }

    /// Whether a failure of this attempt is the job's last word.
    pub(super) fn is_last(&self, start: Start) -> bool {
        self.plan.control.attempts == 1 || self.crew.is_last_attempt(start)
    }

    /// What a running job is called.
    pub(super) fn name_of(&self, number: u64, entry: &Entry) -> String {
        let total = self.input.total();
        let job = Job { columns: &entry.columns, number, slot: entry.slot, total, ..Job::default() };
        shorten(&self.plan.template.display(&job))
    }

    /// Runs as many jobs at once as the file behind `-j` says now.
    pub(super) fn follow_slots(&self) {
        match self.plan.slots.now() {
            Ok(degree) => self.crew.set_degree(degree.unwrap_or(self.most).min(self.most)),
            Err(error) => self.stage.screen.aside(|| say(&explain(&error))),
        }
    }

    /// Notes how a job failed.
    pub(super) fn note_failure(&self, status: Status) {
        let status = match status {
            Status::Exited(code) => u8::try_from(code).unwrap_or(1),
            Status::Signaled { signal, .. } => u8::try_from(signal).unwrap_or(0) | 0x80,
            _ => 1,
        };
        let _ = self.failure.compare_exchange(0, status, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// How the first job that failed ended, as a shell says it.
    pub(super) fn first_failure(&self) -> Option<u8> {
        Some(self.failure.load(Ordering::Relaxed)).filter(|status| *status > 0)
    }

    /// What is set when the run is told to end: jobs that die around that moment were cut off with
    /// it.
    pub(super) fn told_to_end(&self) -> &Arc<AtomicBool> {
        &self.told_to_end
    }

    pub(super) fn is_told_to_end(&self) -> bool {
        self.told_to_end.load(Ordering::SeqCst)
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

    pub(super) fn count_row(&self, succeeded: bool) {
        self.rows[usize::from(succeeded)].fetch_add(1, Ordering::Relaxed);
    }

    /// How many jobs have a row in the record: how many failed, and how many did not.
    pub(super) fn rows(&self) -> [u64; 2] {
        [0, 1].map(|place: usize| self.rows[place].load(Ordering::Relaxed))
    }

    pub(super) fn cannot_keep(&self, error: &std::io::Error) -> String {
        let folder = self.book.folder();
        let why = reason(error);
        format!(
            "cannot keep output in `{}`: {why} (--tmpdir or {TEMP_DIR_VARIABLE} name another folder)",
            folder.display()
        )
    }

    /// Shows what waits when no job runs any more, be it out of order: the jobs before it were cut
    /// off.
    pub(super) fn show_rest(&self) {
        if !self.has_failed() && !self.stage.screen.is_broken() {
            self.show_more(true);
        }
    }

    pub(super) fn show_more(&self, all: bool) {
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
    pub(super) fn note(&self, shown: Shown) -> Result<bool, String> {
        let jobs = shown.jobs.len();
        // What could not be shown stays owed.
        if !self.stage.screen.is_broken() {
            self.book.shown(shown.jobs)?;
            self.lose(&shown.lost)?;
            shown.files.into_iter().for_each(Own::remove);
        }
        Ok(self.stage.noted(jobs))
    }

    /// Says and records which output of earlier attempts could not be read: those jobs run again.
    fn lose(&self, lost: &[Lost]) -> Result<(), String> {
        for Lost { job, error, runs } in lost {
            let why = reason(error);
            let next = if *runs { "" } else { "; it runs when the run is resumed once more" };
            self.stage
                .screen
                .aside(|| say(&format!("cannot read the kept output of job {job}: {why}{next}")));
            if !runs {
                self.has_lost.store(true, Ordering::Relaxed);
            }
        }
        self.book.lost(lost.iter().map(|lost| lost.job).collect())
    }

    /// Whether output of earlier attempts could not be read when it was too late to run its job
    /// again.
    pub(super) fn has_lost(&self) -> bool {
        self.has_lost.load(Ordering::Relaxed)
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
        let mut hand = Hand::new(self, Batch::new(store, self.book.syncs()), place, loops);
        let _alarm = Alarm(self);
        // Its error was told to the hand.
        let _ = self.crew.drive(set, place, loops, &mut hand);
        hand.finish()
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
