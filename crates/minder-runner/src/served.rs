//! An agent on a host that does not see the directory of the run: it gets jobs from a link, and sends back
//! what it records.
//!
//! The agent works as any other, in a private directory that is removed at the end. What it appends to its
//! journal and to its files of saved output is copied to the link, byte by byte. The journal is sent after
//! the output that it refers to.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder::guard::Watchdog;
use minder_cluster::flow::Flow;
use minder_cluster::protocol::{
    AGENT_SILENCE_MAX, BEAT_INTERVAL, Decoder, FromAgent, Hello, JobsDir, MESSAGE_MAX, Message as _,
    OUTPUT_MAX, Start, ToAgent, VERSION,
};
use minder_cluster::ssh::MARK;
use minder_cluster::transfer::{Receiver, Sender, place, remove};
use minder_os::files::{create_private_dir, create_private_file, open_no_follow};
use minder_os::sync::{Condvar, Mutex};
use minder_record::agents::{AgentKey, JOURNAL};
use minder_record::codec;
use minder_record::event::{JournalEvent, OsBytes};
use minder_record::store::{FileKind, file_kind};
use minder_record::writer::JournalWriter;

use crate::input::JobArgs;
use crate::read_range::read_range;
use crate::text::os_error_text;

/// The beginning of the names of private directories.
const DIR_PREFIX: &str = "minder-agent-";
/// The file in a private directory that is locked as long as its agent works.
const LOCK: &str = "lock";
/// What follows the name of a private directory until it is locked.
const UNLOCKED: &str = "new";
/// The time in which an agent has to end after its link was lost.
const END_MAX: Duration = Duration::from_secs(3);
/// The time between two looks whether the link still answers.
const LOOK: Duration = Duration::from_secs(1);

/// Says hello, and waits for what there is to do. `mark` begins the line before the first message.
///
/// # Errors
/// The link has ended, or sends something else.
pub fn greet(mark: &str, version: &str) -> Result<Start> {
    let hello = Hello { protocol: VERSION, version: version.to_owned(), node: minder_os::machine::name() };
    let mut bytes = format!("{mark} hello\n").into_bytes();
    FromAgent::Hello(hello).encode(&mut bytes);
    write(&bytes)?;
    let mut stdin = io::stdin().lock();
    let mut length = [0; 4];
    stdin.read_exact(&mut length).context("the link has ended")?;
    let length_max = u32::try_from(MESSAGE_MAX).unwrap_or(u32::MAX);
    let length = u32::from_be_bytes(length).min(length_max);
    let mut content = vec![0; length as usize];
    stdin.read_exact(&mut content).context("the link has ended")?;
    match content.split_first().and_then(|(kind, content)| ToAgent::read(*kind, content)) {
        Some(ToAgent::Start(start)) => Ok(*start),
        _ => bail!("the link sends something else than the start of a run"),
    }
}

/// Tells the link why this agent cannot work.
pub fn refuse(why: &str) {
    let mut bytes = Vec::new();
    FromAgent::Refused(why.to_owned()).encode(&mut bytes);
    let _ = write(&bytes);
}

/// Changes to the directory of the jobs, and creates it if it is missing. `run` is that of the run.
///
/// # Errors
/// It cannot be created, or is not a directory.
pub fn enter_dir(dir: &JobsDir, run: &Path) -> Result<()> {
    let home = || std::env::home_dir().context("this user has no home directory");
    let dir = match dir {
        JobsDir::Home => home()?,
        JobsDir::Named(name) => {
            let dir = home()?.join(name.to_os());
            fs::create_dir_all(&dir).with_context(|| format!("cannot create `{}`", dir.display()))?;
            dir
        }
        JobsDir::Temporary => {
            let dir = run.with_file_name("work");
            create_private_dir(&dir).with_context(|| format!("cannot create `{}`", dir.display()))?;
            dir
        }
    };
    std::env::set_current_dir(&dir).with_context(|| format!("cannot change to `{}`", dir.display()))
}

/// Creates the private directory of an agent, and in it that of the run, with this id. Removes those that
/// agents have left which were killed. The name has the key of `mark`, so that the shell which waits for the
/// agent knows it.
///
/// # Errors
/// A directory cannot be created.
pub fn create_dir(run: &str, mark: &str) -> Result<PathBuf> {
    let key = mark.strip_prefix(MARK).and_then(|key| key.parse().ok()).unwrap_or_else(AgentKey::random);
    create_dir_in(&std::env::temp_dir(), run, key)
}

fn create_dir_in(temporary: &Path, run: &str, key: AgentKey) -> Result<PathBuf> {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_private_name(entry.file_name().to_str())) {
        remove_left(&entry.path());
    }
    let dir = temporary.join(format!("{DIR_PREFIX}{key}"));
    let unlocked = dir.with_extension(UNLOCKED);
    let create = || -> io::Result<PathBuf> {
        // Another agent that begins would remove a directory that is not locked yet.
        create_private_dir(&unlocked)?;
        let lock = create_private_file(&unlocked.join(LOCK))?;
        lock.lock()?;
        // It is locked until this process ends, however it ends.
        std::mem::forget(lock);
        fs::rename(&unlocked, &dir)?;
        let run = dir.join(run);
        create_private_dir(&run)?;
        Ok(run)
    };
    create().with_context(|| format!("cannot create a directory in `{}`", temporary.display()))
}

/// Removes the private directory of an agent that cannot work. `run` is that of the run.
pub fn remove_dir(run: &Path) {
    if let Some(dir) = run.parent()
        && is_private_name(dir.file_name().and_then(|name| name.to_str()))
    {
        let _ = fs::remove_dir_all(dir);
    }
}

fn is_private_name(name: Option<&str>) -> bool {
    name.and_then(|name| name.strip_prefix(DIR_PREFIX)).is_some_and(|key| key.parse::<AgentKey>().is_ok())
}

/// Removes the directory of an agent that has ended.
fn remove_left(dir: &Path) {
    // A directory of another user cannot be opened, and a link is not followed.
    if fs::symlink_metadata(dir).is_ok_and(|metadata| metadata.is_dir())
        && open_no_follow(&dir.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
    {
        let _ = fs::remove_dir_all(dir);
    }
}

/// Writes to standard output. No other thread of an agent does so.
fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// The connection of an agent to its link.
#[derive(Debug)]
pub(crate) struct Served {
    journal: Arc<JournalWriter>,
    /// The directory of the jobs.
    dir: PathBuf,
    /// The files of the link.
    receiver: Mutex<Receiver>,
    state: Mutex<State>,
    /// Notified of each change.
    changed: Condvar,
}

/// A job: its number, its arguments, and why it cannot run, if it cannot.
type ServedJob = (u64, JobArgs, Option<Box<str>>);

/// The files of a job: those that are sent back, and those that are removed.
#[derive(Debug)]
struct JobFiles {
    returned: Vec<PathBuf>,
    removed: Vec<PathBuf>,
}

#[derive(Debug)]
struct State {
    jobs: VecDeque<ServedJob>,
    /// What is to be done with files after a job: those that are sent back, and those that are removed.
    files: HashMap<u64, JobFiles>,
    /// Why a file of the next job cannot be written.
    file_error: Option<String>,
    /// How many jobs run at once, and whether that was sent.
    slots: Option<u64>,
    /// No job follows.
    is_finished: bool,
    /// The jobs that run are to end.
    is_cancelled: bool,
    /// Why there is no link any more.
    lost: Option<String>,
    /// The beats that were not answered: their numbers, and when each was sent.
    beats: VecDeque<(u64, Instant)>,
    /// When the newest beat was sent that was answered.
    answered: Instant,
    /// What kills the jobs if this process does not.
    watchdog: Option<Watchdog>,
    /// What the link has not taken yet.
    flow: Flow,
    /// How many messages of the link have been taken, which it does not know yet.
    taken: usize,
    /// The journal may have grown.
    has_news: bool,
    /// No job runs any more.
    has_ended: bool,
    /// The journal is complete.
    is_over: bool,
    /// Everything was sent.
    is_flushed: bool,
}

impl Served {
    /// Starts to listen to the link, and to send what is appended to the journal.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn start(journal: Arc<JournalWriter>) -> Result<Arc<Self>> {
        let state = State {
            jobs: VecDeque::new(),
            files: HashMap::new(),
            file_error: None,
            slots: None,
            is_finished: false,
            is_cancelled: false,
            lost: None,
            beats: VecDeque::new(),
            answered: Instant::now(),
            watchdog: None,
            flow: Flow::new(),
            taken: 0,
            has_news: false,
            has_ended: false,
            is_over: false,
            is_flushed: false,
        };
        let dir = std::env::current_dir().context("cannot find the working directory")?;
        let receiver = Mutex::new(Receiver::new(dir.clone()));
        let state = Mutex::new(state);
        let served = Arc::new(Self { journal, dir, receiver, state, changed: Condvar::new() });
        // They end with the process: the one reads until the link ends, which is later.
        for run in [Self::listen, Self::send] {
            let served = Arc::clone(&served);
            std::thread::Builder::new().spawn(move || run(&served)).context("cannot start a thread")?;
        }
        Ok(served)
    }

    /// Lets the link send jobs.
    pub(crate) fn begin(&self, slots: u64) {
        self.change(|state| state.slots = Some(slots));
    }

    /// Returns the next job, or `None` if none follows. Waits for it.
    pub(crate) fn next(&self) -> Option<ServedJob> {
        let waits = |state: &mut State| {
            state.jobs.is_empty() && !state.is_finished && !state.is_cancelled && state.lost.is_none()
        };
        let mut state = self.changed.wait_while(self.state.lock(), waits);
        if state.is_cancelled || state.lost.is_some() {
            return None;
        }
        state.jobs.pop_front()
    }

    /// Says that the journal may have grown.
    pub(crate) fn notify(&self) {
        self.change(|state| state.has_news = true);
    }

    /// Ends [`watch`](Self::watch).
    pub(crate) fn end(&self) {
        self.change(|state| state.has_ended = true);
    }

    /// Waits until the journal, which is complete, has been sent, and removes the private directory.
    pub(crate) fn finish(&self, removed: &[PathBuf]) {
        self.change(|state| state.is_over = true);
        let mut state = self.state.lock();
        while !state.is_flushed && state.lost.is_none() {
            state.check_answers();
            state = self.changed.wait_timeout(state, LOOK);
        }
        drop(state);
        // The process ends while a thread may have written half of a file.
        self.receiver.lock().end();
        remove(&self.dir, removed);
        // The directory of the agent is in `agents` of that of the run.
        if let Some(run) = self.journal.dir().ancestors().nth(2) {
            remove_dir(run);
        }
    }

    /// Calls `cancel` if the jobs are to end, and `fail` if there is no link any more, and returns. Returns
    /// without that when the agent ends.
    pub(crate) fn watch(&self, watchdog: Option<Watchdog>, cancel: impl FnOnce(), fail: impl FnOnce(String)) {
        let mut cancel = Some(cancel);
        let mut state = self.state.lock();
        state.watchdog = watchdog;
        loop {
            let is_cancelled = state.is_cancelled && cancel.is_some();
            state.check_answers();
            if let Some(why) = state.lost.clone() {
                drop(state);
                self.changed.notify_all();
                return fail(format!("the link has ended: {why}"));
            }
            if is_cancelled && let Some(cancel) = cancel.take() {
                drop(state);
                cancel();
                state = self.state.lock();
                continue;
            }
            if state.has_ended {
                return;
            }
            state = self.changed.wait_timeout(state, LOOK);
        }
    }

    /// Takes out what is to be done with the files of the jobs that have ended in these lines.
    fn files_of(&self, lines: &[u8]) -> Vec<(u64, JobFiles)> {
        let mut state = self.state.lock();
        if state.files.is_empty() {
            return Vec::new();
        }
        let ended = lines.split(|byte| *byte == b'\n').filter_map(|line| match codec::decode(line) {
            Ok(JournalEvent::JobFinished(ended)) => Some(ended.job),
            _ => None,
        });
        ended.filter_map(|job| Some((job, state.files.remove(&job)?))).collect()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }

    /// Takes the messages of the link.
    fn listen(&self) {
        let mut decoder = Decoder::new();
        let mut buffer = vec![0; 64 << 10];
        let mut stdin = io::stdin().lock();
        let why = loop {
            let count = match stdin.read(&mut buffer) {
                Ok(0) => break "it has closed the connection".to_owned(),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => break os_error_text(&error),
            };
            if let Err(error) = self.take(&mut decoder, &buffer[..count]) {
                break error.to_string();
            }
        };
        self.change(|state| state.lost = Some(why));
    }

    fn take(&self, decoder: &mut Decoder, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(message) = decoder.next(&mut bytes)? {
            // Without the lock of the state: the disk may be slow.
            let file_error = match &message {
                ToAgent::File(part) => self.receiver.lock().take(part).err(),
                ToAgent::Shared(part) => {
                    self.receiver.lock().take(part)?;
                    None
                }
                _ => None,
            };
            self.change(|state| state.take(message, file_error));
        }
        Ok(())
    }

    /// Sends beats, and what is appended.
    fn send(&self) {
        if let Err(error) = self.try_send() {
            self.change(|state| _ = state.lost.get_or_insert(os_error_text(&error)));
        }
    }

    fn try_send(&self) -> io::Result<()> {
        let mut copied = Copied::new();
        loop {
            let state = self.state.lock();
            let waits = |state: &mut State| {
                !state.has_news && !state.is_over && !state.has_signs() && state.lost.is_none()
            };
            let mut state = self.changed.wait_timeout_while(state, copied.signs.pause(), waits);
            if state.lost.is_some() || state.is_flushed {
                return Ok(());
            }
            state.has_news = false;
            let is_over = state.is_over;
            let signs = copied.signs.take(&mut state);
            drop(state);
            write(&signs)?;
            copied.send_all(self)?;
            if is_over {
                let mut bytes = Vec::new();
                FromAgent::End.encode(&mut bytes);
                write(&bytes)?;
                self.change(|state| state.is_flushed = true);
                return Ok(());
            }
        }
    }
}

/// What an agent says beside what it records.
#[derive(Debug)]
struct Signs {
    next_beat: Instant,
    number: u64,
}

impl Signs {
    /// Returns the time until the next beat.
    fn pause(&self) -> Duration {
        self.next_beat.saturating_duration_since(Instant::now())
    }

    /// Takes the messages that are due.
    fn take(&mut self, state: &mut State) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(slots) = state.slots.take() {
            FromAgent::Ready(slots).encode(&mut bytes);
        }
        for _ in 0..std::mem::take(&mut state.taken) {
            FromAgent::Taken.encode(&mut bytes);
        }
        if self.pause().is_zero() {
            self.number += 1;
            self.next_beat = Instant::now() + BEAT_INTERVAL;
            // Before it is sent: an answer cannot come earlier.
            state.beats.push_back((self.number, Instant::now()));
            FromAgent::Beat(self.number).encode(&mut bytes);
        }
        bytes
    }
}

impl State {
    /// Notes that there is no link any more, if it has not answered for long.
    fn check_answers(&mut self) {
        let silence = self.answered.elapsed();
        if let Some(watchdog) = self.watchdog {
            // It kills the jobs if this process hangs or is stopped.
            watchdog.set_deadline(Some(AGENT_SILENCE_MAX.saturating_sub(silence) + END_MAX));
        }
        if silence > AGENT_SILENCE_MAX {
            self.lost.get_or_insert_with(|| format!("no answer for {} s", silence.as_secs()));
        }
    }

    fn has_signs(&self) -> bool {
        self.slots.is_some() || self.taken > 0
    }

    fn take(&mut self, message: ToAgent, file_error: Option<io::Error>) {
        self.taken += usize::from(message.bulk().is_some());
        match message {
            ToAgent::Job { number, columns, returned, removed } => {
                let paths = |names: &[OsBytes]| names.iter().map(|name| name.to_os().into()).collect();
                let files = JobFiles { returned: paths(&returned), removed: paths(&removed) };
                if !files.returned.is_empty() || !files.removed.is_empty() {
                    self.files.insert(number, files);
                }
                let refusal = self.file_error.take().map(String::into_boxed_str);
                self.jobs.push_back((number, arguments(&columns), refusal));
            }
            ToAgent::Unfit { number, why, columns } => {
                self.file_error = None;
                self.jobs.push_back((number, arguments(&columns), Some(why.into_boxed_str())));
            }
            ToAgent::Finish => self.is_finished = true,
            ToAgent::Cancel => self.is_cancelled = true,
            ToAgent::Beat(number) => {
                while let Some((sent, at)) = self.beats.front().copied().filter(|beat| beat.0 <= number) {
                    if sent == number {
                        self.answered = at;
                    }
                    self.beats.pop_front();
                }
            }
            ToAgent::File(_) => {
                if let Some(error) = file_error {
                    self.file_error.get_or_insert_with(|| os_error_text(&error));
                }
            }
            ToAgent::Taken => self.flow.taken(Instant::now()),
            ToAgent::Start(_) | ToAgent::Shared(_) => (),
        }
    }
}

fn arguments(columns: &[OsBytes]) -> JobArgs {
    JobArgs::Columns(columns.iter().map(OsBytes::to_os).collect())
}

/// How much of the files of an agent was sent.
#[derive(Debug)]
struct Copied {
    signs: Signs,
    journal: u64,
    outputs: BTreeMap<String, u64>,
    buffer: Vec<u8>,
}

impl Copied {
    fn new() -> Self {
        let signs = Signs { next_beat: Instant::now(), number: 0 };
        Self { signs, journal: 0, outputs: BTreeMap::new(), buffer: Vec::new() }
    }

    /// Sends what was appended.
    fn send_all(&mut self, served: &Served) -> io::Result<()> {
        let journal = &served.journal;
        // What these bytes refer to is in the other files by now.
        let until = journal.bytes();
        if until == self.journal {
            return Ok(());
        }
        for entry in fs::read_dir(journal.dir())? {
            if let Ok(name) = entry?.file_name().into_string()
                && file_kind(&name) == Some(FileKind::Output)
            {
                self.send_output(served, &journal.dir().join(&name), &name)?;
            }
        }
        self.send_journal(served, &journal.dir().join(JOURNAL), until)
    }

    fn send_output(&mut self, served: &Served, path: &Path, name: &str) -> io::Result<()> {
        let file = open_no_follow(path)?;
        let until = file.metadata()?.len();
        let mut at = self.outputs.get(name).copied().unwrap_or(0);
        while at < until {
            let bytes = read_part(&file, at, until.min(at + OUTPUT_MAX as u64))?;
            at += bytes.len() as u64;
            self.write(served, &FromAgent::Output { file: name.to_owned(), bytes })?;
        }
        self.outputs.insert(name.to_owned(), at);
        Ok(())
    }

    fn send_journal(&mut self, served: &Served, path: &Path, until: u64) -> io::Result<()> {
        let file = open_no_follow(path)?;
        while self.journal < until {
            // A message has whole lines, and no line is longer than a message.
            let mut lines = Vec::new();
            for most in [OUTPUT_MAX, MESSAGE_MAX - 1] {
                lines = read_part(&file, self.journal, until.min(self.journal + most as u64))?;
                let end = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                lines.truncate(end);
                if end > 0 {
                    break;
                }
            }
            if lines.is_empty() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.journal += lines.len() as u64;
            let files = served.files_of(&lines);
            for (job, files) in &files {
                self.send_files(served, *job, &files.returned)?;
            }
            self.write(served, &FromAgent::Journal(lines))?;
            for (_, files) in &files {
                remove(&served.dir, &files.removed);
            }
        }
        Ok(())
    }

    /// Sends the files that a job has made.
    fn send_files(&mut self, served: &Served, job: u64, names: &[PathBuf]) -> io::Result<()> {
        let mut sender = Sender::default();
        for name in names {
            if let Ok(place) = place(name) {
                sender.push(served.dir.join(name), place);
            }
        }
        while !sender.is_done() {
            match sender.next_part() {
                Ok(Some(part)) => self.write(served, &FromAgent::File { job, part })?,
                Ok(None) => break,
                Err(error) => self.write(served, &FromAgent::Missing { job, why: os_error_text(&error) })?,
            }
        }
        Ok(())
    }

    /// Writes a message when the link has taken enough of those before it, and beats meanwhile.
    fn write(&mut self, served: &Served, message: &FromAgent) -> io::Result<()> {
        self.buffer.clear();
        message.encode(&mut self.buffer);
        loop {
            let state = served.state.lock();
            let waits =
                |state: &mut State| !state.flow.may_send() && !state.has_signs() && state.lost.is_none();
            let mut state = served.changed.wait_timeout_while(state, self.signs.pause(), waits);
            if state.lost.is_some() {
                return Err(io::ErrorKind::NotConnected.into());
            }
            let signs = self.signs.take(&mut state);
            let may_send = state.flow.may_send();
            if may_send && let Some(bytes) = message.bulk() {
                state.flow.sent(bytes, Instant::now());
            }
            drop(state);
            write(&signs)?;
            if may_send {
                return write(&self.buffer);
            }
        }
    }
}

/// Reads the bytes of a file between two positions.
fn read_part(file: &File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_range(file, from..to, |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_that_begin_at_once_leave_each_other_alone() {
        let dir = tempfile::tempdir().expect("create directory");
        let create = || {
            for _ in 0..50 {
                create_dir_in(dir.path(), "run", AgentKey::random()).expect("create directory");
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(create))));
        assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 200);
    }
}
