//! The Rust toolchain of a bare machine: the one of this machine, and what cargo has downloaded.

use crate::run;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// Programs that rustup stands for, by their names.
const PROXIES: [&str; 8] =
    ["cargo", "cargo-clippy", "cargo-fmt", "cargo-miri", "clippy-driver", "rustc", "rustdoc", "rustfmt"];

/// Directories of cargo's home: the index and the packages. Compiled code is not among them.
const DOWNLOADS: [&str; 2] = ["registry/index", "registry/cache"];

/// Cargo's home inside.
const CARGO_HOME: &str = "root/.cargo";

/// A toolchain that a bare machine can use.
#[derive(Debug)]
pub(super) struct Toolchain {
    /// The directory that is mounted.
    pub(super) from: PathBuf,
    /// The directory at which it is mounted inside.
    pub(super) place: &'static str,
    /// The directory of cargo inside.
    pub(super) programs: &'static str,
    rustup: Option<Rustup>,
}

#[derive(Debug)]
struct Rustup {
    program: PathBuf,
    /// The toolchain in use.
    toolchain: String,
}

impl Toolchain {
    /// Returns the toolchain in use: with rustup, and so with the other toolchains and their components,
    /// if it is one of rustup. It is mounted separately, so it is not `/usr`.
    pub(super) fn find() -> Result<Self> {
        let output = run::read(run::command("rustc").args(["--print", "sysroot"]))?;
        let dir = PathBuf::from(output.trim());
        let dir = dir.canonicalize().unwrap_or(dir);
        let is_whole = ["bin/rustc", "bin/cargo"].iter().all(|name| dir.join(name).is_file());
        if !is_whole || dir == Path::new("/usr") {
            bail!(
                "cannot mount the Rust toolchain `{}`: expected a directory with rustc and cargo \
                 (use a toolchain of rustup)",
                dir.display()
            );
        }
        if let Some((home, rustup)) = Rustup::of(&dir) {
            return Ok(Self {
                from: home,
                place: "root/.rustup",
                programs: "root/.cargo/bin",
                rustup: Some(rustup),
            });
        }
        Ok(Self { from: dir, place: "opt/rust", programs: "opt/rust/bin", rustup: None })
    }

    /// Makes the directories below `root`, with a copy of rustup and of the downloads.
    pub(super) fn prepare(&self, root: &Path) -> Result<()> {
        std::fs::create_dir_all(root.join(self.place))?;
        if let Some(rustup) = &self.rustup {
            let programs = root.join(self.programs);
            std::fs::create_dir_all(&programs)?;
            std::fs::copy(&rustup.program, programs.join("rustup")).context("cannot copy rustup")?;
            for name in PROXIES {
                std::fs::hard_link(programs.join("rustup"), programs.join(name))?;
            }
        }
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let Some(home) = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))) else { return Ok(()) };
        let inside = root.join(CARGO_HOME);
        std::fs::create_dir_all(inside.join("registry"))?;
        for name in DOWNLOADS.iter().filter(|name| home.join(name).exists()) {
            // cargo writes there, so the files are not shared.
            run::read(
                run::command("cp").args(["-a", "--reflink=auto"]).arg(home.join(name)).arg(inside.join(name)),
            )?;
        }
        if home.join("config.toml").exists() {
            std::fs::copy(home.join("config.toml"), inside.join("config.toml"))?;
        }
        Ok(())
    }

    /// Returns the variable that chooses the toolchain, as `NAME=VALUE`.
    pub(super) fn variable(&self) -> Option<String> {
        self.rustup.as_ref().map(|rustup| format!("RUSTUP_TOOLCHAIN={}", rustup.toolchain))
    }
}

impl Rustup {
    /// Returns rustup and its home, if this is the directory of one of its toolchains.
    fn of(toolchain: &Path) -> Option<(PathBuf, Self)> {
        let program = run::find("rustup")?.canonicalize().ok()?;
        let home = PathBuf::from(run::read(run::command(&program).args(["show", "home"])).ok()?.trim());
        let home = home.canonicalize().ok()?;
        let name = toolchain.strip_prefix(home.join("toolchains")).ok()?.to_str()?;
        (!name.contains('/')).then(|| (home, Self { program, toolchain: name.to_owned() }))
    }
}
