//! Output in eshell and compile: the stall after short lines.

use super::kind::{self, NATIVE, RELAY, STOCK, STOCK_NIL};
use super::{Emacs, in_units};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use anyhow::Result;

/// The libraries, whose names begin the names of the numbers.
pub(super) const LIBRARIES: [&str; 2] = ["eshell", "compile"];
/// Lines before the bulk: each is a short read, for which Emacs adds 20 ms of delay, up to 70 ms.
const SHORT_LINES: &str = "4";
const BYTES: usize = 1 << 20;
const BYTES_QUICK: usize = 256 << 10;

/// Adds samples of both libraries.
pub(super) fn add_rounds(
    bench: &Bench,
    emacs: &Emacs,
    samples: &mut Samples,
    bytes: usize,
    lines: &str,
) -> Result<()> {
    for library in LIBRARIES {
        let which = (&*format!("{library}_"), &kind::OBJECTS[..], &[bytes][..]);
        emacs.add_rounds(bench, samples, which, &["library", library, "{}", lines])?;
    }
    Ok(())
}

pub(super) fn stall(bench: &Bench, emacs: &Emacs) -> Result<Answer> {
    let bytes = if bench.quick { BYTES_QUICK } else { BYTES };
    let mut samples = Samples::default();
    add_rounds(bench, emacs, &mut samples, bytes, SHORT_LINES)?;
    let kinds = emacs.present(&kind::OBJECTS);
    let table = |library| format!("{library}:\n\n{}", costs(&samples, &kinds, library, bytes));
    let tables = LIBRARIES.map(table).join("\n");
    let mut remarks = vec![format!(
        "The child writes {SHORT_LINES} short lines, each 10 ms after the other, and then {} of lines with \
         80 characters, through a pseudo-terminal. Emacs waits for output of all processes, as it does for \
         the next key. With its default settings it then delays each read of a process, because one was \
         short.",
        in_units(bytes)
    )];
    remarks.extend(library_remarks());
    Ok(Answer::with_goals(&samples, &goals_of(&samples, bytes), &tables, remarks))
}

fn goals_of(samples: &Samples, size: usize) -> Vec<Goal> {
    let mut goals = Vec::new();
    for library in LIBRARIES {
        let name = format!("{library}_wall_s");
        let mut add = |above: Contestant, below: Contestant, aim| {
            let what = format!("{library}, wall: {} over {}", above.title, below.title);
            goals.push(Goal::ratio(what, samples.ratio((&above, size), (&below, size), name.as_str()), aim));
        };
        add(STOCK, NATIVE, Aim::AtLeast(5.0));
        add(NATIVE, STOCK_NIL, Aim::AtMost(1.0));
        add(STOCK, STOCK_NIL, Aim::None);
        add(STOCK, RELAY, Aim::None);
        add(RELAY, STOCK_NIL, Aim::None);
        goals.extend(missing(samples, size, library));
    }
    goals
}

/// Returns the goal that all bytes came, for each kind of ours.
pub(super) fn missing(samples: &Samples, size: usize, prefix: &str) -> Vec<Goal> {
    let name = format!("{prefix}_missing");
    let goal = |kind: Contestant| {
        let figure = samples.total((&kind, size), name.as_str())?;
        let what = format!("{prefix}, {}, bytes missing in all rounds: {}", in_units(size), kind.title);
        Some(Goal { what, unit: "", figure: Some(figure), aim: Aim::AtMost(0.0) })
    };
    kind::OURS.into_iter().filter_map(goal).collect()
}

/// Returns a table of what the output costs with each kind, from the numbers with this prefix.
pub(super) fn costs(samples: &Samples, kinds: &[Contestant], prefix: &str, size: usize) -> String {
    let named = |name: &str| format!("{prefix}_{name}");
    let [wall, cpu, gc, calls] = ["wall_s", "cpu_s", "gc_s", "calls"].map(named);
    let columns = [
        ("wall s", (&*wall, 1.0, 3)),
        ("CPU s", (&*cpu, 1.0, 3)),
        ("of it garbage collection, wall s", (&*gc, 1.0, 3)),
        ("calls of the filter", (&*calls, 1.0, 0)),
    ];
    samples.table("process", (kinds, Contestant::title), size, &columns)
}

/// Returns remarks about both libraries.
pub(super) fn library_remarks() -> Vec<String> {
    vec![
        "eshell and compile are those of Emacs, with their own filters and sentinels, in batch mode, so \
         without redisplay. native: `minder-mode` is on. An advice counts the calls of the filter. A small \
         command runs before, and is not measured. The wall time ends in the hook after the command."
            .into(),
        "CPU: Emacs with all its threads, and without the child; for the relay, without the relay.".into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("emacs-stall", |samples| goals_of(samples, BYTES));
    }
}
