//! Agents as processes of this machine (`--on local:N`).
//!
//! They are in sessions apart and write to files, so they continue when this process dies, whatever ends it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use minder::{Child, Command, ErrorKind, Group, Kill, KillStep, Stdio, Termination};
use minder_cluster::agents::RoundAgents;
use minder_cluster::round::Round;
use minder_os::files::{create_private_file, open_no_follow};
use minder_os::sync::Mutex;
use minder_os::time::pause;

use crate::config::AgentsConfig;
use crate::notice::Notice;
use crate::observer::Observer;
use crate::read_range::read_range;

/// The time that agents have to end beyond that of their jobs.
const END_EXTRA: Duration = Duration::from_secs(5);
/// The time that agents have to end after a second request, which lets them kill their jobs. Then their
/// journals have an end, and the next attempt does not wait for them.
const HURRY_MAX: Duration = Duration::from_secs(5);
/// The time between two looks at signals while agents end.
const SIGNAL_PAUSE: Duration = Duration::from_millis(50);
/// The time between two looks at the beats of agents that other processes have started.
const LOOK_TIME: Duration = Duration::from_millis(500);
/// The time between two looks at the messages of agents: at least this, and this for each agent.
const MESSAGE_TIME: Duration = Duration::from_millis(250);
const MESSAGE_TIME_EACH: Duration = Duration::from_millis(100);
/// The most bytes of the messages of an agent that are read at once. A longer line is cut.
const MESSAGES_MAX: u64 = 4096;

/// The agents that this process has started, and the rounds whose results it takes.
#[derive(Debug, Default)]
pub(crate) struct LocalAgents {
    state: Mutex<State>,
    /// Set before the agents are asked to end, so that their end is not an error.
    is_ending: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    agents: Vec<Child>,
    /// The files with the messages of the agents, and when they were read.
    logs: Vec<Log>,
    read: Option<Instant>,
    observer: Option<Arc<dyn Observer>>,
    /// The rounds to cancel when the agents are to end.
    rounds: Vec<Arc<Round>>,
}

/// A file with the messages of an agent.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// How much of it was read.
    read: u64,
}

impl LocalAgents {
    /// Creates one without agents. What agents write is reported to the observer.
    pub(crate) fn new(observer: &Arc<dyn Observer>) -> Self {
        let agents = Self::default();
        agents.state.lock().observer = Some(Arc::clone(observer));
        agents
    }

    /// Starts agents for the round of an attempt.
    ///
    /// # Errors
    /// One cannot be started. The others work.
    pub(crate) fn start(
        &self,
        config: &AgentsConfig,
        run: &Path,
        attempt: u32,
        round: &Arc<Round>,
    ) -> Result<()> {
        self.take_round(round);
        for (place, number) in config.places.iter().zip(1..) {
            let path = log_path(round, number);
            let messages =
                create_private_file(&path).with_context(|| format!("cannot create `{}`", path.display()))?;
            let mut command = Command::new(&config.program);
            command.args(["agent", "--attempt", &attempt.to_string(), "--lost-after"]);
            command.arg(config.lost_after.as_secs().max(1).to_string());
            if let Some(host) = &place.host {
                command.args(["--host", &host.login]);
            }
            if let Some(jobs) = &place.jobs {
                command.args(["--jobs", jobs]);
            }
            command.arg(run);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(messages).group(Group::Session);
            let agent = match command.spawn() {
                // Where there are no sessions, Ctrl-C on the terminal does not reach another group, either.
                Err(error) if error.kind() == ErrorKind::Unsupported => command.group(Group::New).spawn(),
                spawned => spawned,
            };
            let state = &mut *self.state.lock();
            state.agents.push(agent.context("cannot start an agent")?);
            state.logs.push(Log { path, read: 0 });
        }
        Ok(())
    }

    /// Makes a round end with the agents. What its agents have written is reported.
    pub(crate) fn take_round(&self, round: &Arc<Round>) {
        let state = &mut *self.state.lock();
        for entry in fs::read_dir(round.dir()).into_iter().flatten().flatten() {
            if is_log(&entry.file_name()) {
                state.logs.push(Log { path: entry.path(), read: 0 });
            }
        }
        state.rounds.push(Arc::clone(round));
    }

    /// Ends the rounds, without waiting.
    pub(crate) fn cancel(&self) {
        self.state.lock().rounds.drain(..).for_each(|round| _ = round.cancel());
    }

    /// Returns how many agents that this process has started work, as far as the last wait has seen.
    pub(crate) fn working(&self) -> usize {
        self.state.lock().agents.len()
    }

    /// Waits until an agent that this process has started ends, at most for this time. Returns whether any of
    /// them works.
    ///
    /// # Errors
    /// The operating system cannot wait for them.
    pub(crate) fn wait(&self, time: Duration) -> Result<bool> {
        let state = &mut *self.state.lock();
        state.read_logs();
        let mut agents = std::mem::take(&mut state.agents);
        while let Some(agent) = agents.pop() {
            state.agents.extend(check(agent)?);
        }
        match state.agents.first_mut() {
            Some(agent) => _ = agent.wait_timeout(time)?,
            None => pause(time, None),
        }
        Ok(!state.agents.is_empty())
    }

    /// Reports what the agents have written. An error about them follows it.
    pub(crate) fn report(&self) {
        let state = &mut *self.state.lock();
        state.read = None;
        state.read_logs();
    }

    /// Returns whether the agents were asked to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// Ends the rounds and all agents, and waits for them. They give their jobs this time to end, unless
    /// `is_urgent` returns `true`, which is asked again and again. Only agents that this process has started
    /// can be hurried: `others` have been started by another one.
    pub(crate) fn end(&self, others: Option<&OtherAgents>, grace: Duration, is_urgent: impl FnMut() -> bool) {
        self.is_ending.store(true, Ordering::SeqCst);
        // Agents that do not see it are asked to end as well.
        self.cancel();
        let agents = std::mem::take(&mut self.state.lock().agents);
        end_all(agents, others, grace, is_urgent);
        self.report();
    }
}

/// Ends agents that this process has started, and waits for them and for others.
fn end_all(
    agents: Vec<Child>,
    others: Option<&OtherAgents>,
    grace: Duration,
    mut is_urgent: impl FnMut() -> bool,
) {
    let until = Instant::now() + grace + END_EXTRA;
    let how = Termination::graceful(grace + END_EXTRA);
    let mut ending: Vec<(Child, Kill)> = Vec::new();
    for mut agent in agents {
        ending.extend(agent.start_kill(how).ok().map(|kill| (agent, kill)));
    }
    let mut hurries = [Termination::graceful(HURRY_MAX), Termination::IMMEDIATE].into_iter();
    let mut has_hurried = false;
    loop {
        ending.retain_mut(|(agent, kill)| {
            matches!(agent.advance_kill(kill), Ok(KillStep::Running(_) | KillStep::Exited(_)))
        });
        let other_works = others.is_some_and(OtherAgents::may_work);
        if ending.is_empty() && (!other_works || has_hurried) {
            return;
        }
        if Instant::now() >= until {
            break;
        }
        if is_urgent()
            && let Some(how) = hurries.next()
        {
            has_hurried = true;
            for (agent, kill) in &mut ending {
                if let Ok(hurried) = agent.start_kill(how) {
                    *kill = hurried;
                }
            }
        }
        pause(SIGNAL_PAUSE, Some(until));
    }
    ending.iter_mut().for_each(|(agent, _)| _ = agent.kill(Termination::IMMEDIATE));
}

/// Agents that another process has started, looked at once in a while.
#[derive(Debug)]
pub(crate) struct OtherAgents(Mutex<Observed>);

#[derive(Debug)]
struct Observed {
    /// `None` once nothing of their round is taken any more.
    agents: Option<RoundAgents>,
    looked: Option<Instant>,
}

impl OtherAgents {
    pub(crate) fn new(agents: RoundAgents) -> Self {
        Self(Mutex::new(Observed { agents: Some(agents), looked: None }))
    }

    /// Returns whether any of them may still work.
    pub(crate) fn may_work(&self) -> bool {
        let Observed { agents, looked } = &mut *self.0.lock();
        let Some(agents) = agents else { return false };
        let now = Instant::now();
        if looked.is_none_or(|at| now.duration_since(at) >= LOOK_TIME) {
            *looked = Some(now);
            // What cannot be read now is read later, or counts as silence.
            let _ = agents.look(now);
        }
        agents.may_work()
    }

    /// Returns whether any of them has shown that it works.
    pub(crate) fn works(&self) -> bool {
        self.0.lock().agents.as_ref().is_some_and(RoundAgents::works)
    }

    /// Makes them count as ended, since nothing of their round is taken any more.
    pub(crate) fn forget(&self) {
        self.0.lock().agents = None;
    }

    /// Returns whether something of their round may still be taken.
    pub(crate) fn matter(&self) -> bool {
        self.0.lock().agents.is_some()
    }
}

/// Returns the file with the messages of an agent that a coordinator has started. An agent is quiet, so it
/// writes few.
fn log_path(round: &Round, number: u32) -> PathBuf {
    round.dir().join(format!("agent-{number}.log"))
}

/// Returns a child that has not exited.
fn check(mut agent: Child) -> Result<Option<Child>> {
    Ok(agent.try_wait()?.is_none().then_some(agent))
}

impl State {
    /// Reports what the agents have written since the last look.
    fn read_logs(&mut self) {
        let now = Instant::now();
        let each = MESSAGE_TIME_EACH * u32::try_from(self.logs.len()).unwrap_or(u32::MAX);
        if self.read.is_some_and(|read| now.duration_since(read) < MESSAGE_TIME.max(each)) {
            return;
        }
        self.read = Some(now);
        for log in &mut self.logs {
            // What cannot be read now is read later.
            for line in log.lines().unwrap_or_default() {
                if let Some(observer) = &self.observer {
                    observer.notice(&Notice::Agent { line });
                }
            }
        }
    }
}

impl Log {
    /// Returns the complete lines that follow, without the name of the program.
    fn lines(&mut self) -> io::Result<Vec<String>> {
        if fs::symlink_metadata(&self.path)?.len() <= self.read {
            return Ok(Vec::new());
        }
        let file = open_no_follow(&self.path)?;
        let until = file.metadata()?.len().min(self.read + MESSAGES_MAX);
        let mut bytes = Vec::new();
        read_range(&file, self.read..until, |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        let end = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if bytes.len() as u64 == MESSAGES_MAX => bytes.len(),
            None => 0,
        };
        self.read += end as u64;
        let text = String::from_utf8_lossy(&bytes[..end]);
        let lines = text.lines().map(|line| line.strip_prefix("minder: ").unwrap_or(line).trim_end());
        Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }
}

/// Returns whether a file has the messages of an agent: `agent-N.log`.
fn is_log(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("agent-") && name.ends_with(".log"))
}
