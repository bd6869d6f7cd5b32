//! Checks of a release.

use super::release::Release;
use super::{ARTIFACTS, TRIALS};
use crate::{run, tree};
use anyhow::{Context, Result, bail};
use std::path::Path;

/// Makes the parts once here and once in a clone in another directory, and compares their checksums.
pub(super) fn same_bytes(names: &[&str]) -> Result<()> {
    let clone = tree::target_dir().join("packages/another directory");
    if clone.exists() {
        std::fs::remove_dir_all(&clone).with_context(|| format!("cannot remove {}", clone.display()))?;
    }
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
    if let Some(name) = names.iter().find(|name| TRIALS.iter().all(|(tried, _)| tried != *name)) {
        bail!("`{name}` has no trial; hint: --try without a name runs all");
    }
    let release = Release::prepare()?;
    for (name, trial) in TRIALS.iter().filter(|(name, _)| names.is_empty() || names.contains(name)) {
        let artifact = ARTIFACTS.iter().find(|each| each.name == *name).context("a trial is of a part")?;
        let files = (artifact.make)(&release).with_context(|| format!("cannot make {name}"))?;
        trial(&release, &files).with_context(|| format!("the trial of {name}"))?;
    }
    Ok(())
}
