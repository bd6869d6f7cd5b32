//! The import order of every crate, and import cycles.
//!
//! Each directory below a crate's `src` has an ordered list of its modules in `xtask/layers`. A file
//! imports only files whose modules stand before its own, in the list of the directory where their
//! paths part. A directory's own file (`mod.rs`, or `NAME.rs` beside it) stands behind its modules:
//! they do not import from it. A cycle needs an entry that defends it. Unit tests and programs may
//! import anything.

use super::graph::{self, Graph};
use super::table::Table;
use super::{Finding, Tree, manifest};
use crate::tree;
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The directory of the tables.
const TABLES: &str = "xtask/layers";

/// Crates whose functions are system calls.
const OS_CRATES: [&str; 4] = ["libc", "rustix", "windows_sys", "io_uring"];

/// The name of a directory's own file among the names of its modules.
const OWN: &str = ".";

/// The most files of a chain of imports that a message names.
const CHAIN_MAX: usize = 6;

/// Checks the imports of every crate.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let names = crates(&tree.files);
    for name in &names {
        found.extend(Crate::read(name, tree).check());
    }
    for file in tree.files.iter().filter(|file| file.starts_with(TABLES)) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        if !names.contains(name.as_ref()) {
            found.push(Finding::new(
                file,
                1,
                format!("crates/{name} does not exist; cure: remove the table"),
            ));
        }
    }
    found
}

/// `cargo xtask tidy --order CRATE`: prints a table that fits the imports of today. It keeps the
/// order of the present table where the imports allow it.
pub(crate) fn propose(name: &str) -> Result<()> {
    let tree = Tree::read()?;
    if !crates(&tree.files).contains(name) {
        bail!("crates/{name} does not exist");
    }
    print!("{}", Crate::read(name, &tree).propose());
    Ok(())
}

/// `cargo xtask tidy --cycles`: prints every import cycle, with the imports that go against the
/// order.
pub(crate) fn show_cycles() -> Result<()> {
    let tree = Tree::read()?;
    for name in crates(&tree.files) {
        let krate = Crate::read(&name, &tree);
        let upward = krate.upward();
        for cycle in &krate.cycles {
            println!("crates/{name}: {} files", cycle.len());
            for (from, to, line) in &upward {
                if cycle.contains(*from) && cycle.contains(*to) {
                    println!("    src/{}:{line} imports src/{}", from.display(), to.display());
                }
            }
        }
    }
    Ok(())
}

/// Returns the names of the directories below `crates`.
fn crates(files: &[PathBuf]) -> BTreeSet<String> {
    let name =
        |file: &PathBuf| Some(file.strip_prefix("crates").ok()?.iter().next()?.to_string_lossy().into());
    files.iter().filter_map(name).collect()
}

/// One crate, its table and its imports.
struct Crate {
    name: String,
    graph: Graph,
    cycles: Vec<BTreeSet<PathBuf>>,
    table: Table,
    /// The crates that its manifest names, as they are written in code.
    dependencies: Vec<String>,
}

impl Crate {
    fn read(name: &str, tree: &Tree) -> Self {
        let root = tree::root();
        let package = Path::new("crates").join(name);
        let src = package.join("src");
        let mut sources = BTreeMap::new();
        for (file, source) in &tree.sources {
            if let Ok(below) = file.strip_prefix(&src) {
                sources.insert(below.to_path_buf(), source.code.clone());
            }
        }
        let table = std::fs::read_to_string(root.join(table_of(name))).unwrap_or_default();
        let manifest = std::fs::read_to_string(root.join(package).join("Cargo.toml")).unwrap_or_default();
        Self::new(name, &sources, &table, manifest::crates(&manifest))
    }

    fn new(name: &str, sources: &BTreeMap<PathBuf, String>, table: &str, dependencies: Vec<String>) -> Self {
        let graph = Graph::of(sources);
        let cycles = graph.cycles();
        Self { name: name.to_string(), graph, cycles, table: Table::parse(table), dependencies }
    }

    fn check(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for (line, why) in &self.table.invalid {
            found.push(self.in_table(*line, why.clone()));
        }
        found.extend(self.places());
        found.extend(self.order());
        found.extend(self.undefended_cycles());
        found.extend(self.outer_crates());
        found
    }

    fn in_table(&self, line: usize, what: impl Into<String>) -> Finding {
        Finding::new(&table_of(&self.name), line, what)
    }

    fn in_source(&self, file: &Path, line: usize, what: impl Into<String>) -> Finding {
        Finding::new(&Path::new("crates").join(&self.name).join("src").join(file), line, what)
    }

    /// Returns the directories with modules: the path of each, and the names in it.
    fn directories(&self) -> BTreeMap<Vec<String>, BTreeSet<String>> {
        let mut found: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
        for module in self.graph.files.values() {
            for length in 0..module.len() {
                found.entry(module[..length].to_vec()).or_default().insert(module[length].clone());
            }
        }
        found
    }

    /// Every directory has a list, every module a place in it, and every place a module.
    fn places(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let directories = self.directories();
        for (directory, names) in &directories {
            let shown = shown(directory);
            let Some((line, list)) = self.table.directories.get(directory) else {
                let what = format!(
                    "no list for {shown}; cure: add `directory {shown}` and its modules in order, as \
                     `cargo xtask tidy --order {}` prints them",
                    self.name
                );
                found.push(self.in_table(1, what));
                continue;
            };
            for name in names.iter().filter(|name| !list.contains(name)) {
                let what = format!("`{name}` has no place in {shown}; cure: add it to the list");
                found.push(self.in_table(*line, what));
            }
            for name in list.iter().filter(|name| !names.contains(*name)) {
                let what = format!("{shown}/{name} does not exist; cure: remove the name");
                found.push(self.in_table(*line, what));
            }
        }
        for (directory, (line, _)) in &self.table.directories {
            if !directories.contains_key(directory) {
                let what = format!("{} has no modules; cure: remove the list", shown(directory));
                found.push(self.in_table(*line, what));
            }
        }
        found
    }

    /// Returns the directory where the paths of two files part, and the name of each in it.
    fn parting(&self, from: &Path, to: &Path) -> (&[String], &str, &str) {
        let from = &self.graph.files[from];
        let to = &self.graph.files[to];
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let from_name = from.get(common).map_or(OWN, String::as_str);
        let to_name = to.get(common).map_or(OWN, String::as_str);
        (&from[..common], from_name, to_name)
    }

    /// Returns whether the lists allow an import; `None` if one of the files has no place.
    fn is_downward(&self, table: &Table, from: &Path, to: &Path) -> Option<bool> {
        let (directory, from, to) = self.parting(from, to);
        let (_, list) = table.directories.get(directory)?;
        let place = |name: &str| match name {
            OWN => Some(list.len()),
            name => list.iter().position(|other| other == name),
        };
        Some(place(to)? < place(from)?)
    }

    /// Returns every import against the order: importer, imported file, line.
    fn upward(&self) -> Vec<(&PathBuf, &PathBuf, usize)> {
        let upward = self.upward_in(&self.table).into_iter();
        upward.map(|(from, to)| (from, to, self.graph.edges[from][to])).collect()
    }

    /// Returns every import against the order of a table: importer and imported file.
    fn upward_in(&self, table: &Table) -> Vec<(&PathBuf, &PathBuf)> {
        let all = self.graph.edges.iter().flat_map(|(from, to)| to.keys().map(move |to| (from, to)));
        all.filter(|(from, to)| self.is_downward(table, from, to) == Some(false)).collect()
    }

    /// Returns whether both files belong to one cycle that an entry defends.
    fn is_defended(&self, from: &PathBuf, to: &PathBuf) -> bool {
        let cycle = self.cycles.iter().find(|cycle| cycle.contains(from) && cycle.contains(to));
        cycle.is_some_and(|cycle| self.table.cycles.iter().any(|entry| cycle.is_subset(&entry.files)))
    }

    /// A file imports what stands before it.
    fn order(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let upward = self.upward();
        for entry in &self.table.imports {
            if !upward.iter().any(|(from, to, _)| **from == entry.from && **to == entry.to) {
                let from = entry.from.display();
                let to = entry.to.display();
                let what =
                    format!("src/{from} has no import of src/{to} against the order; cure: remove the entry");
                found.push(self.in_table(entry.line, what));
            }
        }
        for (from, to, line) in upward {
            let is_listed = self.table.imports.iter().any(|entry| entry.from == *from && entry.to == *to);
            if is_listed || self.is_defended(from, to) {
                continue;
            }
            let place = shown(self.parting(from, to).0);
            let to_shown = to.display();
            let what = match self.graph.chain(to, from) {
                Some(chain) => format!("imports src/{to_shown}, which imports this file: {}", arrows(&chain)),
                None => format!("imports src/{to_shown}, which stands after it in the list of {place}"),
            };
            let table = table_of(&self.name);
            let cure = format!(
                "cure: move the item to a file before both, or change {} (cargo xtask tidy --order {})",
                table.display(),
                self.name
            );
            found.push(self.in_source(from, line, format!("{what}; {cure}")));
        }
        found
    }

    /// Every cycle is defended, and every entry defends a cycle.
    fn undefended_cycles(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for cycle in &self.cycles {
            let is_defended = self.table.cycles.iter().any(|entry| cycle.is_subset(&entry.files));
            let Some(first) = cycle.first() else { continue };
            if is_defended {
                continue;
            }
            let names: Vec<String> = cycle.iter().map(|file| format!("src/{}", file.display())).collect();
            let what = format!(
                "{} files import each other: {}; cure: move what they share to a file that imports none of \
                 them (cargo xtask tidy --cycles)",
                names.len(),
                names.join(" ")
            );
            found.push(self.in_source(first, 1, what));
        }
        for entry in &self.table.cycles {
            let cycles = self.cycles.iter().filter(|cycle| cycle.is_subset(&entry.files));
            let alive: BTreeSet<&PathBuf> = cycles.flatten().collect();
            if alive.is_empty() {
                found.push(self.in_table(entry.line, "these files form no cycle; cure: remove the entry"));
                continue;
            }
            for file in entry.files.iter().filter(|file| !alive.contains(file)) {
                let what = format!("src/{} is in no cycle; cure: remove it from the entry", file.display());
                found.push(self.in_table(entry.line, what));
            }
        }
        found
    }

    /// Only some places use crates that make system calls, and plain data uses std alone.
    fn outer_crates(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for (line, place) in self.table.os_crates.iter().chain(&self.table.no_crates) {
            if !self.graph.files.keys().any(|file| file.starts_with(place)) {
                let what = format!("src/{} does not exist; cure: remove it", place.display());
                found.push(self.in_table(*line, what));
            }
        }
        let within = |file: &Path, places: &[(usize, PathBuf)]| {
            places.iter().any(|(_, place)| file.starts_with(place))
        };
        for (file, mentions) in &self.graph.external {
            let may_call_os = within(file, &self.table.os_crates);
            let may_use_crates = !within(file, &self.table.no_crates);
            let mut named = BTreeSet::new();
            for (line, name) in mentions.iter().filter(|(_, name)| self.dependencies.contains(name)) {
                let is_allowed = may_use_crates && (may_call_os || !OS_CRATES.contains(&name.as_str()));
                if !is_allowed && named.insert(name) {
                    let what = format!(
                        "uses the crate `{name}`; cure: call a function of a lower layer that does it"
                    );
                    found.push(self.in_source(file, *line, what));
                }
            }
        }
        found
    }

    /// Returns a table that fits the present imports.
    fn propose(&self) -> String {
        let mut out = format!(
            "# The import order of crates/{0}, lowest first: a file imports only what stands before it.\n\
             # A list for each directory; xtask/src/tidy/table.rs describes the entries. After files moved,\n\
             # `cargo xtask tidy --order {0}` prints a table that fits. It keeps this order if it can.\n\n",
            self.name
        );
        for (directory, names) in self.directories() {
            let _ = writeln!(out, "directory {}", shown(&directory));
            let mut line = String::new();
            for name in self.sorted(&directory, &names) {
                if line.len() + name.len() > 90 {
                    let _ = writeln!(out, "   {line}");
                    line.clear();
                }
                line.push(' ');
                line.push_str(&name);
            }
            let _ = writeln!(out, "   {line}\n");
        }
        for (keyword, places) in [("os-crates", &self.table.os_crates), ("no-crates", &self.table.no_crates)]
        {
            if !places.is_empty() {
                let names: Vec<String> = places
                    .iter()
                    .map(|(_, place)| Path::new("src").join(place).display().to_string())
                    .collect();
                let _ = writeln!(out, "{keyword} {}", names.join(" ").replace("src/ ", "src "));
            }
        }
        for cycle in &self.cycles {
            let entry = self.table.cycles.iter().find(|entry| cycle.is_subset(&entry.files));
            out.push_str("cycle\n");
            for file in cycle {
                let _ = writeln!(out, "    src/{}", file.display());
            }
            let _ = writeln!(out, "    : {}", entry.map_or("to be removed", |entry| &entry.reason));
        }
        let ordered = Table::parse(&out);
        for (from, to) in self.upward_in(&ordered) {
            let is_in_cycle = self.cycles.iter().any(|cycle| cycle.contains(from) && cycle.contains(to));
            if !is_in_cycle {
                let mut entries = self.table.imports.iter();
                let entry = entries.find(|entry| entry.from == *from && entry.to == *to);
                let reason = entry.map_or("to be removed", |entry| &entry.reason);
                let _ = writeln!(out, "import src/{} -> src/{}: {reason}", from.display(), to.display());
            }
        }
        out
    }

    /// Returns the modules of a directory, each after those that it imports, except inside a circle.
    fn sorted(&self, directory: &[String], names: &BTreeSet<String>) -> Vec<String> {
        let known =
            self.table.directories.get(directory).map(|(_, list)| list.as_slice()).unwrap_or_default();
        let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, imported) in &self.graph.edges {
            for to in imported.keys() {
                let (place, from, to) = self.parting(from, to);
                if place == directory {
                    needs.entry(from).or_default().insert(to);
                }
            }
        }
        let mut left: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let missing = |name: &str| -> Vec<&str> {
                needs.get(name).into_iter().flatten().copied().filter(|need| left.contains(need)).collect()
            };
            let rank = |name: &str| known.iter().position(|other| other == name).unwrap_or(usize::MAX);
            let ready = left.iter().copied().filter(|name| missing(name).is_empty());
            let next = match ready.min_by_key(|name| rank(name)) {
                Some(next) => next,
                None => {
                    // Every module waits for another one: take one of a circle that waits for nothing else.
                    let nodes: Vec<&&str> = left.iter().collect();
                    let next = |name: &&str| missing(name).iter().filter_map(|need| left.get(need)).collect();
                    let circles = graph::components(&nodes, next);
                    let first =
                        circles.first().map(|circle| circle.iter().map(|name| **name)).into_iter().flatten();
                    let Some(next) = first.min_by_key(|name| (missing(name).len(), rank(name))) else {
                        break;
                    };
                    next
                }
            };
            left.remove(next);
            order.push(next.to_string());
        }
        order
    }
}

fn table_of(name: &str) -> PathBuf {
    Path::new(TABLES).join(format!("{name}.txt"))
}

/// Returns a directory as the table writes it.
fn shown(directory: &[String]) -> String {
    ["src"].into_iter().chain(directory.iter().map(String::as_str)).collect::<Vec<_>>().join("/")
}

fn arrows(chain: &[PathBuf]) -> String {
    let names: Vec<String> = chain.iter().map(|file| file.display().to_string()).collect();
    match names.as_slice() {
        [first, .., last] if names.len() > CHAIN_MAX => {
            format!("{first} -> … {} files … -> {last}", names.len() - 2)
        }
        _ => names.join(" -> "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: [(&str, &str); 5] = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "mod x; use crate::a::A; pub use x::X;"),
        ("b/x.rs", "use crate::a::A; pub struct X; fn f() { libc::abort(); }"),
        ("c.rs", "use crate::b::X;"),
    ];

    fn told(changes: &[(&str, &str)], table: &str) -> Vec<String> {
        let mut sources: BTreeMap<PathBuf, String> = BTreeMap::new();
        for (file, code) in SOURCES.iter().chain(changes) {
            sources.insert(file.into(), (*code).to_string());
        }
        let krate = Crate::new("k", &sources, table, vec!["libc".into(), "regex".into()]);
        krate.check().iter().map(ToString::to_string).collect()
    }

    const TABLE: &str = "directory src\n    a b c\ndirectory src/b\n    x\nos-crates src/b\n";

    #[test]
    fn a_crate_in_order_has_no_findings() {
        assert_eq!(told(&[], TABLE), [""; 0]);
    }

    #[test]
    fn each_rule_reports_a_breach() {
        let one = |changes: &[(&str, &str)], table: &str, part: &str| {
            let found = told(changes, table);
            assert!(found.len() == 1 && found[0].contains(part), "{part}: {found:#?}");
        };
        one(
            &[("a.rs", "use crate::c::f; pub struct A;"), ("c.rs", "")],
            TABLE,
            "a.rs:1: imports src/c.rs, which stands after",
        );
        one(&[("d.rs", "")], TABLE, "`d` has no place in src");
        one(&[("a/y.rs", "")], TABLE, "no list for src/a");
        one(&[], &TABLE.replace("a b c", "a b c d"), "src/d does not exist");
        one(&[], &format!("{TABLE}directory src/q\n    z\n"), "src/q has no modules");
        one(&[], &format!("{TABLE}import src/a.rs -> src/c.rs: why\n"), "has no import");
        one(&[], &format!("{TABLE}cycle src/a.rs src/c.rs: why\n"), "form no cycle");
        one(&[], &format!("{TABLE}no-crates src/z.rs\n"), "src/z.rs does not exist");
        one(&[("c.rs", "use libc::c_int;")], TABLE, "c.rs:1: uses the crate `libc`");
        one(&[("c.rs", "use regex::R;")], &format!("{TABLE}no-crates src/c.rs\n"), "uses the crate `regex`");
    }

    #[test]
    fn a_cycle_needs_an_entry() {
        let changes = [("b/x.rs", "use super::f; pub struct X;"), ("b.rs", "mod x; pub use x::X; fn f() {}")];
        let found = told(&changes, TABLE);
        assert!(
            found[0].contains("b/x.rs:1: imports src/b.rs, which imports this file: b.rs -> b/x.rs"),
            "{found:#?}"
        );
        assert!(found[1].contains("2 files import each other: src/b/x.rs src/b.rs"), "{found:#?}");
        assert_eq!(told(&changes, &format!("{TABLE}cycle src/b.rs src/b/x.rs: why\n")), [""; 0]);
        let more = told(&changes, &format!("{TABLE}cycle src/a.rs src/b.rs src/b/x.rs: why\n"));
        assert!(more.len() == 1 && more[0].contains("src/a.rs is in no cycle"), "{more:#?}");
    }

    #[test]
    fn a_proposed_table_fits() {
        let sources = SOURCES.map(|(file, code)| (file.into(), code.to_string())).into();
        let krate = Crate::new("k", &sources, "directory src\n    c b a\nos-crates src/b\n", Vec::new());
        assert_eq!(told(&[], &krate.propose()), [""; 0]);
    }
}
