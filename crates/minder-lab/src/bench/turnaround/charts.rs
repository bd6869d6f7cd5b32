//! Charts of elapsed time, of turnaround and of responsiveness over the number of computations, with a curve
//! for each form.

use minder_bench::{Form, Order, Runner, TurnaroundMeasurement};

use super::summary::{Group, Summary};
use crate::chart::{Axis, Chart, Curve, Panel, Scale, Unit};

/// The most forms of a chart: it has as many colors and marks.
const CURVES_MAX: usize = 8;
/// The most letters of a line of the subtitle: two panels side by side are wide enough for them.
const LINE_MAX: usize = 190;

/// What a panel shows.
struct Quantity {
    label: &'static str,
    unit: Unit,
    value: fn(&TurnaroundMeasurement) -> f64,
}

/// The panels of a group.
const QUANTITIES: [Quantity; 4] = [
    Quantity { label: "Elapsed time", unit: Unit::Nanoseconds, value: |it| it.elapsed.as_secs_f64() * 1e9 },
    Quantity { label: "Mean relative turnaround", unit: Unit::Times, value: |it| it.turnaround },
    Quantity { label: "p95 relative turnaround", unit: Unit::Times, value: |it| it.turnaround_p95 },
    Quantity {
        label: "Unresponsive time",
        unit: Unit::Nanoseconds,
        value: |it| it.unresponsive.as_secs_f64() * 1e9,
    },
];

/// Returns four panels for each group, in two rows. The subtitle begins with the machine.
pub(super) fn chart(summary: &Summary, machine: &str) -> Chart {
    let mut all: Vec<Form> = summary.groups().into_iter().flat_map(|group| summary.forms(group)).collect();
    all.sort_by_key(|form| (form.runner, form.order, form.degree));
    all.dedup();
    let shown = shown_forms(all.clone());
    let mut panels = Vec::new();
    for group in summary.groups() {
        let forms: Vec<Form> = summary.forms(group).into_iter().filter(|form| shown.contains(form)).collect();
        panels.extend(QUANTITIES.map(|Quantity { label, unit, value }| Panel {
            title: group.to_string(),
            axis: Axis { label: label.to_owned(), unit },
            curves: forms.iter().map(|form| curve(summary, group, *form, value)).collect(),
        }));
    }
    let mut subtitle = format!("{machine}, medians");
    all.retain(|form| !shown.contains(form));
    for line in note_lines(&all) {
        subtitle = subtitle + "\n" + &line;
    }
    Chart {
        title: "Serial or concurrent".to_owned(),
        subtitle,
        x_axis: Axis { label: "computations".to_owned(), unit: Unit::Count },
        x_scale: Scale::Logarithmic,
        columns: 2,
        panels,
    }
}

/// Returns the lines that name the forms without a curve.
fn note_lines(left_out: &[Form]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for form in left_out {
        match lines.last_mut() {
            None => lines.push(format!("not shown here, but in the tables: {form}")),
            Some(line) if line.chars().count() + form.to_string().chars().count() + 2 <= LINE_MAX => {
                *line = format!("{line}; {form}");
            }
            Some(line) => {
                line.push(';');
                lines.push(form.to_string());
            }
        }
    }
    lines
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
    Curve::new(form.to_string(), points)
}

#[cfg(test)]
mod tests {
    use minder_bench::{TurnaroundCase, Workload};

    use super::super::rows::Row;
    use super::*;

    /// Returns rows of `io` with these forms.
    fn summary(forms: &[(Runner, usize, Order)]) -> Summary {
        let row = |(runner, degree, order)| {
            let row = Row::example(Workload::Io, 17, 100);
            let form = Form { runner, degree, order };
            Row { case: TurnaroundCase { form, ..row.case }, ..row }
        };
        Summary { rows: forms.iter().copied().map(row).collect() }
    }

    #[test]
    fn each_group_has_a_panel_for_each_quantity() {
        let summary = summary(&[(Runner::Serial, 1, Order::Longest), (Runner::Threads, 2, Order::Longest)]);
        let chart = chart(&summary, "a machine");
        let labels: Vec<&str> = chart.panels.iter().map(|panel| panel.axis.label.as_str()).collect();
        let wanted =
            ["Elapsed time", "Mean relative turnaround", "p95 relative turnaround", "Unresponsive time"];
        assert_eq!(labels, wanted);
        let values: Vec<f64> = chart.panels.iter().map(|panel| panel.curves[0].points[0].1).collect();
        assert_eq!(values, [1e8, 2.5, 4.0, 2e7]);
        assert!(chart.panels.iter().all(|panel| panel.curves.len() == 2));
        assert!(!chart.subtitle.contains("not shown"), "{}", chart.subtitle);
    }

    #[test]
    fn chart_names_the_forms_that_it_does_not_show() {
        let mut forms = vec![(Runner::Serial, 1, Order::Longest), (Runner::Serial, 1, Order::Shortest)];
        forms.extend([2, 8, 25].map(|degree| (Runner::Threads, degree, Order::Longest)));
        forms.extend([2, 8].map(|degree| (Runner::Threads, degree, Order::Shortest)));
        forms.extend([2, 8, 25].map(|degree| (Runner::Children, degree, Order::Longest)));
        let chart = chart(&summary(&forms), "a machine");
        assert!(chart.panels.iter().all(|panel| panel.curves.len() == 8));
        let note = "\nnot shown here, but in the tables: 2 children; 8 children";
        assert!(chart.subtitle.ends_with(note), "{}", chart.subtitle);
        // A long list has several lines.
        let many: Vec<Form> =
            (2..60).map(|degree| Form { runner: Runner::Threads, degree, order: Order::Shortest }).collect();
        let lines = note_lines(&many);
        assert!(
            lines.len() > 2 && lines.iter().all(|line| line.chars().count() <= LINE_MAX + 1),
            "{lines:?}"
        );
        assert!(many.iter().all(|form| lines.iter().any(|line| line.contains(&form.to_string()))));
    }

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
