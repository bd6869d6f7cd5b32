//! The C programs of this bench: builds them, and proves that the verifier sees what it must see.

use crate::programs::{built, compile};
use crate::samples::Numbers;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::process::Stdio;
use xtask::run;

/// What `verify` says of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Verdict {
    pub(super) bytes: u64,
    pub(super) lines: u64,
    pub(super) torn: u64,
    pub(super) disorder: u64,
    pub(super) switches: u64,
    pub(super) wrong: u64,
}

impl Verdict {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [bytes, lines, torn, disorder, switches, wrong] = numbers[..] else {
            bail!("the verifier said `{}`", text.trim())
        };
        Ok(Self { bytes, lines, torn, disorder, switches, wrong })
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of bytes and lines, far below 2^52")]
    pub(super) fn numbers(&self) -> Numbers {
        let Self { bytes, lines, torn, disorder, switches, wrong } = *self;
        let names = ["bytes", "lines", "torn", "disorder", "switches", "wrong_jobs"];
        let values = [bytes, lines, torn, disorder, switches, wrong];
        names.into_iter().zip(values).map(|(name, value)| (name.into(), value as f64)).collect()
    }

    /// Whether every byte of every job came, in whole lines.
    pub(super) fn good(&self) -> bool {
        self.torn == 0 && self.disorder == 0 && self.wrong == 0
    }
}

/// Builds the programs, and tries the verifier.
pub(super) fn ready() -> Result<()> {
    for name in ["line_writer", "verify", "line_flood", "reader", "widen"] {
        compile(name, &["-static"], &[])?;
    }
    prove().context("the verifier cannot be trusted")
}

/// How many bytes each of the two jobs has on which the verifier is tried.
const TRIAL: usize = 100_000;

/// Feeds the verifier what is right, and then each kind of damage.
fn prove() -> Result<()> {
    let [a, b] = [talk(0)?, talk(1)?];
    let line = |of: &str, n: usize| of.match_indices('\n').nth(n).map_or(0, |(at, _)| at + 1);
    let begin = line(&a, 6);
    let middle = line(&a, 7);
    let end = line(&a, 8);
    let swapped = [&a[..begin], &a[middle..end], &a[begin..middle], &a[end..], &b].concat();
    let lost = [&a[..begin], &a[middle..], &b].concat();
    // The longer of two lines in the middle: a tear at its third byte is inside the line.
    let torn = [&a[..begin + 3], &b, &a[begin + 3..]].concat();
    let woven = [&a[..begin], &b[..line(&b, 9)], &a[begin..], &b[line(&b, 9)..]].concat();
    let cut = [a.as_str(), &b[..TRIAL - 1]].concat();
    let changed =
        [&a[..TRIAL - 20], if a[..TRIAL - 19].ends_with('x') { "y" } else { "x" }, &a[TRIAL - 19..], &b]
            .concat();
    type Sees = fn(&Verdict) -> bool;
    let trials: [(&str, String, Sees); 8] = [
        ("two jobs in turn", [a.as_str(), &b].concat(), |v| v.good() && v.switches == 2),
        ("two jobs line by line", woven, |v| v.good() && v.switches == 4),
        ("a torn line", torn, |v| v.torn > 0 && v.wrong > 0),
        ("a lost line", lost, |v| v.torn == 0 && v.disorder == 1 && v.wrong == 1),
        ("two lines swapped", swapped, |v| v.torn == 0 && v.disorder > 0 && v.wrong == 1),
        ("a changed byte", changed, |v| v.torn == 1 && v.wrong == 1),
        ("a lost end", cut, |v| v.torn == 1 && v.wrong == 1),
        ("a missing job", b.clone(), |v| v.torn == 0 && v.wrong == 1),
    ];
    for (what, stream, sees) in trials {
        let verdict = judge(&stream)?;
        if !sees(&verdict) {
            bail!("of {what} it says {verdict:?}");
        }
    }
    Ok(())
}

fn talk(job: usize) -> Result<String> {
    run::read(run::command(built("line_writer")).args([job.to_string(), TRIAL.to_string()]))
}

fn judge(stream: &str) -> Result<Verdict> {
    let file = built("stream");
    std::fs::write(&file, stream)?;
    let mut cmd = run::command(built("verify"));
    // It ends with 1 if it finds something, which is what is wanted here.
    let printed =
        cmd.args(["2", &TRIAL.to_string()]).stdin(File::open(&file)?).stderr(Stdio::inherit()).output()?;
    std::fs::remove_file(&file)?;
    Verdict::parse(&String::from_utf8_lossy(&printed.stdout))
}
