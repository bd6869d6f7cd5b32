//! The exit of one of many children: minder, the lower bound, published designs, and libuv.

use super::{CPU, bench_command, costs, rows};
use crate::bench::{Answer, Bench};
use crate::goals::{self, Aim, Goal};
use crate::programs::compile;
use crate::question::Question;
use crate::samples::Samples;
use crate::table::grouped;
use anyhow::{Context, Result, ensure};
use minder_ui::rows::CsvTable;
use xtask::{install, run};

/// The mechanism of minder that has goals: the best backend of Linux.
const OURS: &str = "epoll";
/// How many living children libuv is measured with.
const LIVE: [&str; 4] = ["10", "100", "1000", "5000"];
const FEW: usize = 10;
const MANY: usize = 5000;
/// How many exits are measured at each size, for libuv.
const EXITS: usize = 200;

pub(super) const QUESTIONS: [Question<()>; 1] = [Question {
    name: "mechanisms",
    what: "cost of a child's exit while others live, by mechanism",
    rounds: 7,
    ask: mechanisms,
}];

fn mechanisms(bench: &Bench, (): &()) -> Result<Answer> {
    let child = compile("pause", &["-static", "-nostdlib"], &[])?;
    let mut remarks = vec![
        "CPU of the waiting process, including kill(2). `one`: a pseudo-random child is killed and its \
         exit is noticed, while the others live. `burst`: all are killed at once."
            .into(),
        "The children of all contestants are benches/peers/pause.c: static, without libc.".into(),
    ];
    let uv = libuv().map_err(|why| remarks.push(format!("left out: libuv: {why}"))).ok();
    let mut all = CsvTable::default();
    for round in 0..bench.rounds {
        bench.round(round);
        let number = (round + 1).to_string();
        let ours = rows(bench_command("exit", 1).args(["--child", &child]), &mut remarks)?;
        let theirs = match &uv {
            Some((program, _)) => {
                let mut cmd = run::command(program);
                cmd.args([&child, &number, &bench.scaled(EXITS).to_string()]).args(LIVE);
                Some(rows(&mut cmd, &mut remarks)?)
            }
            None => None,
        };
        for table in std::iter::once(ours).chain(theirs) {
            add(&mut all, table, &number)?;
        }
    }
    if let Some((_, version)) = uv {
        remarks.push(format!("libuv: {version}"));
    }
    let samples = Samples::read(&all)?;
    let tables = format!(
        "Microseconds of CPU for the exit of one child, by number of living children:\n\n{}\n\
         For each exit where all exit at once:\n\n{}",
        costs(&samples, "one", "mechanism"),
        costs(&samples, "burst", "mechanism")
    );
    let table = format!("![Chart](exit-mechanisms.svg)\n\n{}", goals::above(&goals_of(&samples), &tables));
    Ok(Answer { table, remarks, rows: all })
}

/// Adds what a program measured alone, as a part of this round.
fn add(all: &mut CsvTable, mut table: CsvTable, round: &str) -> Result<()> {
    ensure!(all.rows.is_empty() || all.columns == table.columns, "other columns: {:?}", table.columns);
    let place = table.index("round").context("the rows have no round")?;
    table.rows.iter_mut().for_each(|row| row[place] = round.into());
    all.columns = table.columns;
    all.rows.append(&mut table.rows);
    Ok(())
}

fn goals_of(samples: &Samples) -> Vec<Goal> {
    let one = |name, size| (name, "one", size);
    let mut goals = Vec::new();
    for size in [FEW, MANY] {
        let figure = samples.ratio(one(OURS, size), one("floor", size), CPU);
        goals.push(Goal::ratio(
            format!("{OURS} over floor, {} alive", grouped(size)),
            figure,
            Aim::AtMost(2.0),
        ));
    }
    let growth = samples.ratio(one(OURS, MANY), one(OURS, FEW), CPU);
    goals.push(Goal::ratio(format!("{OURS}, {} alive over {FEW}", grouped(MANY)), growth, Aim::AtMost(2.5)));
    let libuv = samples.ratio(one("libuv", MANY), one(OURS, MANY), CPU);
    goals.push(Goal::ratio(format!("libuv over {OURS}, {} alive", grouped(MANY)), libuv, Aim::AtLeast(30.0)));
    let burst = samples.spread((OURS, "burst", MANY), CPU);
    goals.push(Goal::micros(format!("{OURS}, each of {} at once", grouped(MANY)), burst, Aim::AtMost(15.0)));
    goals
}

/// Builds the program upon libuv, which is installed where it is missing: its path, and the
/// library's version.
fn libuv() -> Result<(String, String), install::Missing> {
    let build = || compile("exits_uv", &[], &["-luv"]);
    let built = match build() {
        Ok(built) => built,
        Err(_) => {
            install::apt(&["libuv1-dev"])?;
            build().map_err(|why| {
                // What a compiler says has many lines; the report gets one.
                eprintln!("bench: {why:#}");
                "benches/peers/exits_uv.c does not build; hint: sudo apt-get install libuv1-dev".to_string()
            })?
        }
    };
    let version = run::read(run::command(&built).arg("--version")).map_err(|why| format!("{why:#}"))?;
    Ok((built, version.trim().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("exit-mechanisms", goals_of);
    }

    #[test]
    fn rows_get_the_round_in_which_they_were_measured() {
        let table = CsvTable::read("mechanism,kind,live,round,cpu_ns\nfloor,one,10,1,4000\n").unwrap();
        let mut all = CsvTable::default();
        add(&mut all, table.clone(), "1").unwrap();
        add(&mut all, table, "2").unwrap();
        assert_eq!(all.rows.iter().map(|row| row[3].as_str()).collect::<Vec<_>>(), ["1", "2"]);
        assert!(add(&mut all, CsvTable::new(&["round"]), "3").is_err());
    }
}
