//! The record of a run while it is written: the journal, and a joblog beside it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use minder::os::{open_plain, private_folder};
use minder::{Charge, Stream};

use super::again::Again;
use super::output::{Finished, Own, Piece, Place, Store};
use super::tags::Marks;
use crate::journal::joblog::{self, Joblog};
use crate::journal::manifest::{Manifest, Source};
use crate::journal::merge::{JobSet, Progress};
use crate::journal::read::{Damage, each};
use crate::journal::row::{OutputsRow, Over, Row, Shown, Text};
use crate::journal::write::{Record, output_path, remove_outputs};
use crate::journal::{folder, line, prune};
use crate::plan::{BY_JOBLOG, Plan, RecordPlan};
use crate::report::{explain, reason, say};
use crate::template::Job;

/// Where rows go.
#[derive(Debug, Default)]
pub(super) struct Book {
    record: Option<Record>,
    joblog: Option<Joblog>,
    sync: bool,
    /// Where output waits: the run's folder, or one of this run's own in a folder of the user's choice.
    folder: PathBuf,
    /// All folders outside of the run's own in which output of this run lies or lay.
    elsewhere: Vec<PathBuf>,
}

/// What earlier attempts left.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) again: Arc<Again>,
    pub(super) unshown: Vec<Finished>,
    /// Folders outside of the run's own where output was left.
    elsewhere: Vec<PathBuf>,
}

impl Left {
    /// Reads the record of the run that is taken up, or a joblog.
    pub(super) fn read(plan: &Plan) -> Result<Self> {
        let Some(mode) = plan.record.mode else { return Ok(Self::default()) };
        match (&plan.record.run, &plan.record.joblog) {
            (Some(folder), joblog) => {
                let (mut progress, damaged) = Progress::of_run(folder, !plan.record.redact)?;
                for (attempt, damage) in &damaged {
                    name_damage(
                        &format!("attempt {attempt} of the record in `{}`", folder.display()),
                        damage,
                    );
                }
                let waiting: Vec<u64> = progress.unshown.keys().copied().collect();
                let unshown = unshown(folder, &mut progress, plan)?;
                if let Some(path) = joblog.as_ref().filter(|_| plan.record.by_joblog) {
                    // The joblog says what is done; what ended and was never shown is done in any case.
                    let logged = read_joblog(path)?;
                    let failed: Vec<u64> =
                        waiting.iter().copied().filter(|job| progress.failed.contains(*job)).collect();
                    (progress.done, progress.failed) = (logged.done, logged.failed);
                    waiting.into_iter().for_each(|job| _ = progress.done.insert(job));
                    failed.into_iter().for_each(|job| _ = progress.failed.insert(job));
                }
                let elsewhere =
                    progress.outputs.values().map(|folder| PathBuf::from(folder.to_os())).collect();
                Ok(Self { again: Arc::new(Again::new(mode, progress)), unshown, elsewhere })
            }
            (None, Some(path)) => {
                Ok(Self { again: Arc::new(Again::new(mode, read_joblog(path)?)), ..Self::default() })
            }
            (None, None) => Ok(Self::default()),
        }
    }
}

impl Book {
    /// Opens the record of this run, and reads what earlier attempts left.
    pub(super) fn open(plan: &Plan, jobs: Option<u64>) -> Result<(Self, Left)> {
        let mut book = Self { sync: plan.record.sync, ..Self::default() };
        if let Some(folder) = &plan.record.run {
            // Locked first, so that nobody writes to what is read.
            book.record = Some(Record::resume(folder, plan.record.sync)?);
        }
        let left = Left::read(plan)?;
        if plan.record.keep && book.record.is_none() {
            match folder::state_root().and_then(|root| create(&root, plan, jobs)) {
                Ok(record) => book.record = Some(record),
                Err(error) if plan.record.sync => return Err(error),
                Err(error) if !plan.quiet => {
                    say(&format!(
                        "this run leaves no record: {} (--no-record says nothing)",
                        explain(&error)
                    ));
                }
                Err(_) => (),
            }
        }
        book.folder = book.make_folder(plan)?;
        book.elsewhere.clone_from(&left.elsewhere);
        if plan.tmpdir.is_some() && book.record.is_some() {
            book.elsewhere.push(book.folder.clone());
        }
        if let Some(path) = &plan.record.joblog {
            // A kill between a row of the record and its row here left the latter out.
            let missing = match &plan.record.run {
                Some(folder) => missing_rows(folder, path, &left, plan)?,
                None => Vec::new(),
            };
            let opened = Joblog::open(path, plan.record.mode.is_some() || plan.record.joblog_append);
            let joblog = opened.with_context(|| format!("cannot write the joblog `{}`", path.display()))?;
            if joblog.was_cut() {
                say(&format!("the last row of the joblog `{}` was torn, and is dropped", path.display()));
            }
            joblog
                .append(&missing)
                .with_context(|| format!("cannot write the joblog `{}`", path.display()))?;
            book.joblog = Some(joblog);
        }
        Ok((book, left))
    }

    /// The folder for output that waits. In one of the user's choice a run with a record has a folder of its own, which
    /// the record names.
    fn make_folder(&self, plan: &Plan) -> Result<PathBuf> {
        let (tmpdir, record) = match (&plan.tmpdir, &self.record) {
            (Some(tmpdir), Some(record)) => (tmpdir, record),
            (Some(tmpdir), None) => return Ok(tmpdir.clone()),
            (None, Some(record)) => return Ok(record.folder().to_owned()),
            (None, None) => return Ok(std::env::temp_dir()),
        };
        let folder = tmpdir.join(format!("minder-{}-{}", record.run(), record.attempt()));
        private_folder(&folder).with_context(|| format!("cannot make a folder in `{}`", tmpdir.display()))?;
        let outputs = OutputsRow { attempt: record.attempt(), folder: Text::from(folder.as_os_str()) };
        let mut rows = Vec::new();
        line::encode(&Row::Outputs(outputs), &mut rows);
        self.append(&rows).map_err(anyhow::Error::msg)?;
        Ok(folder)
    }

    pub(super) fn is_kept(&self) -> bool {
        self.record.is_some()
    }

    pub(super) fn has_joblog(&self) -> bool {
        self.joblog.is_some()
    }

    /// The run's id.
    pub(super) fn run(&self) -> Option<&str> {
        self.record.as_ref().map(Record::run)
    }

    /// What stands behind `--resume` when the run is taken up again.
    pub(super) fn resume(&self, plan: &Plan) -> Option<String> {
        match &plan.record.joblog {
            _ if plan.pipe.as_ref().is_some_and(|pipe| pipe.flags.round_robin) => None,
            Some(joblog) if plan.record.by_joblog => Some(format!("--joblog {} COMMAND…", joblog.display())),
            _ => self.run().map(str::to_owned),
        }
    }

    /// The folder for output that waits.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What names of files with output begin with, where they have names: those of `kind`, of one loop.
    pub(super) fn name(&self, kind: &str, place: usize) -> Option<String> {
        let record = self.record.as_ref()?;
        Some(format!("{kind}-{}-{place}", record.attempt()))
    }

    /// A loop's file for small outputs.
    pub(super) fn store(&self, place: usize) -> Store {
        Store::new(&self.folder, self.name("out", place))
    }

    pub(super) fn syncs(&self) -> bool {
        self.sync
    }

    /// Writes rows of the journal.
    pub(super) fn append(&self, rows: &[u8]) -> Result<(), String> {
        let Some(record) = self.record.as_ref().filter(|_| !rows.is_empty()) else { return Ok(()) };
        record.append(rows).map_err(|error| {
            format!("cannot write the record in `{}`: {}", record.folder().display(), reason(&error))
        })
    }

    /// Writes rows of the joblog.
    pub(super) fn append_joblog(&self, rows: &[u8]) -> Result<(), String> {
        let Some(joblog) = self.joblog.as_ref().filter(|_| !rows.is_empty()) else { return Ok(()) };
        joblog.append(rows).map_err(|error| format!("cannot write the joblog: {}", reason(&error)))
    }

    /// Notes what was shown.
    pub(super) fn shown(&self, jobs: Vec<u64>) -> Result<(), String> {
        if self.record.is_none() || jobs.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::new();
        line::encode(&Row::Shown(Shown { jobs }), &mut rows);
        self.append(&rows)
    }

    /// The run is over. `shown` says that all that its record keeps was shown. What fails here costs no output and no row
    /// of a job.
    pub(super) fn close(&self, over: Over, shown: bool) {
        if let Some(record) = self.record.as_ref().filter(|_| shown) {
            remove_outputs(record.folder());
            for folder in &self.elsewhere {
                remove_outputs(folder);
                // Only if it is empty, as it should be.
                let _ = std::fs::remove_dir(folder);
            }
        }
        let mut rows = Vec::new();
        line::encode(&Row::Over(over), &mut rows);
        let closed = self.append(&rows);
        if let Some(root) = folder::state_root().ok().filter(|_| self.is_kept() && closed.is_ok()) {
            // Old runs are of no concern to this one.
            let _ = prune::prune_daily(&root);
        }
    }
}

/// Begins a new record. `jobs`: how many there will be, if that is known.
fn create(root: &Path, plan: &Plan, jobs: Option<u64>) -> Result<Record> {
    let RecordPlan { files, stdin, behind, .. } = &plan.record;
    let (input, arguments) = match (files.is_empty() && behind.is_empty(), stdin) {
        _ if plan.record.redact => {
            (Source::Lost { why: "arguments were to be kept out of its record".to_owned() }, &[][..])
        }
        (true, _) => (of_stdin(), &[][..]),
        (false, stdin) => {
            let marks = files.iter().filter_map(|path| Source::marks(path)).collect();
            let stdin = stdin.then(|| Box::new(of_stdin()));
            (Source::arguments(jobs, marks, stdin), behind.as_slice())
        }
    };
    let mut manifest = Manifest::new(&plan.record.cwd, &plan.record.words, input);
    let typed: Vec<_> = plan.record.typed.iter().map(|word| Text::from(word.as_os_str())).collect();
    manifest.flags.insert("typed".to_owned(), serde_json::to_value(typed)?);
    if plan.record.mode.is_some() {
        manifest.flags.insert(BY_JOBLOG.to_owned(), true.into());
    }
    if let Some(joblog) = &plan.record.joblog {
        manifest.flags.insert("joblog".to_owned(), serde_json::to_value(Text::from(joblog.as_os_str()))?);
    }
    Record::create(root, manifest, arguments, plan.record.sync)
}

/// Standard input, if it can be had again.
fn of_stdin() -> Source {
    let lost = |why: &str| Source::Lost { why: why.to_owned() };
    match minder::os::path_of_input() {
        Some(path) => Source::file(&path).unwrap_or_else(|_| lost("its input was a file that is gone")),
        None => lost("its input came through a pipe"),
    }
}

/// Output that was recorded and not shown.
fn unshown(folder: &Path, progress: &mut Progress, plan: &Plan) -> Result<Vec<Finished>> {
    let mut all_args = std::mem::take(&mut progress.unshown_args);
    let mut shared = HashMap::new();
    let mut found = Vec::new();
    for (job, pieces) in std::mem::take(&mut progress.unshown) {
        let columns: Vec<_> = all_args.remove(&job).unwrap_or_default().iter().map(Text::to_os).collect();
        let marks = Marks::of(plan, &Job { columns: &columns, number: job, slot: 1, ..Job::default() });
        let marks = match plan.colour_failed && progress.failed.contains(job) {
            true => Marks::failed(marks),
            false => marks,
        };
        let mut finished = Finished { job, marks, pieces: Vec::new(), owed: true };
        for piece in pieces {
            let path = output_path(&outputs_of(&piece.file, folder, progress), &piece.file)?;
            let range =
                piece.at..piece.at.checked_add(piece.len).context("a row of the record is damaged")?;
            let stream = if piece.stream == 2 { Stream::Stderr } else { Stream::Stdout };
            let place = if piece.file.starts_with("out-") {
                if !shared.contains_key(&path) {
                    let opened = open_plain(&path);
                    let file = opened
                        .with_context(|| format!("cannot read output that waits in `{}`", path.display()))?;
                    shared.insert(path.clone(), Arc::new(file));
                }
                Place::Shared(Arc::clone(&shared[&path]), range)
            } else {
                Place::Own(Own { file: None, path: Some(path), range, charge: Charge::default() })
            };
            finished.pieces.push(Piece { stream, place });
        }
        found.push(finished);
    }
    Ok(found)
}

/// The folder of a file with output, by the attempt in its name.
fn outputs_of(file: &str, folder: &Path, progress: &Progress) -> PathBuf {
    let attempt = file.split('-').nth(1).and_then(|number| number.parse().ok());
    let elsewhere = attempt.and_then(|attempt: u32| progress.outputs.get(&attempt));
    elsewhere.map_or_else(|| folder.to_owned(), |folder| PathBuf::from(folder.to_os()))
}

/// What a joblog says. One that is not there yet says nothing, as for GNU parallel.
fn read_joblog(path: &Path) -> Result<Progress> {
    if !path.exists() {
        return Ok(Progress::default());
    }
    let read = joblog::read(path).with_context(|| format!("cannot read the joblog `{}`", path.display()));
    let (progress, damage) = read?;
    name_damage(&format!("the joblog `{}`", path.display()), &damage);
    Ok(progress)
}

/// Rows of the record that the joblog lacks.
fn missing_rows(folder: &Path, path: &Path, left: &Left, plan: &Plan) -> Result<Vec<u8>> {
    let logged = if path.is_file() { joblog::read(path)?.0.done } else { JobSet::default() };
    let waits = |job: u64| left.unshown.iter().any(|finished| finished.job == job);
    let mut rows = Vec::new();
    for number in folder::attempts(folder)? {
        each(&folder.join(folder::attempt_name(number)), |row| {
            if let Row::Ended(ended) = row
                && !logged.contains(ended.job)
                && (!plan.record.by_joblog || waits(ended.job))
            {
                joblog::encode(&ended, command_of(&ended.args, ended.job, 1, plan).as_bytes(), &mut rows);
            }
        })?;
    }
    Ok(rows)
}

/// A job's command for the joblog; the command alone where arguments are kept out.
pub(super) fn command_of(args: &[Text], number: u64, slot: u32, plan: &Plan) -> String {
    if plan.record.redact || args.is_empty() {
        return plan.record.words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    }
    let columns: Vec<_> = args.iter().map(Text::to_os).collect();
    plan.template.display(&Job { columns: &columns, number, slot, ..Job::default() })
}

fn name_damage(what: &str, damage: &Damage) {
    if damage.any() {
        say(&format!("{what} is damaged: {damage}"));
    }
}
