//! `cargo xtask dist-c`: installs the library for programs of C and C++, as `make install` does.
//!
//! It installs no package of the system. The files go below the prefix. With `DESTDIR`, as packagers set it,
//! they go below that directory, and contain no trace of it: the files of pkg-config and CMake find the
//! library by their own place.

use super::header::PACKAGE;
use super::library::{Library, Profile, SONAME, STATIC_LIBS};
use crate::{install, run, tree};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

const USAGE: &str = "usage: cargo xtask dist-c [--prefix DIR]";
const PREFIX: &str = "/usr/local";
/// The program that `minder_guardian_new` starts.
pub(super) const GUARDIAN_PLACE: &str = "libexec/minder/minder-guardian";
const DOXYGEN: install::Program = install::Program { name: "doxygen", package: "doxygen" };

/// The directory tree into which files are installed.
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(crate) fn new(prefix: &Path, dest_dir: Option<&Path>) -> Self {
        let root = match dest_dir {
            Some(dir) => dir.join(prefix.strip_prefix("/").unwrap_or(prefix)),
            None => prefix.to_path_buf(),
        };
        Self { root }
    }

    /// Returns the path of a file, and makes its directory.
    fn place(&self, file: impl AsRef<Path>) -> Result<PathBuf> {
        let path = self.root.join(file);
        let dir = path.parent().unwrap_or(&path);
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(path)
    }

    fn copy(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<PathBuf> {
        let to = self.place(to)?;
        let from = from.as_ref();
        let cannot = || format!("cannot copy {} to {}", from.display(), to.display());
        fs::copy(tree::root().join(from), &to).with_context(cannot)?;
        Ok(to)
    }

    fn link(&self, name: &str, target: &str) -> Result<()> {
        let path = self.place(Path::new("lib").join(name))?;
        let _ = fs::remove_file(&path);
        symlink(target, &path).with_context(|| format!("cannot link {}", path.display()))
    }

    /// Writes a file of `bindings/c/install`, with the values in place of their names.
    fn write(&self, name: &str, to: &str) -> Result<()> {
        let template = tree::root().join(PACKAGE).join("install").join(name);
        let mut text =
            fs::read_to_string(&template).with_context(|| format!("cannot read {}", template.display()))?;
        let version = version()?;
        let series = version.rsplit_once('.').map_or(version.as_str(), |(series, _)| series);
        let flags = STATIC_LIBS.map(|name| format!("-l{name}")).join(" ");
        for (key, value) in [
            ("@VERSION@", version.as_str()),
            ("@SERIES@", series),
            ("@STATIC_LIBS@", &flags),
            ("@STATIC_LIBS_LIST@", &STATIC_LIBS.join(";")),
        ] {
            text = text.replace(key, value);
        }
        let to = self.place(to)?;
        fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))
    }
}

#[cfg(unix)]
fn symlink(target: &str, path: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(not(unix))]
fn symlink(_target: &str, _path: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// `cargo xtask dist-c [--prefix DIR]`
pub(crate) fn main(args: &[String]) -> Result<()> {
    let prefix = match args {
        [] => PathBuf::from(PREFIX),
        [flag, dir] if flag == "--prefix" => std::path::absolute(dir)?,
        _ => bail!(USAGE),
    };
    if cfg!(not(target_os = "linux")) {
        bail!(
            "dist-c lays out the files of Linux; hint: cargo build --profile dist -p minder-c, and copy them"
        );
    }
    let dest_dir = std::env::var_os("DESTDIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let layout = Layout::new(&prefix, dest_dir.as_deref());
    let library = Library::build(Profile::Dist)?;
    library.exported()?;
    library.check_name()?;
    install(&library, &layout)?;
    if let Err(missing) = reference(&layout)? {
        println!("skipped: the reference in HTML: {missing}");
    }
    println!("installed below {}", layout.root.display());
    Ok(())
}

/// Installs everything except the reference.
pub(crate) fn install(library: &Library, layout: &Layout) -> Result<()> {
    let version = version()?;
    let name = format!("libminder.so.{version}");
    let shared = layout.copy(&library.shared, Path::new("lib").join(&name))?;
    layout.link(SONAME, &name)?;
    layout.link("libminder.so", SONAME)?;
    let archive = layout.copy(&library.archive, "lib/libminder.a")?;
    let guardian = layout.copy(&library.guardian, Path::new(GUARDIAN_PLACE))?;
    if library.profile == Profile::Dist {
        run::run(run::command("strip").arg("--strip-unneeded").arg(shared))?;
        run::run(run::command("strip").arg(guardian))?;
        run::run(run::command("strip").arg("--strip-debug").arg(archive))?;
    }
    for header in ["minder.h", "minder_cells.h", "minder.hpp"] {
        layout.copy(Path::new(PACKAGE).join("include").join(header), Path::new("include").join(header))?;
    }
    layout.write("minder.pc.in", "lib/pkgconfig/minder.pc")?;
    layout.write("minder-config.cmake.in", "lib/cmake/minder/minder-config.cmake")?;
    layout.write("minder-config-version.cmake.in", "lib/cmake/minder/minder-config-version.cmake")?;
    let doc = Path::new("share/doc/minder");
    layout.copy(Path::new(PACKAGE).join("README.md"), doc.join("README.md"))?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        layout.copy(licence, doc.join(licence))?;
    }
    for sample in super::compile::sources("samples") {
        let to = doc.join("samples").join(sample.file_name().unwrap_or_default());
        layout.copy(&sample, to)?;
    }
    Ok(())
}

/// Writes the reference in HTML.
fn reference(layout: &Layout) -> Result<Result<(), install::Missing>> {
    if let Err(missing) = install::present(&[DOXYGEN]) {
        return Ok(Err(missing));
    }
    let html = layout.place("share/doc/minder/html/index.html")?;
    let directory = html.parent().unwrap_or(&html);
    let settings = tree::root().join(PACKAGE).join("install/Doxyfile");
    let mut text = fs::read_to_string(&settings).context("cannot read the settings of doxygen")?;
    text.push_str(&format!("PROJECT_NUMBER = {}\nHTML_OUTPUT = {:?}\n", version()?, directory));
    let made = super::directory("Doxyfile");
    fs::create_dir_all(super::directory(""))?;
    fs::write(&made, text)?;
    run::run(run::command("doxygen").arg(made))?;
    Ok(Ok(()))
}

/// Returns the version of all packages.
pub(super) fn version() -> Result<String> {
    let manifest = fs::read_to_string(tree::root().join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    Ok(line.context("Cargo.toml has no version")?.trim_matches('"').to_string())
}
