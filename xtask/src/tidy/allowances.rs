//! How many breaches of some rules each directory still has: `xtask/allowances.txt`.
//!
//! The rules are newer than parts of the tree. A directory may have as many breaches as its entry
//! says; more are a finding, and so are fewer, until the entry is lowered. Without an entry none is
//! allowed.

use super::prose::Words;
use super::{Finding, Tree, idioms};
use crate::tree;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The file of the allowances.
const TABLE: &str = "xtask/allowances.txt";

/// The file of the words.
const WORDS: &str = "xtask/words.txt";

/// The most columns of a line of Rust.
const COLUMNS_MAX: usize = 110;

/// The rules that have allowances, in the order of the table's columns.
const RULES: [&str; 3] = ["words", "idioms", "wide"];

const HEAD: &str = "\
# How many breaches of three rules are left below a directory; the longest name that fits counts.
# An entry may only be lowered: `cargo xtask tidy --lower` does that, and `cargo xtask tidy --hits
# DIRECTORY` prints the breaches.
# words: xtask/words.txt in comments, strings and Markdown; idioms: xtask/src/tidy/idioms.rs; wide:
# lines of Rust over 110 columns.
";

/// One breach: where, and what.
struct Hit {
    rule: usize,
    file: PathBuf,
    line: usize,
    what: String,
}

/// The allowances: directory → the line of the entry, and the most breaches of each rule.
type Allowed = BTreeMap<PathBuf, (usize, [usize; RULES.len()])>;

/// Checks the allowances against the tree.
pub(crate) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let hits = hits(tree)?;
    let text = std::fs::read_to_string(tree::root().join(TABLE)).unwrap_or_default();
    let (allowed, mut found) = parse(&text);
    found.extend(judge(&allowed, &hits));
    Ok(found)
}

fn judge(allowed: &Allowed, hits: &[Hit]) -> Vec<Finding> {
    let table = Path::new(TABLE);
    let mut found = Vec::new();
    let mut counts: BTreeMap<&Path, [usize; RULES.len()]> = BTreeMap::new();
    for hit in hits {
        match entry_of(allowed, &hit.file) {
            Some((directory, most)) if most[hit.rule] > 0 => {
                counts.entry(directory).or_default()[hit.rule] += 1
            }
            _ => found.push(Finding::new(&hit.file, hit.line, &*hit.what)),
        }
    }
    for (directory, (line, most)) in allowed {
        let counted = counts.get(directory.as_path()).copied().unwrap_or_default();
        let shown = directory.display();
        for (rule, (count, most)) in RULES.iter().zip(counted.iter().zip(most)) {
            if count < most {
                let cure = "lower the allowance (cargo xtask tidy --lower)";
                let what = format!("{shown}: {count} {rule}, {most} allowed; cure: {cure}");
                found.push(Finding::new(table, *line, what));
            } else if count > most {
                let cure = format!("write it plainly (cargo xtask tidy --hits {shown})");
                let what = format!("{shown}: {count} {rule}, {most} allowed; cure: {cure}");
                found.push(Finding::new(table, *line, what));
            }
        }
    }
    found
}

/// `cargo xtask tidy --hits DIRECTORY`: prints the breaches below a directory.
pub(crate) fn show(directory: &str) -> Result<()> {
    for hit in hits(&Tree::read()?)?.iter().filter(|hit| directory == "." || hit.file.starts_with(directory))
    {
        println!("{}", Finding::new(&hit.file, hit.line, format!("{}: {}", RULES[hit.rule], hit.what)));
    }
    Ok(())
}

/// `cargo xtask tidy --lower`: lowers the allowances to what is there. It raises none.
pub(crate) fn lower() -> Result<()> {
    let path = tree::root().join(TABLE);
    let (allowed, _) = parse(&std::fs::read_to_string(&path).unwrap_or_default());
    let mut counts: BTreeMap<&Path, [usize; RULES.len()]> = BTreeMap::new();
    let hits = hits(&Tree::read()?)?;
    for hit in &hits {
        if let Some((directory, _)) = entry_of(&allowed, &hit.file) {
            counts.entry(directory).or_default()[hit.rule] += 1;
        }
    }
    let mut text = format!("{HEAD}\n{:<28}", "# directory");
    for rule in RULES {
        let _ = write!(text, "{rule:>8}");
    }
    text.push('\n');
    for (directory, (_, most)) in &allowed {
        let counted = counts.get(directory.as_path()).copied().unwrap_or_default();
        let least = most.iter().zip(counted).map(|(most, count)| count.min(*most)).collect::<Vec<_>>();
        if least.iter().all(|count| *count == 0) {
            continue;
        }
        let _ = write!(text, "{:<28}", directory.display());
        for count in least {
            let _ = write!(text, "{count:>8}");
        }
        text.push('\n');
    }
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}

fn entry_of<'a>(allowed: &'a Allowed, file: &Path) -> Option<(&'a Path, [usize; RULES.len()])> {
    let entries = allowed.iter().filter(|(directory, _)| file.starts_with(directory));
    let longest = entries.max_by_key(|(directory, _)| directory.components().count());
    longest.map(|(directory, (_, most))| (directory.as_path(), *most))
}

fn parse(text: &str) -> (Allowed, Vec<Finding>) {
    let mut allowed = Allowed::new();
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut parts = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(directory) = parts.next() else { continue };
        let counts: Vec<usize> = parts.map_while(|part| part.parse().ok()).collect();
        match counts.try_into() {
            Ok(counts) => drop(allowed.insert(directory.into(), (number + 1, counts))),
            Err(_) => {
                let what = format!("invalid entry: expected DIRECTORY and {} numbers", RULES.len());
                found.push(Finding::new(Path::new(TABLE), number + 1, what));
            }
        }
    }
    (allowed, found)
}

/// Returns every breach of the rules.
fn hits(tree: &Tree) -> Result<Vec<Hit>> {
    let words = Words::parse(&std::fs::read_to_string(tree::root().join(WORDS)).context(WORDS)?);
    let mut found = Vec::new();
    for (file, text) in &tree.texts {
        let mut add = |rule: usize, line: usize, what: String| {
            found.push(Hit { rule, file: file.clone(), line, what });
        };
        let phrases = match tree.sources.get(file) {
            Some(source) => {
                for (line, what) in idioms::find(&source.code) {
                    add(1, line, what.to_string());
                }
                for (line, columns) in wide_lines(text) {
                    add(2, line, format!("{columns} columns, {COLUMNS_MAX} allowed; cure: break the line"));
                }
                words.in_rust(&source.prose)
            }
            None if file.extension().is_some_and(|e| e == "md") => words.in_markdown(text),
            None => continue,
        };
        for (line, phrase) in phrases {
            add(0, line, format!("`{phrase}`; cure: see *Writing* in CONTRIBUTING.md"));
        }
    }
    Ok(found)
}

fn wide_lines(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let long = text.lines().enumerate().filter(|(_, line)| line.len() > COLUMNS_MAX);
    let counted = long.map(|(number, line)| (number + 1, line.chars().count()));
    counted.filter(|(_, columns)| *columns > COLUMNS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(table: &str, hits: &[(&str, usize)]) -> Vec<String> {
        let hits: Vec<Hit> = hits
            .iter()
            .map(|(file, rule)| Hit { rule: *rule, file: file.into(), line: 3, what: "a breach".into() })
            .collect();
        let (allowed, mut found) = parse(table);
        found.extend(judge(&allowed, &hits));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_allowance_is_exact() {
        let table = "# A remark.\ncrates 1 0 0\ncrates/a 0 2 0\n";
        let fits = [("crates/b/x.rs", 0), ("crates/a/x.rs", 1), ("crates/a/y.rs", 1)];
        assert_eq!(told(table, &fits), [""; 0]);
        let fewer = told(table, &fits[..2]);
        assert!(
            fewer.len() == 1 && fewer[0].contains("txt:3: crates/a: 1 idioms, 2 allowed; cure: lower"),
            "{fewer:?}"
        );
        let more = told(table, &[fits[0], fits[0], fits[1], fits[2]]);
        assert!(more.len() == 1 && more[0].contains("crates: 2 words, 1 allowed; cure: write"), "{more:?}");
    }

    #[test]
    fn without_an_allowance_each_breach_is_a_finding() {
        assert_eq!(
            told("crates 1 0 0\n", &[("crates/x.rs", 0), ("crates/x.rs", 2)]),
            ["crates/x.rs:3: a breach"]
        );
        assert_eq!(told("", &[("README.md", 0)]), ["README.md:3: a breach"]);
        assert!(told("crates 1 0\n", &[])[0].contains("expected DIRECTORY and 3 numbers"));
    }
}
