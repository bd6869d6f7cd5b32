//! Samples and tests compile without a warning, by each compiler and in each version of the languages.

use super::{LeftOut, header};
use crate::{install, run, tree};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The warnings that fail a compilation.
pub(super) const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"];

/// One way to compile.
struct Compiler {
    program: install::Program,
    /// The extension of the files in its language.
    extension: &'static str,
    versions: &'static [&'static str],
    /// `true` if it compiles for Windows, which lacks poll(2), fork(2) and threads of POSIX.
    for_windows: bool,
}

const COMPILERS: [Compiler; 5] = [
    Compiler::here("gcc", "gcc", "c", &["-std=c99", "-std=c11", "-std=c17"]),
    Compiler::here("clang", "clang", "c", &["-std=c99", "-std=c11", "-std=c17"]),
    Compiler::here("g++", "g++", "cpp", &["-std=c++17", "-std=c++20"]),
    Compiler::here("clang++", "clang", "cpp", &["-std=c++17", "-std=c++20"]),
    Compiler {
        program: install::Program { name: "x86_64-w64-mingw32-gcc", package: "gcc-mingw-w64-x86-64-win32" },
        extension: "c",
        versions: &["-std=c99", "-std=c11", "-std=c17"],
        for_windows: true,
    },
];

/// Calls that do not compile, one in each case.
const REJECTED: &str = "tests/rejected/executor.cpp";

/// Headers that Windows lacks.
const POSIX_HEADERS: [&str; 3] = ["<poll.h>", "<unistd.h>", "<pthread.h>"];

impl Compiler {
    const fn here(
        name: &'static str,
        package: &'static str,
        extension: &'static str,
        versions: &'static [&'static str],
    ) -> Self {
        let program = install::Program { name, package };
        Self { program, extension, versions, for_windows: false }
    }

    fn accepts(&self, file: &Path) -> bool {
        if file.extension().is_none_or(|extension| extension != self.extension) {
            return false;
        }
        let text = std::fs::read_to_string(file).unwrap_or_default();
        !(self.for_windows && POSIX_HEADERS.iter().any(|header| text.contains(header)))
    }
}

/// Returns the files below a directory of the package that end with `.c` or `.cpp`.
pub(super) fn sources(directory: &str) -> Vec<PathBuf> {
    let path = tree::root().join(header::PACKAGE).join(directory);
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "c" || extension == "cpp"))
        .collect();
    files.sort();
    files
}

/// Returns a compiler with the options that name the directory of the headers.
pub(super) fn compiler(name: &str, version: &str) -> Command {
    let mut cmd = run::command(name);
    cmd.arg(version).args(WARNINGS).arg(format!("-I{}/include", header::PACKAGE));
    cmd
}

/// Compiles everything by each compiler, without code. Returns the compilers that are missing.
pub(super) fn everything() -> Result<LeftOut> {
    let mut left_out = LeftOut::new();
    let files: Vec<PathBuf> = ["samples", "tests"].iter().flat_map(|directory| sources(directory)).collect();
    for one in &COMPILERS {
        if let Err(missing) = install::programs(&[one.program]) {
            left_out.push(missing);
            continue;
        }
        let files: Vec<&PathBuf> = files.iter().filter(|file| one.accepts(file)).collect();
        for version in one.versions {
            run::run(compiler(one.program.name, version).arg("-fsyntax-only").args(&files))?;
        }
        if one.extension == "cpp" {
            rejected(one)?;
        }
    }
    Ok(left_out)
}

/// A wrong call is one error with the text that its case names, instead of errors inside the header.
fn rejected(compiler: &Compiler) -> Result<()> {
    let path = Path::new(header::PACKAGE).join(REJECTED);
    let text = std::fs::read_to_string(tree::root().join(&path))
        .with_context(|| format!("cannot read {}", path.display()))?;
    let cases = text.lines().filter_map(|line| line.split_once("CASE == ")?.1.split_once(" // "));
    let mut count = 0;
    for (case, expected) in cases {
        let mut cmd = self::compiler(compiler.program.name, compiler.versions[0]);
        let output = cmd.arg(format!("-DCASE={case}")).arg("-fsyntax-only").arg(&path).output()?;
        let messages = String::from_utf8_lossy(&output.stderr);
        let errors: Vec<&str> = messages.lines().filter(|line| line.contains(" error: ")).collect();
        ensure!(
            !output.status.success() && errors.len() == 1 && errors[0].contains(expected),
            "{} case {case}: expected one error with `{expected}`, got\n{messages}",
            path.display()
        );
        count += 1;
    }
    ensure!(count > 0, "{} has no case", path.display());
    Ok(())
}
