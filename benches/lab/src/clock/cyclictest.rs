//! `minder clock measure` and cyclictest of rt-tests: whether both find the same lateness.

use super::Program;
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::peers::Peers;
use crate::processes::processors;
use crate::programs::minder;
use crate::samples::{Contestant, Numbers, Samples, fail, pairs};
use crate::table::grouped;
use anyhow::{Context, Result, bail};
use minder_ui::rows::CsvTable;
use xtask::{install, run};

const LOOPS: usize = 2_000;
const LOOPS_QUICK: usize = 500;
const PERIOD_US: usize = 1_000;
/// The longest lateness in the histogram, in microseconds.
const HISTOGRAM_US: usize = 50_000;

const CYCLICTEST: Contestant = Contestant { name: "cyclictest", title: "cyclictest" };
const OURS: Contestant = Contestant { name: "minder", title: "minder clock measure" };
const ALL: [Contestant; 2] = [OURS, CYCLICTEST];

pub(super) fn cyclictest(bench: &Bench, _: &Program) -> Result<Answer> {
    let loops = if bench.quick { LOOPS_QUICK } else { LOOPS };
    Peers::of_minder_alone()?;
    let processor = processors()?[0].to_string();
    let mut samples = Samples::default();
    let wanted = install::Program { name: "cyclictest", package: "rt-tests" };
    if let Err(why) = install::programs(&[wanted]) {
        samples.leave_out(CYCLICTEST, why);
    }
    let sample = |(who, _): (&Contestant, usize)| match *who {
        CYCLICTEST => by_cyclictest(&processor, loops),
        _ => by_minder(&processor, loops),
    };
    samples.add_rounds(bench, &pairs(&ALL, &[PERIOD_US]), sample, fail)?;
    let mut remarks = vec![versions()?];
    remarks.push(format!(
        "{} sleeps of 1 ms by clock_nanosleep until an absolute time, in one thread. cyclictest sleeps \
         until multiples of 1 ms, minder until 1 ms after the clock was read. cyclictest counts whole \
         microseconds; the middle of each is used.",
        grouped(loops)
    ));
    remarks.push(format!(
        "By strace, cyclictest changes neither timer slack nor priority: with `--policy other` the thread \
         that sleeps is SCHED_OTHER with nice 0. It binds that thread to the first processor of its set. So \
         both programs run under `taskset -c {processor}`. `--laptop` leaves /dev/cpu_dma_latency alone. \
         Neither locks its memory, except for 30 bytes of cyclictest."
    ));
    Ok(Answer::with_goals(&samples, &goals_of(&samples), &costs(&samples), remarks))
}

/// Returns the versions of both programs.
fn versions() -> Result<String> {
    let minder = run::read(run::command(minder()).arg("--version"))?;
    // Its help begins with its version; there is no other option for it.
    let help = run::read(run::command("cyclictest").arg("--help")).unwrap_or_default();
    let cyclictest = help.lines().find(|line| line.starts_with("cyclictest V")).unwrap_or("no cyclictest");
    Ok(format!("{}; {cyclictest}", minder.trim()))
}

fn by_cyclictest(processor: &str, loops: usize) -> Result<Numbers> {
    let mut cmd = run::command("taskset");
    cmd.args(["-c", processor, "cyclictest", "--laptop", "--policy", "other", "-t", "1", "-q"]);
    for (option, number) in [("-i", PERIOD_US), ("-l", loops), ("-h", HISTOGRAM_US)] {
        cmd.args([option, &number.to_string()]);
    }
    of_histogram(&run::read(&mut cmd)?, loops)
}

fn by_minder(processor: &str, loops: usize) -> Result<Numbers> {
    let mut cmd = run::command("taskset");
    cmd.args(["-c", processor]).arg(minder());
    cmd.args(["clock", "measure", "--time", "1ms", "--way", "clock-nanosleep", "--csv", "--count"]);
    of_csv(&run::read(cmd.arg(loops.to_string()))?)
}

/// Returns the percentiles of cyclictest's histogram: lines of `microseconds count`.
fn of_histogram(text: &str, loops: usize) -> Result<Numbers> {
    let mut bars: Vec<(f64, usize)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (micros, count) = line.split_once(' ').with_context(|| format!("the line `{line}`"))?;
        let micros: u32 = micros.parse().with_context(|| format!("the line `{line}`"))?;
        let count: usize = count.trim().parse().with_context(|| format!("the line `{line}`"))?;
        bars.push((f64::from(micros) + 0.5, count));
    }
    let seen: usize = bars.iter().map(|(_, count)| count).sum();
    if seen == 0 || seen > loops {
        bail!("cyclictest counted {seen} of {loops} sleeps");
    }
    // What is missing was later than the histogram reaches.
    let at = |percent: usize| {
        let mut left = (loops * percent / 100).min(loops - 1);
        let bar = bars.iter().find(|(_, count)| {
            let is_here = left < *count;
            left = left.saturating_sub(*count);
            is_here
        });
        bar.map_or(f64::INFINITY, |(micros, _)| *micros)
    };
    Ok([("p50_us", 50), ("p99_us", 99), ("max_us", 100)].map(|(name, part)| (name.into(), at(part))).into())
}

/// Returns the percentiles in the row of `minder clock measure --csv`.
fn of_csv(text: &str) -> Result<Numbers> {
    let table = CsvTable::read(text).context("the rows of minder clock measure")?;
    let [row] = &table.rows[..] else { bail!("minder clock measure printed `{}`", text.trim()) };
    let number = |(name, column): (&str, &str)| {
        let place = table.index(column).with_context(|| format!("no column {column}"))?;
        let nanos: f64 = row[place].parse().with_context(|| format!("the value `{}`", row[place]))?;
        Ok((name.to_string(), nanos / 1e3))
    };
    [("p50_us", "p50_ns"), ("p99_us", "p99_ns"), ("max_us", "max_ns")].into_iter().map(number).collect()
}

fn goals_of(samples: &Samples) -> Vec<Goal> {
    let ratio = |name| samples.ratio((&OURS, PERIOD_US), (&CYCLICTEST, PERIOD_US), name);
    vec![
        Goal::ratio("p50: minder over cyclictest", ratio("p50_us"), Aim::AtMost(1.25)),
        Goal::ratio("the same, at least", ratio("p50_us"), Aim::AtLeast(0.8)),
        Goal::ratio("p99: minder over cyclictest", ratio("p99_us"), Aim::None),
        Goal::of("p50 of minder", " us", samples.spread((&OURS, PERIOD_US), "p50_us"), Aim::None),
    ]
}

fn costs(samples: &Samples) -> String {
    let columns = [
        ("p50 us late", ("p50_us", 1.0, 1)),
        ("p99 us late", ("p99_us", 1.0, 1)),
        ("max us late", ("max_us", 1.0, 1)),
    ];
    samples.table("program", (&ALL, Contestant::title), PERIOD_US, &columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn percentiles_come_from_the_histogram() {
        let text = "# Histogram\n000000 000000\n000070 000002\n000071 000001\n000090 000001\n\
                    # Total: 000000004\n# Thread 0:\n";
        let named = |numbers: Numbers| numbers.into_iter().map(|(_, value)| value).collect::<Vec<_>>();
        assert_eq!(named(of_histogram(text, 4).unwrap()), [71.5, 90.5, 90.5]);
        assert_eq!(named(of_histogram(text, 5).unwrap()), [71.5, f64::INFINITY, f64::INFINITY]);
        assert!(of_histogram("# Histogram\n", 4).is_err() && of_histogram("70\n", 4).is_err());
    }

    #[test]
    fn percentiles_come_from_the_columns() {
        let text = "way,p50_ns,p99_ns,max_ns\nclock-nanosleep,70500,91000,120000\n";
        let numbers = of_csv(text).unwrap();
        assert_eq!(numbers[0], ("p50_us".to_string(), 70.5));
        assert!(of_csv("way,p50_ns\nclock-nanosleep,1\n").is_err() && of_csv("way\n").is_err());
    }

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("clock-cyclictest", goals_of);
    }
}
