//! Children started, captured and waited for: `minder` compared with the standard library, tokio
//! and `posix_spawn`.
//!
//!     library QUESTION CONTESTANT --child PATH [--children N] [--at-once N] [--live N] [--host-mib N]
//!             [--sleeper PATH]
//!
//! One process measures one contestant, so no contestant finds the threads, the signal handlers or
//! the memory of another. The caller starts the processes in turn.
//!
//! Prints lines `name,value`. Times are nanoseconds per child.

mod captured;
mod driven;
mod latency;
mod lone;
mod posix;
mod threads;
mod usage;

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ffi::OsString;
use std::hint::black_box;

/// The parameters of a measurement.
pub(crate) struct Options {
    question: String,
    contestant: String,
    /// The program that the children run.
    child: OsString,
    /// A program that sleeps `sN` seconds, for children that only live.
    sleeper: OsString,
    children: u32,
    at_once: usize,
    /// The number of live children, including the one that exits.
    live: usize,
    host_mib: usize,
}

fn main() -> Result<()> {
    let options = Options::parse(std::env::args_os().skip(1))?;
    raise_limit();
    let host = touched(options.host_mib);
    let rows = match options.question.as_str() {
        "lone" => lone::measure(&options),
        "captured" => captured::measure(&options),
        "driven" => driven::measure(&options),
        "latency" => latency::measure(&options),
        "threads" => threads::measure(&options),
        other => bail!("unknown question `{other}`; hint: lone, captured, driven, latency or threads"),
    };
    let rows = rows.with_context(|| format!("{} {}", options.question, options.contestant))?;
    black_box(&host);
    print!("{rows}");
    Ok(())
}

/// Returns memory of this size, each page of which was written to.
fn touched(mib: usize) -> Vec<u8> {
    const PAGE: usize = 4096;
    let mut memory = vec![0; mib << 20];
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    memory
}

/// Raises the limit of descriptors as far as possible. A start that lacks one then reports it.
fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

impl Options {
    fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Self> {
        let mut word = || args.next().and_then(|word| word.into_string().ok());
        let (Some(question), Some(contestant)) = (word(), word()) else {
            bail!("no question and no contestant; hint: library captured minder --child PATH");
        };
        let mut options = Self {
            question,
            contestant,
            child: OsString::new(),
            sleeper: OsString::new(),
            children: 100,
            at_once: 1,
            live: 1,
            host_mib: 0,
        };
        while let Some(arg) = args.next() {
            let arg = arg.to_string_lossy();
            let value = args.next().with_context(|| format!("{arg} needs a value"))?;
            let number =
                || value.to_string_lossy().parse::<u32>().with_context(|| format!("the value of {arg}"));
            match &*arg {
                "--child" => options.child = value,
                "--sleeper" => options.sleeper = value,
                "--children" => options.children = number()?.max(1),
                "--at-once" => options.at_once = number()?.max(1) as usize,
                "--live" => options.live = number()?.max(1) as usize,
                "--host-mib" => options.host_mib = number()? as usize,
                _ => bail!("unknown option `{arg}`"),
            }
        }
        if options.child.is_empty() {
            bail!("no child; hint: --child PATH");
        }
        Ok(options)
    }

    /// Returns the error for a contestant that the question does not have.
    pub(crate) fn unknown(&self) -> anyhow::Error {
        anyhow::anyhow!("unknown contestant `{}` of {}", self.contestant, self.question)
    }
}
