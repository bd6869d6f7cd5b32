//! Time and calls of the filter by number of bytes, for the chart.

use super::super::mechanisms::{Aim, Goal, goals_table};
use super::super::samples::Samples;
use super::super::table::markdown;
use super::super::{Answer, Bench};
use super::kind::Kind;
use super::library::missing;
use super::{Emacs, in_units};
use anyhow::Result;

/// Every second power of two. With the default settings, the largest takes minutes.
const SIZES: [usize; 5] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
const SIZES_QUICK: usize = 3;
pub(super) const KINDS: [Kind; 4] = [Kind::Stock, Kind::StockNil, Kind::Native, Kind::Light];
/// What the names of the numbers begin with.
pub(super) const PREFIX: &str = "pty_";

pub(super) fn sizes(bench: &Bench, emacs: &Emacs) -> Result<Answer> {
    let sizes = if bench.quick { &SIZES[..SIZES_QUICK] } else { &SIZES[..] };
    let mut samples = Samples::default();
    let which = (PREFIX, &KINDS[..], sizes);
    emacs.add_rounds(bench, &mut samples, which, &["output", "pty", "trivial", "{}", "4"])?;
    let kinds = emacs.present(&KINDS);
    let mut table = goals_table(&goals_of(&samples, sizes));
    for (title, name, decimals) in
        [("Wall time in seconds", "wall_s", 3), ("Calls of the filter", "calls", 0)]
    {
        let head = sizes.iter().map(|size| in_units(*size)).collect::<Vec<_>>();
        let head: Vec<&str> = std::iter::once("process").chain(head.iter().map(String::as_str)).collect();
        let name = format!("{PREFIX}{name}");
        let line = |kind: &Kind| {
            let cells = sizes.iter().map(|size| samples.cell(kind, *size, (&name, 1.0, decimals)));
            std::iter::once(kind.title().to_string()).chain(cells).collect()
        };
        let rows: Vec<Vec<String>> = kinds.iter().map(line).collect();
        table.push_str(&format!("\n{title}, by size of the output:\n\n{}", markdown(&head, &rows)));
    }
    let remarks = vec![
        "The child writes four short lines, each 10 ms after the other, and then lines of 80 characters, \
         through a pseudo-terminal, into a filter that does nothing. Emacs waits for output of all \
         processes, as it does for the next key. The chart is emacs-sizes.svg."
            .into(),
    ];
    Ok(Answer { table, remarks, csv: samples.csv()? })
}

fn goals_of(samples: &Samples, sizes: &[usize]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for size in sizes {
        for other in [Kind::Stock, Kind::StockNil] {
            for ours in [Kind::Native, Kind::Light] {
                let what = format!("{}, wall: {} over {}", in_units(*size), other.title(), ours.title());
                let figure = samples.ratio(other, ours, *size, &format!("{PREFIX}wall_s"));
                goals.push(Goal::ratio(what, figure, Aim::None));
            }
        }
        goals.extend(missing(samples, *size, PREFIX.trim_end_matches('_')));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_for_each_size() {
        let mut samples = Samples::default();
        for (kind, wall) in [(Kind::Stock, 6.0), (Kind::Light, 2.0)] {
            samples.add(0, kind, 1 << 20, vec![("pty_wall_s".into(), wall)]);
        }
        let goals = goals_of(&samples, &[1 << 10, 1 << 20]);
        let medians: Vec<_> = goals.iter().filter_map(|goal| Some(goal.figure.as_ref()?.median)).collect();
        assert_eq!((goals.len(), medians), (8, vec![3.0]));
    }
}
