//! The command from the outside: its arguments, output, exit status and reaction to signals.
//!
//! Every test runs the real command as a process, with `test_child` as its jobs.

mod run;
mod commands;
mod output;
mod views;
mod input;
#[cfg(target_os = "linux")] // What is missing is hidden in a name space, and named by /proc.
mod surroundings;
#[cfg(unix)] // Shell lines.
mod starts;
mod resource_limits;
#[cfg(target_os = "linux")] // The limit is one of Linux.
mod memory_max;
mod messages;
#[cfg(unix)] // `console` has Ctrl-C, and `windows` runs that are ended by force.
mod signals;
#[cfg(unix)] // No pseudo console is made on Windows as yet, and a console without a window takes no keys.
mod terminal;
#[cfg(target_os = "linux")] // What /proc shows of processes, and terminals.
mod relay;
mod daemons;
mod shutdown;
#[cfg(target_os = "linux")] // Signals to the run, and jobs that answer TERM.
mod asked_to_exit;
#[cfg(target_os = "linux")] // The stack limit, and xargs.
mod packing;
#[cfg(target_os = "linux")] // Signals to the run.
mod tries;
#[cfg(target_os = "linux")] // Signals, terminals, and the memory of a process.
mod slow_readers;
mod suspend_interrupt;
mod descriptors;
#[cfg(unix)] // GNU make. `windows` has a jobserver as make has it there.
mod jobserver;
mod resume;
#[cfg(unix)] // Shell lines.
mod on_agents;
#[cfg(target_os = "linux")] // Shell lines, and /proc.
mod checked_jobs;
#[cfg(unix)] // Shell lines.
mod agents;
#[cfg(target_os = "linux")] // Shell lines, and terminals.
mod attach;
#[cfg(target_os = "linux")] // An sshd of Debian, and /proc.
mod ssh;
mod record;
mod attempts;
mod log;
mod record_faults;
mod advise;
mod bench;
mod help;
mod config;
#[cfg(unix)] // What is shown is typed into bash.
mod guide;
#[cfg(target_os = "linux")] // What is typed is typed into bash, with the programs of Debian.
mod first_hour;
#[cfg(target_os = "linux")] // tmux, and a pseudo-terminal.
mod terminal_snapshots;
mod help_man_completions;
#[cfg(unix)] // GNU parallel, and the shells of Unix.
mod gnu_differential;
mod parallel_compat;
#[cfg(unix)] // bash and zsh.
mod env_parallel;
mod xargs_compat;
mod bench_exit;
mod bench_sweep;
mod bench_turnaround;
mod clock;
#[cfg(windows)]
mod windows;

use std::fs::File;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use minder::{
    ChildId, ChildSet, ChildSetOptions, Command, ExitStatus, OutputMode, SpawnOptions, Stdio, Termination,
};
#[cfg(target_os = "linux")]
use rustix::event::{PollFd, PollFlags};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{CHILD, ChildLog, EventLog, TEST_CHILD, job_bytes};

/// The command. Cargo gives paths for programs of the same package only, so this package builds it
/// again.
const MINDER: &str = env!("CARGO_BIN_EXE_minder-dup");

/// The state directory of runs whose tests do not read the record.
const STATE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/state");

/// A configuration directory that does not exist.
const CONFIG: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-config");

/// The time after which a test gives up on a run. No run takes a tenth of it on an idle machine.
/// Under Wine a start takes longer.
const PATIENCE: Duration = Duration::from_secs(if cfg!(windows) { 180 } else { 60 });

/// The upper bound of a run that would otherwise wait for [`PATIENCE`] or longer: what takes
/// milliseconds takes many seconds on a loaded machine.
const SOON: Duration = Duration::from_secs(50);

/// Splits a line into arguments. `CHILD` stands for test_child, `MINDER` for the command.
fn arguments(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().map(|word| match word {
        "CHILD" => TEST_CHILD,
        "MINDER" => MINDER,
        word => word,
    })
}

/// Returns `minder` with these arguments, an empty stdin, and piped outputs.
fn minder(line: &str) -> Command {
    from(MINDER, line)
}

/// Returns `minder` with these arguments, started by test_child's `as` with changed limits, user or
/// signals.
#[cfg(unix)]
fn minder_as(changes: &str, line: &str) -> Command {
    let mut command = from(TEST_CHILD, "as");
    command.arg(changes).arg(MINDER).args(arguments(line));
    command
}

/// Variables that the machine or a surrounding build may set and that change a run.
const AROUND: [&str; 14] = [
    "MINDER_BACKEND",
    "MINDER_RUN_JOBS",
    "MINDER_RUN_PROFILE",
    "MINDER_RUN_NO_STATUS",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "CARGO_MAKEFLAGS",
    "NO_COLOR",
    "CI",
    "SLURM_JOB_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "INVOCATION_ID",
];

fn from(program: &str, line: &str) -> Command {
    #[cfg(unix)]
    crate::support::catch_ignored_signals();
    let mut command = Command::new(program);
    for name in AROUND {
        command.env_remove(name);
    }
    command.args(arguments(line)).env("LC_ALL", "C.UTF-8").env("MINDER_STATE_DIR", STATE);
    command.env("MINDER_CONFIG_DIR", CONFIG);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Gives a shell line to `minder run`: see [`script`].
fn with_script<'a>(command: &'a mut Command, line: &str) -> &'a mut Command {
    command.args(script(line))
}

/// Returns the arguments that make `minder run` do what a shell line does. `CHILD` in it stands for
/// test_child. Without a POSIX shell, test_child's `mini-shell` runs the line. Tests of the shell
/// itself do not use this.
fn script(line: &str) -> Vec<String> {
    if cfg!(unix) {
        return vec![line.replace("CHILD", CHILD)];
    }
    // A value is a separate word, which nothing in it can change.
    let mut text = String::new();
    let mut values = Vec::new();
    let mut rest = line;
    while let Some((before, (place, after))) =
        rest.split_once('{').and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        text += before;
        if place.contains(' ') {
            // Braces around commands.
            text += "{";
            rest = &rest[before.len() + 1..];
            continue;
        }
        values.push(format!("{{{place}}}"));
        text += &format!("${}", values.len());
        rest = after;
    }
    text += rest;
    if values.is_empty() {
        values.push("{}".to_owned());
        text += " $1";
    }
    [vec![TEST_CHILD.to_owned(), "mini-shell".to_owned(), text], values].concat()
}

/// The program that has its own console, and jobs that report when they run.
#[cfg(windows)]
const CONSOLE_CHILD: &str = env!("CARGO_BIN_EXE_console_child");

/// Runs this in its own console, and presses Ctrl-C there when that many processes have written
/// to `marker`, or when it is there if these are none. Returns the output; the run has to exit with
/// this status, and none of the processes may live on.
#[cfg(windows)]
fn interrupted(processes: usize, marker: &Path, command: &Command, code: u32) -> RunOutput {
    let mut console = from(CONSOLE_CHILD, "press c");
    console.arg(processes.to_string()).arg(marker).arg(command.get_program()).args(command.get_args());
    // A group leader and its children ignore Ctrl-C.
    console.group(minder::Group::Inherit);
    let mut ended = Run::start(&console).wait().exit_code(0);
    let end = format!("{code:08x} 0\n").into_bytes();
    assert!(ended.out.ends_with(&end), "{ended:?}");
    ended.out.truncate(ended.out.len() - end.len());
    ended
}

/// Returns these bytes as the stdin of a run, in a file.
fn input(bytes: &[u8]) -> Stdio {
    crate::support::file_of(bytes).into()
}

/// Runs `minder` with these arguments to its end.
fn run_to_end(line: &str) -> RunOutput {
    Run::start(&minder(line)).wait()
}

/// Runs `minder` with these arguments and this input to its end.
fn run_with_input(line: &str, bytes: &[u8]) -> RunOutput {
    Run::start(minder(line).stdin(input(bytes))).wait()
}

/// A running `minder`. It is killed when this is dropped.
struct Run {
    set: ChildSet,
    token: ChildId,
    event_log: EventLog,
    begun: Instant,
}

impl Run {
    fn start(command: &Command) -> Self {
        #[cfg(unix)]
        crate::support::catch_ignored_signals();
        let mut limits = ChildSetOptions::default();
        // On a busy machine a child of another test may hold copies of the pipes until its exec.
        limits = limits.leak_timeout(Some(Duration::from_secs(2)));
        let mut set = ChildSet::new(limits).expect("create set");
        let begun = Instant::now();
        let token = set
            .spawn(command, SpawnOptions::default().output_mode(OutputMode::Stream))
            .expect("start command");
        Self { set, token, event_log: EventLog::default(), begun }
    }

    /// Returns the pid of the started process, which receives the signals.
    fn pid(&self) -> u32 {
        self.set.pid(self.token).expect("get pid")
    }

    /// Ends the process that was started, as nothing else can: by SIGKILL, or by TerminateProcess.
    /// With guardians, the runner ends a moment later. Its lock is free when it has exited, which may
    /// be after its outputs were closed: this waits for it.
    fn kill(&self) {
        #[cfg(target_os = "linux")]
        let runner = runner(self.pid()).and_then(open_process);
        #[cfg(unix)]
        self.signal(Signal::KILL);
        #[cfg(target_os = "linux")]
        if let Some(runner) = runner {
            let timeout = PATIENCE.try_into().expect("short time");
            let polled = rustix::event::poll(
                &mut [PollFd::from_borrowed_fd(runner.as_fd(), PollFlags::IN)],
                Some(&timeout),
            );
            assert_eq!(polled.expect("poll pidfd"), 1, "the runner outlives its guardian");
        }
        #[cfg(windows)]
        crate::support::end(self.pid());
    }

    #[cfg(unix)]
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid().cast_signed()).expect("valid pid"), signal)
            .expect("signal process");
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = match self.set.write(self.token, rest) {
                // A command that ends before it reads its input.
                Err(error) if error.io_error().kind() == std::io::ErrorKind::BrokenPipe => return,
                written => written.expect("write to stdin"),
            };
            rest = &rest[written..];
            if written == 0 {
                let writables = self.record().writables;
                self.wait_until("room in the input", |record| record.writables > writables);
            }
        }
    }

    fn close(&mut self) {
        self.set.close_stdin(self.token).expect("close stdin");
    }

    fn record(&self) -> &ChildLog {
        self.event_log.child(self.token)
    }

    /// Reads events of the run until `enough`.
    fn wait_until(&mut self, what: &str, enough: impl Fn(&ChildLog) -> bool) {
        let token = self.token;
        let deadline = Instant::now() + PATIENCE;
        let heard =
            self.event_log.read_until(&mut self.set, deadline, |event_log| enough(event_log.child(token)));
        let record = self.record();
        assert!(heard, "no {what} came: {:?}, {:?}", text(&record.outs[0]), text(&record.outs[1]));
    }

    /// Reads events of the run for this time.
    fn read_for(&mut self, time: Duration) {
        self.event_log.read_until(&mut self.set, Instant::now() + time, |_| false);
    }

    /// Reads events of the run for at most this time. Returns `true` if it has ended.
    fn ends_within(&mut self, time: Duration) -> bool {
        let token = self.token;
        let deadline = Instant::now() + time;
        self.event_log.read_until(&mut self.set, deadline, |event_log| event_log.child(token).done.is_some())
    }

    /// Waits until a condition holds that no event reports.
    fn wait_until_true(&mut self, what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < deadline, "waited in vain for {what}");
            self.read_for(Duration::from_millis(5));
        }
    }

    fn wait(mut self) -> RunOutput {
        let token = self.token;
        self.wait_until("end", |record| record.done.is_some());
        let wall = self.begun.elapsed();
        let outcome = self.event_log.outcome(token);
        assert!(!outcome.leaked, "a process of the run holds its outputs after the run has exited");
        let [out, err] =
            std::mem::take(&mut self.event_log.records.get_mut(&token).expect("find log of the child").outs);
        let messages = text(&err[..err.len().min(ERR_MAX)]);
        RunOutput { status: outcome.exit.status, out, err: messages, errors: err, wall }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.set.is_empty() && self.set.kill_all(Termination::IMMEDIATE).is_ok() {
            self.event_log.read_until(&mut self.set, Instant::now() + Duration::from_secs(5), |event_log| {
                event_log.records.values().all(|record| record.done.is_some())
            });
        }
    }
}

/// The most bytes of stderr that become text. Longer ones are compared as bytes.
const ERR_MAX: usize = 256 << 10;

/// A run that has ended.
#[derive(Debug)]
struct RunOutput {
    status: ExitStatus,
    out: Vec<u8>,
    /// The beginning of `errors`, as text.
    err: String,
    errors: Vec<u8>,
    wall: Duration,
}

impl RunOutput {
    fn text(&self) -> String {
        text(&self.out)
    }

    /// Returns the lines of the output, sorted: jobs end in any order.
    fn sorted(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.text().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// Fails unless the run ended with this status.
    #[track_caller]
    fn exit_code(self, code: i32) -> Self {
        let out = self.text();
        let err = &self.err;
        let out = out.get(..200).unwrap_or(&out);
        assert_eq!(self.status, ExitStatus::Exited(code), "\nstdout: {out}\nstderr: {err}");
        self
    }

    /// Fails unless the run ended by this signal.
    #[cfg(unix)]
    #[track_caller]
    fn killed_by(self, signal: Signal) -> Self {
        let by = matches!(self.status, ExitStatus::Signaled { signal: by, .. } if by == signal.as_raw());
        assert!(by, "{:?} instead of {signal:?}\nstderr: {}", self.status, self.err);
        self
    }

    /// Fails unless [`Run::kill`] ended the run.
    #[track_caller]
    fn killed(self) -> Self {
        #[cfg(unix)]
        return self.killed_by(Signal::KILL);
        #[cfg(windows)]
        self.exit_code(9)
    }

    /// Fails unless stderr is exactly this.
    #[track_caller]
    fn stderr(self, err: &str) -> Self {
        assert_eq!(self.err, err, "what is said on stderr");
        self
    }

    /// Fails unless stderr has this in it.
    #[track_caller]
    fn stderr_contains(self, part: &str) -> Self {
        assert!(self.err.contains(part), "not said: {part}\nsaid: {}", self.err);
        self
    }

    /// Fails unless stderr is one error line that contains these parts.
    #[track_caller]
    fn error_line(self, parts: &[&str]) -> Self {
        let err = &self.err;
        assert!(err.starts_with("minder: ") && err.lines().count() == 1 && err.ends_with('\n'), "{err:?}");
        assert!(!err.contains("(os error"), "{err:?}");
        for part in parts {
            assert!(err.contains(part), "not said: {part}\nsaid: {err}");
        }
        self
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Creates a temporary directory that every user may use.
fn temp_dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("create temporary directory");
    #[cfg(unix)]
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    #[cfg(unix)]
    std::fs::set_permissions(dir.path(), everybody).expect("set permissions");
    dir
}

fn path(path: &Path) -> &str {
    path.to_str().expect("path is UTF-8")
}

fn file(path: &Path) -> String {
    std::fs::read(path).map(|bytes| text(&bytes)).unwrap_or_default()
}

/// Splits a stream into the output of `job`s, and fails if one is incomplete. Returns the job
/// numbers in order.
fn jobs_in(stream: &[u8]) -> Vec<usize> {
    let mut rest = stream;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b']').expect("find end of the head line");
        let head = std::str::from_utf8(&rest[1..end]).unwrap_or_else(|_| panic!("torn after {found:?}"));
        let numbers: Vec<usize> = head.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [id, len] = numbers[..] else { panic!("torn after {found:?}: {head:?}") };
        let body = &rest[end + 2..];
        assert!(body.len() >= len, "job {id} has {} bytes of {len}", body.len());
        assert!(body[..len] == job_bytes(id, len), "job {id} is not as it was written");
        found.push(id);
        rest = &body[len..];
    }
    found
}

#[cfg(target_os = "linux")]
/// Returns the processes of a run: the one that was started, and its descendants.
fn tree(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while at < all.len() {
        all.extend(children(all[at]));
        at += 1;
    }
    all
}

/// Returns whether a process has exited. Its parent may not have seen that yet.
#[cfg(target_os = "linux")]
fn has_exited(pid: u32) -> bool {
    let stat = file(std::path::Path::new(&format!("/proc/{pid}/stat")));
    stat.is_empty() || stat.contains(") Z ") || stat.contains(") X ")
}

/// Returns the pids of the children of all threads of a process.
#[cfg(target_os = "linux")]
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists: Vec<String> = threads.map(|thread| file(&thread.path().join("children"))).collect();
    lists.iter().flat_map(|list| pids(list)).collect()
}

/// Returns the pid of the process that runs the jobs, in a run with guardians.
#[cfg(target_os = "linux")]
fn runner(outer: u32) -> Option<u32> {
    let inner = *children(outer).first()?;
    let named = |pid: &u32| file(Path::new(&format!("/proc/{pid}/comm"))).starts_with("minder");
    children(inner).into_iter().find(named)
}

/// Opens a process, or returns `None` if it has exited and was waited for.
#[cfg(target_os = "linux")]
fn open_process(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(pid.cast_signed()).expect("valid pid");
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

/// Returns the pids in a text.
fn pids(text: &str) -> Vec<u32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Returns whether the tests run as root.
#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the ends of a pipe. No child inherits them.
fn pipe() -> (File, File) {
    let (reader, writer) = std::io::pipe().expect("create pipe");
    (crate::support::file(reader), crate::support::file(writer))
}

/// Returns whether another user can run the program at this path.
#[cfg(unix)]
fn is_public(program: &str) -> bool {
    let may = |path: &Path| {
        std::fs::metadata(path)
            .is_ok_and(|it| std::os::unix::fs::PermissionsExt::mode(&it.permissions()) & 1 == 1)
    };
    Path::new(program).ancestors().filter(|path| !path.as_os_str().is_empty()).all(may)
}

/// Returns the mask of the signals that a child of this process inherits as ignored, as `/proc`
/// shows it. SIGPIPE, which Rust's runtime ignores, is not among them.
#[cfg(target_os = "linux")]
fn inherited_ignored_signals() -> u64 {
    crate::support::catch_ignored_signals();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap_or("0");
    u64::from_str_radix(line, 16).expect("parse number")
        & !(1 << (rustix::process::Signal::PIPE.as_raw() - 1))
}
