//! Archives of the program, and of the sources.

use super::program::{LINUX, LINUX_ARM, Target, WINDOWS};
use super::release::{self, Release};
use super::stage;
use crate::{install, run};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

const ZIP: [install::Program; 1] = [install::Program { name: "zip", package: "zip" }];

/// Writes the sources of the commit.
pub(super) fn source(release: &Release) -> Result<Vec<PathBuf>> {
    let name = name(&release.version, None);
    tar_gz(release, &release.source, &name, &name).map(|file| vec![file])
}

pub(super) fn linux(release: &Release) -> Result<Vec<PathBuf>> {
    tarball(release, &LINUX)
}

pub(super) fn linux_arm(release: &Release) -> Result<Vec<PathBuf>> {
    tarball(release, &LINUX_ARM)
}

/// Returns the name of the archive for a target, or of the sources, and of the directory in it.
/// `cargo binstall` makes it from the manifest of the command.
pub(super) fn name(version: &str, target: Option<&Target>) -> String {
    let target = target.map(|target| format!("-{}", target.triple)).unwrap_or_default();
    format!("minder-{version}{target}")
}

/// Writes the files of a package, and the debugging information as an archive that can be unpacked over it.
fn tarball(release: &Release, target: &Target) -> Result<Vec<PathBuf>> {
    let stage = stage::make(release, target)?;
    let name = name(&release.version, Some(target));
    let package = tar_gz(release, &stage.dir, &name, &name)?;
    let debug = stage.dir.with_file_name("debug");
    std::fs::create_dir_all(&debug)?;
    stage::copy(&stage.debug, &debug.join("minder.debug"))?;
    let debug = tar_gz(release, &debug, &name, &format!("{name}-debug"))?;
    Ok(vec![package, debug])
}

/// Writes a directory as a compressed archive.
pub(super) fn tar_gz(release: &Release, dir: &Path, top: &str, name: &str) -> Result<PathBuf> {
    let path = tar(release, dir, top, name)?;
    run::run(release.command("gzip").args(["--best", "--no-name", "--force"]).arg(&path))?;
    Ok(path.with_extension("tar.gz"))
}

/// Writes a directory as an archive: sorted, owned by root, at the time of the release. `top` is the name
/// of the directory in it.
pub(super) fn tar(release: &Release, dir: &Path, top: &str, name: &str) -> Result<PathBuf> {
    let path = release.out.join(format!("{name}.tar"));
    let mut tar = release.command("tar");
    tar.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg("--mode=u+rw,go+r-w,a+X").arg(format!("--mtime=@{}", release.epoch));
    tar.arg(format!("--transform=flags=r;s,^\\.,{top},"));
    run::run(tar.arg("--file").arg(&path).arg("-C").arg(dir).arg("."))?;
    Ok(path)
}

/// Writes the archive for Windows, without what is for Unix.
pub(super) fn windows(release: &Release) -> Result<Vec<PathBuf>> {
    install::programs(&ZIP).map_err(anyhow::Error::msg)?;
    let stage = stage::make(release, &WINDOWS)?;
    let name = name(&release.version, Some(&WINDOWS));
    let top = stage.dir.with_file_name(&name);
    release::remove(&top)?;
    std::fs::rename(&stage.dir, &top).with_context(|| format!("cannot rename {}", stage.dir.display()))?;
    let dir = top.parent().context("a directory is in another one")?;
    let mut names: Vec<String> =
        run::read(run::command("find").args([&name, "-type", "f"]).current_dir(dir))?
            .lines()
            .map(str::to_owned)
            .collect();
    names.sort();
    let mut touch = release.command("touch");
    touch.current_dir(dir).arg("-d").arg(format!("@{}", release.epoch)).args(&names);
    run::run(&mut touch)?;
    let path = release.out.join(format!("{name}.zip"));
    // Without owners and other times, in this order.
    let mut zip = release.command("zip");
    zip.current_dir(dir).args(["-X", "-D", "-9", "-q"]).arg(&path).args(&names);
    run::run(&mut zip)?;
    Ok(vec![path])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the value of a key in a section of a manifest.
    fn value<'a>(manifest: &'a str, section: &str, key: &str) -> Option<&'a str> {
        let (_, rest) = manifest.split_once(&format!("\n[{section}]\n"))?;
        let lines = rest.lines().take_while(|line| !line.starts_with('['));
        let mut values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        values.next().map(|value| value.trim_matches('"'))
    }

    #[test]
    fn binstall_finds_the_archive_and_the_program_of_each_system() {
        const SECTION: &str = "package.metadata.binstall";
        let manifest = std::fs::read_to_string(crate::tree::root().join("crates/minder-cli/Cargo.toml"))
            .expect("read the manifest");
        let found = |host: &str, key| {
            let special = format!("{SECTION}.overrides.{host}");
            let value = value(&manifest, &special, key).or_else(|| value(&manifest, SECTION, key));
            let value = value.unwrap_or_else(|| panic!("no {key} for {host}"));
            value.replace("{ version }", "1.2").replace("{ target }", host).replace("{ bin }", "minder")
        };
        for (host, target, suffix) in [
            (LINUX.triple, &LINUX, "tar.gz"),
            (LINUX_ARM.triple, &LINUX_ARM, "tar.gz"),
            (WINDOWS.triple, &WINDOWS, "zip"),
            ("x86_64-unknown-linux-musl", &LINUX, "tar.gz"),
            ("aarch64-unknown-linux-musl", &LINUX_ARM, "tar.gz"),
            ("x86_64-pc-windows-msvc", &WINDOWS, "zip"),
        ] {
            let name = name("1.2", Some(target));
            let url = format!("{{ repo }}/releases/download/v1.2/{name}.{suffix}");
            assert_eq!(found(host, "pkg-url"), url, "{host}");
            assert_eq!(found(host, "pkg-fmt"), if suffix == "zip" { "zip" } else { "tgz" }, "{host}");
            let ending = target.program.strip_prefix("minder").expect("the name of the program");
            let path = found(host, "bin-dir").replace("{ binary-ext }", ending);
            assert_eq!(path, format!("{name}/{}", target.program), "{host}");
        }
    }
}
