//! The jobs of one run.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;

use super::runs::seconds;
use super::{id, read};
use crate::export::rows::{Format, JOBS, Rows, job};
use crate::report::{message, signal_name, time};
use crate::text::format_bytes;
use crate::ui::table::{Column, Table};
use minder_record::event::{JobFinished, OsBytes, TAIL_MAX};

/// How many lines of each output of a failed job are shown. Data has all that was kept.
const LINES_MAX: usize = 10;

/// Lists the jobs of a run in the order of their numbers.
pub(super) fn list(out: &mut dyn Write, folder: &Path, format: Option<Format>, failed: bool) -> Result<()> {
    let run = read(folder)?;
    let mut printer = Printer::new(out, &id(folder), format, failed)?;
    for ended in run.jobs.values() {
        printer.print(ended)?;
    }
    if printer.count == 0 && format.is_none() {
        let what = if failed && !run.jobs.is_empty() { "failed" } else { "ended" };
        message(&format!("run {}: no job {what}", id(folder)));
        return Ok(());
    }
    Ok(printer.finish()?)
}

/// Prints jobs in one of the forms.
#[derive(Debug)]
pub(super) struct Printer<'a> {
    run: String,
    form: Form<'a>,
    failed: bool,
    count: u64,
}

#[derive(Debug)]
enum Form<'a> {
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
        let form = match format {
            Some(format) => Form::Rows(Rows::of(out, format, &JOBS)?),
            None => Form::Table(Table::new(out, columns())),
        };
        Ok(Self { run: run.to_owned(), form, failed, count: 0 })
    }

    /// Prints a job, unless only failed ones are wanted and it is none.
    pub(super) fn print(&mut self, ended: &JobFinished) -> io::Result<()> {
        if self.failed && ended.succeeded() {
            return Ok(());
        }
        self.count += 1;
        match &mut self.form {
            Form::Rows(rows) => rows.row(&job(&self.run, ended)),
            Form::Table(table) => {
                let below = if self.failed { tail(ended) } else { Vec::new() };
                table.row_with(&cells(ended), below)
            }
        }
    }

    /// Hands on what was printed so far.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.form {
            Form::Rows(rows) => rows.flush(),
            Form::Table(table) => table.flush(),
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        match self.form {
            Form::Rows(mut rows) => rows.flush(),
            Form::Table(table) => table.finish(),
        }
    }
}

/// Wide enough for what comes later, where jobs are shown as they end.
fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::right("job").at_least(4),
        Column::cut("arguments").at_least(16),
        Column::left("exit").at_least(4),
    ];
    columns.extend(["wall", "CPU"].map(|name| Column::right(name).at_least(7)));
    columns.extend(["out", "err"].map(|name| Column::right(name).at_least(8)));
    columns
}

fn cells(ended: &JobFinished) -> [Vec<u8>; 7] {
    let arguments: Vec<&[u8]> = ended.args.iter().map(|arg| arg.0.as_slice()).collect();
    let cpu = match (ended.user, ended.system) {
        (None, None) => String::new(),
        (user, system) => time(seconds(user.unwrap_or(0.0) + system.unwrap_or(0.0))),
    };
    [
        ended.job.to_string().into_bytes(),
        arguments.join(&b' '),
        how(ended).into_bytes(),
        time(seconds(ended.wall)).into_bytes(),
        cpu.into_bytes(),
        format_bytes(ended.out).into_bytes(),
        format_bytes(ended.err).into_bytes(),
    ]
}

/// How a job ended, in few words.
fn how(ended: &JobFinished) -> String {
    let how = match (&ended.error, ended.exit, ended.signal) {
        (Some(_), ..) => "not started".to_owned(),
        _ if ended.timed_out => "timed out".to_owned(),
        (None, Some(code), _) => code.to_string(),
        (None, None, Some(signal)) => {
            signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
        }
        (None, None, None) => "unknown".to_owned(),
    };
    match (ended.attempts, &ended.cause) {
        (None, None) => how,
        (Some(attempts), None) => format!("{how} ({attempts} tries)"),
        (None, Some(cause)) => format!("{how} ({})", super::one_line(cause)),
        (Some(attempts), Some(cause)) => format!("{how} ({}, {attempts} tries)", super::one_line(cause)),
    }
}

/// The last lines of what a failed job wrote, or why it was not started. Those of its standard
/// output come first, with a mark where there are both.
fn tail(ended: &JobFinished) -> Vec<String> {
    if let Some(error) = &ended.error {
        return vec![error.clone()];
    }
    let [out, err] =
        [&ended.out_tail, &ended.tail].map(|tail| tail.as_ref().map_or_else(Vec::new, last_lines));
    match (out.is_empty(), err.is_empty()) {
        (false, false) => [vec!["stdout:".to_owned()], out, vec!["stderr:".to_owned()], err].concat(),
        _ => [out, err].concat(),
    }
}

/// The last whole lines of the end of an output.
fn last_lines(tail: &OsBytes) -> Vec<String> {
    // The first line of a tail that is full may have lost its beginning.
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
    // Escaped here, where bytes that are no UTF-8 are still there.
    let lines: Vec<String> = lines.map(crate::ui::table::escape).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_ends_in_one_way() {
        let job = |exit, signal| how(&JobFinished { exit, signal, ..JobFinished::default() });
        assert_eq!(
            [job(Some(2), None), job(None, Some(9)), job(None, Some(34)), job(None, None)],
            ["2", "KILL", "signal 34", "unknown"]
        );
        assert_eq!(
            how(&JobFinished { error: Some("no such file".into()), ..JobFinished::default() }),
            "not started"
        );
    }

    #[test]
    fn the_last_lines_are_whole_and_few() {
        let shown = |bytes: &[u8]| {
            tail(&JobFinished { tail: Some(OsBytes(bytes.to_vec())), ..JobFinished::default() })
        };
        assert_eq!(shown(b"a\xff\r\nb\x1b[1m"), [r"a\xff", r"b\x1b[1m"]);
        assert_eq!(shown(b""), [""; 0]);
        assert_eq!(shown(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n").len(), LINES_MAX);
        let mut long = vec![b'x'; TAIL_MAX - 2];
        long.extend_from_slice(b"\ny");
        assert_eq!(shown(&long), ["y"]);
        let one = vec![b'x'; TAIL_MAX];
        assert_eq!(shown(&one)[0].len(), TAIL_MAX);
    }

    #[test]
    fn only_failed_jobs_have_their_last_lines_below_them() {
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out, "61c0aa00", None, true).expect("memory");
        let text = |text: &str| OsBytes(text.as_bytes().to_vec());
        let bad = JobFinished {
            job: 2,
            args: vec![text("a\x07")],
            exit: Some(1),
            wall: 1.5,
            tail: Some(text("why\n")),
            ..JobFinished::default()
        };
        printer.print(&JobFinished { job: 1, exit: Some(0), ..JobFinished::default() }).expect("memory");
        printer.print(&bad).expect("memory");
        printer.finish().expect("memory");
        let text = String::from_utf8(out).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].starts_with(r"   2  a\x07 "), "{text}");
        assert_eq!(lines[2], "    why");
    }
}
