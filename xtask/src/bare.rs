//! `cargo xtask bare`: both commands of the README on a pristine Debian that has a Rust toolchain
//! and nothing else. With `--all` the rest of CI follows there.
//!
//! debootstrap installs the system in a directory below `target`; the commands run there after a
//! chroot, in mount and PID namespaces. Mounts and processes end with the namespaces, so none of them
//! remains, even if this program is killed. The release of Debian, its mirror and the settings of the
//! network are those of this machine: the tree names none of them.
//!
//! The results stay in `target/bare`: `results.log` has a line for each machine, and the other files have
//! what was printed on the last one.

mod host;
pub(crate) mod system;
mod toolchain;
mod results;

pub(crate) use host::variables as network_variables;

use crate::test::report::Report;
use crate::{install, run, tree};
use anyhow::{Context, Result, bail, ensure};
use lexopt::prelude::*;
use results::Part;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;
use toolchain::Toolchain;

/// The packages that a Rust toolchain itself needs: a linker with the C library to link to. git and
/// the certificates are for the clone.
const NEEDED: [&str; 4] = ["gcc", "libc6-dev", "ca-certificates", "git"];

/// The programs that this command runs, in addition to those of every Debian.
const TOOLS: [install::Program; 2] = [system::DEBOOTSTRAP, install::Program { name: "git", package: "git" }];

/// The commands of the README. The first one is called `run`; steps go to the second one.
pub(crate) const FIRST: &str = "cargo run --release -- run 'wc -c {}' ::: LICENSE-APACHE LICENSE-MIT";
const SECOND: &str = "cargo xtask test";
const RUN: &str = "run";
/// The command that `--all` runs after both.
const REST: &str = "cargo xtask test --rest";

/// The exit status if this machine cannot make another one.
const NO_MACHINE: u8 = 3;

/// Paths inside.
const CLONE: &str = "root/minder";
const BUNDLE: &str = "root/minder.bundle";

/// After [`system::MOUNT`], enters the directory `$1`, with the toolchain `$2` at `$3`. What is
/// written there goes to the machine, if the file system of `$1` can keep it; otherwise nothing is
/// written. The shell inside stays as process 1 and reaps orphans, as an init does.
const ENTER: &str = r#"
mkdir -p "$1/opt/written" "$1/opt/work"
layers="lowerdir=$2,upperdir=$1/opt/written,workdir=$1/opt/work"
if ! mount -t overlay overlay -o "$layers" "$1/$3" 2>/dev/null; then
    mount --bind "$2" "$1/$3"
    mount -o remount,bind,ro "$1/$3"
fi
root=$1
shift 3
exec chroot "$root" "$@"
"#;

/// Does in the directory `$1` what [`system::MOUNT`] and debootstrap do there.
const TRY: &str = r#"mkdir -p "$1" && mount --bind "$1" "$1" && mount -t proc proc "$1" && umount "$1" &&
mknod "$1/null" c 1 3 && : >"$1/null" && chroot / true"#;

/// Runs `cargo xtask bare …` as a child that the kernel kills with this shell, and removes `$1`
/// afterwards, also after Ctrl-C.
const SUPERVISE: &str = r#"root=$1
shift
trap : INT
setpriv --pdeathsig KILL "$@"
status=$?
if [ -z "$MINDER_BARE_KEEP" ]; then rm -rf --one-file-system "$root" || rm -rf --one-file-system "$root"; fi
exit $status
"#;

/// The text before the name of a package in a skipped check.
const INSTALLABLE: &str = "apt-get install";

/// Set in the environment of the child that does the work.
const SUPERVISED: &str = "MINDER_BARE_SUPERVISED";
const KEEP: &str = "MINDER_BARE_KEEP";

/// The options of the command line.
#[derive(Debug, Default, PartialEq)]
struct Options {
    keep: bool,
    again: bool,
    /// The rest of CI, too.
    all: bool,
    /// Steps of `cargo xtask test`, or `run`.
    only: Vec<String>,
}

impl Options {
    fn parse(words: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = lexopt::Parser::from_args(words);
        while let Some(word) = words.next()? {
            match word {
                Long("keep") => options.keep = true,
                Long("all") => options.all = true,
                Long("again") => (options.again, options.keep) = (true, true),
                Long("only") => options.only.push(words.value()?.string()?),
                other => return Err(other.unexpected().into()),
            }
        }
        for name in options.only.iter().filter(|name| *name != RUN) {
            crate::test::step(name)?;
        }
        Ok(options)
    }

    /// The names and lines of the commands that run inside.
    fn commands(&self) -> Vec<(&'static str, String)> {
        let steps: Vec<&String> = self.only.iter().filter(|name| *name != RUN).collect();
        let mut commands = Vec::new();
        if self.only.is_empty() || self.only.iter().any(|name| name == RUN) {
            commands.push(("first command", FIRST.to_owned()));
        }
        if self.only.is_empty() || !steps.is_empty() {
            let only: String = steps.iter().map(|name| format!(" --only {name}")).collect();
            commands.push(("second command", format!("{SECOND}{only}")));
        }
        if self.all && self.only.is_empty() {
            commands.push(("rest", REST.to_owned()));
        }
        commands
    }
}

/// `cargo xtask bare [--all] [--keep] [--again] [--only run|STEP]...`
pub(crate) fn main(words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(words)?;
    let home = tree::target_dir().join("bare");
    let root = home.join("machine");
    if std::env::var_os(SUPERVISED).is_some() {
        return work(&options, &root);
    }
    std::fs::create_dir_all(&home)?;
    if let Err(why) = obstacle(&home) {
        return Ok(refuse(&why));
    }
    let mut supervise = Command::new("sh");
    supervise
        .args(["-c", SUPERVISE, "bare"])
        .arg(&root)
        .arg(std::env::current_exe()?)
        .arg("bare")
        .args(words);
    supervise.env(SUPERVISED, "1").env(KEEP, if options.keep { "1" } else { "" });
    // The child has printed what went wrong.
    let status = supervise.status().context("cannot run `sh`")?;
    Ok(ExitCode::from(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1)))
}

/// Returns an error if this machine cannot make another one.
fn obstacle(home: &Path) -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("this needs the namespaces of Linux");
    }
    if !install::is_root() {
        bail!("chroot and mount need root (run it as root)");
    }
    host::source()?;
    Toolchain::find()?;
    if let Err(missing) = install::programs(&TOOLS) {
        bail!("{missing}");
    }
    let trial = home.join("trial");
    let tried = run::read(system::apart().args(["sh", "-c", TRY, "bare"]).arg(&trial));
    let _ = std::fs::remove_dir_all(&trial);
    if let Err(why) = tried {
        // The command is as long as a page.
        let why = format!("{why:#}");
        bail!("mount, mknod or chroot fails: {}", why.lines().last().unwrap_or_default());
    }
    Ok(())
}

fn refuse(why: &anyhow::Error) -> ExitCode {
    let why = format!("{why:#}").replace('\n', "; ");
    eprintln!("xtask: cannot make a bare machine: {why}");
    ExitCode::from(NO_MACHINE)
}

/// Makes the machine, runs the commands, and prints the cost of each part.
fn work(options: &Options, root: &Path) -> Result<ExitCode> {
    let mut machine = Machine {
        root: root.to_owned(),
        toolchain: Toolchain::find()?,
        parts: Vec::new(),
        report: Report::default(),
    };
    if let Err(why) = machine.make(options) {
        return Ok(refuse(&why));
    }
    let commit = run::read(git().args(["rev-parse", "HEAD"]))?;
    let done = machine.run_commands(options);
    print!("\n{}", results::table(&machine.parts));
    let line = results::line(commit.trim(), done.is_ok(), &machine.parts)?;
    results::append(&machine.log("results"), &line)?;
    if !machine.report.steps.is_empty() {
        print!("{}\n{}", machine.report.shown(), machine.report.skipped());
    }
    done.map(|()| ExitCode::SUCCESS)
}

/// A Debian in a directory.
struct Machine {
    root: PathBuf,
    toolchain: Toolchain,
    parts: Vec<Part>,
    /// The closing lines that the commands printed.
    report: Report,
}

impl Machine {
    fn make(&mut self, options: &Options) -> Result<()> {
        if options.again && self.root.join(CLONE).exists() {
            println!("bare: uses the machine that --keep left; it is no longer pristine");
            return Ok(());
        }
        self.part("Debian", |machine| machine.debootstrap())
    }

    fn run_commands(&mut self, options: &Options) -> Result<()> {
        self.part("clone", |machine| machine.clone_head())?;
        for (name, line) in options.commands() {
            println!("\nbare: $ {line}");
            self.part(name, |machine| {
                let mut cmd = machine.inside(&format!("cd /{CLONE} && {line}"));
                let (status, output) = run::capture(&mut cmd, &machine.log(name))?;
                machine.report.add_output(&output);
                ensure!(status.success(), "`{line}` failed on a bare machine ({status})");
                Ok(())
            })?;
        }
        // A step that installs nothing is found here, where everything may be installed.
        let absent = self.report.left_out.iter().filter(|line| line.contains(INSTALLABLE));
        match absent.count() {
            0 => Ok(()),
            count => {
                bail!("{count} checks need a package that no step has installed:\n{}", self.report.skipped())
            }
        }
    }

    /// Returns a file for what is printed, which stays.
    fn log(&self, name: &str) -> PathBuf {
        self.root.with_file_name(format!("{}.log", name.replace(' ', "-")))
    }

    fn part<T>(&mut self, name: &str, act: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let begin = Instant::now();
        let before = self.disk_bytes();
        let done = act(self);
        let seconds = begin.elapsed().as_secs_f64();
        let name = if done.is_ok() { name.to_owned() } else { format!("{name} (failed)") };
        let part = Part { name, seconds, bytes: self.disk_bytes() - before };
        println!("bare: {}", part.costs());
        self.parts.push(part);
        done
    }

    /// Installs the smallest Debian with the toolchain.
    fn debootstrap(&self) -> Result<()> {
        system::install(&self.root, &NEEDED, &self.log("debootstrap"))?;
        self.toolchain.prepare(&self.root)
    }

    /// Clones HEAD, as a newcomer would, from a bundle.
    fn clone_head(&self) -> Result<()> {
        let bundle = self.root.join(BUNDLE);
        run::read(git().args(["bundle", "create", "--quiet"]).arg(&bundle).arg("HEAD"))?;
        let line = if self.root.join(CLONE).exists() {
            format!("cd /{CLONE} && git fetch -q /{BUNDLE} HEAD && git reset -q --hard FETCH_HEAD")
        } else {
            format!("git clone -q -c advice.detachedHead=false /{BUNDLE} /{CLONE}")
        };
        self.run(&line)?;
        std::fs::remove_file(bundle)?;
        Ok(())
    }

    /// Runs a shell line inside, with our streams.
    fn run(&self, line: &str) -> Result<()> {
        let status = self.inside(line).status().context("cannot run `setpriv`")?;
        if !status.success() {
            bail!("`{line}` failed ({status})");
        }
        Ok(())
    }

    /// A shell line inside, as root, with little more in the environment than a login has.
    fn inside(&self, line: &str) -> Command {
        let Toolchain { from, place, programs, .. } = &self.toolchain;
        let mut cmd = system::apart();
        cmd.args(["sh", "-c", &format!("{}{ENTER}", system::MOUNT), "bare"]);
        cmd.arg(&self.root).arg(from).arg(place);
        cmd.args(["/usr/bin/env", "-i", "HOME=/root", "USER=root", "LANG=C.UTF-8"]);
        cmd.arg(format!("PATH=/{programs}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
        cmd.args(self.toolchain.variable()).args(host::variables());
        cmd.args(["/bin/sh", "-c", r#"sh -c "$1"; exit $?"#, "init", line]);
        cmd
    }

    /// Returns how many bytes the directory takes on disk.
    fn disk_bytes(&self) -> i64 {
        let output = run::read(run::command("du").args(["-s", "-x", "-B1"]).arg(&self.root));
        output.ok().and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }
}

/// Returns git, which also reads a clone of another user: CI may own the directory, and root runs this.
fn git() -> Command {
    let mut cmd = run::command("git");
    cmd.args(["-c", "safe.directory=*"]);
    cmd
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Options::parse(&words).unwrap().commands().into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn only_chooses_commands_and_steps() {
        assert_eq!(commands(&["--keep"]), [FIRST, SECOND]);
        assert_eq!(commands(&["--all"]), [FIRST, SECOND, REST]);
        assert_eq!(commands(&["--only", "run"]), [FIRST]);
        assert_eq!(commands(&["--only=doc", "--only", "fmt"]), ["cargo xtask test --only doc --only fmt"]);
        assert_eq!(commands(&["--only=run", "--only=fmt"]), [FIRST, "cargo xtask test --only fmt"]);
        assert!(Options::parse(&["--only".to_owned(), "nothing".to_owned()]).is_err());
    }

    #[test]
    fn ci_runs_the_commands_of_a_bare_machine_elsewhere_too() {
        let script = std::fs::read_to_string(tree::root().join(".ci/run")).unwrap();
        for line in ["cargo xtask bare --all ", FIRST, "cargo xtask test --all"] {
            assert!(script.contains(line), ".ci/run does not have `{line}`");
        }
        assert!(script.contains(&format!("-eq {NO_MACHINE} ]")));
    }

    #[test]
    fn both_commands_are_those_of_the_readme() {
        let readme = std::fs::read_to_string(tree::root().join("README.md")).unwrap();
        for line in [FIRST, SECOND] {
            assert!(readme.contains(&format!("\n    $ {line}\n")), "README.md does not have `{line}`");
        }
    }
}
