//! Runs `feeder | runner | reader` in private directories, and samples the runner meanwhile.
//!
//! The runner's processor time is that of its whole tree (`wait4`) less the times that the children
//! write down. It is not read from `/proc`: that would miss processes between two samples, such as a
//! shell for each job.

use super::super::meter::{self, Cost};
use super::super::peers::Peers;
use anyhow::{Context, Result};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xtask::run;

/// How often the processes of a runner and its files are sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

/// The programs that runners start here, which are not part of a runner.
const CHILDREN: [&str; 4] = ["line_writer", "line_flood", "tiny", "child"];

/// Private directories for temporary files and for the record, which are removed on drop.
pub(super) struct Fixtures<'a> {
    peers: &'a Peers,
    dir: PathBuf,
}

impl Drop for Fixtures<'_> {
    fn drop(&mut self) {
        // What cannot be removed stays below target.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The programs of one run.
#[derive(Default)]
pub(super) struct Pipeline {
    /// Writes to the runner's standard input; without it, the runner reads `input`.
    pub(super) feeder: Vec<String>,
    pub(super) runner: Vec<String>,
    /// Reads what the runner writes; without it, the output goes to /dev/null.
    pub(super) reader: Vec<String>,
    pub(super) input: PathBuf,
    /// Variables that all of them get.
    pub(super) env: Vec<(&'static str, String)>,
    /// Names of processors as `taskset -c` knows them; empty for all.
    pub(super) cpus: String,
}

/// The results of one run.
pub(super) struct Seen {
    pub(super) cost: Cost,
    /// From before the start of all to the end of all.
    pub(super) wall: Duration,
    /// Processor time of the runner without its children's.
    pub(super) runner_us: f64,
    /// How many children or feeders wrote down their time. If some did not, `runner_us` includes it.
    pub(super) tellers: usize,
    pub(super) peak: Peak,
    /// What the reader printed.
    pub(super) told: String,
}

impl<'a> Fixtures<'a> {
    pub(super) fn new(peers: &'a Peers) -> Result<Self> {
        let dir = PathBuf::from(peers.built(&format!("fixtures-{}", std::process::id())));
        std::fs::create_dir_all(&dir)?;
        Ok(Self { peers, dir })
    }

    /// Writes a file that exists as long as the fixtures.
    pub(super) fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.dir.join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Runs the programs, in directories that are empty before and removed after.
    pub(super) fn run(&self, play: &Pipeline) -> Result<Seen> {
        let dirs = self.dir.join("dirs");
        let tmp = dirs.join("tmp");
        let state = dirs.join("state");
        let spent = self.dir.join("spent");
        std::fs::create_dir_all(&tmp)?;
        std::fs::create_dir_all(&state)?;
        std::fs::write(&spent, "")?;
        let ready = |cmd: &mut Command| {
            cmd.env("TMPDIR", &tmp).env("MINDER_STATE_DIR", &state).env("SPENT", &spent);
            cmd.envs(play.env.iter().map(|(name, value)| (name, value)));
        };
        let mut peak = Peak::default();
        let (wall, told) =
            self.pipeline(play, ready, |meter, known| peak.raise(&look(meter, &dirs, known)))?;
        let cost = meter::read(self.peers)?;
        let text = std::fs::read_to_string(&spent).context("the children wrote nothing")?;
        let times: Vec<f64> = text.lines().map(str::parse).collect::<Result<_, _>>()?;
        // A feeder is not a child of the runner, but writes down its time too.
        let below = if play.feeder.is_empty() { times.iter().sum() } else { 0.0 };
        std::fs::remove_dir_all(&dirs).context("a runner left what cannot be removed")?;
        Ok(Seen { runner_us: cost.tree_us - below, tellers: times.len(), wall, peak, told, cost })
    }

    fn pipeline(
        &self,
        play: &Pipeline,
        ready: impl Fn(&mut Command),
        mut look: impl FnMut(u32, &mut HashSet<String>),
    ) -> Result<(Duration, String)> {
        let mut runner = meter::command(self.peers, &pinned(&play.cpus, &play.runner), &play.input)?;
        ready(&mut runner);
        let began = Instant::now();
        let reader = if play.reader.is_empty() {
            None
        } else {
            let (from, to) = std::io::pipe()?;
            runner.stdout(to);
            let mut cmd = command(&pinned(&play.cpus, &play.reader));
            Some(start(cmd.stdin(from).stdout(Stdio::piped()))?)
        };
        if reader.is_none() {
            runner.stdout(Stdio::null());
        }
        let feeder = if play.feeder.is_empty() {
            None
        } else {
            let (from, to) = std::io::pipe()?;
            runner.stdin(from);
            let mut cmd = command(&pinned(&play.cpus, &play.feeder));
            ready(&mut cmd);
            Some(start(cmd.stdin(Stdio::null()).stdout(to))?)
        };
        let mut known = HashSet::new();
        run::watch(&mut runner, SAMPLE_INTERVAL, |meter| look(meter, &mut known))?;
        // Our ends of the pipes: the reader waits for them to close.
        drop(runner);
        let told = reader.map(Child::wait_with_output).transpose()?;
        feeder.map(|mut child| child.wait()).transpose()?;
        let text = told.map_or_else(String::new, |out| String::from_utf8_lossy(&out.stdout).into_owned());
        Ok((began.elapsed(), text))
    }
}

fn command(words: &[String]) -> Command {
    let mut cmd = run::command(words.first().map_or("", String::as_str));
    cmd.args(words.iter().skip(1));
    cmd
}

#[expect(
    clippy::disallowed_methods,
    reason = "xtask has to build without minder, whose Command it cannot use"
)]
fn start(cmd: &mut Command) -> Result<Child> {
    let line = run::show(cmd);
    cmd.spawn().with_context(|| format!("cannot run `{line}`"))
}

/// Returns the arguments that run `words` on these processors only.
fn pinned(cpus: &str, words: &[String]) -> Vec<String> {
    let before: &[&str] = if cpus.is_empty() { &[] } else { &["taskset", "-c", cpus] };
    before.iter().map(ToString::to_string).chain(words.iter().cloned()).collect()
}

/// The peaks of a runner's own processes and of its files.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peak {
    pub(super) hwm_kib: f64,
    pub(super) largest_kib: f64,
    pub(super) files_kib: f64,
}

impl Peak {
    /// The names of the columns that [`Peak::csv`] fills.
    pub(super) const CSV: &str = "hwm_kib,largest_hwm_kib,files_kib";

    pub(super) fn csv(&self) -> String {
        format!("{},{},{}", self.hwm_kib, self.largest_kib, self.files_kib)
    }

    fn raise(&mut self, other: &Self) {
        self.hwm_kib = self.hwm_kib.max(other.hwm_kib);
        self.largest_kib = self.largest_kib.max(other.largest_kib);
        self.files_kib = self.files_kib.max(other.files_kib);
    }
}

/// Samples the processes below the meter that are not jobs, and the files that are in `dirs` or are
/// open in one of these processes without a name. Memory counts only of processes that the previous
/// sample had too: a child before its `exec` is still a copy of the runner.
fn look(meter: u32, dirs: &Path, known: &mut HashSet<String>) -> Peak {
    let mut seen = Peak::default();
    let mut now = HashSet::new();
    let mut files = HashMap::new();
    let mut todo = below(&meter.to_string());
    while let Some(pid) = todo.pop() {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        // The unnamed file of a job may be open in the job alone.
        nameless(&pid, &mut files);
        if CHILDREN.contains(&read("comm").trim()) {
            continue;
        }
        todo.extend(below(&pid));
        if known.contains(&pid) {
            let status = read("status");
            let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or_default();
            let hwm = line.split_whitespace().next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
            seen.hwm_kib += hwm;
            seen.largest_kib = seen.largest_kib.max(hwm);
        }
        now.insert(pid);
    }
    *known = now;
    named(dirs, &mut files);
    seen.files_kib = files.values().sum();
    seen
}

/// The length of every file in KiB, by what identifies it. Not its blocks: a file system may give a
/// young file none.
type Files = HashMap<String, f64>;

fn kib(of: &std::fs::Metadata) -> f64 {
    f64::from(u32::try_from(of.len() / 1024).unwrap_or(u32::MAX))
}

fn named(dir: &Path, files: &mut Files) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(of) if of.is_dir() => named(&entry.path(), files),
            Ok(of) if of.is_file() => drop(files.insert(entry.path().display().to_string(), kib(&of))),
            _ => {}
        }
    }
}

/// Open files that were unlinked or never had a name, files in memory among them. One that several
/// processes hold counts once, by its inode.
fn nameless(pid: &str, files: &mut Files) {
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        let Ok(name) = std::fs::read_link(entry.path()) else { continue };
        let name = name.display().to_string();
        if !name.ends_with(" (deleted)") {
            continue;
        }
        let number = entry.file_name().display().to_string();
        let about = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).unwrap_or_default();
        let inode = about.lines().find(|l| l.starts_with("ino:")).unwrap_or_default();
        if let Ok(of) = std::fs::metadata(entry.path())
            && of.is_file()
        {
            files.insert(format!("{name} {inode}"), kib(&of));
        }
    }
}

fn below(pid: &str) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|l| l.split_whitespace().map(String::from).collect::<Vec<_>>()).collect()
}
