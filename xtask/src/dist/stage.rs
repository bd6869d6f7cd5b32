//! What a package contains beside the program: manual pages, completions, documents, licences.

use super::licenses;
use super::program::{self, LINUX, Target};
use super::release::{self, Release};
use crate::run;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The shells, and the file of each in the directory of completions.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "bash/minder"), ("zsh", "zsh/_minder"), ("fish", "fish/minder.fish")];

/// The documents that every package contains.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// The guides below `docs` that packages contain: what users of the command read.
const GUIDES: [&str; 8] = [
    "guide.md",
    "output.md",
    "record.md",
    "configuration.md",
    "from-parallel.md",
    "from-xargs.md",
    "gotchas.md",
    "clock.md",
];

/// A directory with the files of a package.
pub(super) struct Stage {
    pub(super) dir: PathBuf,
    /// The debugging information, which is not in it.
    pub(super) debug: PathBuf,
}

/// Builds the program for a target, and lays out the files of its package:
///
/// ```text
/// minder  README.md  CHANGELOG.md  LICENSE-*  LICENSES-THIRD-PARTY.txt
/// doc/guide.md …   man/man1/minder.1 …   completions/bash/minder …
/// ```
pub(super) fn make(release: &Release, target: &Target) -> Result<Stage> {
    let program = program::build(release, target)?;
    let dir = release.build.join(target.triple).join("stage");
    release::empty(&dir)?;
    std::fs::create_dir(dir.join("doc"))?;
    copy(&program.path, &dir.join(target.program))?;
    for name in DOCUMENTS {
        copy(&release.source.join(name), &dir.join(name))?;
    }
    licenses::write_texts(release, target.triple, &dir.join("LICENSES-THIRD-PARTY.txt"))?;
    for name in GUIDES {
        copy(&release.source.join("docs").join(name), &dir.join("doc").join(name))?;
    }
    if target.program == LINUX.program {
        // The program of this machine prints them for the others, too.
        let printer =
            if target.triple == LINUX.triple { program.path } else { program::build(release, &LINUX)?.path };
        generate(release, &printer, &dir)?;
    }
    Ok(Stage { dir, debug: program.debug })
}

/// Writes the manual pages and the completions.
fn generate(release: &Release, program: &Path, dir: &Path) -> Result<()> {
    let pages = dir.join("man/man1");
    std::fs::create_dir_all(&pages)?;
    let mut print = run::command(program);
    print.args(["man", "--all"]).arg(&pages).env("SOURCE_DATE_EPOCH", &release.epoch);
    run::run(&mut print)?;
    for (shell, file) in COMPLETIONS {
        let path = dir.join("completions").join(file);
        std::fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        run::run_to_file(run::command(program).args(["completions", shell]), &path)?;
    }
    Ok(())
}

pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}
