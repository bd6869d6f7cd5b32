//! The package for `M-x package-install-file`: a tar archive with the module of this system.

use super::{PACKAGE, Profile, copy, directory, emacs, staged};
use crate::{run, tree};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Other files of the package.
const DOCUMENTS: [&str; 2] = ["README.md", "LICENSE-GPL"];

/// Builds the archive. Returns its path.
pub(super) fn build(profile: Profile) -> Result<PathBuf> {
    let name = format!("minder-{}", version()?);
    let staged = staged(profile, &format!("package/{name}"))?;
    complete(&staged)?;
    let archive = directory(&format!("{name}.tar"));
    let mut tar = run::command("tar");
    tar.arg("-cf").arg(&archive).args(["--owner=0", "--group=0", "--sort=name"]);
    run::run(tar.arg("-C").arg(directory("package")).arg(&name))?;
    Ok(archive)
}

/// Returns the version in the head of the main file.
pub(crate) fn version() -> Result<String> {
    header(&main_file()?, "Version").map(str::to_owned)
}

fn main_file() -> Result<String> {
    Ok(std::fs::read_to_string(tree::root().join(PACKAGE).join("minder.el"))?)
}

/// Adds the files to a staged directory that make it a package.
pub(crate) fn complete(staged: &Path) -> Result<()> {
    for document in DOCUMENTS {
        copy(&tree::root().join(PACKAGE).join(document), &staged.join(document))?;
    }
    std::fs::write(staged.join("minder-pkg.el"), definition(&main_file()?)?)?;
    Ok(())
}

/// Returns the file that tells `package.el` what the package is, from the head of the main file.
fn definition(main: &str) -> Result<String> {
    let first = main.lines().next().unwrap_or_default();
    let summary = first.split_once(" --- ").and_then(|(_, rest)| rest.split_once("  -*-"));
    let (summary, _) = summary.context("the first line of minder.el has no summary")?;
    let requires = header(main, "Package-Requires")?;
    let version = header(main, "Version")?;
    Ok(format!("(define-package \"minder\" {version:?} {summary:?} '{requires})\n"))
}

/// Returns the value of a line `;; NAME: VALUE`.
fn header<'a>(text: &'a str, name: &str) -> Result<&'a str> {
    let prefix = format!(";; {name}: ");
    let value = text.lines().find_map(|line| line.strip_prefix(prefix.as_str()));
    value.with_context(|| format!("minder.el has no line `{prefix}`"))
}

/// Installs the archive for a new user, and starts a child there.
pub(crate) fn try_install(archive: &Path) -> Result<()> {
    const START: &str = "(let* ((text \"\")
             (process (minder-make-process
                       :name \"echo\" :light t :command '(\"echo\" \"installed\")
                       :filter (lambda (_ part) (setq text (concat text part))))))
        (while (minder-process-live-p process) (minder-accept-output process 10))
        (princ text))";
    let home = directory("home");
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    std::fs::create_dir_all(&home)?;
    let init = format!("(setq package-user-dir {:?})", home.join("elpa").display().to_string());
    let install = format!("(package-install-file {:?})", archive.display().to_string());
    let nowhere = home.join("nowhere");
    let mut first = emacs(&nowhere);
    first.args(["--eval", &init, "-l", "package", "--eval", &install]).env("HOME", &home);
    run::read_both(&mut first)?;
    let mut second = emacs(&nowhere);
    second.args(["--eval", &init, "-f", "package-initialize", "-l", "minder", "--eval", START]);
    let printed = run::read(second.env("HOME", &home))?;
    ensure!(printed.trim() == "installed", "the installed package printed {printed:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: &str = ";;; minder.el --- Some text  -*- lexical-binding: t; -*-\n;; Version: 1.2\n\
                        ;; Package-Requires: ((emacs \"28.1\"))\n";

    #[test]
    fn definition_is_made_of_the_head() {
        let expected = "(define-package \"minder\" \"1.2\" \"Some text\" '((emacs \"28.1\")))\n";
        assert_eq!(definition(MAIN).unwrap(), expected);
        assert!(definition("").is_err());
    }
}
