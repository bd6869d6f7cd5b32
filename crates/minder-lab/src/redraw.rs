//! Charts of rows that were printed before.

use anyhow::{Context, Result};
use minder_ui::rows::CsvTable;

use crate::chart::Chart;
use crate::{bench, clock};

/// Returns the chart of rows that `minder bench … --csv`, `minder clock measure --csv` or
/// `minder clock sweep --csv` printed, as `--svg` draws it. The subtitle begins with `machine`.
///
/// ```
/// let rows = "mechanism,objects,round,waits,cpu_ns,wall_ns\nepoll,2,1,50,250.0,260.0\n";
/// let rows = minder_ui::rows::CsvTable::read(rows)?;
/// let chart = minder_lab::redraw(&rows, "two processors")?;
/// assert_eq!(chart.panels[0].curves[0].label, "epoll");
/// # Ok::<(), anyhow::Error>(())
/// ```
///
/// # Errors
/// The columns are not those of such rows, or a value is not a number.
pub fn redraw(rows: &CsvTable, machine: &str) -> Result<Chart> {
    let drawn = bench::redraw(rows, machine).or_else(|| clock::redraw(rows, machine));
    drawn.with_context(|| format!("there is no chart of the columns {}", rows.columns.join(", ")))?
}
