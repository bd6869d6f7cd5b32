//! The chart of what was measured: how late the latest of N sleeps is.

use std::time::Duration;

use anyhow::{Context, Result};
use minder_ui::rows::CsvTable;

use super::output::{asked, subtitle};
use super::sleeps::{Sleeps, load_text};
use crate::chart::{Axis, Chart, Curve, Panel, Scale, Unit};
use minder_ui::count;

/// One sleep of this many is as late as the percentile, or later.
const ONE_IN: [(f64, &str); 4] = [(2.0, "p50_ns"), (10.0, "p90_ns"), (100.0, "p99_ns"), (1000.0, "p999_ns")];

/// The curve of one way, and the panel that it is on.
struct Way {
    time: Duration,
    load: u16,
    curve: Curve,
}

/// Returns a chart with a panel for each time and load.
pub(super) fn chart(sleeps: &Sleeps) -> Chart {
    let ways = sleeps.0.iter().filter_map(|it| {
        let stats = it.lateness.stats()?;
        let late =
            [stats.p50, stats.p90, stats.p99, stats.p999, stats.max].map(|late| late.as_nanos() as f64);
        Some(way(it.case.way.name(), it.case.time, it.case.load, stats.count as f64, late))
    });
    chart_of(&ways.collect::<Vec<_>>(), subtitle)
}

/// Returns the chart of rows that were printed before.
///
/// # Errors
/// They are not the summaries of `minder clock measure`.
pub(super) fn redraw(rows: &CsvTable, machine: &str) -> Result<Chart> {
    let mut ways = Vec::new();
    for row in &rows.rows {
        let cell = |name: &str| {
            let place = rows.index(name).with_context(|| format!("the rows have no column `{name}`"))?;
            anyhow::Ok(row[place].as_str())
        };
        let mut late = [0.0; 5];
        for (late, name) in late.iter_mut().zip(ONE_IN.map(|(_, name)| name).into_iter().chain(["max_ns"])) {
            *late = cell(name)?.parse()?;
        }
        let time = Duration::from_nanos(cell("asked_ns")?.parse()?);
        ways.push(way(cell("way")?, time, cell("load")?.parse()?, cell("sleeps")?.parse()?, late));
    }
    Ok(chart_of(&ways, |details| format!("{machine}, {details}")))
}

/// Returns the curve of a way: the percentiles, and the latest of all sleeps.
fn way(name: &str, time: Duration, load: u16, sleeps: f64, late: [f64; 5]) -> Way {
    let percentiles = ONE_IN.map(|(one_in, _)| one_in).into_iter().zip(late);
    let mut points: Vec<(f64, f64)> = percentiles.filter(|(one_in, _)| *one_in < sleeps).collect();
    points.push((sleeps, late[4]));
    Way { time, load, curve: Curve::new(name, points) }
}

fn chart_of(ways: &[Way], subtitle: impl Fn(&str) -> String) -> Chart {
    let most = ways.iter().filter_map(|way| way.curve.points.last()).map(|point| point.0).fold(0.0, f64::max);
    let panel = |ways: &[Way]| Panel {
        title: format!("sleeps of {}, {}", asked(ways[0].time), load_text(ways[0].load)),
        axis: Axis { label: "later than asked for".to_owned(), unit: Unit::Nanoseconds },
        curves: ways.iter().map(|way| way.curve.clone()).collect(),
    };
    let panels: Vec<Panel> =
        ways.chunk_by(|one, other| (one.time, one.load) == (other.time, other.load)).map(panel).collect();
    let label = "one sleep of this many is as late as the curve, or later (2: half of them)";
    Chart {
        title: "How late sleeps end".to_owned(),
        subtitle: subtitle(&format!("{} by each way", count(most as u64, "sleep"))),
        x_axis: Axis { label: label.to_owned(), unit: Unit::Count },
        x_scale: Scale::Logarithmic,
        columns: panels.len().min(2),
        panels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_end_at_the_latest_of_all_sleeps() {
        let text = "way,asked_ns,load,sleeps,p50_ns,p90_ns,p99_ns,p999_ns,max_ns\n\
                    poll,1000000,0,200,5,6,7,9,9\npoll,1000000,2,2000,5,6,7,8,9\n";
        let chart = redraw(&CsvTable::read(text).expect("read rows"), "a machine").expect("draw rows");
        assert_eq!(chart.subtitle, "a machine, 2000 sleeps by each way");
        let titles: Vec<&str> = chart.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["sleeps of 1 ms, idle", "sleeps of 1 ms, 2 threads compute"]);
        let [few, many] = [0, 1].map(|at| chart.panels[at].curves[0].points.clone());
        assert_eq!(few, [(2.0, 5.0), (10.0, 6.0), (100.0, 7.0), (200.0, 9.0)]);
        assert_eq!(many[3..], [(1000.0, 8.0), (2000.0, 9.0)]);
        assert!(redraw(&CsvTable { rows: vec![vec![]], ..CsvTable::default() }, "").is_err());
    }
}
