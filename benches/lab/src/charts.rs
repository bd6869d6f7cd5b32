//! The charts of `docs/measurements`: each is drawn from its rows, without measuring again.
//!
//! A test fails if a chart is not the one that its rows give.

use crate::samples::Samples;
use crate::{emacs, ruby};
use anyhow::{Context, Result};
use minder_ui::rows::CsvTable;
use std::path::{Path, PathBuf};
use xtask::tree;

/// A chart.
struct Chart {
    /// The name of its file, without the ending.
    name: &'static str,
    /// The files of its rows, without their endings.
    rows: &'static [&'static str],
    /// The machine, if no page beside the rows describes it.
    machine: &'static str,
    /// Returns the chart of the rows as SVG.
    draw: fn(&[CsvTable], &str) -> Result<String>,
}

const TWO: &str = "AMD EPYC, 2 cores, linux 6.18, 2026-11-24";
const ONE: &str = "AMD EPYC, one of 2 cores, linux 6.18, 2026-11-24";

const CHARTS: [Chart; 14] = [
    Chart { name: "wait-mechanisms", rows: &["wait-mechanisms"], machine: "", draw: of_minder },
    Chart { name: "exit-mechanisms", rows: &["exit-mechanisms"], machine: "", draw: of_minder },
    Chart { name: "spawn-mechanisms", rows: &["spawn-mechanisms"], machine: "", draw: of_minder },
    Chart { name: "wine-wait", rows: &["wine-wait"], machine: "", draw: of_minder },
    Chart { name: "wine-exit", rows: &["wine-exit"], machine: "", draw: of_minder },
    Chart {
        name: "cells-blocks",
        rows: &["cells-blocks"],
        machine: "AMD EPYC, 2 cores, linux 6.18, 2026-11-28, 10,591,083 cells",
        draw: of_minder,
    },
    Chart {
        name: "clock-measure",
        rows: &["clock-measure"],
        machine: "AMD EPYC, 2 cores, linux 6.18, 2026-11-28",
        draw: of_minder,
    },
    Chart {
        name: "clock-sweep",
        rows: &["clock-sweep"],
        machine: "AMD EPYC, 2 cores, linux 6.18, 2026-11-24, 4 s each",
        draw: of_minder,
    },
    Chart { name: "turnaround-one-cpu", rows: &["turnaround-one"], machine: ONE, draw: of_computing },
    Chart { name: "turnaround-one-io", rows: &["turnaround-one"], machine: ONE, draw: of_sleeping },
    Chart { name: "turnaround-two-cpu", rows: &["turnaround-two"], machine: TWO, draw: of_computing },
    Chart { name: "turnaround-two-io", rows: &["turnaround-two"], machine: TWO, draw: of_sleeping },
    Chart { name: "emacs-sizes", rows: &["emacs-sizes"], machine: "", draw: of_emacs },
    Chart {
        name: "ruby-requests",
        rows: &["ruby-keep-alive", "ruby-idle", "ruby-close"],
        machine: "",
        draw: of_ruby,
    },
];

/// Draws each chart whose rows are in this directory, next to them; with a verb, those alone whose rows that
/// verb measures.
pub(crate) fn write(directory: &Path, verb: Option<&str>) -> Result<()> {
    let is_of_verb = |rows: &str| {
        verb.is_none_or(|verb| rows.strip_prefix(verb).is_some_and(|rest| rest.starts_with('-')))
    };
    for chart in CHARTS.iter().filter(|chart| chart.rows.iter().any(|rows| is_of_verb(rows))) {
        let Some(svg) = chart.svg(directory)? else { continue };
        let file = directory.join(format!("{}.svg", chart.name));
        if std::fs::read_to_string(&file).is_ok_and(|known| known == svg) {
            continue;
        }
        std::fs::write(&file, svg).with_context(|| file.display().to_string())?;
        eprintln!("bench: {}", file.strip_prefix(tree::root()).unwrap_or(&file).display());
    }
    Ok(())
}

impl Chart {
    /// Returns the chart as SVG; `None` without its rows.
    fn svg(&self, directory: &Path) -> Result<Option<String>> {
        let files: Vec<_> = self.rows.iter().map(|name| directory.join(format!("{name}.csv"))).collect();
        if !files.iter().all(|file| file.exists()) {
            return Ok(None);
        }
        let read = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).map_err(anyhow::Error::from);
            text.and_then(|text| CsvTable::read(&text)).with_context(|| file.display().to_string())
        };
        let drawn = files.iter().map(read).collect::<Result<Vec<_>>>().and_then(|rows| {
            let page = std::fs::read_to_string(files[0].with_extension("md"));
            let machine = page.ok().and_then(|page| machine(&page));
            (self.draw)(&rows, machine.as_deref().unwrap_or(self.machine))
        });
        drawn.map(Some).with_context(|| format!("the chart {}", self.name))
    }
}

/// Returns what a page of results says of its machine: the processor, the kernel and the date.
fn machine(page: &str) -> Option<String> {
    let after = |name: &str| page.lines().find_map(|line| line.strip_prefix("- ")?.strip_prefix(name));
    let mut hardware = after("machine: ")?.split(", ");
    let (processor, cores) = hardware.next().zip(hardware.next())?;
    let kernel = after("kernel: ")?;
    let date = after("date: ")?.split(';').next()?;
    Some(format!("{processor}, {cores}, {kernel}, {date}"))
}

/// Draws rows that `minder bench` or `minder clock` printed.
fn of_minder(rows: &[CsvTable], machine: &str) -> Result<String> {
    minder_lab::redraw(&rows[0], machine)?.svg()
}

fn of_computing(rows: &[CsvTable], machine: &str) -> Result<String> {
    of_turnaround(&rows[0], machine, "cpu")
}

fn of_sleeping(rows: &[CsvTable], machine: &str) -> Result<String> {
    of_turnaround(&rows[0], machine, "io")
}

/// Draws the rows of a workload whose first computation takes 10 ms.
fn of_turnaround(rows: &CsvTable, machine: &str, workload: &str) -> Result<String> {
    let mut rows = rows.clone();
    for (column, value) in [("workload", workload), ("bias_ms", "10")] {
        let place = rows.index(column).with_context(|| format!("no column {column}"))?;
        rows.rows.retain(|row| row[place] == value);
    }
    minder_lab::redraw(&rows, machine)?.svg()
}

fn of_emacs(rows: &[CsvTable], machine: &str) -> Result<String> {
    emacs::chart(&Samples::read(&rows[0])?, machine).svg()
}

fn of_ruby(rows: &[CsvTable], machine: &str) -> Result<String> {
    let titles = [
        "64 connections that stay open",
        "1,000 idle connections and 16 active ones",
        "a connection for each request",
    ];
    let questions = titles.into_iter().zip(rows).map(|(title, rows)| Ok((title, Samples::read(rows)?)));
    ruby::chart(&questions.collect::<Result<Vec<_>>>()?, machine).svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results;

    #[test]
    fn charts_are_those_of_their_rows() {
        let directory = results(false);
        for chart in &CHARTS {
            let file = directory.join(format!("{}.svg", chart.name));
            let drawn = chart.svg(&directory).unwrap();
            let is_same = std::fs::read_to_string(file).ok() == drawn;
            assert!(is_same, "{}.svg is not the chart of its rows; hint: cargo bench-lab charts", chart.name);
        }
    }

    #[test]
    fn no_other_chart_is_in_the_documents() {
        for entry in std::fs::read_dir(results(false)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_known = CHARTS.iter().any(|chart| chart.name == name);
            let is_chart = path.extension().is_some_and(|extension| extension == "svg");
            assert!(!is_chart || is_known, "{name}.svg has no rows; hint: a line of CHARTS, with its rows");
        }
    }

    #[test]
    fn rows_of_the_documents_are_written_as_they_are_read() {
        for entry in std::fs::read_dir(results(false)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "csv") {
                let text = std::fs::read_to_string(&path).unwrap();
                let rows = CsvTable::read(&text).unwrap_or_else(|why| panic!("{}: {why:#}", path.display()));
                // `minder … --csv` ends lines with `\r\n`.
                assert!(rows.text() == text.replace('\r', ""), "{}", path.display());
                if ["contestant", "mechanism"].contains(&&*rows.columns[0]) {
                    Samples::read(&rows).unwrap_or_else(|why| panic!("{}: {why:#}", path.display()));
                }
            }
        }
    }

    #[test]
    fn machine_is_the_one_of_the_page() {
        let page = "# x\n\n- machine: AMD EPYC, 2 cores, 24684092 kB\n- kernel: linux 6.18\n\
                    - date: 2026-11-21; rounds: 7\n";
        assert_eq!(machine(page).as_deref(), Some("AMD EPYC, 2 cores, linux 6.18, 2026-11-21"));
        assert_eq!(machine("# x\n"), None);
    }
}
