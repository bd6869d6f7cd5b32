//! Who may import whom inside a crate. Arrows point down only.
//!
//! Unit tests may import anything; so may `lib.rs` and `main.rs`, which put the parts together.

use super::code::{self, Mention};
use super::{Finding, manifest};
use crate::tree;
use std::collections::HashMap;
use std::path::Path;

/// The layers of the library, lowest first. A module imports what lies lower, and of its own layer
/// what stands further left: plain data; the system; one child or one wait; what is public of one
/// system only; many children.
const MINDER: [Layer; 6] = [
    Layer { modules: &["backlog", "chunk", "event", "command", "random"], crates: Crates::None },
    Layer { modules: &["sys"], crates: Crates::All },
    Layer { modules: &["error"], crates: Crates::None },
    Layer {
        modules: &["poller", "timer_resolution", "child", "spawn", "guard"],
        crates: Crates::NotOfTheSystem,
    },
    Layer { modules: &["os"], crates: Crates::All },
    Layer { modules: &["capabilities", "set", "background", "jobs"], crates: Crates::NotOfTheSystem },
];

/// In the command, flags become a plan, and a plan is what a verb carries out. Pairs: who may not
/// import whom.
const COMMAND: [(&str, &[&str]); 4] = [
    ("exit", &["flags", "plan", "verbs", "report"]),
    ("flags", &["plan", "verbs", "report"]),
    ("plan", &["verbs"]),
    ("report", &["flags", "verbs"]),
];

/// Crates that speak to the operating system.
const SYSTEM: [&str; 4] = ["libc", "rustix", "windows_sys", "io_uring"];

struct Layer {
    modules: &'static [&'static str],
    crates: Crates,
}

/// Which crates beyond `std` a layer may use.
#[derive(PartialEq)]
enum Crates {
    None,
    NotOfTheSystem,
    All,
}

/// Checks one file; `code` is without comments and strings.
pub(crate) fn check(file: &Path, code: &str) -> Vec<Finding> {
    let Some((package, module)) = place(file) else { return Vec::new() };
    let root = tree::root().join("crates").join(&package);
    let names = Names::of(&root);
    let mut found: Vec<Finding> = Vec::new();
    for mention in code::mentions(code) {
        if module.iter().chain(&mention.inside).any(|m| m == "tests") {
            continue;
        }
        let breach = match package.as_str() {
            "minder" => library(&module, &mention, &names),
            "minder-cli" => command(&module, &mention, &names),
            _ => None,
        };
        // The first place is enough: where one goes, all go.
        let fresh = breach.filter(|what| found.iter().all(|f| f.what != *what));
        found.extend(fresh.map(|what| Finding::new(file, mention.line, what)));
    }
    found
}

/// The package below `crates` that a file belongs to, and its module path; nothing for files that
/// may import all.
fn place(file: &Path) -> Option<(String, Vec<String>)> {
    let parts: Vec<String> = file.iter().map(|p| p.to_string_lossy().into_owned()).collect();
    let [top, package, src, rest @ ..] = parts.as_slice() else { return None };
    if top != "crates" || src != "src" || matches!(rest, [one] if one == "lib.rs" || one == "main.rs") {
        return None;
    }
    let mut module: Vec<String> = rest.iter().map(|p| p.trim_end_matches(".rs").to_string()).collect();
    if module.last().is_some_and(|m| m == "mod") {
        module.pop();
    }
    Some((package.clone(), module))
}

/// What a crate's root makes known: names re-exported from modules, and the crates it depends on.
#[derive(Default)]
struct Names {
    exported: HashMap<String, String>,
    crates: Vec<String>,
}

impl Names {
    fn of(package: &Path) -> Self {
        let read = |name: &str| std::fs::read_to_string(package.join(name)).unwrap_or_default();
        let lib = code::without_comments(&read("src/lib.rs"));
        let exported = code::mentions(&lib).into_iter().filter_map(|m| {
            let path: Vec<String> = m.path.into_iter().filter(|p| p != "crate" && p != "self").collect();
            Some((path.last()?.clone(), path.first()?.clone()))
        });
        Self { exported: exported.collect(), crates: manifest::crates(&read("Cargo.toml")) }
    }

    /// The module of the same crate that a path leads to from within `module`, through re-exports
    /// too.
    fn target(&self, module: &[String], mention: &Mention) -> Option<String> {
        let mut from: Vec<&String> = module.iter().chain(&mention.inside).collect();
        let mut path = mention.path.iter().peekable();
        match path.peek()?.as_str() {
            "crate" => {
                path.next();
                from.clear();
            }
            "super" => {
                while path.next_if(|p| *p == "super").is_some() {
                    from.pop();
                }
            }
            _ => return None,
        }
        let name = from.first().copied().or_else(|| path.next())?;
        Some(self.exported.get(name).unwrap_or(name).clone())
    }
}

fn library(module: &[String], mention: &Mention, names: &Names) -> Option<String> {
    let me = module.first()?;
    let Some((row, column)) = position(me) else {
        return Some(format!(
            "module `{me}` is in no layer; cure: give it a place in xtask/src/tidy/layers.rs"
        ));
    };
    let first = mention.path.first()?;
    if names.crates.contains(first) {
        let of_system = SYSTEM.contains(&first.as_str());
        let allowed = match MINDER[row].crates {
            Crates::All => true,
            Crates::NotOfTheSystem => !of_system,
            Crates::None => false,
        };
        return (!allowed).then(|| format!("`{me}` uses `{first}`; cure: ask a function of `sys` to do it"));
    }
    let target = names.target(module, mention)?;
    if target == *me || target.ends_with('!') {
        return None;
    }
    let Some(other) = position(&target) else {
        return Some(format!("`{target}` is in no layer; cure: give it a place in xtask/src/tidy/layers.rs"));
    };
    let down = other.0 < row || (other.0 == row && other.1 < column);
    (!down)
        .then(|| format!("`{me}` imports `{target}`, which is not below it; cure: move the item up or down"))
}

fn position(module: &str) -> Option<(usize, usize)> {
    MINDER.iter().enumerate().find_map(|(row, l)| Some((row, l.modules.iter().position(|m| *m == module)?)))
}

fn command(module: &[String], mention: &Mention, names: &Names) -> Option<String> {
    let me = module.first()?;
    let target = names.target(module, mention)?;
    let banned = COMMAND.iter().find(|(from, _)| from == me).map_or(&[][..], |(_, to)| *to);
    let bad = banned.contains(&target.as_str()) || (target == "verbs" && me != "verbs");
    (bad && target != *me)
        .then(|| format!("`{me}` imports `{target}`; cure: pass in what it needs, as plain data"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(module: &str, text: &str) -> Vec<String> {
        let exported =
            [("Child".to_string(), "child".to_string()), ("Token".to_string(), "event".to_string())];
        let names = Names { exported: exported.into(), crates: vec!["rustix".into(), "memchr".into()] };
        let module: Vec<String> = module.split('/').map(String::from).collect();
        code::mentions(text).iter().filter_map(|m| library(&module, m, &names)).collect()
    }

    #[test]
    fn arrows_point_down() {
        assert!(
            breaches("sys/wait/epoll", "use super::Ready; use crate::event::Token; use rustix::io;")
                .is_empty()
        );
        assert!(breaches("set", "use crate::{Child, Token, wait::Poller}; use memchr::memchr;").is_empty());
        assert_eq!(breaches("sys/wait/epoll", "use super::super::super::child::Child;").len(), 1);
        assert_eq!(breaches("event", "use crate::{Child, Token};").len(), 1);
        assert_eq!(breaches("command", "use memchr::memchr;").len(), 1);
        assert_eq!(breaches("poller", "fn f() { crate::spawn::spawn(); rustix::io::read(); }").len(), 2);
        assert_eq!(breaches("nowhere", "use crate::event::Token;").len(), 1);
    }

    #[test]
    fn a_file_has_a_place() {
        let at = |file: &str| {
            place(Path::new(file)).map(|(package, module)| format!("{package} {}", module.join("/")))
        };
        assert_eq!(at("crates/minder/src/sys/wait/mod.rs").as_deref(), Some("minder sys/wait"));
        assert_eq!(at("crates/minder/src/background.rs").as_deref(), Some("minder background"));
        assert_eq!(at("crates/minder/src/lib.rs"), None);
        assert_eq!(at("tests/it/main.rs"), None);
    }
}
