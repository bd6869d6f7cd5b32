//! The cost of starting a child, by the memory of the parent.

use super::{CPU, bench_command, costs, rows};
use crate::bench::{Answer, Bench};
use crate::goals::{self, Aim, Goal};
use crate::programs::compile;
use crate::question::Question;
use crate::samples::Samples;
use anyhow::Result;

const SMALL: usize = 10;
const LARGE: usize = 2048;

pub(super) const QUESTIONS: [Question<()>; 1] = [Question {
    name: "mechanisms",
    what: "cost of starting a child, by the parent's memory",
    rounds: 7,
    ask: mechanisms,
}];

fn mechanisms(bench: &Bench, (): &()) -> Result<Answer> {
    let mut remarks = vec![
        "CPU of the parent alone. `posix_spawn` is `std::process::Command`; `fork` is the same with a \
         `pre_exec`, which makes it copy the parent's page tables. The child is benches/peers/tiny.c: \
         static, without libc."
            .into(),
    ];
    let child = compile("tiny", &["-static", "-nostdlib"], &[])?;
    let rows = rows(bench_command("spawn", bench.rounds).args(["--child", &child]), &mut remarks)?;
    let samples = Samples::read(&rows)?;
    let costs = costs(&samples, "", "mechanism");
    let tables = format!("Microseconds of CPU per start, by MiB of the parent:\n\n{costs}");
    let table = format!("![Chart](spawn-mechanisms.svg)\n\n{}", goals::above(&goals_of(&samples), &tables));
    Ok(Answer { table, remarks, rows })
}

fn goals_of(samples: &Samples) -> Vec<Goal> {
    let mut goals = vec![Goal::micros(
        format!("minder, parent of {SMALL} MiB"),
        samples.spread(("minder", SMALL), CPU),
        Aim::AtMost(15.0),
    )];
    for (name, aim) in [("minder", Aim::AtMost(1.2)), ("posix_spawn", Aim::None), ("fork", Aim::None)] {
        let growth = samples.ratio((name, LARGE), (name, SMALL), CPU);
        goals.push(Goal::ratio(format!("{name}, parent of {LARGE} MiB over {SMALL}"), growth, aim));
    }
    for other in ["posix_spawn", "fork"] {
        let figure = samples.ratio((other, LARGE), ("minder", LARGE), CPU);
        goals.push(Goal::ratio(format!("{other} over minder, parent of {LARGE} MiB"), figure, Aim::None));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("spawn-mechanisms", goals_of);
    }
}
