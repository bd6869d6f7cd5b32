//! Rules about the whole tree, which the compiler and clippy do not check.
//!
//! Every finding names the file, the line, what is wrong and what to do. An exception to a rule is
//! an entry of a table, where a reviewer sees it.

mod code;
mod graph;
mod manifest;
mod map;
mod layers;
mod source;
mod text;
mod prose;
mod openings;
mod idioms;
mod wine;
mod subjects;

use crate::{tree, version};
use anyhow::{Context, Result, bail};
use code::Source;
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

/// `cargo xtask tidy`, and what it prints instead with an option.
pub(crate) fn main(args: &[String]) -> Result<()> {
    match args {
        [] => run(),
        [flag] if flag == "--cycles" => layers::show_cycles(),
        _ => bail!("unknown arguments of tidy; hint: cargo xtask help"),
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

/// The files of the repository.
struct Tree {
    files: Vec<PathBuf>,
    /// The files that are text.
    texts: BTreeMap<PathBuf, String>,
    /// The files that are Rust.
    sources: BTreeMap<PathBuf, Source>,
}

impl Tree {
    fn read() -> Result<Self> {
        let files = tree::files()?;
        let mut texts = BTreeMap::new();
        let mut sources = BTreeMap::new();
        for file in &files {
            let bytes = std::fs::read(tree::root().join(file)).with_context(|| file.display().to_string())?;
            let Some(text) = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) else {
                continue;
            };
            if file.extension().is_some_and(|extension| extension == "rs") {
                sources.insert(file.clone(), code::split(&text));
            }
            texts.insert(file.clone(), text);
        }
        Ok(Self { files, texts, sources })
    }
}

/// Returns everything that is wrong with the tree, in the order of the files.
fn all() -> Result<Vec<Finding>> {
    let tree = Tree::read()?;
    let mut found = text::required(&tree::root());
    found.extend(source::places(&tree.files));
    for (file, text) in &tree.texts {
        found.extend(text::check(file, text));
        if file.ends_with("Cargo.toml") {
            found.extend(manifest::check(file, text));
        }
        if let Some(source) = tree.sources.get(file) {
            found.extend(source::check(file, text, &source.code));
        }
    }
    found.extend(layers::check(&tree));
    found.extend(prose::check(&tree)?);
    found.extend(openings::check(&tree));
    found.extend(map::check(&tree));
    found.extend(wine::check(&tree));
    found.extend(subjects::check());
    let stated = version::differing(|file| tree.texts.get(file).cloned());
    found.extend(stated.into_iter().map(|(file, what)| Finding::new(file, 1, what)));
    found.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    Ok(found)
}

/// Returns whether `file` lies in one of the places. A `*` stands for the name of one directory,
/// and a place that ends in `/` for all files below.
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
