//! The software bill of materials: every package in the program, with its version and licence.

use super::program::LINUX;
use super::release::{Release, write};
use crate::{install, run};
use anyhow::{Context, Result};
use std::path::PathBuf;

const CYCLONEDX: install::Tool = install::Tool { package: "cargo-cyclonedx", version: "0.5.9" };

/// Writes it as CycloneDX, in JSON. The tool writes a file for each package of the workspace.
pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let tool = install::tool(&CYCLONEDX).map_err(anyhow::Error::msg)?;
    let mut cmd = release.command(tool);
    cmd.args(["cyclonedx", "--format", "json", "--spec-version", "1.5", "--target", LINUX.triple]);
    run::run(cmd.args(["--manifest-path", "crates/minder-cli/Cargo.toml"]))?;
    let written = release.source.join("crates/minder-cli/minder-cli.cdx.json");
    let text = std::fs::read_to_string(&written)
        .with_context(|| format!("the tool did not write {}", written.display()))?;
    // Its references to the packages of the workspace contain the directory, as it is and as a part of a URL.
    let url = text.split_once("path+file://").and_then(|(_, rest)| rest.split_once("/crates/minder-cli"));
    let (url, _) = url.context("the tool did not name the directory")?;
    let text = text.replace(url, "/minder").replace(&*release.source.to_string_lossy(), "/minder");
    let path = release.out.join(format!("minder-{}.cdx.json", release.version));
    write(&path, &text)?;
    Ok(vec![path])
}
