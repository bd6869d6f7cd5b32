//! The import graph of one crate: which file uses an item that another file defines.
//!
//! A path is followed through modules and re-exports to the file that defines the item. A `use`
//! of a module alone makes no edge; the paths through it do. Method calls name no path and are not seen.
//! Unit tests are left out: they may import anything.

use super::code::{self, Family, Mention, ModLine, Scan};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

/// A module's path below the root of its crate; the root itself is empty.
pub(crate) type Module = Vec<String>;

/// The files of one crate and the imports between them.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// The module of each file, without unit tests.
    pub(crate) files: BTreeMap<PathBuf, Module>,
    /// Importing file → imported file → the line of the first path that leads there.
    pub(crate) edges: BTreeMap<PathBuf, BTreeMap<PathBuf, usize>>,
    /// The line that declares each module, in the file of the module above.
    pub(crate) mods: HashMap<Module, ModLine>,
}

/// The names that a module defines for paths.
#[derive(Default)]
struct Scope {
    file: PathBuf,
    items: HashSet<String>,
    /// The paths that a `use` binds to a name; two paths under one name are alternatives of two
    /// systems.
    uses: HashMap<String, Vec<Vec<String>>>,
    globs: Vec<Vec<String>>,
}

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Module(Module),
    Item(PathBuf),
}

type Scopes = HashMap<Module, Scope>;

/// The names that are being looked up, each with its module: a name that needs itself has no target.
type Pending = Vec<(Module, String)>;

impl Graph {
    /// Reads a crate; `sources` has the files below its `src`, named relative to that directory, as
    /// code without comments and strings.
    pub(crate) fn of(sources: &BTreeMap<PathBuf, String>) -> Self {
        let mut scans: Vec<(PathBuf, Module, Scan)> = Vec::new();
        for (file, code) in sources {
            if let Some(module) = module_of(file) {
                scans.push((file.clone(), module, code::scan(code)));
            }
        }
        let mut scopes = Scopes::new();
        for (file, module, scan) in &scans {
            declare(&mut scopes, file, module, scan);
        }
        let mut graph = Self::default();
        for (file, module, scan) in scans {
            for (name, mod_line) in &scan.modules {
                graph.mods.insert(module.iter().chain([name]).cloned().collect(), *mod_line);
            }
            for mention in scan.mentions.iter().filter(|m| !is_test(&m.inside)) {
                graph.add(&scopes, &file, &module, mention);
            }
            graph.files.insert(file, module);
        }
        graph.remove_impossible();
        graph
    }

    /// Removes imports between files that are never compiled together.
    fn remove_impossible(&mut self) {
        let family = |file: &PathBuf| -> Option<Family> {
            let module = &self.files[file];
            (1..=module.len()).find_map(|length| self.mods.get(&module[..length])?.family)
        };
        for (from, imported) in &mut self.edges {
            imported.retain(|to, _| match (family(from), family(to)) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            });
        }
    }

    fn add(&mut self, scopes: &Scopes, file: &Path, module: &Module, mention: &Mention) {
        let here: Module = module.iter().chain(&mention.inside).cloned().collect();
        let mut path = mention.path.clone();
        if let Some(last) = path.last_mut() {
            *last = last.trim_end_matches('!').to_string();
        }
        let targets = resolve(scopes, &here, &path, &mut Pending::new());
        for target in targets {
            if let Target::Item(other) = target
                && other != file
            {
                let edges = self.edges.entry(file.to_path_buf()).or_default();
                edges.entry(other).or_insert(mention.line);
            }
        }
    }

    /// Returns the shortest chain of imports from one file to another, both included.
    pub(crate) fn chain(&self, from: &Path, to: &Path) -> Option<Vec<PathBuf>> {
        let mut chains = VecDeque::from([vec![from.to_path_buf()]]);
        let mut seen = HashSet::new();
        while let Some(chain) = chains.pop_front() {
            let last = chain.last()?;
            if last == to {
                return Some(chain);
            }
            for next in self.edges.get(last).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(next.clone()) {
                    chains.push_back(chain.iter().chain([next]).cloned().collect());
                }
            }
        }
        None
    }
}

/// Returns the module of a file of a library; `None` for unit tests and for programs.
fn module_of(file: &Path) -> Option<Module> {
    let name = |part: std::path::Component<'_>| part.as_os_str().to_string_lossy().into_owned();
    let mut module: Module = file.components().map(name).collect();
    let last = module.pop()?;
    let stem = last.strip_suffix(".rs")?;
    let is_program = module.is_empty() && stem == "main" || module.first().is_some_and(|m| m == "bin");
    let is_root = module.is_empty() && stem == "lib";
    if stem != "mod" && !is_root {
        module.push(stem.to_string());
    }
    (!is_program && !is_test(&module)).then_some(module)
}

/// Returns whether a module or one of its parents has the name that unit tests have.
pub(crate) fn is_test(module: &[String]) -> bool {
    module.iter().any(|name| name == "tests")
}

/// Records the scopes of a file: its own and those of its inline modules.
fn declare(scopes: &mut Scopes, file: &Path, module: &Module, scan: &Scan) {
    scope(scopes, file, module, &[]);
    for (inside, name) in scan.items.iter().filter(|(inside, _)| !is_test(inside)) {
        scope(scopes, file, module, inside).items.insert(name.clone());
    }
    for mention in scan.mentions.iter().filter(|m| !is_test(&m.inside)) {
        let here = scope(scopes, file, module, &mention.inside);
        match mention.binds.as_deref() {
            Some("*") => here.globs.push(mention.path.clone()),
            Some(name) => here.uses.entry(name.to_string()).or_default().push(mention.path.clone()),
            None => {}
        }
    }
}

fn scope<'a>(scopes: &'a mut Scopes, file: &Path, module: &Module, inside: &[String]) -> &'a mut Scope {
    let path: Module = module.iter().chain(inside).cloned().collect();
    scopes.entry(path).or_insert_with(|| Scope { file: file.to_path_buf(), ..Scope::default() })
}

/// Returns what a path in the module `here` means; nothing if it leads out of the crate.
fn resolve(scopes: &Scopes, here: &[String], path: &[String], pending: &mut Pending) -> Vec<Target> {
    let mut at = here.to_vec();
    let mut rest = path;
    while let Some((first, more)) = rest.split_first() {
        match first.as_str() {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            "self" => {}
            _ => break,
        }
        rest = more;
    }
    let is_rooted = rest.len() < path.len();
    let Some((first, rest)) = rest.split_first() else { return vec![Target::Module(at)] };
    let mut found = lookup(scopes, &at, first, pending);
    if found.is_empty() && is_rooted {
        found = generated(scopes, &at);
    }
    for name in rest {
        let mut next = Vec::new();
        let has_module = found.iter().any(|target| matches!(target, Target::Module(_)));
        for target in found {
            match target {
                Target::Module(module) => {
                    let inner = lookup(scopes, &module, name, pending);
                    next.extend(if inner.is_empty() { generated(scopes, &module) } else { inner });
                }
                // A function may have the name of a module: a longer path means the module.
                Target::Item(_) if has_module => {}
                item @ Target::Item(_) => next.push(item),
            }
        }
        found = next;
    }
    found
}

/// Returns what a name means in a module: a module below it, its own items, and its imports.
fn lookup(scopes: &Scopes, module: &Module, name: &str, pending: &mut Pending) -> Vec<Target> {
    let Some(scope) = scopes.get(module) else { return Vec::new() };
    let below: Module = module.iter().cloned().chain([name.to_string()]).collect();
    let mut found = Vec::new();
    if scopes.contains_key(&below) {
        found.push(Target::Module(below));
    }
    if scope.items.contains(name) {
        found.push(Target::Item(scope.file.clone()));
    }
    let key = (module.clone(), name.to_string());
    if pending.contains(&key) {
        return found;
    }
    pending.push(key);
    for path in scope.uses.get(name).into_iter().flatten() {
        found.extend(resolve(scopes, module, path, pending));
    }
    for glob in &scope.globs {
        for target in resolve(scopes, module, glob, pending) {
            if let Target::Module(other) = target
                && other != *module
            {
                found.extend(lookup(scopes, &other, name, pending));
            }
        }
    }
    pending.pop();
    found
}

/// Returns the file of a module: a name that it has, and that is not in its text, comes from a macro.
fn generated(scopes: &Scopes, module: &Module) -> Vec<Target> {
    scopes.get(module).map(|scope| Target::Item(scope.file.clone())).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(sources: &[(&str, &str)]) -> Graph {
        Graph::of(&sources.iter().map(|(file, code)| (file.into(), (*code).to_string())).collect())
    }

    fn edges(graph: &Graph) -> Vec<String> {
        let edges =
            graph.edges.iter().flat_map(|(from, to)| to.iter().map(move |(to, line)| (from, to, line)));
        edges.map(|(from, to, line)| format!("{}:{line} {}", from.display(), to.display())).collect()
    }

    #[test]
    fn reexports_lead_to_the_defining_file() {
        let found = graph(&[
            ("lib.rs", "mod a; mod b; pub use crate::{a::A, b::B};"),
            ("a.rs", "mod inner; mod other; pub use inner::A; fn f() {}"),
            ("a/inner.rs", "pub struct A;\nfn g() { super::f(); super::missing!(); }"),
            ("a/other.rs", "use super::A;"),
            (
                "b.rs",
                "use crate::A; use crate::a; pub struct B;\nfn g() { a::f(); std::mem::drop(A::new()) }",
            ),
        ]);
        let wanted = [
            "a/inner.rs:2 a.rs",
            "a/other.rs:1 a/inner.rs",
            "a.rs:1 a/inner.rs",
            "b.rs:1 a/inner.rs",
            "b.rs:2 a.rs",
            "lib.rs:1 a/inner.rs",
            "lib.rs:1 b.rs",
        ];
        assert_eq!(edges(&found), wanted);
    }

    #[test]
    fn a_chain_leads_through_imports() {
        let found = graph(&[
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::c::C; pub struct B;"),
            ("c.rs", "use crate::a::A; pub struct C;"),
            ("d.rs", "use crate::a::A;\nmod tests { use crate::e::E; }"),
        ]);
        let chain = found.chain(Path::new("d.rs"), Path::new("c.rs")).unwrap();
        assert_eq!(chain, ["d.rs", "a.rs", "b.rs", "c.rs"].map(Path::new));
        assert_eq!(found.chain(Path::new("a.rs"), Path::new("d.rs")), None);
    }

    #[test]
    fn files_of_two_systems_do_not_import_each_other() {
        let found = graph(&[
            (
                "lib.rs",
                "#[cfg(unix)] mod unix; #[cfg(windows)] mod windows;\n\
                 pub use unix::A; pub use windows::{A, B};",
            ),
            ("unix.rs", "use crate::B; pub struct A;"),
            ("windows.rs", "pub struct A; pub struct B;"),
        ]);
        assert_eq!(edges(&found), ["lib.rs:2 unix.rs", "lib.rs:2 windows.rs"]);
    }

    #[test]
    fn unit_tests_and_programs_have_no_place() {
        let place = |file: &str| module_of(Path::new(file)).map(|module| module.join("::"));
        assert_eq!(place("sys/wait/mod.rs").as_deref(), Some("sys::wait"));
        assert_eq!(place("reader.rs").as_deref(), Some("reader"));
        assert_eq!(place("lib.rs").as_deref(), Some(""));
        assert_eq!(place("main.rs"), None);
        assert_eq!(place("reader/tests/a.rs"), None);
    }
}
