//! What the loops and the main thread share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use minder::ChildSet;
use minder::exec::Crew;

use super::batch::Batch;
use super::book::Book;
use super::hand::Hand;
use super::input::{Input, Task};
use super::output::Own;
use super::stage::{Shown, Stage};
use crate::plan::Plan;
use crate::report::{Tally, reason};

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
