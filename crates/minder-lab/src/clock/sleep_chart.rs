//! The chart of what was measured: how late the latest of N sleeps is.

use std::time::Duration;

use anyhow::{Context, Result};
use minder_ui::rows::CsvTable;

use super::output::asked_ascii;
use super::sleeps::load_text;
use crate::chart::{Axis, Chart, Curve, Panel, Scale, Unit, noted};
use minder_ui::count;

/// One sleep of this many is as late as the percentile, or later.
const ONE_IN: [(f64, &str); 4] = [(2.0, "p50_ns"), (10.0, "p90_ns"), (100.0, "p99_ns"), (1000.0, "p999_ns")];

/// The curve of one way, and the panel that it is on.
struct Way {
    time: Duration,
    load: u16,
    sleeps: u32,
    curve: Curve,
}

/// Returns a chart of summaries with a panel for each time and load. The subtitle begins with the
/// machine.
///
/// # Errors
/// They do not have the columns of `minder clock measure`.
pub(super) fn chart(rows: &CsvTable, machine: &str) -> Result<Chart> {
    let ways = rows.rows.iter().map(|row| way(rows, row)).collect::<Result<Vec<_>>>()?;
    let panel = |ways: &[Way]| Panel {
        title: format!("sleeps of {}, {}", asked_ascii(ways[0].time), load_text(ways[0].load)),
        axis: Axis { label: "later than asked for".to_owned(), unit: Unit::Nanoseconds },
        curves: ways.iter().map(|way| way.curve.clone()).collect(),
    };
    let panels: Vec<Panel> =
        ways.chunk_by(|one, other| (one.time, one.load) == (other.time, other.load)).map(panel).collect();
    let most = ways.iter().map(|way| way.sleeps).max().unwrap_or(0);
    let label = "one sleep of this many is as late or later (2: half of them)";
    Ok(Chart {
        title: "How late sleeps end".to_owned(),
        subtitle: format!("{}, {} by each way", noted(machine, rows), count(most.into(), "sleep")),
        x_axis: Axis { label: label.to_owned(), unit: Unit::Count },
        x_scale: Scale::Logarithmic,
        columns: panels.len().min(2),
        panels,
    })
}

/// Reads the curve of a way: the percentiles, and the latest of all sleeps.
fn way(rows: &CsvTable, row: &[String]) -> Result<Way> {
    let cell = |name: &str| {
        let place = rows.index(name).with_context(|| format!("the rows have no column `{name}`"))?;
        anyhow::Ok(row[place].as_str())
    };
    let sleeps: u32 = cell("sleeps")?.parse()?;
    let mut curve = Curve::new(cell("way")?, Vec::new());
    for (one_in, column) in ONE_IN.into_iter().filter(|(one_in, _)| *one_in < sleeps.into()) {
        curve.points.push((one_in, cell(column)?.parse()?));
    }
    curve.points.push((sleeps.into(), cell("max_ns")?.parse()?));
    let time = Duration::from_nanos(cell("asked_ns")?.parse()?);
    Ok(Way { time, load: cell("load")?.parse()?, sleeps, curve })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_end_at_the_latest_of_all_sleeps() {
        let text = "way,asked_ns,load,sleeps,p50_ns,p90_ns,p99_ns,p999_ns,max_ns\n\
                    poll,1000000,0,200,5,6,7,9,9\npoll,1000000,2,2000,5,6,7,8,9\n";
        let chart = chart(&CsvTable::read(text).expect("read rows"), "a machine").expect("draw rows");
        assert_eq!(chart.subtitle, "a machine, 2000 sleeps by each way");
        let titles: Vec<&str> = chart.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["sleeps of 1 ms, idle", "sleeps of 1 ms, 2 threads compute"]);
        let [few, many] = [0, 1].map(|at| chart.panels[at].curves[0].points.clone());
        assert_eq!(few, [(2.0, 5.0), (10.0, 6.0), (100.0, 7.0), (200.0, 9.0)]);
        assert_eq!(many[3..], [(1000.0, 8.0), (2000.0, 9.0)]);
        assert!(super::chart(&CsvTable { rows: vec![vec![]], ..CsvTable::default() }, "").is_err());
    }
}
