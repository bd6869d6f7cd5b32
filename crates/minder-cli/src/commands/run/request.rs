//! The run that is resumed, and the flags of the new attempt.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;
use minder_cluster::round;
use minder_record::reader::attempt_finished;
use minder_record::store;
use minder_runner::config::ResumeMode;

use crate::commands::log::{LAST, find, last_here, run_id};
use crate::flags::{AttachFlags, AttemptFlags, Flags, OnInterrupt, RunFlags, Verb, resume_error_line};
use crate::recorded::command_text;
use crate::run_agents::is_detached;

/// A run to resume by its id, and the flags of this attempt.
#[derive(Debug)]
pub(crate) struct ResumeRequest {
    /// The id, the beginning of one, or `last`. Without it, the last run of this directory.
    name: Option<String>,
    pub(super) mode: ResumeMode,
    /// The flags that were typed, which follow those of the record.
    pub(super) typed: Vec<OsString>,
    pub(super) skip_lost: bool,
    pub(super) dry_run: bool,
    /// `true` if the run is named before its jobs start.
    pub(super) announces: bool,
    /// `true` if no job is started: agents do that.
    pub(super) attaches: bool,
}

impl ResumeRequest {
    /// Returns what `minder resume` or `minder retry` asks for.
    ///
    /// # Errors
    /// The name of the run is not UTF-8.
    pub(super) fn new(flags: AttemptFlags, mode: ResumeMode) -> Result<Self> {
        let AttemptFlags { run, dry_run, skip_lost, typed } = flags;
        let name = run.map(|run| name_of(&run)).transpose()?;
        Ok(Self { name, mode, typed: typed.0, skip_lost, dry_run, announces: true, attaches: false })
    }

    /// Returns what `minder attach` asks for.
    ///
    /// # Errors
    /// No run is named, and there is none with agents and without an end.
    pub(super) fn of_attach(flags: &AttachFlags) -> Result<Self> {
        let name = match &flags.run {
            Some(name) => name.clone(),
            None => run_id(&detached_run(&store::state_root()?)?),
        };
        let mut typed: Vec<OsString> = Vec::new();
        typed.extend(flags.bar.then(|| "--bar".into()));
        typed.extend(flags.quiet.then(|| "--quiet".into()));
        typed.extend(flags.on_interrupt.map(|how| match how {
            OnInterrupt::Ask => "--on-interrupt=ask".into(),
            OnInterrupt::Cancel => "--on-interrupt=cancel".into(),
            OnInterrupt::Detach => "--on-interrupt=detach".into(),
        }));
        Ok(Self {
            name: Some(name),
            mode: ResumeMode::Rest,
            typed,
            skip_lost: false,
            dry_run: false,
            announces: true,
            attaches: true,
        })
    }

    /// Returns what `minder run --resume` asks for. `typed` are its flags before the run.
    ///
    /// # Errors
    /// There is more than a run and flags, or the record is not to be used.
    pub(super) fn of_run(flags: &RunFlags, mut typed: Vec<OsString>, mode: ResumeMode) -> Result<Self> {
        let record = &flags.record;
        if record.no_record {
            bail!("a run is resumed from its record: --no-record is not possible");
        }
        let given = [&record.resume, &record.resume_failed, &record.retry_failed];
        let given = given.into_iter().flatten().find(|name| !name.is_empty());
        let (name, more) = match (given, flags.words.split_first()) {
            (Some(name), _) => (Some(name), flags.words.as_slice()),
            (None, Some((name, more))) => (Some(name), more),
            (None, None) => (None, &[][..]),
        };
        let name = name.map(|name| name_of(name)).transpose()?;
        let mut dry_run = record.dry_run;
        let mut skip_lost = record.skip_lost;
        if !more.is_empty() {
            let more = flags_after(more)?;
            dry_run |= more.dry_run;
            skip_lost |= more.skip_lost;
            typed.extend(more.typed.0);
        }
        let announces = name.as_ref().is_none_or(|name| name == LAST);
        Ok(Self { name, mode, typed, skip_lost, dry_run, announces, attaches: false })
    }

    /// Returns the directory of the run.
    ///
    /// # Errors
    /// There is no such run, or several.
    pub(super) fn find_run(&self) -> Result<PathBuf> {
        let root = store::state_root()?;
        match &self.name {
            Some(name) => find(&root, name),
            None => default_run(&root),
        }
    }
}

fn name_of(name: &OsStr) -> Result<String> {
    match name.to_str() {
        Some(name) => Ok(name.to_owned()),
        None => bail!("invalid run id `{}`: expected up to 8 hexadecimal digits", name.display()),
    }
}

/// Parses flags that follow the name of a run.
fn flags_after(words: &[OsString]) -> Result<AttemptFlags> {
    let line: Vec<OsString> =
        ["minder", "resume"].map(OsString::from).into_iter().chain(words.iter().cloned()).collect();
    let flags = Flags::try_parse_from(&line)
        .map_err(|error| anyhow!(resume_error_line(&error, &Flags::interface(), &line[1..])))?;
    match flags.verb {
        Verb::Resume(flags) if flags.attempt.run.is_none() && !flags.failed => Ok(flags.attempt),
        _ => bail!(
            "a run is resumed by its id, without a command: minder run [FLAGS] --resume RUN (`minder log` \
             lists the ids); with --joblog FILE, repeat its command and arguments"
        ),
    }
}

/// Returns the newest run on which agents work, or else the newest one on agents that is not complete.
fn detached_run(root: &Path) -> Result<PathBuf> {
    let mut runs = store::list(root)?;
    runs.retain(|run| round::newest(&run.dir).is_ok_and(|round| round.is_some()));
    let working = runs.iter().position(|run| is_detached(&run.dir));
    let index = working.or_else(|| runs.iter().position(|run| !is_complete(&run.dir)));
    let index =
        index.context("no run on agents is without an end (`minder attach RUN` shows what is left of one)");
    Ok(runs.swap_remove(index?).dir)
}

/// Returns whether the last attempt at a run has recorded that nothing is left.
fn is_complete(run: &Path) -> bool {
    let last = store::last_attempt(run).unwrap_or(0);
    attempt_finished(&run.join(store::attempt_name(last))).is_some_and(|finished| finished.why.is_none())
}

/// Returns the last run of this directory.
fn default_run(root: &Path) -> Result<PathBuf> {
    if let Some(run) = last_here(root)? {
        return Ok(run.dir);
    }
    let last = store::list(root)?.into_iter().next().with_context(|| store::no_runs_text(root))?;
    let id = run_id(&last.dir);
    match last.manifest {
        Ok(manifest) => bail!(
            "no run of this directory is recorded; the last run of all is {id}: {} (in `{}`)",
            command_text(&manifest.words),
            manifest.cwd
        ),
        Err(_) => bail!("no run of this directory is recorded; the last run of all is {id}"),
    }
}
