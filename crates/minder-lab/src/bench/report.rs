//! Runs the rounds, and shows their results.

use std::process::ExitCode;

use anyhow::{Error, Result, bail};
use minder_bench::{Case, Measurement, Observer, Results, Suite, run_rounds};

use super::spec::BenchSpec;
use super::{results, rows};
use crate::chart::machine;
use crate::flags::MeasureFlags;
use crate::measuring::{self, BufferedStdout, OutputFile, Session};
use minder_ui::message;
use minder_ui::rows::{CsvTable, Rows};

/// Measures `cases` in as many rounds as the flags ask for, and shows the results.
pub(super) fn measure_and_report(
    spec: &BenchSpec,
    flags: &MeasureFlags,
    mut session: Session,
    cases: &[Case],
    suite: &mut dyn Suite,
) -> Result<ExitCode> {
    let chart = measuring::open_file(&mut session, "chart", flags.output.svg.as_deref())?;
    session.set_work(cases.len(), flags.rounds);
    let out = BufferedStdout::default();
    let mut rows_out = out.clone();
    let rows = match flags.output.format() {
        Some(format) => Some(Rows::new(&mut rows_out, format, rows::columns(spec))?),
        None => None,
    };
    let mut results = Results::new(cases);
    let table = CsvTable { columns: rows::columns(spec), rows: Vec::new() };
    let mut observer = Progress { spec, session, out, rows, table };
    let measured = run_rounds(suite, &mut results, flags.rounds, &mut observer);
    let Progress { mut session, out, table, .. } = observer;
    session.clear_progress();
    measured.and_then(|()| show(spec, flags, &results, &table, chart, &out, &mut session))?;
    Ok(session.exit_code())
}

/// Shows what was measured: tables, unless rows were written before, and a chart.
fn show(
    spec: &BenchSpec,
    flags: &MeasureFlags,
    results: &Results<'_>,
    table: &CsvTable,
    chart: Option<OutputFile>,
    out: &BufferedStdout,
    session: &mut Session,
) -> Result<()> {
    session.announce_end(true);
    if let Some(file) = chart
        && !results.is_empty()
    {
        file.write_chart(&results::chart(spec, table, &machine())?)?;
    }
    let unmeasured = results::describe_unmeasured(spec, results);
    if let Some(first) = unmeasured.first()
        && results.is_empty()
        && !session.is_cancelled()
    {
        bail!("nothing was measured: {first}");
    }
    if flags.output.format().is_some() {
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
    session: Session,
    out: BufferedStdout,
    rows: Option<Rows<'a>>,
    /// All rows, for the chart.
    table: CsvTable,
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
        let values = rows::values(self.spec, case, round, measurement);
        self.table.push(&values);
        let Some(rows) = &mut self.rows else { return Ok(()) };
        rows.row(&values)?;
        self.out.flush_to_stdout(&mut self.session)
    }
}
