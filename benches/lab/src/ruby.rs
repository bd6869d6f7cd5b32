//! `cargo bench-lab ruby`: the fiber scheduler of the gem, threads, Ruby's reference scheduler,
//! other schedulers, and a server in C.
//!
//! `benches/peers/ruby` has the programs, `bindings/ruby/samples/http_server.rb` is the server.
//! Each sample is a separate process. The goals stand next to the measured values, and those that
//! were missed are marked.

mod contestant;
mod server;
mod http;
mod pipe;
mod fibers;

use crate::bench::Bench;
use crate::peers::Peers;
use crate::programs::compile;
use crate::question::{self, Question};
use crate::samples::{self, Numbers, Samples, pairs};
use anyhow::{Result, anyhow};
use contestant::Contestant;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::install::Missing;
use xtask::{ruby, run, tree};

pub(crate) use http::chart;

/// The directory of the programs in Ruby.
const PROGRAMS: &str = "benches/peers/ruby";
/// The server in Ruby.
const SERVER: &str = "bindings/ruby/samples/http_server.rb";
/// The variable that names the directory of the other schedulers.
const PEERS: &str = "MINDER_RUBY_PEERS";
/// Seconds after which a sample is killed: many times what it takes.
const SAMPLE_TIMEOUT: &str = "120";

const QUESTIONS: [Question<Ruby>; 7] = [
    Question {
        name: "keep-alive",
        what: "HTTP, 64 connections that stay open",
        rounds: 9,
        ask: http::keep_alive,
    },
    Question {
        name: "idle",
        what: "HTTP, 1,000 idle connections and 16 active ones",
        rounds: 7,
        ask: http::idle,
    },
    Question {
        name: "close",
        what: "HTTP, a connection for each request, 64 at once",
        rounds: 7,
        ask: http::close,
    },
    Question { name: "pipe", what: "1 GiB through a pipe within one process", rounds: 9, ask: pipe::pipe },
    Question { name: "sleepers", what: "30,000 fibers that sleep", rounds: 7, ask: fibers::sleepers },
    Question { name: "timers", what: "1,000,000 timers without fibers", rounds: 5, ask: fibers::timers },
    Question {
        name: "wakeup",
        what: "from a push in a thread to the fiber that waits for it",
        rounds: 5,
        ask: fibers::wakeup,
    },
];

/// `cargo bench-lab ruby [--rounds N] [--quick] [--only NAME]...`
pub(crate) fn main(words: &[String]) -> Result<()> {
    question::answer(("ruby", "the Ruby gem"), &QUESTIONS, words, Peers::none, |_, _| {
        let ruby = Ruby::ready()?;
        let versions = ruby.versions.clone();
        Ok((ruby, versions))
    })
}

/// What the questions need: the gem, the other schedulers, and the programs in C.
struct Ruby {
    /// The directory for `-I`.
    library: PathBuf,
    /// The names of our backends that work here, the best one first.
    backends: Vec<String>,
    /// The file of Ruby's reference scheduler.
    reference: Result<PathBuf, Missing>,
    /// The directory of the other schedulers.
    peers: Option<PathBuf>,
    server_in_c: PathBuf,
    load: PathBuf,
    versions: Vec<String>,
}

impl Ruby {
    fn ready() -> Result<Self> {
        ruby::ready().map_err(|why| anyhow!("{why}"))?;
        let library = ruby::extension(ruby::Profile::Release)?;
        let reference = ruby::sources().map(|source| source.join(ruby::REFERENCE));
        let list = "require 'minder'; puts Minder::Scheduler.available_backends";
        let backends = run::read(interpreter(&library).args(["-e", list]))?;
        let program = |name| compile(name, &["-Wall", "-Wextra"], &[]);
        let version = "require 'minder'; puts \"#{RUBY_DESCRIPTION}; minder #{Minder::VERSION}\"";
        let mut versions = vec![run::read(interpreter(&library).args(["-e", version]))?.trim().to_string()];
        let archive = ruby::sources().ok().map(|source| std::fs::read_to_string(source.join("ARCHIVE")));
        if let Some(Ok(archive)) = archive {
            versions.push(format!("reference: test/fiber/scheduler.rb of {}", archive.trim()));
        }
        let peers = std::env::var_os(PEERS).filter(|name| !name.is_empty()).map(PathBuf::from);
        versions.extend(peers.as_deref().and_then(names).map(|names| format!("{PEERS}: {names}")));
        Ok(Self {
            library,
            backends: backends.lines().map(String::from).collect(),
            reference,
            peers,
            server_in_c: program("ruby/http_epoll")?.into(),
            load: program("ruby/http_load")?.into(),
            versions,
        })
    }

    /// Returns Ruby with everything that a contestant may need in its environment.
    fn command(&self) -> Command {
        let mut cmd = interpreter(&self.library);
        if let Ok(reference) = &self.reference {
            cmd.env("MINDER_RUBY_REFERENCE", reference);
        }
        cmd
    }

    /// Returns why a contestant cannot be measured here.
    fn missing(&self, contestant: &Contestant) -> Option<String> {
        match contestant.mode() {
            "reference" => self.reference.as_ref().err().cloned(),
            _ if contestant.is_peer() && self.peers.is_none() => Some(format!("{PEERS} names no directory")),
            _ => None,
        }
    }

    /// Returns our scheduler with each backend, the best one first.
    fn ours(&self) -> Vec<Contestant> {
        self.backends.iter().map(|backend| Contestant::new(format!("minder:{backend}"))).collect()
    }

    /// Returns our scheduler with the backend for which goals are set.
    fn best(&self) -> Contestant {
        Contestant::new(format!("minder:{}", self.backends.first().map_or("", String::as_str)))
    }

    /// Samples all contestants and sizes in turn, round after round. A scheduler of another project that
    /// fails is left out.
    fn rounds(
        &self,
        bench: &Bench,
        all: &[Contestant],
        sizes: &[usize],
        sample: impl Fn((&Contestant, usize)) -> Result<Numbers>,
    ) -> Result<Samples> {
        let mut samples = Samples::default();
        for who in all {
            if let Some(why) = self.missing(who) {
                samples.leave_out(who, why);
            }
        }
        let forgive = |(who, _): (&Contestant, usize), why| {
            if who.is_peer() { Ok(self.short(&why)) } else { Err(why) }
        };
        samples.add_rounds(bench, &pairs(all, sizes), sample, forgive)?;
        Ok(samples)
    }

    /// Returns an error as one line, without paths of this machine.
    fn short(&self, why: &anyhow::Error) -> String {
        let mut text = format!("{why:#}").replace('\n', " ");
        if let Some(directory) = &self.peers {
            text = text.replace(&directory.display().to_string(), PEERS);
        }
        text.replace(&format!("{}/", tree::root().display()), "")
    }

    /// Runs a program of `benches/peers/ruby` once, and returns the rows that it printed.
    fn sample(&self, program: &str, words: &[String]) -> Result<Numbers> {
        let ruby = self.command();
        let mut cmd = run::bounded(SAMPLE_TIMEOUT, ruby.get_program());
        cmd.args(ruby.get_args());
        cmd.envs(ruby.get_envs().filter_map(|(name, value)| Some((name, value?))));
        cmd.env_remove("MINDER_BACKEND");
        cmd.arg(tree::root().join(PROGRAMS).join(program)).args(words);
        samples::numbers(&run::read(&mut cmd)?)
    }
}

/// Returns Ruby without gems, so that it starts quickly, and with no backend that the caller has chosen.
fn interpreter(library: &Path) -> Command {
    let mut cmd = run::command("ruby");
    cmd.args(["--disable-gems", "-rrbconfig"])
        .arg("-I")
        .arg(library)
        .env_remove("MINDER_BACKEND")
        .env_remove("RUBYOPT");
    cmd
}

/// Returns the names in the directory of the other schedulers, which have the versions.
fn names(directory: &Path) -> Option<String> {
    let gems = directory.join("gems");
    let entries = std::fs::read_dir(if gems.is_dir() { &gems } else { directory }).ok()?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    Some(names.join(", "))
}
