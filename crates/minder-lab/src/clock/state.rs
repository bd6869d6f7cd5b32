//! `minder clock`: the state now, on one screen.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use minder::clock::{Precision, SleepMethod};
use minder_bench::{SleepStats, SleepWay};

use super::clock_facts::ClockFacts;
use super::output::{asked, asked_ascii, columns, integer, nanoseconds, note, row, short};
use super::sleep_chart;
use super::sleeps::{Case, Sleeps};
use super::unusual;
use crate::chart::machine;
use crate::flags::OutputFlags;
use crate::measuring::{self, BufferedStdout, Session};
use minder_ui::count;
use minder_ui::format::{fill_text, nanos};
use minder_ui::rows::{Rows, Value};
use minder_ui::symbols::Symbols;
use minder_ui::table::{Column, Table};

/// The sleeps by each way.
const COUNT: usize = 200;
const TIMES: [Duration; 2] = [Duration::from_millis(1), Duration::from_micros(100)];
/// The sleep that most programs use.
const COMMON: SleepWay = SleepWay::Method(SleepMethod::ThreadSleep);
const PRECISE: SleepWay = SleepWay::Sleeper(Precision::Precise);
/// The width of a line of a remark.
const REMARK_WIDTH: usize = 76;
/// The width of the first column of the facts.
const NAME_WIDTH: usize = 13;

/// Measures a little, and shows it.
pub(super) fn run(output: &OutputFlags) -> Result<ExitCode> {
    let mut session = Session::start()?;
    let chart = measuring::open_file(&mut session, "chart", output.svg.as_deref())?;
    let facts = session.run_cancellably(&AtomicBool::new(false), ClockFacts::collect)?;
    let mut sleeps = Sleeps::new(&[COMMON, PRECISE], &TIMES, &[0]);
    let measured = sleeps.measure(&mut session, COUNT, |_, _, _| Ok(()));
    session.clear_progress();
    measured?;
    session.announce_end(true);
    let remarks = unusual::remarks(&facts, sleeps.stats(case(COMMON, TIMES[0])));
    let out = BufferedStdout::default();
    match output.format() {
        Some(format) => {
            let mut rows_out = out.clone();
            let mut rows = Rows::new(&mut rows_out, format, columns(&["item", "property", "value"]))?;
            for (item, property, value) in properties(&facts, &sleeps, &remarks) {
                rows.row(&row([Value::Text(item), Value::Text(property.to_owned()), value]))?;
            }
        }
        None => write_screen(&facts, &sleeps, &remarks, &mut out.clone())?,
    }
    let shown = out.flush_to_stdout(&mut session);
    if let Some(file) = chart {
        file.write_chart(&sleep_chart::chart(&sleeps.table(), &machine())?)?;
    }
    shown?;
    Ok(session.exit_code())
}

fn case(way: SleepWay, time: Duration) -> Case {
    Case { way, time, load: 0 }
}

fn write_screen(
    facts: &ClockFacts,
    sleeps: &Sleeps,
    remarks: &[String],
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Some(note) = note() {
        writeln!(out, "Note: {note}.\n")?;
    }
    let stats = |way, time| sleeps.stats(case(way, time));
    for time in TIMES {
        if let (Some(common), Some(precise)) = (stats(COMMON, time), stats(PRECISE, time)) {
            writeln!(out, "{}", sentence(time, common, precise))?;
        }
    }
    writeln!(out)?;
    write_clocks(facts, out)?;
    writeln!(out)?;
    let mut fact = |name: &str, text: &str| writeln!(out, "{name:NAME_WIDTH$} {text}");
    if let Some(source) = &facts.source {
        fact("clock source", source)?;
    }
    if let Some(slack) = facts.stated.timer_slack {
        fact("timer slack", &format!("{} (a sleep may end this much late)", asked(slack)))?;
    }
    if let Some(tick) = facts.stated.tick {
        let [current, shortest, longest] = [tick.current, tick.shortest, tick.longest].map(short);
        fact("tick", &format!("{current} now; {longest} without requests, at best {shortest}"))?;
    }
    if let Some(Ok(period)) = &facts.fastest_tick {
        fact("", &format!("{} while this program requested the fastest one", short(*period)))?;
    }
    if let Some(base) = facts.stated.timebase {
        fact("timebase", &format!("{}/{} ns", base.numer, base.denom))?;
    }
    let load = facts.load.map(|load| format!("{load:.1} on ")).unwrap_or_default();
    fact("load", &format!("{load}{}", count(facts.processors as u64, "processor")))?;
    writeln!(out)?;
    if remarks.is_empty() {
        return writeln!(out, "Nothing is unusual.");
    }
    writeln!(out, "Unusual:")?;
    for remark in remarks {
        for line in fill_text(remark, Some(REMARK_WIDTH)).lines() {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// Describes what a sleep lasts: `sleep 1 ms    median 1.08 ms   p99 1.21 ms   (timerfd: 1.03 ms)`.
fn sentence(time: Duration, common: SleepStats, precise: SleepStats) -> String {
    let [p50, p99, best] = [common.p50, common.p99, precise.p50].map(|late| short(time + late));
    format!(
        "sleep {:NAME_WIDTH$}median {p50:10}  p99 {p99:10}  ({}: {best})",
        asked(time),
        SleepMethod::most_exact()
    )
}

fn write_clocks(facts: &ClockFacts, out: &mut dyn Write) -> io::Result<()> {
    let numbers = ["unit", "step", "reading it"].map(Column::right);
    let mut table = Table::new(out, std::iter::once(Column::left("clock")).chain(numbers).collect());
    for (clock, cost) in &facts.clocks {
        let time = |time: Option<Duration>| time.map_or("-".to_owned(), short);
        let unit = facts.unit(*clock);
        table.row(&[clock.name().to_owned(), time(unit), time(cost.step), nanos(cost.read_nanos)])?;
    }
    table.finish()
}

/// Returns everything as an item, a property of it and its value.
fn properties(facts: &ClockFacts, sleeps: &Sleeps, remarks: &[String]) -> Vec<(String, &'static str, Value)> {
    let time = |time: Option<Duration>| time.map_or(Value::Null, nanoseconds);
    let tick = facts.stated.tick;
    let mut all = Vec::new();
    let mut system = |property, value| all.push(("system".to_owned(), property, value));
    system("clock_source", facts.source.clone().map_or(Value::Null, Value::Text));
    system("timer_slack_ns", time(facts.stated.timer_slack));
    system("tick_ns", time(tick.map(|tick| tick.current)));
    system("tick_longest_ns", time(tick.map(|tick| tick.longest)));
    system("tick_shortest_ns", time(tick.map(|tick| tick.shortest)));
    let fastest = facts.fastest_tick.as_ref().and_then(|granted| granted.as_ref().ok());
    system("tick_granted_ns", time(fastest.copied()));
    system(
        "timebase_ns",
        facts
            .stated
            .timebase
            .map_or(Value::Null, |base| Value::Real(f64::from(base.numer) / f64::from(base.denom.max(1)))),
    );
    system("precise", Value::Text(SleepMethod::most_exact().name().to_owned()));
    system("processors", integer(facts.processors));
    system("load", facts.load.map_or(Value::Null, Value::Real));
    for (clock, cost) in &facts.clocks {
        let item = format!("clock {clock}");
        all.push((item.clone(), "unit_ns", time(facts.unit(*clock))));
        all.push((item.clone(), "step_ns", time(cost.step)));
        all.push((item, "read_ns", Value::Real((cost.read_nanos * 10.0).round() / 10.0)));
    }
    for it in &sleeps.0 {
        let Some(stats) = it.lateness.stats() else { continue };
        let item = format!("sleep {}, {}", it.case.way, asked_ascii(it.case.time));
        all.push((item.clone(), "sleeps", integer(stats.count)));
        for (property, late) in [
            ("p50_ns", stats.p50),
            ("p99_ns", stats.p99),
            ("max_ns", stats.max),
            ("mean_ns", stats.mean),
            ("cpu_ns", stats.mean_cpu_time),
        ] {
            all.push((item.clone(), property, nanoseconds(late)));
        }
    }
    // Rows are the same in every locale.
    let remark = |text: &String| Value::Text(Symbols::Ascii.convert(text).into_owned());
    all.extend(remarks.iter().map(|text| ("system".to_owned(), "unusual", remark(text))));
    all
}
