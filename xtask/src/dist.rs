//! `cargo xtask dist`: the files of a release, from the sources of the last commit.
//!
//! Two runs give the same bytes, whatever the directories and the time: the time of every file is that of the
//! commit, names are sorted, and the compiler leaves the directories out.

mod release;
mod program;
mod licenses;
mod stage;
mod archive;
mod wheel;
mod sbom;
mod fill;
mod layout;
mod linux_packages;
mod recipes;
mod trial;
mod npm;
mod library;
mod gem;
mod emacs;
mod checks;

use std::path::PathBuf;

use anyhow::{Result, bail};

use self::release::Release;

/// What makes one or several files of a release, and returns them.
type Make = fn(&Release) -> Result<Vec<PathBuf>>;

/// Installs the files of a part in an empty directory, and uses them.
type Trial = fn(&Release, &[PathBuf]) -> Result<()>;

/// One part of a release.
struct Artifact {
    name: &'static str,
    what: &'static str,
    make: Make,
    /// What `--try` does.
    trial: Option<Trial>,
}

impl Artifact {
    const fn new(name: &'static str, what: &'static str, make: Make) -> Self {
        Self { name, what, make, trial: None }
    }

    const fn tried(self, trial: Trial) -> Self {
        Self { trial: Some(trial), ..self }
    }
}

const ARTIFACTS: [Artifact; 16] = [
    Artifact::new("source", "the sources, as .tar.gz", archive::source),
    Artifact::new("linux", "Linux on x86-64, static: .tar.gz", archive::linux),
    Artifact::new("linux-arm", "Linux on aarch64, static: .tar.gz", archive::linux_arm)
        .tried(trial::linux_arm::check),
    Artifact::new("windows", "Windows on x86-64: .zip", archive::windows),
    Artifact::new("deb", "packages of Debian for amd64 and arm64", linux_packages::deb)
        .tried(trial::debian::check),
    Artifact::new("rpm", "packages of RPM for x86_64 and aarch64", linux_packages::rpm)
        .tried(trial::rpm::check),
    Artifact::new("recipes", "files for Homebrew, AUR, winget, Nix and containers", recipes::make)
        .tried(trial::recipes::check),
    Artifact::new("wheel", "Python on the same systems: .whl", wheel::make),
    Artifact::new("npm", "npm: the script, and Linux on x86-64: .tgz", npm::make).tried(npm::check),
    Artifact::new("npm-arm", "npm: Linux on aarch64: .tgz", npm::linux_arm),
    Artifact::new("npm-windows", "npm: Windows on x86-64: .tgz", npm::windows),
    Artifact::new("c", "the library for C and C++ on Linux, x86-64: .tar.gz", library::make)
        .tried(library::check),
    Artifact::new("gem", "gems: the sources; with the library for Linux, x86-64", gem::make)
        .tried(gem::check),
    Artifact::new("emacs", "the package for Emacs on Linux, x86-64: .tar", emacs::make).tried(emacs::check),
    Artifact::new("sbom", "the parts of the program, as CycloneDX in JSON", sbom::make),
    Artifact::new("notes", "the section of CHANGELOG.md", release::notes),
];

const USAGE: &str = "usage: cargo xtask dist [--list | --twice | --try] [NAME]...";

/// `cargo xtask dist [--list | --twice | --try] [NAME]...`
pub(crate) fn main(args: &[String]) -> Result<()> {
    let flags: Vec<&str> = args.iter().map(String::as_str).filter(|arg| arg.starts_with('-')).collect();
    let names: Vec<&str> = args.iter().map(String::as_str).filter(|arg| !arg.starts_with('-')).collect();
    if let Some(unknown) = names.iter().find(|name| ARTIFACTS.iter().all(|each| each.name != **name)) {
        bail!("unknown part of a release `{unknown}`; hint: cargo xtask dist --list");
    }
    match flags[..] {
        ["--list"] => {
            ARTIFACTS.iter().for_each(|each| println!("{:<12} {}", each.name, each.what));
            Ok(())
        }
        [] => report(&make(&Release::prepare()?, &names)?),
        ["--try"] => checks::trials(&names),
        ["--twice"] => checks::same_bytes(&names),
        _ => bail!("{USAGE}"),
    }
}

/// What a run of `dist` did.
struct Made {
    files: Vec<PathBuf>,
    failures: Vec<String>,
}

/// Makes the parts with these names, or all of them, and `SHA256SUMS`. After a failure, the others are made.
fn make(release: &Release, names: &[&str]) -> Result<Made> {
    let mut made = Made { files: Vec::new(), failures: Vec::new() };
    for artifact in ARTIFACTS.iter().filter(|each| names.is_empty() || names.contains(&each.name)) {
        eprintln!("dist: {}: {}", artifact.name, artifact.what);
        match (artifact.make)(release) {
            Ok(files) => made.files.extend(files),
            Err(why) => made.failures.push(format!("{}: {why:#}", artifact.name)),
        }
    }
    made.files.push(release.write_sums(&made.files)?);
    Ok(made)
}

/// Prints the files with their sizes, and what is not among them.
fn report(made: &Made) -> Result<()> {
    for file in &made.files {
        println!("{:>12} bytes  {}", std::fs::metadata(file)?.len(), file.display());
    }
    if !made.failures.is_empty() {
        bail!("not made:\n{}", made.failures.join("\n"));
    }
    Ok(())
}
