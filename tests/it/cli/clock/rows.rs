//! Rows that `minder clock` prints as CSV and JSON.

use std::collections::HashMap;

/// A row, by the names of its columns. In JSON, text has its quotes.
pub(super) type Row = HashMap<String, String>;

/// Returns the cells of a line of CSV. Only those with commas have quotes.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for char in line.chars() {
        match char {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            char => cells.last_mut().expect("there is a cell").push(char),
        }
    }
    cells
}

/// Returns the rows of CSV with these columns.
pub(super) fn csv(text: &str, columns: &str) -> Vec<Row> {
    let columns = crate::cli::bench::columns(columns);
    let mut lines = text.split("\r\n");
    assert_eq!(lines.next(), Some(&*columns), "{text}");
    assert!(text.ends_with("\r\n"), "{text}");
    let row = |line: &str| {
        let values = cells(line);
        assert_eq!(values.len(), columns.split(',').count(), "{line}");
        columns.split(',').map(str::to_owned).zip(values).collect()
    };
    lines.filter(|line| !line.is_empty()).map(row).collect()
}

/// Returns the rows of JSON, an object a line, with these columns in this order.
pub(super) fn json(text: &str, columns: &str) -> Vec<Row> {
    let columns = crate::cli::bench::columns(columns);
    let row = |line: &str| {
        let object = line.strip_prefix('{').and_then(|line| line.strip_suffix('}'));
        let mut rest = object.unwrap_or_else(|| panic!("no object: {line}"));
        let names: Vec<&str> = columns.split(',').collect();
        let mut row = Row::new();
        for (at, name) in names.iter().enumerate() {
            rest = rest.strip_prefix(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name}: {line}"));
            // A value ends where the next name begins.
            let end = match names.get(at + 1) {
                Some(next) => rest.find(&format!(",\"{next}\":")).expect("find the next name"),
                None => rest.len(),
            };
            let value = &rest[..end];
            let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            let is_value = match inner {
                Some(text) => !text.contains(['"', '\\']),
                None => value == "null" || value.parse::<f64>().is_ok(),
            };
            assert!(is_value, "`{value}` is not a value: {line}");
            row.insert((*name).to_owned(), value.to_owned());
            rest = rest[end..].strip_prefix(',').unwrap_or(&rest[end..]);
        }
        assert_eq!(rest, "", "{line}");
        row
    };
    text.lines().map(row).collect()
}

pub(super) fn number(row: &Row, name: &str) -> f64 {
    row[name].parse().unwrap_or_else(|_| panic!("{name} is not a number: {row:?}"))
}
