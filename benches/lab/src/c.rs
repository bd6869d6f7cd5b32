//! `cargo bench-lab c`: what the C interface costs a program over the library in Rust.
//!
//! `bindings/c/benches` has the same loop in both languages. The goal is at most two percent.

use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::meter;
use crate::peers::Peers;
use crate::programs::{built, compile};
use crate::question::{self, Question};
use crate::samples::{Contestant, Samples, fail, pairs};
use anyhow::Result;
use std::path::{Path, PathBuf};
use xtask::{run, tree};

const QUESTIONS: [Question<Programs>; 1] = [Question {
    name: "spawn",
    what: "2,000 children of a background set, 64 at once, in C and in Rust",
    rounds: 31,
    ask: spawn,
}];
/// The program in Rust, an example of the package.
const PROGRAM: &str = "spawn_cost";
const CHILDREN: usize = 2000;
const AT_ONCE: usize = 64;
/// The most that the C interface may cost, compared with the library.
const MOST: f64 = 1.02;
const SOURCE: &str = "bindings/c/benches/spawn.c";

const RUST: Contestant = Contestant { name: "Rust", title: "Rust" };
const SHARED: Contestant = Contestant { name: "C, shared library", title: "C, shared library" };
const ARCHIVE: Contestant = Contestant { name: "C, archive", title: "C, archive" };
const ALL: [Contestant; 3] = [RUST, SHARED, ARCHIVE];

/// The programs of the contestants, and their child.
struct Programs {
    /// In the order of [`ALL`].
    paths: [PathBuf; 3],
    child: String,
}

/// `cargo bench-lab c [--rounds N] [--quick] [--only spawn]`
pub(crate) fn main(words: &[String]) -> Result<()> {
    question::answer(("c", "the C interface"), &QUESTIONS, words, Peers::none, |_, _| {
        compile("meter", &[], &[])?;
        Ok((
            Programs { paths: paths()?, child: compile("tiny", &["-static", "-nostdlib"], &[])? },
            Vec::new(),
        ))
    })
}

/// Builds the programs. All of them contain the library as cargo builds it for a release.
fn paths() -> Result<[PathBuf; 3]> {
    let package = ["--release", "--quiet", "--package", "minder-c"];
    run::run(run::cargo().arg("build").args(package).args(["--lib", "--example", PROGRAM]))?;
    let release = tree::target_dir().join("release");
    let shared = link("spawn-shared", &release.join("libminder_c.so"))?;
    let archive = link("spawn-archive", &release.join("libminder_c.a"))?;
    Ok([release.join("examples").join(PROGRAM), shared, archive])
}

/// Compiles the program in C with one form of the library.
fn link(name: &str, library: &Path) -> Result<PathBuf> {
    // The program looks for the library by the name that is recorded in it.
    let directory = PathBuf::from(built("c-library"));
    std::fs::create_dir_all(&directory)?;
    let program = PathBuf::from(built(name));
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

fn spawn(bench: &Bench, programs: &Programs) -> Result<Answer> {
    let children = bench.scaled(CHILDREN);
    let mut samples = Samples::default();
    let sample = |(who, children): (&Contestant, usize)| {
        let place = ALL.iter().position(|other| other == who).unwrap_or_default();
        let program = programs.paths[place].display().to_string();
        let words = [program, programs.child.clone(), children.to_string(), AT_ONCE.to_string()];
        Ok(meter::measure(&words, Path::new("/dev/null"))?.checked(children)?.numbers(""))
    };
    samples.add_rounds(bench, &pairs(&ALL, &[children]), sample, fail)?;
    let goal = |who: Contestant| {
        let ratio = samples.ratio((&who, children), (&RUST, children), "tree_us");
        Goal::ratio(format!("{} over Rust", who.title), ratio, Aim::AtMost(MOST))
    };
    #[expect(clippy::cast_precision_loss, reason = "a number of children")]
    let columns = [("CPU us a child", ("tree_us", 1.0 / children as f64, 1))];
    let table = samples.table("program", (&ALL, Contestant::title), children, &columns);
    let remarks = vec![
        "CPU: of the program and of all its children; the child is static and ends at once.".to_string(),
    ];
    Ok(Answer::with_goals(&samples, &[goal(SHARED), goal(ARCHIVE)], &table, remarks))
}
