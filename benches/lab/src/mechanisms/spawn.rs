//! The cost of starting a child, by the memory of the parent.

use super::goals::{self, Aim, Goal};
use super::{Answer, Bench, Point, Question, Rows, chart, compile, costs, minder, rows};
use anyhow::{Context, Result};

const SMALL: u64 = 10;
const LARGE: u64 = 2048;

pub(super) const QUESTIONS: [Question; 1] = [Question {
    name: "mechanisms",
    what: "cost of starting a child, by the parent's memory",
    rounds: 7,
    ask: mechanisms,
}];

fn mechanisms(bench: &Bench) -> Result<Answer> {
    let mut remarks = vec![
        "CPU of the parent alone. `posix_spawn` is `std::process::Command`; `fork` is the same with a \
         `pre_exec`, which makes it copy the parent's page tables. The child is benches/peers/tiny.c: \
         static, without libc."
            .into(),
    ];
    let child = compile(bench, "tiny", &["-static", "-nostdlib"], &[])
        .context("benches/peers/tiny.c does not build; cure: a C compiler")?;
    let chart = chart(bench, "spawn", "mechanisms")?;
    let mut cmd = minder(bench, "spawn", bench.rounds, Some(&chart));
    let rows = rows(cmd.args(["--child", &child]), &mut remarks)?;
    let table = format!(
        "![Chart](spawn-mechanisms.svg)\n\nGoals are for medians; ratios are formed within a round.\n\n{}\n\
         Microseconds of CPU per start, by MiB of the parent:\n\n{}",
        goals::table(&goals_of(&rows)),
        costs(&rows, None, "mechanism")
    );
    Ok(Answer { table, remarks, csv: rows.csv() })
}

fn goals_of(rows: &Rows) -> Vec<Goal> {
    let at = |name, size| Point { name, kind: None, size };
    let mut goals = vec![Goal::micros(
        format!("minder, parent of {SMALL} MiB"),
        rows.cpu(at("minder", SMALL)),
        Aim::AtMost(15.0),
    )];
    for (name, aim) in [("minder", Aim::AtMost(1.2)), ("posix_spawn", Aim::None), ("fork", Aim::None)] {
        let growth = rows.ratio(at(name, LARGE), at(name, SMALL));
        goals.push(Goal::ratio(format!("{name}, parent of {LARGE} MiB over {SMALL}"), growth, aim));
    }
    for other in ["posix_spawn", "fork"] {
        let figure = rows.ratio(at(other, LARGE), at("minder", LARGE));
        goals.push(Goal::ratio(format!("{other} over minder, parent of {LARGE} MiB"), figure, Aim::None));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_take_the_right_rows() {
        let text = "mechanism,parent_mib,round,spawns,cpu_ns,wall_ns\n\
            minder,10,1,9,14000,1\nminder,2048,1,9,15400,1\nfork,10,1,9,70000,1\nfork,2048,1,9,7700000,1\n";
        let goals = goals_of(&Rows::read(text).unwrap());
        let median = |n: usize| goals[n].figure.as_ref().map(|figure| figure.median);
        assert_eq!([0, 1, 2, 3, 5].map(median), [Some(14.0), Some(1.1), None, Some(110.0), Some(500.0)]);
    }
}
