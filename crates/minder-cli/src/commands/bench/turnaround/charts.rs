//! Charts of elapsed time and of turnaround over the number of computations, with a curve for each form.

use minder_bench::{Form, Order, Runner, TurnaroundMeasurement};

use super::summary::{Group, Summary};
use crate::ui::chart::{Axis, Chart, Curve, Panel, Unit};
use crate::ui::count;

/// The most forms of a chart: it has as many colors and marks.
const CURVES_MAX: usize = 8;

/// Returns a row of two panels for each group.
pub(super) fn chart(summary: &Summary, processors: usize) -> Chart {
    let elapsed = Axis { label: "Elapsed time".to_owned(), unit: Unit::Nanoseconds };
    let turnaround = Axis { label: "Mean relative turnaround".to_owned(), unit: Unit::Times };
    let mut all: Vec<Form> = summary.groups().into_iter().flat_map(|group| summary.forms(group)).collect();
    all.sort_by_key(|form| (form.runner, form.order, form.degree));
    all.dedup();
    let shown = shown_forms(all);
    let mut panels = Vec::new();
    for group in summary.groups() {
        let forms: Vec<Form> = summary.forms(group).into_iter().filter(|form| shown.contains(form)).collect();
        let panel = |axis: &Axis, value: fn(&TurnaroundMeasurement) -> f64| {
            let curves = forms.iter().map(|form| curve(summary, group, *form, value)).collect();
            Panel { title: group.to_string(), axis: axis.clone(), curves }
        };
        panels.push(panel(&elapsed, |it| it.elapsed.as_secs_f64() * 1e9));
        panels.push(panel(&turnaround, |it| it.turnaround));
    }
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let on = count(processors as u64, "processor");
    Chart {
        title: "Serial or concurrent".to_owned(),
        subtitle: format!("minder {}, {system}, {on}, medians", env!("CARGO_PKG_VERSION")),
        x_label: "computations".to_owned(),
        columns: 2,
        panels,
    }
}

/// Returns the forms that a chart shows in all its panels, in the same order: the most different ones, if
/// there are too many.
fn shown_forms(forms: Vec<Form>) -> Vec<Form> {
    let most = |runner| forms.iter().filter(|form| form.runner == runner).map(|form| form.degree).max();
    let rank = |form: &Form| match (form.runner, form.order) {
        (Runner::Serial, _) | (Runner::Timers, _) => 0,
        (runner, Order::Longest) if Some(form.degree) == most(runner) => 0,
        (Runner::Threads, Order::Longest) => 1,
        (Runner::Threads, Order::Shortest) => 2,
        (Runner::Children, _) => 3,
        _ => 4,
    };
    let mut shown = forms.clone();
    shown.sort_by_key(rank);
    shown.truncate(CURVES_MAX);
    forms.into_iter().filter(|form| shown.contains(form)).collect()
}

fn curve(summary: &Summary, group: Group, form: Form, value: fn(&TurnaroundMeasurement) -> f64) -> Curve {
    let point = |count: usize| Some((count as f64, summary.spread(&group.case(form, count), value)?.median));
    let points = summary.counts(group).into_iter().filter_map(point).collect();
    Curve { label: form.to_string(), points, published: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_has_at_most_as_many_curves_as_marks() {
        let form = |runner, degree, order| Form { runner, degree, order };
        let mut forms =
            vec![form(Runner::Serial, 1, Order::Longest), form(Runner::Serial, 1, Order::Shortest)];
        forms.extend([1, 2, 4, 8, 25].map(|degree| form(Runner::Threads, degree, Order::Longest)));
        forms.extend([2, 4, 8].map(|degree| form(Runner::Threads, degree, Order::Shortest)));
        forms.extend([2, 4, 25].map(|degree| form(Runner::Children, degree, Order::Longest)));
        let shown: Vec<String> = shown_forms(forms).iter().map(Form::to_string).collect();
        assert_eq!(
            shown,
            [
                "serial",
                "serial, shortest first",
                "1 thread",
                "2 threads",
                "4 threads",
                "8 threads",
                "25 threads",
                "25 children"
            ]
        );
    }
}
