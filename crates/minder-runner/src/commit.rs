//! The commit protocol: the order in which output and journal events become durable and visible.
//!
//! Every step is one system call or a few, and a kill may come between any two. The order decides
//! what a resumed run sees:
//!
//! | step | killed after it |
//! | --- | --- |
//! | 1. save the output to a file | the job has no event and runs again; the file is unused |
//! | 2. append the job's event to the journal | the output is written by the resumed run, from the file |
//! | 3. append the job's line to the joblog | the same; a line that is missing there is added |
//! | 4. write the output to standard output | the output is written twice, unless it was empty |
//! | 5. append the event that it was written | nothing is repeated; the file is unused |
//! | 6. remove the file | nothing is left |
//!
//! Steps 4 and 5 handle at most as many jobs at once as run at once, so that no more than these are
//! written twice.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::notice::Notice;
use crate::observer::Observer;
use crate::output::batch::OutputBatch;
use crate::output::sequencer::{LostOutput, OutputSequencer, ShowResult};
use crate::recorder::RunRecorder;
use crate::text::{cannot_save_in, os_error_text};

/// Encoded events of finished jobs that are not in the journal yet.
#[derive(Debug, Default)]
pub(crate) struct PendingEvents {
    /// For the journal.
    pub(crate) journal: Vec<u8>,
    /// For the joblog.
    pub(crate) joblog: Vec<u8>,
}

impl PendingEvents {
    fn clear(&mut self) {
        self.journal.clear();
        self.joblog.clear();
    }
}

/// Carries out the protocol for one run. All worker threads share it.
#[derive(Debug)]
pub(crate) struct Committer<'a> {
    sequencer: &'a OutputSequencer,
    recorder: &'a RunRecorder,
    observer: &'a Arc<dyn Observer>,
    /// See [`Self::has_lost_output`].
    lost_output: AtomicBool,
}

impl<'a> Committer<'a> {
    pub(crate) fn new(
        sequencer: &'a OutputSequencer,
        recorder: &'a RunRecorder,
        observer: &'a Arc<dyn Observer>,
    ) -> Self {
        Self { sequencer, recorder, observer, lost_output: AtomicBool::new(false) }
    }

    /// Commits the jobs of a batch. What may not be written yet waits in files. At most `max_jobs` jobs
    /// are written before their event; `wake` wakes the worker threads.
    ///
    /// # Errors
    /// One line: the output, the journal or the joblog cannot be written. A job without an event runs
    /// again when the run is resumed; output of a job with an event is shown then.
    pub(crate) fn flush(
        &self,
        batch: &mut OutputBatch,
        events: &mut PendingEvents,
        max_jobs: usize,
        wake: &dyn Fn(),
    ) -> Result<(), String> {
        let flushed = self.try_flush(batch, events, max_jobs, wake);
        // They are in the journal, or refer to bytes that are dropped.
        events.clear();
        if flushed.is_err() {
            batch.forget();
        }
        flushed
    }

    fn try_flush(
        &self,
        batch: &mut OutputBatch,
        events: &mut PendingEvents,
        max_jobs: usize,
        wake: &dyn Fn(),
    ) -> Result<(), String> {
        if self.recorder.is_kept() {
            let saved = self.recorder.try_patiently(|| batch.save());
            saved.map_err(|error| self.cannot_save(&error))?;
        }
        self.recorder.append(&events.journal)?;
        self.recorder.append_joblog(&events.joblog)?;
        if let Some(agent) = self.recorder.agent() {
            agent.note_recorded(self.sequencer.drop_saved(batch));
            return Ok(());
        }
        self.check_holder();
        let mut shown = self.sequencer.submit(batch, max_jobs).map_err(|error| self.cannot_save(&error))?;
        let nothing_waits = loop {
            let has_more = shown.more;
            let must_wake = shown.wake;
            let nothing_waits = self.record_shown(shown)?;
            if must_wake {
                wake();
            }
            if !has_more || self.sequencer.stdio.is_broken() {
                break nothing_waits;
            }
            shown = self.sequencer.show_more(false, max_jobs);
        };
        if nothing_waits && !self.sequencer.stdio.is_broken() {
            batch.store().empty();
        }
        Ok(())
    }

    /// Writes output that waited in files. With `all`, it is written even out of order: no job runs
    /// any more, and the jobs before it were cut off.
    ///
    /// # Errors
    /// One line: the journal cannot be written.
    pub(crate) fn write_waiting(&self, all: bool, max_jobs: usize) -> Result<(), String> {
        let mut has_more = true;
        while has_more && !self.sequencer.stdio.is_broken() {
            self.check_holder();
            let shown = self.sequencer.show_more(all, max_jobs);
            has_more = shown.more;
            self.record_shown(shown)?;
            if all {
                self.sequencer.stdio.wait_drained();
            }
        }
        Ok(())
    }

    /// Ends this process if another one may show the output of the run by now.
    fn check_holder(&self) {
        if let Some(holder) = self.recorder.holder() {
            holder.check(self.observer);
        }
    }

    /// Steps 5 and 6. Returns `true` if no output waits in any file.
    fn record_shown(&self, shown: ShowResult) -> Result<bool, String> {
        let jobs = shown.jobs.len();
        // Output that could not be written stays owed.
        if !self.sequencer.stdio.is_broken() {
            self.recorder.record_shown(shown.jobs)?;
            self.record_lost(&shown.lost)?;
            for file in shown.files {
                file.remove();
            }
        }
        Ok(self.sequencer.mark_recorded(jobs))
    }

    /// Reports and records which output of earlier attempts could not be read: those jobs run
    /// again.
    fn record_lost(&self, lost: &[LostOutput]) -> Result<(), String> {
        for LostOutput { job, error, runs } in lost {
            self.observer.notice(&Notice::OutputUnreadable {
                jobs: format!("job {job}"),
                file: None,
                reason: Some(os_error_text(error)),
                consequence: if *runs { "" } else { "; it runs when the run is resumed once more" },
            });
            if !runs {
                self.lost_output.store(true, Ordering::Relaxed);
            }
        }
        self.recorder.record_lost(lost.iter().map(|lost| lost.job).collect())
    }

    /// Returns `true` if output of an earlier attempt could not be read when it was too late to run
    /// its job again.
    pub(crate) fn has_lost_output(&self) -> bool {
        self.lost_output.load(Ordering::Relaxed)
    }

    /// Returns the message for output that cannot be saved.
    pub(crate) fn cannot_save(&self, error: &io::Error) -> String {
        cannot_save_in(&self.recorder.dir().display().to_string(), &os_error_text(error))
    }
}
