//! Lists the public interface of a crate, one item a line, from the JSON that rustdoc writes; with
//! `--without-example` the items that no example shows.
//!
//! A package apart from xtask, which every chore builds first, and which is quick to build.
//!
//! The list has everything that a caller can depend on, and leaves out what follows from it:
//!
//! - the methods of an implemented trait, whose signatures the trait states;
//! - blanket implementations;
//! - auto traits. A line shows that a type lacks one, or has it on a condition.
#![expect(clippy::print_stdout, reason = "it prints the list")]

mod examples;

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const USAGE: &str = "usage: xtask-api [--without-example] FILE.json";

fn main() -> Result<()> {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let file = args.pop().map(PathBuf::from).context(USAGE)?;
    match args.as_slice() {
        [] => list(&file),
        [flag] if flag == "--without-example" => list_without_example(&file),
        _ => anyhow::bail!(USAGE),
    }
}

/// Prints the items that no example shows.
fn list_without_example(file: &Path) -> Result<()> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let api = serde_json::from_slice(&text).with_context(|| format!("cannot parse {}", file.display()))?;
    for line in examples::missing(&api) {
        println!("{line}");
    }
    Ok(())
}

/// Prints all items.
fn list(file: &Path) -> Result<()> {
    let api = public_api::Builder::from_rustdoc_json(file)
        .omit_blanket_impls(true)
        .build()
        .with_context(|| format!("cannot read {}", file.display()))?;
    let items: Vec<String> = api.items().map(ToString::to_string).collect();
    for line in shown(&items) {
        println!("{line}");
    }
    Ok(())
}

/// The traits that the compiler implements by itself, and that a caller can name on stable
/// Rust.
const AUTO_TRAITS: [&str; 5] = [
    "core::marker::Send",
    "core::marker::Sync",
    "core::marker::Unpin",
    "core::panic::unwind_safe::UnwindSafe",
    "core::panic::unwind_safe::RefUnwindSafe",
];

/// Traits that no caller on stable Rust can name.
const UNSTABLE_TRAITS: [&str; 3] =
    ["core::marker::Freeze", "core::marker::StructuralPartialEq", "core::marker::UnsafeUnpin"];

/// Returns the lines that are listed, in their order. The items of an implementation follow its line.
fn shown(items: &[String]) -> Vec<&str> {
    let mut lines = Vec::new();
    // The type in the line of a trait's implementation: `impl TRAIT for TYPE`.
    let mut implementor = None;
    for item in items {
        if let Some(implementation) = item.strip_prefix("impl") {
            implementor = implementation.split_once(" for ").map(|(_, rest)| {
                let target = rest.split_once(" where ").map_or(rest, |(target, _)| target);
                format!(" fn {target}::")
            });
            let is_of = |traits: &[&str]| {
                traits.iter().any(|name| implementation.contains(&format!(" {name} for ")))
                    || traits.iter().any(|name| implementation.contains(&format!(" !{name} for ")))
            };
            let says_more = implementation.contains(" !") || implementation.contains(" where ");
            if is_of(&UNSTABLE_TRAITS) || is_of(&AUTO_TRAITS) && !says_more {
                continue;
            }
        } else if implementor.as_ref().is_some_and(|method| item.contains(method)) {
            continue;
        }
        lines.push(item.as_str());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_other_lines_is_left_out() {
        let kept = [
            "pub struct a::B",
            "pub a::B::field: u32",
            "impl a::B",
            "pub fn a::B::method(&self)",
            "impl core::clone::Clone for a::B",
            "impl core::iter::Iterator for a::B",
            "pub type a::B::Item = u8",
            "impl !core::marker::Sync for a::B",
            "impl<T> core::marker::Send for a::C<T> where T: core::marker::Send",
            "pub fn a::function()",
        ];
        let left_out = [
            "pub fn a::B::clone(&self) -> a::B",
            "impl core::marker::Send for a::B",
            "impl !core::marker::Freeze for a::B",
            "impl core::marker::StructuralPartialEq for a::B",
        ];
        let mut all: Vec<String> = kept.iter().map(ToString::to_string).collect();
        assert_eq!(shown(&all), kept);
        all.splice(5..5, left_out.iter().map(ToString::to_string));
        assert_eq!(shown(&all), kept);
    }
}
