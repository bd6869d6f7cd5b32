//! The jobs of one run.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;

use super::runs::seconds;
use super::select::{read_run, run_id};
use crate::export::rows::{JOBS, job as job_row};
use crate::ui::{format_bytes, message, signal_name, time};
use minder_record::event::{JobFinished, OsBytes, TAIL_MAX};
use minder_ui::rows::{Format, Rows};
use minder_ui::table::{Column, Table};

/// The maximum number of lines shown of each output of a failed job. JSON and CSV contain the whole
/// recorded tail.
const LINES_MAX: usize = 10;

/// Lists the jobs of a run in the order of their numbers.
pub(super) fn list(out: &mut dyn Write, dir: &Path, format: Option<Format>, failed: bool) -> Result<()> {
    let run = read_run(dir)?;
    let mut printer = Printer::new(out, &run_id(dir), format, failed)?;
    for job in run.jobs.values() {
        printer.print(job)?;
    }
    if printer.count == 0 && format.is_none() {
        let what = if failed && !run.jobs.is_empty() { "failed" } else { "finished" };
        message(&format!("run {}: no job has {what}", run_id(dir)));
        return Ok(());
    }
    Ok(printer.finish()?)
}

/// Prints jobs as a table or as data.
#[derive(Debug)]
pub(super) struct Printer<'a> {
    run: String,
    output: Output<'a>,
    failed: bool,
    count: u64,
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
        failed: bool,
    ) -> io::Result<Self> {
        let output = match format {
            Some(format) => Output::Rows(Rows::of(out, format, &JOBS)?),
            None => Output::Table(Table::new(out, columns())),
        };
        Ok(Self { run: run.to_owned(), output, failed, count: 0 })
    }

    /// Prints a job, unless only failed jobs are shown and it succeeded.
    pub(super) fn print(&mut self, job: &JobFinished) -> io::Result<()> {
        if self.failed && job.succeeded() {
            return Ok(());
        }
        self.count += 1;
        match &mut self.output {
            Output::Rows(rows) => rows.row(&job_row(&self.run, job)),
            Output::Table(table) => {
                let below = if self.failed { tail_lines(job) } else { Vec::new() };
                table.row_with(&cells(job), below)
            }
        }
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
fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::right("job").at_least(4),
        Column::truncated("arguments").at_least(16),
        Column::left("exit").at_least(4),
    ];
    columns.extend(["wall", "CPU"].map(|name| Column::right(name).at_least(7)));
    columns.extend(["out", "err"].map(|name| Column::right(name).at_least(8)));
    columns
}

fn cells(job: &JobFinished) -> [Vec<u8>; 7] {
    let arguments: Vec<&[u8]> = job.args.iter().map(|arg| arg.0.as_slice()).collect();
    let cpu = match (job.user, job.system) {
        (None, None) => String::new(),
        (user, system) => time(seconds(user.unwrap_or(0.0) + system.unwrap_or(0.0))),
    };
    [
        job.job.to_string().into_bytes(),
        arguments.join(&b' '),
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
        (None, Some(cause)) => format!("{exit} ({})", super::select::one_line(cause)),
        (Some(attempts), Some(cause)) => {
            format!("{exit} ({}, {attempts} tries)", super::select::one_line(cause))
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
    fn printer_shows_the_tail_of_failed_jobs() {
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out, "61c0aa00", None, true).expect("write to memory");
        let text = |text: &str| OsBytes(text.as_bytes().to_vec());
        let bad = JobFinished {
            job: 2,
            args: vec![text("a\x07")],
            exit: Some(1),
            wall: 1.5,
            tail: Some(text("why\n")),
            ..JobFinished::default()
        };
        printer
            .print(&JobFinished { job: 1, exit: Some(0), ..JobFinished::default() })
            .expect("write to memory");
        printer.print(&bad).expect("write to memory");
        printer.finish().expect("write to memory");
        let text = String::from_utf8(out).expect("table is UTF-8");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].starts_with(r"   2  a\x07 "), "{text}");
        assert_eq!(lines[2], "    why");
    }
}
