//! The jobs of one run.

use std::io::{self, Write};
use std::num::NonZero;
use std::path::Path;

use anyhow::Result;

use super::request::Request;
use super::runs::seconds;
use super::select::{one_line, read_run, run_id};
use crate::export::rows::{JOBS, Place, job as job_row};
use crate::flags::LogFlags;
use crate::running::{RunningJob, print_unnumbered, remove_ended, running_jobs};
use crate::ui::{format_bytes, message, signal_name, time};
use minder_record::event::{JobFinished, OsBytes, TAIL_MAX};
use minder_record::reader::Run;
use minder_ui::rows::{Format, Rows};
use minder_ui::table::{Column, Table};

/// The maximum number of lines shown of each output of a failed job. JSON and CSV contain the whole
/// recorded tail.
const LINES_MAX: usize = 10;
/// The index of the column *node*.
const NODE_COLUMN: usize = 2;

/// The jobs that are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter<'a> {
    /// `true` for failed jobs only.
    pub(super) failed: bool,
    /// A text that the command contains.
    pub(super) text: Option<&'a str>,
    /// The number of slowest jobs, of those that the others select.
    pub(super) slow: Option<usize>,
}

impl<'a> Filter<'a> {
    pub(super) fn of(flags: &'a LogFlags) -> Self {
        let slow = flags.slow.map(NonZero::get);
        Self { failed: flags.failed, text: flags.matching.as_deref(), slow }
    }

    /// Returns whether a job is shown, if it is one of the slowest. The text may be in the command as it
    /// can be pasted, or in the arguments without quotes.
    pub(super) fn accepts(&self, job: &JobFinished, request: Option<&Request<'_>>) -> bool {
        if self.failed && job.succeeded() {
            return false;
        }
        let Some(text) = self.text else { return true };
        let command = || request.and_then(|request| request.command(job));
        arguments(job).windows(text.len().max(1)).any(|part| part == text.as_bytes())
            || text.is_empty()
            || command().is_some_and(|command| command.contains(text))
    }

    /// Returns the jobs of a run that are shown: in the order of their numbers, or the slowest first.
    pub(super) fn select<'r>(&self, run: &'r Run, dir: &Path) -> Vec<&'r JobFinished> {
        let manifest = if self.text.is_some() { run.manifest.as_ref().ok() } else { None };
        let request = manifest.map(|manifest| Request::of(manifest, dir));
        let mut jobs: Vec<_> = run.jobs.values().filter(|job| self.accepts(job, request.as_ref())).collect();
        if let Some(slow) = self.slow {
            jobs.sort_by(|one, other| other.wall.total_cmp(&one.wall));
            jobs.truncate(slow);
        }
        jobs
    }

    /// Returns the running jobs that are shown, if a process works on the run. They have no result and no
    /// duration yet, by which they could be selected.
    fn running(&self, dir: &Path, run: &Run) -> Vec<RunningJob> {
        if !run.alive || self.failed || self.slow.is_some() {
            return Vec::new();
        }
        let Some(started) = run.attempts.last().and_then(|attempt| attempt.started.as_ref()) else {
            return Vec::new();
        };
        let mut jobs = running_jobs(dir, run.manifest.as_ref().ok(), started).unwrap_or_else(|why| {
            why.print_below_list();
            Vec::new()
        });
        let event = |job: &RunningJob| run.jobs.get(&job.job?);
        remove_ended(&mut jobs, |job| event(job).is_some_and(|event| job.has_ended(event)));
        jobs.retain(|job| self.accepts_running(job));
        jobs
    }

    /// Returns whether a running job is shown.
    pub(super) fn accepts_running(&self, job: &RunningJob) -> bool {
        !self.failed && self.text.is_none_or(|text| job.command().contains(text))
    }

    /// Says that no job is shown, and why.
    fn absence(&self, has_jobs: bool) -> String {
        match self.text {
            _ if !has_jobs => "no job has finished".to_owned(),
            None => "no job has failed".to_owned(),
            Some(text) => {
                let what = if self.failed { "failed job" } else { "job" };
                format!("no {what} has `{}` in its command", one_line(text))
            }
        }
    }
}

/// Lists the jobs of a run.
pub(super) fn list(
    out: &mut dyn Write,
    dir: &Path,
    format: Option<Format>,
    filter: &Filter<'_>,
) -> Result<()> {
    let run = read_run(dir)?;
    let jobs = filter.select(&run, dir);
    let running = if format.is_none() { filter.running(dir, &run) } else { Vec::new() };
    if jobs.is_empty() && format.is_none() {
        message(&format!("run {}: {}", run_id(dir), filter.absence(!run.jobs.is_empty())));
    } else {
        let mut nodes = run.agents.iter().map(|agent| agent.started.node.as_deref());
        let first = nodes.next();
        let nodes = nodes.any(|node| Some(node) != first);
        let mut printer = Printer::new(&mut *out, &run_id(dir), format, (filter.failed, nodes))?;
        for job in &jobs {
            printer.print(job, run.place_of(job.job))?;
        }
        printer.finish()?;
    }
    if !running.is_empty() {
        if !jobs.is_empty() {
            writeln!(out)?;
        }
        print_running(out, &running)?;
    }
    Ok(())
}

/// Prints running jobs as a table.
pub(in crate::commands) fn print_running(out: &mut dyn Write, jobs: &[RunningJob]) -> io::Result<()> {
    let columns = vec![
        Column::right("job").at_least(4),
        Column::right("slot"),
        Column::right("running for"),
        Column::truncated("command"),
    ];
    let mut table = Table::new(out, columns);
    for job in jobs {
        let slot = job.slot.map_or_else(String::new, |slot| slot.to_string());
        table.row(&[job.number(), slot, job.elapsed().map_or_else(String::new, time), job.command()])?;
    }
    table.finish()?;
    print_unnumbered(jobs);
    Ok(())
}

/// Prints jobs as a table or as data.
#[derive(Debug)]
pub(super) struct Printer<'a> {
    run: String,
    output: Output<'a>,
    /// `true` if the last lines of failed jobs are shown.
    tails: bool,
    /// `true` if the table has a column with the machine of each job.
    nodes: bool,
}

#[derive(Debug)]
enum Output<'a> {
    Table(Table<'a>),
    Rows(Rows<'a>),
}

impl<'a> Printer<'a> {
    pub(super) fn new(
        out: &'a mut dyn Write,
        run: &str,
        format: Option<Format>,
        (tails, nodes): (bool, bool),
    ) -> io::Result<Self> {
        let output = match format {
            Some(format) => Output::Rows(Rows::of(out, format, &JOBS)?),
            None => Output::Table(Table::new(out, columns(nodes))),
        };
        Ok(Self { run: run.to_owned(), output, tails, nodes })
    }

    /// Prints a job, and where it ran, if that was on an agent.
    pub(super) fn print(&mut self, job: &JobFinished, place: Option<Place<'_>>) -> io::Result<()> {
        match &mut self.output {
            Output::Rows(rows) => rows.row(&job_row(&self.run, job, place)),
            Output::Table(table) => {
                let below = if self.tails { tail_lines(job) } else { Vec::new() };
                let mut cells = cells(job);
                if self.nodes {
                    let node = place.and_then(|(_, node)| node).unwrap_or_default();
                    cells.insert(NODE_COLUMN, node.as_bytes().to_vec());
                }
                table.row_with(&cells, below, !job.succeeded())
            }
        }
    }

    /// Prints a job that runs, in a table only.
    pub(super) fn print_running(&mut self, job: &RunningJob) -> io::Result<()> {
        let Output::Table(table) = &mut self.output else { return Ok(()) };
        let slot = job.slot.map_or_else(String::new, |slot| format!(" (slot {slot})"));
        let running = format!("running{slot}");
        let mut cells = vec![job.number(), job.command(), running, time(job.age)];
        cells.resize(7, String::new());
        if self.nodes {
            cells.insert(NODE_COLUMN, String::new());
        }
        table.row(&cells)
    }

    /// Flushes the output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.output {
            Output::Rows(rows) => rows.flush(),
            Output::Table(table) => table.flush(),
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        match self.output {
            Output::Rows(mut rows) => rows.flush(),
            Output::Table(table) => table.finish(),
        }
    }
}

/// Returns the columns, wide enough for jobs that finish later.
fn columns(nodes: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::right("job").at_least(4),
        Column::truncated("arguments").at_least(16),
        Column::left("exit").at_least(4),
    ];
    columns.extend(["wall", "CPU"].map(|name| Column::right(name).at_least(7)));
    columns.extend(["out", "err"].map(|name| Column::right(name).at_least(8)));
    if nodes {
        columns.insert(NODE_COLUMN, Column::left("node"));
    }
    columns
}

/// Returns the arguments of a job, without quotes.
fn arguments(job: &JobFinished) -> Vec<u8> {
    let arguments: Vec<&[u8]> = job.args.iter().map(|arg| arg.0.as_slice()).collect();
    arguments.join(&b' ')
}

fn cells(job: &JobFinished) -> Vec<Vec<u8>> {
    let cpu = match (job.user, job.system) {
        (None, None) => String::new(),
        (user, system) => time(seconds(user.unwrap_or(0.0) + system.unwrap_or(0.0))),
    };
    vec![
        job.job.to_string().into_bytes(),
        arguments(job),
        exit_text(job).into_bytes(),
        time(seconds(job.wall)).into_bytes(),
        cpu.into_bytes(),
        format_bytes(job.out).into_bytes(),
        format_bytes(job.err).into_bytes(),
    ]
}

/// Describes how a job ended.
pub(super) fn exit_text(job: &JobFinished) -> String {
    let exit = match (&job.error, job.exit, job.signal) {
        (Some(_), ..) => "not started".to_owned(),
        _ if job.timed_out => "timed out".to_owned(),
        (None, Some(code), _) => code.to_string(),
        (None, None, Some(signal)) => {
            signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
        }
        (None, None, None) => "unknown".to_owned(),
    };
    match (job.attempts, &job.cause) {
        (Some(attempts), None) if job.succeeded() => format!("{exit} (flaky, {attempts} tries)"),
        (None, None) => exit,
        (Some(attempts), None) => format!("{exit} ({attempts} tries)"),
        (None, Some(cause)) => format!("{exit} ({})", one_line(cause)),
        (Some(attempts), Some(cause)) => {
            format!("{exit} ({}, {attempts} tries)", one_line(cause))
        }
    }
}

/// Returns the last lines of a failed job's output, or why it was not started. If both streams have
/// output, stdout comes first and each has a title.
fn tail_lines(job: &JobFinished) -> Vec<String> {
    if let Some(error) = &job.error {
        return vec![error.clone()];
    }
    let [out, err] = [&job.out_tail, &job.tail]
        .map(|tail| tail.as_ref().map_or_else(Vec::new, |tail| last_lines(tail, LINES_MAX)));
    match (out.is_empty(), err.is_empty()) {
        (false, false) => [vec!["stdout:".to_owned()], out, vec!["stderr:".to_owned()], err].concat(),
        _ => [out, err].concat(),
    }
}

/// Returns the last complete lines of an output, at most `lines_max`.
pub(super) fn last_lines(tail: &OsBytes, lines_max: usize) -> Vec<String> {
    // The first line of a full tail may be incomplete.
    let cut = if tail.0.len() < TAIL_MAX {
        0
    } else {
        tail.0.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1)
    };
    let text = &tail.0[cut..];
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    // Escaped here, since the lines may not be UTF-8.
    let lines: Vec<String> = lines.map(minder_ui::table::escape).collect();
    lines[lines.len().saturating_sub(lines_max)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_text_names_the_status_or_signal() {
        let text = |exit, signal| exit_text(&JobFinished { exit, signal, ..JobFinished::default() });
        assert_eq!(
            [text(Some(2), None), text(None, Some(9)), text(None, Some(34)), text(None, None)],
            ["2", "KILL", "signal 34", "unknown"]
        );
        assert_eq!(
            exit_text(&JobFinished { error: Some("no such file".into()), ..JobFinished::default() }),
            "not started"
        );
    }

    #[test]
    fn tail_lines_are_complete_and_limited() {
        let lines = |bytes: &[u8]| {
            tail_lines(&JobFinished { tail: Some(OsBytes(bytes.to_vec())), ..JobFinished::default() })
        };
        assert_eq!(lines(b"a\xff\r\nb\x1b[1m"), [r"a\xff", r"b\x1b[1m"]);
        assert_eq!(lines(b""), [""; 0]);
        assert_eq!(lines(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n").len(), LINES_MAX);
        let mut long = vec![b'x'; TAIL_MAX - 2];
        long.extend_from_slice(b"\ny");
        assert_eq!(lines(&long), ["y"]);
        let one = vec![b'x'; TAIL_MAX];
        assert_eq!(lines(&one)[0].len(), TAIL_MAX);
    }

    #[test]
    fn filter_combines_result_and_text() {
        let job = |exit, arg: &str| JobFinished {
            exit: Some(exit),
            args: vec![OsBytes::from(arg)],
            ..JobFinished::default()
        };
        let accepts =
            |failed, text, job: &JobFinished| Filter { failed, text, slow: None }.accepts(job, None);
        assert!(accepts(false, None, &job(0, "a")) && !accepts(true, None, &job(0, "a")));
        assert!(accepts(false, Some("b c"), &job(0, "ab cd")) && !accepts(false, Some("B"), &job(0, "b")));
        assert!(accepts(true, Some(""), &job(1, "")) && !accepts(true, Some("x"), &job(1, "a")));
    }

    #[test]
    fn printer_shows_the_tail_of_failed_jobs() {
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out, "61c0aa00", None, (true, false)).expect("write to memory");
        let text = |text: &str| OsBytes(text.as_bytes().to_vec());
        let bad = JobFinished {
            job: 2,
            args: vec![text("a\x07")],
            exit: Some(1),
            wall: 1.5,
            tail: Some(text("why\n")),
            ..JobFinished::default()
        };
        printer.print(&bad, None).expect("write to memory");
        printer.finish().expect("write to memory");
        let text = String::from_utf8(out).expect("table is UTF-8");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].starts_with(r"   2  a\x07 "), "{text}");
        assert_eq!(lines[2], "    why");
    }
}
