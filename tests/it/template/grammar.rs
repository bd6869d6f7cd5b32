//! Lines drawn from a grammar of everything that shells have, with values that leave a mark if a
//! shell evaluates them.
//!
//! The promise: the shell that minder starts never evaluates a value. Each line is parsed here; one
//! that is accepted runs in each of its shells in an empty directory, and no file `MARK` may exist
//! afterwards. Programs in a line log their arguments, which must be the exact values. None may be
//! the text `$1`, a parameter of minder.
//!
//! `MINDER_GRAMMAR=1000000` draws more lines, `MINDER_SEED=N` begins elsewhere. A failure prints
//! the seed that repeats it with `MINDER_GRAMMAR=1`. `MINDER_LINES=FILE` tries the lines of a
//! file in each shell.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use minder_template::{Job, Options, Repeat, Template};

use super::Random;
use crate::support::number;
use draw::{Drawn, Grammar, Piece, Probe, Writer};
use sandbox::{Ground, Sandbox, Trace};
use shells::Subject;
use values::Values;

mod draw;
mod program_texts;
mod sandbox;
mod shells;
mod shown;
mod shrink;
mod values;

/// The number of lines that are drawn for all shells, and that with `MINDER_LONG=1`.
const CASES: u64 = 2_000;
const CASES_LONG: u64 = 10_000;

/// The minimum share of accepted lines. A lower one would test little.
const ACCEPTED_LEAST: f64 = 1.0 / 3.0;

/// A line with its job.
#[derive(Debug, Clone)]
struct Case {
    line: String,
    columns: Vec<OsString>,
    repeat: Repeat,
    probes: Vec<Probe>,
}

/// The fault of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// A value was evaluated.
    Evaluated,
    /// A program got another argument than the value.
    Changed,
    /// A program got the name of a parameter of minder.
    Parameter,
    /// The displayed line evaluates a value, or passes another argument.
    Shown,
}

impl Case {
    fn draw(seed: u64, subject: &Subject, grammar: &Grammar, values: &Values) -> Case {
        let mut random = Random(seed);
        // A few steps, since neighbours have neighbouring seeds.
        random.next();
        let count = random.pick(&[1, 1, 1, 1, 1, 2, 2, 3]);
        let repeat = random.pick(&[Repeat::Joined, Repeat::Joined, Repeat::Context]);
        let Drawn { line, probes } = Writer::new(grammar, &mut random, subject.family, count).draw();
        let columns = (0..count).map(|_| values.draw(&line, &mut random)).collect();
        Case { line, columns, repeat, probes }
    }

    fn template(&self, subject: &Subject) -> Option<Template> {
        let options = Options {
            shell: Some(subject.program.clone().into()),
            form: minder_template::Form::Line,
            repeat: self.repeat,
            missing_is_empty: true,
            ..Options::default()
        };
        Template::parse(&[OsString::from(&self.line)], &options).ok()
    }

    fn job(&self) -> Job<'_> {
        Job { columns: &self.columns, ..Job::default() }
    }

    /// Returns the argv of the case, or `None` if the line or the number of values is refused.
    fn argv(&self, subject: &Subject) -> Option<Vec<OsString>> {
        self.template(subject)?.argv(&self.job()).ok()
    }

    /// Returns the arguments that a program must get, or `None` if shrinking removed a value.
    fn expected(&self, probe: &Probe) -> Option<Vec<Vec<u8>>> {
        let mut words = vec![probe.name.clone().into_bytes()];
        for pieces in &probe.words {
            let mut word = Vec::new();
            for piece in pieces {
                word.extend_from_slice(match piece {
                    Piece::Text(text) => text.as_bytes(),
                    Piece::Value(nth) => self.columns.get(*nth)?.as_bytes(),
                });
            }
            words.push(word);
        }
        Some(words)
    }

    /// Checks the trace of a run.
    fn judge(&self, trace: &Trace) -> Option<Fault> {
        if trace.marked {
            return Some(Fault::Evaluated);
        }
        // Probes that shrinking split are not checked.
        for probe in self.probes.iter().filter(|probe| probe.is_in(&self.line)) {
            let Some(expected) = self.expected(probe) else { continue };
            let mut named = trace.calls.iter().filter(|call| call.first() == expected.first());
            if named.any(|call| *call != expected) {
                return Some(Fault::Changed);
            }
        }
        let own = |word: &Vec<u8>| {
            word.windows(2).any(|pair| pair[0] == b'$' && pair[1].is_ascii_digit() && pair[1] != b'0')
                || word.windows(3).any(|three| three.starts_with(b"${") && three[2].is_ascii_digit())
        };
        // A dollar sign of the user may precede a value or a variable.
        let dollar = |value: &OsString| [&b"$"[..], b"${"].iter().any(|end| value.as_bytes().ends_with(end));
        let written = own(&self.line.clone().into_bytes())
            || self.line.contains("$\"")
            || self.columns.iter().any(|value| own(&value.as_bytes().to_vec()) || dollar(value));
        if !written && trace.calls.iter().flatten().any(own) {
            return Some(Fault::Parameter);
        }
        None
    }

    /// Runs the case once.
    fn run(&self, subject: &Subject, sandbox: &mut Sandbox) -> Option<(Option<Fault>, Trace)> {
        let trace = sandbox.run(&self.argv(subject)?, subject.variables);
        Some((self.judge(&trace), trace))
    }
}

/// The results for the lines of one shell.
#[derive(Debug, Clone, Default)]
struct Tally {
    drawn: u64,
    accepted: u64,
    run: u64,
    ended: u64,
    calls: u64,
    shown: u64,
}

/// A failure after shrinking.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Failure {
    fault: Fault,
    shell: String,
    line: String,
    description: String,
}

/// The number of failures that one worker shrinks. The others are counted.
const SHRUNK_MAX: usize = 60;

/// Draws the shell and the case with this number.
type Draw<'a> = dyn Fn(u64) -> (usize, Case) + Sync + 'a;

struct Worker<'a> {
    ground: &'a Ground,
    values: &'a Values,
    subjects: &'a [Subject],
    draw: &'a Draw<'a>,
    seeds: std::ops::Range<u64>,
    next: &'a AtomicU64,
}

/// The findings of a worker.
#[derive(Default)]
struct Found {
    tallies: BTreeMap<String, Tally>,
    failures: Vec<Failure>,
    further: u64,
}

impl Worker<'_> {
    fn work(&self, number: u32) -> Found {
        let mut sandbox = Sandbox::new(self.ground, number);
        let mut found = Found::default();
        loop {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.seeds.end {
                return found;
            }
            let (subject, case) = (self.draw)(seed);
            let subject = &self.subjects[subject];
            let tally = found.tallies.entry(subject.name.clone()).or_default();
            tally.drawn += 1;
            let Some(template) = case.template(subject) else { continue };
            tally.accepted += 1;
            let Some((mut fault, trace)) = case.run(subject, &mut sandbox) else { continue };
            tally.run += 1;
            tally.ended += u64::from(trace.ended);
            tally.calls += trace.calls.len() as u64;
            // Runs the displayed line in the same shell, for some cases only: it is one more process.
            if fault.is_none() && (seed / self.subjects.len() as u64).is_multiple_of(5) {
                tally.shown += 1;
                fault = shown::fault(&case, &template, subject, &mut sandbox);
            }
            let Some(fault) = fault else { continue };
            if found.failures.len() >= SHRUNK_MAX {
                found.further += 1;
                continue;
            }
            found.failures.push(shrink::failure(fault, &case, subject, seed, &mut sandbox, self.values));
        }
    }
}

/// Tries the cases with these seeds, prints the results, and fails if any case does. Returns the
/// share of accepted lines.
fn search(
    ground: &Ground,
    subjects: &[Subject],
    values: &Values,
    seeds: std::ops::Range<u64>,
    draw: &Draw<'_>,
) -> f64 {
    let begun = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let all = Mutex::new(Found::default());
    std::thread::scope(|scope| {
        for number in 0..std::thread::available_parallelism().map_or(2, usize::from) as u32 {
            let worker = Worker { ground, values, subjects, draw, seeds: seeds.clone(), next: &next };
            let all = &all;
            scope.spawn(move || {
                let found = worker.work(number);
                let mut all = all.lock().unwrap();
                for (name, tally) in found.tallies {
                    all.tallies.entry(name).or_default().add(&tally);
                }
                all.failures.extend(found.failures);
                all.further += found.further;
            });
        }
    });
    let found = all.into_inner().unwrap();
    let (table, share) = table(&found.tallies);
    eprintln!("{table}seeds {seeds:?}, {:.1} s", begun.elapsed().as_secs_f64());
    report(found.failures, found.further);
    share
}

#[test]
fn drawn_line_never_runs_a_value() {
    let grammar = Grammar::new();
    let values = Values::new();
    let ground = Ground::new();
    assert_eq!(grammar.missing(), [""; 0], "a choice names an undefined rule");
    let subjects = shells::found(&ground);
    let seed = number("MINDER_SEED").unwrap_or(0);
    let cases = crate::support::cases("MINDER_GRAMMAR", CASES, CASES_LONG);
    let share = search(&ground, &subjects, &values, seed..seed + cases, &|seed| {
        let subject = (seed % subjects.len() as u64) as usize;
        (subject, Case::draw(seed, &subjects[subject], &grammar, &values))
    });
    let percent = share * 100.0;
    assert!(cases < CASES || share >= ACCEPTED_LEAST, "only {percent:.0} % of the lines are accepted");
}

/// Tries each line in some shells with one value, or in a long run in all shells with several
/// values.
#[test]
fn handwritten_line_never_runs_a_value() {
    let values = Values::new();
    let ground = Ground::new();
    let subjects = shells::found(&ground);
    let more = std::env::var_os("MINDER_LINES").map(|path| std::fs::read_to_string(path).unwrap());
    let text = more.as_deref().unwrap_or(include_str!("grammar/lines.txt"));
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .map(|line| line.replace('␤', "\n"))
        .collect();
    let known: Vec<OsString> = values.plainest().chain(values.all()).collect();
    let long = more.is_some() || number("MINDER_GRAMMAR").is_some();
    let (shells, each) =
        if long { (subjects.len() as u64, 6) } else { (subjects.len().div_ceil(8) as u64, 1) };
    let seeds = 0..lines.len() as u64 * shells * each;
    search(&ground, &subjects, &values, seeds, &|seed| {
        let line = seed / (shells * each);
        let rest = seed % (shells * each);
        // Shells and values alternate.
        let subject = ((rest / each) * (subjects.len() as u64 / shells) + line) as usize % subjects.len();
        let value = match if long { rest % each } else { line + rest } as usize % 6 {
            5 => 6 + seed as usize % (known.len() - 6),
            nth => nth,
        };
        let columns = vec![known[value].clone(); 1 + (seed % 7 == 0) as usize];
        let line = lines[line as usize].clone();
        (subject, Case { line, columns, repeat: Repeat::Joined, probes: Vec::new() })
    });
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.drawn += other.drawn;
        self.accepted += other.accepted;
        self.run += other.run;
        self.ended += other.ended;
        self.calls += other.calls;
        self.shown += other.shown;
    }
}

/// Formats the results by shell. Also returns the share of accepted lines.
fn table(tallies: &BTreeMap<String, Tally>) -> (String, f64) {
    let mut text = format!(
        "{:14} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
        "shell", "drawn", "refused", "accepted", "run", "ended", "calls", "shown"
    );
    let mut sum = Tally::default();
    for tally in tallies.values() {
        sum.add(tally);
    }
    let sum_name = "all".to_owned();
    for (name, tally) in tallies.iter().chain([(&sum_name, &sum)]) {
        let Tally { drawn, accepted, run, ended, calls, shown } = tally;
        let refused = drawn - accepted;
        let _ = writeln!(
            text,
            "{name:14} {drawn:8} {refused:8} {accepted:8} {run:8} {ended:8} {calls:8} {shown:8}"
        );
    }
    (text, sum.accepted as f64 / sum.drawn.max(1) as f64)
}

/// Fails with the distinct failures, grouped by line.
fn report(mut failures: Vec<Failure>, further: u64) {
    if failures.is_empty() {
        return;
    }
    failures.sort();
    let mut text = String::new();
    let mut lines: BTreeMap<(Fault, &str), Vec<&Failure>> = BTreeMap::new();
    for failure in &failures {
        lines.entry((failure.fault, &failure.line)).or_default().push(failure);
    }
    for ((fault, line), failures) in &lines {
        let mut shells: Vec<&str> = failures.iter().map(|failure| failure.shell.as_str()).collect();
        shells.dedup();
        let _ =
            writeln!(text, "{fault:?}: {line:?}\n  in {}\n{}", shells.join(", "), failures[0].description);
    }
    panic!("{} distinct lines fail; {further} further failures were not made small\n{text}", lines.len());
}

/// Formats a command so that a shell parses its arguments, for pasting.
fn pasted(argv: &[OsString]) -> String {
    let word = |word: &OsString| {
        let bytes = word.as_bytes();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,".contains(byte);
        if !bytes.is_empty() && bytes.iter().all(plain) {
            return word.to_string_lossy().into_owned();
        }
        let mut text = String::from("$'");
        for &byte in bytes {
            let _ = match byte {
                b'\'' | b'\\' => write!(text, "\\{}", byte as char),
                b' '..=b'~' => write!(text, "{}", byte as char),
                _ => write!(text, "\\{byte:03o}"),
            };
        }
        text + "'"
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}
