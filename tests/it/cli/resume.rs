//! Runs that were cut off and are taken up again: nothing that finished runs twice, and nothing
//! that it wrote is lost.
//!
//! `MINDER_KILLS` sets how many runs of each mode are killed, each at another moment;
//! `MINDER_SEED` repeats one choice of moments and outputs.
#![cfg(any(target_os = "linux", windows))]

mod output_checks;
#[cfg(unix)] // Signals ask for the end.
mod interrupts;
mod keep_order;
#[cfg(unix)] // The jobs are utilities of POSIX.
mod blocks;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use minder::{Child, ExitStatus, Stdio};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use self::output_checks::{Look, Shown, check, work};
use super::{PATIENCE, minder, path, pipe};

/// The process, or the processes, that a test kills.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    /// The process that runs the jobs.
    Runner,
    /// The process that the user started.
    #[cfg(unix)]
    Outer,
    /// All processes of the command.
    #[cfg(unix)]
    Group,
}

#[cfg(unix)]
const VICTIMS: [Victim; 3] = [Victim::Runner, Victim::Outer, Victim::Group];
/// There is one process only.
#[cfg(windows)]
const VICTIMS: [Victim; 1] = [Victim::Runner];

/// Returns whether a run was ended by [`Running::kill`].
fn is_killed(status: ExitStatus) -> bool {
    matches!(status, ExitStatus::Signaled { .. }) || (cfg!(windows) && status == ExitStatus::Exited(9))
}

/// Returns how many runs of each mode are killed.
fn kills() -> usize {
    // Under Wine, a start takes many times as long.
    let few = if cfg!(windows) { 1 } else { 3 };
    std::env::var("MINDER_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}

/// Pseudo-random numbers. The printed seed repeats them.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(salt: &str) -> Self {
        let seed = std::env::var("MINDER_SEED").ok().and_then(|text| text.parse().ok());
        let clock =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("clock is after 1970");
        let seed = seed.unwrap_or(clock.as_nanos() as u64 % 1_000_000);
        eprintln!("MINDER_SEED={seed}");
        Self(salt.bytes().fold(seed + 1, |all, byte| all.wrapping_mul(31).wrapping_add(u64::from(byte))))
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

/// A run of `work` jobs, through all its attempts.
struct Trial {
    dir: tempfile::TempDir,
    flags: String,
    seed: usize,
    jobs: usize,
    degree: usize,
    shown: Vec<Shown>,
}

impl Trial {
    fn new(flags: &str, seed: usize, jobs: usize) -> Self {
        let dir = super::temp_dir();
        fs::create_dir(dir.path().join("here")).expect("create directory");
        let degree = flags.split(' ').find_map(|word| word.strip_prefix("-j")?.parse().ok()).unwrap_or(4);
        let flags = flags.replace("DIR", path(dir.path()));
        let flags = if flags.contains("-j") { flags } else { format!("-j4 {flags}") };
        Self { dir, flags, seed, jobs, degree, shown: Vec::new() }
    }

    /// Returns whether jobs write directly to the stdout of the command.
    fn is_straight(&self) -> bool {
        self.flags.split(' ').any(|flag| flag == "-u")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn all(&self) -> BTreeSet<usize> {
        (1..=self.jobs).collect()
    }

    fn log(&self) -> String {
        super::file(&self.file("log"))
    }

    /// Returns the only run in the state directory.
    fn run(&self) -> Option<PathBuf> {
        let found: Vec<_> = fs::read_dir(self.file("state/runs")).into_iter().flatten().flatten().collect();
        assert!(found.len() <= 1, "more than one run: {found:?}");
        Some(found.first()?.path())
    }

    /// Returns the arguments of the next attempt.
    fn words(&self) -> Vec<String> {
        let own = |text: &str| super::arguments(text).map(str::to_owned).collect::<Vec<_>>();
        match self.run().filter(|run| run.join("manifest.json").exists()) {
            Some(run) => own(&format!(
                "run --resume {}",
                run.file_name().expect("path has a file name").to_string_lossy()
            )),
            None => {
                // It was killed before anything ran.
                assert!(self.log().is_empty(), "jobs ran without a record");
                let _ = fs::remove_dir_all(self.file("state"));
                let log = self.file("log");
                let mut words = own(&format!("run {} CHILD work {} {}", self.flags, path(&log), self.seed));
                words.push("{}".to_owned());
                words.push(":::".to_owned());
                words.extend((1..=self.jobs).map(|job| job.to_string()));
                words
            }
        }
    }

    /// Returns the jobs whose end is recorded.
    fn recorded(&self) -> BTreeSet<usize> {
        self.run().map(|run| recorded(&run)).unwrap_or_default()
    }

    fn start(&self) -> Running {
        // A pipe and a file in turns: bytes go different ways.
        Running::start(&self.words(), self.dir.path(), self.shown.len().is_multiple_of(2))
    }

    /// Makes one attempt. With `kill` it kills the victim when the log has the given number of
    /// lines, after spinning the given number of times. Returns the jobs that were started.
    fn attempt(&mut self, kill: Option<(Victim, usize, usize)>) -> (Vec<usize>, ExitStatus) {
        let before = self.log().len();
        let recorded = self.recorded();
        let mut running = self.start();
        if let Some((victim, lines, spins)) = kill {
            running.wait_until("enough jobs", |_| self.log().lines().count() >= lines);
            (0..spins).for_each(|_| std::hint::spin_loop());
            running.kill(victim);
        }
        let (status, out, err) = running.wait();
        let killed = is_killed(status);
        if !killed {
            assert_eq!(status, ExitStatus::Exited(0), "{err}");
            let own = |line: &str| line.contains("err 0") || line.ends_with("torn");
            assert!(self.is_straight() || err.lines().all(own), "{err}");
        }
        self.shown.push(Shown { out, err, killed, cut: BTreeSet::new() });
        let log = self.log();
        let started: Vec<usize> = numbers(&log[before..], '+');
        let again: Vec<&usize> = started.iter().filter(|job| recorded.contains(job)).collect();
        assert!(again.is_empty(), "recorded, and ran again: {again:?}");
        let unique: BTreeSet<&usize> = started.iter().collect();
        assert_eq!(unique.len(), started.len(), "started twice in one attempt");
        if !killed {
            let started = started.iter().copied().collect::<BTreeSet<_>>();
            let rest = &self.all() - &recorded;
            assert_eq!(started, rest, "not exactly the others ran");
        }
        (started, status)
    }

    /// Checks the record and the output of a run that was not killed in its last attempt.
    fn check(&mut self) {
        let kills = self.shown.iter().filter(|shown| shown.killed).count();
        assert_eq!(self.recorded(), self.all(), "the record");
        let (again, status) = self.attempt(None);
        assert_eq!(
            (again.len(), status),
            (0, ExitStatus::Exited(0)),
            "a complete run was resumed and ran jobs"
        );
        let last = self.shown.pop().expect("take last attempt");
        assert!(last.out.is_empty() && last.err.is_empty(), "{:?} {}", super::text(&last.out), last.err);
        let left: Vec<String> = fs::read_dir(self.run().expect("find run"))
            .expect("list directory")
            .map(|entry| entry.expect("read directory entry").file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("out-") || name.starts_with("spill-"))
            .collect();
        // On Windows, a name lasts as long as a process has the file open: that of a killed job may still
        // be about to exit. Under Wine, one that was killed while it started never exits.
        let held = if cfg!(windows) { self.degree * kills } else { 0 };
        assert!(left.len() <= held, "left: {left:?}");
        if !self.is_straight() {
            check(&self.shown, Look::of(&self.flags), self.seed, &self.all(), self.degree * kills);
        }
        if self.flags.contains("--results") {
            for job in 1..=self.jobs {
                let file = self.file(&format!("results/1/{job}/stdout"));
                assert!(fs::read(file).expect("read result") == work(self.seed, job), "result of job {job}");
            }
        }
        if self.flags.contains("--joblog") {
            self.check_joblog();
        }
    }

    /// Every row is whole. A job that the record has may lack its row: it was written later.
    fn check_joblog(&self) {
        let text = super::file(&self.file("joblog"));
        assert!(text.starts_with("Seq\tHost\t") && text.ends_with('\n'), "{text}");
        let mut jobs = BTreeSet::new();
        for row in text.lines().skip(1) {
            let columns: Vec<&str> = row.split('\t').collect();
            assert_eq!(columns.len(), 9, "{row}");
            let job: usize = columns[0].parse().expect("parse number");
            assert!(columns[8].ends_with(&format!(" {job}")), "{row}");
            jobs.insert(job);
        }
        let missing: Vec<usize> = (1..=self.jobs).filter(|job| !jobs.contains(job)).collect();
        assert!(missing.is_empty(), "no row of {missing:?}");
    }
}

/// Returns the jobs whose end is in the record of this run.
fn recorded(run: &Path) -> BTreeSet<usize> {
    let mut jobs = BTreeSet::new();
    for entry in fs::read_dir(run).expect("list directory").flatten() {
        if !entry.file_name().to_string_lossy().starts_with("attempt-") {
            continue;
        }
        let text = super::file(&entry.path());
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with("\"}\n"));
        let job = |line: &str| {
            line.strip_prefix("{\"event\":\"ended\",\"job\":")?.split_once(',')?.0.parse::<usize>().ok()
        };
        jobs.extend(whole.filter_map(job));
    }
    jobs
}

/// Returns the numbers of the lines of a log that begin with this mark.
fn numbers(log: &str, mark: char) -> Vec<usize> {
    log.lines().filter_map(|line| line.strip_prefix(mark)?.parse().ok()).collect()
}

/// Returns the canonical path of the working directory of all processes of a run.
fn home(trial: &Path) -> PathBuf {
    let here = trial.join("here");
    if cfg!(windows) { here } else { fs::canonicalize(here).expect("canonicalize path") }
}

/// The destination of a run's output.
enum Sink {
    Pipe(JoinHandle<Vec<u8>>),
    File(PathBuf),
}

impl Sink {
    fn pipe() -> (Stdio, Self) {
        let (mut reader, writer) = pipe();
        let read = move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).expect("read to end");
            bytes
        };
        (writer.into(), Self::Pipe(std::thread::spawn(read)))
    }

    fn file(path: PathBuf) -> (Stdio, Self) {
        (File::create(&path).expect("create file").into(), Self::File(path))
    }

    /// Returns all output. Every writer must have exited.
    fn take(self) -> Vec<u8> {
        match self {
            Self::Pipe(reader) => reader.join().expect("join reader"),
            Self::File(path) => fs::read(path).expect("read file"),
        }
    }
}

/// One attempt that is still running. Everything of it works in its own directory, and is found by
/// that.
struct Running {
    child: Child,
    sinks: Option<(Sink, Sink)>,
    here: PathBuf,
}

impl Running {
    fn start(words: &[String], trial: &Path, piped: bool) -> Self {
        let mut command = minder("");
        command.args(words).env("MINDER_STATE_DIR", trial.join("state")).current_dir(trial.join("here"));
        let (out, shown) = if piped { Sink::pipe() } else { Sink::file(trial.join("out")) };
        let (err, said) = Sink::pipe();
        let child = command.stdout(out).stderr(err).spawn().expect("start command");
        let here = home(trial);
        Self { child, sinks: Some((shown, said)), here }
    }

    #[cfg(unix)]
    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed()).expect("valid pid")
    }

    fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("poll child").is_some()
    }

    /// Waits until something holds, or the run has ended.
    fn wait_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) && !self.is_over() {
            assert!(Instant::now() < deadline, "waited in vain for {what}");
            let _ = self.child.wait_timeout(Duration::from_millis(1));
        }
    }

    #[cfg(unix)]
    fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
    }

    #[cfg(windows)]
    fn kill(&mut self, _victim: Victim) {
        if !self.is_over() {
            crate::support::end(self.child.id());
        }
    }

    #[cfg(unix)]
    fn kill(&mut self, victim: Victim) {
        let runner = super::runner(self.child.id()).unwrap_or(self.child.id());
        let _ = match victim {
            Victim::Outer => kill_process(self.pid(), Signal::KILL),
            Victim::Group => kill_process_group(self.pid(), Signal::KILL),
            Victim::Runner => {
                kill_process(Pid::from_raw(runner.cast_signed()).expect("valid pid"), Signal::KILL)
            }
        };
    }

    /// Returns the processes whose working directory is that of the run.
    #[cfg(windows)]
    fn inhabitants(&self) -> Vec<u32> {
        crate::support::children_of(self.child.id())
    }

    #[cfg(unix)]
    fn inhabitants(&self) -> Vec<u32> {
        let processes = fs::read_dir("/proc").expect("list processes").flatten();
        let here = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == self.here);
        processes.filter_map(|process| process.file_name().to_str()?.parse().ok()).filter(here).collect()
    }

    /// Returns whether the lock of a run is held. An exiting process closes its files last.
    fn is_locked(&self) -> bool {
        let runs = self.here.with_file_name("state/runs");
        fs::read_dir(runs)
            .into_iter()
            .flatten()
            .flatten()
            .any(|run| File::open(run.path().join("lock")).is_ok_and(|lock| lock.try_lock_shared().is_err()))
    }

    /// Waits until nothing is left of it.
    fn settle(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.inhabitants().is_empty() || self.is_locked() {
            assert!(Instant::now() < deadline, "these live on: {:?}", self.inhabitants());
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    /// Waits for its end, and for the end of all that it started.
    fn wait(mut self) -> (ExitStatus, Vec<u8>, String) {
        let exit = self.child.wait_timeout(PATIENCE).expect("wait for child").expect("wait for exit");
        self.settle();
        let (shown, said) = self.sinks.take().expect("take outputs");
        (exit.status, shown.take(), super::text(&said.take()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for pid in self.inhabitants() {
            #[cfg(windows)]
            if crate::support::lives(pid) {
                crate::support::end(pid);
            }
            #[cfg(unix)]
            let _ = kill_process(Pid::from_raw(pid.cast_signed()).expect("valid pid"), Signal::KILL);
        }
    }
}

/// Runs of this mode are killed, some of them again and again, and taken up until they end by
/// themselves.
fn survives(flags: &str) {
    let mut random = Random::new(flags);
    for round in 0..kills() {
        let jobs = 30;
        let victim = VICTIMS[round % VICTIMS.len()];
        let mut trial = Trial::new(flags, random.below(1_000_000), jobs);
        eprintln!("{flags}: round {round}, {victim:?}, seed {}", trial.seed);
        for _ in 0..=random.below(3) {
            let lines = trial.log().lines().count();
            let at = lines + random.below((2 * jobs).saturating_sub(lines).max(2));
            let (_, status) = trial.attempt(Some((victim, at, random.below(1 << 18))));
            if !is_killed(status) {
                break;
            }
        }
        trial.attempt(None);
        trial.check();
    }
}

macro_rules! modes {
    ($($(#[$on:meta])* $name:ident: $flags:literal;)*) => { $(
        $(#[$on])*
        #[test]
        fn $name() {
            survives($flags);
        }
    )* };
}

modes! {
    killed_run_is_resumed: "";
    killed_ordered_run_is_resumed: "-k";
    killed_line_buffered_run_is_resumed: "--lb";
    killed_spooling_run_is_resumed: "--spool";
    killed_ordered_spooling_run_is_resumed: "-k --spool";
    killed_tagged_run_is_resumed: "--tag";
    killed_tagged_line_buffered_run_is_resumed: "--lb --tag";
    #[cfg(unix)] // No pseudo console is made on Windows as yet.
    killed_pty_run_is_resumed: "--pty";
    killed_run_with_results_is_resumed: "--results DIR/results";
    killed_sequential_run_is_resumed: "-j1";
    killed_run_with_a_joblog_is_resumed: "--joblog DIR/joblog";
    killed_run_without_guardians_is_resumed: "--no-guard";
    killed_spilling_run_is_resumed: "-k --buffer 64k";
    killed_syncing_run_is_resumed: "--sync";
    killed_ungrouped_run_is_resumed: "-u";
}
