//! `cargo xtask test`: the checks of the tree, and the second command of a newcomer.
//!
//! Without options it checks the product on this system, within ten minutes of two cores and from
//! nothing. `--rest` makes the checks that are left, and `--all` makes both.
//!
//! What is missing is installed where that is allowed; otherwise the step is skipped, and the last
//! lines name it with the reason and the hint.
//!
//! The steps have two sides that run at the same time, since the tests of either wait more than they
//! compute: this system, and the other systems. Each side ends with its first step that fails. The
//! output of the first side is shown as it arrives, and that of the second one when it has finished.

mod options;
pub(crate) mod report;

use crate::part::Part;
use crate::{api, c, cost, emacs, install, python, ruby, run, targets, tidy, toolchain, tree, wine};
use anyhow::{Context, Result, bail};
use options::Options;
use report::{Finished, Report};
use std::process::Command;
use std::time::Instant;

/// The checks that a step left out, one line each.
type LeftOut = Vec<install::Missing>;

/// The result of a step: the checks that it left out, and the closing lines of its test programs.
#[derive(Default)]
struct Done {
    left_out: LeftOut,
    closing: Vec<String>,
}

impl From<LeftOut> for Done {
    fn from(left_out: LeftOut) -> Self {
        Self { left_out, ..Self::default() }
    }
}

impl From<(LeftOut, Vec<String>)> for Done {
    fn from((left_out, closing): (LeftOut, Vec<String>)) -> Self {
        Self { left_out, closing }
    }
}

/// The sequence of steps to which a step belongs.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    /// On this system, one step after the other.
    First,
    /// Alongside the first side. These steps build into directories that the first side does not
    /// use.
    Second,
}

/// One thing that has to hold.
struct Step {
    name: &'static str,
    what: &'static str,
    side: Side,
    /// The part that has the step, or both: the step divides its checks itself.
    part: Part,
    run: fn(&Options) -> Result<Done>,
}

impl Step {
    const fn new(
        name: &'static str,
        side: Side,
        part: Part,
        what: &'static str,
        run: fn(&Options) -> Result<Done>,
    ) -> Self {
        Self { name, what, side, part, run }
    }
}

/// All steps, quick ones first. Most steps of the first side share a target directory and flags, so
/// that each reuses what the one before built.
const STEPS: [Step; 18] = [
    Step::new("fmt", Side::First, Part::Quick, "the sources are formatted", fmt),
    Step::new("tidy", Side::First, Part::Quick, "the tree keeps its own rules", tidy),
    Step::new("test", Side::First, Part::Quick, "unit, integration and documentation tests", test),
    Step::new(
        "c",
        Side::First,
        Part::All,
        "the C interface: symbols, samples; rest: header, C++, compilers, sanitizers, valgrind, installation",
        |options| Ok(c::check(options.part)?.into()),
    ),
    Step::new(
        "ruby",
        Side::First,
        Part::All,
        "the gem: tests of children and scheduler; rest: its other tests, Ruby's own, an installation",
        |options| ruby::check::check(options.part).map(Done::from),
    ),
    Step::new(
        "emacs",
        Side::First,
        Part::All,
        "the package for Emacs: tests of processes; rest: its other tests, documentation, an installation",
        |options| emacs::check::check(options.part).map(Done::from),
    ),
    Step::new(
        "python",
        Side::First,
        Part::All,
        "the package for Python: results, ends of runs; rest: its types, large outputs, the wheel",
        |options| python::check(options.part).map(Done::from),
    ),
    Step::new(
        "random",
        Side::First,
        Part::Rest,
        "random shell lines and scripts of children, with many cases",
        random,
    ),
    Step::new(
        "servers",
        Side::First,
        Part::Rest,
        "dozens of requests to language servers of other projects",
        servers,
    ),
    Step::new(
        "clippy",
        Side::First,
        Part::Rest,
        "no warning of compiler or clippy in any crate, test, example or benchmark",
        clippy,
    ),
    Step::new("doc", Side::First, Part::Rest, "the documentation builds without a warning", doc),
    Step::new(
        "api",
        Side::First,
        Part::Rest,
        "the public interface of the library is the one that is listed",
        |_| interface(api::linux),
    ),
    Step::new("loom", Side::First, Part::Rest, "no wake-up and no task is lost, in any interleaving", loom),
    Step::new(
        "memory",
        Side::First,
        Part::Rest,
        "the heap of cells accesses memory as it may, by Miri and AddressSanitizer",
        memory,
    ),
    // Last: alongside busy steps fewer events arrive together, and a job takes more system calls.
    Step::new(
        "cost",
        Side::First,
        Part::Rest,
        "system calls, instructions, memory and bytes of a release build are within their budget",
        |_| cost::check().map(Done::from),
    ),
    // The tests under Wine wait for long: the steps alongside them use that time.
    Step::new("wine", Side::Second, Part::Rest, "the Windows half runs, under Wine", windows),
    // After the tests under Wine, whose standard library it uses. By then the first side has built the
    // program that lists the items.
    Step::new(
        "api-win",
        Side::Second,
        Part::Rest,
        "the public interface differs on Windows as it is listed",
        |_| interface(api::windows),
    ),
    Step::new("targets", Side::Second, Part::Rest, "other systems compile", other_targets),
];

/// `cargo xtask test [--all|--rest] [--full] [--sequential] [--only STEP]... | --list`
pub(crate) fn main(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    if options.list {
        for step in &STEPS {
            let part = match step.part {
                Part::Quick => "default",
                Part::Rest => "rest",
                Part::All => "both",
            };
            println!("{:<8} {part:<8} {}", step.name, step.what);
        }
        return Ok(());
    }
    let start = Instant::now();
    build_once();
    let mut first = options.steps(Side::First);
    let mut second = options.steps(Side::Second);
    if options.sequential || first.is_empty() {
        first.append(&mut second);
    }
    let alongside = if second.is_empty() { None } else { Some(start_alongside(&options, &second)?) };
    let mut report = Report::default();
    let mut failure = run_steps(&first, &options, &mut report).err();
    if let Some(alongside) = alongside {
        println!("\n=== the other systems: output of {}", names(&second));
        let (status, output) = alongside.finish()?;
        report.add_output(&output);
        if status.success() {
            print!("{}", report::without_summary(&output));
        } else {
            print!("{output}");
            let second_failure =
                anyhow::anyhow!("one of the steps {} failed ({status}); its output is above", names(&second));
            failure = Some(failure.map_or(second_failure, |first| first.context("both sides failed")));
        }
    }
    print!("{}", report.shown());
    if let Some(failure) = failure {
        return Err(failure);
    }
    println!("\nxtask test: passed, {:.0} s", start.elapsed().as_secs_f64());
    print!("{}", report.skipped());
    if options.part == Part::Quick {
        println!("not part of it: {} (cargo xtask test --rest)", names(&rest()));
    }
    Ok(())
}

/// Returns the steps that only `--rest` has.
fn rest() -> Vec<&'static Step> {
    STEPS.iter().filter(|step| !step.part.has_quick()).collect()
}

/// Makes cargo keep nothing for later builds of the same crate, if there will be none: in CI, and in a
/// new clone. That takes a fifth of the processor time and half of the disk. A tree in which cargo
/// keeps something is one in which a contributor works.
fn build_once() {
    const VARIABLE: &str = "CARGO_INCREMENTAL";
    let kept = std::fs::read_dir(tree::target_dir().join("debug/incremental"));
    // `cargo xtask` has built this program.
    let is_other = |name: &std::ffi::OsStr| !name.to_string_lossy().starts_with("xtask-");
    let is_used = kept.into_iter().flatten().flatten().any(|entry| is_other(&entry.file_name()));
    let is_ci = std::env::var_os("CI").is_some();
    if std::env::var_os(VARIABLE).is_none() && (is_ci || !is_used) {
        run::set_for_cargo(VARIABLE, "0");
    }
}

/// Runs steps one after the other, up to the first that fails.
fn run_steps(steps: &[&Step], options: &Options, report: &mut Report) -> Result<()> {
    for step in steps {
        let begin = Instant::now();
        let cpu_begin = run::cpu_seconds();
        println!("\n=== {}: {}", step.name, step.what);
        let hint = || format!("step `{}` failed (to repeat it: cargo xtask test --only {0})", step.name);
        let done = (step.run)(options).with_context(hint)?;
        let finished = Finished {
            name: step.name.to_string(),
            is_whole: done.left_out.is_empty(),
            seconds: begin.elapsed().as_secs_f64(),
            cpu: cpu_begin.zip(run::cpu_seconds()).map(|(begin, end)| end - begin),
        };
        println!("{}", finished.line());
        report.steps.push(finished);
        report.closing.extend(done.closing.into_iter().map(|line| format!("{}: {line}", step.name)));
        report.left_out.extend(done.left_out.into_iter().map(|why| format!("skipped: {}: {why}", step.name)));
    }
    Ok(())
}

/// Starts the second side: this program again, with its output in a file.
fn start_alongside(options: &Options, steps: &[&Step]) -> Result<run::Background> {
    let this = std::env::current_exe().context("cannot find this program")?;
    let mut cmd = if run::find("nice").is_some() {
        // The tests of the first side have deadlines.
        let mut nice = run::command("nice");
        nice.args(["-n", "5"]).arg(this);
        nice
    } else {
        run::command(this)
    };
    // `run::command` hides what cargo says of this program, and the program needs that again.
    if let Some(dir) = std::env::var_os("CARGO_MANIFEST_DIR") {
        cmd.env("CARGO_MANIFEST_DIR", dir);
    }
    run::prepare_for_cargo(&mut cmd);
    cmd.arg("test").args(options.words(steps));
    println!("=== {}: alongside the other steps; the output follows theirs", names(steps));
    run::Background::start(&mut cmd, &tree::target_dir().join("test-alongside.log"))
}

fn names(steps: &[&Step]) -> String {
    steps.iter().map(|step| step.name).collect::<Vec<_>>().join(", ")
}

/// Checks that a step has this name.
pub(crate) fn step(name: &str) -> Result<()> {
    if STEPS.iter().any(|step| step.name == name) {
        return Ok(());
    }
    bail!("unknown step `{name}`; hint: cargo xtask test --list")
}

/// Features that are off by default, and are checked with everything else.
const OPTIONAL: [&str; 2] = ["--features", "minder-cells/serde"];

/// The programs of `benches/peers` that compare minder with other libraries. Each is a separate
/// workspace, which keeps those libraries out of our lock file.
const PEER_WORKSPACES: [&str; 4] = ["loops", "library", "clock", "cells"];

/// Returns a cargo command for one of [`PEER_WORKSPACES`].
fn in_workspace(subcommand: &str, name: &str) -> std::process::Command {
    let mut cmd = run::cargo();
    cmd.args([subcommand, "--manifest-path", &format!("benches/peers/{name}/Cargo.toml")]);
    cmd
}

/// Checks that a subcommand of cargo runs; installs it with rustup if it does not.
fn component(subcommand: &str, component: &str) -> Result<(), install::Missing> {
    let runs = || run::succeeds(run::cargo().args([subcommand, "--version"]));
    if runs() {
        return Ok(());
    }
    install::rustup(&["component", "add", component])?;
    if runs() {
        Ok(())
    } else {
        Err(format!("{component} does not run; hint: rustup component add {component}"))
    }
}

fn fmt(_: &Options) -> Result<Done> {
    if let Err(missing) = component("fmt", "rustfmt") {
        return Ok(vec![missing].into());
    }
    run::run(run::cargo().args(["fmt", "--all", "--", "--check", "-l"]))?;
    for name in PEER_WORKSPACES {
        run::run(in_workspace("fmt", name).args(["--", "--check", "-l"]))?;
    }
    Ok(Done::default())
}

fn clippy(_: &Options) -> Result<Done> {
    if let Err(missing) = component("clippy", "clippy") {
        return Ok(vec![missing].into());
    }
    let mut cmd = run::cargo();
    cmd.args(["clippy", "--workspace", "--all-targets"]).args(OPTIONAL);
    cmd.args(["--", "-D", "warnings"]);
    run::run(&mut cmd)?;
    for name in PEER_WORKSPACES {
        let mut cmd = in_workspace("clippy", name);
        cmd.arg("--target-dir").arg(tree::target_dir().join("peers").join(name));
        run::run(cmd.args(["--", "-D", "warnings"]))?;
    }
    Ok(Done::default())
}

fn tidy(_: &Options) -> Result<Done> {
    tidy::run()?;
    Ok(Done::default())
}

/// Programs that tests use: GNU parallel, whose command line `minder` accepts, and the one by which it sends
/// files to other machines; a terminal and a pager;
/// readers of manual pages, completions and databases; counters of instructions and processes; the
/// shells whose quoting is known, and one that hosts may have; another clock. A Debian without any of them
/// has the other programs.
const PEERS: [install::Program; 17] = [
    install::Program { name: "parallel", package: "parallel" },
    install::Program { name: "rsync", package: "rsync" },
    install::Program { name: "make", package: "make" },
    install::Program { name: "less", package: "less" },
    install::PS,
    install::Program { name: "valgrind", package: "valgrind" },
    install::Program { name: "python3", package: "python3" },
    install::TMUX,
    install::Program { name: "man", package: "man-db" },
    install::Program { name: "bash", package: "bash" },
    install::Program { name: "zsh", package: "zsh" },
    install::Program { name: "fish", package: "fish" },
    install::Program { name: "mksh", package: "mksh" },
    install::Program { name: "ksh93", package: "ksh93u+m" },
    install::Program { name: "busybox", package: "busybox" },
    install::Program { name: "tcsh", package: "tcsh" },
    install::Program { name: "faketime", package: "faketime" },
];

const ASAN_TARGET: &str = "x86_64-unknown-linux-gnu";

/// Language servers, which the example of minder-cells starts by the dozen. The step `emacs` uses clangd,
/// too; it needs 280 MB. pylsp needs 7 MB in addition to Python.
const SERVERS: [install::Program; 2] = [
    install::Program { name: "clangd", package: "clangd" },
    install::Program { name: "pylsp", package: "python3-pylsp" },
];

/// The tests with these servers, which are a separate step.
const WITH_SERVERS: &str = "language_servers::real_servers";

/// The number of tests that run at once for each processor. Most of them wait for their children
/// longer than they compute: with one, the processors are idle for a third of the time.
const TESTS_PER_PROCESSOR: usize = 2;

/// The variable of the test programs with the number of tests that run at once.
pub(crate) const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// Returns `cargo test` of the workspace, built with the same features by each step. An argument of the
/// test programs may follow.
pub(crate) fn cargo_test() -> Command {
    let mut cmd = run::with_default_signals(run::cargo().get_program());
    run::prepare_for_cargo(&mut cmd);
    if std::env::var_os(TEST_THREADS).is_none() {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        cmd.env(TEST_THREADS, (processors * TESTS_PER_PROCESSOR).to_string());
    }
    cmd.args(["test", "--workspace"]).args(OPTIONAL);
    cmd
}

/// Runs test programs, which write down what they skip. Returns that, and their closing lines without those
/// of programs that have none of the tests.
pub(crate) fn run_tests(cmd: &mut Command, name: &str) -> Result<(LeftOut, Vec<String>)> {
    let skipped = tree::target_dir().join(format!("{name}.skipped"));
    std::fs::create_dir_all(tree::target_dir())?;
    std::fs::write(&skipped, "")?;
    cmd.env("MINDER_SKIPPED", &skipped);
    let output = run::run_captured(cmd, &tree::target_dir().join(format!("{name}.log")))?;
    let skips = std::fs::read_to_string(&skipped)?;
    let mut lines: Vec<&str> = skips.lines().map(|line| line.trim_start_matches("skipped: ")).collect();
    lines.sort_unstable();
    lines.dedup();
    let left_out = lines.into_iter().map(str::to_owned).collect();
    let mut closing = report::closing_lines(&output);
    closing.retain(|line| !line.contains(" 0 passed; 0 failed"));
    Ok((left_out, closing))
}

/// No `cargo build` comes before: this builds all libraries, test programs, examples, and the programs
/// that the tests run. The steps after it build the other programs.
fn test(options: &Options) -> Result<Done> {
    let mut left_out: LeftOut = install::programs(&PEERS).err().into_iter().collect();
    left_out.extend(install::ssh().err());
    // For `--csv` of GNU parallel.
    if !run::succeeds(run::command("perl").args(["-MText::CSV", "-e1"])) {
        left_out.extend(install::apt(&["libtext-csv-perl"]).err());
    }
    let mut cmd = cargo_test();
    // The step `cost` counts.
    cmd.env("MINDER_COST", "");
    if options.full {
        cmd.env("MINDER_ORACLE", "full");
    }
    let (mut skipped, closing) = run_tests(cmd.args(["--", "--skip", WITH_SERVERS]), "test")?;
    left_out.append(&mut skipped);
    Ok(Done { left_out, closing })
}

/// The random tests again, with many cases.
fn random(_: &Options) -> Result<Done> {
    let mut cmd = cargo_test();
    cmd.env("MINDER_LONG", "1").args(["--test", "it", "--", "template::", "scripts::"]);
    run_tests(&mut cmd, "random").map(Done::from)
}

fn servers(_: &Options) -> Result<Done> {
    let mut left_out: LeftOut = install::programs(&SERVERS).err().into_iter().collect();
    let mut cmd = cargo_test();
    let (mut skipped, closing) = run_tests(cmd.args(["--test", "it", "--", WITH_SERVERS]), "servers")?;
    left_out.append(&mut skipped);
    Ok(Done { left_out, closing })
}

/// Libraries only: the program and the library share the name `minder`, and would overwrite each
/// other's pages.
fn doc(_: &Options) -> Result<Done> {
    let mut cmd = run::cargo();
    cmd.args(["doc", "--workspace", "--no-deps", "--lib"]).args(OPTIONAL).env("RUSTDOCFLAGS", "-D warnings");
    run::run(&mut cmd)?;
    Ok(Done::default())
}

fn interface(check: fn(api::Action) -> Result<api::Outcome>) -> Result<Done> {
    let left_out: LeftOut = check(api::Action::Compare)?.err().into_iter().collect();
    Ok(left_out.into())
}

/// The flag makes cargo build everything again, so it builds for speed of the build. More than four
/// preemptions of a run find nothing more in a model of three threads, and take 20 s instead of one.
fn loom(_: &Options) -> Result<Done> {
    let mut cmd = run::cargo();
    cmd.args(["test", "-p", "minder", "--lib", "--release", "--target-dir"])
        .arg(tree::target_dir().join("loom"));
    cmd.args(["--", "sys::wait::wake_flag", "jobs::executor"])
        .env("RUSTFLAGS", "--cfg loom")
        .env("LOOM_MAX_PREEMPTIONS", "4");
    cmd.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    cmd.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1").env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    let output = run::run_captured(&mut cmd, &tree::target_dir().join("loom.log"))?;
    Ok(Done { closing: report::closing_lines(&output), ..Done::default() })
}

/// Both need the nightly compiler. Miri interprets, which takes minutes for larger tests, and it takes an
/// allocation for the reserved memory; AddressSanitizer sees the real calls.
fn memory(_: &Options) -> Result<Done> {
    let mut done = Done::default();
    let mut check = |ready: Result<(), install::Missing>, cmd: &mut Command, name: &str| -> Result<()> {
        if let Err(missing) = ready {
            done.left_out.push(missing);
            return Ok(());
        }
        cmd.args(["-p", "minder-cells", "--lib", "--target-dir"]).arg(tree::target_dir().join(name));
        let output = run::run_captured(cmd, &tree::target_dir().join(format!("{name}.log")))?;
        done.closing.extend(report::closing_lines(&output));
        Ok(())
    };
    let mut miri = toolchain::cargo("nightly");
    check(toolchain::component("nightly", "miri", "miri"), miri.args(["miri", "test"]), "miri")?;
    let mut asan = toolchain::cargo("nightly");
    // With a target, the flags are not those of build scripts.
    asan.args(["test", "--test", "it", "--target", ASAN_TARGET])
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    let ready = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        toolchain::ready("nightly")
    } else {
        Err(format!("AddressSanitizer is used on {ASAN_TARGET} only; hint: run it there"))
    };
    check(ready, &mut asan, "asan")?;
    Ok(done)
}

fn other_targets(options: &Options) -> Result<Done> {
    targets::in_test(options.full).map(Done::from)
}

fn windows(options: &Options) -> Result<Done> {
    if let Err(missing) = wine::ready() {
        return Ok(vec![missing].into());
    }
    let extent = if options.full { wine::Extent::All } else { wine::Extent::Differing };
    let output = wine::run_tests(extent)?;
    let mut left_out = LeftOut::new();
    if !options.full {
        left_out.push("tests of code that is the same on every system are left to --full".to_string());
    }
    Ok(Done { left_out, closing: report::closing_lines(&output) })
}
