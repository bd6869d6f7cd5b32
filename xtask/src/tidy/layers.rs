//! The import order of every crate.
//!
//! The `mod` lines of a directory are its order, lowest first. They stand in the directory's own file
//! (`mod.rs`, or `NAME.rs` next to it). A file imports only files whose modules are declared before
//! its own, in the directory where their paths part. A directory's own file stands behind its
//! modules: they do not import from it. So there are no import cycles. Unit tests and programs may
//! import anything.

use super::graph::Graph;
use super::{Finding, Tree};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Checks the imports of every crate.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for krate in crates(tree) {
        found.extend(krate.undeclared());
        found.extend(krate.upward().into_iter().map(|(finding, _)| finding));
    }
    found
}

/// `cargo xtask tidy --cycles`: prints every import cycle, as an import against the order and the
/// imports that lead back.
pub(crate) fn show_cycles() -> Result<()> {
    for krate in crates(&Tree::read()?) {
        for (finding, back) in krate.upward() {
            let Some(back) = back else { continue };
            println!("{finding}");
            back.iter().for_each(|file| println!("    src/{}", file.display()));
        }
    }
    Ok(())
}

fn crates(tree: &Tree) -> Vec<Crate> {
    let mut crates: BTreeMap<PathBuf, BTreeMap<PathBuf, String>> = BTreeMap::new();
    for (file, source) in &tree.sources {
        let src: PathBuf = file.iter().take(3).collect();
        if src.starts_with("crates") && src.ends_with("src") {
            let below = file.iter().skip(3).collect();
            crates.entry(src).or_default().insert(below, source.code.clone());
        }
    }
    crates.into_iter().map(|(src, sources)| Crate { src, graph: Graph::of(&sources) }).collect()
}

/// One crate and its imports.
struct Crate {
    src: PathBuf,
    graph: Graph,
}

impl Crate {
    /// Returns the files that no `mod` line declares. They have no place in the order.
    fn undeclared(&self) -> Vec<Finding> {
        let declares = |module| self.graph.mods.contains_key(module);
        let files = self.graph.files.iter().filter(|(_, module)| !module.is_empty() && !declares(*module));
        let what = "no `mod` line declares this file; hint: add one, or remove the file";
        files.map(|(file, _)| Finding::new(&self.src.join(file), 1, what)).collect()
    }

    /// Returns every import against the order, and the files that lead back if there is a cycle.
    fn upward(&self) -> Vec<(Finding, Option<Vec<PathBuf>>)> {
        let mut found = Vec::new();
        let edges = self.graph.edges.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to)));
        for (from, (to, line)) in edges {
            let module = &self.graph.files[from];
            let imported = &self.graph.files[to];
            let common = module.iter().zip(imported).take_while(|(a, b)| a == b).count();
            let places = (self.place(module, common), self.place(imported, common));
            let (Some(place), Some(imported_place)) = places else { continue };
            if imported_place < place {
                continue;
            }
            let back = self.graph.chain(to, from);
            let why = match back {
                Some(_) => "imports this file (cargo xtask tidy --cycles)",
                None => "stands after it",
            };
            let mut hint = "move the item to a file before both".to_string();
            if let (None, Some(name), Some(other)) = (&back, module.get(common), imported.get(common)) {
                let own = self.graph.files.iter().find(|(_, own)| **own == module[..common]);
                let own = own.map_or(Path::new(""), |(file, _)| file).display();
                hint = format!(
                    "move `mod {other}` (line {imported_place}) above `mod {name}` (line {place}) in \
                     src/{own}, or {hint}"
                );
            }
            let what = format!("imports src/{}, which {why}; hint: {hint}", to.display());
            found.push((Finding::new(&self.src.join(from), *line, what), back));
        }
        found
    }

    /// Returns the place of a module in the directory at a depth of its path: the line that declares it
    /// there. The directory's own file comes last.
    fn place(&self, module: &[String], depth: usize) -> Option<usize> {
        if module.len() == depth {
            return Some(usize::MAX);
        }
        Some(self.graph.mods.get(&module[..=depth])?.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: [(&str, &str); 5] = [
        ("lib.rs", "mod a;\n#[cfg(unix)]\npub mod b;\npub(crate) mod c;\nuse c::f;"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "mod x;\nmod y;\nuse crate::a::A;\npub use x::X;"),
        ("b/x.rs", "use crate::a::A;\npub struct X;"),
        ("b/y.rs", "use super::X;"),
    ];

    fn findings(changes: &[(&str, &str)]) -> Vec<String> {
        let mut sources = BTreeMap::from([("c.rs".into(), "use crate::b::X;\npub fn f() {}".to_string())]);
        for (file, code) in SOURCES.iter().chain(changes) {
            sources.insert(file.into(), (*code).to_string());
        }
        let krate = Crate { src: "crates/k/src".into(), graph: Graph::of(&sources) };
        let upward = krate.upward().into_iter().map(|(finding, _)| finding);
        krate.undeclared().into_iter().chain(upward).map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_crate_in_order_has_no_findings() {
        assert_eq!(findings(&[]), [""; 0]);
    }

    #[test]
    fn each_rule_reports_a_breach() {
        let one = |changes: &[(&str, &str)], wanted: &str| {
            let found = findings(changes);
            assert!(found.len() == 1 && found[0].contains(wanted), "{wanted}: {found:#?}");
        };
        // An import that goes upwards, and two `mod` lines that change places.
        one(
            &[("a.rs", "pub struct A;\nuse crate::c::f;"), ("c.rs", "pub fn f() {}")],
            "a.rs:2: imports src/c.rs, which stands after it; hint: move `mod c` (line 4) above `mod a` \
             (line 1) in src/lib.rs, or",
        );
        one(
            &[("b.rs", "mod y;\nmod x;\npub use x::X;")],
            "b/y.rs:1: imports src/b/x.rs, which stands after it; hint: move `mod x` (line 2) above \
             `mod y` (line 1) in src/b.rs, or",
        );
        one(
            &[
                ("b/x.rs", "use super::g;\npub struct X;"),
                ("b.rs", "mod x;\nmod y;\npub use x::X;\nfn g() {}"),
            ],
            "b/x.rs:1: imports src/b.rs, which imports this file (cargo xtask tidy --cycles); hint: move the \
             item",
        );
        one(
            &[("b/y.rs", "use super::g;"), ("b.rs", "mod x;\nmod y;\npub use x::X;\nfn g() {}")],
            "b/y.rs:1: imports src/b.rs, which stands after it; hint: move the item",
        );
        one(&[("d.rs", "")], "d.rs:1: no `mod` line");
    }
}
