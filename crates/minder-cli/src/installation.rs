//! Where this program comes from: how it was built, the package that it was installed by, and other versions
//! of it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use minder_os::files::is_executable;
use serde_json::{Value, json};

/// How many other programs of this name are named.
const OTHERS_MAX: usize = 8;

/// Returns how the program was built.
pub(crate) fn build() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": COMMIT,
        "features": features(),
        "target": env!("MINDER_TARGET"),
        "libc": LIBC,
    })
}

/// The commit of the sources, where the one who built it, or the package from crates.io, names it.
const COMMIT: Option<&str> = option_env!("MINDER_COMMIT");

/// The C library, and whether it is a part of the program.
const LIBC: &str = env!("MINDER_LIBC");

/// Returns how the program was built, as a part of a line:
/// `commit 01234567, x86_64-unknown-linux-gnu, static glibc`.
pub(crate) fn build_text() -> String {
    let commit = COMMIT.map(|commit| format!("commit {}, ", commit.get(..8).unwrap_or(commit)));
    format!("{}{}, {}", commit.unwrap_or_default(), env!("MINDER_TARGET"), LIBC)
}

fn features() -> Vec<&'static str> {
    let all =
        [("lab", cfg!(feature = "lab")), ("sql", cfg!(feature = "sql")), ("xlsx", cfg!(feature = "xlsx"))];
    all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
}

/// A package that programs are installed by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    /// The command that removes it, or an empty text.
    pub(crate) removal: &'static str,
}

const DEBIAN: Package = Package { name: "Debian package", removal: "apt-get remove minder" };
const RPM: Package = Package { name: "RPM package", removal: "dnf remove minder" };
const CARGO: Package = Package { name: "cargo install", removal: "cargo uninstall minder-cli" };
const BUILD: Package = Package { name: "cargo build", removal: "" };
const NPM: Package = Package { name: "npm package", removal: "npm uninstall minder" };
const PYTHON: Package = Package { name: "Python package", removal: "pip uninstall minder" };
const HOMEBREW: Package = Package { name: "Homebrew", removal: "brew uninstall minder" };
const NIX: Package = Package { name: "Nix", removal: "nix profile remove minder" };

/// Returns the package that a program was installed by, as far as its path and the files of package managers
/// tell. An unpacked archive looks like a copied file.
pub(crate) fn package(program: &Path) -> Option<Package> {
    package_below(Path::new("/"), program)
}

/// The same, with the files of package managers below `root`.
fn package_below(root: &Path, program: &Path) -> Option<Package> {
    let names: Vec<&OsStr> = program.iter().collect();
    let has = |name: &str| names.iter().any(|part| *part == name);
    let dir = program.parent()?;
    if dir.ends_with(".cargo/bin") {
        return Some(CARGO);
    }
    if has("node_modules") {
        return Some(NPM);
    }
    if has("Cellar") {
        return Some(HOMEBREW);
    }
    if program.starts_with("/nix/store") {
        return Some(NIX);
    }
    if is_in_python(dir.parent()?) {
        return Some(PYTHON);
    }
    // The directory in which cargo notes what it built.
    if dir.join(".fingerprint").is_dir() {
        return Some(BUILD);
    }
    if program != Path::new("/usr/bin/minder") {
        return None;
    }
    let is_there = |path: &str| root.join(path).exists();
    if is_there("var/lib/dpkg/info/minder.list") {
        return Some(DEBIAN);
    }
    let databases = ["usr/lib/sysimage/rpm", "var/lib/rpm"];
    databases.into_iter().any(is_there).then_some(RPM)
}

/// Returns whether the Python whose directory this is has the package `minder`.
fn is_in_python(prefix: &Path) -> bool {
    let list = |dir: PathBuf| dir.read_dir().into_iter().flatten().flatten();
    let starts = |name: &OsStr, with: &str| name.to_str().is_some_and(|name| name.starts_with(with));
    let mut sites: Vec<PathBuf> = vec![prefix.join("Lib/site-packages")];
    for lib in list(prefix.join("lib")).filter(|entry| starts(&entry.file_name(), "python")) {
        sites.extend(["site-packages", "dist-packages"].map(|name| lib.path().join(name)));
    }
    sites.into_iter().flat_map(list).any(|entry| {
        let name = entry.file_name();
        starts(&name, "minder-") && Path::new(&name).extension() == Some(OsStr::new("dist-info"))
    })
}

/// Returns the other programs of this name in the directories of `path`, the value of PATH. Symbolic links to
/// this program are left out. None of them is run: they may belong to anyone.
pub(crate) fn others(this: &Path, path: &OsStr) -> Vec<PathBuf> {
    let name = format!("minder{}", std::env::consts::EXE_SUFFIX);
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|metadata| metadata.is_file() && is_executable(&metadata));
    let mut seen = vec![this.canonicalize().unwrap_or_else(|_| this.to_owned())];
    let mut found = Vec::new();
    for program in std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(&name)) {
        if found.len() == OTHERS_MAX {
            break;
        }
        let Ok(real) = program.canonicalize() else { continue };
        if is_program(&real) && !seen.contains(&real) {
            seen.push(real);
            found.push(program);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_is_told_by_the_path_and_files() {
        let root = tempfile::tempdir().expect("create directory");
        let at = |path: &str| package_below(root.path(), Path::new(path));
        for (path, package) in [
            ("/opt/a/.cargo/bin/minder", Some(CARGO)),
            ("/w/node_modules/minder-linux-x64/minder", Some(NPM)),
            ("/opt/homebrew/Cellar/minder/0.1.0/bin/minder", Some(HOMEBREW)),
            ("/nix/store/abc-minder/bin/minder", Some(NIX)),
            ("/opt/a/bin/minder", None),
            ("/usr/bin/minder", None),
        ] {
            if cfg!(unix) || !path.starts_with("/nix") {
                assert_eq!(at(path), package, "{path}");
            }
        }
        let create = |path: &str| std::fs::create_dir_all(root.path().join(path)).expect("create directory");
        create("var/lib/rpm");
        assert_eq!(at("/usr/bin/minder"), Some(RPM));
        create("var/lib/dpkg/info/minder.list");
        assert_eq!(at("/usr/bin/minder"), Some(DEBIAN));
        create("debug/.fingerprint");
        assert_eq!(package(&root.path().join("debug/minder")), Some(BUILD));
        let venv = root.path().join("venv");
        assert_eq!(package(&venv.join("bin/minder")), None);
        create("venv/lib/python3.11/site-packages/minder-0.1.0.dist-info");
        assert_eq!(package(&venv.join("bin/minder")), Some(PYTHON));
    }

    #[test]
    fn build_names_a_target() {
        assert!(build_text().contains(std::env::consts::ARCH), "{}", build_text());
        assert_eq!(build()["version"], env!("CARGO_PKG_VERSION"));
    }
}
