//! Starting a guarded run, finding what is left of it, and waiting without sleeping longer than
//! needed.

use crate::support::{nap, patience};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The nine that other runners leave behind.
pub(crate) const MIX: [&str; 9] =
    ["plain", "setsid", "daemon", "ignore", "stopped", "undying", "nested", "bush", "comet"];
/// The number of processes of [`MIX`] that certainly live, including the three of the run; bush and
/// comet come and go.
pub(crate) const MIX_ALIVE: usize = 3 + 17;
/// More than any step takes on a busy machine; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// One run, its word and its report.
pub(crate) struct Run {
    pub(crate) child: Child,
    word: String,
    report: PathBuf,
    _dir: tempfile::TempDir,
}

/// The pids that a runner reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pids {
    pub(crate) outer: Pid,
    pub(crate) inner: Pid,
    pub(crate) runner: Pid,
}

/// A program to start, with its words and streams; `REPORT` among the words stands for the report's
/// path.
pub(crate) struct Setting<'a> {
    pub(crate) program: &'a Path,
    pub(crate) words: Vec<String>,
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

impl Setting<'_> {
    pub(crate) fn new(before: &[&str], after: &[&str]) -> Setting<'static> {
        let words =
            before.iter().chain(&["runner", "REPORT"]).chain(after).map(|w| (*w).to_owned()).collect();
        let stdin = Stdio::null();
        let stdout = Stdio::null();
        let stderr = Stdio::inherit();
        Setting { program: Path::new(env!("CARGO_BIN_EXE_guard_child")), words, stdin, stdout, stderr }
    }

    #[expect(clippy::disallowed_methods, reason = "the oracle is not made of what it judges")]
    pub(crate) fn start(self) -> Run {
        crate::support::catch_ignored_signals();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let word = format!("GUARD_CHILD_MARK={}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let (key, value) = word.split_once('=').expect("split at `=`");
        let dir = tempfile::tempdir().expect("create temporary directory");
        // The runner may be another user.
        let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode;
        fs::set_permissions(dir.path(), mode(0o777)).expect("set permissions");
        let report = dir.path().join("report");
        fs::write(&report, "").expect("write file");
        fs::set_permissions(&report, mode(0o666)).expect("set permissions");
        let path = report.to_str().expect("path is UTF-8").to_owned();
        let words = self.words.into_iter().map(|w| if w == "REPORT" { path.clone() } else { w });
        let mut command = Command::new(self.program);
        command.args(words).env(key, value).stdin(self.stdin).stdout(self.stdout).stderr(self.stderr);
        let until = patience();
        let child = loop {
            match command.spawn() {
                // A process that another test has just forked holds the copy of the program open for writing.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < until => {
                    std::thread::yield_now();
                }
                child => break child.expect("start guard_child"),
            }
        };
        Run { child, word, report, _dir: dir }
    }
}

/// Starts a run in its own session, so that signals to its group or session do not reach the tests.
pub(crate) fn start(words: &[&str]) -> Run {
    Setting::new(&["session"], words).start()
}

impl Run {
    /// Returns the present lines of the report.
    pub(crate) fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.report).expect("read file").lines().map(str::to_owned).collect()
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|l| *l == line).count()
    }

    /// Waits until the runner has started its jobs.
    pub(crate) fn ready(&self) -> Pids {
        let line = wait_for(|| self.lines().into_iter().find(|l| l.starts_with("ready ")))
            .expect("wait for line `ready`");
        let mut pids =
            line.split(' ').skip(1).map(|n| Pid::from_raw(n.parse().expect("parse pid")).expect("valid pid"));
        let mut next = || pids.next().expect("read three pids");
        Pids { outer: next(), inner: next(), runner: next() }
    }

    /// Waits until `line` was reported `count` times.
    pub(crate) fn expect_line(&self, line: &str, count: usize) {
        let came = wait_for(|| (self.count(line) >= count).then_some(()));
        assert!(came.is_some(), "`{line}` came {} times, not {count}: {:?}", self.count(line), self.lines());
    }

    /// Waits until at least that many processes carry the word.
    pub(crate) fn expect_alive(&self, count: usize) {
        let came = wait_for(|| (self.alive().len() >= count).then_some(()));
        assert!(came.is_some(), "only {:?} are alive, not {count}", self.alive());
    }

    /// Returns all live processes whose environment has the mark of this run. Zombies do not count.
    pub(crate) fn alive(&self) -> Vec<Pid> {
        every_process(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|b| *b == 0).any(|entry| entry == self.word.as_bytes())
                && stat(pid).is_some_and(|[_, state, ..]| state != "Z" && state != "X")
        })
    }

    /// Returns the time from `since` until nothing was alive any more; panics when that is longer
    /// than promised.
    pub(crate) fn expect_gone(&self, since: Instant, what: &str) -> Duration {
        loop {
            let looked = Instant::now();
            if self.alive().is_empty() {
                let took = looked.duration_since(since);
                note(&format!("{what}: {} ms", took.as_millis()));
                return took;
            }
            if since.elapsed() > gone_within() {
                let names: Vec<_> = self.alive().into_iter().map(|p| (p, command_line(p))).collect();
                panic!("{what}: after that time these live: {names:?}");
            }
            nap(Duration::from_millis(1));
        }
    }

    /// Waits for the started process and returns its exit status.
    pub(crate) fn status(&mut self) -> ExitStatus {
        let status = wait_for(|| self.child.try_wait().expect("poll child"));
        status.unwrap_or_else(|| panic!("it does not end: {:?}", self.lines()))
    }

    /// Returns the value that a shell would see as `$?`.
    pub(crate) fn shell_status(&mut self) -> i32 {
        let status = self.status();
        status.code().unwrap_or_else(|| 128 + status.signal().expect("find end"))
    }
}

impl Drop for Run {
    /// A failed test leaves nothing.
    fn drop(&mut self) {
        for _ in 0..50 {
            let alive = self.alive();
            if alive.is_empty() {
                break;
            }
            for pid in alive {
                kill(pid);
            }
        }
        let _ = self.child.wait();
    }
}

pub(crate) fn kill(pid: Pid) {
    send(pid, Signal::KILL);
}

pub(crate) fn send(pid: Pid, signal: Signal) {
    // It may have died of what came before.
    let _ = kill_process(pid, signal);
}

/// Returns the process group of a process, or `None` if the process has exited or its group is of
/// another PID namespace.
pub(crate) fn group_of(pid: Pid) -> Option<Pid> {
    let pid = nix::unistd::Pid::from_raw(pid.as_raw_nonzero().get());
    Pid::from_raw(nix::unistd::getpgid(Some(pid)).ok()?.as_raw())
}

/// Signals the process group of a run, after a check that `leader` leads it.
pub(crate) fn send_group(leader: Pid, signal: Signal) {
    let Some(group) = group_of(leader) else { return };
    assert_eq!(group, leader, "the run does not lead its process group");
    let _ = kill_process_group(leader, signal);
}

/// Returns the pids for which `chosen` holds, except 1 and our own. A process that forks and exits while
/// the table is read has a newer pid, which is looked up: until none is newer, or, since other tests fork
/// all the time, until several looks found none that is chosen.
pub(crate) fn every_process(chosen: impl Fn(Pid) -> bool) -> Vec<Pid> {
    const LOOKS_MAX: usize = 50;
    const VAIN_LOOKS_MAX: usize = 5;
    let mut newest = newest_pid();
    let chosen = |pid: &Pid| *pid != Pid::INIT && *pid != rustix::process::getpid() && chosen(*pid);
    let numbers = fs::read_dir("/proc").expect("list processes").flatten();
    let pids = numbers.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    let mut pids: Vec<Pid> = pids.filter(&chosen).collect();
    let mut vain_looks = 0;
    for _ in 0..LOOKS_MAX {
        let before = newest;
        newest = newest_pid();
        if newest == before || vain_looks == VAIN_LOOKS_MAX {
            break;
        }
        // The pids begin again at the lowest.
        let first = if newest > before { before + 1 } else { 1 };
        let count_before = pids.len();
        pids.extend((first..=newest).filter_map(Pid::from_raw).filter(is_leader).filter(&chosen));
        vain_looks = if pids.len() == count_before { vain_looks + 1 } else { 0 };
    }
    pids.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
    pids.dedup();
    pids
}

/// The pid that was assigned last: the last field of proc_loadavg(5).
fn newest_pid() -> i32 {
    let line = fs::read_to_string("/proc/loadavg").expect("read /proc/loadavg");
    line.split_ascii_whitespace().next_back().and_then(|pid| pid.parse().ok()).expect("read the newest pid")
}

/// Returns whether this is the id of a process, and not that of another of its threads.
fn is_leader(pid: &Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Tgid:").is_some_and(|id| id.trim() == pid.to_string()))
}

/// Name, state, parent, group, session.
pub(crate) fn stat(pid: Pid) -> Option<[String; 5]> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let name = text.split_once('(')?.1.rsplit_once(')')?.0;
    let rest = text.rsplit_once(") ")?.1;
    let mut fields = rest.split(' ').map(str::to_owned);
    Some([name.to_owned(), fields.next()?, fields.next()?, fields.next()?, fields.next()?])
}

pub(crate) fn command_line(pid: Pid) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Calls `look` until it finds something, for as long as patience lasts.
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = look();
        if found.is_some() || Instant::now() > deadline {
            return found;
        }
        nap(Duration::from_millis(1));
    }
}

/// Returns the number of seconds for which races are run: the whole loop at least once.
pub(crate) fn race_seconds() -> u64 {
    std::env::var("MINDER_RACE_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(0)
}

/// A figure for who asked for more than the default.
pub(crate) fn note(line: &str) {
    if race_seconds() > 0 {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Prints what was not tested, and why.
pub(crate) fn skip(why: &str) {
    crate::support::skip(format_args!("{why}"));
}

/// Copies guard_child to a file with this unique name and mode, and returns its path.
pub(crate) fn private_copy(dir: &Path, name: &str, mode: u32) -> PathBuf {
    let path = dir.join(name);
    fs::copy(env!("CARGO_BIN_EXE_guard_child"), &path).expect("copy program");
    let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode;
    fs::set_permissions(dir, open(0o755)).expect("set permissions");
    fs::set_permissions(&path, open(mode)).expect("set permissions");
    path
}

/// Returns the longest time for which a tree may live after the kill. One second is promised, and
/// checked with `MINDER_GONE_MS=1000`; alongside other tests that start thousands of processes, on
/// a machine that is shared, it is as long as any other wait.
fn gone_within() -> Duration {
    let asked = std::env::var("MINDER_GONE_MS").ok().and_then(|text| text.parse().ok());
    asked.map_or(PATIENCE, Duration::from_millis)
}
