//! Checks of a release.

use super::ARTIFACTS;
use super::release::{self, Release};
use crate::{run, tree};
use anyhow::{Context, Result, bail};
use std::path::Path;

/// Makes the parts once here and once in a clone in another directory, and compares their checksums.
pub(super) fn same_bytes(names: &[&str]) -> Result<()> {
    let clone = tree::target_dir().join("packages/another directory");
    release::remove(&clone)?;
    let first = super::make(&Release::prepare()?, names)?;
    super::report(&first)?;
    run::run(run::command("git").args(["clone", "--quiet", "--no-hardlinks", "."]).arg(&clone))?;
    let mut again = run::cargo();
    again.args(["run", "--quiet", "--package", "xtask", "--", "dist"]).args(names).current_dir(&clone);
    // As another user would have it: other directories, another time zone.
    run::run(again.env_remove("CARGO_TARGET_DIR").env("TZ", "Asia/Tokyo").env("LC_ALL", "C"))?;
    let sums = |root: &Path| -> Result<String> {
        let path = root.join("packages/files/SHA256SUMS");
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let here = sums(&tree::target_dir())?;
    let there = sums(&clone.join("target"))?;
    let differing: Vec<&str> =
        here.lines().filter(|line| !there.lines().any(|other| other == *line)).collect();
    if !differing.is_empty() || here.lines().count() != there.lines().count() {
        bail!("these files differ in another directory:\n{}", differing.join("\n"));
    }
    println!("{} files are the same in another directory", here.lines().count());
    Ok(())
}

/// Makes the parts that have a trial, or those of them with these names, and tries each.
pub(super) fn trials(names: &[&str]) -> Result<()> {
    let trials = || ARTIFACTS.iter().filter_map(|each| Some((each, each.trial?)));
    if let Some(name) = names.iter().find(|name| trials().all(|(tried, _)| tried.name != **name)) {
        bail!("`{name}` has no trial; hint: --try without a name runs all");
    }
    let release = Release::prepare()?;
    for (artifact, trial) in trials().filter(|(each, _)| names.is_empty() || names.contains(&each.name)) {
        let name = artifact.name;
        let files = (artifact.make)(&release).with_context(|| format!("cannot make {name}"))?;
        trial(&release, &files).with_context(|| format!("the trial of {name}"))?;
    }
    Ok(())
}
