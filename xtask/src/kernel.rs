//! `cargo xtask kernel`: the tests that depend on the kernel, on the one of this Debian release, in a
//! virtual machine.
//!
//! The kernel of the machine at hand may be much newer than those of users, and code for older kernels
//! then never runs. The machine has no disk: its root file system is an archive in memory with programs
//! of this machine, and with the test programs at the paths where cargo has built them.

mod root;

use crate::artifacts::{self, Program};
use crate::test::report::closing_lines;
use crate::{install, run, tree};
use anyhow::{Context, Result, bail, ensure};
use lexopt::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package that depends on the newest kernel of the release. It is for virtual machines: small, and
/// without drivers.
const NEWEST: &str = "linux-image-cloud-amd64";

/// The programs of this machine that run it, or that are copied into it. The tests skip what they lack.
const TOOLS: [install::Program; 5] = [
    install::Program { name: "qemu-system-x86_64", package: "qemu-system-x86" },
    install::Program { name: "cpio", package: "cpio" },
    install::Program { name: "ip", package: "iproute2" },
    install::PS,
    install::TMUX,
];

/// The tests of `tests/it` that run without an argument, and what they ask the kernel for. Most of the other
/// ones compare texts, records and the order of output. `clock` measures times, which an emulator lengthens;
/// `seccomp` refuses calls, which is the same on every kernel, and runs many of these tests again.
const TESTS: [(&str, &str); 17] = [
    ("guard::", "subreapers, death signals and pidfds of processes that are not children"),
    ("guardian::", "SO_PASSPIDFD, and signals to the group of a pidfd"),
    ("spawn::", "clone3 and its flags, close_range"),
    ("child::", "waitid with pidfds; in `one_child`, that several threads wait for"),
    ("capture::", "preadv2 with RWF_NOWAIT from pipes"),
    ("pipeline::", "processes of one group"),
    ("set::", "reads, waits and kills of all kinds"),
    ("poller::", "epoll, io_uring and timers"),
    ("reports::", "the status that a pidfd keeps"),
    ("regression::", "a test for each bug"),
    ("doctor::", "the mechanisms that are reported"),
    ("foreign_proc::", "a /proc of other processes"),
    ("cli::shutdown::", "signals to groups and to what has left them"),
    ("cli::suspend", "stopped and continued processes"),
    ("cli::terminal::", "the foreground group of a terminal"),
    ("cli::daemons::", "processes that jobs leave behind"),
    ("cli::descriptors::", "close_range, and limits"),
];

/// The longest time for which one test program may run, and the whole machine.
const PROGRAM_SECONDS: &str = "3600";
const MACHINE_SECONDS: &str = "7500";
/// The longest boot on KVM. Where that does not work, the guest may make no progress.
const BOOT_SECONDS: &str = "15";

/// The beginning of the machine's last line, before the exit status of the tests.
const END: &str = "kernel: the tests ended with exit status ";

/// `cargo xtask kernel [-- TEST...]`
pub(crate) fn main(words: &[String]) -> Result<()> {
    let mut tests = Vec::new();
    let mut words = lexopt::Parser::from_args(words);
    while let Some(word) = words.next()? {
        match word {
            // After `--`.
            Value(test) => tests.push(test.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if let Err(missing) = ready() {
        bail!("{missing}");
    }
    let home = tree::target_dir().join("kernel");
    fs::create_dir_all(&home)?;
    let kernel = kernel(&home)?;
    let programs = build()?;
    let archive = home.join("root.cpio");
    root::write(&archive, &programs, &script(&programs, &tests))?;
    let accelerator = accelerator(&kernel);
    eprintln!("kernel: {} on {accelerator}", kernel.display());
    let mut machine = machine(MACHINE_SECONDS, accelerator, &kernel, &home.join("console"));
    // The kernel reads the archive, and unpacks it into a file system that takes half of the memory at most.
    let megabytes = 1024 + 4 * (fs::metadata(&archive)?.len() >> 20);
    machine.args(["-m", &megabytes.to_string(), "-initrd"]).arg(&archive);
    let (status, output) = run::capture(&mut machine, &home.join("output"))?;
    print!("\n{}", closing_lines(&output).iter().map(|line| format!("{line}\n")).collect::<String>());
    let ended = output.lines().find_map(|line| line.strip_prefix(END));
    let ended = ended.with_context(|| {
        format!(
            "the machine ended before its tests ({status}; messages of its kernel: target/kernel/console)"
        )
    })?;
    ensure!(ended == "0", "tests failed on this kernel (output: target/kernel/output)");
    Ok(())
}

fn ready() -> Result<(), install::Missing> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        return Err("the kernel is one for Linux on x86-64; hint: run it there".into());
    }
    install::programs(&TOOLS)
}

/// Returns the file of the kernel, which is downloaded once: remove `target/kernel` for a newer one.
fn kernel(home: &Path) -> Result<PathBuf> {
    let unpacked = home.join("package");
    let file = || {
        let files = fs::read_dir(unpacked.join("boot")).ok()?;
        let mut names = files.flatten().map(|entry| entry.path());
        names.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz")))
    };
    if let Some(known) = file() {
        return Ok(known);
    }
    let package = install::download_dependency(NEWEST, "linux-image-", home).map_err(anyhow::Error::msg)?;
    // Under its name it is complete.
    let unfinished = home.join("package.unfinished");
    run::run(run::command("dpkg-deb").arg("--extract").arg(&package).arg(&unfinished))?;
    fs::rename(unfinished, &unpacked)?;
    fs::remove_file(&package)?;
    file().with_context(|| format!("{NEWEST} has no kernel"))
}

/// Builds the unit tests of the library and the integration tests, with the programs that these start.
fn build() -> Result<Vec<Program>> {
    let mut cargo = run::cargo();
    cargo.args(["test", "--no-run", "-p", "minder", "-p", "minder-tests", "--lib", "--test", "it"]);
    let all = artifacts::programs(&mut cargo)?;
    let count = all.iter().filter(|program| program.is_test).count();
    ensure!(count == 2, "cargo names {count} test programs; expected: the unit tests of minder, and `it`");
    Ok(all)
}

/// Returns the shell lines that run the tests in the machine.
fn script(programs: &[Program], tests: &[String]) -> String {
    let mut lines = String::from("status=0\n");
    let mut add = |line: &str| lines.extend([line, "\n"]);
    for (name, value) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MINDER_"))
    {
        add(&format!("export {}={}", name.to_string_lossy(), run::quote(&value)));
    }
    add(&format!("export INSTA_WORKSPACE_ROOT={}", run::quote(tree::root().as_os_str())));
    if let Some(minder) = programs.iter().find(|program| program.path.ends_with("minder-dup")) {
        add(&format!("uname -sr; {} doctor", run::quote(minder.path.as_os_str())));
    }
    let it = tree::root().join("tests");
    for program in programs.iter().filter(|program| program.is_test) {
        // The unit tests of the library run as a whole.
        let filters: Vec<&str> = match tests {
            [] if program.dir == it => TESTS.iter().map(|(name, _)| *name).collect(),
            tests => tests.iter().map(String::as_str).collect(),
        };
        let filters: String = filters.iter().map(|name| format!(" {}", run::quote(name.as_ref()))).collect();
        let [dir, path] = [&program.dir, &program.path].map(|path| run::quote(path.as_os_str()));
        add(&format!("cd {dir} && timeout -k 5 {PROGRAM_SECONDS} {path}{filters} || status=$?"));
    }
    add(&format!("echo '{END}'$status"));
    lines
}

/// Returns the accelerator that works here: KVM if the kernel boots on it as far as it does without a root
/// file system, otherwise the emulator.
fn accelerator(kernel: &Path) -> &'static str {
    let mut trial = machine(BOOT_SECONDS, "kvm", kernel, Path::new("/dev/null"));
    if run::succeeds(trial.args(["-m", "512"])) { "kvm" } else { "tcg" }
}

/// Returns a virtual machine of two processors, which is killed after this time, and with this program. The
/// messages of its kernel go to `console`, the output of its programs to standard output. It ends if its
/// kernel does.
fn machine(seconds: &str, accelerator: &str, kernel: &Path, console: &Path) -> Command {
    let mut cmd = run::command("setpriv");
    // In the foreground, the machine also gets what Ctrl-C sends.
    cmd.args(["--pdeathsig", "TERM", "timeout", "--foreground", "-k", "5", seconds, "qemu-system-x86_64"]);
    cmd.args(["-accel", accelerator, "-cpu", "max", "-smp", "2", "-nodefaults", "-display", "none"]);
    cmd.args(["-no-reboot", "-append", "console=ttyS0 panic=-1", "-kernel"]).arg(kernel);
    let mut file = std::ffi::OsString::from("file:");
    file.push(console);
    cmd.arg("-serial").arg(file).args(["-serial", "stdio"]).stdin(Stdio::null());
    cmd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_runs_all_unit_tests_and_a_choice_of_the_others() {
        let it = tree::root().join("tests");
        let program = |path: &str, dir: &Path| Program { path: path.into(), dir: dir.into(), is_test: true };
        let programs = [program("/unit", Path::new("/a b")), program("/it", &it)];
        let line = |tests: &[&str], number: usize| {
            let tests: Vec<String> = tests.iter().map(ToString::to_string).collect();
            let script = script(&programs, &tests);
            let run = script.lines().filter(|line| line.starts_with("cd "));
            run.map(str::to_owned).nth(number).unwrap()
        };
        assert_eq!(line(&[], 0), "cd '/a b' && timeout -k 5 3600 /unit || status=$?");
        assert!(line(&[], 1).contains(" && timeout -k 5 3600 /it guard:: guardian:: "));
        assert!(line(&["x y"], 0).ends_with(" /unit 'x y' || status=$?"));
        assert!(line(&["x y"], 1).ends_with(" /it 'x y' || status=$?"));
    }

    #[test]
    fn modules_of_the_table_exist() {
        for (name, _) in TESTS {
            let path = tree::root().join("tests/it").join(name.trim_end_matches("::").replace("::", "/"));
            let parent = path.parent().unwrap();
            let begin = path.file_name().unwrap().to_string_lossy().into_owned();
            let files = fs::read_dir(parent).unwrap().flatten();
            let found = files.filter(|file| file.file_name().to_string_lossy().starts_with(&begin)).count();
            assert!(found > 0, "no module begins with {name}");
        }
    }
}
