//! Lists all runs, newest first, one per line.
//!
//! The journal of a run may be long. If the run has a single attempt that finished, the last line of
//! its journal contains all counts. Otherwise the finished jobs are counted while the journal is read,
//! in bounded memory.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;

use super::select::damage_text;
use crate::export::rows::{Format, RUNS, Rows, RunFacts};
use crate::ui::format::{local_zone, relative_date};
use crate::ui::table::{Column, Table};
use crate::ui::{message, os_error_text, time};
use minder_record::event::{AttemptFinished, JournalEvent};
use minder_record::manifest::InputSource;
use minder_record::reader::{self, Corruption, read_journal};
use minder_record::run_state::JobSet;
use minder_record::store::{self, RunEntry, attempt_name};

/// The minimum number of digits of an abbreviated id.
const DIGITS_MIN: usize = 4;

/// Lists the newest runs, at most `number`.
pub(super) fn list(out: &mut dyn Write, root: &Path, number: usize, format: Option<Format>) -> Result<()> {
    let found = store::list(root)?;
    let ids: Vec<String> = found.iter().map(|run| run.id.clone()).collect();
    let facts = found.iter().take(number).map(|run| {
        let (facts, damage) = facts(run, &ids);
        damage.iter().for_each(|why| message(&format!("run {} is damaged: {why}", run.id)));
        facts
    });
    if let Some(format) = format {
        let mut rows = Rows::of(out, format, &RUNS)?;
        for facts in facts {
            rows.row(&facts.values())?;
        }
        return Ok(());
    }
    if found.is_empty() {
        message(&store::no_runs_text(root));
        return Ok(());
    }
    let right = ["jobs", "failed", "elapsed"].map(Column::right);
    let mut columns = vec![Column::left("run"), Column::left("when"), Column::truncated("command")];
    columns.extend(right);
    columns.push(Column::left(""));
    let (now, zone) = (Timestamp::now(), local_zone());
    let mut table = Table::new(out, columns);
    for facts in facts {
        table.row(&[
            facts.run.clone(),
            facts.at.map_or_else(String::new, |at| relative_date(at, now, &zone)),
            command_line(&facts),
            facts.jobs.to_string(),
            facts.failed.to_string(),
            facts.elapsed.map_or_else(String::new, |elapsed| time(seconds(elapsed))),
            facts.note.as_ref().map_or_else(String::new, |note| format!("({note})")),
        ])?;
    }
    Ok(table.finish()?)
}

/// Converts seconds from a file. An invalid number becomes zero.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn command_line(facts: &RunFacts) -> String {
    let args: Vec<String> = facts.command.iter().map(ToString::to_string).collect();
    args.join(" ")
}

/// Returns the facts about a run, and the damage to its record. `ids` are those of all runs.
pub(super) fn facts(run: &RunEntry, ids: &[String]) -> (RunFacts, Vec<String>) {
    // Checked first: if the run finishes meanwhile, the last line of its journal is read below.
    let alive = store::is_alive(&run.dir);
    let (count, mut damage) = RunCounts::of(&run.dir, alive);
    let mut facts = RunFacts { run: run.id.clone(), at: Some(run.at), ..RunFacts::default() };
    (facts.jobs, facts.failed, facts.elapsed) = (count.jobs, count.failed, count.elapsed);
    match &run.manifest {
        Ok(manifest) => facts.command = manifest.words.clone(),
        Err(why) => damage.insert(0, super::select::one_line(&why.to_string())),
    }
    let left = match run.manifest.as_ref().map(|manifest| &manifest.input) {
        // Each argument is a job.
        Ok(InputSource::Arguments { jobs: Some(all), .. }) => all.checked_sub(count.jobs),
        // As the last attempt reported.
        _ => count.finished.as_ref().and_then(|over| over.not_run),
    };
    let more = match left.filter(|left| *left > 0) {
        Some(left) => format!(", {left} not run"),
        None => String::new(),
    };
    let hint = format!(": minder run --resume {}", unique_prefix(&run.id, ids));
    (facts.state, facts.note) = match count.finished {
        _ if alive => ("running", Some("running".to_owned())),
        None => ("killed", Some(format!("killed{more}{hint}"))),
        Some(AttemptFinished { why: Some(why), .. }) => ("over", Some(format!("{why}{more}{hint}"))),
        Some(_) => ("over", None),
    };
    if let Some(why) = damage.first() {
        // The full text is too long for a table.
        let why = if run.manifest.is_err() { "its manifest cannot be read" } else { why };
        facts.state = if alive { "running" } else { "damaged" };
        facts.note = Some([facts.note.unwrap_or_default(), format!("damaged: {why}")].join("; "));
        facts.note = facts.note.map(|note| note.trim_start_matches("; ").to_owned());
    }
    (facts, damage)
}

/// Returns the shortest unique prefix of an id.
fn unique_prefix(id: &str, ids: &[String]) -> String {
    let is_unique = |len: &usize| ids.iter().filter(|other| other.starts_with(&id[..*len])).count() <= 1;
    let len = (DIGITS_MIN.min(id.len())..id.len()).find(is_unique).unwrap_or(id.len());
    id[..len].to_owned()
}

/// The totals of a run's journals.
#[derive(Debug, Default, PartialEq)]
struct RunCounts {
    jobs: u64,
    failed: u64,
    elapsed: Option<f64>,
    /// The end of the last attempt, unless it was killed.
    finished: Option<AttemptFinished>,
}

impl RunCounts {
    /// Returns the totals of a run's attempts, and the damage to their journals.
    fn of(folder: &Path, alive: bool) -> (Self, Vec<String>) {
        let attempts = match store::attempts(folder) {
            Ok(attempts) => attempts,
            Err(error) => return (Self::default(), vec![os_error_text(&error)]),
        };
        if let [one] = attempts.as_slice()
            && let Some(over) = reader::attempt_finished(&folder.join(attempt_name(*one)))
        {
            let (jobs, failed, elapsed) = (over.succeeded + over.failed, over.failed, Some(over.elapsed));
            return (Self { jobs, failed, elapsed, finished: Some(over) }, Vec::new());
        }
        let mut sum = Self::default();
        let (mut done, mut failed) = (JobSet::default(), JobSet::default());
        let mut damage = Vec::new();
        for number in attempts {
            sum.finished = None;
            let (mut begun, mut last) = (None, None);
            let path = folder.join(attempt_name(number));
            let result = read_journal(&path, |event| match event {
                JournalEvent::AttemptStarted(row) => begun = Some(row.at),
                JournalEvent::JobFinished(row) => {
                    done.insert(row.job);
                    if row.succeeded() {
                        failed.remove(row.job)
                    } else {
                        failed.insert(row.job)
                    };
                    last = Some(row.at + row.wall);
                }
                JournalEvent::AttemptFinished(row) => sum.finished = Some(row),
                JournalEvent::OutputShown(_) | JournalEvent::OutputLost(_) | JournalEvent::OutputDir(_) => (),
            });
            let cut = || Some((last? - begun?).max(0.0));
            if let Some(took) = sum.finished.as_ref().map_or_else(cut, |over| Some(over.elapsed)) {
                *sum.elapsed.get_or_insert(0.0) += took;
            }
            damage.extend(match result {
                Ok(corruption) => damage_text(number, &corruption, None, alive),
                Err(error) => {
                    damage_text(number, &Corruption::default(), Some(&os_error_text(&error)), alive)
                }
            });
        }
        (sum.jobs, sum.failed) = (done.len(), failed.len());
        (sum, damage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minder_record::codec::encode;
    use minder_record::event::{AttemptStarted, JobFinished};

    fn ended(job: u64, exit: i32) -> JournalEvent {
        JournalEvent::JobFinished(JobFinished {
            job,
            at: 100.0 + job as f64,
            wall: 2.0,
            exit: Some(exit),
            ..JobFinished::default()
        })
    }

    fn begun(attempt: u32) -> JournalEvent {
        JournalEvent::AttemptStarted(AttemptStarted {
            version: "1".into(),
            run: "61c0aa00".into(),
            attempt,
            pid: 1,
            at: 100.0,
        })
    }

    fn over(why: Option<&str>) -> JournalEvent {
        let why = why.map(str::to_owned);
        JournalEvent::AttemptFinished(AttemptFinished {
            succeeded: 1,
            failed: 1,
            elapsed: 9.0,
            cpu: 1.0,
            why,
            ..AttemptFinished::default()
        })
    }

    fn write(folder: &Path, attempt: u32, events: &[JournalEvent], rest: &[u8]) {
        let mut text = Vec::new();
        for event in events {
            encode(event, &mut text);
        }
        text.extend_from_slice(rest);
        std::fs::write(folder.join(attempt_name(attempt)), text).expect("write journal");
    }

    fn found(folder: &Path) -> RunEntry {
        RunEntry {
            id: "61c0aa00".into(),
            dir: folder.to_owned(),
            at: 5.0,
            manifest: Err(std::io::Error::other("gone").into()),
        }
    }

    #[test]
    fn counts_come_from_a_complete_last_line() {
        let folder = tempfile::tempdir().expect("create temp dir");
        let mut rows = vec![begun(1)];
        rows.extend((1..200).map(|job| ended(job, 0)));
        rows.push(over(None));
        write(folder.path(), 1, &rows, b"");
        let (count, damage) = RunCounts::of(folder.path(), false);
        assert_eq!((count.jobs, count.failed, count.elapsed), (2, 1, Some(9.0)));
        assert_eq!(damage, [""; 0]);
        // Not the last line: all jobs are counted.
        write(folder.path(), 1, &rows, b"{\"ev");
        let (count, damage) = RunCounts::of(folder.path(), false);
        assert_eq!((count.jobs, count.failed), (199, 0));
        assert_eq!(damage, ["attempt-1.jsonl: its last line is incomplete"]);
    }

    #[test]
    fn counts_use_the_last_result_of_each_job() {
        let folder = tempfile::tempdir().expect("create temp dir");
        write(folder.path(), 1, &[begun(1), ended(1, 0), ended(2, 1), ended(3, 1)], b"");
        write(folder.path(), 2, &[begun(2), ended(2, 0), ended(4, 0), over(Some("halted"))], b"");
        let (count, _) = RunCounts::of(folder.path(), false);
        assert_eq!((count.jobs, count.failed, count.elapsed), (4, 1, Some(14.0)));
        let (facts, damage) = facts(&found(folder.path()), &["61c0aa00".into(), "61c0ab00".into()]);
        assert_eq!(damage, ["gone"]);
        assert_eq!(facts.state, "damaged");
        assert_eq!(
            facts.note.as_deref(),
            Some("halted: minder run --resume 61c0aa; damaged: its manifest cannot be read")
        );
    }

    #[test]
    fn run_without_an_end_was_killed() {
        let folder = tempfile::tempdir().expect("create temp dir");
        write(folder.path(), 1, &[begun(1), ended(1, 0)], b"");
        let (count, damage) = RunCounts::of(folder.path(), false);
        assert_eq!((count.jobs, count.finished, damage.len()), (1, None, 0));
        assert_eq!(
            facts(&found(folder.path()), &[]).0.note.as_deref(),
            Some("killed: minder run --resume 61c0; damaged: its manifest cannot be read")
        );
    }

    #[test]
    fn unique_prefix_is_as_short_as_possible() {
        let ids = ["61c0aa00", "61c0ab00", "7f3a0000"].map(str::to_owned);
        assert_eq!(ids.each_ref().map(|id| unique_prefix(id, &ids)), ["61c0aa", "61c0ab", "7f3a"]);
    }
}
