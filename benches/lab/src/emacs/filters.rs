//! The cost of filters: those of eshell and compile, the default one, and simple ones.

use super::kind::{self, NATIVE, RELAY, STOCK, STOCK_NIL};
use super::library::{self, LIBRARIES};
use super::{Emacs, in_units};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use anyhow::Result;

/// Bytes through the filters of the libraries.
const BYTES: usize = 8 << 20;
/// Bytes through the slow filter, also for a quick look: few bytes arrive in few calls.
const SLOW_BYTES: usize = 8 << 20;
/// Bytes through the default filter and the trivial one.
const BYTES_SIMPLE: usize = 20 << 20;
/// The filters of the raw processes.
const FILTERS: [&str; 3] = ["slow", "insert", "trivial"];

pub(super) fn filters(bench: &Bench, emacs: &Emacs) -> Result<Answer> {
    let [bytes, simple] = [BYTES, BYTES_SIMPLE].map(|full| bench.scaled(full));
    let mut samples = Samples::default();
    library::add_rounds(bench, emacs, &mut samples, bytes, "0")?;
    let size = |filter| if filter == "slow" { SLOW_BYTES } else { simple };
    for filter in FILTERS {
        let which = (&*format!("{filter}_"), &kind::ALL[..], &[size(filter)][..]);
        emacs.add_rounds(bench, &mut samples, which, &["output", "pty", filter, "{}", "0"])?;
    }
    let mut tables = Vec::new();
    for library in LIBRARIES {
        let kinds = emacs.present(&kind::OBJECTS);
        let costs = library::costs(&samples, &kinds, library, bytes);
        tables.push(format!("{library}, {}:\n\n{costs}", in_units(bytes)));
    }
    for filter in FILTERS {
        let costs = library::costs(&samples, &emacs.present(&kind::ALL), filter, size(filter));
        tables.push(format!("{}, {}:\n\n{costs}", described(filter), in_units(size(filter))));
    }
    let mut remarks = library::library_remarks();
    remarks.push(
        "Lines of 80 characters through a pseudo-terminal. The filter of 1 ms counts for so long, without \
         any allocation. This cost is one of calls and not of bytes, so it is the best case for few calls. \
         The default filter inserts into a buffer. A process runs before, and is not measured."
            .into(),
    );
    let goals = goals_of(&samples, bytes, simple);
    Ok(Answer::with_goals(&samples, &goals, &tables.join("\n"), remarks))
}

fn described(filter: &str) -> &str {
    match filter {
        "slow" => "a filter of 1 ms a call",
        "insert" => "the default filter",
        _ => "a trivial filter",
    }
}

fn goals_of(samples: &Samples, bytes: usize, simple: usize) -> Vec<Goal> {
    let mut goals = Vec::new();
    let mut add = |prefix: &str, size, number: &str, (above, below): (Contestant, Contestant), aim| {
        let title = match number {
            "cpu_s" => "CPU",
            "wall_s" => "wall",
            _ => "calls of the filter",
        };
        let what = format!("{prefix}, {title}: {} over {}", above.title, below.title);
        let figure = samples.ratio((&above, size), (&below, size), format!("{prefix}_{number}").as_str());
        goals.push(Goal::ratio(what, figure, aim));
    };
    for (library, cpu) in [("eshell", 1.15), ("compile", 1.3)] {
        add(library, bytes, "cpu_s", (STOCK_NIL, NATIVE), Aim::AtLeast(cpu));
        add(library, bytes, "cpu_s", (STOCK, NATIVE), Aim::None);
        add(library, bytes, "cpu_s", (STOCK_NIL, RELAY), Aim::None);
        add(library, bytes, "wall_s", (STOCK_NIL, NATIVE), Aim::None);
        add(library, bytes, "calls", (STOCK_NIL, NATIVE), Aim::AtLeast(100.0));
        add(library, bytes, "calls", (STOCK, NATIVE), Aim::None);
    }
    for ours in kind::OURS {
        let aim = if ours == RELAY { Aim::None } else { Aim::AtLeast(10.0) };
        add("slow", SLOW_BYTES, "wall_s", (STOCK_NIL, ours), aim);
        add("slow", SLOW_BYTES, "wall_s", (STOCK, ours), Aim::None);
    }
    for filter in ["insert", "trivial"] {
        for ours in kind::OURS {
            add(filter, simple, "cpu_s", (STOCK_NIL, ours), Aim::None);
            add(filter, simple, "cpu_s", (STOCK, ours), Aim::None);
        }
    }
    for (prefix, size) in
        [("eshell", bytes), ("compile", bytes), ("slow", SLOW_BYTES), ("insert", simple), ("trivial", simple)]
    {
        goals.extend(library::missing(samples, size, prefix));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("emacs-filters", |samples| goals_of(samples, BYTES, BYTES_SIMPLE));
    }
}
