//! Bytes through a pipe within one process: two fibers, and two threads.

use super::Ruby;
use super::contestant::Contestant;
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::Samples;
use crate::table::markdown;
use anyhow::Result;

const BYTES: usize = 1 << 30;
const SMALL: usize = 4 << 10;
const MIDDLE: usize = 64 << 10;
const LARGE: usize = 1 << 20;
const CHUNKS: [usize; 3] = [SMALL, MIDDLE, LARGE];

const CPU: &str = "cpu_s";
const WALL: &str = "wall_s";

pub(super) fn pipe(bench: &Bench, ruby: &Ruby) -> Result<Answer> {
    // A multiple of each chunk.
    let bytes = if bench.quick { BYTES / 8 } else { BYTES };
    let all = [vec![Contestant::new("threads"), Contestant::new("reference")], ruby.ours()].concat();
    let samples = ruby.rounds(bench, &all, &CHUNKS, |(who, chunk)| {
        ruby.sample("pipe.rb", &[who.name.clone(), chunk.to_string(), bytes.to_string()])
    })?;
    let remarks = vec![format!(
        "{} MiB. A writer and a reader in one process. threads: two threads with blocking descriptors, which \
         copy at the same time, since a system call runs without the interpreter's lock. Otherwise two \
         fibers, which copy in turn. The reader checks the first and last byte of each read, and the sum of \
         the sizes.",
        bytes >> 20
    )];
    let times = times(&samples, &all);
    let tables = format!("Seconds of wall time and of processor time, by size of the chunks:\n\n{times}");
    Ok(Answer::with_goals(&samples, &goals_of(&samples, &ruby.best()), &tables, remarks))
}

fn goals_of(samples: &Samples, ours: &Contestant) -> Vec<Goal> {
    let threads = Contestant::new("threads");
    let reference = Contestant::new("reference");
    let wanted = [
        (MIDDLE, CPU, &threads, Aim::AtMost(1.4)),
        (SMALL, CPU, &threads, Aim::AtMost(0.5)),
        (MIDDLE, WALL, &threads, Aim::AtMost(1.6)),
        (LARGE, CPU, &threads, Aim::None),
        (LARGE, WALL, &threads, Aim::None),
        (SMALL, WALL, &threads, Aim::None),
        (MIDDLE, CPU, &reference, Aim::None),
        (SMALL, CPU, &reference, Aim::None),
    ];
    let goal = |(chunk, name, other, aim): (usize, &str, &Contestant, Aim)| {
        let title = if name == CPU { "CPU" } else { "wall" };
        let what = format!("{} KiB, {title}: {} over {}", chunk >> 10, ours.title(), other.title());
        Goal::ratio(what, samples.ratio((ours, chunk), (other, chunk), name), aim)
    };
    wanted.into_iter().map(goal).collect()
}

fn times(samples: &Samples, all: &[Contestant]) -> String {
    let mut head = vec!["contestant".to_string()];
    for chunk in CHUNKS {
        head.extend(["wall", "CPU"].map(|title| format!("{} KiB, {title}", chunk >> 10)));
    }
    let line = |who: &Contestant| {
        let cell = |(chunk, name)| samples.cell((who, chunk), (name, 1.0, 2));
        let cells = CHUNKS.into_iter().flat_map(|chunk| [(chunk, WALL), (chunk, CPU)]).map(cell);
        std::iter::once(who.title()).chain(cells).collect()
    };
    markdown(
        &head.iter().map(String::as_str).collect::<Vec<_>>(),
        &all.iter().map(line).collect::<Vec<Vec<String>>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("ruby-pipe", |samples| goals_of(samples, &Contestant::new("minder:epoll")));
    }
}
