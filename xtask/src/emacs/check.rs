//! The tests of the package, as a step of `cargo xtask test`.

use super::{PACKAGE, Profile, bounded, emacs, lisp_files, package, ready, staged};
use crate::install::Missing;
use crate::part::Part;
use crate::{install, run, tree};
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// The checks that were left out, and the closing lines of the test programs.
pub(crate) type Checked = (Vec<Missing>, Vec<String>);

/// The longest time that the tests may take, in seconds. They take a tenth of it on a quiet
/// machine.
const SECONDS: &str = "240";

/// The files of the quick part: light and native processes.
const QUICK: [&str; 2] = ["minder-native-test.el", "minder-process-test.el"];

/// Compiles the Lisp files without a warning, and runs the tests. The rest includes their documentation, and
/// an installation.
pub(crate) fn check(part: Part) -> Result<Checked> {
    if cfg!(not(target_os = "linux")) {
        return Ok((vec!["the package is tested on Linux; hint: run it there".into()], Vec::new()));
    }
    if let Err(missing) = ready() {
        return Ok((vec![missing], Vec::new()));
    }
    let mut left_out = Vec::new();
    let library = staged(Profile::Dev, "dev")?;
    let directory = tree::root().join(PACKAGE).join("test");
    compile(&library)?;
    if part.has_rest() {
        check_documentation(&library)?;
        match install::apt(&["elpa-package-lint"]) {
            Ok(()) => check_package(&library)?,
            Err(missing) => left_out.push(missing),
        }
        // A test with a language server is skipped without them.
        left_out.extend(install::apt(&["clangd", "elpa-eglot"]).err());
    }
    // Tests of both parts start it. The step `test` does not build it.
    run::run(run::cargo().args(["build", "--quiet", "--workspace", "--lib", "--bin", "minder"]))?;
    let mut command = emacs(&library);
    let mut tests = lisp_files(&directory)?;
    // The others are helpers.
    tests.retain(|file| file.as_os_str().to_string_lossy().ends_with("-test.el"));
    let tests = part.of(tests, &QUICK)?;
    command.arg("-L").arg(directory);
    command.args(tests.iter().flat_map(|test| ["-l".as_ref(), test.as_os_str()]));
    command.args(["-f", "ert-run-tests-batch-and-exit"]);
    let mut bounded = bounded(&command, &[SECONDS]);
    bounded.env("MINDER_PROGRAM", tree::target_dir().join("debug/minder"));
    let output = run::run_captured(&mut bounded, &tree::target_dir().join("emacs.log"))?;
    if part.has_rest() {
        package::try_install(&package::build(Profile::Dev)?)?;
    }
    Ok((left_out, closing(&output)))
}

/// Returns the line about all tests, without the time.
fn closing(output: &str) -> Vec<String> {
    let lines = output.lines().filter(|line| line.starts_with("Ran "));
    lines.map(|line| line.split(" (").next().unwrap_or(line).to_string()).collect()
}

/// Compiles the Lisp files. A warning is an error.
fn compile(library: &Path) -> Result<()> {
    let mut command = emacs(library);
    command.args(["--eval", "(setq byte-compile-error-on-warn t)", "-f", "batch-byte-compile"]);
    run::run(command.args(lisp_files(library)?))
}

/// Checks the documentation strings.
fn check_documentation(library: &Path) -> Result<()> {
    let mut command = emacs(library);
    command.args(["-l", "checkdoc"]);
    for file in lisp_files(library)? {
        command.arg("--eval").arg(format!("(checkdoc-file {:?})", file.display().to_string()));
    }
    let (_, output) = run::read_both(&mut command)?;
    ensure!(!output.contains("Warning"), "checkdoc finds:\n{output}");
    Ok(())
}

/// Checks the heads of the files and the names of the functions, as MELPA does.
fn check_package(library: &Path) -> Result<()> {
    // The version in Debian 12 is older than Emacs 28.
    const TOO_OLD: &str = "uninstallable in all released Emacs versions";
    let mut lint = run::command("emacs");
    lint.args(["--batch", "--no-init-file", "--eval", "(progn (require 'package) (package-activate-all))"]);
    lint.args(["-l", "package-lint", "--eval", "(setq package-lint-main-file \"minder.el\")"]);
    lint.args(["-f", "package-lint-batch-and-exit"]).args(lisp_files(library)?);
    // It fails for a warning, too.
    let output = lint.current_dir(library).output().context("cannot run Emacs")?;
    let output = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    ensure!(output.contains("Entering directory"), "package-lint did not run:\n{output}");
    let found: Vec<&str> =
        output.lines().filter(|line| line.contains(": ") && !line.contains(TOO_OLD)).collect();
    ensure!(found.is_empty(), "package-lint finds:\n{}", found.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_line_has_no_time() {
        let output =
            "   passed  1/2  a (0.1 sec)\n\nRan 2 tests, 2 results as expected, 0 unexpected (2026, 1 sec)\n";
        assert_eq!(closing(output), ["Ran 2 tests, 2 results as expected, 0 unexpected"]);
    }
}
