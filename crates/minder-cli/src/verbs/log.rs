//! `minder log`: shows the records of runs.
//!
//! Only `--prune` changes records. A damaged record is read as far as possible, and a message on
//! stderr names it. A run that cannot be read does not hide the others.

mod follow;
mod jobs;
mod prune;
mod runs;
mod sql;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::export::rows::Format;
use crate::flags::LogFlags;
use crate::report::{message, os_error_text};
use minder_record::reader::{self, Corruption, Run};
use minder_record::store::{self, RunEntry};

/// The number of runs in a table.
const LISTED_MAX: usize = 20;
/// The name of the newest run.
const LAST: &str = "last";

/// Shows what the flags ask for.
pub(crate) fn run(out: &mut dyn Write, flags: &LogFlags) -> Result<()> {
    let root = store::state_root()?;
    if flags.dry_run && !flags.prune {
        bail!("`--dry-run` requires `--prune`");
    }
    if flags.prune {
        return prune::run(out, &root, flags.dry_run);
    }
    let format = match (flags.json, flags.csv) {
        (true, _) => Some(Format::Json),
        (_, true) => Some(Format::Csv),
        _ => None,
    };
    let selected = flags.run.as_deref().or((flags.failed || flags.follow).then_some(LAST));
    if let Some(path) = &flags.sqlite {
        return sql::write(&selected_runs(&root, selected, flags.number)?, path);
    }
    if let Some(query) = &flags.sql {
        return sql::answer(out, &selected_runs(&root, selected, flags.number)?, query, format);
    }
    let Some(name) = selected else {
        let number = flags.number.unwrap_or(if format.is_some() { usize::MAX } else { LISTED_MAX });
        return runs::list(out, &root, number, format);
    };
    let dir = find(&root, name)?;
    if flags.follow {
        return follow::run(out, &dir, format, flags.failed);
    }
    jobs::list(out, &dir, format, flags.failed)
}

/// Returns the directory of the run with this id, prefix of an id, or `last`.
fn find(root: &Path, name: &str) -> Result<PathBuf> {
    if name != LAST {
        return Ok(store::find(root, name)?);
    }
    let newest = store::list(root)?.into_iter().next();
    newest.map(|run| run.dir).with_context(|| store::no_runs_text(root))
}

/// Returns the directories of the selected run, or of the newest runs.
fn selected_runs(root: &Path, name: Option<&str>, number: Option<usize>) -> Result<Vec<PathBuf>> {
    match name {
        Some(name) => Ok(vec![find(root, name)?]),
        None => {
            let runs = store::list(root)?.into_iter().take(number.unwrap_or(usize::MAX));
            Ok(runs.map(|run: RunEntry| run.dir).collect())
        }
    }
}

/// Returns the id of a run, which is the name of its directory.
fn run_id(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads a run. Prints a message for each damaged file of its record.
fn read_run(dir: &Path) -> Result<Run> {
    let id = run_id(dir);
    let run = reader::read_run(dir).with_context(|| format!("cannot read the record of run {id}"))?;
    if let Err(why) = &run.manifest {
        message(&format!("run {id} is damaged: {}", one_line(&why.to_string())));
    }
    for attempt in &run.attempts {
        let error = attempt.error.as_ref().map(os_error_text);
        if let Some(why) = damage_text(attempt.number, &attempt.corruption, error.as_deref(), run.alive) {
            message(&format!("run {id} is damaged: {why}"));
        }
    }
    Ok(run)
}

/// Describes the damage to a journal, if there is any. While a journal is being written, its last line
/// may be incomplete.
fn damage_text(attempt: u32, damage: &Corruption, error: Option<&str>, alive: bool) -> Option<String> {
    let name = store::attempt_name(attempt);
    if let Some(error) = error {
        return Some(format!("{name}: {}", one_line(error)));
    }
    let mut parts = Vec::new();
    if let Some(first) = damage.first_bad_line {
        let more = match damage.bad_lines {
            0 | 1 => String::new(),
            lines => format!(" and {} more", lines - 1),
        };
        parts.push(format!("line {first}{more} cannot be read"));
    }
    if damage.torn_tail && !alive {
        parts.push("its last line is incomplete".to_owned());
    }
    if parts.is_empty() { None } else { Some(format!("{name}: {}", parts.join(", "))) }
}

fn one_line(text: &str) -> String {
    crate::ui::table::escape(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_text_describes_a_journal() {
        let damage = Corruption { torn_tail: true, bad_lines: 3, first_bad_line: Some(17) };
        let expected = "attempt-2.jsonl: line 17 and 2 more cannot be read, its last line is incomplete";
        assert_eq!(damage_text(2, &damage, None, false).as_deref(), Some(expected));
        let torn = Corruption { torn_tail: true, ..Corruption::default() };
        assert_eq!(damage_text(1, &torn, None, true), None);
        assert_eq!(damage_text(1, &Corruption::default(), None, false), None);
        assert_eq!(damage_text(1, &torn, Some("a\nb"), true).as_deref(), Some(r"attempt-1.jsonl: a\nb"));
    }
}
