//! `cargo xtask compare [BASE]`: compares the costs of this tree with those of another commit,
//! in paired rounds.
//!
//! Both are built with their release profiles. The base is built in a worktree below
//! `target/compare`, once for each commit.

mod count;

use crate::bench::Bench;
use crate::meter;
use crate::peers::Peers;
use crate::programs::{built, input, minder};
use crate::question::Asked;
use crate::samples::{Contestant, Numbers, Samples, pairs};
use crate::table::{markdown, show};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use xtask::{run, tree};

const RAW: Contestant = Contestant { name: "raw", title: "raw vfork" };
const BASE: Contestant = Contestant { name: "base", title: "base" };
const THIS: Contestant = Contestant { name: "this", title: "this" };

/// The samples have no further size.
const SIZE: usize = 0;

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
    sample: Sample,
}

/// What a sample needs in addition to the program.
struct Setting {
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

type Sample = fn(&Setting, &Path) -> Result<Numbers>;

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

impl Setting {
    /// Returns the path of the smallest child.
    fn tiny(&self) -> String {
        built("tiny")
    }

    /// Returns a file with a line for each job.
    fn input(&self, jobs: usize) -> Result<PathBuf> {
        input((0..jobs).map(|job| job.to_string()))
    }

    /// Returns the words that run a child for each line, eight at once. The raw loop takes no flags.
    fn words(&self, program: &Path, flags: &[&str], child: &str) -> Vec<String> {
        let program = program.display().to_string();
        if program == built("rawvfork") {
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
    let dir = tree::target_dir().join("compare");
    let mut left_out = Vec::new();
    for question in QUESTIONS.iter().filter(|question| asked.includes(question.name)) {
        eprintln!("compare: {}", question.name);
        bench.rounds = asked.rounds(5, 2).min(question.rounds);
        let samples = sample(&bench, question, &base_program)?;
        lines.extend(table_lines(question, &samples));
        left_out.extend(samples.left_out().into_iter().map(|why| format!("{}: {why}", question.name)));
        std::fs::write(dir.join(format!("{}.csv", question.name)), samples.rows().text())?;
    }
    let head = ["cost", "base", "this", "this / base", "base / raw vfork", "this / raw vfork"];
    let mut text = format!("# This tree compared with {}\n\n{}\n", commit.trim(), markdown(&head, &lines));
    text += "- Median [minimum-maximum] over rounds; ratios are of the same round.\n";
    text +=
        "- CPU: the program and its descendants, by wait4. System calls: of all processes, with the start.\n";
    for why in left_out {
        text += &format!("- {why}\n");
    }
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
            "no commit to compare with: no tag, and none in crates/minder/api/baseline.txt; hint: \
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
    let setting = Setting { jobs: bench.scaled(question.jobs).max(question.jobs.min(1)) };
    let take = |(who, _): (&Contestant, usize)| match *who {
        RAW => (question.sample)(&setting, Path::new(&built("rawvfork"))),
        BASE => (question.sample)(&setting, base),
        _ => (question.sample)(&setting, &minder()),
    };
    let mut samples = Samples::default();
    // An older commit may fail where this one does not.
    samples.add_rounds(bench, &pairs(&all, &[SIZE]), take, |(who, _), why| {
        if *who == THIS { Err(why) } else { Ok(format!("{why:#}")) }
    })?;
    Ok(samples)
}

fn table_lines(question: &Question, samples: &Samples) -> Vec<Vec<String>> {
    let ratio = |one: Contestant, other: Contestant, number: &str| {
        show(samples.ratio((&one, SIZE), (&other, SIZE), number), 3)
    };
    let line = |(name, title, decimals): &(&str, &str, usize)| {
        vec![
            format!("{}: {title}", question.name),
            samples.cell((&BASE, SIZE), (*name, 1.0, *decimals)),
            samples.cell((&THIS, SIZE), (*name, 1.0, *decimals)),
            ratio(THIS, BASE, name),
            ratio(BASE, RAW, name),
            ratio(THIS, RAW, name),
        ]
    };
    question.numbers.iter().map(line).collect()
}

/// Runs jobs and returns the times for each.
fn timed(setting: &Setting, program: &Path, flags: &[&str], child: &str) -> Result<Numbers> {
    cost(setting, &setting.words(program, flags, child))
}

fn cost(setting: &Setting, words: &[String]) -> Result<Numbers> {
    let cost = meter::measure(words, &setting.input(setting.jobs)?)?.checked(setting.jobs)?;
    let jobs = setting.jobs.max(1) as f64;
    Ok(vec![("cpu_us".into(), cost.tree_us / jobs), ("wall_us".into(), cost.wall_us / jobs)])
}
