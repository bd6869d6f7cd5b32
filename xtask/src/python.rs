//! The package for Python: the tests of its module, and of the wheel with the program.

use crate::install::{Missing, Program};
use crate::part::Part;
use crate::{install, run, tree};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package in the repository.
const PACKAGE: &str = "bindings/python";

/// The files of the quick part: all but large outputs and the wheel.
const QUICK: [&str; 4] = ["test_end.py", "test_readme.py", "test_rows.py", "test_run.py"];

/// The checks that were left out, and the closing lines of the test programs.
type Checked = (Vec<Missing>, Vec<String>);

/// `cargo xtask python`: all tests.
pub(crate) fn main(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("python takes no arguments; hint: cargo xtask help");
    }
    let (left_out, _) = check(Part::All)?;
    for missing in left_out {
        println!("skipped: {missing}");
    }
    Ok(())
}

/// Builds the program, and runs the tests. The rest includes the types, and an installation of the wheel.
pub(crate) fn check(part: Part) -> Result<Checked> {
    if cfg!(not(target_os = "linux")) {
        return Ok((vec!["the package is tested on Linux; hint: run it there".into()], Vec::new()));
    }
    if let Err(missing) = ready(part) {
        return Ok((vec![missing], Vec::new()));
    }
    let mut left_out = Vec::new();
    // With the features of the workspace, as the step `test`.
    run::run(run::cargo().args(["build", "--quiet", "--workspace", "--lib", "--bin", "minder"]))?;
    if part.has_rest() {
        match install::programs(&[Program { name: "mypy", package: "mypy" }]) {
            Ok(()) => check_types()?,
            Err(missing) => left_out.push(missing),
        }
    }
    let mut tests = python();
    tests.args(["-W", "error::ResourceWarning", "-m", "unittest"]);
    tests
        .args(part.of(files(&directory().join("test"))?, &QUICK)?.iter().filter_map(|file| file.file_stem()));
    // unittest writes to standard error.
    let mut both = run::with_default_signals("sh");
    both.args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(tests.get_program()).args(tests.get_args());
    both.envs(tests.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = run::run_captured(&mut both, &tree::target_dir().join("python.log"))?;
    Ok((left_out, closing(&output)))
}

/// Installs Python, and for the rest what makes a virtual environment, if they are missing.
fn ready(part: Part) -> Result<(), Missing> {
    install::programs(&[Program { name: "python3", package: "python3" }])?;
    if part.has_rest() && !run::succeeds(python().args(["-c", "import ensurepip, venv"])) {
        install::apt(&["python3-venv"])?;
    }
    Ok(())
}

fn directory() -> PathBuf {
    tree::root().join(PACKAGE)
}

/// Returns a Python that finds the package and its tests, and leaves no files next to them.
fn python() -> Command {
    let mut cmd = run::command("python3");
    let package = directory();
    cmd.env("PYTHONPATH", format!("{0}:{0}/test", package.display()));
    cmd.env("PYTHONDONTWRITEBYTECODE", "1").env("MINDER_PROGRAM", tree::target_dir().join("debug/minder"));
    cmd
}

/// Checks that each name has a type. The tests import the package as any program does.
fn check_types() -> Result<()> {
    for files in [["minder", "build_wheel.py"].as_slice(), &["test"]] {
        let mut mypy = run::command("mypy");
        mypy.args(["--strict", "--no-error-summary", "--cache-dir=/dev/null"]).args(files);
        run::run(mypy.env("MYPYPATH", ".:test").current_dir(directory()))?;
    }
    Ok(())
}

/// Returns the test files, in the order of their names.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("test_") && name.ends_with(".py") {
            found.push(directory.join(name));
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the line with the number of tests, without the time.
fn closing(output: &str) -> Vec<String> {
    let lines = output.lines().filter(|line| line.starts_with("Ran "));
    lines.map(|line| line.split(" in ").next().unwrap_or(line).to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_line_has_no_time() {
        assert_eq!(closing("...\n----\nRan 45 tests in 6.5s\n\nOK\n"), ["Ran 45 tests"]);
    }

    #[test]
    fn quick_part_names_files_that_exist() {
        let quick = Part::Quick.of(files(&directory().join("test")).unwrap(), &QUICK).unwrap();
        assert_eq!(quick.len(), QUICK.len());
    }
}
