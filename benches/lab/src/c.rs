//! `cargo bench-lab c`: what the C interface costs a program over the library in Rust.
//!
//! `bindings/c/benches` has the same loop in both languages. The goal is at most two percent.

use super::mechanisms::compile;
use super::table::{markdown, shown};
use super::{Answer, Asked, Bench, machine, meter, peers::Peers, report, round_order};
use anyhow::{Context, Result};
use minder_bench::Spread;
use std::path::{Path, PathBuf};
use xtask::{run, tree};

const NAME: &str = "spawn";
/// The program in Rust, an example of the package.
const PROGRAM: &str = "spawn_cost";
const WHAT: &str = "2,000 children of a background set, 64 at once, in C and in Rust";
const ROUNDS: usize = 31;
const CHILDREN: usize = 2000;
const AT_ONCE: usize = 64;
/// The most that the C interface may cost over the library, in percent.
const GOAL_PERCENT: f64 = 2.0;
const SOURCE: &str = "bindings/c/benches/spawn.c";

/// A program of the comparison.
struct Contestant {
    name: &'static str,
    program: PathBuf,
}

/// `cargo bench-lab c [--rounds N] [--quick] [--only spawn]`
pub(super) fn main(words: &[String]) -> Result<()> {
    let asked = Asked::parse("c", &[NAME], words)?;
    let mut bench = Bench { peers: Peers::none()?, rounds: 0, quick: asked.quick };
    bench.rounds = asked.rounds.unwrap_or(if asked.quick { 5 } else { ROUNDS });
    let contestants = contestants(&bench)?;
    let child = compile(&bench, "tiny", &["-static", "-nostdlib"], &[]).context("a C compiler is needed")?;
    compile(&bench, "meter", &[], &[])?;
    eprintln!("bench: {NAME}: {WHAT}");
    let before = machine::load();
    let answer = spawn(&bench, &contestants, &child)?;
    report("c", (NAME, WHAT), &bench, &answer, &before)
}

/// Builds the programs. All of them contain the library as cargo builds it for a release.
fn contestants(bench: &Bench) -> Result<Vec<Contestant>> {
    let package = ["--release", "--quiet", "--package", "minder-c"];
    run::run(run::cargo().arg("build").args(package).args(["--lib", "--example", PROGRAM]))?;
    let release = tree::target_dir().join("release");
    let shared = link(bench, "spawn-shared", &release.join("libminder_c.so"))?;
    let archive = link(bench, "spawn-archive", &release.join("libminder_c.a"))?;
    Ok(vec![
        Contestant { name: "Rust", program: release.join("examples").join(PROGRAM) },
        Contestant { name: "C, shared library", program: shared },
        Contestant { name: "C, archive", program: archive },
    ])
}

/// Compiles the program in C with one form of the library.
fn link(bench: &Bench, name: &str, library: &Path) -> Result<PathBuf> {
    // The program looks for the library by the name that is recorded in it.
    let directory = PathBuf::from(bench.peers.built("c-library"));
    std::fs::create_dir_all(&directory)?;
    let program = PathBuf::from(bench.peers.built(name));
    let mut cmd = run::command("gcc");
    cmd.args(["-O2", "-Wall", "-Werror", "-Ibindings/c/include", SOURCE, "-o"]).arg(&program);
    if library.extension().is_some_and(|extension| extension == "so") {
        let named = directory.join("libminder.so.0");
        std::fs::copy(library, &named)?;
        cmd.arg(named).arg(format!("-Wl,-rpath,{}", directory.display()));
    } else {
        cmd.arg(library).args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]);
    }
    run::run(&mut cmd)?;
    Ok(program)
}

fn spawn(bench: &Bench, contestants: &[Contestant], child: &str) -> Result<Answer> {
    let children = bench.scaled(CHILDREN);
    let places: Vec<usize> = (0..contestants.len()).collect();
    let mut csv = format!("round,contestant,{}\n", meter::CSV);
    // Processor time of each contestant in each round, in microseconds for a child.
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); contestants.len()];
    for round in 0..bench.rounds {
        bench.round(round);
        for place in round_order(round, &places) {
            let Contestant { name, program } = &contestants[place];
            let numbers = [children, AT_ONCE].map(|number| number.to_string());
            let mut words = vec![program.display().to_string(), child.to_string()];
            words.extend(numbers);
            let cost = meter::measure(&bench.peers, &words, Path::new("/dev/null"))?.checked(children)?;
            csv.push_str(&format!("{round},{name},{}\n", cost.csv()));
            #[expect(clippy::cast_precision_loss, reason = "a number of children")]
            times[place].push(cost.tree_us / children as f64);
        }
    }
    let mut rows = Vec::new();
    for (contestant, own) in contestants.iter().zip(&times) {
        let ratios = own.iter().zip(&times[0]).map(|(own, rust)| own / rust);
        let ratio = Spread::of(ratios).context("no round was measured")?;
        let is_missed = (ratio.median - 1.0) * 100.0 > GOAL_PERCENT;
        rows.push(vec![
            contestant.name.to_string(),
            shown(own.iter().copied(), 1),
            ratio.show(3),
            if is_missed { "missed" } else { "" }.to_string(),
        ]);
    }
    let head = ["program", "CPU µs a child", "ratio to Rust", "goal: at most 1.02"];
    let remarks = vec![
        "processor time of the program and of all its children; the child is static and ends at once"
            .to_string(),
        "the ratio is that of the same round, whose order changes from round to round".to_string(),
    ];
    Ok(Answer { table: markdown(&head, &rows), remarks, csv })
}
