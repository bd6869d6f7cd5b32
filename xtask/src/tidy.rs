//! Rules about the whole tree, which the compiler and clippy do not check.
//!
//! Every finding names the file, the line, what is wrong and what to do. An exception to a rule is
//! an entry of a table, where a reviewer sees it.

mod code;
mod graph;
mod table;
mod manifest;
mod layers;
mod source;
mod text;

use crate::bench::backends;
use crate::tree;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    file: PathBuf,
    line: usize,
    what: String,
}

impl Finding {
    fn new(file: &Path, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.into(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display().to_string().replace('\\', "/"), self.line, self.what)
    }
}

/// `cargo xtask tidy [--cycles] [--order CRATE]`.
pub(crate) fn main(args: &[String]) -> Result<()> {
    match args {
        [] => run(),
        [flag, name] if flag == "--order" => layers::propose(name),
        [flag] if flag == "--cycles" => layers::show_cycles(),
        _ => bail!("unknown arguments of tidy; cure: cargo xtask help"),
    }
}

/// Prints every finding, and fails if there is one.
pub(crate) fn run() -> Result<()> {
    let found = all()?;
    for finding in &found {
        println!("{finding}");
    }
    match found.len() {
        0 => Ok(()),
        n => bail!("tidy: {n} to be put right, listed above"),
    }
}

/// Returns everything that is wrong with the tree, in the order of the files.
fn all() -> Result<Vec<Finding>> {
    let files = tree::files()?;
    let mut found = text::required(&tree::root());
    found.extend(backends(&files)?);
    found.extend(source::places(&files));
    let mut codes = BTreeMap::new();
    for file in &files {
        let bytes = std::fs::read(tree::root().join(file)).with_context(|| file.display().to_string())?;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        if text.contains('\0') {
            continue;
        }
        found.extend(text::check(file, &text));
        match file.extension().and_then(|e| e.to_str()) {
            Some("rs") => {
                let code = code::without_comments(&text);
                found.extend(source::check(file, &text, &code));
                codes.insert(file.clone(), code);
            }
            Some("toml") if file.ends_with("Cargo.toml") => found.extend(manifest::check(file, &text)),
            _ => {}
        }
    }
    found.extend(layers::check(&files, &codes));
    found.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    Ok(found)
}

/// Returns the Rust files as code without comments and strings.
fn codes(files: &[PathBuf]) -> BTreeMap<PathBuf, String> {
    let rust = files.iter().filter(|file| file.extension().is_some_and(|e| e == "rs"));
    let read = |file: &PathBuf| std::fs::read_to_string(tree::root().join(file)).unwrap_or_default();
    rust.map(|file| (file.clone(), code::without_comments(&read(file)))).collect()
}

/// Whether the page of backends says what there is and what was measured.
fn backends(files: &[PathBuf]) -> Result<Vec<Finding>> {
    let file = Path::new(backends::PAGE);
    let page =
        std::fs::read_to_string(tree::root().join(file)).with_context(|| file.display().to_string())?;
    let wrong = backends::check(&tree::root(), &page, files)?;
    Ok(wrong.into_iter().map(|(line, what)| Finding::new(file, line, what)).collect())
}

/// Whether `file` lies in one of the places; a `*` stands for one folder's name, a place that ends
/// in `/` for all below.
fn within(file: &Path, places: &[&str]) -> bool {
    let parts: Vec<_> = file.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    places.iter().any(|place| {
        let wanted: Vec<&str> = place.trim_end_matches('/').split('/').collect();
        let long_enough =
            if place.ends_with('/') { parts.len() > wanted.len() } else { parts.len() == wanted.len() };
        long_enough && wanted.iter().zip(&parts).all(|(w, p)| *w == "*" || w == p)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let found: Vec<String> = all().unwrap().iter().map(Finding::to_string).collect();
        assert!(found.is_empty(), "\n{}", found.join("\n"));
    }

    #[test]
    fn places_match_whole_names() {
        let at = |file: &str, place: &str| within(Path::new(file), &[place]);
        assert!(at("crates/a/src/sys/x/y.rs", "crates/*/src/sys/"));
        assert!(!at("crates/a/src/system.rs", "crates/*/src/sys/"));
        assert!(at("crates/a/src/block.rs", "crates/*/src/block.rs"));
        assert!(!at("crates/a/src/block.rs/more", "crates/*/src/block.rs"));
    }
}
