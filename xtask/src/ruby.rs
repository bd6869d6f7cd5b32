//! Ruby for the gem: its extension, and the sources of the installed Ruby, which contain the tests of
//! fibers and the reference scheduler.

pub(crate) mod gem;
pub(crate) mod check;

use crate::install::{Missing, Program};
use crate::{c, install, run, source_package, tree};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The gem in the repository.
pub(crate) const GEM: &str = "bindings/ruby";
/// The reference scheduler, below the sources of Ruby.
pub const REFERENCE: &str = "test/fiber/scheduler.rb";

/// Returns the directory of everything that is built or fetched for Ruby.
fn directory() -> PathBuf {
    tree::target_dir().join("ruby")
}

/// Installs Ruby and what an extension is built with, if they are missing.
pub fn ready() -> Result<(), Missing> {
    let headers = "exit File.file?(File.join(RbConfig::CONFIG.fetch('rubyhdrdir'), 'ruby.h'))";
    if !run::succeeds(run::command("ruby").args(["-e", headers])) {
        install::apt(&["ruby", "ruby-dev"])?;
    }
    let programs = [("ruby", "ruby"), ("make", "make"), ("gcc", "gcc")];
    install::programs(&programs.map(|(name, package)| Program { name, package }))
}

/// The profile with which the extension is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Profile {
    /// For tests: with the archive of the profile of the tests.
    Dev,
    /// To measure and to install.
    Release,
}

/// Builds the extension of the gem. Returns the directory to be named by `-I`, which has the gem's files
/// in Ruby, the extension and the program of a guardian.
pub fn extension(profile: Profile) -> Result<PathBuf> {
    let name = if profile == Profile::Dev { "dev" } else { "release" };
    let build = directory().join(name);
    std::fs::create_dir_all(&build)?;
    let mut configure = run::command("ruby");
    configure.arg(tree::root().join(GEM).join("ext/minder/extconf.rb")).current_dir(&build);
    if profile == Profile::Dev {
        c::build_for_tests()?;
        configure.env("MINDER_BUILT_DIR", tree::target_dir().join("debug"));
    }
    run::run(configure.env("MINDER_CARGO_TARGET_DIR", directory().join("cargo")))?;
    // The Makefile does not know the archive's time.
    run::run(run::command("make").args(["--quiet", "clean"]).current_dir(&build))?;
    run::run(run::command("make").arg("--quiet").current_dir(&build))?;
    let staged = directory().join("lib").join(name);
    if staged.exists() {
        // A file that the gem no longer has must not be found.
        std::fs::remove_dir_all(&staged)?;
    }
    copy_tree(&tree::root().join(GEM).join("lib"), &staged)?;
    let suffix = run::read(run::command("ruby").args(["-e", "print RbConfig::CONFIG.fetch('DLEXT')"]))?;
    for name in [format!("minder_ext.{suffix}"), "minder-guardian".into()] {
        let from = build.join(&name);
        std::fs::copy(&from, staged.join("minder").join(&name))
            .with_context(|| format!("{} was not built", from.display()))?;
    }
    Ok(staged)
}

/// Copies a directory with everything in it.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Returns the directory with `test` and `tool` of the sources of the installed Ruby. Fetches them once,
/// as a source package of Debian.
pub fn sources() -> Result<PathBuf, Missing> {
    let source = directory().join("source");
    if source.join(REFERENCE).is_file() {
        return Ok(source);
    }
    fetch(&source)
        .map_err(|why| format!("the sources of Ruby: {why:#}; hint: use a Debian mirror with them"))?;
    Ok(source)
}

fn fetch(source: &Path) -> Result<()> {
    let version = run::read(run::command("ruby").args(["-e", "print RUBY_VERSION"]))?;
    let package = format!("ruby{}", version.rsplit_once('.').map_or(version.as_str(), |(minor, _)| minor));
    source_package::fetch(&package, &version, &["*/test", "*/tool"], source)
}
