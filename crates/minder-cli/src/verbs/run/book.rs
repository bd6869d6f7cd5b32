//! The record of a run while it is written: the journal, and a joblog beside it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use minder::Stream;
use minder::os::open_plain;

use super::again::Again;
use super::output::{Finished, Own, Piece, Place, Store};
use crate::journal::joblog::{self, Joblog};
use crate::journal::manifest::{Manifest, Source};
use crate::journal::merge::Progress;
use crate::journal::read::Damage;
use crate::journal::row::{Over, Row, Shown};
use crate::journal::write::{Record, output_path};
use crate::journal::{line, prune};
use crate::plan::{Origin, Plan};
use crate::report::{explain, reason, say};
use crate::template::{Job, Template};

/// Where rows go.
#[derive(Debug, Default)]
pub(super) struct Book {
    record: Option<Record>,
    joblog: Option<Joblog>,
    sync: bool,
}

/// What earlier attempts left.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) again: Arc<Again>,
    pub(super) unshown: Vec<Finished>,
}

impl Left {
    /// Reads the record of the run that is taken up, or a joblog.
    pub(super) fn read(plan: &Plan) -> Result<Self> {
        let Some(mode) = plan.record.mode else { return Ok(Self::default()) };
        match (&plan.record.run, &plan.record.joblog) {
            (Some(folder), _) => {
                let (mut progress, damaged) = Progress::of_run(folder, !plan.record.redact)?;
                for (attempt, damage) in &damaged {
                    name_damage(
                        &format!("attempt {attempt} of the record in `{}`", folder.display()),
                        damage,
                    );
                }
                let unshown = unshown(folder, &mut progress, plan)?;
                Ok(Self { again: Arc::new(Again::new(mode, progress)), unshown })
            }
            (None, Some(path)) => {
                let (progress, damage) = joblog::read(path)
                    .with_context(|| format!("cannot read the joblog `{}`", path.display()))?;
                name_damage(&format!("the joblog `{}`", path.display()), &damage);
                Ok(Self { again: Arc::new(Again::new(mode, progress)), unshown: Vec::new() })
            }
            (None, None) => Ok(Self::default()),
        }
    }
}

impl Book {
    /// Opens the record of this run, and reads what earlier attempts left.
    pub(super) fn open(plan: &Plan) -> Result<(Self, Left)> {
        let mut book = Self { sync: plan.record.sync, ..Self::default() };
        if let Some(folder) = &plan.record.run {
            // Locked first, so that nobody writes to what is read.
            book.record = Some(Record::resume(folder, plan.record.sync)?);
        }
        let left = Left::read(plan)?;
        if let Some(root) = plan.record.root.as_ref().filter(|_| book.record.is_none()) {
            match create(root, plan) {
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
        if let Some(path) = &plan.record.joblog {
            let opened = Joblog::open(path, plan.record.mode.is_some());
            let joblog = opened.with_context(|| format!("cannot write the joblog `{}`", path.display()))?;
            if joblog.was_cut() {
                say(&format!("the last row of the joblog `{}` was torn, and is dropped", path.display()));
            }
            book.joblog = Some(joblog);
        }
        Ok((book, left))
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

    /// The folder for output that waits.
    pub(super) fn folder(&self, plan: &Plan) -> PathBuf {
        match (&plan.tmpdir, &self.record) {
            (Some(folder), _) => folder.clone(),
            (None, Some(record)) => record.folder().to_owned(),
            (None, None) => std::env::temp_dir(),
        }
    }

    /// What names of files with output begin with, where they have names: those of `kind`, of one loop.
    pub(super) fn name(&self, plan: &Plan, kind: &str, place: usize) -> Option<String> {
        // In a folder of the user's choice nothing is left behind.
        let record = self.record.as_ref().filter(|_| plan.tmpdir.is_none())?;
        Some(format!("{kind}-{}-{place}", record.attempt()))
    }

    /// A loop's file for small outputs.
    pub(super) fn store(&self, plan: &Plan, place: usize) -> Store {
        Store::new(&self.folder(plan), self.name(plan, "out", place))
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
    pub(super) fn close(&self, over: Over, shown: bool, plan: &Plan) {
        if let Some(record) = self.record.as_ref().filter(|_| shown) {
            record.remove_outputs();
        }
        let mut rows = Vec::new();
        line::encode(&Row::Over(over), &mut rows);
        let closed = self.append(&rows);
        if let Some(root) = plan.record.root.as_deref().filter(|_| self.is_kept() && closed.is_ok()) {
            // Old runs are of no concern to this one.
            let _ = prune::prune_daily(root);
        }
    }
}

/// Begins a new record.
fn create(root: &Path, plan: &Plan) -> Result<Record> {
    let (input, arguments) = match &plan.input {
        _ if plan.record.redact => {
            (Source::Lost { why: "arguments were to be kept out of its record".to_owned() }, &[][..])
        }
        Origin::Words(words) => (Source::arguments(), words.as_slice()),
        Origin::File(path) => (Source::file(path)?, &[][..]),
        Origin::Stdin => (of_stdin(), &[][..]),
    };
    let mut manifest = Manifest::new(&plan.record.cwd, &plan.record.words, input);
    let typed: Vec<_> =
        plan.record.typed.iter().map(|word| crate::journal::row::Text::from(word.as_os_str())).collect();
    manifest.flags.insert("typed".to_owned(), serde_json::to_value(typed)?);
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
        let columns: Vec<_> =
            all_args.remove(&job).unwrap_or_default().iter().map(crate::journal::row::Text::to_os).collect();
        let tag = plan.tag.as_ref().map(|tag| tag_of(tag, &Job { columns: &columns, number: job, slot: 1 }));
        let mut finished = Finished { job, tag, pieces: Vec::new(), owed: true };
        for piece in pieces {
            let path = output_path(folder, &piece.file)?;
            let range = piece.at..piece.at + piece.len;
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
                Place::Own(Own { file: None, path: Some(path), range })
            };
            finished.pieces.push(Piece { stream, place });
        }
        found.push(finished);
    }
    Ok(found)
}

/// What each line of a job begins with.
pub(super) fn tag_of(tag: &Template, job: &Job<'_>) -> Box<[u8]> {
    // A column that is not there is told when the command asks for it.
    let words = tag.argv(job).unwrap_or_default();
    let mut text = words.first().map(|word| word.as_encoded_bytes().to_vec()).unwrap_or_default();
    text.push(b'\t');
    text.into_boxed_slice()
}

fn name_damage(what: &str, damage: &Damage) {
    if damage.any() {
        say(&format!("{what} is damaged: {damage}"));
    }
}
