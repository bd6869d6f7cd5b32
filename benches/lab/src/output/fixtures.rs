//! Runs `feeder | runner | reader` in private directories, and samples the runner meanwhile.
//!
//! The runner's processor time is that of its whole tree (`wait4`) less the times that the children
//! write down. It is not read from `/proc`: that would miss processes between two samples, such as a
//! shell for each job.

use crate::meter::{self, Cost};
use crate::processes;
use crate::programs::built;
use crate::samples::{Numbers, Sample, raise};
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
pub(super) struct Fixtures {
    dir: PathBuf,
}

impl Drop for Fixtures {
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
    /// The peaks of the runner's own processes and of its files.
    pub(super) peak: Numbers,
    /// What the reader printed.
    pub(super) printed: String,
}

/// Returns processor seconds of the runner for a GiB that arrived.
pub(super) fn seconds_per_gib(sample: &Sample) -> Option<f64> {
    Some(sample.number("runner_us")? / 1e6 / (sample.number("bytes")? / f64::from(1 << 30)))
}

impl Seen {
    /// Returns the numbers of a sample: CPU time of the runner, time of the pipeline, these, peaks
    /// and cost.
    pub(super) fn numbers(&self, more: Numbers) -> Numbers {
        let mut numbers = vec![
            ("runner_us".into(), self.runner_us),
            ("pipeline_us".into(), (self.wall.as_secs_f64() * 1e6).round()),
        ];
        numbers.extend(more);
        numbers.extend(self.peak.iter().cloned());
        numbers.extend(self.cost.numbers(""));
        numbers
    }
}

impl Fixtures {
    pub(super) fn new() -> Result<Self> {
        let dir = PathBuf::from(built(&format!("fixtures-{}", std::process::id())));
        std::fs::create_dir_all(&dir)?;
        Ok(Self { dir })
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
        let mut peak = Numbers::new();
        let (wall, printed) =
            self.pipeline(play, ready, |meter, known| raise(&mut peak, look(meter, &dirs, known)))?;
        let cost = meter::read()?;
        let text = std::fs::read_to_string(&spent).context("the children wrote nothing")?;
        let times: Vec<f64> = text.lines().map(str::parse).collect::<Result<_, _>>()?;
        // A feeder is not a child of the runner, but writes down its time too.
        let below = if play.feeder.is_empty() { times.iter().sum() } else { 0.0 };
        std::fs::remove_dir_all(&dirs).context("a runner left what cannot be removed")?;
        Ok(Seen { runner_us: cost.tree_us - below, tellers: times.len(), wall, peak, printed, cost })
    }

    fn pipeline(
        &self,
        play: &Pipeline,
        ready: impl Fn(&mut Command),
        mut look: impl FnMut(u32, &mut HashSet<String>),
    ) -> Result<(Duration, String)> {
        let mut runner = meter::command(&pinned(&play.cpus, &play.runner), &play.input)?;
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
        let printed = reader.map(Child::wait_with_output).transpose()?;
        feeder.map(|mut child| child.wait()).transpose()?;
        let text = printed.map_or_else(String::new, |out| String::from_utf8_lossy(&out.stdout).into_owned());
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

/// Samples the processes below the meter that are not jobs, and the files that are in `dirs` or are
/// open in one of these processes without a name.
fn look(meter: u32, dirs: &Path, known: &mut HashSet<String>) -> Numbers {
    let tree = processes::look(meter, &CHILDREN, known);
    let memory = tree.own.iter().filter_map(|pid| processes::status(pid, "VmHWM"));
    let memory: Vec<f64> = memory.collect();
    let mut files = HashMap::new();
    // The unnamed file of a job may be open in the job alone.
    tree.all.iter().for_each(|pid| nameless(pid, &mut files));
    named(dirs, &mut files);
    let numbers = [
        ("hwm_kib", processes::sum(&memory)),
        ("largest_hwm_kib", memory.iter().copied().fold(0.0, f64::max)),
        ("files_kib", processes::sum(files.values())),
    ];
    numbers.map(|(name, value)| (name.into(), value)).into()
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
