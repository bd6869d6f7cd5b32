//! `docs/backends.md`: a table that people write, whose columns of costs are filled in from the
//! rows in `docs/measurements`.
//!
//! A test fails if they do not say what the rows give, or if a backend of the tree has no line.

use crate::samples::Samples;
use anyhow::{Context, Result};
use minder_ui::rows::CsvTable;
use xtask::tree;

/// The page.
pub(crate) const PAGE: &str = "docs/backends.md";

/// Heads of columns that are filled in, up to the number; the rows that they come from; which of
/// those.
const COSTS: [(&str, &str, &str); 2] = [
    ("us per wait, ", "docs/measurements/wait-mechanisms.csv", ""),
    ("us per exit, ", "docs/measurements/exit-mechanisms.csv", "one"),
];
const UNKNOWN: &str = "not measured";

/// Measured rows: those of each entry of [`COSTS`].
type Measured = [Samples; 2];

/// A column that is filled in.
struct Column {
    place: usize,
    source: usize,
    size: usize,
}

/// Writes the costs anew.
pub(crate) fn write() -> Result<()> {
    let path = tree::root().join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| PAGE.to_string())?;
    Ok(std::fs::write(&path, filled(&page, &measured()?))?)
}

fn measured() -> Result<Measured> {
    let read = |(_, file, _): (&str, &str, &str)| match std::fs::read_to_string(tree::root().join(file)) {
        Ok(text) => {
            CsvTable::read(&text).and_then(|rows| Samples::read(&rows)).with_context(|| file.to_string())
        }
        // It is not measured yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Samples::default()),
        Err(error) => Err(error).with_context(|| file.to_string()),
    };
    let [waits, ends] = COSTS.map(read);
    Ok([waits?, ends?])
}

/// The page with its costs as the rows give them. Nothing else is touched.
fn filled(page: &str, measured: &Measured) -> String {
    let mut columns = Vec::new();
    let mut text = String::new();
    for line in page.lines() {
        let cells = cells(line);
        match name(&cells) {
            Some(name) if !columns.is_empty() => text.push_str(&fill(&cells, name, &columns, measured)),
            _ => {
                // A table ends where no cells are; the line below its head has cells, and no name.
                if cells.is_empty() || columns.is_empty() {
                    columns = costs(&cells);
                }
                text.push_str(line);
            }
        }
        text.push('\n');
    }
    text
}

fn fill(cells: &[&str], name: &str, columns: &[Column], measured: &Measured) -> String {
    let mut cells: Vec<String> = cells.iter().map(|cell| (*cell).to_string()).collect();
    for Column { place, source, size } in columns {
        let kind = COSTS[*source].2;
        let cost = measured[*source].spread((name, kind, *size), "cpu_ns");
        if let Some(cell) = cells.get_mut(*place) {
            *cell = cost.map_or_else(|| UNKNOWN.into(), |cost| figures(cost.median / 1e3));
        }
    }
    format!("| {} |", cells.join(" | "))
}

/// A number in three figures or a few more.
fn figures(number: f64) -> String {
    let decimals = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
    format!("{number:.decimals$}")
}

/// The cells of a line of a table; none of any other line.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.map_or_else(Vec::new, |inner| inner.split('|').map(str::trim).collect())
}

/// The backend that a line of the table is about.
fn name<'a>(cells: &[&'a str]) -> Option<&'a str> {
    cells.first()?.strip_prefix('`')?.strip_suffix('`')
}

/// The columns to be filled in, if the line is the head of a table that has any.
fn costs(cells: &[&str]) -> Vec<Column> {
    let column = |(place, cell): (usize, &&str)| {
        COSTS.iter().enumerate().find_map(|(source, (head, ..))| {
            let size = cell.strip_prefix(head)?.replace(',', "").parse().ok()?;
            Some(Column { place, source, size })
        })
    };
    cells.iter().enumerate().filter_map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# T\n\n| name | what |\n| --- | --- |\n| `x` | y |\n\n\
        | backend | limit | us per wait, 2,048 | us per exit, 10 |\n| --- | --- | ---: | ---: |\n\
        | `epoll` | none | old | old |\n| `iocp` | some | old | old |\n\n`epoll` in words.\n";

    fn rows() -> Measured {
        let waits = "mechanism,objects,round,waits,cpu_ns,wall_ns\nepoll,2048,1,9,528,530\nepoll,2,1,9,1,1\n";
        let ends = "mechanism,kind,live,round,exits,cpu_ns,wall_ns\n\
                    epoll,one,10,1,9,12340,1\nepoll,burst,10,1,9,1,1\n";
        [waits, ends].map(|text| Samples::read(&CsvTable::read(text).unwrap()).unwrap())
    }

    #[test]
    fn costs_are_filled_in_and_nothing_else() {
        let text = filled(PAGE, &rows());
        assert!(text.contains("| `epoll` | none | 0.53 | 12.3 |\n"), "{text}");
        assert!(text.contains("| `iocp` | some | not measured | not measured |\n"), "{text}");
        let rest = |page: &str| {
            page.lines().take(8).chain(page.lines().skip(10)).map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(rest(&text), rest(PAGE));
        assert_eq!(filled(&text, &rows()), text);
    }

    /// Backends without a line in the table, and lines without a backend.
    fn unmatched(page: &str, names: &[String]) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut named = Vec::new();
        let mut table = false;
        for (number, line) in page.lines().enumerate() {
            let cells = cells(line);
            table = !cells.is_empty() && (table || !costs(&cells).is_empty());
            let Some(name) = name(&cells) else { continue };
            if !table {
                continue;
            }
            named.push(name);
            if !names.iter().any(|known| known == name) {
                found.push((number + 1, format!("no backend is called `{name}`; hint: remove its line")));
            }
        }
        for name in names.iter().filter(|name| !named.contains(&name.as_str())) {
            found.push((1, format!("no line for the backend `{name}`; hint: add it to the table")));
        }
        found
    }

    /// The names of the backends: one file each, on Unix and on Windows.
    fn backends() -> Vec<String> {
        let mut names = Vec::new();
        for directory in ["wait", "wait/windows"] {
            for entry in
                std::fs::read_dir(tree::root().join("crates/minder/src/sys").join(directory)).unwrap()
            {
                let path = entry.unwrap().path();
                if std::fs::read_to_string(&path).is_ok_and(|text| text.contains("\nimpl WaitBackend for ")) {
                    names.push(path.file_stem().unwrap().to_str().unwrap().to_string());
                }
            }
        }
        names
    }

    #[test]
    fn page_has_each_backend_and_the_measured_costs() {
        let page = std::fs::read_to_string(tree::root().join(super::PAGE)).unwrap();
        assert_eq!(unmatched(&page, &backends()), []);
        let filled = filled(&page, &measured().unwrap());
        for (line, filled) in page.lines().zip(filled.lines()) {
            assert_eq!(line, filled, "other costs than in docs/measurements; hint: cargo bench-lab backends");
        }
    }

    #[test]
    fn backends_and_lines_belong_together() {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_string()).collect::<Vec<_>>();
        assert_eq!(unmatched(PAGE, &names(&["epoll", "iocp"])), []);
        let found = unmatched(PAGE, &names(&["epoll", "kqueue"]));
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [10, 1], "{found:?}");
    }
}
