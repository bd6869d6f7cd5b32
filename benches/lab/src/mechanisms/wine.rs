//! The Windows build of `minder bench`, under Wine.
//!
//! Times under Wine are not times of Windows, so the tables contain only ratios: between mechanisms
//! in the same round, and between sizes. They are ratios of wall time with everything on one
//! processor, since the work of Wine's server is in no CPU time of the program.

use super::{WALL, by_size, rows};
use crate::bench::{Answer, Bench};
use crate::goals::{self, Aim, Goal};
use crate::processes::processors;
use crate::question::Question;
use crate::samples::{Point, Samples};
use crate::table::grouped;
use anyhow::{Result, bail};
use xtask::{run, wine};

pub(super) const VERB: &str = "wine";
/// The mechanism that the others are compared with.
const UNIT: &str = "iocp";
/// The published pool, and our mechanisms that wait for handles.
const PUBLISHED: &str = "pool";
const RESIDENT: [&str; 4] = ["iocp", "wait_pool", "thread_pool", "posting-pool"];

pub(super) const QUESTIONS: [Question<()>; 3] = [
    Question {
        name: "wait",
        what: "one wait for one of N handles, by mechanism, in ratios",
        rounds: 5,
        ask: wait,
    },
    Question {
        name: "exit",
        what: "a child's exit while others live, by mechanism, in ratios",
        rounds: 3,
        ask: exit,
    },
    Question { name: "spawn", what: "one start of a child, by mechanism, in ratios", rounds: 5, ask: spawn },
];

/// Builds the command for Windows, without the bundled database.
pub(super) fn build() -> Result<()> {
    if let Err(missing) = wine::ready() {
        bail!("{missing}");
    }
    let build = ["build", "--release", "-p", "minder-cli", "--no-default-features", "--features", "lab"];
    let mut cargo = wine::Prefix::open()?.cargo(&build);
    // Most of the measured time is Wine's. Without LTO the program links in a tenth of the time.
    run::run(
        cargo.envs([("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")]),
    )
}

fn wait(bench: &Bench, (): &()) -> Result<Answer> {
    let few: &[&str] = if bench.quick { &["--objects", "0,2,64,65,2048,4096"] } else { &[] };
    answer(bench, "wait", few, "", |samples| {
        let mut goals = Vec::new();
        for name in RESIDENT {
            let figure = samples.ratio((PUBLISHED, 2048), (name, 2048), WALL);
            let what = format!("{PUBLISHED} over {name}, {} objects", grouped(2048));
            goals.push(Goal::ratio(what, figure, Aim::AtLeast(10.0)));
        }
        for name in RESIDENT {
            let growth = samples.ratio((name, 4096), (name, 64), WALL);
            let what = format!("{name}, {} objects over 64", grouped(4096));
            goals.push(Goal::ratio(what, growth, Aim::AtMost(2.0)));
        }
        let look = samples.ratio((UNIT, 0), ("posting-pool", 0), WALL);
        goals.push(Goal::ratio("a poll without an object over the bare call", look, Aim::AtMost(1.2)));
        goals
    })
}

fn exit(bench: &Bench, (): &()) -> Result<Answer> {
    let sizes = if bench.quick { "10,70" } else { "10,100,500" };
    answer(bench, "exit", &["--live", sizes], "one", |samples| {
        let at = |name, size| (name, "one", size);
        let growth = samples.ratio(at(UNIT, 500), at(UNIT, 10), WALL);
        let mut goals = vec![Goal::ratio(format!("{UNIT}, 500 alive over 10"), growth, Aim::AtMost(2.5))];
        for name in ["floor", "scan", "thread-each"] {
            let figure = samples.ratio(at(name, 500), at(UNIT, 500), WALL);
            goals.push(Goal::ratio(format!("{name} over {UNIT}, 500 alive"), figure, Aim::None));
        }
        goals
    })
}

fn spawn(bench: &Bench, (): &()) -> Result<Answer> {
    // Wine copies the memory of the parent, so a larger parent makes it slower. Windows does not.
    answer(bench, "spawn", &["--parent-mib", "10"], "", |samples| {
        let over = |name: &str| samples.ratio((name, 10), ("create-process", 10), WALL);
        let goal = |name: &str| Goal::ratio(format!("{name} over create-process"), over(name), Aim::None);
        ["minder", "set", "std"].map(goal).into()
    })
}

/// Runs `minder bench VERB` under Wine.
fn answer(
    bench: &Bench,
    verb: &str,
    options: &[&str],
    kind: &str,
    goals: impl Fn(&Samples) -> Vec<Goal>,
) -> Result<Answer> {
    let prefix = wine::Prefix::open()?;
    let program = wine::released("minder");
    let rounds = bench.rounds.to_string();
    let first = processors()?[0].to_string();
    let mut cmd = prefix.command("taskset", &["-c", &first, "setarch", "-R", "wine"]);
    cmd.arg(program).args(["bench", verb, "--csv", "--rounds", &rounds]).args(options);
    let mut remarks = vec![
        "**Under Wine.** The rows and the chart contain times of Wine. They permit no conclusion about \
         times of Windows."
            .into(),
        "Everything runs on one processor, so wall time is the time of the program and Wine's server \
         together."
            .into(),
        format!("Wine: {}", run::read(run::command("wine").arg("--version"))?.trim()),
    ];
    let rows = rows(&mut cmd, &mut remarks)?;
    let samples = Samples::read(&rows)?;
    let unit = if verb == "spawn" { "create-process" } else { UNIT };
    let first = samples.sizes().into_iter().find(|size| *size > 0).unwrap_or_default();
    let tables = format!(
        "Ratios of wall time, relative to `{unit}` at {first}:\n\n{}",
        ratios(&samples, kind, (unit, kind, first).into())
    );
    let mut table = goals::above(&goals(&samples), &tables);
    // One size makes no curve.
    if samples.sizes().len() > 1 {
        table = format!("![Chart](wine-{verb}.svg)\n\n{table}");
    }
    Ok(Answer { table, remarks, rows })
}

/// Returns a table of wall time in multiples of one point: a line for each name, a column for each
/// size.
fn ratios(samples: &Samples, kind: &str, unit: Point<'_>) -> String {
    let ratio = |name, size| samples.ratio((name, kind, size), unit, WALL).map(|ratio| ratio.show(2));
    by_size(samples, "mechanism", ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use minder_ui::rows::CsvTable;

    #[test]
    fn table_contains_only_ratios() {
        let text = "mechanism,objects,round,waits,cpu_ns,wall_ns,note\n\
            iocp,0,1,9,0,50,under Wine\niocp,2,1,9,0,100,under Wine\n\
            pool,2,1,9,0,1234,under Wine\niocp,2,2,9,0,200,under Wine\n";
        let samples = Samples::read(&CsvTable::read(text).unwrap()).unwrap();
        assert_eq!(
            ratios(&samples, "", ("iocp", 2).into()),
            "| mechanism | 0 | 2 |\n| --- | ---: | ---: |\n| iocp | 0.50 [0.50-0.50] | 1.00 [1.00-1.00] |\n\
             | pool | – | 12.34 [12.34-12.34] |\n"
        );
    }
}
