//! Helpers of many tests: the program that they run, deadlines, backends, and the events of a set.

#![allow(dead_code, reason = "not every system runs every test")]

use std::collections::HashMap;
use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use minder::{ChildSet, ChildSetConfig, Command, Event, ExitStatus, Outcome, Stdio, Stream, Token};

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;

/// The child that the tests start.
pub(crate) const TEST_CHILD: &str = env!("CARGO_BIN_EXE_test_child");

/// The same as a word of a shell line: the path of a checkout may have spaces.
pub(crate) const KID: &str = concat!("'", env!("CARGO_BIN_EXE_test_child"), "'");

/// The directory of the program, for `PATH`. Windows looks for programs in absolute directories
/// only, and a drive is missing in its path.
pub(crate) fn test_child_dir() -> PathBuf {
    let path = std::path::absolute(TEST_CHILD).expect("make path absolute");
    path.parent().expect("path has a parent").to_owned()
}

/// The verb and its arguments, with an empty input and both outputs piped.
pub(crate) fn test_child(words: &str) -> Command {
    #[cfg(unix)]
    catch_ignored_signals();
    let mut command = Command::new(TEST_CHILD);
    command.args(words.split_whitespace()).stdin(Stdio::Null).stdout(Stdio::Piped).stderr(Stdio::Piped);
    command
}

/// The verb and its arguments, without outputs.
pub(crate) fn quiet_child(words: &str) -> Command {
    let mut command = test_child(words);
    command.stdout(Stdio::Null).stderr(Stdio::Null);
    command
}

/// When a test gives up: far beyond what the slowest machine needs.
pub(crate) fn patience() -> Instant {
    Instant::now() + PATIENCE
}

/// Under Wine a start takes longer.
const PATIENCE: Duration = Duration::from_secs(if cfg!(windows) { 60 } else { 20 });

/// How long a race is run.
pub(crate) fn race_time() -> Duration {
    let seconds = std::env::var("MINDER_RACE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(1.0))
}

/// Whether a race continues that was to end then. On a busy machine it begins late.
pub(crate) fn race_continues(end: Instant, has_begun: bool) -> bool {
    let now = Instant::now();
    now < end || (!has_begun && now < end + PATIENCE)
}

/// Runs this when dropped, also after a failure: otherwise threads would wait forever for the end
/// of a race.
pub(crate) fn on_drop(act: impl FnMut()) -> impl Drop {
    struct AtEnd<F: FnMut()>(F);
    impl<F: FnMut()> Drop for AtEnd<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    AtEnd(act)
}

/// Byte number `at` of everything that test_child writes.
pub(crate) fn pattern(at: usize) -> u8 {
    b'a' + ((at ^ (at >> 8)) % 25) as u8
}

/// The first `bytes` of it.
pub(crate) fn patterned(bytes: usize) -> Vec<u8> {
    (0..bytes).map(pattern).collect()
}

/// Whether this machine has the wait backend, or another mechanism of this name. Containers often
/// forbid one, and only the newer systems have another; the others are everywhere.
pub(crate) fn has_backend(name: &str) -> bool {
    static MISSING: std::sync::OnceLock<HashMap<&str, String>> = std::sync::OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let asked =
            minder::capabilities().into_iter().filter(|it| ["io_uring", "wait_packets"].contains(&it.name));
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

/// The wait backends of this machine.
pub(crate) fn backends() -> Vec<&'static str> {
    minder::backends().filter(|name| has_backend(name)).collect()
}

/// Runs the test on every wait backend of this machine; a failure names the backend.
pub(crate) fn each_backend(test: impl Fn(&'static str)) {
    struct Named(&'static str);
    impl Drop for Named {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("this was with the backend `{}`", self.0);
            }
        }
    }
    for name in backends() {
        let _named = Named(name);
        test(name);
    }
}

/// Default limits, with this backend.
pub(crate) fn limits(backend: &'static str) -> ChildSetConfig {
    let mut limits = ChildSetConfig::default();
    limits.backend = Some(backend);
    limits
}

/// Runs the test in a separate process, which it may change as it likes: `name` is its path in
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

/// What begins a line about something that was not tested.
const SKIPPED: &str = "skipped: ";

/// Reports that this test skips something, and why. A line that is printed by a macro would be
/// seen for a failed test only. With `MINDER_SKIPPED` in the environment, the line goes to the end
/// of that file, too.
pub(crate) fn skip(why: std::fmt::Arguments<'_>) {
    let thread = std::thread::current();
    let line = format!("{SKIPPED}{}: {why}", thread.name().unwrap_or("a thread"));
    tell(&line);
    if let Some(path) = std::env::var_os("MINDER_SKIPPED") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // One write, so that lines of several processes stay whole.
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).expect("lock list");
    }
}

fn tell(line: &str) {
    // Nothing is lost for the test where nothing is read.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// All that comes from this pipe.
pub(crate) fn read_all(pipe: Option<std::fs::File>) -> String {
    let mut bytes = Vec::new();
    pipe.expect("a pipe").read_to_end(&mut bytes).expect("read to end");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A separate file that holds these bytes, to be read from the start.
pub(crate) fn file_of(bytes: &[u8]) -> std::fs::File {
    let mut file = tempfile::tempfile().expect("create temporary file");
    file.write_all(bytes).expect("write bytes");
    file.rewind().expect("rewind file");
    file
}

/// What this command writes to its standard output, when all goes well.
pub(crate) fn stdout_of(command: &Command) -> String {
    let mut command = command.clone();
    let mut child = command.stdout(Stdio::Piped).stderr(Stdio::Inherit).spawn().expect("spawn test child");
    let text = read_all(child.take_stdout());
    let exit = child.wait().expect("wait for child");
    assert!(exit.status.success(), "{command:?}: {}, said {text:?}", exit.status);
    text
}

/// The events of one child.
#[derive(Debug, Default)]
pub(crate) struct ChildLog {
    pub(crate) outs: [Vec<u8>; 2],
    pub(crate) pieces: usize,
    pub(crate) eofs: [usize; 2],
    pub(crate) writables: usize,
    pub(crate) stops: Vec<i32>,
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) done: Option<Outcome>,
}

/// The events of all children. It fails at once when the order of events is wrong.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    pub(crate) records: HashMap<Token, ChildLog>,
    pub(crate) wakes: usize,
}

impl EventLog {
    /// Enters an event.
    pub(crate) fn record(&mut self, event: Event) {
        match event {
            Event::Output(token, stream, bytes) => {
                let record = self.open(token, "Output");
                assert_eq!(record.eofs[stream as usize], 0, "{token:?}: {stream:?} after its end");
                assert!(!bytes.is_empty(), "{token:?}: an empty piece");
                record.outs[stream as usize].extend_from_slice(&bytes);
                record.pieces += 1;
            }
            Event::Writable(token) => self.open(token, "Writable").writables += 1,
            Event::Eof(token, stream) => {
                let record = self.open(token, "Eof");
                record.eofs[stream as usize] += 1;
                assert_eq!(record.eofs[stream as usize], 1, "{token:?}: {stream:?} ended twice");
            }
            Event::Stopped(token, signal) => {
                let record = self.open(token, "Stopped");
                assert!(record.exit.is_none(), "{token:?}: stopped after its exit");
                record.stops.push(signal);
            }
            Event::Exited(token, exit) => {
                let record = self.open(token, "Exited");
                assert!(record.exit.is_none(), "{token:?}: exited twice");
                record.exit = Some(exit.status);
            }
            Event::Done(token, outcome) => {
                let record = self.open(token, "Done");
                assert_eq!(record.exit, Some(outcome.exit.status), "{token:?}: done as it did not exit");
                record.done = Some(outcome);
            }
            Event::Woken => self.wakes += 1,
            other => panic!("an event that no test expects: {other:?}"),
        }
    }

    fn open(&mut self, token: Token, what: &str) -> &mut ChildLog {
        let record = self.records.entry(token).or_default();
        assert!(record.done.is_none(), "{token:?}: {what} after Done");
        record
    }

    /// Reads the set until all of its children are done.
    pub(crate) fn wait_all(&mut self, set: &mut ChildSet) {
        let until = patience();
        while !set.is_empty() {
            match set.next(Some(until)).expect("wait for event") {
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
            match set.next(Some(deadline)).expect("wait for event") {
                Some(event) => self.record(event),
                None => return false,
            }
        }
        true
    }

    fn unfinished(&self) -> Vec<(Token, usize, usize, Option<ExitStatus>)> {
        let open = self.records.iter().filter(|(_, record)| record.done.is_none());
        open.map(|(token, record)| (*token, record.outs[0].len(), record.outs[1].len(), record.exit))
            .take(10)
            .collect()
    }

    /// What was reported of this child.
    pub(crate) fn child(&self, token: Token) -> &ChildLog {
        static NOTHING: std::sync::OnceLock<ChildLog> = std::sync::OnceLock::new();
        self.records.get(&token).unwrap_or_else(|| NOTHING.get_or_init(ChildLog::default))
    }

    /// What the child wrote to its standard output, so far.
    pub(crate) fn text(&self, token: Token) -> String {
        String::from_utf8_lossy(&self.child(token).outs[Stream::Stdout as usize]).into_owned()
    }

    /// The end of this child.
    pub(crate) fn outcome(&self, token: Token) -> Outcome {
        self.child(token).done.unwrap_or_else(|| panic!("{token:?} is not done"))
    }
}
