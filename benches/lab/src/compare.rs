//! `cargo xtask compare [BASE]`: what this tree costs beside another commit, in paired rounds.
//!
//! Both are built with their release profiles. The base is built in a worktree below `target/compare`,
//! once for each commit.

mod count;

use super::meter;
use super::peers::Peers;
use super::samples::{Contestant, Numbers, Samples};
use super::table::markdown;
use super::{Asked, Bench};
use anyhow::{Context, Result, bail};
use minder_bench::Spread;
use std::path::{Path, PathBuf};
use xtask::{run, tree};

const RAW: Contestant = Contestant { name: "raw", title: "raw vfork" };
const BASE: Contestant = Contestant { name: "base", title: "base" };
const THIS: Contestant = Contestant { name: "this", title: "this" };

/// What is compared.
struct Question {
    name: &'static str,
    /// The most rounds that tell something new: counts vary little.
    rounds: usize,
    jobs: usize,
    /// Whether the loop of `benches/peers/rawvfork.c` does the same.
    has_floor: bool,
    /// The numbers of a sample, as they are called in it and in the table, with their decimals.
    numbers: &'static [(&'static str, &'static str, usize)],
    sample: fn(&Setting<'_>, &Path) -> Result<Numbers>,
}

/// What a sample needs beside the program.
struct Setting<'a> {
    peers: &'a Peers,
    jobs: usize,
}

const TIMES: &[(&str, &str, usize)] = &[("cpu_us", "CPU us per job", 1), ("wall_us", "wall us per job", 1)];

const START: &[(&str, &str, usize)] = &[("cpu_us", "CPU us", 0), ("wall_us", "wall us", 0)];

const MEMORY: &[(&str, &str, usize)] = &[
    ("private_runner", "private KiB of the runner", 0),
    ("peak_front", "peak KiB of the front", 0),
    ("peak_runner", "peak KiB of the runner", 0),
];

const QUESTIONS: [Question; 9] = [
    Question::timed("tiny", 10_000, |setting, program| timed(setting, program, &[], &setting.tiny())),
    Question::timed("tiny-no-record", 10_000, |setting, program| {
        timed(setting, program, &["--no-record"], &setting.tiny())
    }),
    Question::timed("true", 2_000, |setting, program| timed(setting, program, &[], "/bin/true")),
    Question::counted("one", usize::MAX, 1, START, |setting, program| {
        timed(setting, program, &[], &setting.tiny())
    }),
    Question::counted("version", usize::MAX, 0, START, |setting, program| {
        cost(setting, &[program.display().to_string(), "--version".into()])
    }),
    Question::counted("calls", 3, 2_000, &[("calls", "system calls per job", 2)], count::calls),
    Question::counted(
        "instructions",
        3,
        500,
        &[("instructions", "instructions per job", 0)],
        count::instructions,
    ),
    Question::counted("memory", usize::MAX, 2_000, MEMORY, count::memory),
    Question::counted("size", 1, 0, &[("bytes", "bytes of the program", 0)], |_, program| {
        Ok(vec![("bytes".into(), std::fs::metadata(program)?.len() as f64)])
    }),
];

type Sample = fn(&Setting<'_>, &Path) -> Result<Numbers>;

impl Question {
    const fn timed(name: &'static str, jobs: usize, sample: Sample) -> Self {
        Self { name, rounds: usize::MAX, jobs, has_floor: true, numbers: TIMES, sample }
    }

    const fn counted(
        name: &'static str,
        rounds: usize,
        jobs: usize,
        numbers: &'static [(&'static str, &'static str, usize)],
        sample: Sample,
    ) -> Self {
        Self { name, rounds, jobs, has_floor: false, numbers, sample }
    }
}

impl Setting<'_> {
    /// Returns the path of the smallest child.
    fn tiny(&self) -> String {
        self.peers.built("tiny")
    }

    /// Returns a file with a line for each job.
    fn input(&self, jobs: usize) -> Result<PathBuf> {
        self.peers.input((0..jobs).map(|job| job.to_string()))
    }

    /// Returns the words that run a child for each line, eight at once. The raw loop takes no flags.
    fn words(&self, program: &Path, flags: &[&str], child: &str) -> Vec<String> {
        let program = program.display().to_string();
        if program == self.peers.built("rawvfork") {
            return vec![program, "-j8".into(), child.into()];
        }
        let head = [program.as_str(), "run", "-j8"];
        [&head, flags, &[child, "{}"]].concat().into_iter().map(String::from).collect()
    }
}

/// `cargo xtask compare [BASE] [--rounds N] [--quick] [--only NAME]...`
pub(crate) fn main(args: &[String]) -> Result<()> {
    let (base, options) = match args.split_first() {
        Some((first, rest)) if !first.starts_with('-') => (first.clone(), rest),
        _ => (usual_base()?, args),
    };
    let asked = Asked::parse("compare", &QUESTIONS.map(|question| question.name), options)?;
    let commit =
        run::read(run::command("git").args(["rev-parse", "--verify", &format!("{base}^{{commit}}")]))
            .with_context(|| format!("cannot find the commit `{base}`"))?;
    let base_program = build(commit.trim())?;
    let mut bench = Bench { peers: Peers::with_floor()?, rounds: 0, quick: asked.quick };
    let mut lines = Vec::new();
    let mut csv = String::new();
    let mut left_out = Vec::new();
    for question in &QUESTIONS {
        if !asked.only.is_empty() && !asked.only.iter().any(|name| name == question.name) {
            continue;
        }
        eprintln!("compare: {}", question.name);
        bench.rounds = asked.rounds.unwrap_or(if asked.quick { 2 } else { 5 }).min(question.rounds);
        let samples = sample(&bench, question, &base_program)?;
        lines.extend(table_lines(question, &samples));
        left_out.extend(samples.left_out().into_iter().map(|why| format!("{}: {why}", question.name)));
        csv += &samples.csv()?.lines().map(|row| format!("{},{row}\n", question.name)).collect::<String>();
    }
    let head = ["cost", "base", "this", "this / base", "base / raw vfork", "this / raw vfork"];
    let mut text = format!("# This tree beside {}\n\n{}\n", commit.trim(), markdown(&head, &lines));
    text += "- Median [minimum-maximum] over rounds; ratios are of the same round.\n";
    text +=
        "- CPU: the program and its descendants, by wait4. System calls: of all processes, with the start.\n";
    for why in left_out {
        text += &format!("- {why}\n");
    }
    let dir = tree::target_dir().join("compare");
    std::fs::write(dir.join("compare.csv"), csv)?;
    std::fs::write(dir.join("compare.md"), &text)?;
    println!("{text}");
    Ok(())
}

/// Returns the newest tag, or the commit of the last release.
fn usual_base() -> Result<String> {
    let tag = run::read(run::command("git").args(["describe", "--tags", "--abbrev=0"]));
    if let Ok(tag) = tag {
        return Ok(tag.trim().into());
    }
    let list =
        std::fs::read_to_string(tree::root().join("crates/minder/api/baseline.txt")).unwrap_or_default();
    match list.lines().find(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        Some(commit) => Ok(commit.trim().into()),
        None => bail!(
            "no commit to compare with: no tag, and none in crates/minder/api/baseline.txt; cure: \
                       cargo xtask compare COMMIT"
        ),
    }
}

/// Builds the program of a commit, unless that was done before. Returns its path.
fn build(commit: &str) -> Result<PathBuf> {
    let dir = tree::target_dir().join("compare");
    std::fs::create_dir_all(&dir)?;
    let program = dir.join(format!("minder-{commit}"));
    if program.exists() {
        return Ok(program);
    }
    let sources = dir.join("base");
    let target = dir.join("target");
    let git = |dir: &Path| {
        let mut git = run::command("git");
        git.arg("-C").arg(dir);
        git
    };
    if sources.exists() {
        run::run(git(&sources).args(["checkout", "--quiet", "--force", "--detach", commit]))?;
    } else {
        // A directory that was deleted is still listed.
        run::run(git(&tree::root()).args(["worktree", "prune"]))?;
        run::run(
            git(&tree::root()).args(["worktree", "add", "--quiet", "--detach"]).arg(&sources).arg(commit),
        )?;
    }
    let mut cargo = run::cargo();
    cargo
        .args(["build", "--release", "--package", "minder-cli", "--bin", "minder", "--target-dir"])
        .arg(&target);
    run::run(cargo.current_dir(&sources))?;
    std::fs::copy(target.join("release/minder"), &program)?;
    Ok(program)
}

fn sample(bench: &Bench, question: &Question, base: &Path) -> Result<Samples> {
    let floor: &[Contestant] = if question.has_floor { &[RAW] } else { &[] };
    let all = [floor, &[BASE, THIS]].concat();
    let setting =
        Setting { peers: &bench.peers, jobs: bench.scaled(question.jobs).max(question.jobs.min(1)) };
    let raw = PathBuf::from(bench.peers.built("rawvfork"));
    let program = |who: &Contestant| match *who {
        RAW => raw.as_path(),
        BASE => base,
        _ => bench.peers.minder(),
    };
    let mut samples = Samples::default();
    let take = |who: &Contestant, _| (question.sample)(&setting, program(who));
    // An older commit may fail where this one does not.
    samples.add_rounds(bench, (&all, &[0]), take, |who, why| {
        if *who == THIS { Err(why) } else { Ok(format!("{why:#}")) }
    })?;
    Ok(samples)
}

fn table_lines(question: &Question, samples: &Samples) -> Vec<Vec<String>> {
    let show = |spread: Option<Spread>| spread.map_or_else(|| "–".to_string(), |spread| spread.show(3));
    let line = |(name, title, decimals): &(&str, &str, usize)| {
        vec![
            format!("{}: {title}", question.name),
            samples.cell(BASE, 0, (name, 1.0, *decimals)),
            samples.cell(THIS, 0, (name, 1.0, *decimals)),
            show(samples.ratio(THIS, BASE, 0, name)),
            show(samples.ratio(BASE, RAW, 0, name)),
            show(samples.ratio(THIS, RAW, 0, name)),
        ]
    };
    question.numbers.iter().map(line).collect()
}

/// Runs jobs and returns the times for each.
fn timed(setting: &Setting<'_>, program: &Path, flags: &[&str], child: &str) -> Result<Numbers> {
    cost(setting, &setting.words(program, flags, child))
}

fn cost(setting: &Setting<'_>, words: &[String]) -> Result<Numbers> {
    let cost = meter::measure(setting.peers, words, &setting.input(setting.jobs)?)?.checked(setting.jobs)?;
    let jobs = setting.jobs.max(1) as f64;
    Ok(vec![("cpu_us".into(), cost.tree_us / jobs), ("wall_us".into(), cost.wall_us / jobs)])
}
