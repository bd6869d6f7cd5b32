//! Builds the program of a release for a system.

use super::release::Release;
use crate::{debian, install, run, wine};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROFILE: &str = "dist";

/// A system for which the program is released.
pub(super) struct Target {
    pub(super) triple: &'static str,
    /// The file of the program.
    pub(super) program: &'static str,
    /// The flags of the compiler.
    flags: &'static [&'static str],
    /// The linker of another system than this one.
    linker: Option<&'static str>,
    objcopy: install::Program,
    /// Packages of Debian with the linker and the C library.
    packages: &'static [&'static str],
}

/// A static program needs no libc of the system. It starts without a dynamic linker, and at a fixed
/// address without relocations: `minder --version` takes a sixth of the instructions and half of the system
/// calls. The libc is glibc, as in the dynamic program. The program looks up no names of users and hosts,
/// for which glibc would load libraries of the system.
const STATIC: &[&str] = &["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];

pub(super) const LINUX: Target = Target {
    triple: "x86_64-unknown-linux-gnu",
    program: "minder",
    flags: STATIC,
    linker: None,
    objcopy: install::Program { name: "objcopy", package: "binutils" },
    packages: &["libc6-dev"],
};

pub(super) const LINUX_ARM: Target = Target {
    triple: "aarch64-unknown-linux-gnu",
    program: "minder",
    flags: STATIC,
    linker: Some("aarch64-linux-gnu-gcc"),
    objcopy: install::Program { name: "aarch64-linux-gnu-objcopy", package: "binutils-aarch64-linux-gnu" },
    packages: &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
};

pub(super) const WINDOWS: Target = Target {
    triple: wine::TARGET,
    program: "minder.exe",
    // Two builds differ by the time in the header otherwise, and by its checksum: symbols of import libraries
    // contain the names of temporary directories.
    flags: &["-Ctarget-feature=+crt-static", "-Clink-arg=-Wl,--no-insert-timestamp", "-Cstrip=symbols"],
    linker: Some("x86_64-w64-mingw32-gcc"),
    objcopy: install::Program { name: "x86_64-w64-mingw32-objcopy", package: "binutils-mingw-w64-x86-64" },
    packages: &["gcc-mingw-w64-x86-64-win32"],
};

/// Linux on x86-64, for libraries: they are used with the C library of the system.
pub(super) const LINUX_LIBRARY: Target = Target { flags: &[], ..LINUX };

/// The program of a target, and its debugging information.
#[derive(Clone)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) debug: PathBuf,
}

/// Builds the program for a target once, and splits its debugging information off.
pub(super) fn build(release: &Release, target: &Target) -> Result<Program> {
    if let Some(built) = release.programs.borrow().get(target.triple) {
        return Ok(built.clone());
    }
    let mut cargo = cargo_build(release, target, &release.build)?;
    cargo.args(["--package", "minder-cli", "--bin", "minder"]);
    run::run(&mut cargo)?;
    let program = split(release, target)?;
    release.programs.borrow_mut().insert(target.triple, program.clone());
    Ok(program)
}

/// Builds packages for a target. Returns the directory with the files.
pub(super) fn build_libraries(release: &Release, target: &Target, arguments: &[&str]) -> Result<PathBuf> {
    // The flags differ from those of the program.
    let dir = release.build.join("library");
    run::run(cargo_build(release, target, &dir)?.args(arguments))?;
    Ok(dir.join(target.triple).join(PROFILE))
}

/// Returns `cargo build` for a target; the packages follow. Installs what it needs.
fn cargo_build(release: &Release, target: &Target, target_dir: &Path) -> Result<Command> {
    if cfg!(not(target_os = "linux")) {
        bail!("releases are built on Linux; hint: use a Debian 12 machine");
    }
    let here =
        run::succeeds(run::command("rustc").args(["--print", "target-libdir", "--target", target.triple]));
    let has_std = here && target.linker.is_none();
    let mut ready = install::programs(&[target.objcopy]).and_then(|()| install::apt(target.packages));
    if !has_std {
        ready = ready.and_then(|()| debian::ready());
    }
    ready.map_err(anyhow::Error::msg)?;
    let mut cargo = if has_std {
        let mut cargo = run::cargo();
        cargo.args(["build", "--target", target.triple, "--target-dir"]).arg(target_dir);
        cargo
    } else {
        debian::cargo_in(target_dir, "build", &[target.triple])
    };
    release.enter(&mut cargo);
    let key = target.triple.to_uppercase().replace('-', "_");
    if let Some(linker) = target.linker {
        cargo.env(format!("CARGO_TARGET_{key}_LINKER"), linker).env(format!("CC_{}", target.triple), linker);
    }
    set_flags(&mut cargo, release, target);
    cargo.env("MINDER_COMMIT", &release.commit);
    cargo.args(["--locked", "--profile", PROFILE]);
    Ok(cargo)
}

/// Sets the flags of both compilers. Neither may write directories of this machine into the program.
fn set_flags(cargo: &mut Command, release: &Release, target: &Target) {
    let mut flags: Vec<String> = target.flags.iter().map(|&flag| flag.to_owned()).collect();
    let mut c_flags = Vec::new();
    for (from, to) in hidden_directories(release) {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        let map = format!("-ffile-prefix-map={}={to}", from.display());
        c_flags.push(format!("'{}'", map.replace('\'', r"'\''")));
    }
    // The crate cc then splits the flags as a shell does. A directory may have a blank in its name.
    cargo.env("CC_SHELL_ESCAPED_FLAGS", "1");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    cargo.env(format!("CFLAGS_{}", target.triple.replace('-', "_")), c_flags.join(" "));
}

/// Returns the directories with sources, and the names that stand for them. Where several match, the last one
/// counts.
fn hidden_directories(release: &Release) -> Vec<(PathBuf, &'static str)> {
    let mut found = Vec::new();
    if let Some(home) = install::cargo_home() {
        let registries = std::fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
        found.push((home, "/cargo"));
        found.extend(registries.map(|entry| (entry.path(), "/cargo/registry")));
    }
    found.push((release.build.clone(), "/target"));
    found.push((release.source.clone(), "/minder"));
    found
}

/// Moves the debugging information of a program to a file, and leaves a link to it.
fn split(release: &Release, target: &Target) -> Result<Program> {
    let dir = release.build.join(target.triple).join(PROFILE);
    let built = dir.join(target.program);
    let out = dir.join("split");
    std::fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let program = Program { path: out.join(target.program), debug: out.join("minder.debug") };
    // It writes the time of the release into the header of a program for Windows.
    let objcopy = || release.command(target.objcopy.name);
    run::run(objcopy().arg("--only-keep-debug").args([&built, &program.debug]))?;
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(&program.debug);
    // Its sections name the versions of compilers.
    let comment = "--remove-section=.comment";
    run::run(objcopy().args(["--strip-all", comment]).arg(link).args([&built, &program.path]))?;
    Ok(program)
}
