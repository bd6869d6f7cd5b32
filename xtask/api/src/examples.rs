//! Finds the items of the public interface that no example shows.
//!
//! - A type, a trait and a function are shown by an example in their own documentation, or by an example
//!   of another item that names them: such names are unique in the crate.
//! - A method and an associated constant are shown by an example in their own documentation, or by a use
//!   of their name in an example of their type or of another method of it. An example of another type
//!   does not count: many types have a method `new` or `kill`.
//!
//! Exempt are:
//!
//! - an alias of a type, and the items of a trait of the standard library: what they stand for is shown;
//! - fields and variants: their type is shown;
//! - a method whose documentation begins with [`REFERENCE`]: the method that it names is shown.
//!
//! Only code counts that a test runs and that a reader sees. Code with `no_run` or `ignore`, text in other
//! languages, comments and lines that rustdoc hides do not.

use rustdoc_types::{Crate, Id, Item, ItemEnum};
use std::collections::HashSet;

/// The beginning of the documentation of a method that only passes its arguments on to another.
const REFERENCE: &str = "See [`";

/// Returns one line for each item without an example: its file, its line, its name and the hint.
pub(crate) fn missing(api: &Crate) -> Vec<String> {
    let examples: Vec<String> = api.index.values().filter(|item| item.crate_id == 0).map(code).collect();
    let named = examples.iter().flat_map(|code| code.split(|c: char| !is_part_of_name(c))).collect();
    let mut inspection = Inspection { api, named, missing: Vec::new() };
    inspection.inspect_module(api.root, "");
    inspection.missing.sort();
    inspection.missing
}

/// The state while the items of a crate are inspected.
struct Inspection<'a> {
    api: &'a Crate,
    /// All names in all examples.
    named: HashSet<&'a str>,
    missing: Vec<String>,
}

impl Inspection<'_> {
    /// Inspects the items of a module, whose names begin with `path`.
    fn inspect_module(&mut self, module: Id, path: &str) {
        let api = self.api;
        let Some(Item { name: Some(name), inner: ItemEnum::Module(module), .. }) = api.index.get(&module)
        else {
            return;
        };
        let path = format!("{path}{name}::");
        for id in &module.items {
            let Some(item) = api.index.get(id) else { continue };
            match &item.inner {
                ItemEnum::Module(_) => self.inspect_module(*id, &path),
                ItemEnum::Use(reexport) => {
                    if let Some(target) = reexport.id.and_then(|id| api.index.get(&id)) {
                        self.inspect_item(target, &path);
                    }
                }
                _ => self.inspect_item(item, &path),
            }
        }
    }

    /// Inspects a type, a trait or a function, and what belongs to it.
    fn inspect_item(&mut self, item: &Item, path: &str) {
        let api = self.api;
        let members = match &item.inner {
            ItemEnum::Struct(it) => inherent(api, &it.impls),
            ItemEnum::Enum(it) => inherent(api, &it.impls),
            ItemEnum::Union(it) => inherent(api, &it.impls),
            ItemEnum::Trait(it) => it.items.iter().filter_map(|id| api.index.get(id)).collect(),
            ItemEnum::Function(_) => Vec::new(),
            _ => return,
        };
        let name = item.name.as_deref().unwrap_or_default();
        let own = code(item);
        if own.is_empty() && !self.named.contains(name) {
            let hint = "add an example in its documentation, or one of another item that names it";
            self.missing.push(line(item, &format!("{path}{name}"), hint));
        }
        let all: String = std::iter::once(own).chain(members.iter().map(|member| code(member))).collect();
        for member in members {
            let member_name = member.name.as_deref().unwrap_or_default();
            if is_subject(member) && code(member).is_empty() && !uses(&all, member_name) {
                let hint =
                    format!("add an example in its documentation or in that of `{name}` which uses it");
                self.missing.push(line(member, &format!("{path}{name}::{member_name}"), &hint));
            }
        }
    }
}

/// Returns whether an example has to show this item of a type or a trait.
fn is_subject(member: &Item) -> bool {
    let is_reference = member.docs.as_deref().is_some_and(|docs| docs.starts_with(REFERENCE));
    matches!(member.inner, ItemEnum::Function(_) | ItemEnum::AssocConst { .. }) && !is_reference
}

/// Returns the items of the implementations that belong to no trait.
fn inherent<'a>(api: &'a Crate, impls: &[Id]) -> Vec<&'a Item> {
    let blocks = impls.iter().filter_map(|id| match &api.index.get(id)?.inner {
        ItemEnum::Impl(block) if block.trait_.is_none() => Some(&block.items),
        _ => None,
    });
    blocks.flatten().filter_map(|id| api.index.get(id)).collect()
}

fn line(item: &Item, name: &str, hint: &str) -> String {
    let place = item.span.as_ref().map(|span| format!("{}:{}: ", span.filename.display(), span.begin.0));
    format!("{}{name} has no example; hint: {hint}", place.unwrap_or_default())
}

/// Returns the code of the examples of an item that a test runs and a reader sees.
fn code(item: &Item) -> String {
    let docs = item.docs.as_deref().unwrap_or_default();
    let mut code = String::new();
    let mut fence: Option<bool> = None;
    for line in docs.lines() {
        let line = line.trim();
        match (fence, line.strip_prefix("```")) {
            (None, Some(tags)) => fence = Some(runs(tags)),
            (Some(_), Some(_)) => fence = None,
            (Some(true), None) if line != "#" && !line.starts_with("# ") => {
                // What a comment names is not shown. A string with `//` is cut off, too.
                code.push_str(line.split("//").next().unwrap_or_default());
                code.push('\n');
            }
            (_, None) => {}
        }
    }
    code
}

/// Returns whether code with these tags is run by a test.
fn runs(tags: &str) -> bool {
    tags.split([',', ' ']).all(|tag| matches!(tag, "" | "rust" | "should_panic" | "standalone_crate"))
}

/// Returns whether the code calls, names or implements a method or a constant: `.name`, `::name` or
/// `fn name`.
fn uses(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = &code[..at];
        let after = &code[at + name.len()..];
        [".", "::", "fn "].iter().any(|mark| before.ends_with(mark)) && !after.starts_with(is_part_of_name)
    })
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn item(docs: &str) -> Item {
        let module = json!({ "module": { "is_crate": false, "items": [], "is_stripped": false } });
        serde_json::from_value(value(1, "name", docs, &module)).unwrap()
    }

    fn value(id: u32, name: &str, docs: &str, inner: &serde_json::Value) -> serde_json::Value {
        let span = json!({ "filename": "a.rs", "begin": [id, 1], "end": [id, 2] });
        json!({
            "id": id, "crate_id": 0, "name": name, "span": span, "visibility": "public", "docs": docs,
            "links": {}, "attrs": [], "deprecation": null, "inner": inner,
        })
    }

    /// Returns a crate `lib` with a type `Set`, its method `kill` and its method `pass`, which have
    /// these documentations.
    fn library([set, kill, pass]: [&str; 3]) -> Crate {
        let generics = json!({ "params": [], "where_predicates": [] });
        let module = json!({ "module": { "is_crate": true, "items": [1], "is_stripped": false } });
        let unit = json!({ "struct": { "kind": "unit", "generics": generics, "impls": [2] } });
        let target = json!({ "resolved_path": { "path": "Set", "id": 1, "args": null } });
        let block = json!({ "impl": {
            "is_unsafe": false, "generics": generics, "provided_trait_methods": [], "trait": null,
            "for": target, "items": [3, 4], "is_negative": false, "is_synthetic": false,
            "blanket_impl": null,
        } });
        let method = json!({ "function": {
            "sig": { "inputs": [], "output": null, "is_c_variadic": false }, "generics": generics,
            "header": { "is_const": false, "is_unsafe": false, "is_async": false, "abi": "Rust" },
            "has_body": true,
        } });
        let index = json!({
            "0": value(0, "lib", "", &module), "1": value(1, "Set", set, &unit),
            "2": value(2, "", "", &block), "3": value(3, "kill", kill, &method),
            "4": value(4, "pass", pass, &method),
        });
        serde_json::from_value(json!({
            "root": 0, "crate_version": null, "includes_private": false, "index": index, "paths": {},
            "external_crates": {}, "target": { "triple": "", "target_features": [] },
            "format_version": rustdoc_types::FORMAT_VERSION,
        }))
        .unwrap()
    }

    #[test]
    fn items_without_an_example_are_named_with_file_and_hint() {
        let names = |docs| {
            let lines = missing(&library(docs)).into_iter();
            lines.map(|line| line.split(" has no example").next().unwrap().to_string()).collect::<Vec<_>>()
        };
        let kill = "Kills.\n```\nSet.kill();\n```";
        assert_eq!(
            names(["", "", ""]),
            ["a.rs:1: lib::Set", "a.rs:3: lib::Set::kill", "a.rs:4: lib::Set::pass"]
        );
        assert_eq!(names(["", kill, ""]), ["a.rs:4: lib::Set::pass"], "its code names the type");
        assert_eq!(names(["", kill, "See [`Set::kill`]."]), Vec::<String>::new());
        assert_eq!(names(["```\nSet.kill(); Set.pass();\n```", "", ""]), Vec::<String>::new());
        assert_eq!(names(["```\nSet; // Set.kill()\n```", "", "```\n```"]).len(), 2);
        assert!(missing(&library(["", kill, ""]))[0].contains("; hint: add an example"));
    }

    #[test]
    fn only_code_counts_that_runs_and_is_shown() {
        assert_eq!(
            code(&item("Text.\n\n```\n# hidden();\n#\n#[must_use]\nshown();\n```\nmore")),
            "#[must_use]\nshown();\n"
        );
        assert_eq!(
            code(&item("```rust,should_panic\na();\n```\n```text\nb\n```\n```\nc();\n```")),
            "a();\nc();\n"
        );
        assert_eq!(code(&item("```no_run\na();\n```")), "");
        assert_eq!(code(&item("```ignore\na();\n```")), "");
        assert_eq!(code(&item("No code: `a()`.")), "");
    }

    #[test]
    fn a_use_is_a_call_a_path_or_an_implementation() {
        assert!(uses("set.kill(child)", "kill"));
        assert!(uses("Set::kill(&mut set)", "kill"));
        assert!(uses("let how = Termination::IMMEDIATE;", "IMMEDIATE"));
        assert!(uses("fn kill(&mut self) {}", "kill"));
        assert!(!uses("set.kill_all()", "kill"));
        assert!(!uses("let kill = 1; skill.x()", "kill"));
    }
}
