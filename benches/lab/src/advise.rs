//! `cargo bench-lab advise`: whether `minder advise` predicts what the advised run takes.
//!
//! Three kinds of work are recorded with another number of jobs at once than is best, and run again
//! as advised. A prediction assumes that other programs use the processors as before, so the load
//! counts.

use crate::bench::{Answer, Bench};
use crate::machine;
use crate::peers::Peers;
use crate::programs::{built, compile, input, minder, state};
use crate::question::{self, Question};
use crate::table::{markdown, shown};
use anyhow::{Context, Result};
use minder_ui::rows::CsvTable;
use serde_json::Value;
use std::path::Path;
use xtask::run;

const QUESTIONS: [Question<()>; 1] = [Question {
    name: "prediction",
    what: "predicted and measured time of runs as advised",
    rounds: 5,
    ask: measure,
}];

const COLUMNS: [&str; 10] = [
    "round",
    "work",
    "load",
    "recorded_s",
    "model_s",
    "flags",
    "predicted_s",
    "error",
    "measured_s",
    "serial_predicted_s",
];

/// The jobs of a run.
const JOBS: u32 = 24;
/// A prediction that is off by more than this part is a miss.
const GOAL: f64 = 0.15;

/// Runs a command before other programs, as far as that is allowed: the priority of its session,
/// and that within the session (sched(7), autogroup).
const FIRST: &str = "echo -15 2> /dev/null > /proc/self/autogroup; exec nice -n -15 \"$@\"";

/// One kind of work: the CPU time and the waiting of a job, as parts of its length.
struct Work {
    name: &'static str,
    cpu: f64,
    wait: f64,
    /// How often a job alternates between the two.
    phases: u32,
    /// How many jobs run at once when the run is recorded.
    slots: u32,
}

const KINDS: [Work; 3] = [
    Work { name: "computing", cpu: 1.0, wait: 0.0, phases: 1, slots: 8 },
    Work { name: "waiting", cpu: 0.0, wait: 1.0, phases: 1, slots: 2 },
    Work { name: "half of each", cpu: 0.5, wait: 0.5, phases: 5, slots: 2 },
];

/// `cargo bench-lab advise [--rounds N] [--quick]`
pub(crate) fn main(words: &[String]) -> Result<()> {
    question::answer(("advise", "minder advise"), &QUESTIONS, words, Peers::of_minder_alone, |_, _| {
        compile("burn", &[], &[])?;
        Ok(((), Vec::new()))
    })
}

fn measure(bench: &Bench, (): &()) -> Result<Answer> {
    // With a tenth of the work, a start would take longer than the first jobs.
    let longest = if bench.quick { 240.0 } else { 480.0 };
    let mut rows = CsvTable::new(&COLUMNS);
    let mut lines = Vec::new();
    for kind in &KINDS {
        let mut results = Vec::new();
        for round in 0..bench.rounds {
            bench.round(round);
            let input = input(jobs(kind, longest))?;
            let recorded = Advice::of_run(&input, &[format!("-j{}", kind.slots)])?;
            let flags: Vec<String> = recorded.flags.split(' ').map(String::from).collect();
            let again = Advice::of_run(&input, &flags)?;
            let load = machine::load();
            let load = load.split(' ').next().unwrap_or_default();
            let Advice { measured, model, predicted, error, serial, .. } = recorded;
            let seconds = |seconds: f64| format!("{seconds:.3}");
            rows.rows.push(vec![
                (round + 1).to_string(),
                kind.name.into(),
                load.into(),
                seconds(measured),
                seconds(model),
                recorded.flags.clone(),
                seconds(predicted),
                seconds(error),
                seconds(again.measured),
                seconds(serial),
            ]);
            results.push((recorded, again.measured));
        }
        let column = |of: &dyn Fn(&(Advice, f64)) -> f64, decimals| shown(results.iter().map(of), decimals);
        let hits =
            results.iter().filter(|(advice, measured)| (measured / advice.predicted - 1.0).abs() <= GOAL);
        let mut flags: Vec<&str> = results.iter().map(|(advice, _)| advice.flags.as_str()).collect();
        flags.sort_unstable();
        flags.dedup();
        lines.push(vec![
            kind.name.to_owned(),
            format!("-j{}: {}", kind.slots, column(&|result| result.0.measured, 2)),
            flags.join(" or "),
            column(&|result| result.0.predicted, 2),
            column(&|result| result.1, 2),
            column(&|result| result.1 / result.0.predicted, 2),
            format!("{} of {}", hits.count(), results.len()),
            column(&|result| result.0.error * 100.0, 0),
        ]);
    }
    let head = [
        "work",
        "recorded, s",
        "advised",
        "predicted, s",
        "measured, s",
        "measured / predicted",
        "within 15 %",
        "stated error, %",
    ];
    let remarks = vec![
        format!(
            "{JOBS} jobs of {} to {longest} ms in a mixed order; medians with extremes.",
            longest / f64::from(JOBS)
        ),
        "Computing is measured by CPU time (benches/peers/burn.c), so a job needs the same on a busy \
         machine. A prediction assumes that other programs use as much as while the run was recorded, so the \
         jobs have a high priority (-15), if that is allowed."
            .into(),
    ];
    Ok(Answer { table: markdown(&head, &lines), remarks, rows })
}

/// Returns the lines of the jobs: the milliseconds of CPU time and of waiting, and the phases.
fn jobs(kind: &Work, longest: f64) -> impl Iterator<Item = String> {
    let Work { cpu, wait, phases, .. } = *kind;
    // 37 and 24 have no common divisor, so every length occurs once.
    (0..JOBS).map(move |job| {
        let length = longest * f64::from(job * 37 % JOBS + 1) / f64::from(JOBS);
        format!("{:.0} {:.0} {phases}", length * cpu, length * wait)
    })
}

/// What `minder advise` says about a run.
#[derive(Debug)]
struct Advice {
    measured: f64,
    model: f64,
    predicted: f64,
    serial: f64,
    error: f64,
    flags: String,
}

impl Advice {
    /// Runs the jobs with these flags, and asks for the advice.
    fn of_run(input: &Path, flags: &[String]) -> Result<Self> {
        // A session has its own share of the processors.
        let mut command = run::command("setsid");
        command.args(["--wait", "sh", "-c", FIRST, "sh"]).arg(minder());
        command.env("MINDER_STATE_DIR", state());
        command.args(["run", "--quiet", "-C", " "]).args(flags).arg(built("burn"));
        run::finish(command.args(["{1}", "{2}", "{3}"]).stdin(std::fs::File::open(input)?))?;
        let mut advise = run::command(minder());
        advise.env("MINDER_STATE_DIR", state()).args(["advise", "last", "--json"]);
        let json = run::read(&mut advise)?;
        Self::parse(&json).with_context(|| format!("cannot read the advice {json}"))
    }

    fn parse(json: &str) -> Result<Self> {
        let advice: Value = serde_json::from_str(json)?;
        let found = |path: &str| advice.pointer(path).with_context(|| format!("it has no `{path}`"));
        let number = |path| found(path)?.as_f64().with_context(|| format!("`{path}` is not a number"));
        Ok(Self {
            measured: number("/measured")?,
            model: number("/as_run/elapsed")?,
            predicted: number("/advised/elapsed")?,
            serial: number("/one_by_one/elapsed")?,
            error: number("/error")?,
            flags: found("/flags")?.as_str().context("`/flags` is not text")?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_every_length_once() {
        let mut lengths: Vec<u32> = jobs(&KINDS[1], 240.0)
            .map(|line| line.split(' ').nth(1).and_then(|wait| wait.parse().ok()).expect("parse length"))
            .collect();
        lengths.sort_unstable();
        assert_eq!(lengths, (1..=24).map(|length| length * 10).collect::<Vec<_>>());
    }

    #[test]
    fn advice_is_read_from_json() {
        let json = "{\n  \"advised\": {\n    \"elapsed\": 1.5,\n    \"slots\": 2\n  },\n  \"as_run\": {\n    \
                    \"elapsed\": 2.5\n  },\n  \"error\": 0.1,\n  \"flags\": \"-j2 --order shortest\",\n  \
                    \"measured\": 3.5,\n  \"one_by_one\": {\n    \"elapsed\": 4.5\n  }\n}\n";
        let Advice { measured, model, predicted, serial, error, flags } = Advice::parse(json).expect("parse");
        assert_eq!((measured, model, predicted, serial, error), (3.5, 2.5, 1.5, 4.5, 0.1));
        assert_eq!(flags, "-j2 --order shortest");
        assert!(Advice::parse("{\n  \"measured\": null\n}\n").is_err());
    }
}
