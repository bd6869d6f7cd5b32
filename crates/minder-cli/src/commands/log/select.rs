//! Selects the runs to show, and reads their records.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use minder_record::lookup;
use minder_record::manifest::Manifest;
use minder_record::reader::{self, Corruption, Run};
use minder_record::store::{self, RunEntry};

use crate::ui::{message, os_error_text};

/// The name of the newest run.
pub(in crate::commands) const LAST: &str = "last";

/// Returns the directory of the run with this id, prefix of an id, or `last`.
pub(in crate::commands) fn find(root: &Path, name: &str) -> Result<PathBuf> {
    if name != LAST {
        return Ok(lookup::find(root, name)?);
    }
    let newest = store::list(root)?.into_iter().next();
    newest.map(|run| run.dir).with_context(|| store::no_runs_text(root))
}

/// Returns the newest run that was started in this directory.
pub(in crate::commands) fn last_here(root: &Path) -> Result<Option<RunEntry>> {
    let cwd = std::env::current_dir().unwrap_or_default();
    let is_here = |manifest: &Manifest| Path::new(&manifest.cwd.to_os()) == cwd;
    Ok(store::list(root)?.into_iter().find(|run| run.manifest.as_ref().is_ok_and(is_here)))
}

/// Returns the directories of the selected run, or of the newest runs.
pub(super) fn selected_runs(root: &Path, name: Option<&str>, number: Option<usize>) -> Result<Vec<PathBuf>> {
    match name {
        Some(name) => Ok(vec![find(root, name)?]),
        None => {
            let runs = store::list(root)?.into_iter().take(number.unwrap_or(usize::MAX));
            Ok(runs.map(|run: RunEntry| run.dir).collect())
        }
    }
}

/// Returns the id of a run, which is the name of its directory.
pub(in crate::commands) fn run_id(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads a run. Prints a message for each damaged file of its record.
pub(super) fn read_run(dir: &Path) -> Result<Run> {
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
    for (key, error) in &run.unreadable {
        message(&format!("run {id} is damaged: agent {key}: {}", one_line(&os_error_text(error))));
    }
    for agent in &run.agents {
        let error = agent.error.as_ref().map(os_error_text);
        let damage =
            if run.alive { Corruption { torn_tail: false, ..agent.corruption } } else { agent.corruption };
        let why = error.or_else(|| damage.any().then(|| damage.to_string()));
        if let Some(why) = why {
            message(&format!("run {id} is damaged: agent {}: {}", agent.key, one_line(&why)));
        }
    }
    Ok(run)
}

/// Describes the damage to a journal, if there is any. While a journal is being written, its last
/// line may be incomplete.
pub(in crate::commands) fn damage_text(
    attempt: u32,
    damage: &Corruption,
    error: Option<&str>,
    alive: bool,
) -> Option<String> {
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

pub(super) fn one_line(text: &str) -> String {
    minder_ui::table::escape(text.as_bytes())
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
