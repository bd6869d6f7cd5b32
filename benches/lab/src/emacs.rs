//! `cargo bench-lab emacs`: the package for Emacs, compared with processes of Emacs with two
//! settings.
//!
//! `bindings/emacs/bench` has the programs. Each sample is a separate Emacs. The goals stand next
//! to the measured values, and those that were missed are marked.

mod kind;
mod library;
mod filters;
mod burst;
mod many;
mod bytes;
mod sizes;

use crate::bench::Bench;
use crate::peers::Peers;
use crate::question::{self, Question};
use crate::samples::{self, Contestant, Numbers, Samples, pairs};
use anyhow::{Result, anyhow};
use std::path::{Path, PathBuf};
use xtask::{emacs, run, tree};

pub(crate) use sizes::chart;

/// The directory of the programs in Lisp.
const PROGRAMS: &str = "bindings/emacs/bench";
/// The program whose command `relay` the kind of this name needs.
const RELAY: &str = "minder";
/// Seconds after which a sample is killed: more than the programs wait for their children.
const SAMPLE_TIMEOUT: &str = "900";

const QUESTIONS: [Question<Emacs>; 6] = [
    Question {
        name: "stall",
        what: "four short lines and then 1 MiB, in eshell and compile",
        rounds: 5,
        ask: library::stall,
    },
    Question {
        name: "filters",
        what: "the filters of eshell and compile, the default one, one of 1 ms a call",
        rounds: 5,
        ask: filters::filters,
    },
    Question {
        name: "burst",
        what: "256 MiB into a filter that counts: memory, and a timer meanwhile",
        rounds: 5,
        ask: burst::burst,
    },
    Question {
        name: "many",
        what: "up to 2,000 live children: cost of an idle wait, output and exit status",
        rounds: 5,
        ask: many::many,
    },
    Question {
        name: "bytes",
        what: "every byte of 8 MiB and 20 MiB, 200 runs each",
        rounds: 5,
        ask: bytes::bytes,
    },
    Question {
        name: "sizes",
        what: "four short lines and then 64 KiB to 16 MiB: time and calls of the filter",
        rounds: 5,
        ask: sizes::sizes,
    },
];

/// `cargo bench-lab emacs [--rounds N] [--quick] [--only NAME]...`
pub(crate) fn main(words: &[String]) -> Result<()> {
    question::answer(("emacs", "the Emacs package"), &QUESTIONS, words, Peers::none, |_, _| {
        let emacs = Emacs::ready()?;
        let remarks = emacs.remarks.clone();
        Ok((emacs, remarks))
    })
}

/// What the questions need: the package with its module, and the programs, all compiled.
struct Emacs {
    /// The directory for `-L`.
    library: PathBuf,
    /// The kinds of processes that work here.
    kinds: Vec<Contestant>,
    remarks: Vec<String>,
}

impl Emacs {
    fn ready() -> Result<Self> {
        emacs::ready().map_err(|why| anyhow!("{why}"))?;
        let library = emacs::staged(emacs::Profile::Release, "bench")?;
        add_relay(&library)?;
        add_programs(&library)?;
        let version = "(princ (format \"GNU Emacs %s, %s\" emacs-version system-configuration))";
        let version = run::read(emacs::emacs(&library).args(["--eval", version]))?;
        let mut this = Self { library, kinds: Vec::new(), remarks: vec![version.trim().into()] };
        let (names, errors) = this.read(&["kinds".into()])?;
        this.kinds =
            names.lines().filter_map(|name| kind::ALL.into_iter().find(|kind| kind.name == name)).collect();
        let missing = kind::ALL.iter().filter(|kind| !this.kinds.contains(kind));
        this.remarks.extend(missing.map(|kind| {
            let prefix = format!("{}: ", kind.name);
            let why = errors.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or("no output");
            format!("not present: {}: {why}", kind.title)
        }));
        Ok(this)
    }

    /// Runs a program, and returns its standard output and standard error.
    fn read(&self, words: &[String]) -> Result<(String, String)> {
        let emacs = emacs::emacs(&self.library);
        let mut cmd = run::bounded(SAMPLE_TIMEOUT, emacs.get_program());
        cmd.args(emacs.get_args()).args(["-l", "minder-bench", "-f", "minder-bench"]).args(words);
        // The coding systems that Emacs chooses depend on the locale; a home directory can have files for it.
        cmd.env("LC_ALL", "C.UTF-8").env("HOME", &self.library);
        run::read_both(&mut cmd)
    }

    /// Returns those of these kinds that work here.
    fn present(&self, kinds: &[Contestant]) -> Vec<Contestant> {
        kinds.iter().copied().filter(|kind| self.kinds.contains(kind)).collect()
    }

    /// Samples `PROGRAM KIND WORD...` for all kinds and sizes in turn, round after round. The names of the
    /// numbers get the prefix. A number among the words that is `{}` is the size.
    fn add_rounds(
        &self,
        bench: &Bench,
        samples: &mut Samples,
        (prefix, kinds, sizes): (&str, &[Contestant], &[usize]),
        words: &[&str],
    ) -> Result<()> {
        let [program, rest @ ..] = words else { return Ok(()) };
        eprintln!("bench: {} {}", prefix.trim_end_matches('_'), words[0]);
        let sample = |(kind, size): (&Contestant, usize)| -> Result<Numbers> {
            let mut line = vec![(*program).to_string(), kind.name.to_string()];
            line.extend(rest.iter().map(|word| word.replace("{}", &size.to_string())));
            let numbers = samples::numbers(&self.read(&line)?.0)?;
            Ok(numbers.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)).collect())
        };
        samples.add_rounds(bench, &pairs(&self.present(kinds), sizes), sample, samples::fail)
    }
}

/// Adds the program of the kind `relay`, if the package has this kind.
fn add_relay(library: &Path) -> Result<()> {
    if library.join("minder-relay.el").exists() {
        run::run(run::cargo().args(["build", "--release", "--package", "minder-cli", "--bin", RELAY]))?;
        std::fs::copy(tree::target_dir().join("release").join(RELAY), library.join(RELAY))?;
    }
    Ok(())
}

/// Adds the programs to the files of the package, and compiles all: Lisp code that is not compiled is
/// slower, and an installed package is compiled. A warning is an error.
fn add_programs(library: &Path) -> Result<()> {
    for entry in std::fs::read_dir(tree::root().join(PROGRAMS))? {
        let path = entry?.path();
        std::fs::copy(&path, library.join(path.file_name().unwrap_or_default()))?;
    }
    let mut command = emacs::emacs(library);
    command.args(["--eval", "(setq byte-compile-error-on-warn t)", "--eval"]);
    command.arg(format!("(byte-recompile-directory {:?} 0 t)", library.display().to_string()));
    let (printed, errors) = run::read_both(&mut command)?;
    let failed = printed.lines().chain(errors.lines()).find(|line| line.contains("Error:"));
    failed.map_or(Ok(()), |line| Err(anyhow!("{line}")))
}

/// Returns a number of bytes as KiB or MiB.
fn in_units(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!([64 << 10, 1 << 20, 20 << 20].map(in_units), ["64 KiB", "1 MiB", "20 MiB"]);
    }
}
