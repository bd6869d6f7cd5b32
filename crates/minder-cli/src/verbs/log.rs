//! `minder log`: what was run, from the records that runs leave.
//!
//! Nothing here changes a record, but for `--prune`. What is damaged is read as far as it goes and
//! named on stderr; one run that cannot be read is no reason to say nothing of the others.

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
use crate::report::{format_error, message, os_error_text};
use minder_record::reader::{self, Corruption, Run};
use minder_record::store::{self, RunEntry};

/// How many runs a table lists.
const LISTED: usize = 20;
/// The word for the newest run.
const LAST: &str = "last";

/// Shows what the flags ask for.
pub(crate) fn run(out: &mut dyn Write, flags: &LogFlags) -> Result<()> {
    let root = store::state_root()?;
    if flags.dry_run && !flags.prune {
        bail!("`--dry-run` is for `--prune`");
    }
    if flags.prune {
        return prune::run(out, &root, flags.dry_run);
    }
    let format = match (flags.json, flags.csv) {
        (true, _) => Some(Format::Json),
        (_, true) => Some(Format::Csv),
        _ => None,
    };
    let one = flags.run.as_deref().or((flags.failed || flags.follow).then_some(LAST));
    if let Some(path) = &flags.sqlite {
        return sql::write(&chosen(&root, one, flags.number)?, path);
    }
    if let Some(query) = &flags.sql {
        return sql::answer(out, &chosen(&root, one, flags.number)?, query, format);
    }
    let Some(word) = one else {
        let number = flags.number.unwrap_or(if format.is_some() { usize::MAX } else { LISTED });
        return runs::list(out, &root, number, format);
    };
    let folder = find(&root, word)?;
    if flags.follow {
        return follow::run(out, &folder, format, flags.failed);
    }
    jobs::list(out, &folder, format, flags.failed)
}

/// The folder of a run that was named.
fn find(root: &Path, word: &str) -> Result<PathBuf> {
    if word != LAST {
        return store::find(root, word);
    }
    let newest = store::list(root)?.into_iter().next();
    newest.map(|found| found.folder).with_context(|| store::none(root))
}

/// The folders of the runs that tables are made of.
fn chosen(root: &Path, one: Option<&str>, number: Option<usize>) -> Result<Vec<PathBuf>> {
    match one {
        Some(word) => Ok(vec![find(root, word)?]),
        None => {
            let found = store::list(root)?.into_iter().take(number.unwrap_or(usize::MAX));
            Ok(found.map(|found: RunEntry| found.folder).collect())
        }
    }
}

/// The id of a run: the name of its folder.
fn id(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads a run, and says what is wrong with its record.
fn read(folder: &Path) -> Result<Run> {
    let run =
        reader::read_run(folder).with_context(|| format!("cannot read the record of run {}", id(folder)))?;
    let id = id(folder);
    if let Err(why) = &run.manifest {
        message(&format!("run {id} is damaged: {}", one_line(&format_error(why))));
    }
    for attempt in &run.attempts {
        let error = attempt.error.as_ref().map(os_error_text);
        if let Some(why) = wrong(attempt.number, &attempt.damage, error.as_deref(), run.alive) {
            message(&format!("run {id} is damaged: {why}"));
        }
    }
    Ok(run)
}

/// What is wrong with a journal, in few words. Of one that is being written the last line may not
/// be whole yet.
fn wrong(attempt: u32, damage: &Corruption, error: Option<&str>, alive: bool) -> Option<String> {
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
        parts.push("its last line is not whole".to_owned());
    }
    (!parts.is_empty()).then(|| format!("{name}: {}", parts.join(", ")))
}

fn one_line(text: &str) -> String {
    crate::ui::table::escape(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_told_in_few_words() {
        let damage = Corruption { torn_tail: true, bad_lines: 3, first_bad_line: Some(17) };
        let wanted = "attempt-2.jsonl: line 17 and 2 more cannot be read, its last line is not whole";
        assert_eq!(wrong(2, &damage, None, false).as_deref(), Some(wanted));
        let torn = Corruption { torn_tail: true, ..Corruption::default() };
        assert_eq!(wrong(1, &torn, None, true), None);
        assert_eq!(wrong(1, &Corruption::default(), None, false), None);
        assert_eq!(wrong(1, &torn, Some("a\nb"), true).as_deref(), Some(r"attempt-1.jsonl: a\nb"));
    }
}
