//! The connection to an agent on another host: one ssh process, whose standard input and output carry
//! [messages](crate::protocol).
//!
//! The host needs a POSIX shell and nothing else. If it has this program at the same path, with the same
//! length, that one is used; else a copy in the user's cache that was made by an earlier run; else a `minder`
//! of the same version in `PATH`; else this program is copied over the same connection.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use minder::poll::Waker;
use minder::{
    ChildId, ChildSet, ChildSetOptions, Command, Event, ExitStatus, NextEvent, OutputMode, SpawnOptions,
    Stdio, Stream, Termination,
};
use minder_record::agents::AgentKey;
use sha2::{Digest as _, Sha256};

use crate::protocol::{self, Decoder, FromAgent, Hello, Message as _, ToAgent};

/// The time for which a host has to answer.
const GREETING_MAX: Duration = Duration::from_secs(20);
/// The time in which a host has to take one part of the program.
const COPY_SILENCE_MAX: Duration = Duration::from_secs(20);
/// The time in which it has to start a program that was copied. Megabytes of it may still be on their way.
const COPIED_MAX: Duration = Duration::from_secs(120);
/// What a shell may write before it starts an agent, as some files of its start do.
const NOISE_MAX: usize = 64 << 10;
/// The most bytes of error messages that are kept.
const ERRORS_MAX: usize = 16 << 10;
/// The longest name of a host that is shown.
const SHOWN_MAX: usize = 60;
/// The size of a part of the program that is copied.
const COPY_BYTES: usize = 256 << 10;
/// The time in which ssh has to end after its input was closed.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// The beginning of the mark of a connection. A key follows.
pub const MARK: &str = "minder-";

/// Finds the program on the host, and starts the agent. It is one line, as csh wants it. `$1` marks what it
/// says, `$2` is the version, `$3` the path here, and `$4` the length. It exits if its input ends.
///
/// It waits for the agent, and removes what one leaves that was killed. It then exits with 255, as ssh does
/// when the connection fails: processes of that agent may still be about to end.
const SCRIPT: &str = concat!(
    r#"n=$1 v=$2 p=$3 s=$4; "#,
    r#"q() { [ -x "$1" ] && [ "$(($(wc -c <"$1")))" -eq "$s" ]; }; "#,
    r#"if q "$p"; then f=$p; else "#,
    r#"c=${XDG_CACHE_HOME:-$HOME/.cache}/minder; "#,
    r#"echo "$n where $(uname -s) $(uname -m)"; "#,
    r#"read -r d || exit 1; "#,
    r#"f=$c/minder-$v-$d; "#,
    r#"if q "$f"; then :; "#,
    r#"elif m=$(command -v minder) && [ "$("$m" --version 2>/dev/null)" = "minder $v" ]; then f=$m; "#,
    r#"else "#,
    r#"echo "$n copy $f"; "#,
    r#"read -r a && [ "$a" = copy ] || exit 1; "#,
    r#"umask 077; "#,
    r#"mkdir -p "$c" && t=$(mktemp "$f.XXXXXX") || exit 1; "#,
    r#"if head -c "$s" >"$t" && chmod 700 "$t" && q "$t"; then mv -f "$t" "$f" || exit 1; "#,
    r#"else rm -f "$t"; echo "cannot run programs in $c" >&2; exit 1; fi; "#,
    r#"fi; fi; "#,
    r#""$f" agent --serve "$n"; r=$?; "#,
    r#"d=${TMPDIR:-/tmp}/minder-agent-${n#minder-}; rm -rf "$d" "$d.new"; "#,
    r#"[ $r -le 125 ] || r=255; exit $r"#,
);

/// A host that runs jobs.
///
/// ```
/// use minder_cluster::ssh::Host;
///
/// let host: Host = "8/ann@alpha".parse()?;
/// assert_eq!((host.jobs.as_deref(), host.login.as_str()), (Some("8"), "ann@alpha"));
/// assert!("-oProxyCommand=x".parse::<Host>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// How many jobs it runs at once. `None`: as many as the run asks for.
    pub jobs: Option<String>,
    /// What ssh is called with: a host, or user@host. `:` is this machine, without ssh.
    pub login: String,
}

impl Host {
    /// The login that stands for this machine.
    pub const HERE: &str = ":";
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (jobs, login) = match text.split_once('/') {
            Some((jobs, login)) => (Some(jobs), login),
            None => (None, text),
        };
        let is_number = |jobs: &str| jobs.parse::<u32>().is_ok_and(|jobs| jobs > 0);
        let is_name = |login: &str| !login.is_empty() && !login.contains([' ', '\t', '/', ',']);
        // ssh would take it for an option.
        let is_odd = login.starts_with(['-', '@', '.']);
        if !is_name(login) || is_odd || login.chars().any(char::is_control) {
            return Err(format!("invalid host `{text}`: expected HOST, USER@HOST or JOBS/HOST"));
        }
        if let Some(jobs) = jobs.filter(|jobs| !is_number(jobs)) {
            return Err(format!("invalid host `{text}`: `{jobs}` is not a number of jobs"));
        }
        Ok(Self { jobs: jobs.map(str::to_owned), login: login.to_owned() })
    }
}

/// The login, shortened.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.login.chars();
        f.write_str(&chars.by_ref().take(SHOWN_MAX).collect::<String>())?;
        if chars.next().is_some() { f.write_str("…") } else { Ok(()) }
    }
}

/// This program, as hosts need it.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// Its version.
    pub version: String,
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// One line, without the name of the host.
    pub text: String,
    /// `true` if another try would fail in the same way.
    pub is_final: bool,
}

impl Failed {
    fn final_(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_final: true }
    }

    fn again(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_final: false }
    }
}

/// What happened on a connection.
#[derive(Debug)]
pub enum Received {
    /// A message.
    Message(FromAgent),
    /// The deadline has passed, another thread has used the [`Connection::waker`], or there is room to send.
    Nothing,
    /// The connection has ended.
    Closed,
}

/// A connection to an agent.
pub struct Connection {
    set: ChildSet,
    ssh: ChildId,
    decoder: Decoder,
    /// What has arrived, and how much of it was taken.
    arrived: Vec<u8>,
    taken: usize,
    /// What is to be sent, and how much of it was.
    outgoing: Vec<u8>,
    sent: usize,
    errors: Vec<u8>,
    heard: Instant,
    exit: Option<ExitStatus>,
    is_closed: bool,
    has_copied: bool,
}

impl Connection {
    /// Connects to a host, and starts an agent there. `ssh` is the command with its options, and `stop` is
    /// asked again and again whether to give up.
    ///
    /// # Errors
    /// ssh cannot connect, or the program cannot be started there.
    pub fn open(
        ssh: &[OsString],
        host: &Host,
        program: &Program,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(Self, Hello), Failed> {
        let mark = format!("{MARK}{}", AgentKey::random());
        let mut connection = Self::start(ssh, host, program, &mark)
            .map_err(|error| Failed::final_(format!("cannot start ssh: {error}")))?;
        let greeted = connection.greet(&mark, program, stop);
        match greeted {
            Ok(hello) => Ok((connection, hello)),
            Err(failed) => {
                connection.close();
                Err(failed)
            }
        }
    }

    fn start(ssh: &[OsString], host: &Host, program: &Program, mark: &str) -> minder::Result<Self> {
        let length = std::fs::metadata(&program.path).map_or(0, |metadata| metadata.len());
        let path = program.path.to_string_lossy();
        let words = [SCRIPT, "minder", mark, &program.version, &path, &length.to_string()];
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        // The coordinator asks all processes of a link to end, and the jobs end first.
        let mut name =
            minder_os::signals::IGNORING.iter().map(OsStr::new).chain(ssh.iter().map(OsString::as_os_str));
        let mut command = Command::new(name.next().unwrap_or(OsStr::new("ssh")));
        command.args(name);
        command.args(["-T", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "--"]);
        command.arg(&host.login).arg(format!("exec /bin/sh -c {}", words.join(" ")));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut set = ChildSet::new(ChildSetOptions::default())?;
        let ssh = set.spawn(&command, SpawnOptions::default().output_mode(OutputMode::Stream))?;
        Ok(Self {
            set,
            ssh,
            decoder: Decoder::new(),
            arrived: Vec::new(),
            taken: 0,
            outgoing: Vec::new(),
            sent: 0,
            errors: Vec::new(),
            heard: Instant::now(),
            exit: None,
            is_closed: false,
            has_copied: false,
        })
    }

    /// Talks to the script, until the agent says what it is.
    fn greet(
        &mut self,
        mark: &str,
        program: &Program,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Hello, Failed> {
        let mut until = Instant::now() + GREETING_MAX;
        let mut lines = Lines { mark, most: GREETING_MAX, ..Lines::default() };
        let mut target = String::new();
        loop {
            let Some(line) = self.line(&mut lines, until, stop)? else { continue };
            // What a shell writes before need not end with a line.
            let Some((_, words)) = line.split_once(mark) else { continue };
            let (word, rest) = words.trim_start().split_once(' ').unwrap_or((words.trim_start(), ""));
            match word {
                "where" => {
                    rest.clone_into(&mut target);
                    let digest = digest(&program.path).map_err(|error| cannot_read(&program.path, &error))?;
                    self.outgoing.extend(format!("{digest}\n").as_bytes());
                }
                "copy" => {
                    check_target(&target, &program.version)?;
                    self.outgoing.extend(b"copy\n");
                    self.copy(program, stop)?;
                    lines.most = COPIED_MAX;
                    until = Instant::now() + COPIED_MAX;
                }
                "hello" => break,
                _ => (),
            }
        }
        self.arrived = lines.buffer;
        loop {
            match self.next(until.min(Instant::now() + Duration::from_millis(250))) {
                Ok(Received::Message(FromAgent::Hello(hello))) => {
                    check_hello(&hello, &program.version)?;
                    return Ok(hello);
                }
                Ok(Received::Message(FromAgent::Refused(why))) => return Err(Failed::final_(why)),
                Ok(Received::Nothing) if Instant::now() < until && !stop() => (),
                Ok(Received::Closed) => return Err(self.why_closed()),
                Ok(_) => return Err(Failed::again("no answer")),
                Err(error) => return Err(Failed::final_(error.to_string())),
            }
        }
    }

    /// Waits for the next line of the host.
    fn line(
        &mut self,
        lines: &mut Lines<'_>,
        until: Instant,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Option<String>, Failed> {
        loop {
            if let Some(line) = lines.take(&mut self.arrived) {
                return Ok(Some(line));
            }
            if lines.read > NOISE_MAX {
                let first = shown(&lines.first);
                let text = format!("its shell writes too much before a command starts: `{first}`");
                return Err(Failed::final_(text));
            }
            let open = self.wait(until.min(Instant::now() + Duration::from_millis(250)));
            if !open.map_err(|error| Failed::final_(error.to_string()))? && self.arrived.is_empty() {
                let failed = self.why_closed();
                let is_silent = complaints(&self.errors).is_empty() && !lines.first.is_empty();
                return Err(if is_silent { Failed::again(shown(&lines.first)) } else { failed });
            }
            if stop() {
                return Err(Failed::final_("interrupted"));
            }
            if Instant::now() >= until {
                let first = if lines.first.is_empty() {
                    String::new()
                } else {
                    format!(" but `{}`", shown(&lines.first))
                };
                return Err(Failed::again(format!("no answer within {} s{first}", lines.most.as_secs())));
            }
        }
    }

    /// Sends the program.
    fn copy(&mut self, program: &Program, stop: &mut dyn FnMut() -> bool) -> Result<(), Failed> {
        let failed = |error: &io::Error| cannot_read(&program.path, error);
        let mut file = File::open(&program.path).map_err(|error| failed(&error))?;
        let mut part = vec![0; COPY_BYTES];
        loop {
            let count = file.read(&mut part).map_err(|error| failed(&error))?;
            if count == 0 {
                self.has_copied = true;
                return Ok(());
            }
            self.outgoing.extend(&part[..count]);
            let until = Instant::now() + COPY_SILENCE_MAX;
            while self.queued() > 0 {
                let open = self.wait(until).map_err(|error| Failed::again(error.to_string()))?;
                if !open {
                    return Err(self.why_closed());
                }
                if stop() || Instant::now() >= until {
                    return Err(Failed::again("the program could not be copied in time"));
                }
            }
        }
    }

    /// Returns whether the program was copied to the host.
    pub fn has_copied(&self) -> bool {
        self.has_copied
    }

    /// Sends a message, now or when there is room. A message that is longer than
    /// [`MESSAGE_MAX`](protocol::MESSAGE_MAX) is not sent, and `false` is returned.
    pub fn send(&mut self, message: &ToAgent) -> bool {
        let is_sent = message.encode(&mut self.outgoing);
        self.flush();
        is_sent
    }

    /// Returns how many bytes wait for room.
    pub fn queued(&self) -> usize {
        self.outgoing.len() - self.sent
    }

    /// Returns how long nothing was received.
    pub fn silence(&self) -> Duration {
        self.heard.elapsed()
    }

    /// Returns what ends [`next`](Self::next) from another thread.
    pub fn waker(&self) -> Waker {
        self.set.waker()
    }

    /// Returns the next message. Waits for it until the deadline.
    ///
    /// # Errors
    /// The bytes are not a message, or the operating system cannot wait.
    pub fn next(&mut self, deadline: Instant) -> io::Result<Received> {
        let mut has_waited = false;
        loop {
            let mut rest = &self.arrived[self.taken..];
            let message = self.decoder.next(&mut rest)?;
            self.taken = self.arrived.len() - rest.len();
            if let Some(message) = message {
                return Ok(Received::Message(message));
            }
            self.arrived.clear();
            self.taken = 0;
            if self.is_closed {
                return Ok(Received::Closed);
            }
            if has_waited {
                return Ok(Received::Nothing);
            }
            self.wait(deadline)?;
            has_waited = true;
        }
    }

    /// Waits for one event. Returns `false` if the connection has ended.
    fn wait(&mut self, deadline: Instant) -> io::Result<bool> {
        self.flush();
        match self
            .set
            .next_event_deadline(Some(deadline))
            .map_err(|error| io::Error::new(error.io_error().kind(), error.to_string()))?
        {
            NextEvent::Event(Event::Output { stream: Stream::Stdout, chunk, .. }) => {
                self.heard = Instant::now();
                self.arrived.extend_from_slice(&chunk);
            }
            NextEvent::Event(Event::Output { chunk, .. }) => {
                // The last lines say why ssh ends.
                self.errors.extend_from_slice(&chunk);
                let surplus = self.errors.len().saturating_sub(ERRORS_MAX);
                self.errors.drain(..surplus);
            }
            NextEvent::Event(Event::Writable { .. }) => self.flush(),
            NextEvent::Event(Event::Exited { exit, .. }) => self.exit = Some(exit.status),
            NextEvent::Event(Event::Done { .. }) | NextEvent::Empty => self.is_closed = true,
            _ => (),
        }
        Ok(!self.is_closed)
    }

    fn flush(&mut self) {
        while self.queued() > 0 {
            match self.set.write(self.ssh, &self.outgoing[self.sent..]) {
                Ok(0) => return,
                Ok(count) => self.sent += count,
                // The connection has ended, which the next wait notices.
                Err(_) => self.sent = self.outgoing.len(),
            }
        }
        self.outgoing.clear();
        self.sent = 0;
    }

    /// Returns why the connection has ended, by what ssh has written.
    pub fn why_closed(&mut self) -> Failed {
        // What is left of the messages.
        let until = Instant::now() + CLOSE_MAX;
        while !self.is_closed && Instant::now() < until && self.wait(until).is_ok() {}
        why_failed(&self.errors, self.exit)
    }

    /// Ends ssh, and with it the agent: its input ends. Returns whether the agent is known to have ended: ssh
    /// has its exit status, and not 255, which means that the connection has failed (ssh(1), EXIT STATUS).
    pub fn close(mut self) -> bool {
        let _ = self.set.close_stdin(self.ssh);
        let until = Instant::now() + CLOSE_MAX;
        let mut is_killed = false;
        while !self.is_closed {
            if !is_killed && Instant::now() >= until {
                is_killed = true;
                let _ = self.set.kill(self.ssh, Termination::IMMEDIATE);
            }
            self.arrived.clear();
            if self.wait(Instant::now() + Duration::from_millis(100)).is_err()
                || Instant::now() >= until + CLOSE_MAX
            {
                return false;
            }
        }
        matches!(self.exit, Some(ExitStatus::Exited(status)) if status != 255)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("ssh", &self.ssh).finish_non_exhaustive()
    }
}

/// The lines before the first message.
#[derive(Debug, Default)]
struct Lines<'a> {
    /// What lines of the script have in them.
    mark: &'a str,
    /// How long they are waited for.
    most: Duration,
    /// What was taken from chunks and is not in a line yet.
    buffer: Vec<u8>,
    /// How much was read.
    read: usize,
    /// The first line that was not from the script.
    first: String,
}

impl Lines<'_> {
    /// Takes the next complete line.
    fn take(&mut self, arrived: &mut Vec<u8>) -> Option<String> {
        self.read += arrived.len();
        self.buffer.append(arrived);
        let end = self.buffer.iter().position(|byte| *byte == b'\n')?;
        let line = String::from_utf8_lossy(&self.buffer[..end]).trim_end().to_owned();
        self.buffer.drain(..=end);
        if self.first.is_empty() && !line.contains(self.mark) {
            self.first.clone_from(&line);
        }
        Some(line)
    }
}

/// Returns a word as a POSIX shell, csh and fish read it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hash)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn cannot_read(path: &Path, error: &io::Error) -> Failed {
    Failed::final_(format!("cannot read `{}`: {}", path.display(), minder_os::error_text(error)))
}

/// Checks that this program can run on a system, as uname(1) names it.
fn check_target(target: &str, version: &str) -> Result<(), Failed> {
    let here = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "aarch64") => "Linux aarch64".to_owned(),
        ("linux", arch) => format!("Linux {arch}"),
        ("macos", "aarch64") => "Darwin arm64".to_owned(),
        ("macos", arch) => format!("Darwin {arch}"),
        ("freebsd", "x86_64") => "FreeBSD amd64".to_owned(),
        (os, arch) => format!("{os} {arch}"),
    };
    if target == here {
        return Ok(());
    }
    let text = format!("it is `{target}`, and this program is for `{here}`: install minder {version} there");
    Err(Failed::final_(text))
}

fn check_hello(hello: &Hello, version: &str) -> Result<(), Failed> {
    if hello.protocol == protocol::VERSION && hello.version == version {
        return Ok(());
    }
    let text = format!("it has minder {}, and this is minder {version}", hello.version);
    Err(Failed::final_(text))
}

/// The errors of ssh and of the script that another try does not change, and what helps.
const FINAL: [(&str, &str); 12] = [
    ("Permission denied (", ": a login without a password is needed (ssh-copy-id)"),
    ("Host key verification failed", ": connect once by hand, to accept its key"),
    ("Could not resolve hostname", ""),
    ("Bad configuration option", ""),
    // Of the shell that starts ssh.
    ("exec: ", ""),
    ("cannot run programs in", ": its file system may be mounted with `noexec`"),
    ("cannot create directory", ""),
    ("Read-only file system", ""),
    ("No space left on device", ""),
    ("Disk quota exceeded", ""),
    ("version `GLIBC_", ": the statically linked program of the release runs there"),
    ("Permission denied", ""),
];

/// Returns the lines that ssh has written, except those that report no error.
fn complaints(errors: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(errors);
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("Warning: Permanently added"));
    // The agent writes its name before its own messages.
    lines.map(|line| line.strip_prefix("minder: ").unwrap_or(line).to_owned()).collect()
}

/// Returns why ssh has ended, by the last line that it has written.
fn why_failed(errors: &[u8], exit: Option<ExitStatus>) -> Failed {
    let lines = complaints(errors);
    for (known, help) in FINAL {
        if let Some(line) = lines.iter().rev().find(|line| line.contains(known)) {
            return Failed::final_(format!("{}{help}", shown(line.trim_end_matches('.'))));
        }
    }
    match (lines.last(), exit) {
        (Some(line), _) => Failed::again(shown(line)),
        (None, Some(status)) => Failed::again(format!("the connection has ended ({status})")),
        (None, None) => Failed::again("the connection has ended"),
    }
}

/// Returns the beginning of a line of another machine, without control characters.
fn shown(line: &str) -> String {
    line.chars().map(|character| if character.is_control() { '?' } else { character }).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_parsed() {
        let host = |text: &str| text.parse::<Host>().map(|host| (host.jobs, host.login));
        assert_eq!(host("alpha"), Ok((None, "alpha".to_owned())));
        assert_eq!(host("8/ann@alpha"), Ok((Some("8".to_owned()), "ann@alpha".to_owned())));
        assert_eq!(host("2/:"), Ok((Some("2".to_owned()), ":".to_owned())));
        for text in ["", "0/a", "x/a", "a b", "-oProxyCommand=x", "2/-x", "a/", "1/2/a", "a\nb", "a,b"] {
            assert!(text.parse::<Host>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn words_are_quoted() {
        assert_eq!(quoted("a'b"), r"'a'\''b'");
        assert!(!SCRIPT.contains(['\'', '\n', '!']));
    }

    #[test]
    fn last_line_says_why_ssh_failed() {
        let errors = b"Warning: x\nann@alpha: Permission denied (publickey).\r\n";
        let failed = why_failed(errors, None);
        assert!(failed.is_final && failed.text.contains("ssh-copy-id"), "{failed:?}");
        let failed = why_failed(b"kex_exchange_identification: read: Connection reset by peer\n", None);
        assert!(!failed.is_final, "{failed:?}");
        assert_eq!(why_failed(b"", Some(ExitStatus::Exited(3))).text, "the connection has ended (exit 3)");
    }
}
