//! Helpers of the tests: the program that they run, deadlines, backends, and the events of a set.

#![allow(dead_code, reason = "not every system runs every test")]

use std::collections::HashMap;
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use minder::{
    Backend, ChildId, ChildSet, ChildSetOptions, Command, Event, ExitStatus, Outcome, Stdio, Stream,
};

#[path = "../bin/pattern.rs"]
mod pattern;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
use pattern::append_pattern;
pub(crate) use pattern::job_bytes;
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;

/// The child that the tests start.
pub(crate) const TEST_CHILD: &str = env!("CARGO_BIN_EXE_test_child");

/// The path of test_child, quoted for a shell line, since it may contain spaces.
pub(crate) const CHILD: &str = concat!("'", env!("CARGO_BIN_EXE_test_child"), "'");

/// Returns the absolute directory of test_child, for `PATH`. Windows searches absolute directories
/// only, and the path that cargo gives has no drive.
pub(crate) fn test_child_dir() -> PathBuf {
    let path = std::path::absolute(TEST_CHILD).expect("make path absolute");
    path.parent().expect("path has a parent").to_owned()
}

/// Returns `PATH` with the directory of test_child in front. A shell line calls test_child by its
/// bare name, since its path may contain spaces.
pub(crate) fn path_with_test_child() -> std::ffi::OsString {
    let own = test_child_dir();
    let all = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::iter::once(own).chain(std::env::split_paths(&all));
    std::env::join_paths(directories).expect("join PATH")
}

/// Returns a command that runs test_child with these arguments, an empty stdin and both outputs
/// piped.
pub(crate) fn test_child(words: &str) -> Command {
    #[cfg(unix)]
    catch_ignored_signals();
    let mut command = Command::new(TEST_CHILD);
    command.args(words.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns a command that runs test_child with these arguments, without outputs.
pub(crate) fn quiet_child(words: &str) -> Command {
    let mut command = test_child(words);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Returns the deadline of a test: far beyond what the slowest machine needs.
pub(crate) fn patience() -> Instant {
    Instant::now() + PATIENCE
}

/// The longest time that one step takes on the slowest machine; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns how many cases a random test tries: the number in the variable. Without it, `short`, and
/// `long` with `MINDER_LONG=1`.
pub(crate) fn cases(variable: &str, short: u64, long: u64) -> u64 {
    number(variable).unwrap_or(if is_long() { long } else { short })
}

/// Returns whether random tests try many cases: with `MINDER_LONG=1`.
pub(crate) fn is_long() -> bool {
    std::env::var("MINDER_LONG").is_ok_and(|value| value == "1")
}

/// Returns the number in an environment variable, or `None` without the variable.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text}: not a number")))
}

/// Returns the time for which a race is run.
pub(crate) fn race_time() -> Duration {
    let seconds = std::env::var("MINDER_RACE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(if is_long() { 1.0 } else { 0.4 }))
}

/// Returns whether a race continues until `end`. On a busy machine it may begin late and end later.
pub(crate) fn race_continues(end: Instant, has_begun: bool) -> bool {
    let now = Instant::now();
    now < end || (!has_begun && now < end + PATIENCE)
}

/// Runs a function when the result is dropped, also after a failure. Otherwise threads would wait
/// forever for the end of a race.
pub(crate) fn on_drop(act: impl FnMut()) -> impl Drop {
    struct AtEnd<F: FnMut()>(F);
    impl<F: FnMut()> Drop for AtEnd<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    AtEnd(act)
}

/// Returns the first bytes of the pattern that test_child writes.
pub(crate) fn patterned(bytes: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes);
    append_pattern(&mut all, 0, bytes);
    all
}

/// Returns whether this machine has the wait backend or mechanism. Containers often forbid
/// io_uring. Every machine has the others.
pub(crate) fn has_backend(name: &str) -> bool {
    static MISSING: std::sync::OnceLock<HashMap<&str, String>> = std::sync::OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let asked = minder::capabilities().into_iter().filter(|it| it.name == "io_uring");
        let missing = asked.filter_map(|it| match it.state {
            minder::Availability::Available => None,
            minder::Availability::Refused(why) => Some((it.name, why)),
            _ => Some((it.name, "this system does not have it".to_owned())),
        });
        let missing: HashMap<&str, String> = missing.collect();
        for (name, why) in &missing {
            skip(format_args!("all tests on {name}: it is refused here: {why}"));
        }
        missing
    });
    !missing.contains_key(name)
}

/// Returns the wait backends of this machine.
pub(crate) fn backends() -> Vec<Backend> {
    Backend::available().filter(|backend| has_backend(backend.name())).collect()
}

/// Returns a backend of another operating system.
pub(crate) const fn foreign_backend() -> Backend {
    if cfg!(windows) { Backend::Epoll } else { Backend::Iocp }
}

/// Runs the test on every wait backend of this machine; a failure names the backend.
pub(crate) fn each_backend(test: impl Fn(Backend)) {
    struct Named(Backend);
    impl Drop for Named {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("this was with the backend `{}`", self.0);
            }
        }
    }
    for backend in backends() {
        let _named = Named(backend);
        test(backend);
    }
}

/// Returns the default configuration with this backend.
pub(crate) fn limits(backend: Backend) -> ChildSetOptions {
    ChildSetOptions::new().backend(Some(backend))
}

/// Runs a test in a separate process, whose state it may change. `name` is the path of the test in
/// this binary.
pub(crate) fn alone(name: &str, test: impl FnOnce()) {
    const ALONE: &str = "MINDER_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let own = std::env::current_exe().expect("find test binary");
    let mut command = std::process::Command::new(own);
    command.args([name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]).env(ALONE, "1");
    let output = output(&mut command);
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}, alone: {}\n{said}{complained}", output.status);
    assert!(said.contains("1 passed"), "no test is called {name}:\n{said}");
    complained.lines().filter(|line| line.starts_with(SKIPPED)).for_each(tell);
}

/// Accepts that the operating system does not have something.
pub(crate) fn unless_unsupported(error: minder::Error) -> minder::Result<()> {
    if error.kind() == minder::ErrorKind::Unsupported { Ok(()) } else { Err(error) }
}

/// The beginning of a line about a skipped test.
const SKIPPED: &str = "skipped: ";

/// Prints that this test skips something, and why. The test harness shows the output of a printing
/// macro for failed tests only, so this writes to stderr directly. If `MINDER_SKIPPED` names a
/// file, the line is also appended to it.
pub(crate) fn skip(why: std::fmt::Arguments<'_>) {
    let thread = std::thread::current();
    let line = format!("{SKIPPED}{}: {why}", thread.name().unwrap_or("a thread"));
    tell(&line);
    if let Some(path) = std::env::var_os("MINDER_SKIPPED") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // A single write keeps lines of several processes apart.
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
            .expect("append to the list of skipped tests");
    }
}

/// Prints a line, also if the test succeeds.
pub(crate) fn tell(line: &str) {
    // The result of the test does not depend on this line.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Reads a pipe to its end.
pub(crate) fn read_all(pipe: Option<impl std::io::Read>) -> String {
    let mut bytes = Vec::new();
    pipe.expect("take pipe").read_to_end(&mut bytes).expect("read to end");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns a new file that contains these bytes, positioned at its start.
pub(crate) fn file_of(bytes: &[u8]) -> std::fs::File {
    let mut file = tempfile::tempfile().expect("create temporary file");
    file.write_all(bytes).expect("write bytes");
    file.rewind().expect("rewind file");
    file
}

/// Runs a command, checks that it succeeds, and returns its stdout.
pub(crate) fn stdout_of(command: &Command) -> String {
    let mut command = command.clone();
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("spawn test child");
    let text = read_all(child.stdout.take());
    let exit = child.wait().expect("wait for child");
    assert!(exit.status.success(), "{command:?}: {}, said {text:?}", exit.status);
    text
}

/// The events of one child.
#[derive(Debug, Default)]
pub(crate) struct ChildLog {
    pub(crate) outs: [Vec<u8>; 2],
    pub(crate) chunks: usize,
    pub(crate) eofs: [usize; 2],
    pub(crate) writables: usize,
    pub(crate) stops: Vec<i32>,
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) done: Option<Outcome>,
}

/// The events of all children. Recording an event in the wrong order fails the test.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    pub(crate) records: HashMap<ChildId, ChildLog>,
    pub(crate) wakes: usize,
}

/// Returns the next event of a set. Fails at `until`.
pub(crate) fn next_event(set: &mut ChildSet, until: Instant) -> Event {
    let next = set.next_event_deadline(Some(until)).expect("wait for event");
    next.into_event().expect("event before the deadline")
}

impl EventLog {
    /// Records an event.
    pub(crate) fn record(&mut self, event: Event) {
        match event {
            Event::Output { child: id, stream, chunk: bytes, .. } => {
                let record = self.open(id, "Output");
                assert_eq!(record.eofs[stream as usize], 0, "{id:?}: {stream:?} after its end");
                assert!(!bytes.is_empty(), "{id:?}: an empty chunk");
                record.outs[stream as usize].extend_from_slice(&bytes);
                record.chunks += 1;
            }
            Event::Writable { child: id, .. } => self.open(id, "Writable").writables += 1,
            Event::Eof { child: id, stream, .. } => {
                let record = self.open(id, "Eof");
                record.eofs[stream as usize] += 1;
                assert_eq!(record.eofs[stream as usize], 1, "{id:?}: {stream:?} ended twice");
            }
            Event::Stopped { child: id, signal, .. } => {
                let record = self.open(id, "Stopped");
                assert!(record.exit.is_none(), "{id:?}: stopped after its exit");
                record.stops.push(signal);
            }
            Event::Exited { child: id, exit, .. } => {
                let record = self.open(id, "Exited");
                assert!(record.exit.is_none(), "{id:?}: exited twice");
                record.exit = Some(exit.status);
            }
            Event::Done { child: id, outcome, .. } => {
                let record = self.open(id, "Done");
                assert_eq!(record.exit, Some(outcome.exit.status), "{id:?}: Done and Exited differ");
                record.done = Some(outcome);
            }
            Event::Woken => self.wakes += 1,
            other => panic!("an event that no test expects: {other:?}"),
        }
    }

    fn open(&mut self, id: ChildId, what: &str) -> &mut ChildLog {
        let record = self.records.entry(id).or_default();
        assert!(record.done.is_none(), "{id:?}: {what} after Done");
        record
    }

    /// Reads the set until all of its children are done.
    pub(crate) fn wait_all(&mut self, set: &mut ChildSet) {
        let until = patience();
        while !set.is_empty() {
            match set.next_event_deadline(Some(until)).expect("wait for event").into_event() {
                Some(event) => self.record(event),
                None => panic!("{} children are not done: {:?}", set.len(), self.unfinished()),
            }
        }
    }

    /// Reads the set until `enough`; returns whether that came before the deadline.
    pub(crate) fn read_until(
        &mut self,
        set: &mut ChildSet,
        deadline: Instant,
        enough: impl Fn(&Self) -> bool,
    ) -> bool {
        while !enough(self) {
            match set.next_event_deadline(Some(deadline)).expect("wait for event").into_event() {
                Some(event) => self.record(event),
                None => return false,
            }
        }
        true
    }

    fn unfinished(&self) -> Vec<(ChildId, usize, usize, Option<ExitStatus>)> {
        let open = self.records.iter().filter(|(_, record)| record.done.is_none());
        open.map(|(id, record)| (*id, record.outs[0].len(), record.outs[1].len(), record.exit))
            .take(10)
            .collect()
    }

    /// Returns the events of a child.
    pub(crate) fn child(&self, id: ChildId) -> &ChildLog {
        static NOTHING: std::sync::OnceLock<ChildLog> = std::sync::OnceLock::new();
        self.records.get(&id).unwrap_or_else(|| NOTHING.get_or_init(ChildLog::default))
    }

    /// Returns the stdout of a child so far.
    pub(crate) fn text(&self, id: ChildId) -> String {
        String::from_utf8_lossy(&self.child(id).outs[Stream::Stdout as usize]).into_owned()
    }

    /// Returns the outcome of a finished child.
    pub(crate) fn outcome(&self, id: ChildId) -> Outcome {
        self.child(id).done.unwrap_or_else(|| panic!("{id:?} is not done"))
    }
}
