//! `minder bench turnaround`: serial or concurrent, in which order, how many at once.
//!
//! The plan comes first, then the runs that the file of results does not have, then their tables, charts
//! and workbook.

mod rows;
mod results_file;
mod summary;
mod tables;
mod charts;
#[cfg(feature = "xlsx")]
mod workbook;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder::Command;
use minder_bench::{
    Calibration, EmptyPlan, Lengths, Plan, PlanOptions, PlannedRun, Runner, Spread, TurnaroundBench, Workload,
};
use minder_os::host_stats;

use self::results_file::ResultsFile;
use self::rows::{Row, columns};
use self::summary::Summary;
use super::errors::to_anyhow;
use crate::chart::{Chart, machine};
use crate::flags::TurnaroundFlags;
use crate::measuring::{self, BufferedStdout, OutputFile, Session};
use minder_ui::rows::{CsvTable, Rows};
use minder_ui::{count, message, time};

/// The most time that all runs may take in theory, unless the flags set another.
const MINUTES_MAX: u64 = 10;
/// The same with `--quick`.
const QUICK_MINUTES_MAX: u64 = 1;

/// The files that are written in the end.
#[derive(Debug, Default)]
struct OutputFiles {
    chart: Option<OutputFile>,
    workbook: Option<OutputFile>,
}

/// Measures what the flags ask for, and shows it.
pub(super) fn run(flags: &TurnaroundFlags) -> Result<ExitCode> {
    if flags.xlsx.is_some() && cfg!(not(feature = "xlsx")) {
        bail!(
            "cannot write a workbook: this minder was built without it \
             (`cargo install --path crates/minder-cli --features xlsx`)"
        );
    }
    let options = options(flags, host_stats::processors());
    let plan = plan(flags, &options)?;
    let mut session = Session::start()?;
    let results_path = results_path(flags)?;
    check_files(&[
        ("--results", results_path.as_deref()),
        ("--svg", flags.output.svg.as_deref()),
        ("--xlsx", flags.xlsx.as_deref()),
    ])?;
    let files = open_files(flags, &mut session)?;
    let mut results = None;
    let mut known = Vec::new();
    if let Some(path) = results_path {
        let (file, rows) = ResultsFile::open(&path, options.processors, flags.fresh)?;
        known = rows;
        results = Some((path, file));
    }
    let planned: HashSet<PlannedRun> = plan.runs.iter().copied().collect();
    known.retain(|row| planned.contains(&row.run()));
    let done: HashSet<PlannedRun> = known.iter().map(Row::run).collect();
    let missing: Vec<PlannedRun> = plan.runs.iter().copied().filter(|run| !done.contains(run)).collect();
    announce(flags, &plan, &options, &missing, results.as_ref().map(|(path, _)| path.as_path()));

    let out = BufferedStdout::default();
    let mut rows_out = out.clone();
    let rows_writer = match flags.output.format() {
        Some(format) => Some(Rows::new(&mut rows_out, format, columns())?),
        None => None,
    };
    let mut measuring = Measuring {
        session,
        file: results.map(|(_, file)| file),
        out: out.clone(),
        rows_writer,
        rows: Vec::new(),
        processors: options.processors,
    };
    let measured = measuring.run(known, &missing, &plan);
    let Measuring { mut session, rows, .. } = measuring;
    session.clear_progress();
    let summary = Summary { rows };
    // Whatever failed, what was measured is shown.
    let shown = show(flags, &summary, options.processors, files, &out, &mut session);
    measured.and(shown)?;
    Ok(session.exit_code())
}

/// Returns the chart of rows that were printed before.
///
/// # Errors
/// A row is not one of this measurement.
pub(super) fn redraw(rows: &CsvTable, machine: &str) -> Result<Chart> {
    let rows = rows.objects().map(|row| Row::read(&row)).collect::<Result<_>>()?;
    Ok(charts::chart(&Summary { rows }, machine))
}

/// Combines the flags with their defaults.
fn options(flags: &TurnaroundFlags, processors: usize) -> PlanOptions {
    let numbers = |sizes: &Option<crate::flags::Sizes>, default: &[u64]| -> Vec<u64> {
        sizes.as_ref().map_or(default, |sizes| &sizes.0).to_vec()
    };
    let to_usize = |numbers: Vec<u64>| -> Vec<usize> {
        numbers.into_iter().filter_map(|number| usize::try_from(number).ok()).collect()
    };
    let biases: &[u64] = match (flags.full, flags.quick) {
        (true, _) => &[10, 30, 90, 270, 810, 2430],
        (_, true) => &[10],
        _ => &[10, 30, 90],
    };
    let counts: &[u64] = match (flags.equal, flags.quick) {
        (true, _) => &[8, 16, 32],
        (_, true) => &[2, 8, 17],
        _ => &[2, 5, 8, 11, 14, 17],
    };
    let degrees: &[u64] = if flags.full { &[1, 2, 4, 8, 17, 25] } else { &[2, 8, 25] };
    let minutes = flags.minutes.unwrap_or(if flags.quick { QUICK_MINUTES_MAX } else { MINUTES_MAX });
    PlanOptions {
        workloads: selected(&Workload::ALL, &flags.workload, Workload::name),
        runners: selected(&Runner::ALL, &flags.runner, Runner::name),
        biases_ms: numbers(&flags.bias, biases),
        counts: to_usize(numbers(&flags.count, counts)),
        degrees: to_usize(numbers(&flags.degree, degrees)),
        lengths: if flags.equal { Lengths::Equal } else { Lengths::Ramp },
        repetitions: flags.repetitions.unwrap_or(if flags.quick { 1 } else { 5 }),
        processors,
        time_max: (!flags.full).then(|| Duration::from_secs(60 * minutes)),
    }
}

/// Makes a plan that has runs.
fn plan(flags: &TurnaroundFlags, options: &PlanOptions) -> Result<Plan> {
    match options.empty() {
        None => (),
        Some(EmptyPlan::LongBias { bias_ms, count }) => bail!(
            "cannot measure anything: above a bias of {bias_ms} ms there are at most {count} computations \
             (--count, --equal)"
        ),
        Some(_) => bail!(
            "cannot measure anything: timers run only io, and children only cpu and io (--runner, --workload)"
        ),
    }
    let plan = Plan::new(options);
    if plan.runs.is_empty() {
        let hint = if flags.quick { "--minutes without --quick" } else { "--minutes" };
        bail!("nothing fits into {} ({hint} sets another time)", time(options.time_max.unwrap_or_default()));
    }
    Ok(plan)
}

/// Returns those whose names are wanted; all if there are no names.
fn selected<T: Copy>(all: &[T], wanted: &[String], name: impl Fn(T) -> &'static str) -> Vec<T> {
    let is_wanted = |it: &T| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name(*it));
    all.iter().copied().filter(is_wanted).collect()
}

/// Checks that no two flags name the same regular file.
fn check_files(files: &[(&str, Option<&Path>)]) -> Result<()> {
    let mut known: Vec<(&str, PathBuf)> = Vec::new();
    for (flag, path) in files {
        let Some(path) = path else { continue };
        // A device or a pipe can be written twice.
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            continue;
        }
        let real = real_path(path);
        if let Some((other, _)) = known.iter().find(|(_, other)| *other == real) {
            bail!("{other} and {flag} name the same file, `{}`", path.display());
        }
        known.push((flag, real));
    }
    Ok(())
}

/// Returns the path without links. The file may be missing.
fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let in_directory = || Some(absolute.parent()?.canonicalize().ok()?.join(absolute.file_name()?));
    absolute.canonicalize().ok().or_else(in_directory).unwrap_or_else(|| absolute.clone())
}

/// Opens the files of a chart and a workbook.
fn open_files(flags: &TurnaroundFlags, session: &mut Session) -> Result<OutputFiles> {
    let chart = measuring::open_file(session, "chart", flags.output.svg.as_deref())?;
    let workbook = measuring::open_file(session, "workbook", flags.xlsx.as_deref())?;
    Ok(OutputFiles { chart, workbook })
}

/// Returns the path of the results, if they are kept.
fn results_path(flags: &TurnaroundFlags) -> Result<Option<PathBuf>> {
    match &flags.results {
        Some(path) => Ok(Some(path.clone())),
        None if flags.full => ResultsFile::default_path().map(Some),
        None if flags.fresh => bail!("--fresh: there is no file of results without --full or --results"),
        None => Ok(None),
    }
}

/// Prints what is measured and how long it takes.
fn announce(
    flags: &TurnaroundFlags,
    plan: &Plan,
    options: &PlanOptions,
    missing: &[PlannedRun],
    results: Option<&Path>,
) {
    let on = count(options.processors as u64, "processor");
    let runs = count(missing.len() as u64, "run");
    let expected = time(plan.expected(missing));
    message(&format!("{runs} on {on}, expected to take {expected} if nothing else runs"));
    if let Some(path) = results {
        let done = plan.runs.len() - missing.len();
        let all = count(plan.runs.len() as u64, "run");
        message(&format!("`{}` has {done} of {all}", path.display()));
    }
    let workloads = plan.left_out_workloads.iter().map(|it| it.name().to_owned());
    let degrees = plan.left_out_degrees.iter().map(|degree| format!("degree {degree}"));
    let counts = plan.left_out_counts.iter().map(|it| count(*it as u64, "computation"));
    let mut left_out: Vec<String> = workloads.chain(degrees).chain(counts).collect();
    for &bias in &options.biases_ms {
        let repetitions = plan.left_out.iter().filter(|(other, _)| *other == bias).count();
        if repetitions > 0 {
            left_out.push(format!("{bias} ms ({})", count(repetitions as u64, "repetition")));
        }
    }
    if let (false, Some(time_max)) = (left_out.is_empty(), options.time_max) {
        let what = left_out.join(", ");
        let hint = if flags.quick { "--minutes or --full without --quick" } else { "--minutes, --full" };
        message(&format!("left out, to end within {}: {what} ({hint})", time(time_max)));
    }
}

/// What is used while the runs are measured.
struct Measuring<'a> {
    session: Session,
    file: Option<ResultsFile>,
    out: BufferedStdout,
    rows_writer: Option<Rows<'a>>,
    rows: Vec<Row>,
    processors: usize,
}

impl Measuring<'_> {
    /// Writes the known rows, and measures the missing ones until a signal cancels that.
    fn run(&mut self, known: Vec<Row>, missing: &[PlannedRun], plan: &Plan) -> Result<()> {
        for row in known {
            self.add(row)?;
        }
        if missing.is_empty() {
            return Ok(());
        }
        let is_cancelled = AtomicBool::new(false);
        let calibration = self.session.run_cancellably(&is_cancelled, Calibration::measure)?;
        describe(&calibration);
        let bench = TurnaroundBench::new(calibration, child()?);
        let total = plan.expected(missing);
        let mut done = Duration::ZERO;
        let started = Instant::now();
        for (at, run) in (1..).zip(missing) {
            if self.session.is_cancelled() {
                break;
            }
            let left = left(total, done, started.elapsed());
            let number = format!("{at} of {}", missing.len());
            self.session.show_line(&format!("{}: {number}, about {} left", run.case, time(left)));
            let load = host_stats::load().ok();
            let measured =
                self.session.run_cancellably(&is_cancelled, || bench.measure(&run.case, &is_cancelled))?;
            let Some(measurement) = measured.map_err(to_anyhow)? else { break };
            let PlannedRun { case, repetition } = *run;
            let row = Row { case, repetition, processors: self.processors, measurement, load };
            let kept = self.file.as_mut().map_or(Ok(()), |file| file.append(&row));
            let added = self.add(row);
            kept.and(added)?;
            done += plan.expected(&[*run]);
        }
        Ok(())
    }

    fn add(&mut self, row: Row) -> Result<()> {
        self.rows.push(row);
        let Some(writer) = &mut self.rows_writer else { return Ok(()) };
        writer.row(&row.values())?;
        self.out.flush_to_stdout(&mut self.session)
    }
}

/// Returns the time that is left: that of the model, as much longer as the runs so far took.
fn left(total: Duration, done: Duration, elapsed: Duration) -> Duration {
    let slower = if done.is_zero() { 1.0 } else { (elapsed.as_secs_f64() / done.as_secs_f64()).max(1.0) };
    total.saturating_sub(done).mul_f64(slower)
}

/// Returns the command of the children: this program.
fn child() -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program, which is to be started")?;
    let mut command = Command::new(program);
    command.args(["bench", "compute"]);
    Ok(command)
}

/// Prints how exact the computations are.
fn describe(calibration: &Calibration) {
    let Calibration { loops_per_ms, cpu_error, loops_error, .. } = calibration;
    let wrong =
        |error: &Spread| format!("{:.2} % wrong ({:.2} % at worst)", error.median * 100.0, error.max * 100.0);
    let by_clock = if Calibration::HAS_CPU_CLOCK {
        format!("{} by the CPU clock, and ", wrong(cpu_error))
    } else {
        String::new()
    };
    let by_loops = wrong(loops_error);
    let errors = format!("computations of 10 ms are {by_clock}{by_loops} by loops");
    message(&format!("calibration: {loops_per_ms:.0} loops take 1 ms; {errors}"));
}

/// Shows what was measured: tables, unless rows were written before, then a chart and a workbook.
///
/// Each is shown even if another one cannot be written.
///
/// # Errors
/// The first one.
fn show(
    flags: &TurnaroundFlags,
    summary: &Summary,
    processors: usize,
    files: OutputFiles,
    out: &BufferedStdout,
    session: &mut Session,
) -> Result<()> {
    session.announce_end(!summary.rows.is_empty());
    if summary.rows.is_empty() {
        return Ok(());
    }
    let tables = match flags.output.format() {
        None => tables::write(summary, processors, &mut out.clone()).map_err(Into::into),
        Some(_) => Ok(()),
    };
    let shown = tables.and_then(|()| out.flush_to_stdout(session));
    let chart = match files.chart {
        Some(file) => file.write_chart(&charts::chart(summary, &machine())),
        None => Ok(()),
    };
    let workbook = match files.workbook {
        Some(file) => write_workbook(summary, processors, file),
        None => Ok(()),
    };
    shown.and(chart).and(workbook)
}

#[cfg(feature = "xlsx")]
fn write_workbook(summary: &Summary, processors: usize, file: OutputFile) -> Result<()> {
    file.write(&workbook::workbook(summary, processors)?)
}

#[cfg(not(feature = "xlsx"))]
fn write_workbook(_summary: &Summary, _processors: usize, _file: OutputFile) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_grows_with_the_load() {
        let seconds = Duration::from_secs;
        assert_eq!(left(seconds(100), Duration::ZERO, Duration::ZERO), seconds(100));
        assert_eq!(left(seconds(100), seconds(10), seconds(30)), seconds(270));
        assert_eq!(left(seconds(100), seconds(100), seconds(90)), Duration::ZERO);
    }
}
