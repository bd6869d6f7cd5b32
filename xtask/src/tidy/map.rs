//! The tables of `ARCHITECTURE.md` name files that exist, and items that these files define.

use super::code::Source;
use super::{Finding, Tree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The document with the tables. A row is: question, crate, files below its `src`, names.
const DOCUMENT: &str = "ARCHITECTURE.md";

/// The keywords that define an item with a name.
const DEFINING: [&str; 7] = ["fn", "struct", "enum", "trait", "const", "static", "type"];

/// Checks every row of the tables.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let text = tree.texts.get(Path::new(DOCUMENT)).map(String::as_str).unwrap_or_default();
    let rows = text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, row(line)?)));
    let errors = rows.flat_map(|(line, row)| row.errors(&tree.sources).into_iter().map(move |e| (line, e)));
    errors.map(|(line, error)| Finding::new(Path::new(DOCUMENT), line, error)).collect()
}

/// A row that leads to code.
struct Row {
    files: Vec<PathBuf>,
    names: Vec<String>,
}

/// Reads a row. Rows of other tables do not have a crate in the second cell.
fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let [_, package, files, names] = cells[..] else { return None };
    if !package.starts_with("minder") {
        return None;
    }
    let src = Path::new("crates").join(package).join("src");
    Some(Row {
        files: in_backticks(files).map(|file| src.join(file)).collect(),
        names: in_backticks(names).map(str::to_owned).collect(),
    })
}

/// Returns the texts between backticks.
fn in_backticks(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

impl Row {
    fn errors(&self, sources: &BTreeMap<PathBuf, Source>) -> Vec<String> {
        let mut errors = Vec::new();
        for file in self.files.iter().filter(|file| !sources.contains_key(*file)) {
            errors.push(format!("no file `{}`; hint: name the file of today", file.display()));
        }
        let found: Vec<&Source> = self.files.iter().filter_map(|file| sources.get(file)).collect();
        for name in &self.names {
            let is_defined =
                name.split("::").all(|part| found.iter().any(|source| defines(&source.code, part)));
            if !is_defined && !found.is_empty() {
                errors.push(format!("its file does not define `{name}`; hint: name the item of today"));
            }
        }
        errors
    }
}

/// Returns whether code defines an item, or has an `impl` of it.
fn defines(code: &str, name: &str) -> bool {
    let words: Vec<&str> =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let is_item = words.windows(2).any(|pair| DEFINING.contains(&pair[0]) && pair[1] == name);
    is_item || code.lines().any(|line| line.starts_with("impl") && line.contains(name))
}

#[cfg(test)]
mod tests {
    use super::super::code;
    use super::*;

    fn errors(line: &str) -> Vec<String> {
        let text = "impl Set {\n    fn next(&self) {}\n}\nconst TABLE: u8 = 0;\n";
        let sources = BTreeMap::from([(PathBuf::from("crates/minder/src/set.rs"), code::split(text))]);
        row(line).map(|row| row.errors(&sources)).unwrap_or_default()
    }

    #[test]
    fn row_is_accepted_when_file_and_names_exist() {
        assert!(errors("| a question | minder | `set.rs` | `Set::next`, `TABLE` |").is_empty());
        assert!(errors("| a term | its meaning |").is_empty());
    }

    #[test]
    fn row_is_reported_when_file_or_name_is_missing() {
        assert_eq!(errors("| a question | minder | `sets.rs` | `next` |").len(), 1);
        assert_eq!(errors("| a question | minder | `set.rs` | `Set::last` |").len(), 1);
    }
}
