//! `minder log`: shows the records of runs.
//!
//! Only `--prune` changes records. A damaged record is read as far as possible, and a message on
//! stderr names it. A run that cannot be read does not hide the others.

mod select;
mod prune;
mod runs;
mod request;
mod jobs;
mod junit;
mod stored;
mod job;
mod follow;
mod sql;

use std::io::Write;

use anyhow::{Result, bail};

use self::jobs::Filter;
pub(in crate::commands) use self::jobs::print_running;
pub(in crate::commands) use self::runs::{RunCounts, run_text, seconds};
use self::select::selected_runs;
pub(in crate::commands) use self::select::{LAST, damage_text, find, last_here, run_id};
use self::stored::Stream;
use crate::flags::LogFlags;
use minder_record::store;
use minder_ui::rows::Format;

/// The number of runs in a table.
const LISTED_MAX: usize = 20;
/// Shows what the flags ask for.
pub(crate) fn run(out: &mut dyn Write, flags: &LogFlags) -> Result<()> {
    let root = store::state_root()?;
    if flags.dry_run && !flags.prune {
        bail!("`--dry-run` requires `--prune`");
    }
    if flags.prune {
        return prune::run(out, &root, flags.dry_run);
    }
    if let (Some(run), Some(_)) = (&flags.run, flags.number) {
        bail!("`--number` limits the list of runs: leave it out, or name a job, as in `minder log {run} 1`");
    }
    let format = match (flags.json, flags.csv) {
        (true, _) => Some(Format::Json),
        (_, true) => Some(Format::Csv),
        _ => None,
    };
    let of_one_run = flags.failed || flags.slow.is_some() || flags.matching.is_some();
    let of_one_run = of_one_run || flags.follow || flags.junit;
    let selected = flags.run.as_deref().or(of_one_run.then_some(LAST));
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
    let filter = Filter::of(flags);
    if let Some(number) = flags.job {
        if flags.stdout || flags.stderr {
            let stream = if flags.stdout { Stream::Stdout } else { Stream::Stderr };
            return stored::print(out, &dir, number, stream, flags.attempt);
        }
        if flags.attempt.is_some() {
            bail!("`--attempt` requires `--stdout` or `--stderr`");
        }
        return job::show(out, &dir, number, format);
    }
    if flags.junit {
        return junit::write(out, &dir, &filter);
    }
    if flags.follow {
        return follow::run(out, &dir, format, &filter);
    }
    jobs::list(out, &dir, format, &filter)
}
