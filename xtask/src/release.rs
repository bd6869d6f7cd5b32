//! Checks before a release that `cargo xtask test` leaves out: they install programs that take
//! minutes to build, need the network, or build every package once more.

use crate::{install, run, toolchain, tree};
use anyhow::{Context, Result, bail};

/// One thing that has to hold.
struct Check {
    name: &'static str,
    what: &'static str,
    run: fn() -> Result<LeftOut>,
}

/// The parts of a check that were left out, one line each.
type LeftOut = Vec<install::Missing>;

const CHECKS: [Check; 6] = [
    Check { name: "deny", what: "the dependencies keep the rules of deny.toml", run: deny },
    Check { name: "semver", what: "the version fits the change of the public interface", run: semver },
    Check { name: "msrv", what: "the library compiles with the oldest Rust that it promises", run: msrv },
    Check { name: "docs", what: "the documentation builds as docs.rs builds it", run: docs },
    Check { name: "workflows", what: "the workflows of CI and of a release are valid", run: workflows },
    Check { name: "package", what: "every package compiles from what would be published", run: package },
];

/// `cargo xtask release-checks [--list] [NAME]...`
pub(crate) fn main(args: &[String]) -> Result<()> {
    if args.iter().any(|arg| arg == "--list") {
        for check in &CHECKS {
            println!("{:<8} {}", check.name, check.what);
        }
        return Ok(());
    }
    if let Some(unknown) = args.iter().find(|arg| CHECKS.iter().all(|check| check.name != **arg)) {
        bail!("unknown check `{unknown}`; hint: cargo xtask release-checks --list");
    }
    let mut skipped = Vec::new();
    let mut failures = Vec::new();
    for check in CHECKS.iter().filter(|check| args.is_empty() || args.iter().any(|arg| arg == check.name)) {
        println!("\n=== {}: {}", check.name, check.what);
        match (check.run)() {
            Ok(left_out) => {
                skipped.extend(left_out.into_iter().map(|why| format!("skipped: {}: {why}", check.name)));
            }
            Err(e) => failures.push(format!("{}: {e:#}", check.name)),
        }
    }
    println!();
    skipped.iter().for_each(|line| println!("{line}"));
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    println!("xtask release-checks: {}", if skipped.is_empty() { "passed" } else { "passed in part" });
    Ok(())
}

const DENY: install::Tool = install::Tool { package: "cargo-deny", version: "0.20.2" };
const SEMVER: install::Tool = install::Tool { package: "cargo-semver-checks", version: "0.48.0" };

fn deny() -> Result<LeftOut> {
    let deny = match install::tool(&DENY) {
        Ok(program) => program,
        Err(missing) => return Ok(vec![missing]),
    };
    run::run(run::command(&deny).args(["check", "bans", "licenses", "sources"]))?;
    let mut advisories = run::command(&deny);
    advisories.args(["check", "advisories"]);
    eprintln!("  $ {}", run::show(&advisories));
    match run::read(&mut advisories) {
        Ok(_) => Ok(LeftOut::new()),
        Err(e) if format!("{e:#}").contains("failed to fetch advisory database") => {
            Ok(vec!["the advisories cannot be fetched; hint: use a machine with access to them".to_string()])
        }
        Err(e) => Err(e),
    }
}

/// The linter of workflows, and its version.
const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7";
/// What builds the linter.
const GO: [install::Program; 1] = [install::Program { name: "go", package: "golang-go" }];

fn workflows() -> Result<LeftOut> {
    let bin = tree::target_dir().join("tools/bin");
    let built = bin.join("actionlint");
    let program = match run::find("actionlint").or_else(|| built.is_file().then(|| built.clone())) {
        Some(found) => found,
        None => {
            if let Err(missing) = install::programs(&GO) {
                return Ok(vec![missing]);
            }
            run::run(run::command("go").args(["install", ACTIONLINT]).env("GOBIN", &bin))?;
            built
        }
    };
    run::run(&mut run::command(program))?;
    Ok(LeftOut::new())
}

/// The file with the commit of the last release.
const BASELINE: &str = "crates/minder/api/baseline.txt";

fn semver() -> Result<LeftOut> {
    let text = std::fs::read_to_string(tree::root().join(BASELINE))
        .with_context(|| format!("cannot read {BASELINE}"))?;
    let baseline = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default().trim();
    if !run::succeeds(run::command("git").args(["cat-file", "-e", &format!("{baseline}^{{commit}}")])) {
        return Ok(vec![format!(
            "the commit `{baseline}` of {BASELINE} is not in this copy; hint: git fetch --unshallow in a \
             clone"
        )]);
    }
    let semver = match install::tool(&SEMVER) {
        Ok(program) => program,
        Err(missing) => return Ok(vec![missing]),
    };
    // It takes the name of the cargo subcommand as its first argument.
    let mut check = run::command(semver);
    check.args(["semver-checks", "check-release", "-p", "minder", "--baseline-rev", baseline]);
    run::run(&mut check)?;
    Ok(LeftOut::new())
}

/// The systems for which the library has different code.
const MSRV_TARGETS: [&str; 4] =
    ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-gnu", "aarch64-apple-darwin", "x86_64-unknown-freebsd"];

/// The manifest that states the version.
const LIBRARY: &str = "crates/minder/Cargo.toml";

fn msrv() -> Result<LeftOut> {
    let manifest = std::fs::read_to_string(tree::root().join(LIBRARY))
        .with_context(|| format!("cannot read {LIBRARY}"))?;
    let version = rust_version(&manifest).with_context(|| format!("no rust-version in {LIBRARY}"))?;
    if let Err(missing) = toolchain::ready(version) {
        return Ok(vec![missing]);
    }
    let mut left_out = LeftOut::new();
    let mut cmd = toolchain::cargo(version);
    cmd.args(["check", "-p", "minder", "--target-dir"]).arg(tree::target_dir().join("msrv"));
    for target in MSRV_TARGETS {
        match install::rustup(&["target", "add", "--toolchain", version, target]) {
            Ok(()) => drop(cmd.args(["--target", target])),
            Err(missing) => left_out.push(missing),
        }
    }
    run::run(&mut cmd)?;
    Ok(left_out)
}

/// docs.rs has a nightly compiler, which shows on which systems an item exists.
fn docs() -> Result<LeftOut> {
    if let Err(missing) = toolchain::ready("nightly") {
        return Ok(vec![missing]);
    }
    let mut cmd = toolchain::cargo("nightly");
    cmd.args([
        "doc",
        "-p",
        "minder",
        "-p",
        "minder-os",
        "-p",
        "minder-tokio",
        "--no-deps",
        "--lib",
        "--target-dir",
    ]);
    cmd.arg(tree::target_dir().join("docsrs")).env("RUSTDOCFLAGS", "--cfg docsrs -D warnings");
    run::run(&mut cmd)?;
    Ok(LeftOut::new())
}

/// Returns the version that a manifest states.
fn rust_version(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find(|line| line.starts_with("rust-version = "))?;
    line.split('"').nth(1)
}

/// Cargo packages what it publishes together in the order of the dependencies, and compiles each
/// package against those before it. It uploads nothing.
fn package() -> Result<LeftOut> {
    run::run(run::cargo().args(["publish", "--dry-run", "--workspace", "--locked"]))?;
    Ok(LeftOut::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_rust_is_read_from_the_manifest() {
        let manifest = "[package]\nname = \"a\"\nrust-version = \"1.88\" # why\n";
        assert_eq!(rust_version(manifest), Some("1.88"));
        assert_eq!(rust_version("rust-version.workspace = true\n"), None);
    }
}
