//! What the loops and the main thread share.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use minder::jobs::{Attempt, JobPool};
use minder::{ChildSet, ExitStatus};
use minder_os::system_paths::TEMP_DIR_VARIABLE;

use super::batch::OutputBatch;
use super::book::RunRecorder;
use super::gates::AdmissionController;
use super::hand::{RunWorker, shorten};
use super::input::{JobQueue, Task};
use super::output::JobFile;
use super::results::table::ResultsTable;
use super::roster::{JobEntry, JobTable};
use super::stage::{LostOutput, OutputSequencer, ShowResult};
use crate::plan::RunConfig;
use crate::report::{RunStats, format_error, message, os_error_text};
use minder_template::Job;

/// What the loops and the main thread share.
#[derive(Debug)]
pub(super) struct RunContext<'a> {
    pub(super) config: &'a RunConfig,
    pub(super) slots: usize,
    /// The most jobs that there are descriptors for.
    pub(super) max_slots: usize,
    pub(super) pool: &'a Arc<JobPool<Task>>,
    pub(super) sequencer: &'a OutputSequencer,
    pub(super) queue: &'a JobQueue,
    pub(super) recorder: &'a RunRecorder,
    pub(super) job_table: &'a JobTable,
    pub(super) admission: AdmissionController,
    pub(super) table: Option<ResultsTable>,
    fatal_error: Mutex<Option<String>>,
    /// What an earlier attempt did not show is shown before the first job of any loop.
    shown_earlier: Once,
    /// Jobs that have a row: those that failed, and those that did not.
    rows: [AtomicU64; 2],
    /// How the first job that failed ended, as a shell says it; 0: none has.
    first_failure: AtomicU8,
    /// Whether a signal told the run to end, or all guardians are dead.
    shutdown_requested: Arc<AtomicBool>,
    /// See [`Self::has_lost`].
    output_lost: AtomicBool,
}

/// What it is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContextParts<'a> {
    pub(super) degree: usize,
    pub(super) most: usize,
    pub(super) crew: &'a Arc<JobPool<Task>>,
    pub(super) stage: &'a OutputSequencer,
    pub(super) input: &'a JobQueue,
    pub(super) book: &'a RunRecorder,
    pub(super) roster: &'a JobTable,
}

impl<'a> RunContext<'a> {
    pub(super) fn new(
        config: &'a RunConfig,
        parts: ContextParts<'a>,
        admission: AdmissionController,
        table: Option<ResultsTable>,
    ) -> Self {
        let ContextParts {
            degree: slots,
            most: max_slots,
            crew: pool,
            stage: sequencer,
            input: queue,
            book: recorder,
            roster: job_table,
        } = parts;
        Self {
            config,
            slots,
            max_slots,
            pool,
            sequencer,
            queue,
            recorder,
            job_table,
            admission,
            table,
            fatal_error: Mutex::new(None),
            shown_earlier: Once::new(),
            rows: Default::default(),
            first_failure: AtomicU8::new(0),
            shutdown_requested: Arc::default(),
            output_lost: AtomicBool::new(false),
        }
    }

    /// Whether a failure of this attempt is the job's last word.
    pub(super) fn is_last_attempt(&self, start: Attempt) -> bool {
        self.config.control.attempts == 1 || self.pool.is_last_attempt(start)
    }

    /// What a running job is called.
    pub(super) fn job_name(&self, number: u64, entry: &JobEntry) -> String {
        let total = self.queue.total();
        let job = Job { columns: &entry.columns, number, slot: entry.slot, total, ..Job::default() };
        shorten(&self.config.template.display(&job))
    }

    /// Runs as many jobs at once as the file behind `-j` says now.
    pub(super) fn reload_slots(&self) {
        match self.config.slots.now() {
            Ok(degree) => self.pool.set_max_running(degree.unwrap_or(self.max_slots).min(self.max_slots)),
            Err(error) => self.sequencer.stdio.suspend_progress(|| message(&format_error(&error))),
        }
    }

    /// Notes how a job failed.
    pub(super) fn note_failure(&self, status: ExitStatus) {
        let status = match status {
            ExitStatus::Exited(code) => u8::try_from(code).unwrap_or(1),
            ExitStatus::Signaled { signal, .. } => u8::try_from(signal).unwrap_or(0) | 0x80,
            _ => 1,
        };
        let _ = self.first_failure.compare_exchange(0, status, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// How the first job that failed ended, as a shell says it.
    pub(super) fn first_failure(&self) -> Option<u8> {
        Some(self.first_failure.load(Ordering::Relaxed)).filter(|status| *status > 0)
    }

    /// What is set when the run is told to end: jobs that die around that moment were cut off with
    /// it.
    pub(super) fn shutdown_flag(&self) -> &Arc<AtomicBool> {
        &self.shutdown_requested
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutdown_requested.load(Ordering::SeqCst)
    }

    /// Ends the run with this message. The first one counts.
    pub(super) fn fail(&self, message: String) {
        self.fatal_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
        self.pool.kill();
    }

    /// Whether something of ours failed, and the jobs are killed for it.
    pub(super) fn has_failed(&self) -> bool {
        self.fatal_error.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What ended the run, if something did.
    pub(super) fn take_failure(&self) -> Option<String> {
        let fatal = self.fatal_error.lock().unwrap_or_else(PoisonError::into_inner).take();
        fatal.or_else(|| self.sequencer.stdio.take_failure()).or_else(|| self.queue.error())
    }

    pub(super) fn count_row(&self, succeeded: bool) {
        self.rows[usize::from(succeeded)].fetch_add(1, Ordering::Relaxed);
    }

    /// How many jobs have a row in the record: how many failed, and how many did not.
    pub(super) fn rows(&self) -> [u64; 2] {
        [0, 1].map(|place: usize| self.rows[place].load(Ordering::Relaxed))
    }

    pub(super) fn cannot_keep(&self, error: &std::io::Error) -> String {
        let folder = self.recorder.folder();
        let why = os_error_text(error);
        format!(
            "cannot keep output in `{}`: {why} (--tmpdir or {TEMP_DIR_VARIABLE} name another folder)",
            folder.display()
        )
    }

    /// Shows what waits when no job runs any more, be it out of order: the jobs before it were cut
    /// off.
    pub(super) fn show_rest(&self) {
        if !self.has_failed() && !self.sequencer.stdio.is_broken() {
            self.show_more(true);
        }
    }

    pub(super) fn show_more(&self, all: bool) {
        let mut more = true;
        while more && !self.sequencer.stdio.is_broken() {
            let shown = self.sequencer.show_more(all, self.slots);
            more = shown.more;
            if let Err(error) = self.record_shown(shown) {
                return self.fail(error);
            }
        }
    }

    /// Records what was shown. Says whether no output waits in any loop's file.
    pub(super) fn record_shown(&self, shown: ShowResult) -> Result<bool, String> {
        let jobs = shown.jobs.len();
        // What could not be shown stays owed.
        if !self.sequencer.stdio.is_broken() {
            self.recorder.shown(shown.jobs)?;
            self.record_lost(&shown.lost)?;
            shown.files.into_iter().for_each(JobFile::remove);
        }
        Ok(self.sequencer.mark_recorded(jobs))
    }

    /// Says and records which output of earlier attempts could not be read: those jobs run again.
    fn record_lost(&self, lost: &[LostOutput]) -> Result<(), String> {
        for LostOutput { job, error, runs } in lost {
            let why = os_error_text(error);
            let next = if *runs { "" } else { "; it runs when the run is resumed once more" };
            self.sequencer.stdio.suspend_progress(|| {
                message(&format!("cannot read the kept output of job {job}: {why}{next}"))
            });
            if !runs {
                self.output_lost.store(true, Ordering::Relaxed);
            }
        }
        self.recorder.lost(lost.iter().map(|lost| lost.job).collect())
    }

    /// Whether output of earlier attempts could not be read when it was too late to run its job
    /// again.
    pub(super) fn has_lost(&self) -> bool {
        self.output_lost.load(Ordering::Relaxed)
    }

    /// Runs one of `loops` loops to its end. `place` is its number.
    pub(super) fn run_worker(&self, set: &mut ChildSet, place: usize, loops: usize) -> RunStats {
        self.shown_earlier.call_once(|| self.show_more(false));
        let mut store = self.recorder.store(place);
        // Before the first job, so that none is done in vain.
        if self.recorder.is_kept()
            && let Err(error) = store.append(&[], self.recorder.syncs())
        {
            self.fail(self.cannot_keep(&error));
        }
        let mut hand = RunWorker::new(self, OutputBatch::new(store, self.recorder.syncs()), place, loops);
        let _alarm = PanicGuard(self);
        // Its error was told to the hand.
        let _ = self.pool.run_worker(set, place, loops, &mut hand);
        hand.finish()
    }
}

/// Ends the run if its loop panics: nobody else would go on with what it had.
struct PanicGuard<'a, 'b>(&'a RunContext<'b>);

impl Drop for PanicGuard<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("a part of minder panicked; this is a defect of minder".to_owned());
        }
    }
}
