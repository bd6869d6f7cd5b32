//! Installs what a step needs, or returns why that is impossible and what would help.

use crate::{run, tree};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why something is missing, and the hint, as one line.
pub type Missing = String;

/// A program, and the package of Debian that contains it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The name in PATH.
    pub name: &'static str,
    /// The package of Debian.
    pub package: &'static str,
}

/// Lists processes.
pub(crate) const PS: Program = Program { name: "ps", package: "procps" };
/// A terminal for tests.
pub(crate) const TMUX: Program = Program { name: "tmux", package: "tmux" };

/// Returns the directory in which cargo keeps the sources of packages.
pub(crate) fn cargo_home() -> Option<PathBuf> {
    let home = || std::env::home_dir().map(|home| home.join(".cargo"));
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home)
}

/// Checks that the programs are in PATH, and installs nothing: for a chore that makes files for the user.
pub(crate) fn present(wanted: &[Program]) -> Result<(), Missing> {
    let absent: Vec<&Program> = wanted.iter().filter(|p| run::find(p.name).is_none()).collect();
    if absent.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = absent.iter().map(|p| p.name).collect();
    let mut packages: Vec<&str> = absent.iter().map(|p| p.package).collect();
    packages.dedup();
    Err(format!(
        "{} missing; hint: install it, on Debian by sudo apt-get install {}",
        names.join(" "),
        packages.join(" ")
    ))
}

/// Installs the packages of the programs that are not in PATH.
///
/// The error names every program that is still absent.
pub fn programs(wanted: &[Program]) -> Result<(), Missing> {
    let absent = |p: &&Program| run::find(p.name).is_none();
    let mut packages: Vec<&str> = wanted.iter().filter(absent).map(|p| p.package).collect();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    let installed = apt(&packages);
    let names: Vec<&str> = wanted.iter().filter(absent).map(|p| p.name).collect();
    match installed {
        _ if names.is_empty() => Ok(()),
        Err(why) => Err(why),
        Ok(()) => Err(format!(
            "{} not in PATH, though the packages are there; hint: add /usr/bin to PATH",
            names.join(" ")
        )),
    }
}

/// Installs missing packages, on Debian and its derivatives, as root or by `sudo` without a password.
pub fn apt(packages: &[&str]) -> Result<(), Missing> {
    let absent: Vec<&str> = packages.iter().copied().filter(|p| !installed(p)).collect();
    if absent.is_empty() {
        return Ok(());
    }
    let admin = may_install(&absent)?;
    // A fresh image has no lists, and old lists name packages that the mirror no longer has.
    if absent.iter().all(|p| offered(p)) && run::run(&mut install(admin, &absent)).is_ok() {
        return Ok(());
    }
    update_and_install(admin, &absent)
}

/// Installs the server and the client of ssh, for tests that start a server themselves. Debian starts none,
/// now and later, if this file exists: the machine is not opened for logins.
pub(crate) fn ssh() -> Result<(), Missing> {
    const NO_SERVER: &str = "mkdir -p /etc/ssh && : >/etc/ssh/sshd_not_to_be_run";
    const PACKAGES: [&str; 2] = ["openssh-server", "openssh-client"];
    if !installed(PACKAGES[0]) {
        let mut cmd = match may_install(&PACKAGES)? {
            Admin::Root => run::command("sh"),
            Admin::Sudo => {
                let mut cmd = run::command("sudo");
                cmd.args(["-n", "sh"]);
                cmd
            }
        };
        run::run(cmd.args(["-c", NO_SERVER])).map_err(|e| format!("{e:#}; hint: install openssh-server"))?;
    }
    apt(&PACKAGES)
}

/// Installs the newest version that the mirror has, even if an older one is installed.
pub(crate) fn newest(packages: &[&str]) -> Result<(), Missing> {
    update_and_install(may_install(packages)?, packages)
}

fn update_and_install(admin: Admin, packages: &[&str]) -> Result<(), Missing> {
    // If the mirror fails, packages are missing below.
    let _ = run::run(apt_get(admin).arg("update"));
    if let Some(unknown) = packages.iter().find(|p| !offered(p)) {
        return Err(format!(
            "the package lists of this machine lack {unknown}; hint: use a Debian 12 machine or container"
        ));
    }
    run::run(&mut install(admin, packages))
        .map_err(|e| format!("{e:#}; hint: sudo apt-get install {}", packages.join(" ")))
}

/// Downloads what a package depends on, the first one whose name begins so, without installing it. Returns
/// the file, which is in this directory.
pub(crate) fn download_dependency(package: &str, begin: &str, directory: &Path) -> Result<PathBuf, Missing> {
    if !offered(package) {
        // If the mirror fails, the package is missing below.
        let _ = run::run(apt_get(may_install(&[package])?).arg("update"));
    }
    let name = dependency(run::command("apt-cache"), package, begin)?;
    download(run::command("apt-get"), &name, directory)
}

/// The packages of another architecture, from the mirrors of this machine. apt keeps their lists in a
/// directory, so this machine does not change.
pub(crate) struct OtherPackages {
    directory: PathBuf,
    settings: PathBuf,
}

impl OtherPackages {
    /// Downloads the lists for this architecture, as Debian names it, into the directory, which is empty.
    pub(crate) fn of(architecture: &str, directory: &Path) -> Result<Self, Missing> {
        let settings = directory.join("apt.conf");
        let home = directory.display();
        // What this machine does after an update concerns its own lists.
        let text = format!(
            "APT::Architecture \"{architecture}\";\n#clear APT::Architectures;\n\
             APT::Architectures \"{architecture}\";\nAcquire::Languages \"none\";\n\
             Dir::State \"{home}/state\";\nDir::State::status \"/dev/null\";\n\
             Dir::Cache \"{home}/cache\";\n#clear APT::Update;\n"
        );
        // apt makes them for its own directories only.
        let made = ["state/lists/partial", "cache/archives/partial"]
            .iter()
            .try_for_each(|name| std::fs::create_dir_all(directory.join(name)));
        made.and_then(|()| std::fs::write(&settings, text))
            .map_err(|e| format!("cannot write below {}: {e}", directory.display()))?;
        let packages = Self { directory: directory.to_owned(), settings };
        // If the mirror fails, packages are missing later.
        let _ = run::run(packages.apt("apt-get").args(["-qq", "-o", "Acquire::Retries=3", "update"]));
        Ok(packages)
    }

    /// Returns what the package depends on: the first one whose name begins so.
    pub(crate) fn dependency(&self, package: &str, begin: &str) -> Result<String, Missing> {
        dependency(self.apt("apt-cache"), package, begin)
    }

    /// Downloads the package, and returns its file.
    pub(crate) fn download(&self, package: &str) -> Result<PathBuf, Missing> {
        download(self.apt("apt-get"), package, &self.directory)
    }

    fn apt(&self, program: &str) -> Command {
        let mut cmd = run::command(program);
        cmd.arg("-c").arg(&self.settings);
        cmd
    }
}

fn dependency(mut apt_cache: Command, package: &str, begin: &str) -> Result<String, Missing> {
    let listed = run::read(apt_cache.args(["depends", package])).unwrap_or_default();
    let mut named = listed.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let name = named.find(|name| name.starts_with(begin));
    name.map(str::to_owned)
        .ok_or_else(|| format!("no package {package}; hint: use a Debian machine or container"))
}

fn download(mut apt_get: Command, name: &str, directory: &Path) -> Result<PathBuf, Missing> {
    apt_get.args(["-qq", "-o", "Acquire::Retries=3", "download", name]).current_dir(directory);
    let failed = |why: String| format!("{why}; hint: apt-get update");
    run::run(&mut apt_get).map_err(|e| failed(format!("{e:#}")))?;
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found = files.filter(|path| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(&format!("{name}_")) && file.ends_with(".deb")
    });
    found.next().ok_or_else(|| failed(format!("no file of {name}")))
}

/// Adds a component or a target to the toolchain in use, with rustup, within two minutes.
pub(crate) fn rustup(words: &[&str]) -> Result<(), Missing> {
    let hint = format!("hint: rustup {}", words.join(" "));
    if run::find("rustup").is_none() {
        return Err(format!("no rustup; {hint}"));
    }
    let mut cmd = match run::find("timeout") {
        Some(timeout) => {
            let mut cmd = run::command(timeout);
            cmd.args(["120", "rustup"]);
            cmd
        }
        None => run::command("rustup"),
    };
    run::run(cmd.args(words)).map_err(|e| format!("{e:#}; {hint}"))
}

/// A program of a package on the registry, for a chore that only runs on request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    /// The name of the package and of its program.
    pub package: &'static str,
    pub(crate) version: &'static str,
}

/// Returns the path of the program. If PATH lacks it, builds this version into the target directory,
/// which takes minutes.
pub(crate) fn tool(tool: &Tool) -> Result<PathBuf, Missing> {
    let home = tree::target_dir().join("tools");
    let name = format!("{}{}", tool.package, std::env::consts::EXE_SUFFIX);
    let built = home.join("bin").join(&name);
    if let Some(found) = run::find(tool.package).or_else(|| built.is_file().then(|| built.clone())) {
        return Ok(found);
    }
    let package = format!("{}@{}", tool.package, tool.version);
    let mut cmd = run::cargo();
    // Quick to build: it runs for seconds.
    cmd.args(["install", "--locked", "--debug", &package, "--root"]).arg(&home);
    cmd.env("CARGO_PROFILE_DEV_DEBUG", "none").env("CARGO_TARGET_DIR", home.join("target"));
    run::run(&mut cmd).map_err(|e| format!("{e:#}; hint: cargo install --locked {package}"))?;
    Ok(built)
}

fn installed(package: &str) -> bool {
    let output = run::read(run::command("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]));
    output.is_ok_and(|status| status == "installed")
}

fn offered(package: &str) -> bool {
    let output = run::read(run::command("apt-cache").args(["policy", package]));
    output.is_ok_and(|text| text.lines().any(|l| l.trim().starts_with("Candidate:") && !l.contains("(none)")))
}

#[derive(Clone, Copy)]
enum Admin {
    Root,
    Sudo,
}

/// Returns how packages can be installed here.
fn may_install(packages: &[&str]) -> Result<Admin, Missing> {
    let names = packages.join(" ");
    if run::find("apt-get").is_none() {
        return Err(format!(
            "{names} missing, and no apt-get to install from; hint: install its equivalent by hand"
        ));
    }
    if is_root() {
        return Ok(Admin::Root);
    }
    if run::succeeds(run::command("sudo").args(["-n", "true"])) {
        return Ok(Admin::Sudo);
    }
    Err(format!("{names} missing, and no right to install; hint: sudo apt-get install {names}"))
}

/// Returns whether this process runs as root.
pub(crate) fn is_root() -> bool {
    run::read(run::command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn install(admin: Admin, packages: &[&str]) -> Command {
    let mut cmd = apt_get(admin);
    cmd.args(["install", "-y", "--no-install-recommends"]).args(packages);
    cmd
}

fn apt_get(admin: Admin) -> Command {
    let mut cmd = match admin {
        Admin::Root => run::command("apt-get"),
        Admin::Sudo => {
            let mut cmd = run::command("sudo");
            // sudo clears the environment.
            cmd.args(["-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
            cmd
        }
    };
    // A line for each package, without those of the download and without the progress bars of dpkg.
    cmd.env("DEBIAN_FRONTEND", "noninteractive");
    cmd.args(["-qq", "-o", "Dpkg::Use-Pty=0", "-o", "Acquire::Retries=3"]);
    // The other side of the steps may be installing a thousand megabytes.
    cmd.args(["-o", "DPkg::Lock::Timeout=600"]);
    cmd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn present_names_what_is_missing_and_its_package() {
        const CARGO: Program = Program { name: "cargo", package: "cargo" };
        const ABSENT: [&str; 2] = ["no-such-program", "nor-this-one"];
        let missing = ABSENT.map(|name| Program { name, package: "tools" });
        assert_eq!(present(&[CARGO]), Ok(()));
        assert_eq!(
            present(&[missing[0], CARGO, missing[1]]).unwrap_err(),
            "no-such-program nor-this-one missing; hint: install it, on Debian by sudo apt-get install tools"
        );
    }
}
