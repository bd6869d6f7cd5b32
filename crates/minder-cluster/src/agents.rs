//! The agents of a round, as an observer sees them: which of them work, and which have ended or were lost.
//!
//! An observer reads beats and the ends of journals. It needs no process of an agent, so it may be on another
//! machine, and it may have been started later than the agents.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use minder_os::files::open_no_follow;
use minder_record::agents::{self, AgentKey, JOURNAL};
use minder_record::codec;
use minder_record::event::{AttemptStarted, JournalEvent};
use minder_record::reader::attempt_finished;

use crate::beat::{Beat, Watch};

/// The longest first line of a journal.
const FIRST_LINE_MAX: u64 = 4096;

/// What an observer knows of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// Its beat has changed since the observer began.
    Works,
    /// Its beat has not changed since the observer began. It may work.
    Silent,
    /// Its beat has not changed for the time after which an agent counts as lost.
    Lost,
    /// Its journal has an end.
    Over,
}

impl AgentState {
    /// Returns whether the agent may still run jobs.
    pub fn may_work(self) -> bool {
        matches!(self, Self::Works | Self::Silent)
    }
}

/// An agent of a round.
#[derive(Clone, Debug)]
pub struct ObservedAgent {
    /// Its state when it was observed last.
    pub state: AgentState,
    /// Its last beat.
    pub beat: Option<Beat>,
    /// The first event of its journal, once it can be read.
    pub started: Option<AttemptStarted>,
    watch: Watch,
    /// The counter of the first beat that was read.
    first: Option<u64>,
}

/// The agents of one round.
#[derive(Debug)]
pub struct RoundAgents {
    run: PathBuf,
    attempt: u32,
    lost_after: Duration,
    known: BTreeMap<AgentKey, ObservedAgent>,
}

impl RoundAgents {
    /// Begins to observe the agents of the round of an attempt. Nothing is read yet.
    pub fn new(run: &Path, attempt: u32, lost_after: Duration) -> Self {
        Self { run: run.to_owned(), attempt, lost_after, known: BTreeMap::new() }
    }

    /// Returns the attempt that submitted the round.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Reads the beats, and the ends of journals. An agent whose journal has no first line yet counts as one
    /// of this round.
    ///
    /// # Errors
    ///
    /// A file or directory cannot be read.
    pub fn look(&mut self, now: Instant) -> io::Result<()> {
        for key in agents::keys(&self.run)? {
            let dir = key.dir(&self.run);
            let agent = self.known.entry(key).or_insert_with(|| ObservedAgent {
                state: AgentState::Silent,
                beat: None,
                started: None,
                watch: Watch::new(now),
                first: None,
            });
            if agent.started.is_none() {
                agent.started = first_event(&dir.join(JOURNAL))?;
            }
            let is_of_round = agent.started.as_ref().is_none_or(|it| it.attempt == self.attempt);
            if agent.state == AgentState::Over || !is_of_round {
                continue;
            }
            agent.watch.observe(Beat::read(&dir)?, now);
            agent.beat = agent.watch.beat();
            let count = agent.beat.map(|beat| beat.count);
            agent.first = agent.first.or(count);
            agent.state = if attempt_finished(&dir.join(JOURNAL)).is_some() {
                AgentState::Over
            } else if agent.watch.is_lost(now, self.lost_after) {
                AgentState::Lost
            } else if count > agent.first || agent.state == AgentState::Works {
                AgentState::Works
            } else {
                AgentState::Silent
            };
        }
        Ok(())
    }

    /// Returns the agents of the round, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (AgentKey, &ObservedAgent)> {
        let is_of_round =
            |agent: &ObservedAgent| agent.started.as_ref().is_none_or(|it| it.attempt == self.attempt);
        self.known.iter().filter(move |(_, agent)| is_of_round(agent)).map(|(key, agent)| (*key, agent))
    }

    /// Returns whether any of them may still run jobs.
    pub fn may_work(&self) -> bool {
        self.iter().any(|(_, agent)| agent.state.may_work())
    }

    /// Returns whether any of them has shown that it works.
    pub fn works(&self) -> bool {
        self.iter().any(|(_, agent)| agent.state == AgentState::Works)
    }
}

/// Returns the first event of a journal, if it is there.
fn first_event(journal: &Path) -> io::Result<Option<AttemptStarted>> {
    let file: File = match open_no_follow(journal) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut line = Vec::new();
    BufReader::new(file.take(FIRST_LINE_MAX)).read_until(b'\n', &mut line)?;
    let event = line.strip_suffix(b"\n").and_then(|line| codec::decode(line).ok());
    Ok(match event {
        Some(JournalEvent::AttemptStarted(started)) => Some(started),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use minder_record::event::AttemptFinished;
    use minder_record::manifest::{InputSource, Manifest};
    use minder_record::writer::JournalWriter;

    use super::*;
    use crate::beat::BeatWriter;

    #[test]
    fn agent_is_seen_to_work_to_be_lost_and_to_end() {
        let state = tempfile::tempdir().expect("create directory");
        let input = InputSource::Lost { why: "it is a test".to_owned() };
        let manifest = Manifest::new(state.path(), &["x"], input);
        let run = JournalWriter::create(state.path(), manifest, [""; 0], false).expect("create run");
        let agent = |attempt| {
            let key = AgentKey::random();
            let node = "n1".to_owned();
            let journal = JournalWriter::of_agent(run.dir(), key, attempt, node, false).expect("begin");
            let beat = BeatWriter::create(journal.dir()).expect("create beat");
            (key, journal, beat)
        };
        let (key, journal, mut beat) = agent(1);
        let _other = agent(2);
        let lost_after = Duration::from_secs(60);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut agents = RoundAgents::new(run.dir(), 1, lost_after);
        agents.look(at(0)).expect("look");
        let state = |agents: &RoundAgents| agents.iter().map(|(key, it)| (key, it.state)).collect::<Vec<_>>();
        assert_eq!(state(&agents), [(key, AgentState::Silent)]);
        assert!(agents.may_work() && !agents.works());
        beat.beat(0, 3).expect("beat");
        agents.look(at(59)).expect("look");
        assert_eq!(state(&agents), [(key, AgentState::Works)]);
        agents.look(at(118)).expect("look");
        assert!(agents.works());
        agents.look(at(119)).expect("look");
        assert_eq!(state(&agents), [(key, AgentState::Lost)]);
        let mut line = Vec::new();
        codec::encode(&JournalEvent::AttemptFinished(AttemptFinished::default()), &mut line);
        journal.append(&line).expect("append");
        agents.look(at(120)).expect("look");
        assert_eq!(state(&agents), [(key, AgentState::Over)]);
        assert!(!agents.may_work());
    }
}
