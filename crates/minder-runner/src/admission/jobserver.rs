//! Make's jobserver: a run inside a build takes part in it.
//!
//! `-j` remains the limit of our own jobs. In addition, every job beyond the first needs a token:
//! the build gave this process one slot by starting it. A token is taken right before a start and
//! released when the job has finished, so that other parts of the build get their turn. It is never
//! taken in advance.
//!
//! A make inside a job can use a named jobserver (`fifo:PATH`, a semaphore on Windows). It can also
//! use one that is a pipe with descriptor numbers (`--jobserver-auth=3,4`; make before 4.4), since
//! jobs inherit the descriptors that make left open. If they do not inherit them (`--close-fds`, or
//! make closed them), that make would complain. Then the jobs' environment names neither the
//! jobserver nor `-j`, and that make runs one job at a time: the one that has our token.
//!
//! # Locking
//!
//! `State` is protected by one lock, which is never held while `wake` is called. A job that finds
//! no token sets `wanted` under the lock and notifies the poller. The waiting thread clears
//! `wanted` under the lock before it calls `wake`, so a worker thread that is woken and fails again
//! sets it once more.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use minder::Descriptors;
use minder::os::{JobToken, Jobserver};
use minder::poll::{Events, Interest, Poller, Token};
use minder_os::encoding::os_str_from_encoded;
use minder_os::sync::Mutex;

use crate::text::os_error_text;

/// The jobserver of a surrounding make: none, one, or why it cannot be reached.
pub(crate) type JobserverLookup = Result<Option<minder::os::Jobserver>, String>;

/// Variables in which a build names its jobserver; cargo's own comes first.
const VARIABLES: [&str; 3] = ["CARGO_MAKEFLAGS", "MAKEFLAGS", "MFLAGS"];
/// Flags that name it, the newer one first.
const FLAGS: [&str; 2] = ["--jobserver-auth=", "--jobserver-fds="];
/// The time between two attempts to get a token if waiting for one is not possible.
const PERIOD: Duration = Duration::from_millis(20);

/// A client of the surrounding build's jobserver.
pub(crate) struct JobserverClient {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for JobserverClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobserverClient").field("shared", &self.shared).finish_non_exhaustive()
    }
}

/// The permission for a job to run. It is dropped when the job ends.
#[derive(Debug)]
pub(crate) struct JobPermit(Option<Arc<Shared>>);

impl JobPermit {
    /// Returns a permit that needs no token.
    pub(crate) fn free() -> Self {
        Self(None)
    }
}

impl Drop for JobPermit {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.finish_job();
        }
    }
}

#[derive(Debug)]
struct Shared {
    server: Jobserver,
    poller: Poller,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of jobs with a permit. The first one has no token.
    running: usize,
    held: Vec<JobToken>,
    /// `true` if a start waits for a token.
    wanted: bool,
    /// `true` if no more tokens are requested: the run has finished, or the jobserver is gone.
    stopped: bool,
}

/// Connects to the jobserver that the environment names. It has to be called before anything is
/// opened.
///
/// # Errors
/// One line for the user, if there is a jobserver that cannot be reached. The run continues without
/// it.
pub(crate) fn find() -> Result<Option<Jobserver>, String> {
    let Some(auth) = find_auth(|name| std::env::var_os(name)).filter(|auth| !is_refusal(auth)) else {
        return Ok(None);
    };
    Jobserver::connect(&auth).map(Some).map_err(|error| {
        format!(
            "cannot use make's jobserver `{auth}`, so -j alone counts: {} (write `+minder …` in the \
             Makefile, or use --no-jobserver)",
            os_error_text(error.io_error())
        )
    })
}

impl JobserverClient {
    /// Creates a client, and starts the thread that waits for tokens when one is wanted. `wake` is
    /// called when a token may be free.
    ///
    /// # Errors
    /// The thread cannot be started, or no descriptor is free.
    pub(crate) fn start(server: Jobserver, wake: impl Fn() + Send + 'static) -> anyhow::Result<Self> {
        let mut client = Self::new(server)?;
        let shared = Arc::clone(&client.shared);
        let waiting = move || {
            if shared.wait(&wake).is_err() {
                // Without this thread nothing would wake the run: it continues with `-j` alone.
                shared.state.lock().stopped = true;
                wake();
            }
        };
        client.thread = Some(thread::Builder::new().name("jobserver".into()).spawn(waiting)?);
        Ok(client)
    }

    fn new(server: Jobserver) -> minder::Result<Self> {
        let poller = Poller::new()?;
        let shared = Shared { server, poller, state: Mutex::default() };
        Ok(Self { shared: shared.into(), thread: None })
    }

    /// Returns the permission for one more job, if there is one now. It never blocks. After `None`,
    /// the worker threads are woken when that may have changed.
    pub(crate) fn take(&self) -> Option<JobPermit> {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        if state.running > 0 && !state.stopped {
            match shared.server.try_acquire() {
                Ok(Some(token)) => state.held.push(token),
                Ok(None) => {
                    if !std::mem::replace(&mut state.wanted, true) {
                        // It fails only for an invalid descriptor.
                        let _ = shared.poller.notify();
                    }
                    return None;
                }
                // The build has exited, and with it all other users of the tokens.
                Err(_) => state.stopped = true,
            }
        }
        state.running += 1;
        Some(JobPermit(Some(Arc::clone(shared))))
    }

    /// Releases all tokens while jobs may still run: for an exit that drops nothing.
    pub(crate) fn release_tokens(&self) {
        self.shared.release_tokens();
    }
}

impl Drop for JobserverClient {
    fn drop(&mut self) {
        self.shared.state.lock().stopped = true;
        let _ = self.shared.poller.notify();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Releases the token of a finished job. The slot without a token is the last one to be free.
    fn finish_job(&self) {
        let mut state = self.state.lock();
        state.running -= 1;
        if let Some(token) = state.held.pop() {
            // It fails only if the jobserver is gone.
            let _ = self.server.release(token);
        }
    }

    fn release_tokens(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        for token in std::mem::take(&mut state.held) {
            let _ = self.server.release(token);
        }
    }

    /// Wakes the worker threads whenever a wanted token may be free, until the run has finished.
    /// This thread never takes a token: a token that it took while the run ends could be lost.
    fn wait(&self, wake: &impl Fn()) -> minder::Result<()> {
        let mut events = Events::new();
        let mut watched = false;
        loop {
            let State { wanted, stopped, .. } = *self.state.lock();
            if stopped {
                if watched && let Some(source) = self.server.source() {
                    self.poller.delete(source)?;
                }
                return Ok(());
            }
            let deadline = match self.server.source() {
                Some(source) if wanted && !watched => {
                    self.poller.add(source, Token(0), Interest::READABLE)?;
                    watched = true;
                    None
                }
                Some(source) if watched && !wanted => {
                    self.poller.delete(source)?;
                    watched = false;
                    None
                }
                Some(_) => None,
                None => wanted.then(|| Instant::now() + PERIOD),
            };
            self.poller.wait_deadline(&mut events, deadline)?;
            let passed = deadline.is_some_and(|at| Instant::now() >= at);
            if passed || events.iter().next().is_some() {
                // The flag is cleared before the call: a worker thread that is woken may want
                // another token.
                self.state.lock().wanted = false;
                wake();
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.release_tokens();
    }
}

/// Returns the name of the jobserver, from the first variable that has one.
fn find_auth(variable: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    VARIABLES.iter().find_map(|name| last_auth(&variable(name)?))
}

/// Returns the name of the jobserver in the flags of one variable. The last flag counts, as in make.
fn last_auth(flags: &OsStr) -> Option<String> {
    let bytes = flags.as_encoded_bytes();
    let flags: Vec<&[u8]> = flag_ranges(bytes).into_iter().map(|range| &bytes[range]).collect();
    FLAGS.iter().find_map(|name| {
        let value = flags.iter().rev().find_map(|flag| flag.strip_prefix(name.as_bytes()))?;
        // A path that is not UTF-8 fails later, when the jobserver is opened by name.
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

/// Returns `true` for the invalid descriptors that make passes to commands that may not use the
/// jobserver.
fn is_refusal(auth: &str) -> bool {
    auth.is_empty() || auth.starts_with('-')
}

/// Returns `true` if the jobserver is a pipe that is named by descriptor numbers.
fn is_by_number(auth: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    auth.split_once(',').is_some_and(|(read_end, write_end)| is_number(read_end) && is_number(write_end))
}

/// Returns the variables whose value for the jobs differs from ours. `jobserver` is the result of
/// [`find`]; `descriptors` are those that jobs inherit.
pub(crate) fn job_environment(
    jobserver: &JobserverLookup,
    descriptors: &Descriptors,
) -> Vec<(&'static str, OsString)> {
    let variable = |name: &str| std::env::var_os(name);
    let is_inherited =
        |text: &str| text.parse().is_ok_and(|number: i32| descriptors.numbers().any(|it| it == number));
    let is_usable = |auth: &String| {
        auth.split_once(',')
            .is_some_and(|(read_end, write_end)| is_inherited(read_end) && is_inherited(write_end))
    };
    let reached = if matches!(jobserver, Ok(Some(_))) { find_auth(variable).filter(is_usable) } else { None };
    changed_variables(variable, reached.as_deref())
}

/// Returns the variables that name a pipe that jobs cannot use, with the values for the jobs.
/// `reached` names the pipe that they can use.
fn changed_variables(
    variable: impl Fn(&str) -> Option<OsString>,
    reached: Option<&str>,
) -> Vec<(&'static str, OsString)> {
    let other = |name: &&'static str| {
        let flags = variable(name)?;
        let lost =
            last_auth(&flags).is_some_and(|auth| is_by_number(&auth) && Some(auth.as_str()) != reached);
        lost.then(|| (*name, without_jobserver(&flags)))
    };
    VARIABLES.iter().filter_map(other).collect()
}

/// Returns the flags without those about a jobserver and a number of jobs. All other bytes stay.
fn without_jobserver(flags: &OsStr) -> OsString {
    let bytes = flags.as_encoded_bytes();
    let mut rest = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for range in flag_ranges(bytes) {
        let flag = &bytes[range.clone()];
        let names_jobserver = FLAGS.iter().any(|name| flag.starts_with(name.as_bytes()));
        let is_count = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
        let sets_jobs = flag == b"--jobs"
            || flag.strip_prefix(b"--jobs=").is_some_and(is_count)
            || flag.strip_prefix(b"-j").is_some_and(is_count);
        if names_jobserver || sets_jobs {
            // Removes the space before the flag too, or, at the beginning, the one after it.
            rest.extend_from_slice(&bytes[from..range.start.saturating_sub(1).max(from)]);
            from = range.end;
        }
    }
    rest.extend_from_slice(&bytes[from..]);
    os_str_from_encoded(&rest).into_owned()
}

/// Returns the ranges of the flags, up to those that set variables: after `--` any text may follow.
/// A space within a flag is escaped.
fn flag_ranges(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    let mut escaped = false;
    for (at, byte) in bytes.iter().chain(b" ").enumerate() {
        let is_separator = byte.is_ascii_whitespace() && !escaped;
        escaped = *byte == b'\\' && !escaped;
        match (is_separator, start) {
            (true, Some(from)) => {
                if &bytes[from..at] == b"--" {
                    break;
                }
                found.push(from..at);
                start = None;
            }
            (false, None) => start = Some(at),
            _ => (),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(flags: &str) -> Option<String> {
        last_auth(OsStr::new(flags))
    }

    fn without(flags: &str) -> String {
        without_jobserver(OsStr::new(flags)).into_string().expect("text")
    }

    #[test]
    fn offered_finds_jobserver_in_flags() {
        assert_eq!(of(""), None);
        assert_eq!(of(" -j3"), None);
        assert_eq!(of(" -j3 --jobserver-auth=3,4").as_deref(), Some("3,4"));
        assert_eq!(of("ks -j3 --jobserver-auth=fifo:/tmp/GMfifo1").as_deref(), Some("fifo:/tmp/GMfifo1"));
        assert_eq!(of("--jobserver-fds=3,4 -j").as_deref(), Some("3,4"));
        assert_eq!(of("--jobserver-fds=5,6 --jobserver-auth=3,4").as_deref(), Some("3,4"));
        assert_eq!(of("--jobserver-auth=3,4 --jobserver-auth=5,6").as_deref(), Some("5,6"));
        assert_eq!(of("s -- X=a\\ --jobserver-auth=3,4"), None);
        assert_eq!(of("-j3 -- X=1 --jobserver-auth=3,4"), None);
    }

    #[test]
    fn offered_prefers_cargo_and_ignores_refusals() {
        let environment = |name: &str| match name {
            "CARGO_MAKEFLAGS" => Some("-j --jobserver-auth=8,9".into()),
            "MAKEFLAGS" => Some(" -j3 --jobserver-auth=3,4".into()),
            _ => None,
        };
        assert_eq!(find_auth(environment).as_deref(), Some("8,9"));
        let bare = |name: &str| match name {
            "CARGO_MAKEFLAGS" => Some("-j".into()),
            other => environment(other),
        };
        assert_eq!(find_auth(bare).as_deref(), Some("3,4"));
        assert!(is_refusal("-2,-2") && is_refusal("") && !is_refusal("3,4"));
        assert!(
            is_by_number("3,4")
                && !is_by_number("-2,-2")
                && !is_by_number("fifo:/a,4")
                && !is_by_number("3,")
        );
    }

    #[test]
    fn job_environment_omits_descriptors_that_jobs_lack() {
        assert_eq!(without(" -j3 --jobserver-auth=3,4"), "");
        assert_eq!(without("ks -j3 --jobserver-auth=3,4 -- X=a\\ b"), "ks -- X=a\\ b");
        assert_eq!(without("-j --jobserver-fds=3,4 --jobserver-auth=3,4 -k"), " -k");
        assert_eq!(without("--jobs=4 -jobs --jobserver-auth=3,4"), " -jobs");
        assert_eq!(without("k -- -j3 --jobserver-auth=3,4"), "k -- -j3 --jobserver-auth=3,4");
        let environment = |name: &str| match name {
            "CARGO_MAKEFLAGS" => Some("-j --jobserver-auth=fifo:/tmp/f".into()),
            "MAKEFLAGS" => Some("s -j3 --jobserver-auth=3,4".into()),
            "MFLAGS" => Some("-s".into()),
            _ => None,
        };
        assert_eq!(changed_variables(environment, None), [("MAKEFLAGS", OsString::from("s"))]);
        assert_eq!(changed_variables(environment, Some("5,6")), [("MAKEFLAGS", OsString::from("s"))]);
        assert_eq!(changed_variables(environment, Some("3,4")), []);
    }

    proptest! {
        #[test]
        fn flags_of_any_kind_are_taken(bytes in proptest::collection::vec(
            prop_oneof![Just(b' '), Just(b'\\'), Just(b'-'), Just(b'j'), Just(b'='), any::<u8>()], 0..60)
        ) {
            let flags = os_str_from_encoded(&bytes);
            let rest = without_jobserver(&flags);
            prop_assert!(rest.len() <= flags.len());
            prop_assert_eq!(last_auth(&rest), None);
        }
    }

    /// Tests with a named jobserver, the only kind that does not pass descriptors to other tests.
    #[cfg(target_os = "linux")]
    mod live {
        use super::*;
        use std::io::{Read, Write};
        use std::sync::mpsc;

        const PATIENCE: Duration = Duration::from_secs(20);

        fn server(client: &[u8]) -> (std::fs::File, Jobserver, tempfile::TempDir) {
            let dir = tempfile::tempdir().expect("create temp dir");
            let path = dir.path().join("client");
            let mkfifo = minder::Command::new("mkfifo").arg(&path).spawn().and_then(|mut child| child.wait());
            assert!(mkfifo.expect("run mkfifo").status.success());
            let mut pipe = std::fs::OpenOptions::new().read(true).write(true).open(&path).expect("open pipe");
            pipe.write_all(client).expect("write token");
            let server =
                Jobserver::connect(&format!("fifo:{}", path.display())).expect("connect to jobserver");
            (pipe, server, dir)
        }

        /// Returns the rest of the pipe's content.
        fn rest(pipe: &mut std::fs::File) -> Vec<u8> {
            pipe.write_all(b"|").expect("write token");
            let mut all = Vec::new();
            let mut byte = [0];
            while pipe.read_exact(&mut byte).is_ok() && byte != *b"|" {
                all.push(byte[0]);
            }
            all
        }

        #[test]
        fn first_job_needs_no_token_and_others_one_each() {
            let (mut pipe, server, _dir) = server(b"ab");
            let client = JobserverClient::new(server).expect("create client");
            let first = client.take().expect("take own slot");
            let second = client.take().expect("take token");
            let third = client.take().expect("take token");
            assert!(client.take().is_none());
            drop(first);
            // The free one is a token, not the slot: the build may use it.
            let again = client.take().expect("take token");
            assert!(client.take().is_none());
            drop((second, third, again));
            let mut back = rest(&mut pipe);
            back.sort_unstable();
            assert_eq!(back, b"ab");
        }

        #[test]
        fn waiting_client_is_woken_when_token_is_free() {
            let (mut pipe, server, _dir) = server(b"");
            let (sender, receiver) = mpsc::channel();
            let client = JobserverClient::start(server, move || _ = sender.send(())).expect("start client");
            let first = client.take().expect("take own slot");
            for _ in 0..3 {
                assert!(client.take().is_none());
                pipe.write_all(b"+").expect("write token");
                receiver.recv_timeout(PATIENCE).expect("receive wake");
                drop(client.take().expect("take token"));
                // The token was released. It is taken once more, so that the next job has to wait
                // for it.
                assert!(client.shared.server.try_acquire().expect("read pipe").is_some());
            }
            drop(first);
        }

        #[test]
        fn give_back_releases_held_tokens() {
            let (mut pipe, server, _dir) = server(b"abc");
            let client = JobserverClient::new(server).expect("create client");
            let held: Vec<JobPermit> = (0..3).filter_map(|_| client.take()).collect();
            assert_eq!(held.len(), 3);
            client.release_tokens();
            assert_eq!(rest(&mut pipe).len(), 3);
            drop(held);
            assert_eq!(rest(&mut pipe), b"");
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _held = (client.take(), client.take());
                panic!("on purpose");
            }));
            assert!(panicked.is_err() && client.shared.state.lock().running == 0);
        }
    }
}
