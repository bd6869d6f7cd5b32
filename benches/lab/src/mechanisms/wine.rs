//! The Windows build of `minder bench`, under Wine.
//!
//! Times under Wine are not times of Windows, so the tables contain only ratios: between mechanisms
//! in the same round, and between sizes. They are ratios of wall time with everything on one
//! processor, since the work of Wine's server is in no CPU time of the program.

use super::goals::{self, Aim, Goal};
use super::{Answer, Bench, Point, Question, Rows, chart, grouped, rows};
use crate::table::markdown;
use anyhow::{Context, Result, bail};
use std::path::Path;
use xtask::{run, wine};

pub(super) const VERB: &str = "wine";
/// The mechanism that the others are compared with.
const UNIT: &str = "iocp";
/// The published pool, and our mechanisms that wait for handles.
const PUBLISHED: &str = "pool";
const RESIDENT: [&str; 4] = ["iocp", "wait_pool", "thread_pool", "posting-pool"];

pub(super) const QUESTIONS: [Question; 3] = [
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

fn wait(bench: &Bench) -> Result<Answer> {
    let few: &[&str] = if bench.quick { &["--objects", "0,2,64,65,2048,4096"] } else { &[] };
    answer(bench, "wait", few, None, |rows| {
        let at = |name, size| Point { name, kind: None, size };
        let mut goals = Vec::new();
        for name in RESIDENT {
            let figure = rows.wall_ratio(at(PUBLISHED, 2048), at(name, 2048));
            let what = format!("{PUBLISHED} over {name}, {} objects", grouped(2048));
            goals.push(Goal::ratio(what, figure, Aim::AtLeast(10.0)));
        }
        for name in RESIDENT {
            let growth = rows.wall_ratio(at(name, 4096), at(name, 64));
            let what = format!("{name}, {} objects over 64", grouped(4096));
            goals.push(Goal::ratio(what, growth, Aim::AtMost(2.0)));
        }
        let look = rows.wall_ratio(at(UNIT, 0), at("posting-pool", 0));
        goals.push(Goal::ratio("a poll without an object over the bare call", look, Aim::AtMost(1.2)));
        goals
    })
}

fn exit(bench: &Bench) -> Result<Answer> {
    let sizes = if bench.quick { "10,70" } else { "10,100,500" };
    answer(bench, "exit", &["--live", sizes], Some("one"), |rows| {
        let at = |name, size| Point { name, kind: Some("one"), size };
        let growth = rows.wall_ratio(at(UNIT, 500), at(UNIT, 10));
        let mut goals = vec![Goal::ratio(format!("{UNIT}, 500 alive over 10"), growth, Aim::AtMost(2.5))];
        for name in ["floor", "scan", "thread-each"] {
            let figure = rows.wall_ratio(at(name, 500), at(UNIT, 500));
            goals.push(Goal::ratio(format!("{name} over {UNIT}, 500 alive"), figure, Aim::None));
        }
        goals
    })
}

fn spawn(bench: &Bench) -> Result<Answer> {
    // Wine copies the memory of the parent, so a larger parent makes it slower. Windows does not.
    answer(bench, "spawn", &["--parent-mib", "10"], None, |rows| {
        let at = |name| Point { name, kind: None, size: 10 };
        let over = |name| rows.wall_ratio(at(name), at("create-process"));
        let goal = |name| Goal::ratio(format!("{name} over create-process"), over(name), Aim::None);
        ["minder", "set", "std"].map(goal).into()
    })
}

/// Runs `minder bench VERB` under Wine.
fn answer(
    bench: &Bench,
    verb: &str,
    options: &[&str],
    kind: Option<&str>,
    goals: impl Fn(&Rows) -> Vec<Goal>,
) -> Result<Answer> {
    let prefix = wine::Prefix::open()?;
    let program = wine::released("minder");
    let rounds = bench.rounds.to_string();
    let svg = foreign(&chart(bench, VERB, verb)?);
    let mut cmd = prefix.command("taskset", &["-c", &first_processor()?, "setarch", "-R", "wine"]);
    cmd.arg(program).args(["bench", verb, "--csv", "--rounds", &rounds, "--svg", &svg]).args(options);
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
    let unit = if verb == "spawn" { "create-process" } else { UNIT };
    let first = rows.sizes().into_iter().find(|size| *size > 0).unwrap_or_default();
    let table = format!(
        "![Chart](wine-{verb}.svg)\n\n\
         Goals are for medians; ratios are of wall time, formed within a round.\n\n{}\n\
         Relative to `{unit}` at {first}:\n\n{}",
        goals::table(&goals(&rows)),
        ratios(&rows, kind, Point { name: unit, kind, size: first })
    );
    Ok(Answer { table, remarks, csv: rows.csv() })
}

/// Returns a table of wall time in multiples of one point: a line for each name, a column for each
/// size.
fn ratios(rows: &Rows, kind: Option<&str>, unit: Point<'_>) -> String {
    let sizes = rows.sizes();
    let head: Vec<String> =
        ["mechanism".into()].into_iter().chain(sizes.iter().map(|s| grouped(*s))).collect();
    let line = |name: &&str| {
        let cell = |size: &u64| {
            let ratio = rows.wall_ratio(Point { name, kind, size: *size }, unit);
            ratio.map_or_else(|| "–".into(), |ratio| ratio.show(2))
        };
        std::iter::once((*name).to_string()).chain(sizes.iter().map(cell)).collect::<Vec<_>>()
    };
    let lines: Vec<Vec<String>> = rows.names().iter().map(line).collect();
    markdown(&head.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
}

/// Returns the first processor of the affinity mask of this process.
fn first_processor() -> Result<String> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = list.and_then(|list| list.trim().split([',', '-']).next());
    first.map(str::to_owned).context("/proc/self/status: no list of processors")
}

/// Returns a path as Windows programs name it: Wine maps drive Z to the root directory.
fn foreign(path: &Path) -> String {
    format!("Z:{}", path.display()).replace('/', "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_contains_only_ratios() {
        let text = "mechanism,objects,round,waits,cpu_ns,wall_ns,note\n\
            iocp,0,1,9,0,50,under Wine\niocp,2,1,9,0,100,under Wine\n\
            pool,2,1,9,0,1234,under Wine\niocp,2,2,9,0,200,under Wine\n";
        let rows = Rows::read(text).unwrap();
        assert_eq!(rows.csv(), text);
        let unit = Point { name: "iocp", kind: None, size: 2 };
        assert_eq!(
            ratios(&rows, None, unit),
            "| mechanism | 0 | 2 |\n| --- | ---: | ---: |\n| iocp | 0.50 [0.50-0.50] | 1.00 [1.00-1.00] |\n\
             | pool | – | 12.34 [12.34-12.34] |\n"
        );
    }

    #[test]
    fn paths_are_on_drive_z() {
        assert_eq!(foreign(Path::new("/a/b c.svg")), "Z:\\a\\b c.svg");
    }
}
