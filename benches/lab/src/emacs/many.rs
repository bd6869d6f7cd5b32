//! Many live children in one Emacs: the cost of an idle wait, their output and exit status.

use super::Emacs;
use super::kind::{self, LIGHT, NATIVE, STOCK, STOCK_NIL};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use crate::table::{grouped, markdown};
use anyhow::Result;

/// The most children, for all kinds.
const MOST: usize = 2000;
/// The number of live children for which an idle wait is measured.
const COUNTS: [usize; 5] = [100, 500, 900, 1000, 2000];

/// Children that are started by the same kinds of processes.
struct Fleet {
    prefix: &'static str,
    what: &'static str,
    kinds: &'static [Contestant],
    /// Each child whose number is a multiple of it has a pseudo-terminal; 0 for none.
    terminal_every: &'static str,
    counts: &'static str,
    /// How many are started, as far as Emacs can.
    most: usize,
}

const BOTH_STOCK: [Contestant; 2] = [STOCK, STOCK_NIL];

const FLEETS: [Fleet; 5] = [
    Fleet {
        prefix: "mixed_",
        what: "pipes, each fourth a pseudo-terminal",
        kinds: &[LIGHT],
        terminal_every: "4",
        counts: "100,500,1000,2000",
        most: MOST,
    },
    Fleet {
        prefix: "pipe_",
        what: "pipes",
        kinds: &BOTH_STOCK,
        terminal_every: "0",
        counts: "100,500",
        most: MOST,
    },
    Fleet {
        prefix: "pipe_",
        what: "pipes",
        kinds: &[NATIVE],
        terminal_every: "0",
        counts: "100,500,900",
        most: MOST,
    },
    Fleet {
        prefix: "pty_",
        what: "pseudo-terminals",
        // With the default setting, each read waits for tens of milliseconds. A thousand took more than
        // eight minutes with both settings.
        kinds: &[STOCK_NIL],
        terminal_every: "1",
        counts: "100,500",
        most: 500,
    },
    Fleet {
        prefix: "pty_",
        what: "pseudo-terminals",
        kinds: &[NATIVE],
        terminal_every: "1",
        counts: "100,500,900",
        most: MOST,
    },
];

impl Fleet {
    /// Returns what is in the tables for one of its kinds.
    fn title(&self, kind: Contestant) -> String {
        format!("{}: {}", kind.title, self.what)
    }

    fn named(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn wait(&self, count: usize) -> String {
        self.named(&format!("wait_{count}_us"))
    }
}

pub(super) fn many(bench: &Bench, emacs: &Emacs) -> Result<Answer> {
    let mut samples = Samples::default();
    for Fleet { prefix, kinds, terminal_every, counts, most, .. } in &FLEETS {
        // The goals are for these numbers, and a sample takes seconds.
        let which = (*prefix, *kinds, &[MOST][..]);
        let most = most.to_string();
        emacs.add_rounds(bench, &mut samples, which, &["many", terminal_every, counts, &most])?;
    }
    let tables = format!(
        "Microseconds of `(accept-process-output nil 0)` without output, by number of live children:\n\n{}\n\
         All children:\n\n{}",
        waits(emacs, &samples),
        ends(emacs, &samples)
    );
    let remarks = vec![format!(
        "A child writes a line, waits for a line, writes it and exits with a status that depends \
         on its number; its standard streams are checked to be a terminal or not. \
         {} are wanted; more: until Emacs refuses to start \
         another. Then all get their line. wrong: children whose output or exit status is not what it \
         should be. An idle wait: the median of 101 times 20 calls, while all children wait for input. \
         Start: until the first line of all. End: from the first line to the last sentinel.",
        grouped(MOST)
    )];
    Ok(Answer::with_goals(&samples, &goals_of(&samples), &tables, remarks))
}

fn goals_of(samples: &Samples) -> Vec<Goal> {
    let mut goals = Vec::new();
    for fleet in &FLEETS {
        for kind in fleet.kinds {
            let title = fleet.title(*kind);
            let is_light = *kind == LIGHT;
            let mut add = |what: String, unit, figure, aim| goals.push(Goal { what, unit, figure, aim });
            let live = samples.spread((kind, MOST), fleet.named("live").as_str());
            let wanted = if is_light { Aim::AtLeast(2000.0) } else { Aim::None };
            add(format!("live children: {title}"), "", live, wanted);
            let wrong = samples.total((kind, MOST), fleet.named("wrong").as_str());
            let none = if kind::OURS.contains(kind) { Aim::AtMost(0.0) } else { Aim::None };
            add(format!("wrong children in all rounds: {title}"), "", wrong, none);
            let aim = if is_light { Aim::AtMost(3.0) } else { Aim::None };
            for count in fleet.counts.split(',').filter_map(|count| count.parse().ok()) {
                let figure = samples.spread((kind, MOST), fleet.wait(count).as_str());
                let count = grouped(count);
                add(format!("idle wait, {count} alive: {title}"), " us", figure, aim);
            }
        }
    }
    goals
}

/// Returns a line for each of the kinds that are here.
fn lines(emacs: &Emacs, line: impl Fn(&Fleet, Contestant) -> Vec<String>) -> Vec<Vec<String>> {
    let kinds =
        FLEETS.iter().flat_map(|fleet| emacs.present(fleet.kinds).into_iter().map(move |k| (fleet, k)));
    kinds.map(|(fleet, kind)| [vec![fleet.title(kind)], line(fleet, kind)].concat()).collect()
}

fn waits(emacs: &Emacs, samples: &Samples) -> String {
    let counts = COUNTS.map(grouped);
    let head: Vec<&str> = std::iter::once("process").chain(counts.iter().map(String::as_str)).collect();
    let cell = |fleet: &Fleet, kind: Contestant, count| {
        samples.cell((&kind, MOST), (fleet.wait(count).as_str(), 1.0, 2))
    };
    let rows = lines(emacs, |fleet, kind| COUNTS.iter().map(|count| cell(fleet, kind, *count)).collect());
    markdown(&head, &rows)
}

fn ends(emacs: &Emacs, samples: &Samples) -> String {
    let columns = [
        ("live", "live", 1.0, 0),
        ("wrong", "wrong", 1.0, 0),
        ("start us/child", "start_us", 1.0, 0),
        ("end us/child", "end_us", 1.0, 0),
        ("memory of Emacs MiB", "rss_kib", 1.0 / 1024.0, 1),
    ];
    let head: Vec<&str> = std::iter::once("process").chain(columns.map(|column| column.0)).collect();
    let rows = lines(emacs, |fleet, kind| {
        let cell = |(_, name, factor, decimals): (_, &str, _, _)| {
            samples.cell((&kind, MOST), (fleet.named(name).as_str(), factor, decimals))
        };
        columns.map(cell).to_vec()
    });
    markdown(&head, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn counts_of_all_fleets_have_a_column() {
        let counts = FLEETS.iter().flat_map(|fleet| fleet.counts.split(','));
        assert!(counts.map(|count| count.parse().unwrap()).all(|count: usize| COUNTS.contains(&count)));
    }

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("emacs-many", goals_of);
    }
}
