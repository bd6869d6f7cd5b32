//! A server under load: starts it, loads it with `http_load`, and ends it.

use super::contestant::Contestant;
use super::{Ruby, SERVER};
use crate::processes;
use crate::samples::{self, Numbers};
use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use xtask::{run, tree};

/// A server prints its port within this time.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The load ends within these seconds, or the sample has failed.
const LOAD_TIMEOUT: &str = "100";

/// What the clients do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) connections: usize,
    pub(super) idle: usize,
    pub(super) requests: usize,
    pub(super) is_closing: bool,
}

/// Starts the server, loads it once, and returns the numbers.
pub(super) fn sample(ruby: &Ruby, who: &Contestant, load: Load) -> Result<Numbers> {
    let errors = ruby.load.with_file_name("errors");
    let mut server = Server::start(ruby, who, &errors)?;
    let printed = run::read(&mut command(ruby, &server, load));
    let peak = processes::status(&server.child.id().to_string(), "VmHWM").unwrap_or(0.0);
    server.end();
    let printed = printed.with_context(|| said(&errors))?;
    let mut numbers = samples::numbers(&printed)?;
    let named = |name: &str| numbers.iter().find(|(known, _)| known == name).map_or(0.0, |(_, value)| *value);
    let requests = named("requests");
    ensure!(requests > 0.0, "the load printed `{}`", printed.trim());
    let derived = [
        ("cpu_us", named("server_cpu_ns") / requests / 1e3),
        ("rate", requests / named("seconds")),
        ("busy", named("server_cpu_ns") / named("seconds") / 1e9),
        ("peak_kib", peak),
    ];
    numbers.extend(derived.map(|(name, value)| (name.to_string(), value)));
    Ok(numbers)
}

/// Returns the command that loads a server.
fn command(ruby: &Ruby, server: &Server, load: Load) -> Command {
    let mut cmd = run::command(&ruby.load);
    let numbers = [
        ("--connections", load.connections),
        ("--requests", load.requests),
        // Each connection has been accepted, and the heap of Ruby has its size.
        ("--warm", load.requests / 10),
        ("--idle", load.idle),
        ("--pid", server.child.id() as usize),
    ];
    cmd.arg(server.port.to_string()).args(["--limit", LOAD_TIMEOUT]);
    cmd.args(numbers.iter().flat_map(|(name, number)| [(*name).to_string(), number.to_string()]));
    if load.is_closing {
        cmd.arg("--close");
    }
    cmd
}

/// A server that runs. Dropping it ends it.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "xtask builds without minder and its Command")]
    fn start(ruby: &Ruby, who: &Contestant, errors: &Path) -> Result<Self> {
        let mut cmd = if who.mode() == "c" { run::command(&ruby.server_in_c) } else { in_ruby(ruby, who) };
        cmd.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(errors)?);
        let child = cmd.spawn().with_context(|| format!("cannot run `{}`", run::show(&cmd)))?;
        let mut server = Self { child, port: 0 };
        server.port = server.read_port().with_context(|| said(errors))?;
        Ok(server)
    }

    /// Waits for the line with the port.
    fn read_port(&mut self) -> Result<u16> {
        let output = self.child.stdout.take().context("the server has no output")?;
        let (sender, line) = mpsc::channel();
        // It ends with the line, or with the server.
        std::thread::spawn(move || {
            let mut text = String::new();
            let read = BufReader::new(output).read_line(&mut text);
            sender.send(read.map(|_| text))
        });
        match line.recv_timeout(START_TIMEOUT) {
            Ok(line) => line?.trim().parse().ok().context("the server printed no port"),
            Err(_) => bail!("the server printed no port in {} s", START_TIMEOUT.as_secs()),
        }
    }

    fn end(&mut self) {
        // It may have exited, which its missing answers have shown.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the command of a server in Ruby.
fn in_ruby(ruby: &Ruby, who: &Contestant) -> Command {
    let mut cmd = ruby.command();
    let server: PathBuf = tree::root().join(SERVER);
    cmd.args(who.server_words(&server));
    cmd
}

/// Returns what the server wrote to its standard error, in short.
fn said(errors: &Path) -> String {
    let text = std::fs::read_to_string(errors).unwrap_or_default();
    let first = text.lines().find(|line| !line.trim().is_empty());
    format!("the server wrote: {}", first.unwrap_or("nothing"))
}
