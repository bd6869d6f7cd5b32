//! The chart of what was measured: how late the latest of N sleeps is.

use super::output::{asked, subtitle};
use super::sleeps::{MeasuredCase, Sleeps, load_text};
use crate::chart::{Axis, Chart, Curve, Panel, Scale, Unit};
use minder_ui::count;

/// Returns a chart with a panel for each time and load.
pub(super) fn chart(sleeps: &Sleeps) -> Chart {
    let panels: Vec<Panel> = sleeps.groups().map(panel).filter(|panel| !panel.curves.is_empty()).collect();
    let most = sleeps.0.iter().filter_map(|it| it.lateness.stats()).map(|stats| stats.count).max();
    Chart {
        title: "How late sleeps end".to_owned(),
        subtitle: subtitle(&format!("{} by each way", count(most.unwrap_or(0) as u64, "sleep"))),
        x_label: "one sleep of this many is later than the curve (2: half of them)".to_owned(),
        x_scale: Scale::Logarithmic,
        columns: panels.len().min(2),
        panels,
    }
}

fn panel(group: &[MeasuredCase]) -> Panel {
    let case = group[0].case;
    let curves = group.iter().filter_map(|it| {
        let points: Vec<(f64, f64)> = one_in()
            .map_while(|sleeps| Some((sleeps, it.lateness.of_one_in(sleeps)?)))
            .map(|(sleeps, late)| (sleeps as f64, late.as_nanos() as f64))
            .collect();
        let label = it.case.way.name().to_owned();
        (!points.is_empty()).then_some(Curve { label, points, published: false })
    });
    Panel {
        title: format!("sleeps of {}, {}", asked(case.time), load_text(case.load)),
        axis: Axis { label: "later than asked for".to_owned(), unit: Unit::Nanoseconds },
        curves: curves.collect(),
    }
}

/// Returns 2, 5, 10, 20, 50 and so on.
fn one_in() -> impl Iterator<Item = usize> {
    (0..7).flat_map(|decade| [1, 2, 5].map(|step| step * 10usize.pow(decade))).skip(1)
}
