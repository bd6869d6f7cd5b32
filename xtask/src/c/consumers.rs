//! Programs that find the installed library by CMake and by pkg-config, and run.

use super::{LeftOut, directory, expect, header, install_tree};
use crate::{install, run};
use anyhow::Result;
use std::path::Path;

const CMAKE: [install::Program; 2] = [
    install::Program { name: "cmake", package: "cmake" },
    install::Program { name: "make", package: "make" },
];
const PKG_CONFIG: install::Program = install::Program { name: "pkg-config", package: "pkg-config" };
const SOURCE: &str = "tests/consumer";

/// Returns the output of the programs in C.
fn output() -> Result<String> {
    Ok(format!("minder {}: MINDER_OK, code 0\n", install_tree::version()?))
}

/// Builds and runs programs against the tree.
pub(crate) fn build_and_run(tree: &Path) -> Result<LeftOut> {
    let mut left_out = LeftOut::new();
    match install::programs(&CMAKE) {
        Ok(()) => by_cmake(tree)?,
        Err(missing) => left_out.push(missing),
    }
    match install::programs(&[PKG_CONFIG]) {
        Ok(()) => by_pkg_config(tree)?,
        Err(missing) => left_out.push(missing),
    }
    Ok(left_out)
}

fn by_cmake(tree: &Path) -> Result<()> {
    let build = directory("consumer");
    let _ = std::fs::remove_dir_all(&build);
    let mut cmd = run::command("cmake");
    cmd.arg("-S").arg(Path::new(header::PACKAGE).join(SOURCE)).arg("-B").arg(&build);
    cmd.arg(format!("-DCMAKE_PREFIX_PATH={}", tree.display()));
    run::read(cmd.arg(format!("-DMINDER_VERSION={}", install_tree::version()?)))?;
    run::read(run::command("cmake").arg("--build").arg(&build))?;
    expect(&mut run::command(build.join("shared")), &output()?)?;
    expect(&mut run::command(build.join("static")), &output()?)?;
    expect(&mut run::command(build.join("shared_cpp")), "")
}

fn by_pkg_config(tree: &Path) -> Result<()> {
    let flags = |options: &[&str]| -> Result<Vec<String>> {
        let mut cmd = run::command("pkg-config");
        cmd.env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig")).args(options).arg("minder");
        Ok(run::read(&mut cmd)?.split_whitespace().map(String::from).collect())
    };
    let source = Path::new(header::PACKAGE).join(SOURCE).join("main.c");
    let shared = flags(&["--cflags", "--libs"])?;
    // The linker prefers the shared library unless the archive is named.
    let archive = |flag: String| if flag == "-lminder" { "-l:libminder.a".to_string() } else { flag };
    let archived: Vec<String> =
        flags(&["--cflags", "--libs", "--static"])?.into_iter().map(archive).collect();
    for (name, flags) in [("pkg-config-shared", shared), ("pkg-config-static", archived)] {
        let program = directory(name);
        run::run(run::command("gcc").arg(&source).arg("-o").arg(&program).args(flags))?;
        expect(run::command(&program).env("LD_LIBRARY_PATH", tree.join("lib")), &output()?)?;
    }
    Ok(())
}
