//! Writes the record of a run: the journal and the joblog.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result, anyhow};

use crate::agent::Agent;
use crate::attachment::Attachment;
use crate::config::BY_JOBLOG;
use crate::config::InputDelivery;
use crate::config::RecordConfig;
use crate::config::ResumeMode;
use crate::config::RunConfig;
use crate::config::SLOTS;
use crate::earlier_output;
use crate::earlier_output::Kept;
use crate::notice::Notice;
use crate::observer::Observer;
use crate::output::store::AppendFile;
use crate::output::store::FinishedJob;
use crate::output::store::JobFile;
use crate::output::stored::{OutputCopy, StoredFile};
use crate::patience::retry_unless_synced;
use crate::resume::ResumeFilter;
use crate::run_holder::{self, RunHolder};
use crate::text::format_error;
use crate::text::os_error_text;
use minder::{Charge, Signal};
use minder_cluster::claim::Claims;
use minder_cluster::round::Round;
use minder_os::files::{create_private_file, create_unnamed_file};
use minder_os::host_stats::{self, ProcessorTimes};
use minder_record::agents;
use minder_record::event::{AttemptFinished, AttemptHost, FAILED, JobList, JournalEvent, OsBytes, OutputDir};
use minder_record::job_set::JobSet;
use minder_record::joblog::{self, Joblog};
use minder_record::manifest::{InputSource, Manifest};
use minder_record::reader::{Corruption, Start, visit_starts};
use minder_record::run_state::{ComparedArgs, RunState};
use minder_record::stale_output::{self, OUTPUT_ELSEWHERE};
use minder_record::writer::{JournalWriter, RunLock, remove_outputs, stored_name};
use minder_record::{ErrorKind, codec, retention, store};
use minder_template::Job;

/// Writes the events of a run. All worker threads share it; the journal and the joblog append the
/// lines of each call together.
#[derive(Debug, Default)]
pub(crate) struct RunRecorder {
    record: Option<Arc<JournalWriter>>,
    /// What this process is for a run of another one. Then it saves output and shows none.
    agent: Option<Arc<Agent>>,
    joblog: Option<Joblog>,
    sync: bool,
    /// The times of the processors when the record was opened.
    processor_times: Option<ProcessorTimes>,
    /// The directory for waiting output: that of the run, or one of this run in a directory that
    /// the user chose.
    dir: PathBuf,
    /// `true` if output of an earlier attempt still has to be written or produced again.
    output_owed: bool,
    /// All directories outside of the run's own that contain, or contained, its output.
    output_dirs: Vec<PathBuf>,
    /// `true` if everything was there that the attempt needs before its first job. One that is
    /// refused leaves nothing behind.
    has_begun: AtomicBool,
    /// The number of named files that were created for jobs to write to.
    job_files: AtomicU64,
    /// The file for output that stays in the record, if it does.
    stored: Option<Arc<StoredFile>>,
    /// What excludes other coordinators, if the jobs run on agents.
    holder: Option<RunHolder>,
    /// The beginnings of joblog lines that an earlier coordinator wrote before it showed the output.
    logged: HashSet<Vec<u8>>,
}

/// The variables that are recorded. They often explain why a job failed, and contain nothing secret.
const ENVIRONMENT: [&str; 7] = ["HOME", "LANG", "LC_ALL", "PATH", "SHELL", "TMPDIR", "TZ"];
/// The most missing attempts that are reported.
const MISSING_NAMED_MAX: usize = 3;

/// The state that earlier attempts left.
#[derive(Debug, Default)]
pub(crate) struct ResumeState {
    pub(crate) filter: Arc<ResumeFilter>,
    pub(crate) unshown: Vec<FinishedJob>,
    /// The jobs of `unshown`.
    waiting: JobSet,
    /// Jobs whose saved output cannot be read.
    lost: JobSet,
    /// `true` if some of those do not run in this attempt.
    owes: bool,
    /// Directories outside of the run's own that contain output.
    elsewhere: Vec<PathBuf>,
    /// `true` if the attempt would run no job, write no output, and record nothing.
    pub(crate) is_idle: bool,
}

impl ResumeState {
    /// Reads the record of the run that is resumed, or a joblog.
    pub(crate) fn read(config: &RunConfig, observer: &dyn Observer) -> Result<Self> {
        let Some(mode) = config.record.mode else { return Ok(Self::default()) };
        match (&config.record.run, &config.record.joblog) {
            (Some(dir), joblog) => {
                // First: what agents record after this is taken from their journals.
                let attachment = Attachment::find(dir, &config.record)?;
                let (mut progress, damaged) = RunState::of_run(dir, compared_args(config))?;
                for (journal, damage) in &damaged {
                    report_damage(
                        &format!("{journal} of the record in `{}`", dir.display()),
                        damage,
                        observer,
                    );
                }
                for attempt in missing_attempts(dir)? {
                    let what = format!("attempt {attempt}");
                    observer.notice(&Notice::PartMissing { what, dir: dir.clone() });
                }
                missing_agents(dir, &progress, observer)
                    .with_context(|| format!("cannot read the record in `{}`", dir.display()))?;
                let Kept { unshown, lost } = earlier_output::read(dir, &mut progress, mode, config, observer);
                let agents = earlier_output::check_agents(dir, &mut progress, config, observer)
                    .with_context(|| format!("cannot read the record in `{}`", dir.display()))?;
                let mut waiting = JobSet::default();
                unshown.iter().for_each(|finished| _ = waiting.insert(finished.job));
                if config.record.by_joblog
                    && let Some(path) = joblog
                {
                    // The joblog decides which jobs are done. A finished job whose output was not
                    // written is done in any case.
                    let logged = read_joblog(path, observer)?;
                    let failed: Vec<u64> =
                        waiting.jobs().filter(|job| progress.failed.contains(*job)).collect();
                    progress.done = logged.done;
                    progress.failed = logged.failed;
                    if mode != ResumeMode::Failed {
                        lost.jobs().for_each(|job| progress.forget(job));
                    }
                    waiting.jobs().for_each(|job| _ = progress.done.insert(job));
                    for job in failed {
                        progress.failed.insert(job);
                    }
                }
                let elsewhere = stale_output::elsewhere(dir, &progress);
                let skip_lost = config.record.skip_lost;
                let filter = ResumeFilter::of_agents(mode, progress, agents, attachment, skip_lost);
                let filter = Arc::new(filter);
                let owes = lost.jobs().any(|job| filter.skips(job));
                Ok(Self { filter, unshown, waiting, lost, owes, elsewhere, is_idle: false })
            }
            (None, Some(path)) => Ok(Self {
                filter: Arc::new(ResumeFilter::new(mode, read_joblog(path, observer)?)),
                ..Self::default()
            }),
            (None, None) => Ok(Self::default()),
        }
    }

    /// Returns `true` if the record alone shows that nothing of the run is left to run or to write.
    fn leaves_nothing(&self, record: &RecordConfig) -> bool {
        // What is given again through a pipe may have more lines than before.
        let may_grow =
            record.mode != Some(ResumeMode::Failed) && matches!(record.stdin, Some(InputSource::Lost { .. }));
        record.run.is_some()
            && !record.by_joblog
            && !may_grow
            && self.filter.has_nothing_left()
            && self.unshown.is_empty()
            && self.lost.is_empty()
    }
}

/// Returns which arguments are compared with those of earlier attempts.
fn compared_args(config: &RunConfig) -> ComparedArgs {
    match &config.pipe {
        _ if config.record.redact => ComparedArgs::None,
        // The file of a block has another name in each attempt.
        Some(pipe) if pipe.delivery != InputDelivery::Stdin => ComparedArgs::AfterFirst,
        _ => ComparedArgs::All,
    }
}

/// Returns the attempts without a journal, although later ones have one, or although they left
/// output.
fn missing_attempts(dir: &Path) -> Result<Vec<u32>> {
    let context = || format!("cannot read the record in `{}`", dir.display());
    let (found, last) = store::attempts(dir)
        .and_then(|found| Ok((found, store::last_attempt(dir)?)))
        .with_context(context)?;
    Ok((1..=last).filter(|attempt| !found.contains(attempt)).take(MISSING_NAMED_MAX).collect())
}

/// Reports agents without a directory that have claimed jobs which are not done.
fn missing_agents(dir: &Path, progress: &RunState, observer: &dyn Observer) -> io::Result<()> {
    let known = agents::keys(dir)?;
    let mut missing = Vec::new();
    for attempt in Round::attempts(dir)? {
        let Ok(round) = Round::open(dir, attempt) else { continue };
        let claims = Claims::open(round.dir());
        let epochs = claims.epochs()?;
        // If journals have all claims, the files of claims need not be read.
        if progress.claims.contains(&(attempt, epochs.len() as u64)) {
            continue;
        }
        for (number, epoch) in epochs {
            let Some(claim) = claims.read(number, epoch)? else { continue };
            let mut jobs = claim.first..=claim.last;
            if known.binary_search(&claim.agent).is_err()
                && !missing.contains(&claim.agent)
                && jobs.any(|job| round.contains(job) && !progress.done.contains(job))
            {
                missing.push(claim.agent);
            }
        }
    }
    if let Some(agent) = missing.first() {
        let more = missing.len() - 1;
        let others = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        let what = format!("agent {agent}{others}");
        observer.notice(&Notice::PartMissing { what, dir: dir.to_owned() });
    }
    Ok(())
}

impl RunRecorder {
    /// Opens the record of this run and reads what earlier attempts left. `jobs` is the number of
    /// jobs, if it is known, and `slots` how many run at once.
    pub(crate) fn open(
        config: &RunConfig,
        jobs: Option<u64>,
        slots: usize,
        observer: &dyn Observer,
        interrupted: &mut dyn FnMut() -> Option<Signal>,
    ) -> Result<(Self, ResumeState)> {
        let mut recorder = Self::default();
        recorder.sync = config.record.sync;
        // It is locked before it is read, so that no other process writes to it meanwhile.
        let lock = config.record.run.as_deref().map(|run| lock(run, &config.record)).transpose()?;
        let mut hold = |run: &Path| {
            let lost_after = config.record.agents.as_ref().map(|agents| agents.lost_after);
            let hold = |after| RunHolder::become_holder(run, after, observer, interrupted);
            lost_after.map(hold).transpose()
        };
        recorder.holder = config.record.run.as_deref().map(&mut hold).transpose()?.flatten();
        let mut resume_state = ResumeState::read(config, observer)?;
        // After a kill between the journal event and the joblog line of a job, the line is missing.
        let missing_lines = match (&config.record.joblog, &config.record.run) {
            (Some(path), Some(dir)) => missing_lines(dir, path, &resume_state, config)?,
            _ => Vec::new(),
        };
        resume_state.is_idle = missing_lines.is_empty() && resume_state.leaves_nothing(&config.record);
        if resume_state.is_idle {
            return Ok((recorder, resume_state));
        }
        if let Some(lock) = lock {
            recorder.record = Some(Arc::new(JournalWriter::resume(lock, config.record.sync)?));
        }
        recorder.agent = Agent::begin(config)?;
        if let Some(agent) = &recorder.agent {
            recorder.record = Some(Arc::clone(&agent.journal));
        }
        if let Some(notice) = resume_state.filter.announcement(&config.record, jobs) {
            observer.notice(&notice);
        }
        if config.record.keep && recorder.record.is_none() {
            match store::state_root()
                .map_err(Into::into)
                .and_then(|root| create(&root, config, jobs, slots, observer))
            {
                Ok(record) => recorder.record = Some(Arc::new(record)),
                Err(error) if config.record.sync => return Err(error),
                Err(error) => observer.notice(&Notice::NoRecord { reason: format_error(&error) }),
            }
        }
        if recorder.holder.is_none()
            && let Some(record) = &recorder.record
        {
            recorder.holder = hold(record.dir())?;
        }
        recorder.append_host(slots)?;
        recorder.dir = recorder.create_output_dir(config)?;
        recorder.output_dirs.clone_from(&resume_state.elsewhere);
        recorder.output_owed = resume_state.owes;
        if let Some(record) = &recorder.record
            && config.record.keep_output
        {
            let name = stored_name(record.attempt());
            recorder.stored = Some(Arc::new(StoredFile::new(record.dir(), name, config.record.sync)));
        }
        if config.tmpdir.is_some() && recorder.record.is_some() {
            recorder.output_dirs.push(recorder.dir.clone());
        }
        if let Some(path) = &config.record.joblog {
            recorder.open_joblog(path, config, &missing_lines, &resume_state.filter, observer)?;
        }
        Ok((recorder, resume_state))
    }

    /// Opens the joblog, and adds the lines that are missing there.
    fn open_joblog(
        &mut self,
        path: &Path,
        config: &RunConfig,
        missing_lines: &[u8],
        filter: &ResumeFilter,
        observer: &dyn Observer,
    ) -> Result<()> {
        let cannot = || format!("cannot write the joblog `{}`", path.display());
        let opened = Joblog::open(path, config.record.mode.is_some() || config.record.joblog_append);
        let joblog = opened.with_context(cannot)?;
        if joblog.was_cut() {
            observer.notice(&Notice::JoblogTruncated { path: path.to_owned() });
        }
        joblog.append(missing_lines).with_context(cannot)?;
        self.joblog = Some(joblog);
        // It may be a pipe.
        if self.holder.is_some() && config.record.mode.is_some() && path.is_file() {
            let shown = filter.attachment().map(|(attachment, _)| &attachment.shown);
            let logged = logged(path, shown);
            self.logged = logged.with_context(|| format!("cannot read the joblog `{}`", path.display()))?;
        }
        Ok(())
    }

    /// Records what the attempt has to run with.
    fn append_host(&mut self, slots: usize) -> Result<()> {
        let Some(record) = &self.record else { return Ok(()) };
        self.processor_times = host_stats::processor_times().ok();
        let host = AttemptHost {
            slots: slots as u64,
            cpus: host_stats::processors() as u64,
            memory: host_stats::memory().ok().map(|memory| memory.available),
        };
        let mut events = Vec::new();
        codec::encode(&JournalEvent::Host(host), &mut events);
        let cannot = || format!("cannot write the record in `{}`", record.dir().display());
        record.append_metadata(&events).with_context(cannot)
    }

    /// Creates the directory for waiting output. In a directory that the user chose, a run with a
    /// record has a directory of its name, which the record names.
    fn create_output_dir(&self, config: &RunConfig) -> Result<PathBuf> {
        let (tmpdir, record) = match (&config.tmpdir, &self.record) {
            (Some(tmpdir), Some(record)) => (tmpdir, record),
            (Some(tmpdir), None) => return Ok(tmpdir.clone()),
            (None, Some(record)) => return Ok(record.dir().to_owned()),
            (None, None) => return Ok(std::env::temp_dir()),
        };
        let dir = earlier_output::create_output_dir(tmpdir, record.run(), record.attempt())
            .with_context(|| format!("cannot create a directory in `{}`", tmpdir.display()))?;
        let outputs = OutputDir { attempt: record.attempt(), dir: OsBytes::from(dir.as_os_str()) };
        let mut events = Vec::new();
        codec::encode(&JournalEvent::OutputDir(outputs), &mut events);
        let cannot = || format!("cannot write the record in `{}`", record.dir().display());
        record.append_metadata(&events).with_context(cannot)?;
        Ok(dir)
    }

    /// Keeps what is recorded from here on: the first job is about to start.
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.record.is_some()
    }

    /// Returns what this process is for a run of another one.
    pub(crate) fn agent(&self) -> Option<&Arc<Agent>> {
        self.agent.as_ref()
    }

    /// Returns the journal, if the run has a record.
    pub(crate) fn journal(&self) -> Option<&Arc<JournalWriter>> {
        self.record.as_ref()
    }

    /// Returns what excludes other coordinators, if the jobs run on agents.
    pub(crate) fn holder(&self) -> Option<&RunHolder> {
        self.holder.as_ref()
    }

    /// Returns whether the joblog has this line already.
    pub(crate) fn is_logged(&self, line: &[u8]) -> bool {
        !self.logged.is_empty() && self.logged.contains(line_key(line))
    }

    pub(crate) fn has_joblog(&self) -> bool {
        self.joblog.is_some()
    }

    /// Returns the id of the run.
    pub(crate) fn run(&self) -> Option<&str> {
        self.record.as_deref().map(JournalWriter::run)
    }

    /// Returns the times of the processors since the record was opened, if the operating system
    /// tells them.
    pub(crate) fn processor_times(&self) -> Option<ProcessorTimes> {
        let before = self.processor_times?;
        let now = host_stats::processor_times().ok()?;
        Some(ProcessorTimes {
            busy: now.busy.saturating_sub(before.busy),
            idle: now.idle.saturating_sub(before.idle),
        })
    }

    /// Returns the arguments of minder that continue the run.
    pub(crate) fn resume(&self, config: &RunConfig) -> Option<String> {
        match &config.record.joblog {
            _ if config.pipe.as_ref().is_some_and(|pipe| pipe.unrepeatable().is_some()) => None,
            Some(joblog) if config.record.by_joblog => {
                let joblog = minder_template::shell_word(joblog.as_os_str());
                Some(format!("run --resume --joblog {joblog} COMMAND…"))
            }
            _ => self.run().map(|run| format!("resume {run}")),
        }
    }

    /// Returns the directory for waiting output.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the start of the names of output files: those of `kind`, of one worker thread.
    /// `None` if output files have no names.
    pub(crate) fn file_prefix(&self, kind: &str, worker: usize) -> Option<String> {
        let record = self.record.as_ref()?;
        Some(format!("{kind}-{}-{worker}", record.attempt()))
    }

    /// Returns the file of a worker thread for small outputs.
    pub(crate) fn store(&self, worker: usize) -> AppendFile {
        AppendFile::new(&self.dir, self.file_prefix("out", worker))
    }

    /// Creates a file that a job writes to, or that has output of one job. Its number is unique in the
    /// attempt, so its name has no worker thread: the index in it is always 0.
    ///
    /// # Errors
    /// One line: the directory for waiting output takes no file.
    pub(crate) fn create_job_file(&self) -> Result<JobFile, String> {
        let created = match self.file_prefix("spill", 0) {
            None => create_unnamed_file(&self.dir).map(|file| (file, None)),
            Some(prefix) => {
                let number = self.job_files.fetch_add(1, Ordering::Relaxed) + 1;
                let path = self.dir.join(format!("{prefix}-job{number}"));
                create_private_file(&path).map(|file| (file, Some(path)))
            }
        };
        let (file, path) = created.map_err(|error| self.cannot_make_file(&error))?;
        Ok(JobFile { file: Some(file), path, range: 0..0, charge: Charge::default() })
    }

    /// Returns a copy for the output of a job, if it stays in the record.
    pub(crate) fn output_copy(&self) -> Option<Box<OutputCopy>> {
        Some(Box::new(OutputCopy::new(Arc::clone(self.stored.as_ref()?))))
    }

    /// Returns the message for a file that cannot be made in the directory for waiting output.
    pub(crate) fn cannot_make_file(&self, error: &std::io::Error) -> String {
        format!("cannot make a file for output in `{}`: {}", self.dir.display(), os_error_text(error))
    }

    /// Writes to the record. In a run on agents, an error may pass.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn try_patiently<T>(&self, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let is_on_agents = self.agent.is_some() || self.holder.is_some();
        if is_on_agents { retry_unless_synced(self.sync, write) } else { write() }
    }

    pub(crate) fn syncs(&self) -> bool {
        self.sync
    }

    /// Appends encoded events to the journal.
    pub(crate) fn append(&self, events: &[u8]) -> Result<(), String> {
        if events.is_empty() {
            return Ok(());
        }
        let Some(record) = &self.record else { return Ok(()) };
        self.try_patiently(|| record.append(events)).map_err(|error| {
            format!("cannot write the record in `{}`: {}", record.dir().display(), os_error_text(&error))
        })
    }

    /// Appends encoded lines to the joblog.
    pub(crate) fn append_joblog(&self, lines: &[u8]) -> Result<(), String> {
        if lines.is_empty() {
            return Ok(());
        }
        let Some(joblog) = &self.joblog else { return Ok(()) };
        joblog.append(lines).map_err(|error| format!("cannot write the joblog: {}", os_error_text(&error)))
    }

    /// Records that the saved output of these jobs was written.
    pub(crate) fn record_shown(&self, jobs: Vec<u64>) -> Result<(), String> {
        if self.record.is_none() || jobs.is_empty() {
            return Ok(());
        }
        let mut events = Vec::new();
        codec::encode(&JournalEvent::OutputShown(JobList { jobs }), &mut events);
        self.append(&events)
    }

    /// Records that the saved output of these jobs is lost.
    pub(crate) fn record_lost(&self, jobs: Vec<u64>) -> Result<(), String> {
        if self.record.is_none() || jobs.is_empty() {
            return Ok(());
        }
        let mut events = Vec::new();
        codec::encode(&JournalEvent::OutputLost(JobList { jobs }), &mut events);
        self.append(&events)
    }

    /// Removes the record of an attempt that ran no job when this value is dropped. Returns `false` if
    /// the attempt has recorded something, such as output of an earlier attempt.
    pub(crate) fn discard(&self) -> bool {
        self.record.as_deref().is_none_or(JournalWriter::discard)
    }

    /// Appends the last event of the attempt.
    pub(crate) fn append_end(&self, finished: AttemptFinished) -> Result<(), String> {
        let mut events = Vec::new();
        codec::encode(&JournalEvent::AttemptFinished(finished), &mut events);
        self.append(&events)
    }

    /// Ends the attempt. `shown` is `true` if all output that the record refers to was written. A
    /// failure here loses neither output nor the event of a job.
    pub(crate) fn close(&self, finished: AttemptFinished, shown: bool, observer: &dyn Observer) {
        if let Some(record) = &self.record {
            if finished.why.as_deref() == Some(FAILED) && record.is_unused() {
                // The attempt did not start a job: the run is as it was before.
                return;
            }
            if !record.exists() {
                observer.notice(&Notice::RecordRemoved { dir: record.dir().to_owned() });
                return;
            }
        }
        if let Some(agent) = &self.agent {
            // The coordinator shows the output, and says so if it misses this event.
            let _ = self.append_end(finished);
            if let Some(served) = &agent.served {
                served.finish(&agent.removed);
            }
            return;
        }
        if shown
            && !self.output_owed
            && let Some(record) = &self.record
        {
            remove_outputs(record.dir());
            // Of a run that was cut short, agents may have saved output that was not taken yet.
            let keys = if finished.why.is_none() { agents::keys(record.dir()) } else { Ok(Vec::new()) };
            for key in keys.unwrap_or_default() {
                remove_outputs(&key.dir(record.dir()));
            }
            for dir in &self.output_dirs {
                remove_outputs(dir);
                // This fails if the directory is not empty, as intended.
                let _ = std::fs::remove_dir(dir);
            }
        }
        let closed = self.append_end(finished);
        if let (Some(record), Ok(root), Ok(())) = (&self.record, store::state_root(), closed) {
            // A failure to prune old runs does not concern this run.
            let pruned = retention::prune_daily(&root, record.dir()).ok().flatten().unwrap_or_default();
            let unfinished: Vec<String> =
                pruned.removed.into_iter().filter(|run| run.unfinished).map(|run| run.id).collect();
            // Only runs that could have been resumed are reported.
            if !unfinished.is_empty() {
                observer.notice(&Notice::Pruned { runs: unfinished });
            }
        }
    }
}

impl Drop for RunRecorder {
    /// Removes the output directory of an attempt that was refused, and the run if the attempt made it.
    fn drop(&mut self) {
        let Some(record) = &self.record else { return };
        let is_refused = !self.has_begun.load(Ordering::Relaxed) && record.discard();
        if (is_refused || record.is_unused()) && self.dir != record.dir() && !self.dir.as_os_str().is_empty()
        {
            remove_outputs(&self.dir);
            let _ = std::fs::remove_dir(&self.dir);
        }
    }
}

/// Locks a run. The message for a run that another coordinator of agents works on names its machine.
fn lock(run: &Path, config: &RecordConfig) -> Result<RunLock> {
    RunLock::acquire(run).map_err(|error| {
        let is_used = error.kind() == ErrorKind::Locked && config.agents.is_some();
        let line = if is_used { run_holder::used_by_other(run) } else { None };
        line.map_or_else(|| error.into(), |line| anyhow!(line))
    })
}

/// Creates a new record. `jobs` is the number of jobs, if it is known, and `slots` how many run at
/// once.
fn create(
    root: &Path,
    config: &RunConfig,
    jobs: Option<u64>,
    slots: usize,
    observer: &dyn Observer,
) -> Result<JournalWriter> {
    if store::secure_runs(root)? {
        let runs = store::runs_dir(root);
        observer.notice(&Notice::ModeCorrected { dir: runs });
    }
    let RecordConfig { files, stdin, trailing, .. } = &config.record;
    let (input, arguments) = match stdin {
        _ if config.record.redact => {
            (InputSource::Lost { why: "arguments were to be kept out of its record".to_owned() }, &[][..])
        }
        Some(stdin) if files.is_empty() && trailing.is_empty() => (stdin.clone(), &[][..]),
        stdin => {
            let fingerprints = files.iter().filter_map(|path| InputSource::fingerprint(path)).collect();
            let stdin = stdin.clone().map(Box::new);
            (InputSource::arguments(jobs, fingerprints, stdin), trailing.as_slice())
        }
    };
    let mut manifest = Manifest::new(&config.record.cwd, &config.record.command, input);
    let typed: Vec<_> = config.record.typed.iter().map(|flag| OsBytes::from(flag.as_os_str())).collect();
    manifest.environment = ENVIRONMENT
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), OsBytes::from(std::env::var_os(name)?.as_os_str()))))
        .collect();
    manifest.flags.insert("typed".to_owned(), serde_json::to_value(typed)?);
    if config.pipe.is_some() {
        manifest.flags.insert(SLOTS.to_owned(), slots.into());
    }
    if config.tmpdir.is_some() {
        manifest.flags.insert(OUTPUT_ELSEWHERE.to_owned(), true.into());
    }
    if config.record.mode.is_some() {
        manifest.flags.insert(BY_JOBLOG.to_owned(), true.into());
    }
    if let Some(joblog) = &config.record.joblog {
        manifest.flags.insert("joblog".to_owned(), serde_json::to_value(OsBytes::from(joblog.as_os_str()))?);
    }
    Ok(JournalWriter::create(root, manifest, arguments, config.record.sync)?)
}

/// Returns how a resumed run can read standard input again. Call it before anything is read: a file
/// counts only if it is read from its beginning.
pub fn stdin_source() -> InputSource {
    let lost = |why: &str| InputSource::Lost { why: why.to_owned() };
    match minder_os::stdio::stdin_path() {
        Some(path) => InputSource::file(&path).unwrap_or_else(|_| lost("its input was a file that is gone")),
        None => lost("its input came through a pipe"),
    }
}

/// Reads a joblog. As in GNU parallel, one that does not exist yet is empty.
fn read_joblog(path: &Path, observer: &dyn Observer) -> Result<RunState> {
    if !path.exists() {
        return Ok(RunState::default());
    }
    let read = joblog::read(path).with_context(|| format!("cannot read the joblog `{}`", path.display()));
    let (progress, mut damage) = read?;
    // The incomplete last line is removed, and reported, when the joblog is opened for writing.
    damage.torn_tail = false;
    report_damage(&format!("the joblog `{}`", path.display()), &damage, observer);
    Ok(progress)
}

/// Returns the beginning of a joblog line that no other has: the job, the host, and the start.
fn line_key(line: &[u8]) -> &[u8] {
    let end = memchr::memchr_iter(b'\t', line).nth(2).unwrap_or(line.len());
    &line[..end]
}

/// Returns the beginnings of the lines of a joblog, without those of jobs whose output was shown.
fn logged(path: &Path, shown: Option<&JobSet>) -> io::Result<HashSet<Vec<u8>>> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut logged = HashSet::new();
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let job =
            line.split(|byte| *byte == b'\t').next().and_then(|job| str::from_utf8(job).ok()?.parse().ok());
        if job.is_some_and(|job| shown.is_none_or(|shown| !shown.contains(job))) {
            logged.insert(line_key(&line).to_owned());
        }
        line.clear();
    }
    Ok(logged)
}

/// Returns the joblog lines of jobs that are in the journal but not in the joblog.
fn missing_lines(dir: &Path, path: &Path, resume_state: &ResumeState, config: &RunConfig) -> Result<Vec<u8>> {
    let logged = if path.is_file() { joblog::read(path)?.0.done } else { JobSet::default() };
    let mut lines = Vec::new();
    let filter = &resume_state.filter;
    visit_starts(dir, &mut |start| {
        let Start { agent, node, counts, is_tried, ended, .. } = start;
        // This attempt takes the other results of agents, and adds their lines.
        let is_taken = agent.is_none() || filter.was_taken(ended.job);
        if counts
            && !is_tried
            && is_taken
            && !logged.contains(ended.job)
            && !resume_state.lost.contains(ended.job)
            && (!config.record.by_joblog || resume_state.waiting.contains(ended.job))
        {
            let command = command_of(&ended.args, ended.job, 1, config);
            joblog::encode(&ended, node.as_deref(), command.as_bytes(), &mut lines);
        }
    })?;
    Ok(lines)
}

/// Returns a job's command for the joblog: the command without arguments, if those are redacted.
pub(crate) fn command_of(args: &[OsBytes], number: u64, slot: u32, config: &RunConfig) -> String {
    if config.record.redact || args.is_empty() {
        return config
            .record
            .command
            .iter()
            .map(|argument| argument.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ");
    }
    let columns: Vec<_> = args.iter().map(OsBytes::to_os).collect();
    config.template.display(&Job { columns: &columns, number, slot, ..Job::default() })
}

fn report_damage(what: &str, damage: &Corruption, observer: &dyn Observer) {
    if damage.any() {
        observer.notice(&Notice::Damaged { what: what.to_owned(), damage: damage.to_string() });
    }
}
