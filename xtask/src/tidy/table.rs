//! The tables of import orders: one text file for each crate, `xtask/layers/CRATE.txt`.
//!
//! An entry begins at the start of a line; indented lines continue it. `#` begins a comment.
//!
//! ```text
//! directory src/set                  # its modules in order; its own file stands behind them
//!     timers slab child output
//! cycle src/a.rs src/b.rs: REASON    # these files import each other
//! import src/a.rs -> src/b.rs: REASON
//! os-crates src/sys src/os           # only here libc, rustix, windows-sys and io-uring may be used
//! no-crates src/event.rs             # files that use std alone
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One parsed table. Paths are relative to the crate's `src`.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Directory, as the path of its module → the line of the entry and the names of its modules.
    pub(crate) directories: BTreeMap<Vec<String>, (usize, Vec<String>)>,
    pub(crate) cycles: Vec<Cycle>,
    pub(crate) imports: Vec<Import>,
    pub(crate) os_crates: Vec<(usize, PathBuf)>,
    pub(crate) no_crates: Vec<(usize, PathBuf)>,
    /// Lines that are not an entry, and why.
    pub(crate) invalid: Vec<(usize, String)>,
}

/// Files that may import each other.
#[derive(Debug)]
pub(crate) struct Cycle {
    pub(crate) line: usize,
    pub(crate) files: BTreeSet<PathBuf>,
    pub(crate) reason: String,
}

/// A file that may import another one against the order.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) line: usize,
    pub(crate) from: PathBuf,
    pub(crate) to: PathBuf,
    pub(crate) reason: String,
}

impl Table {
    /// Reads a table.
    pub(crate) fn parse(text: &str) -> Self {
        let mut table = Self::default();
        for (line, entry) in entries(text) {
            if let Err(why) = table.add(line, &entry) {
                table.invalid.push((line, why));
            }
        }
        table
    }

    fn add(&mut self, line: usize, entry: &str) -> Result<(), String> {
        let (keyword, rest) = entry.split_once(' ').unwrap_or((entry, ""));
        match keyword {
            "directory" => {
                let mut names = rest.split_whitespace().map(str::to_string);
                let path = below_src(&names.next().unwrap_or_default())?;
                let module = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                let names: Vec<String> = names.collect();
                if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
                    return Err(format!("`{}` stands here twice", twice.1));
                }
                if self.directories.insert(module, (line, names)).is_some() {
                    return Err(format!("a second list for src/{}", path.display()));
                }
            }
            "cycle" => {
                let (files, reason) = reasoned(rest)?;
                let files = files.split_whitespace().map(below_src).collect::<Result<_, _>>()?;
                self.cycles.push(Cycle { line, files, reason });
            }
            "import" => {
                let (files, reason) = reasoned(rest)?;
                let (from, to) = files.split_once("->").ok_or("expected FILE -> FILE: REASON")?;
                let from = below_src(from.trim())?;
                let to = below_src(to.trim())?;
                self.imports.push(Import { line, from, to, reason });
            }
            "os-crates" => self.os_crates.extend(places(line, rest)?),
            "no-crates" => self.no_crates.extend(places(line, rest)?),
            _ => return Err(format!("unknown entry `{keyword}`")),
        }
        Ok(())
    }
}

/// Returns every entry as one line, with the number of its first line.
fn entries(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        match found.last_mut() {
            _ if line.trim().is_empty() => {}
            Some((_, entry)) if line.starts_with(' ') => {
                entry.push(' ');
                entry.push_str(line.trim());
            }
            _ => found.push((number + 1, line.trim().to_string())),
        }
    }
    found
}

/// Splits an entry and its reason.
fn reasoned(rest: &str) -> Result<(&str, String), String> {
    match rest.split_once(':') {
        Some((what, reason)) if !reason.trim().is_empty() => Ok((what, reason.trim().to_string())),
        _ => Err("no reason; expected `: REASON` at the end".to_string()),
    }
}

fn places(line: usize, rest: &str) -> Result<Vec<(usize, PathBuf)>, String> {
    rest.split_whitespace().map(|place| Ok((line, below_src(place)?))).collect()
}

fn below_src(path: &str) -> Result<PathBuf, String> {
    let below = Path::new(path).strip_prefix("src");
    below.map(Path::to_path_buf).map_err(|_| format!("invalid path `{path}`: expected one below `src`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read() {
        let table = Table::parse(
            "# All.\ndirectory src\n    a b # c\n    d\ndirectory src/b\n    x\n\
             cycle src/a.rs src/d.rs: why\n\
             import src/a.rs -> src/b/x.rs: why\nos-crates src/b\nno-crates src/a.rs src/d.rs\n",
        );
        assert_eq!(table.invalid, []);
        assert_eq!(table.directories[&Vec::new()], (2, ["a", "b", "d"].map(String::from).to_vec()));
        assert_eq!(table.directories[&vec!["b".to_string()]].1, ["x"]);
        assert_eq!((table.cycles[0].files.len(), table.cycles[0].reason.as_str()), (2, "why"));
        assert_eq!((table.imports[0].line, table.imports[0].to.as_path()), (8, Path::new("b/x.rs")));
        assert_eq!(table.os_crates, [(9, "b".into())]);
        assert_eq!(table.no_crates.len(), 2);
    }

    #[test]
    fn entries_without_sense_are_reported() {
        let table = Table::parse("directory src\n    a a\ncycle src/a.rs\nimport a -> b: why\nfolder src\n");
        assert_eq!(table.invalid.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4, 5]);
    }
}
