//! Wheels for Python, with the program and the module over it.

use super::program::{self, LINUX, LINUX_ARM, Target, WINDOWS};
use super::release::Release;
use crate::{install, run};
use anyhow::Result;
use std::path::PathBuf;

const PYTHON: [install::Program; 1] = [install::Program { name: "python3", package: "python3" }];

/// The systems, and the tags by which pip chooses a wheel. A static program runs with every libc.
const WHEELS: [(&Target, &str); 3] = [
    (&LINUX, "manylinux2014_x86_64.musllinux_1_1_x86_64"),
    (&LINUX_ARM, "manylinux2014_aarch64.musllinux_1_1_aarch64"),
    (&WINDOWS, "win_amd64"),
];

/// Packs a wheel for each system.
pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>> {
    install::programs(&PYTHON).map_err(anyhow::Error::msg)?;
    let mut files = Vec::new();
    for (target, tag) in WHEELS {
        let program = program::build(release, target)?.path;
        let mut python = release.command("python3");
        python.arg("bindings/python/build_wheel.py").arg("--program").arg(program);
        python.args(["--platform-tag", tag, "--version", &release.version, "--out"]).arg(&release.out);
        run::run(&mut python)?;
        files.push(release.out.join(format!("minder-{}-py3-none-{tag}.whl", release.version)));
    }
    Ok(files)
}
