//! Ruby for the gem: its extension, and the sources of the installed Ruby, which contain the tests of
//! fibers and the reference scheduler.

pub(crate) mod gem;
pub(crate) mod check;

use crate::install::{Missing, Program};
use crate::{c, install, run, tree};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The gem in the repository.
const GEM: &str = "bindings/ruby";
/// The reference scheduler, below the sources of Ruby.
pub(crate) const REFERENCE: &str = "test/fiber/scheduler.rb";

/// Returns the directory of everything that is built or fetched for Ruby.
fn directory() -> PathBuf {
    tree::target_dir().join("ruby")
}

/// Installs Ruby and what an extension is built with, if they are missing.
pub(crate) fn ready() -> Result<(), Missing> {
    let headers = "exit File.file?(File.join(RbConfig::CONFIG.fetch('rubyhdrdir'), 'ruby.h'))";
    if !run::succeeds(run::command("ruby").args(["-e", headers])) {
        install::apt(&["ruby", "ruby-dev"])?;
    }
    let programs = [("ruby", "ruby"), ("make", "make"), ("gcc", "gcc")];
    install::programs(&programs.map(|(name, package)| Program { name, package }))
}

/// How the extension is built.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Profile {
    /// For tests: with the archive that the step `build` has built.
    Dev,
    /// To measure and to install.
    Release,
}

/// Builds the extension of the gem. Returns the directory to be named by `-I`, which has the gem's files
/// in Ruby, the extension and the program of a guardian.
pub(crate) fn extension(profile: Profile) -> Result<PathBuf> {
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
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
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
pub(crate) fn sources() -> Result<PathBuf, Missing> {
    let source = directory().join("source");
    if source.join(REFERENCE).is_file() {
        return Ok(source);
    }
    fetch(&source).map_err(|why| format!("the sources of Ruby: {why:#}; cure: a Debian mirror with them"))?;
    Ok(source)
}

/// Fetches the newest source package that the mirror has, and unpacks it.
fn fetch(source: &Path) -> Result<()> {
    let apt = Sources::new(directory().join("apt"))?;
    let version = run::read(run::command("ruby").args(["-e", "print RUBY_VERSION"]))?;
    let package = format!("ruby{}", version.rsplit_once('.').map_or(version.as_str(), |(minor, _)| minor));
    run::run(apt.command("apt-get").args(["-q", "update"]))?;
    let mut versions = versions(&run::read(apt.command("apt-cache").args(["showsrc", &package]))?);
    versions.sort_by_key(|listed| !listed.starts_with(&version));
    for listed in &versions {
        match apt.archive(&format!("{package}={listed}")) {
            Ok(archive) => return unpack(&archive, source),
            Err(why) => eprintln!("xtask: {why:#}"),
        }
    }
    bail!("no version of {package} can be fetched (listed: {})", versions.join(", "))
}

/// Unpacks the two directories of the archive.
fn unpack(archive: &Path, source: &Path) -> Result<()> {
    let unpacked = source.with_extension("unpacked");
    if unpacked.exists() {
        std::fs::remove_dir_all(&unpacked)?;
    }
    std::fs::create_dir_all(&unpacked)?;
    let mut tar = run::command("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(&unpacked).args(["--strip-components=1", "--wildcards"]);
    run::run(tar.args(["--no-wildcards-match-slash", "*/test", "*/tool"]))?;
    if source.exists() {
        std::fs::remove_dir_all(source)?;
    }
    std::fs::rename(unpacked, source)?;
    // It tells which version the directory has.
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    std::fs::write(source.join("ARCHIVE"), format!("{name}\n"))?;
    Ok(())
}

/// Returns the versions that `apt-cache showsrc` lists, each once.
fn versions(listed: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for version in listed.lines().filter_map(|line| line.strip_prefix("Version: ")) {
        if !found.iter().any(|known| known == version) {
            found.push(version.to_string());
        }
    }
    found
}

/// apt with a private list of the mirror's source packages. The settings of the system stay unchanged.
struct Sources {
    home: PathBuf,
    list: PathBuf,
}

impl Sources {
    fn new(home: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(home.join("lists/partial"))?;
        let modern = std::fs::read_to_string("/etc/apt/sources.list.d/debian.sources");
        // apt knows the format by the end of the name.
        let (name, text) = match modern {
            Ok(text) => ("source.sources", of_sources(&text)),
            Err(_) => {
                let text = std::fs::read_to_string("/etc/apt/sources.list").context("no mirror of Debian")?;
                ("source.list", of_list(&text))
            }
        };
        let list = home.join(name);
        std::fs::write(&list, text)?;
        Ok(Self { home, list })
    }

    /// Returns a command of apt that knows only these lists.
    fn command(&self, program: &str) -> Command {
        let lists = self.home.join("lists").display().to_string();
        let options = [
            format!("Dir::Etc::sourcelist={}", self.list.display()),
            "Dir::Etc::sourceparts=-".into(),
            format!("Dir::State::lists={lists}"),
            // The caches of the system describe other lists.
            "Dir::Cache::pkgcache=".into(),
            "Dir::Cache::srcpkgcache=".into(),
        ];
        let mut cmd = run::command(program);
        cmd.args(options.iter().flat_map(|option| ["-o", option]));
        cmd
    }

    /// Fetches the archive of the upstream sources.
    fn archive(&self, package: &str) -> Result<PathBuf> {
        let into = self.home.join("download");
        if into.exists() {
            std::fs::remove_dir_all(&into)?;
        }
        std::fs::create_dir_all(&into)?;
        let mut get = self.command("apt-get");
        get.args(["-q", "source", "--download-only", "--tar-only", package]).current_dir(&into);
        run::run(&mut get)?;
        for entry in std::fs::read_dir(&into)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().contains(".orig.tar.")) {
                return Ok(path);
            }
        }
        bail!("{package} has no upstream archive")
    }
}

/// Returns a list of packages in the format of deb822 as one of source packages.
fn of_sources(text: &str) -> String {
    let line =
        |line: &str| if line.starts_with("Types:") { "Types: deb-src" } else { line }.to_string() + "\n";
    text.lines().map(line).collect()
}

/// Returns the same of a list with a line for each suite.
fn of_list(text: &str) -> String {
    text.lines()
        .filter_map(|line| line.strip_prefix("deb "))
        .map(|rest| format!("deb-src {rest}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_packages_become_lists_of_sources() {
        assert_eq!(of_sources("Types: deb\nURIs: u\n"), "Types: deb-src\nURIs: u\n");
        assert_eq!(of_list("# x\ndeb u s main\ndeb-src u s main\n"), "deb-src u s main\n");
    }

    #[test]
    fn each_listed_version_is_there_once() {
        let listed = "Package: a\nVersion: 2\n\nVersion: 1\nStandards-Version: 4\n\nVersion: 2\n";
        assert_eq!(versions(listed), ["2", "1"]);
    }
}
