//! `minder clock sweep`: what a timer setting of one process does for others.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use minder_bench::{PROBE_SLEEP, ProbeReport, SweepBench, SweepReport, TimerSetting};
use serde_json::{Map, Value as Json};

use super::output::{asked, columns, integer, nanoseconds, note, row, short};
use super::probe::probe_command;
use crate::chart::{Axis, Chart, Curve, Panel, Scale, Unit, machine, noted};
use crate::flags::SweepFlags;
use crate::measuring::{self, BufferedStdout, Session};
use minder_ui::rows::{CsvTable, Rows, Value};
use minder_ui::table::{Column, Table};
use minder_ui::time;

const COLUMNS: [&str; 8] =
    ["setting_ns", "process", "states_ns", "step_ns", "sleeps", "mean_coarse_ns", "mean_ns", "p50_ns"];
/// The settings that were published.
const DEFAULT: std::ops::RangeInclusive<u16> = 1..=15;

/// What was measured for one setting, or for none.
type Measured = (Option<Duration>, SweepReport);

/// Measures what the flags ask for, and shows it.
pub(super) fn run(flags: &SweepFlags) -> Result<ExitCode> {
    let mut millis: Vec<u16> =
        if flags.setting.is_empty() { DEFAULT.collect() } else { flags.setting.clone() };
    millis.sort_unstable();
    millis.dedup();
    let settings = millis.into_iter().map(|millis| Some(Duration::from_millis(millis.into())));
    let settings: Vec<Option<Duration>> = std::iter::once(None).chain(settings).collect();
    let bench = SweepBench::new(probe_command()?)?;
    let mut session = Session::start()?;
    let file = measuring::open_file(&mut session, "chart", flags.output.svg.as_deref())?;
    let out = BufferedStdout::default();
    let mut rows_out = out.clone();
    let format = flags.output.format();
    let mut rows = format.map(|format| Rows::new(&mut rows_out, format, columns(&COLUMNS))).transpose()?;

    let mut table = CsvTable { columns: columns(&COLUMNS), rows: Vec::new() };
    let mut measured: Vec<Measured> = Vec::new();
    let is_cancelled = AtomicBool::new(false);
    let started = Instant::now();
    let result = settings.iter().enumerate().try_for_each(|(index, setting)| {
        if session.is_cancelled() {
            return Ok(());
        }
        session.show_line(&progress(&settings, index, flags.hold, started.elapsed()));
        let measure = || bench.measure(*setting, flags.hold, &is_cancelled);
        let Some(report) = session.run_cancellably(&is_cancelled, measure)?? else { return Ok(()) };
        measured.push((*setting, report));
        for (process, report) in processes(&report) {
            let values = values(*setting, process, &report);
            table.push(&values);
            rows.as_mut().map_or(Ok(()), |rows| rows.row(&values))?;
        }
        out.flush_to_stdout(&mut session)
    });
    session.clear_progress();
    session.announce_end(!measured.is_empty());
    let shown = match rows {
        None if !measured.is_empty() => {
            write_table(&measured, &mut out.clone())?;
            out.flush_to_stdout(&mut session)
        }
        _ => Ok(()),
    };
    // The curves begin at the first setting.
    if let Some(file) = file
        && measured.iter().any(|(setting, _)| setting.is_some())
    {
        file.write_chart(&chart(&table, &format!("{}, {} each", machine(), time(flags.hold))))?;
    }
    result.and(shown)?;
    Ok(session.exit_code())
}

fn progress(settings: &[Option<Duration>], index: usize, hold: Duration, elapsed: Duration) -> String {
    let left = u32::try_from(settings.len() - index).unwrap_or(u32::MAX);
    // What starting the processes has taken so far is added.
    let each = elapsed.checked_div(u32::try_from(index).unwrap_or(0)).unwrap_or(hold).max(hold);
    let what = describe(settings[index]);
    format!("{what}: {} of {}, about {} left", index + 1, settings.len(), time(each * left))
}

fn describe(setting: Option<Duration>) -> String {
    setting.map_or_else(|| "none".to_owned(), asked)
}

/// Returns the name of what a process can set on this system.
fn setting_name() -> &'static str {
    match TimerSetting::of_system() {
        Some(TimerSetting::Tick) => "tick",
        _ => "slack",
    }
}

fn processes(report: &SweepReport) -> [(&'static str, ProbeReport); 3] {
    let reports = [report.setter, report.other, report.child];
    std::array::from_fn(|index| (PROCESSES[index].0, reports[index]))
}

fn values(setting: Option<Duration>, process: &str, report: &ProbeReport) -> Vec<Value> {
    let time = |time: Option<Duration>| time.map_or(Value::Null, nanoseconds);
    row([
        time(setting),
        Value::Text(process.to_owned()),
        time(report.stated),
        time(report.step),
        integer(report.sleeps),
        time(report.mean_coarse),
        nanoseconds(report.mean),
        nanoseconds(report.median),
    ])
}

fn write_table(measured: &[Measured], out: &mut dyn Write) -> io::Result<()> {
    if let Some(note) = note() {
        writeln!(out, "Note: {note}.\n")?;
    }
    let setting = setting_name();
    let sleep = asked(PROBE_SLEEP);
    writeln!(
        out,
        "The {setting} that the system states, the step of the coarse clock, the mean sleep of {sleep}:\n"
    )?;
    let names = ["it", "step", "sleep", "other", "step", "sleep", "child", "step", "sleep"];
    let columns = std::iter::once(setting).chain(names).map(Column::right);
    let mut table = Table::new(out, columns.collect());
    for (setting, report) in measured {
        let mut cells = vec![describe(*setting)];
        for (_, report) in processes(report) {
            let time = |time: Option<Duration>| time.map_or("-".to_owned(), short);
            let stated = report.stated.map_or("-".to_owned(), asked);
            cells.extend([stated, time(report.step), short(report.mean)]);
        }
        table.row(&cells)?;
    }
    table.finish()?;
    writeln!(
        out,
        "\n`it` is a process with the {setting} of the first column, `child` a child of it. The child and\n\
         `other`, which is not related to it, have set nothing."
    )
}

/// The processes, with their names in rows and in charts.
const PROCESSES: [(&str, &str); 3] =
    [("setter", "the process with the setting"), ("other", "another process"), ("child", "its child")];

/// Returns the chart of rows. The subtitle begins with the machine.
pub(super) fn chart(rows: &CsvTable, machine: &str) -> Chart {
    let rows_of = |process: &str| {
        let is_own = |row: &Map<String, Json>| row.get("process").and_then(Json::as_str) == Some(process);
        rows.objects().filter(is_own).collect::<Vec<_>>()
    };
    let panel = |title: &str, label: &str, column: &str| {
        let curves = PROCESSES.map(|(process, label)| {
            let nanos = |row: &Map<String, Json>, column: &str| row.get(column).and_then(Json::as_f64);
            // The first rows are without a setting.
            let point = |row| Some((nanos(row, "setting_ns")? / 1e6, nanos(row, column)?));
            Curve::new(label, rows_of(process).iter().filter_map(point).collect())
        });
        let axis = Axis { label: label.to_owned(), unit: Unit::Nanoseconds };
        Panel { title: title.to_owned(), axis, curves: curves.into() }
    };
    let label = format!("{} that the process has set, in milliseconds", setting_name());
    Chart {
        title: "What a timer setting of one process does for others".to_owned(),
        subtitle: noted(machine, rows),
        x_axis: Axis { label, unit: Unit::Count },
        x_scale: Scale::Linear,
        columns: 2,
        panels: vec![
            panel("a sleep of 1 ms", "mean time of a sleep of 1 ms", "mean_ns"),
            panel("the coarse clock", "step of the coarse clock", "step_ns"),
        ],
    }
}
