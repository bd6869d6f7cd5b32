//! The public interface of the library, as text in `crates/minder/api` that a reviewer reads.
//!
//! rustdoc describes the interface as JSON, and `xtask-api` makes lines of it. The JSON is an
//! unstable format: its number may change with each compiler, and so may the way to write an item. A
//! newer compiler is therefore no failure, but a check that is skipped, with the reason.
//!
//! The same JSON has the documentation of the items: each is shown by an example. `xtask-api` says what
//! counts as one.

use crate::{debian, install, run, targets, tree, wine};
use anyhow::{Context, Result, bail};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of the JSON format that the crate `public-api` reads: see `Cargo.toml`.
const FORMAT: u32 = 57;

/// The file of all items, as on Linux.
const LINUX: &str = "crates/minder/api/linux.txt";
/// The file of what differs on Windows.
const WINDOWS: &str = "crates/minder/api/windows.txt";

const UPDATE: &str = "cargo xtask api --bless";
const PACKAGE: &str = "minder";
/// The program that makes lines of the JSON, in `xtask/api`.
const LISTER: &str = "xtask-api";
/// Its option for the items that no example shows.
const WITHOUT_EXAMPLE: &str = "--without-example";
const JSON: [&str; 4] = ["--", "-Zunstable-options", "--output-format", "json"];

/// `cargo xtask api [--bless]`: compares both files with the sources, or writes them.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let action = match args {
        [] => Action::Compare,
        [flag] if flag == "--bless" => Action::Write,
        _ => bail!("unknown option `{}` of api; hint: cargo xtask help", args.join(" ")),
    };
    for check in [linux, windows] {
        if let Err(missing) = check(action)? {
            println!("skipped: {missing}");
        }
    }
    Ok(())
}

/// The action on a file of the list.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Action {
    Compare,
    Write,
}

/// The result of comparing or writing a file: nothing, or the reason why that was not done.
pub(crate) type Outcome = std::result::Result<(), install::Missing>;

/// The file with the JSON, or why there is none.
type Json = std::result::Result<PathBuf, install::Missing>;

/// Handles the file of all items.
pub(crate) fn linux(action: Action) -> Result<Outcome> {
    if cfg!(not(target_os = "linux")) {
        return Ok(Err(format!("{LINUX} lists the items on Linux; hint: run it there")));
    }
    let mut rustdoc = run::cargo();
    // The variable opens unstable options for this crate alone; others are built as always.
    rustdoc.args(["rustdoc", "-p", PACKAGE, "--lib"]).args(JSON).env("RUSTC_BOOTSTRAP", PACKAGE);
    let compiler = compiler("rustc")?;
    let json = match json(&mut rustdoc, &tree::target_dir().join("doc"), LINUX, &compiler)? {
        Ok(json) => json,
        Err(missing) => return Ok(Err(missing)),
    };
    check_examples(&list(&json, &[WITHOUT_EXAMPLE])?)?;
    let items = items(&json)?;
    let title = format!("# The public interface of the crate on Linux, by {compiler}. To update: {UPDATE}");
    settle(action, LINUX, &Content { title, compiler, lines: items })
}

/// Handles the file of what differs on Windows.
pub(crate) fn windows(action: Action) -> Result<Outcome> {
    if let Err(missing) = debian::ready().and_then(|()| install::programs(&[targets::DLLTOOL])) {
        return Ok(Err(format!("{WINDOWS}: {missing}")));
    }
    let mut rustdoc = wine::cargo("rustdoc");
    rustdoc.args(["-p", PACKAGE, "--lib"]).args(JSON);
    let dir = tree::target_dir().join("cross").join(wine::TARGET).join("doc");
    let compiler = compiler(debian::RUSTC)?;
    let items = match json(&mut rustdoc, &dir, WINDOWS, &compiler)? {
        Ok(json) => items(&json)?,
        Err(missing) => return Ok(Err(missing)),
    };
    let linux = Content::read(LINUX)?;
    let title =
        format!("# What differs on Windows from the items in linux.txt, by {compiler}. To update: {UPDATE}");
    settle(action, WINDOWS, &Content { title, compiler, lines: differences(&linux.lines, &items) })
}

/// Makes the JSON in this directory, and the program that reads it. A failure is a reason to skip the
/// file if another compiler made it: the options of rustdoc are as unstable as the format.
fn json(rustdoc: &mut Command, dir: &Path, file: &str, compiler: &str) -> Result<Json> {
    let hint = || {
        let kept = Content::read(file).map(|kept| kept.compiler).unwrap_or_default();
        (kept != compiler).then(|| format!("hint: use {kept}, which made {file}"))
    };
    if let Err(e) = run::run(rustdoc) {
        return hint().map(|hint| Ok(Err(format!("{compiler}: {e:#}; {hint}")))).unwrap_or(Err(e));
    }
    let json = dir.join(PACKAGE).with_extension("json");
    let text = fs::read_to_string(&json).with_context(|| format!("cannot read {}", json.display()))?;
    let format = format_version(&text);
    if format != Some(FORMAT) {
        let found =
            format.map_or_else(|| "an unknown format".to_string(), |number| format!("format {number}"));
        let hint = hint().unwrap_or_else(|| "hint: use the crate `public-api` that reads it".to_string());
        return Ok(Err(format!("{compiler} writes JSON in {found}, and format {FORMAT} is read; {hint}")));
    }
    // With the features of the workspace: the step `test` has built all that it needs.
    run::run(run::cargo().args(["build", "--quiet", "--workspace", "--bin", LISTER]))?;
    Ok(Ok(json))
}

/// Returns the lines that the program makes of the JSON with these options.
fn list(json: &Path, options: &[&str]) -> Result<Vec<String>> {
    let lister = tree::target_dir().join(format!("debug/{LISTER}{}", std::env::consts::EXE_SUFFIX));
    let lines = run::read(run::command(lister).args(options).arg(json))?;
    Ok(lines.lines().map(str::to_string).collect())
}

/// Returns the lines of all items.
fn items(json: &Path) -> Result<Vec<String>> {
    let items = list(json, &[])?;
    if items.is_empty() {
        bail!("no items in {}; hint: run `{LISTER}` with this file", json.display());
    }
    Ok(items)
}

/// Fails if there are items without an example.
fn check_examples(missing: &[String]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    bail!("public items without an example that runs ({}):\n{}", missing.len(), missing.join("\n"));
}

/// Returns the number of the format, which is at the end of the file.
fn format_version(json: &str) -> Option<u32> {
    let (_, rest) = json.rsplit_once("\"format_version\":")?;
    rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the name and the version of a compiler, without its third number.
fn compiler(rustc: &str) -> Result<String> {
    let text = run::read(run::command(rustc).arg("--version"))?;
    let version = text.split_whitespace().nth(1).unwrap_or_default();
    Ok(format!("rustc {}", version.split('.').take(2).collect::<Vec<_>>().join(".")))
}

/// The content of one of the files.
struct Content {
    title: String,
    /// The compiler in the title.
    compiler: String,
    lines: Vec<String>,
}

impl Content {
    fn read(file: &str) -> Result<Self> {
        let text = fs::read_to_string(path(file)).with_context(|| format!("cannot read {file}"))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let (title, rest) = text.split_once('\n').unwrap_or_default();
        let compiler = title.split_once(", by ").and_then(|(_, rest)| rest.split_once(". To update"));
        Self {
            title: title.to_string(),
            compiler: compiler.map(|(compiler, _)| compiler.to_string()).unwrap_or_default(),
            lines: rest.lines().map(str::to_string).collect(),
        }
    }

    fn write(&self, file: &str) -> Result<()> {
        let mut text = format!("{}\n", self.title);
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        let path = path(file);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(path, text).with_context(|| format!("cannot write {file}"))
    }
}

fn path(file: &str) -> PathBuf {
    tree::root().join(file)
}

/// Writes the present content, or compares it with the file.
fn settle(action: Action, file: &str, present: &Content) -> Result<Outcome> {
    if action == Action::Write {
        present.write(file)?;
        println!("wrote {file}: {} lines", present.lines.len());
        return Ok(Ok(()));
    }
    compare(file, &Content::read(file)?, present)
}

fn compare(file: &str, kept: &Content, present: &Content) -> Result<Outcome> {
    if kept.lines == present.lines {
        return Ok(Ok(()));
    }
    if kept.compiler != present.compiler {
        return Ok(Err(format!(
            "{file}: {} shows other lines than {}, which made the file; hint: use that compiler",
            present.compiler, kept.compiler
        )));
    }
    let changes = differences(&kept.lines, &present.lines);
    let what = if changes.is_empty() { "the order of its lines".to_string() } else { changes.join("\n") };
    bail!("the public interface is not that of {file}:\n{what}\nif it shall change: {UPDATE}");
}

/// Returns the lines that are only in `old`, each after `- `, and those that are only in `new`, each
/// after `+ `.
fn differences(old: &[String], new: &[String]) -> Vec<String> {
    let only = |mark: &'static str, these: &[String], others: &[String]| {
        let others: HashSet<&String> = others.iter().collect();
        let only = these.iter().filter(|line| !others.contains(line));
        only.map(|line| format!("{mark} {line}")).collect::<Vec<_>>()
    };
    [only("-", old, new), only("+", new, old)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(compiler: &str, lines: &[&str]) -> Content {
        let title = format!("# The interface, by {compiler}. To update: {UPDATE}");
        Content::parse(&format!("{title}\n{}\n", lines.join("\n")))
    }

    #[test]
    fn a_change_fails_with_its_lines() {
        let kept = content("rustc 1.95", &["pub fn a()", "pub fn b()"]);
        assert!(compare("f", &kept, &content("rustc 1.95", &["pub fn a()", "pub fn b()"])).unwrap().is_ok());
        let error = compare("f", &kept, &content("rustc 1.95", &["pub fn a()", "pub fn c()"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the public interface is not that of f:\n- pub fn b()\n+ pub fn c()\nif it shall change: \
             cargo xtask api --bless"
        );
        let error = compare("f", &kept, &content("rustc 1.95", &["pub fn b()", "pub fn a()"])).unwrap_err();
        assert!(error.to_string().contains("the order of its lines"));
    }

    #[test]
    fn another_compiler_is_named_and_does_not_fail() {
        let kept = content("rustc 1.95", &["pub fn a()"]);
        assert!(compare("f", &kept, &content("rustc 1.99", &["pub fn a()"])).unwrap().is_ok());
        let why = compare("f", &kept, &content("rustc 1.99", &["pub fn b()"])).unwrap().unwrap_err();
        assert_eq!(
            why,
            "f: rustc 1.99 shows other lines than rustc 1.95, which made the file; hint: use that compiler"
        );
    }

    #[test]
    fn an_item_without_an_example_fails_with_its_line() {
        assert!(check_examples(&[]).is_ok());
        let error = check_examples(&["a.rs:1: b has no example; hint: add one".to_string()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "public items without an example that runs (1):\na.rs:1: b has no example; hint: add one"
        );
    }

    #[test]
    fn the_format_of_the_json_is_read() {
        assert_eq!(format_version("{\"root\":1,\"format_version\":57}"), Some(57));
        assert_eq!(format_version("{\"root\":1}"), None);
    }
}
