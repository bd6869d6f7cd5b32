//! The programs of `benches/peers`: builds them.

use anyhow::{Context, Result};
use std::path::PathBuf;
use xtask::{run, tree};

/// Returns the path of something that was built here.
pub(crate) fn built(name: &str) -> String {
    tree::target_dir().join("peers").join(name).display().to_string()
}

/// Returns the path of the command that people use.
pub(crate) fn minder() -> PathBuf {
    tree::target_dir().join(format!("release/minder{}", std::env::consts::EXE_SUFFIX))
}

/// Returns the directory of the runners' journals and settings; those of the user stay unchanged.
pub(crate) fn state() -> PathBuf {
    PathBuf::from(built("state"))
}

/// Returns a file with these lines, for the standard input of a program.
pub(crate) fn input(lines: impl Iterator<Item = String>) -> Result<PathBuf> {
    let path = PathBuf::from(built("input"));
    let text: String = lines.map(|line| line + "\n").collect();
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Compiles a C program of `benches/peers` with these arguments before and after its name. Returns
/// the path of the program.
pub(crate) fn compile(name: &str, before: &[&str], after: &[&str]) -> Result<String> {
    let built = built(name);
    if let Some(directory) = PathBuf::from(&built).parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut cc = run::command("cc");
    cc.arg("-O2").args(before).args(["-o", &built]);
    cc.arg(tree::root().join(format!("benches/peers/{name}.c"))).args(after);
    run::read(&mut cc)
        .with_context(|| format!("benches/peers/{name}.c does not build; hint: a C compiler"))?;
    Ok(built)
}

/// Builds the program of `benches/peers/NAME`, a separate workspace, in a separate target
/// directory. Returns the path of the program.
pub(crate) fn build_workspace(name: &str) -> Result<PathBuf> {
    let target = tree::target_dir().join("peers").join(name);
    let manifest = format!("benches/peers/{name}/Cargo.toml");
    let mut cmd = run::cargo();
    cmd.args(["build", "--release", "--manifest-path", &manifest]);
    run::run(cmd.arg("--target-dir").arg(&target))
        .with_context(|| format!("the program of benches/peers/{name} does not build"))?;
    Ok(target.join(format!("release/{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// Returns the names and versions of packages in the lock file of `benches/peers/NAME`.
pub(crate) fn locked_versions(name: &str, packages: &[&str]) -> Result<String> {
    let lock = std::fs::read_to_string(tree::root().join(format!("benches/peers/{name}/Cargo.lock")))?;
    let named: Vec<_> = packages.iter().map(|name| format!("{name} {}", version(&lock, name))).collect();
    Ok(named.join(", "))
}

/// Returns the version of a package in a lock file.
fn version<'a>(lock: &'a str, name: &str) -> &'a str {
    let mut lines = lock.lines().skip_while(|line| *line != format!("name = \"{name}\""));
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = "));
    version.map_or("unknown", |version| version.trim_matches('"'))
}

/// Returns the total of the column `calls` in a table of `strace -c`.
pub(crate) fn calls_of(table: &str) -> Option<f64> {
    let total = table.lines().rfind(|line| line.ends_with(" total"))?;
    // % time, seconds, usecs/call, calls, errors (if there are any), syscall.
    total.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"mio\"\nversion = \"1.2.4\"\n\n\
                    [[package]]\nname = \"polling\"\nversion = \"3.11.0\"\n";
        assert_eq!((version(lock, "polling"), version(lock, "tokio")), ("3.11.0", "unknown"));
    }

    #[test]
    fn calls_come_from_the_last_line_of_strace() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                     90.00    0.001000          10       100           read\n\
                     100.00    0.001100          10       104         4 total\n";
        assert_eq!((calls_of(table), calls_of("strace: no such program\n")), (Some(104.0), None));
    }
}
