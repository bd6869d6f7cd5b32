//! Packages for Linux: `.deb` by cargo-deb, `.rpm` by rpmbuild.
//!
//! cargo-generate-rpm is not used: it writes no links, no directories and no text besides the summary.

use super::layout::{self, DEB, RPM};
use super::program::{LINUX, LINUX_ARM, Target};
use super::release::Release;
use crate::{install, run};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

const CARGO_DEB: install::Tool = install::Tool { package: "cargo-deb", version: "3.8.0" };

const LINTIAN: install::Program = install::Program { name: "lintian", package: "lintian" };
const RPMBUILD: install::Program = install::Program { name: "rpmbuild", package: "rpm" };

/// The targets, with the names that the two kinds of packages have for them.
const TARGETS: [(&Target, &str, &str); 2] = [(&LINUX, "amd64", "x86_64"), (&LINUX_ARM, "arm64", "aarch64")];

/// Writes the packages of Debian. lintian must not find an error or a warning.
pub(super) fn deb(release: &Release) -> Result<Vec<PathBuf>> {
    install::programs(&[LINTIAN]).map_err(anyhow::Error::msg)?;
    let mut files = Vec::new();
    for (target, arch, _) in TARGETS {
        let file = release.out.join(format!("minder_{}-1_{arch}.deb", release.version));
        let top = layout::make(release, target, &DEB)?;
        write_deb(release, &top, target, &release.version, &file)?;
        let mut lintian = release.command("lintian");
        lintian.args(["--fail-on", "error,warning", "--allow-root", "--display-info"]);
        run::run(lintian.arg(&file))?;
        files.push(file);
    }
    Ok(files)
}

/// Writes a package of Debian from its tree, with this version.
pub(super) fn write_deb(
    release: &Release,
    top: &Path,
    target: &Target,
    version: &str,
    file: &Path,
) -> Result<()> {
    let tool = install::tool(&CARGO_DEB).map_err(anyhow::Error::msg)?;
    let mut cargo = release.command(tool);
    // The program is built and stripped.
    cargo.args(["--no-build", "--no-strip", "--target", target.triple]);
    cargo.arg("--manifest-path").arg(top.join("Cargo.toml"));
    run::run(cargo.arg(format!("--deb-version={version}-1")).arg("--output").arg(file))
}

/// Writes the packages for systems with RPM. They require nothing.
pub(super) fn rpm(release: &Release) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (target, _, arch) in TARGETS {
        let file = release.out.join(format!("minder-{}-1.{arch}.rpm", release.version));
        let top = layout::make(release, target, &RPM)?;
        write_rpm(release, &top, arch, &release.version, &release.out)?;
        run::run(run::command("rpm").args(["--checksig", "--nosignature"]).arg(&file))?;
        let requires =
            run::read(run::command("rpm").args(["--query", "--requires", "--package"]).arg(&file))?;
        let other = requires.lines().find(|line| !line.starts_with("rpmlib("));
        ensure!(other.is_none(), "{} requires {}", file.display(), other.unwrap_or_default());
        files.push(file);
    }
    Ok(files)
}

/// The settings of rpmbuild without which two builds differ, or which need a database.
const MACROS: [&str; 7] = [
    "_buildhost localhost",
    "_binary_payload w19.zstdio",
    "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
    "build_mtime_policy clamp_to_source_date_epoch",
    "clamp_mtime_to_source_date_epoch 1",
    "use_source_date_epoch_as_buildtime 1",
    "source_date_epoch_from_changelog 0",
];

/// Writes a package of RPM from its tree, with this version, to a directory. rpmbuild and its scripts split
/// paths at blanks, so they get those below a link.
pub(super) fn write_rpm(release: &Release, top: &Path, arch: &str, version: &str, dir: &Path) -> Result<()> {
    install::programs(&[RPMBUILD]).map_err(anyhow::Error::msg)?;
    let home = release.build.parent().context("the directory is in another one")?;
    let temporary = PathBuf::from(run::read(run::command("mktemp").arg("-d"))?.trim());
    let link = temporary.join("packages");
    run::run(run::command("ln").arg("-s").args([home, &link]))?;
    let below = |path: &Path| path.strip_prefix(home).map(|rest| link.join(rest));
    let top = below(top)?;
    let dir = below(dir)?;
    let work = top.with_file_name("rpmbuild");
    let mut rpmbuild = release.command(RPMBUILD.name);
    rpmbuild.args(["-bb", "--quiet", "--target", &format!("{arch}-linux")]);
    for (name, path) in
        [("_topdir", &work), ("_dbpath", &work.join("database")), ("tree", &top), ("_rpmdir", &dir)]
    {
        rpmbuild.arg("--define").arg(format!("{name} {}", path.display()));
    }
    rpmbuild.args(MACROS.iter().flat_map(|text| ["--define", text]));
    rpmbuild.arg("--define").arg(format!("minder_version {version}"));
    let built = run::run(rpmbuild.arg(top.join("minder.spec")));
    std::fs::remove_dir_all(temporary)?;
    built
}
