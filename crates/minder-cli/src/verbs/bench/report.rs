//! Runs the rounds, and shows their results.

use std::process::ExitCode;

use anyhow::{Error, Result, anyhow, bail};
use minder::{Command, ErrorKind};
use minder_bench::{Case, Measurement, Observer, Results, Suite, run_rounds};

use super::chart_file::ChartFile;
use super::session::BenchSession;
use super::spec::BenchSpec;
use super::stdout::{BufferedStdout, StdoutClosed};
use super::{results, rows};
use crate::flags::{ChildLine, MeasureFlags};
use crate::report::export::{Format, Rows};
use crate::report::message;

/// Returns the mechanisms that the flags ask for; all by default.
///
/// # Errors
/// For a name that is not in `all`.
pub(super) fn select_mechanisms(all: &[&'static str], flags: &MeasureFlags) -> Result<Vec<&'static str>> {
    if all.is_empty() {
        bail!("there is nothing to measure on this system yet");
    }
    if let Some(name) = flags.mechanism.iter().find(|name| !all.contains(&name.as_str())) {
        bail!("there is no mechanism `{name}` to measure here: there are {}", all.join(", "));
    }
    if flags.mechanism.is_empty() {
        return Ok(all.to_vec());
    }
    Ok(all.iter().copied().filter(|name| flags.mechanism.iter().any(|wanted| wanted == name)).collect())
}

/// Returns the command that children run.
pub(super) fn child_command(line: &ChildLine) -> Command {
    let mut command = Command::new(line.0.first().map_or("", String::as_str));
    command.args(line.0.iter().skip(1));
    command
}

/// Returns the text of an error, with a hint if something is exhausted.
pub(super) fn describe(error: &minder_bench::Error) -> String {
    match error.kind() {
        ErrorKind::Exhausted => format!("{error} (`minder doctor` shows the limits)"),
        _ => error.to_string(),
    }
}

/// Converts an error, with the same hint.
pub(super) fn to_anyhow(error: minder_bench::Error) -> Error {
    anyhow!(describe(&error))
}

/// Measures `cases` in as many rounds as the flags ask for, and shows the results.
pub(super) fn measure_and_report(
    spec: &BenchSpec,
    flags: &MeasureFlags,
    mut session: BenchSession,
    cases: &[Case],
    suite: &mut dyn Suite,
) -> Result<ExitCode> {
    let mut chart = None;
    if let Some(path) = flags.svg.clone() {
        match session.run_interruptibly(move || ChartFile::open(&path)) {
            Some(opened) => chart = Some(opened?),
            None => return Ok(session.exit_code()),
        }
    }
    session.set_work(cases.len(), flags.rounds);
    let out = BufferedStdout::default();
    let mut rows_out = out.clone();
    let rows = match format(flags) {
        Some(format) => Some(Rows::new(&mut rows_out, format, rows::columns(spec))?),
        None => None,
    };
    let mut results = Results::new(cases);
    let mut observer = Progress { spec, session, out, rows };
    let measured = run_rounds(suite, &mut results, flags.rounds, &mut observer);
    let Progress { mut session, out, .. } = observer;
    session.clear_progress();
    let shown = measured.and_then(|()| show(spec, flags, &results, chart, &out, &mut session));
    match shown {
        // It quietly ends the command with the exit status that it holds.
        Err(error) => error.downcast::<StdoutClosed>().map(|StdoutClosed(code)| code),
        Ok(()) => Ok(session.exit_code()),
    }
}

/// Returns the format of rows; `None` for tables.
fn format(flags: &MeasureFlags) -> Option<Format> {
    if flags.csv {
        Some(Format::Csv)
    } else if flags.json {
        Some(Format::Json)
    } else {
        None
    }
}

/// Shows what was measured: tables, unless rows were written before, and a chart.
fn show(
    spec: &BenchSpec,
    flags: &MeasureFlags,
    results: &Results<'_>,
    chart: Option<ChartFile>,
    out: &BufferedStdout,
    session: &mut BenchSession,
) -> Result<()> {
    if session.is_cancelled() {
        message("interrupted; showing what was measured");
    }
    if let Some(file) = chart
        && !results.is_empty()
    {
        file.write(&results::chart(spec, results, flags.rounds).svg()?)?;
    }
    let unmeasured = results::describe_unmeasured(spec, results);
    if let Some(first) = unmeasured.first()
        && results.is_empty()
        && !session.is_cancelled()
    {
        bail!("nothing was measured: {first}");
    }
    if format(flags).is_some() {
        for line in &unmeasured {
            message(line);
        }
    } else {
        results::write_tables(spec, results, flags.rounds, &mut out.clone())?;
    }
    out.flush_to_stdout(session)
}

/// Shows progress and rows while cases are measured.
struct Progress<'a> {
    spec: &'a BenchSpec,
    session: BenchSession,
    out: BufferedStdout,
    rows: Option<Rows<'a>>,
}

impl Observer for Progress<'_> {
    type Error = Error;

    fn is_cancelled(&mut self) -> bool {
        self.session.is_cancelled()
    }

    fn starting(&mut self, index: usize, round: u32, case: &Case) {
        self.session.show_progress(index, round, &self.spec.describe(case));
    }

    fn measured(&mut self, round: u32, case: &Case, measurement: &Measurement) -> Result<()> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        rows.row(&rows::values(self.spec, case, round, measurement))?;
        self.out.flush_to_stdout(&mut self.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(names: &[&str]) -> MeasureFlags {
        let mechanism = names.iter().map(|name| (*name).to_owned()).collect();
        MeasureFlags { mechanism, rounds: 1, csv: false, json: false, svg: None }
    }

    #[test]
    fn mechanisms_are_selected_by_name_in_their_order() {
        let all = ["epoll", "poll", "select"];
        assert_eq!(select_mechanisms(&all, &flags(&[])).expect("select all"), all);
        let two = select_mechanisms(&all, &flags(&["select", "epoll"])).expect("select two");
        assert_eq!(two, ["epoll", "select"]);
        let error = select_mechanisms(&all, &flags(&["magic"])).expect_err("select unknown").to_string();
        assert!(error.contains("`magic`") && error.ends_with("epoll, poll, select"), "{error}");
        assert!(select_mechanisms(&[], &flags(&[])).is_err());
    }
}
