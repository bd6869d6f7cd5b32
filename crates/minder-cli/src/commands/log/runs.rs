//! Lists all runs, newest first, one per line.
//!
//! The journal of a run may be long. If the run has a single attempt that finished, the last line
//! of its journal contains all counts. Otherwise the finished jobs are counted while the journal is
//! read, in bounded memory.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;

use super::select::damage_text;
use crate::export::rows::{RUNS, RunFacts};
use crate::recorded::{command_text, resume_command, word_text};
use crate::run_agents::is_detached;
use crate::ui::{message, os_error_text, time};
use minder_record::event::{AttemptFinished, FAILED, JobFinished, JournalEvent, OsBytes};
use minder_record::job_set::JobSet;
use minder_record::manifest::{InputSource, Manifest};
use minder_record::merge::Rounds;
use minder_record::reader::{self, Corruption, read_journal};
use minder_record::store::{self, RunEntry, attempt_name};
use minder_ui::format::{local_zone, relative_date};
use minder_ui::rows::{Format, Rows};
use minder_ui::symbols::Symbols;
use minder_ui::table::{Column, Table};

/// The minimum number of digits of an abbreviated id.
const DIGITS_MIN: usize = 4;
/// The most arguments of a run that are listed.
const ARGUMENTS_MAX: usize = 3;
/// The maximum width of each.
const ARGUMENT_WIDTH_MAX: usize = 24;
/// The number of bytes of a file that are read for them.
const ARGUMENTS_BYTES_MAX: u64 = 4096;

/// Lists the newest runs, at most `number`.
pub(super) fn list(out: &mut dyn Write, root: &Path, number: usize, format: Option<Format>) -> Result<()> {
    let found = store::list(root)?;
    let ids: Vec<String> = found.iter().map(|run| run.id.clone()).collect();
    let facts = found.iter().take(number).map(|run| {
        let (facts, damage) = facts(run, &ids);
        damage.iter().for_each(|why| message(&format!("run {} is damaged: {why}", run.id)));
        (run, facts)
    });
    if let Some(format) = format {
        let mut rows = Rows::of(out, format, &RUNS)?;
        for (_, facts) in facts {
            rows.row(&facts.values())?;
        }
        return Ok(());
    }
    if found.is_empty() {
        message(&store::no_runs_text(root));
        return Ok(());
    }
    let columns = vec![
        Column::left("run"),
        Column::left("when").optional(),
        Column::truncated("command"),
        Column::right("jobs"),
        Column::right("failed"),
        Column::right("elapsed").optional(),
        Column::left("").or_below(),
    ];
    let now = Timestamp::now();
    let zone = local_zone();
    let symbols = Symbols::of_locale();
    let mut table = Table::new(out, columns);
    for (run, facts) in facts {
        let cells = [
            facts.run.clone(),
            facts.at.map_or_else(String::new, |at| relative_date(at, now, &zone)),
            match &run.manifest {
                Ok(manifest) => run_text(manifest, &run.dir, facts.jobs),
                Err(_) => command_text(&facts.command),
            },
            facts.jobs.to_string(),
            facts.failed.to_string(),
            facts.elapsed.map_or_else(String::new, |elapsed| time(seconds(elapsed))),
            facts.note.as_ref().map_or_else(String::new, |note| symbols.convert(note).into_owned()),
        ];
        table.row_with(&cells, Vec::new(), facts.failed > 0)?;
    }
    Ok(table.finish()?)
}

/// Converts seconds from a file. An invalid number becomes zero.
pub(in crate::commands) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Returns the command of a run with its first arguments: those after its command, as they were typed, or
/// those of the jobs that finished first.
pub(in crate::commands) fn run_text(manifest: &Manifest, dir: &Path, finished: u64) -> String {
    let symbols = Symbols::of_locale();
    command_text(&manifest.words) + &first_arguments(manifest, dir, finished, symbols)
}

fn first_arguments(manifest: &Manifest, dir: &Path, finished: u64, symbols: Symbols) -> String {
    let shortened = |argument: &OsBytes| symbols.shorten(&word_text(argument), ARGUMENT_WIDTH_MAX);
    let ellipsis = symbols.pick(" …", " ...");
    let typed = manifest.first_arguments(dir, ARGUMENTS_BYTES_MAX).unwrap_or_default();
    let mut texts: Vec<String> = typed.iter().take(ARGUMENTS_MAX + 1).map(shortened).collect();
    if !texts.is_empty() {
        // The separator counts as none.
        let more = if typed.len() > texts.len() { ellipsis } else { "" };
        return format!(" {}{more}", texts.join(" "));
    }
    let mut jobs = reader::first_jobs(&dir.join(attempt_name(1)), ARGUMENTS_BYTES_MAX).unwrap_or_default();
    jobs.sort_by_key(|job| job.job);
    texts.extend(jobs.iter().flat_map(|job| &job.args).take(ARGUMENTS_MAX).map(shortened));
    let more = if finished > texts.len() as u64 { ellipsis } else { "" };
    if texts.is_empty() { String::new() } else { format!(" ::: {}{more}", texts.join(" ")) }
}

/// Returns the facts about a run, and the damage to its record. `ids` are those of all runs.
pub(super) fn facts(run: &RunEntry, ids: &[String]) -> (RunFacts, Vec<String>) {
    // Checked first: if the run finishes meanwhile, the last line of its journal is read below.
    let alive = store::is_alive(&run.dir);
    let (count, mut damage) = RunCounts::of(&run.dir, alive);
    let mut facts = RunFacts { run: run.id.clone(), at: Some(run.at), ..RunFacts::default() };
    facts.jobs = count.jobs;
    facts.failed = count.failed;
    facts.elapsed = count.elapsed;
    match &run.manifest {
        Ok(manifest) => facts.command = manifest.words.clone(),
        Err(why) => damage.insert(0, super::select::one_line(&why.to_string())),
    }
    let left = match run.manifest.as_ref().map(|manifest| &manifest.input) {
        // Each argument is a job.
        Ok(InputSource::Arguments { jobs: Some(all), .. }) => all.checked_sub(count.jobs),
        // As the last attempt reported.
        _ => count.finished.as_ref().and_then(|finished| finished.not_run),
    };
    let more = match left.filter(|left| *left > 0) {
        Some(left) => format!(" · {left} left"),
        None => String::new(),
    };
    let hint = || {
        let command = resume_command(run.manifest.as_ref().ok()?, &unique_prefix(&run.id, ids));
        command.map(|command| format!(" · {command}"))
    };
    let hint = || hint().unwrap_or_default();
    (facts.state, facts.note) = match count.finished {
        _ if alive => ("running", Some("running".to_owned())),
        None if is_detached(&run.dir) => {
            let id = unique_prefix(&run.id, ids);
            ("running", Some(format!("detached · minder attach {id}")))
        }
        None => ("killed", Some(format!("killed{more}{}", hint()))),
        Some(AttemptFinished { why: Some(why), .. }) => {
            let why = match why.as_str() {
                FAILED => "aborted",
                "its output was closed" => "output closed",
                why => why,
            };
            ("over", Some(format!("{why}{more}{}", hint())))
        }
        Some(_) => ("over", None),
    };
    if let Some(why) = damage.first() {
        // The full text is too long for a table.
        let why = if run.manifest.is_err() { "its manifest cannot be read" } else { why };
        facts.state = if alive { "running" } else { "damaged" };
        facts.note = Some([facts.note.unwrap_or_default(), format!("damaged: {why}")].join(" · "));
        facts.note = facts.note.map(|note| note.trim_start_matches(" · ").to_owned());
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
pub(in crate::commands) struct RunCounts {
    pub(in crate::commands) jobs: u64,
    pub(in crate::commands) failed: u64,
    elapsed: Option<f64>,
    /// The end of the last attempt, unless it was killed.
    finished: Option<AttemptFinished>,
}

impl RunCounts {
    /// Returns the totals of a run's attempts, and the damage to their journals.
    fn of(dir: &Path, alive: bool) -> (Self, Vec<String>) {
        Self::with_jobs(dir, alive, |_| ())
    }

    /// Does the same, and passes the finished jobs to `visit`, unless the run has ended.
    pub(in crate::commands) fn with_jobs(
        dir: &Path,
        alive: bool,
        mut visit: impl FnMut(&JobFinished),
    ) -> (Self, Vec<String>) {
        let attempts = match store::attempts(dir) {
            Ok(attempts) => attempts,
            Err(error) => return (Self::default(), vec![os_error_text(&error)]),
        };
        if let [only] = attempts.as_slice()
            && let Some(end) = reader::attempt_finished(&dir.join(attempt_name(*only)))
        {
            return (Self::of_finished(end), Vec::new());
        }
        let mut sum = Self::default();
        let mut done = JobSet::default();
        let mut failed = JobSet::default();
        let mut damage = Vec::new();
        let mut rounds = Rounds::read(dir).unwrap_or_default();
        for number in attempts.iter().copied().chain(rounds.numbers()).collect::<BTreeSet<_>>() {
            if let Some(mut round) = rounds.take(number) {
                round.visit(|event| {
                    if event.counts && !event.is_tried {
                        count_job(&event.ended, &mut done, &mut failed);
                        visit(&event.ended);
                    }
                });
            }
            if !attempts.contains(&number) {
                continue;
            }
            sum.finished = None;
            let mut started_at = None;
            let mut last_end = None;
            let path = dir.join(attempt_name(number));
            let result = read_journal(&path, |event| match event {
                JournalEvent::AttemptStarted(start) => started_at = Some(start.at),
                JournalEvent::JobFinished(job) => {
                    count_job(&job, &mut done, &mut failed);
                    last_end = Some(job.at + job.wall);
                    visit(&job);
                }
                JournalEvent::AttemptFinished(end) => sum.finished = Some(end),
                JournalEvent::OutputShown(_)
                | JournalEvent::OutputLost(_)
                | JournalEvent::Claimed(_)
                | JournalEvent::Sealed(_)
                | JournalEvent::JobTried(_)
                | JournalEvent::OutputDir(_)
                | JournalEvent::Host(_) => (),
            });
            // An attempt that was killed lasted at least until the end of its last job.
            let until_last_job = || Some((last_end? - started_at?).max(0.0));
            if let Some(took) = sum.finished.as_ref().map_or_else(until_last_job, |end| Some(end.elapsed)) {
                *sum.elapsed.get_or_insert(0.0) += took;
            }
            damage.extend(match result {
                Ok(corruption) => damage_text(number, &corruption, None, alive),
                Err(error) => {
                    damage_text(number, &Corruption::default(), Some(&os_error_text(&error)), alive)
                }
            });
        }
        sum.jobs = done.len();
        sum.failed = failed.len();
        (sum, damage)
    }

    /// Returns the totals of an attempt that finished.
    fn of_finished(end: AttemptFinished) -> Self {
        Self {
            jobs: end.succeeded + end.failed,
            failed: end.failed,
            elapsed: Some(end.elapsed),
            finished: Some(end),
        }
    }
}

/// Counts the last result of a job.
fn count_job(job: &JobFinished, done: &mut JobSet, failed: &mut JobSet) {
    done.insert(job.job);
    if job.succeeded() {
        failed.remove(job.job);
    } else {
        failed.insert(job.job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minder_record::codec::encode;
    use minder_record::event::AttemptStarted;

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
            node: None,
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

    fn write(dir: &Path, attempt: u32, events: &[JournalEvent], rest: &[u8]) {
        let mut text = Vec::new();
        for event in events {
            encode(event, &mut text);
        }
        text.extend_from_slice(rest);
        std::fs::write(dir.join(attempt_name(attempt)), text).expect("write journal");
    }

    fn found(dir: &Path) -> RunEntry {
        RunEntry {
            id: "61c0aa00".into(),
            dir: dir.to_owned(),
            at: 5.0,
            manifest: Err(std::io::Error::other("gone").into()),
        }
    }

    #[test]
    fn counts_come_from_a_complete_last_line() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let mut events = vec![begun(1)];
        events.extend((1..200).map(|job| ended(job, 0)));
        events.push(over(None));
        write(dir.path(), 1, &events, b"");
        let (count, damage) = RunCounts::of(dir.path(), false);
        assert_eq!((count.jobs, count.failed, count.elapsed), (2, 1, Some(9.0)));
        assert_eq!(damage, [""; 0]);
        // Not the last line: all jobs are counted.
        write(dir.path(), 1, &events, b"{\"ev");
        let (count, damage) = RunCounts::of(dir.path(), false);
        assert_eq!((count.jobs, count.failed), (199, 0));
        assert_eq!(damage, ["attempt-1.jsonl: its last line is incomplete"]);
    }

    #[test]
    fn counts_use_the_last_result_of_each_job() {
        let dir = tempfile::tempdir().expect("create temp dir");
        write(dir.path(), 1, &[begun(1), ended(1, 0), ended(2, 1), ended(3, 1)], b"");
        write(dir.path(), 2, &[begun(2), ended(2, 0), ended(4, 0), over(Some("halted"))], b"");
        let (count, _) = RunCounts::of(dir.path(), false);
        assert_eq!((count.jobs, count.failed, count.elapsed), (4, 1, Some(14.0)));
        let (facts, damage) = facts(&found(dir.path()), &["61c0aa00".into(), "61c0ab00".into()]);
        assert_eq!(damage, ["gone"]);
        assert_eq!(facts.state, "damaged");
        assert_eq!(facts.note.as_deref(), Some("halted · damaged: its manifest cannot be read"));
    }

    #[test]
    fn run_without_an_end_was_killed() {
        let dir = tempfile::tempdir().expect("create temp dir");
        write(dir.path(), 1, &[begun(1), ended(1, 0)], b"");
        let (count, damage) = RunCounts::of(dir.path(), false);
        assert_eq!((count.jobs, count.finished, damage.len()), (1, None, 0));
        assert_eq!(
            facts(&found(dir.path()), &[]).0.note.as_deref(),
            Some("killed · damaged: its manifest cannot be read")
        );
    }

    #[test]
    fn unique_prefix_is_as_short_as_possible() {
        let ids = ["61c0aa00", "61c0ab00", "7f3a0000"].map(str::to_owned);
        assert_eq!(ids.each_ref().map(|id| unique_prefix(id, &ids)), ["61c0aa", "61c0ab", "7f3a"]);
    }
}
