//! A link: the local end of an agent on a host that does not see the directory of the run.
//!
//! For all others a link is an agent: it claims jobs, writes the journal and the saved output, and beats. It
//! runs no job itself, but passes them to its host over ssh (`served.rs` is the other end). If the host is
//! lost, the journal ends, so that other agents take the jobs over at once; the link then connects again, as
//! another agent.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder::Signal;
use minder::guard::ProcessGuard;
use minder::poll::Waker;
use minder_cluster::flow::Flow;
use minder_cluster::protocol::{
    AGENT_END_MAX, AGENT_SILENCE_MAX, FromAgent, LINK_SILENCE_MAX, Start, ToAgent,
};
use minder_cluster::round::Round;
use minder_cluster::ssh::{Connection, Host, Program, Received};
use minder_os::files::{open_private_file, write_all_at};
use minder_os::sync::{Condvar, Mutex};
use minder_record::codec;
use minder_record::event::{AttemptFinished, FAILED, JournalEvent};
use minder_record::writer::output_path;

use crate::agent::Agent;
use crate::claimed_jobs::ClaimedJobs;
use crate::config::AgentConfig;
use crate::input::JobArgs;
use crate::link_files::{LinkFiles, TransferConfig, unfit};
use crate::patience::retry;
use crate::text::os_error_text;

/// How often a host is tried that does not answer.
const TRIES: u32 = 5;
/// How often a host is tried that was lost: for about ten minutes.
const TRIES_AFTER_LOSS: u32 = 14;
/// The time before the second try. It doubles with each.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The time between two looks at signals and at the round.
const LOOK: Duration = Duration::from_millis(250);
/// The time in which a host has to read the flags of the run.
const READY_MAX: Duration = Duration::from_secs(20);
/// A host gets as many jobs in advance as it ends in this part of a second.
const AHEAD: u64 = 4;
/// No more is sent while this number of bytes waits for the network.
const QUEUED_MAX: usize = 1 << 20;
/// The most files that were not made of which a line is written.
const MISSING_MAX: u32 = 10;
/// The most jobs that a host gets in advance.
const AHEAD_MAX: u64 = 10_000;

/// A link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The run, and its limits.
    pub agent: AgentConfig,
    /// The host.
    pub host: Host,
    /// ssh, and its options.
    pub ssh: Vec<OsString>,
    /// This program.
    pub program: Program,
    /// What the host has to know.
    pub start: Start,
    /// The files that jobs need and make.
    pub files: TransferConfig,
    /// The time that jobs have to end when the run is cancelled.
    pub grace: Duration,
    /// `true` if each step waits for the disk.
    pub sync: bool,
    /// `true` if only errors are said.
    pub is_quiet: bool,
}

/// Works on a run until no job is left, the run is cancelled, or the host cannot be reached. `say` gets lines
/// that a person should read.
///
/// # Errors
/// The host cannot be reached, or a file cannot be written.
pub fn work(config: &LinkConfig, guard: &mut ProcessGuard, say: &dyn Fn(&str)) -> Result<()> {
    let round = Round::open(&config.agent.run, config.agent.attempt)?;
    let mut stop = Stop { round: &round, guard, looked: Instant::now(), is_asked: false, signals: 0 };
    let mut failures = 0;
    let mut tries = TRIES;
    loop {
        let connected = Connection::open(&config.ssh, &config.host, &config.program, &mut || stop.look());
        let why = match connected {
            _ if stop.is_asked => return Ok(()),
            Ok((connection, _)) => {
                if connection.has_copied() && !config.is_quiet {
                    say(&format!("{}: copied minder {}", config.host, config.program.version));
                }
                failures = 0;
                tries = TRIES_AFTER_LOSS;
                match Session::begin(config, connection, say)?.run(&mut stop)? {
                    End::Finished => return Ok(()),
                    End::Lost(why) => why,
                }
            }
            Err(failed) if failed.is_final || failures + 1 >= tries => {
                bail!("{}: {}", config.host, failed.text)
            }
            Err(failed) => failed.text,
        };
        failures += 1;
        if failures == 1 {
            say(&format!("{}: {why}; trying again", config.host));
        }
        let pause = PAUSE_MIN.saturating_mul(1 << (failures - 1).min(10)).min(PAUSE_MAX);
        if !stop.pause(pause) {
            return Ok(());
        }
    }
}

/// What ends a link: a signal, or the end of the round.
struct Stop<'a> {
    round: &'a Round,
    guard: &'a mut ProcessGuard,
    looked: Instant,
    is_asked: bool,
    /// How many signals have asked it to end.
    signals: u32,
}

impl Stop<'_> {
    fn look(&mut self) -> bool {
        let is_end = |signal| matches!(signal, Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT);
        while let Some(signal) = self.guard.next_signal() {
            self.signals += u32::from(is_end(signal));
        }
        self.is_asked |= self.signals > 0;
        if self.looked.elapsed() >= Duration::from_secs(1) {
            self.looked = Instant::now();
            self.is_asked |= self.round.is_cancelled().unwrap_or(false);
        }
        self.is_asked
    }

    /// Waits. Returns `false` if the link is to end.
    fn pause(&mut self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if self.look() {
                return false;
            }
            minder_os::time::pause(LOOK, Some(until));
        }
        !self.look()
    }
}

/// How a session has ended.
enum End {
    /// Each job that the agent could have run has a result, or the run was cancelled.
    Finished,
    /// The host is lost.
    Lost(String),
}

/// Lets ranges be claimed when the host has a free slot, and not before: another agent may be free to run
/// them.
#[derive(Debug, Default)]
struct Room {
    state: Mutex<RoomState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct RoomState {
    /// How many jobs the claiming thread has passed on.
    given: u64,
    /// It waits for a free slot, and there is one.
    is_wanted: bool,
    is_free: bool,
    has_ended: bool,
}

impl Room {
    /// Counts a job that is passed on.
    fn give(&self) {
        self.state.lock().given += 1;
    }

    /// Says that there is a free slot when `taken` jobs have been taken. It counts only if those are all.
    fn offer(&self, taken: u64) {
        let mut state = self.state.lock();
        if state.is_wanted && state.given == taken {
            state.is_free = true;
            self.changed.notify_all();
        }
    }

    fn end(&self) {
        self.state.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits for a free slot. Returns `false` if the session has ended.
    fn wait(&self, waker: &Waker) -> bool {
        self.state.lock().is_wanted = true;
        let _ = waker.wake();
        let waits = |state: &mut RoomState| !state.is_free && !state.has_ended;
        let mut state = self.changed.wait_while(self.state.lock(), waits);
        state.is_wanted = false;
        state.is_free = false;
        !state.has_ended
    }
}

/// A job for the host, or `None` if none follows, or why none can be read.
type NextJob = Result<Option<(u64, JobArgs)>>;

/// One connection, and the agent that it is for others.
struct Session<'a> {
    config: &'a LinkConfig,
    connection: Connection,
    agent: Arc<Agent>,
    say: &'a dyn Fn(&str),
    outputs: Files,
    files: LinkFiles,
    /// Parts of files that the host has not taken yet.
    flow: Flow,
    missing: u32,
    room: Arc<Room>,
    /// How many jobs the host runs at once, and how many it has.
    slots: u64,
    sent: u64,
    ended: u64,
    /// How many jobs had ended a moment ago, and how many a second since then.
    measured: (Instant, u64),
    rate: u64,
    is_finished: bool,
    /// The journal has an end, and the host says in it that it has failed.
    is_over: bool,
    has_failed: bool,
    /// When the last beat was answered.
    answered: Instant,
}

impl<'a> Session<'a> {
    /// Becomes an agent, and tells the host what there is to do.
    fn begin(config: &'a LinkConfig, mut connection: Connection, say: &'a dyn Fn(&str)) -> Result<Self> {
        let files = LinkFiles::new(&config.files)?;
        if !connection.send(&ToAgent::Start(Box::new(config.start.clone()))) {
            bail!("{}: the command of the run is too long", config.host);
        }
        // The last step that may fail: from here on the journal gets an end.
        let agent = Arc::new(Agent::start(&config.agent, config.host.login.clone(), config.sync)?);
        let outputs = Files::new(agent.journal.dir().to_owned(), config.sync);
        Ok(Self {
            config,
            connection,
            agent,
            say,
            outputs,
            files,
            flow: Flow::new(),
            missing: 0,
            room: Arc::default(),
            slots: 0,
            sent: 0,
            ended: 0,
            measured: (Instant::now(), 0),
            rate: 0,
            is_finished: false,
            is_over: false,
            has_failed: false,
            answered: Instant::now(),
        })
    }

    /// Passes jobs and results until the end.
    fn run(mut self, stop: &mut Stop<'_>) -> Result<End> {
        let not_ready = match self.wait_ready(stop) {
            Ok(None) if stop.is_asked => Some(Ok(End::Finished)),
            Ok(why) => why.map(|why| Ok(End::Lost(why))),
            Err(error) => Some(Err(error)),
        };
        if let Some(ended) = not_ready {
            return self.close(stop, ended);
        }
        let is_cancelled = AtomicBool::new(false);
        let failure = Mutex::new(None);
        let waker = self.connection.waker();
        let agent = Arc::clone(&self.agent);
        let ended = thread::scope(|scope| {
            let beating = {
                let agent = Arc::clone(&agent);
                let waker = waker.clone();
                let is_cancelled = &is_cancelled;
                let failure = &failure;
                thread::Builder::new().spawn_scoped(scope, move || {
                    let cancel = || is_cancelled.store(true, Ordering::SeqCst);
                    let fail = |why| _ = failure.lock().insert(why);
                    match Round::open(&agent.run, agent.attempt) {
                        Ok(round) => agent.beat(&round, None, cancel, fail),
                        Err(error) => fail(os_error_text(&error)),
                    }
                    let _ = waker.wake();
                })
            };
            let (sender, jobs) = sync_channel(1);
            let room = Arc::clone(&self.room);
            let claiming = {
                let agent = Arc::clone(&agent);
                let slots = self.slots;
                let room = Arc::clone(&room);
                let work = move || claim(agent, slots, &room, &sender, &waker);
                thread::Builder::new().spawn_scoped(scope, work)
            };
            let ended = match (&beating, &claiming) {
                (Ok(_), Ok(_)) => self.pass(&jobs, stop, &is_cancelled, &failure),
                (Err(error), _) | (_, Err(error)) => {
                    Err(anyhow::anyhow!("cannot start a thread: {}", os_error_text(error)))
                }
            };
            // Both threads notice.
            agent.end();
            room.end();
            drop(jobs);
            ended
        });
        self.close(stop, ended)
    }

    /// Ends the connection, and then the journal, so that others take over what is left. The jobs are dead
    /// then.
    fn close(self, stop: &mut Stop<'_>, ended: Result<End>) -> Result<End> {
        let has_ended = self.connection.close();
        if !self.is_over {
            if !has_ended && self.sent > 0 {
                let dead = self.answered + AGENT_SILENCE_MAX + AGENT_END_MAX;
                stop.pause(dead.saturating_duration_since(Instant::now()));
            }
            let why = if matches!(ended, Ok(End::Finished)) { "interrupted" } else { "lost" };
            let finished = AttemptFinished { why: Some(why.to_owned()), ..AttemptFinished::default() };
            let mut line = Vec::new();
            codec::encode(&JournalEvent::AttemptFinished(finished), &mut line);
            // Without it, others take over when this agent no longer beats.
            let _ = self.agent.journal.append(&line);
        }
        ended
    }

    /// Waits until the host is ready. Returns why it is lost, if it is.
    fn wait_ready(&mut self, stop: &mut Stop<'_>) -> Result<Option<String>> {
        let until = Instant::now() + READY_MAX;
        while !stop.look() {
            match self.next()? {
                Received::Message(FromAgent::Ready(slots)) => {
                    self.slots = slots.max(1);
                    // Its time begins when it begins, which was before.
                    self.answered = Instant::now();
                    return Ok(None);
                }
                Received::Message(message) => _ = self.take(message)?,
                Received::Closed => return Ok(Some(self.connection.why_closed().text)),
                Received::Nothing if Instant::now() >= until => {
                    return Ok(Some(format!("no answer within {} s", READY_MAX.as_secs())));
                }
                Received::Nothing => (),
            }
        }
        Ok(None)
    }

    fn pass(
        &mut self,
        jobs: &Receiver<NextJob>,
        stop: &mut Stop<'_>,
        is_cancelled: &AtomicBool,
        failure: &Mutex<Option<String>>,
    ) -> Result<End> {
        let mut cancelled: Option<Instant> = None;
        loop {
            if let Some(why) = failure.lock().take() {
                bail!("{}: {why}", self.config.host);
            }
            let must_end = stop.look() || is_cancelled.load(Ordering::SeqCst);
            if must_end && cancelled.is_none() {
                cancelled = Some(Instant::now());
                self.connection.send(&ToAgent::Cancel);
            }
            let is_late = |since: Instant| since.elapsed() > self.config.grace + Duration::from_secs(4);
            // When the connection ends, the host kills its jobs.
            if stop.signals > 1 || cancelled.is_some_and(is_late) {
                return Ok(End::Finished);
            }
            if cancelled.is_none() {
                self.send_jobs(jobs)?;
            }
            match self.next()? {
                Received::Message(message) => {
                    if self.take(message)? {
                        return Ok(End::Finished);
                    }
                }
                Received::Closed if cancelled.is_some() => return Ok(End::Finished),
                Received::Closed => return Ok(End::Lost(self.connection.why_closed().text)),
                Received::Nothing if self.connection.silence() > LINK_SILENCE_MAX => {
                    return Ok(End::Lost(format!("no answer for {} s", LINK_SILENCE_MAX.as_secs())));
                }
                Received::Nothing => (),
            }
        }
    }

    /// Waits a moment for the next message.
    fn next(&mut self) -> Result<Received> {
        let next = self.connection.next(Instant::now() + LOOK);
        next.with_context(|| self.config.host.to_string())
    }

    /// Sends as many jobs as the host needs until it is asked again.
    fn send_jobs(&mut self, jobs: &Receiver<NextJob>) -> Result<()> {
        let (since, count) = self.measured;
        let elapsed = since.elapsed();
        if elapsed >= Duration::from_secs(1) {
            let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
            self.rate = (self.ended - count).saturating_mul(1000) / millis;
            self.measured = (Instant::now(), self.ended);
        }
        let ahead = (self.rate / AHEAD).min(AHEAD_MAX);
        let most = self.slots + ahead.max(1);
        while self.connection.queued() < QUEUED_MAX && self.flow.may_send() {
            if let Some(message) = self.files.next()? {
                if let Some(bytes) = message.bulk() {
                    self.flow.sent(bytes, Instant::now());
                }
                let is_sent = self.connection.send(&message);
                if let ToAgent::Job { number, .. } | ToAgent::Unfit { number, .. } = message
                    && !is_sent
                {
                    let why = "its arguments are too long to be sent".to_owned();
                    self.connection.send(&unfit(number, why, &[]));
                }
                continue;
            }
            if self.is_finished || self.sent - self.ended >= most {
                break;
            }
            match jobs.try_recv() {
                Ok(Ok(Some((number, JobArgs::Columns(columns))))) => {
                    self.files.push(number, &columns);
                    self.sent += 1;
                }
                Ok(Ok(Some((number, JobArgs::Unfit(why))))) => {
                    self.connection.send(&unfit(number, why.to_string(), &[]));
                    self.sent += 1;
                }
                Ok(Ok(None)) => {
                    self.is_finished = true;
                    self.connection.send(&ToAgent::Finish);
                }
                Ok(Err(error)) => return Err(error),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        if self.sent - self.ended < self.slots + ahead {
            self.room.offer(self.sent);
        }
        Ok(())
    }

    fn answer(&mut self, beat: u64) {
        self.connection.send(&ToAgent::Beat(beat));
        self.answered = Instant::now();
    }

    /// Takes a message of the host. Returns whether it was the last one.
    fn take(&mut self, message: FromAgent) -> Result<bool> {
        let is_bulk = message.bulk().is_some();
        match message {
            FromAgent::Beat(number) => self.answer(number),
            FromAgent::Taken => self.flow.taken(Instant::now()),
            FromAgent::Output { file, bytes } => self.outputs.append(&file, &bytes)?,
            FromAgent::File { job, part } => {
                self.files.take(job, &part).with_context(|| self.config.host.to_string())?;
            }
            FromAgent::Missing { job, why } => {
                self.missing += 1;
                if self.missing <= MISSING_MAX {
                    (self.say)(&format!(
                        "{}: job {job} returns less than it should: {why}",
                        self.config.host
                    ));
                }
            }
            FromAgent::Journal(lines) => self.take_journal(&lines)?,
            FromAgent::End if self.has_failed => {
                bail!("{}: {}", self.config.host, self.connection.why_closed().text)
            }
            FromAgent::End => return Ok(true),
            FromAgent::Refused(why) => bail!("{}: {why}", self.config.host),
            FromAgent::Hello(_) | FromAgent::Ready(_) => (),
        }
        if is_bulk {
            self.connection.send(&ToAgent::Taken);
        }
        Ok(false)
    }

    /// Appends lines to the journal. Its first line was written here, and claims are made here.
    fn take_journal(&mut self, lines: &[u8]) -> Result<()> {
        let mut ended = VecDeque::new();
        let mut kept = Vec::with_capacity(lines.len());
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            match codec::decode(line.strip_suffix(b"\n").unwrap_or(line)) {
                Ok(JournalEvent::JobFinished(job)) => ended.push_back(job.job),
                Ok(JournalEvent::AttemptFinished(end)) => {
                    self.is_over = true;
                    self.has_failed = end.why.as_deref() == Some(FAILED);
                }
                Ok(JournalEvent::AttemptStarted(_) | JournalEvent::Claimed(_) | JournalEvent::Sealed(_)) => {
                    continue;
                }
                Ok(_) => (),
                Err(error) => bail!("{}: a line of its journal is {error}", self.config.host),
            }
            kept.extend_from_slice(line);
        }
        self.outputs.sync()?;
        self.agent.append(&kept).context("cannot write the record of the run")?;
        self.files.forget(&ended);
        self.ended += ended.len() as u64;
        self.agent.note_recorded(ended.len() as u64);
        Ok(())
    }
}

/// Claims jobs, one after the other, until none is left or the session has ended.
fn claim(agent: Arc<Agent>, slots: u64, room: &Room, sender: &SyncSender<NextJob>, waker: &Waker) {
    let mut source = match ClaimedJobs::open(agent, usize::try_from(slots).unwrap_or(1)) {
        Ok(source) => source,
        Err(error) => {
            let _ = sender.send(Err(error));
            let _ = waker.wake();
            return;
        }
    };
    loop {
        if source.must_claim() && !room.wait(waker) {
            return;
        }
        let job = source.next();
        let is_last = !matches!(job, Ok(Some(_)));
        if !is_last {
            room.give();
        }
        if sender.send(job).is_err() {
            return;
        }
        let _ = waker.wake();
        if is_last {
            return;
        }
    }
}

/// The files with saved output of a host.
#[derive(Debug)]
struct Files {
    dir: PathBuf,
    syncs: bool,
    lengths: HashMap<String, u64>,
    /// The one that was written last.
    open: Option<(String, File)>,
    is_dirty: bool,
}

impl Files {
    fn new(dir: PathBuf, syncs: bool) -> Self {
        Self { dir, syncs, lengths: HashMap::new(), open: None, is_dirty: false }
    }

    /// Appends to a file.
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = output_path(&self.dir, name)?;
        let cannot = || format!("cannot save output in `{}`", path.display());
        if self.open.as_ref().is_none_or(|(open, _)| open != name) {
            self.sync()?;
            let file = retry(|| open_private_file(&path)).with_context(cannot)?;
            self.open = Some((name.to_owned(), file));
        }
        let Some((_, file)) = &self.open else { return Ok(()) };
        let len = self.lengths.entry(name.to_owned()).or_insert(0);
        retry(|| write_all_at(file, bytes, *len)).with_context(cannot)?;
        *len += bytes.len() as u64;
        self.is_dirty = true;
        Ok(())
    }

    /// Waits for the disk, if that is wanted.
    fn sync(&mut self) -> Result<()> {
        if self.syncs
            && self.is_dirty
            && let Some((name, file)) = &self.open
        {
            file.sync_data().with_context(|| format!("cannot save output in `{name}`"))?;
        }
        self.is_dirty = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
