//! Samples and tests run: as they are, with sanitizers, and under valgrind.

use super::install_tree::GUARDIAN_PLACE;
use super::{LeftOut, compile, directory, expect};
use crate::part::Part;
use crate::{install, run};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The output of each program. A sample prints the same in each language.
const OUTPUTS: [(&str, &str); 10] = [
    ("spawn_and_read", "text\nmessage\nexit code 3\n"),
    ("many_children", "100 children, 0 failed, 500 bytes\n"),
    ("executor", "3 jobs, total 505605\n"),
    ("exceptions", "exceptions: ok\n"),
    ("foreign_loop", "text\nexit code 0\n"),
    ("kill_tree", "it runs\nsignal 15\n"),
    ("completions", "3 completions\nx: int\ny: int\nnorm: double (*)(const struct point *)\n"),
    ("abuse", "abuse: ok\n"),
    ("cells", "cells: ok\n"),
    ("features", "features: ok\n"),
];

/// The longest time of one program, in seconds.
const LIMIT: &str = "300";

const VALGRIND: install::Program = install::Program { name: "valgrind", package: "valgrind" };
const CXX: install::Program = install::Program { name: "g++", package: "g++" };

/// valgrind 3.19 knows neither `clone3` nor pidfds: children are started by `clone`, and their exits
/// are polled.
const VALGRIND_OPTIONS: [&str; 5] = [
    "--quiet",
    "--error-exitcode=9",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
];

/// It starts hundreds of children, whose exits valgrind makes us poll: a quarter of the time of all checks.
const WITHOUT_VALGRIND: &str = "abuse";

/// The options with which programs are compiled.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Plain,
    /// With AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer. Children are started by `clone3`,
    /// as without them.
    Sanitized,
}

/// Compiles and runs all programs against the library in this tree. The quick part is those in C as they
/// are.
pub(super) fn run(tree: &Path, part: Part) -> Result<LeftOut> {
    let mut left_out = LeftOut::new();
    let sources: Vec<PathBuf> = ["samples", "tests"].iter().flat_map(|name| compile::sources(name)).collect();
    let ready = |program| if part.has_rest() { install::programs(&[program]) } else { Ok(()) };
    let has_valgrind = ready(VALGRIND);
    let has_cxx = ready(CXX);
    let mut ran = 0;
    for source in &sources {
        let expected = output(source)?;
        let limited = || {
            let mut cmd = limited();
            cmd.env("MINDER_GUARDIAN", tree.join(GUARDIAN_PLACE));
            cmd
        };
        // The classes of C++ add no call to those of the programs of C.
        if is_c(source) {
            let program = build(source, tree, Variant::Plain)?;
            if part.has_quick() {
                expect(limited().arg(&program), expected)?;
                ran += 1;
            }
            let is_light = source.file_stem().is_none_or(|name| name != WITHOUT_VALGRIND);
            if part.has_rest() && has_valgrind.is_ok() && is_light {
                expect(limited().arg("valgrind").args(VALGRIND_OPTIONS).arg(&program), expected)?;
                ran += 1;
            }
        }
        if part.has_rest() && (is_c(source) || has_cxx.is_ok()) {
            expect(limited().arg(build(source, tree, Variant::Sanitized)?), expected)?;
            ran += 1;
        }
    }
    println!("{ran} runs of programs of C and C++ printed what they should");
    left_out.extend(has_valgrind.err());
    left_out.extend(has_cxx.err());
    Ok(left_out)
}

fn is_c(source: &Path) -> bool {
    source.extension().is_some_and(|extension| extension == "c")
}

fn limited() -> Command {
    let mut cmd = run::command("timeout");
    cmd.arg(LIMIT);
    cmd
}

fn output(source: &Path) -> Result<&'static str> {
    let name = source.file_stem().unwrap_or_default();
    let found = OUTPUTS.iter().find(|(program, _)| name == *program);
    let (_, output) = found.with_context(|| format!("{} has no expected output", source.display()))?;
    Ok(output)
}

/// Builds a program from one source.
fn build(source: &Path, tree: &Path, variant: Variant) -> Result<PathBuf> {
    let is_c = is_c(source);
    let mut name = source.file_stem().unwrap_or_default().to_os_string();
    name.push(if is_c { "-c" } else { "-cpp" });
    let mut cmd =
        if is_c { compile::compiler("gcc", "-std=c11") } else { compile::compiler("g++", "-std=c++17") };
    if variant == Variant::Sanitized {
        name.push("-sanitized");
        cmd.args(["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    }
    let programs = directory("programs");
    std::fs::create_dir_all(&programs)?;
    let program = programs.join(name);
    let lib = tree.join("lib");
    cmd.arg(source).arg("-pthread").arg("-o").arg(&program);
    cmd.arg(format!("-L{}", lib.display())).arg("-lminder").arg(format!("-Wl,-rpath,{}", lib.display()));
    run::read(&mut cmd)?;
    Ok(program)
}
