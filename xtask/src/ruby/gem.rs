//! `cargo xtask gem`: the gem with the Rust sources that it is built from, and a trial installation.

use super::{GEM, directory};
use crate::{run, tree};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages of the workspace that the gem contains, lowest first.
const PACKAGES: [&str; 5] =
    ["crates/minder-os", "crates/minder-cells", "crates/minder", "crates/minder-guardian", "bindings/c"];
/// The files and directories of a package that its build needs.
const PARTS: [&str; 7] = ["Cargo.toml", "build.rs", "src", "docs", "include", "header", "README.md"];

/// `cargo xtask gem [--no-trial]`
pub(crate) fn main(args: &[String]) -> Result<()> {
    let is_tried = match args {
        [] => true,
        [arg] if arg == "--no-trial" => false,
        _ => bail!("gem takes --no-trial alone; hint: cargo xtask help"),
    };
    if let Err(missing) = super::ready() {
        bail!("{missing}");
    }
    let gem = build()?;
    if is_tried {
        try_gem(&gem)?;
    }
    println!("{}", gem.display());
    Ok(())
}

/// Builds the gem from a copy of its directory. Returns its path.
pub(super) fn build() -> Result<PathBuf> {
    let staged = staged()?;
    let gem = directory().join(format!("minder-{}.gem", version()?));
    pack(&mut run::command("gem"), &staged, &gem)?;
    Ok(gem)
}

/// Copies the directory of the gem, and the Rust sources into it. Returns the copy.
pub(crate) fn staged() -> Result<PathBuf> {
    let staged = directory().join("gem");
    if staged.exists() {
        std::fs::remove_dir_all(&staged)?;
    }
    super::copy_tree(&tree::root().join(GEM), &staged)?;
    stage_sources(&staged.join("rust"))?;
    Ok(staged)
}

/// Writes the gem of a directory by a command `gem`.
pub(crate) fn pack(command: &mut Command, staged: &Path, gem: &Path) -> Result<()> {
    run::run(command.args(["build", "--quiet", "minder.gemspec", "--output"]).arg(gem).current_dir(staged))
}

/// Copies the packages, and makes a workspace of them with its own lock file.
fn stage_sources(rust: &Path) -> Result<()> {
    for package in PACKAGES {
        for part in PARTS {
            let from = tree::root().join(package).join(part);
            let to = rust.join(package).join(part);
            if from.is_dir() {
                super::copy_tree(&from, &to)?;
            } else if from.is_file() {
                std::fs::create_dir_all(rust.join(package))?;
                std::fs::copy(&from, &to)?;
            }
        }
        strip_manifest(&rust.join(package).join("Cargo.toml"))?;
    }
    let root = tree::root();
    let workspace = std::fs::read_to_string(root.join("Cargo.toml"))?;
    std::fs::write(rust.join("Cargo.toml"), workspace_of(&workspace)?)?;
    std::fs::copy(root.join("Cargo.lock"), rust.join("Cargo.lock"))?;
    // Removes what the other packages of the repository need; the rest keeps its versions.
    let mut metadata = run::cargo();
    metadata.args(["metadata", "--format-version=1", "--quiet", "--manifest-path"]);
    run::read(metadata.arg(rust.join("Cargo.toml")))?;
    Ok(())
}

/// Leaves out the sections for tests, examples and benchmarks, whose files are not there.
fn strip_manifest(path: &Path) -> Result<()> {
    let text = std::fs::read_to_string(path)?;
    std::fs::write(
        path,
        without_sections(&text, |section| {
            section.contains("dev-dependencies")
                || ["[[example]]", "[[test]]", "[[bench]]"].contains(&section)
        }),
    )?;
    Ok(())
}

/// Returns the manifest of the workspace for these packages alone.
fn workspace_of(text: &str) -> Result<String> {
    let members: Vec<String> = PACKAGES.iter().map(|package| format!("\"{package}\"")).collect();
    let mut found = false;
    let mut lines = Vec::new();
    for line in without_sections(text, |section| section.starts_with("[profile.release.package.")).lines() {
        if line.starts_with("members = [") {
            found = true;
            lines.push(format!("members = [{}]", members.join(", ")));
        } else if !names_other_package(line) {
            lines.push(line.to_string());
        }
    }
    ensure!(found, "the manifest of the workspace has no line of its members");
    Ok(lines.join("\n") + "\n")
}

/// Returns whether a line names a package of the repository that the gem does not contain.
fn names_other_package(line: &str) -> bool {
    line.split_once("{ path = \"")
        .is_some_and(|(_, rest)| rest.split_once('"').is_some_and(|(path, _)| !PACKAGES.contains(&path)))
}

/// Returns a manifest without the sections for which `is_left_out` returns true.
fn without_sections(text: &str, is_left_out: impl Fn(&str) -> bool) -> String {
    let mut is_kept = true;
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with('[') {
            let section = line.split(" #").next().unwrap_or(line).trim();
            is_kept = !is_left_out(section);
        }
        if is_kept {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn version() -> Result<String> {
    let path = tree::root().join(GEM).join("lib/minder/version.rb");
    let text = std::fs::read_to_string(&path)?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("VERSION = "));
    Ok(line.with_context(|| format!("{} has no VERSION", path.display()))?.trim_matches('"').to_string())
}

/// Installs the gem into an empty directory, and uses it there, where nothing knows the repository.
pub(super) fn try_gem(gem: &Path) -> Result<()> {
    try_gem_with(gem, None)
}

/// Does the same, with this program instead of cargo.
pub(crate) fn try_gem_with(gem: &Path, cargo: Option<&str>) -> Result<()> {
    const PROGRAM: &str = "require 'minder'; \
        Minder::Scheduler.run { Fiber.schedule { print Minder.run('echo', 'installed').stdout } }";
    let home = std::env::temp_dir().join(format!("minder-gem-{}", std::process::id()));
    std::fs::create_dir_all(&home)?;
    let result = (|| {
        let mut install = run::command("gem");
        install.args(["install", "--local", "--no-document", "--quiet", "--install-dir"]).arg(&home).arg(gem);
        // cargo keeps what it has built between two trials.
        install.env("MINDER_CARGO_TARGET_DIR", directory().join("cargo")).current_dir(&home);
        install.envs(cargo.map(|program| ("CARGO", program)));
        run::run(&mut install)?;
        let mut program = run::command("ruby");
        program.args(["-e", PROGRAM]).current_dir(&home);
        program.env("GEM_HOME", &home).env("GEM_PATH", &home).env_remove("RUBYLIB");
        let printed = run::read(&mut program)?;
        ensure!(printed.trim() == "installed", "the installed gem printed {printed:?}");
        Ok(())
    })();
    std::fs::remove_dir_all(&home)?;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_has_the_packages_of_the_gem_alone() {
        let text = "[workspace]\nmembers = [\"a\", \"b\"]\n[workspace.dependencies]\n\
                    minder-cli = { path = \"crates/minder-cli\", version = \"1\" }\n\
                    minder = { path = \"crates/minder\", version = \"1\" } # why\nlibc = \"0.2\"\n\
                    [profile.release.package.x]\nopt-level = 1\n[profile.dist]\ninherits = \"release\"\n";
        let found = workspace_of(text).expect("a workspace");
        assert!(found.contains("members = [\"crates/minder-os\", \"crates/minder-cells\""), "{found}");
        assert!(found.contains("minder = { path") && found.contains("libc") && found.contains("inherits"));
        assert!(!found.contains("minder-cli") && !found.contains("opt-level"), "{found}");
        assert!(workspace_of("[workspace]\n").is_err());
    }

    #[test]
    fn manifest_loses_tests_and_examples() {
        let text = "[package]\nname = \"x\"\n[dev-dependencies]\ntokio = \"1\"\n\
                    [target.'cfg(unix)'.dev-dependencies]\nsmol = \"2\"\n[[example]] # why\nname = \"e\"\n\
                    [dependencies]\nlibc = \"0.2\"\n";
        let stripped = without_sections(text, |section| {
            section.contains("dev-dependencies") || section == "[[example]]"
        });
        assert_eq!(stripped, "[package]\nname = \"x\"\n[dependencies]\nlibc = \"0.2\"\n");
    }
}
