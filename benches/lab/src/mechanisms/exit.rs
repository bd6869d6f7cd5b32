//! The exit of one of many children: minder beside the lower bound, published designs, and libuv.

use super::goals::{self, Aim, Goal};
use super::{Answer, Bench, Point, Question, Rows, chart, compile, costs, grouped, minder, rows};
use anyhow::{Context, Result};
use xtask::{install, run};

/// The mechanism of minder that has goals: the best backend of Linux.
const OURS: &str = "epoll";
/// How many living children libuv is measured with.
const LIVE: [&str; 4] = ["10", "100", "1000", "5000"];
const FEW: u64 = 10;
const MANY: u64 = 5000;
/// How many exits are measured at each size, for libuv.
const EXITS: usize = 200;

pub(super) const QUESTIONS: [Question; 1] = [Question {
    name: "mechanisms",
    what: "cost of a child's exit while others live, by mechanism",
    rounds: 7,
    ask: mechanisms,
}];

fn mechanisms(bench: &Bench) -> Result<Answer> {
    let child = compile(bench, "pause", &["-static", "-nostdlib"], &[])
        .context("benches/peers/pause.c does not build; cure: a C compiler")?;
    let mut remarks = vec![
        "CPU of the waiting process, including kill(2). `one`: a pseudo-random child is killed and its \
         exit is noticed, while the others live. `burst`: all are killed at once."
            .into(),
        "The children of all contestants are benches/peers/pause.c: static, without libc.".into(),
    ];
    let uv = libuv(bench).map_err(|why| remarks.push(format!("left out: libuv: {why}"))).ok();
    let mut all = Rows::default();
    for round in 1..=bench.rounds {
        bench.round(round - 1);
        let number = u64::try_from(round)?;
        all.add(rows(minder(bench, "exit", 1, None).args(["--child", &child]), &mut remarks)?, number);
        if let Some((program, _)) = &uv {
            let mut cmd = run::command(program);
            cmd.args([&child, &round.to_string(), &bench.scaled(EXITS).to_string()]).args(LIVE);
            all.add(rows(&mut cmd, &mut remarks)?, number);
        }
    }
    if let Some((_, version)) = uv {
        remarks.push(format!("libuv: {version}"));
    }
    let chart = chart(bench, "exit", "mechanisms")?;
    let few = bench.rounds.min(3);
    rows(minder(bench, "exit", few, Some(&chart)).args(["--child", &child]), &mut remarks)?;
    remarks.push(format!("The chart is from a separate run right afterwards; its rounds: {few}."));
    let table = format!(
        "![Chart](exit-mechanisms.svg)\n\nGoals are for medians; ratios are formed within a round.\n\n{}\n\
         Microseconds of CPU for the exit of one child, by number of living children:\n\n{}\n\
         For each exit where all exit at once:\n\n{}",
        goals::table(&goals_of(&all)),
        costs(&all, Some("one"), "mechanism"),
        costs(&all, Some("burst"), "mechanism")
    );
    Ok(Answer { table, remarks, csv: all.csv() })
}

fn goals_of(rows: &Rows) -> Vec<Goal> {
    let one = |name, size| Point { name, kind: Some("one"), size };
    let mut goals = Vec::new();
    for size in [FEW, MANY] {
        let figure = rows.ratio(one(OURS, size), one("floor", size));
        goals.push(Goal::ratio(
            format!("{OURS} over floor, {} alive", grouped(size)),
            figure,
            Aim::AtMost(2.0),
        ));
    }
    let growth = rows.ratio(one(OURS, MANY), one(OURS, FEW));
    goals.push(Goal::ratio(format!("{OURS}, {} alive over {FEW}", grouped(MANY)), growth, Aim::AtMost(2.5)));
    let libuv = rows.ratio(one("libuv", MANY), one(OURS, MANY));
    goals.push(Goal::ratio(format!("libuv over {OURS}, {} alive", grouped(MANY)), libuv, Aim::AtLeast(30.0)));
    let burst = rows.cpu(Point { name: OURS, kind: Some("burst"), size: MANY });
    goals.push(Goal::micros(format!("{OURS}, each of {} at once", grouped(MANY)), burst, Aim::AtMost(15.0)));
    goals
}

/// Builds the program upon libuv, which is installed where it is missing: its path, and the
/// library's version.
fn libuv(bench: &Bench) -> Result<(String, String), install::Missing> {
    let build = || compile(bench, "exits_uv", &[], &["-luv"]);
    let built = match build() {
        Ok(built) => built,
        Err(_) => {
            install::apt(&["libuv1-dev"])?;
            build().map_err(|why| {
                // What a compiler says has many lines; the report gets one.
                eprintln!("bench: {why:#}");
                "benches/peers/exits_uv.c does not build; cure: sudo apt-get install libuv1-dev".to_string()
            })?
        }
    };
    let version = run::read(run::command(&built).arg("--version")).map_err(|why| format!("{why:#}"))?;
    Ok((built, version.trim().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_take_the_right_rows() {
        let text = "mechanism,kind,live,round,exits,cpu_ns,wall_ns\n\
            floor,one,10,1,9,4000,1\nepoll,one,10,1,9,6000,1\n\
             floor,one,5000,1,9,5000,1\nepoll,one,5000,1,9,9000,1\n\
            libuv,one,5000,1,9,1800000,1\nepoll,burst,5000,1,5000,7000,1\n";
        let goals = goals_of(&Rows::read(text).unwrap());
        let medians: Vec<f64> = goals.iter().map(|goal| goal.figure.as_ref().unwrap().median).collect();
        assert_eq!(medians, [1.5, 1.8, 1.5, 200.0, 7.0]);
    }
}
