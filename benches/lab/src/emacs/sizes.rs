//! Time and calls of the filter by number of bytes, for the chart.

use super::kind::{LIGHT, NATIVE, STOCK, STOCK_NIL};
use super::library::missing;
use super::{Emacs, in_units};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use crate::table::markdown;
use anyhow::Result;
use minder_lab::chart::{Axis, Chart, Curve, Panel, Scale, Unit};

/// Every second power of two. With the default settings, the largest takes minutes.
const SIZES: [usize; 5] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
const SIZES_QUICK: usize = 3;
const KINDS: [Contestant; 4] = [STOCK, STOCK_NIL, NATIVE, LIGHT];
/// What the names of the numbers begin with.
const PREFIX: &str = "pty_";

pub(super) fn sizes(bench: &Bench, emacs: &Emacs) -> Result<Answer> {
    let sizes = if bench.quick { &SIZES[..SIZES_QUICK] } else { &SIZES[..] };
    let mut samples = Samples::default();
    let which = (PREFIX, &KINDS[..], sizes);
    emacs.add_rounds(bench, &mut samples, which, &["output", "pty", "trivial", "{}", "4"])?;
    let kinds = emacs.present(&KINDS);
    let mut tables = vec!["![Chart](emacs-sizes.svg)\n".to_string()];
    for (title, name, decimals) in
        [("Wall time in seconds", "wall_s", 3), ("Calls of the filter", "calls", 0)]
    {
        let head = sizes.iter().map(|size| in_units(*size)).collect::<Vec<_>>();
        let head: Vec<&str> = std::iter::once("process").chain(head.iter().map(String::as_str)).collect();
        let name = format!("{PREFIX}{name}");
        let line = |kind: &Contestant| {
            let cells = sizes.iter().map(|size| samples.cell((kind, *size), (name.as_str(), 1.0, decimals)));
            std::iter::once(kind.title()).chain(cells).collect()
        };
        let rows: Vec<Vec<String>> = kinds.iter().map(line).collect();
        tables.push(format!("{title}, by size of the output:\n\n{}", markdown(&head, &rows)));
    }
    let remarks = vec![
        "The child writes four short lines, each 10 ms after the other, and then lines of 80 characters, \
         through a pseudo-terminal, into a filter that does nothing. Emacs waits for output of all \
         processes, as it does for the next key."
            .into(),
    ];
    Ok(Answer::with_goals(&samples, &goals_of(&samples, sizes), &tables.join("\n"), remarks))
}

/// Returns a chart of the rows: time and calls by size, with a curve for each kind.
pub(crate) fn chart(samples: &Samples, machine: &str) -> Chart {
    let panel = |title: &str, number: &str, unit, factor: f64| {
        let name = format!("{PREFIX}{number}");
        let curve = |kind: Contestant| {
            let mut curve = Curve::new(kind.title(), Vec::new());
            for size in samples.sizes() {
                let Some(spread) = samples.spread((&kind, size), name.as_str()) else { continue };
                let spread = spread.scaled(factor);
                #[expect(clippy::cast_precision_loss, reason = "a number of bytes, far below 2^52")]
                let size = size as f64;
                curve.points.push((size, spread.median));
                curve.extremes.push((size, spread.min, spread.max));
            }
            curve
        };
        let axis = Axis { label: title.into(), unit };
        Panel { title: title.into(), axis, curves: KINDS.map(curve).into() }
    };
    Chart {
        title: "Emacs: four short lines, then bulk output of a child".into(),
        subtitle: format!("{machine}; pseudo-terminal, trivial filter; medians with extremes"),
        x_axis: Axis { label: "size of the bulk output".into(), unit: Unit::Bytes },
        x_scale: Scale::Logarithmic,
        columns: 2,
        panels: vec![
            panel("wall time", "wall_s", Unit::Nanoseconds, 1e9),
            panel("calls of the filter", "calls", Unit::Count, 1.0),
        ],
    }
}

fn goals_of(samples: &Samples, sizes: &[usize]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for size in sizes {
        for other in [STOCK, STOCK_NIL] {
            for ours in [NATIVE, LIGHT] {
                let what = format!("{}, wall: {} over {}", in_units(*size), other.title(), ours.title());
                let figure =
                    samples.ratio((&other, *size), (&ours, *size), format!("{PREFIX}wall_s").as_str());
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
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("emacs-sizes", |samples| goals_of(samples, &SIZES));
    }

    #[test]
    fn chart_has_medians_with_extremes() {
        let mut samples = Samples::default();
        for (round, wall) in [(1, 0.1), (2, 0.3)] {
            samples.add(round, (&LIGHT, 1 << 16), vec![("pty_wall_s".into(), wall)]);
        }
        let chart = chart(&samples, "a machine");
        let curves = &chart.panels[0].curves;
        assert_eq!((curves.len(), &*curves[3].label), (4, "minder, light"));
        assert_eq!(curves[3].points, [(65536.0, 2e8)]);
        assert_eq!(curves[3].extremes, [(65536.0, 1e8, 3e8)]);
    }
}
