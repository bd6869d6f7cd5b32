//! Claims: which agent runs a range of jobs.
//!
//! The claims of a round are a chain: claim N begins with the first job after those of claim N - 1. A claim
//! is a file `N.E` that exactly one agent can create (`O_EXCL`). It has the key of the agent and the numbers
//! of the first and the last job. E is the *epoch*: if the agent is lost, another one makes the next epoch.
//!
//! The file `frontier` has the number of a claim that may be free. It may be wrong, which costs time only.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use minder_os::files::{open_private_file, write_all_at};
use minder_record::agents::AgentKey;

use crate::file;

/// The directory of the claims, in that of the round.
pub const CLAIMS: &str = "claims";
/// The file with the number of a claim that may be free.
pub const FRONTIER: &str = "frontier";
/// The most jobs of a claim.
pub const JOBS_MAX: u64 = 10_000;
/// The longest content of a claim: a key, two numbers of up to 20 digits, and what separates them.
const LEN_MAX: u64 = 32 + 2 * 21 + 1;
/// The digits of the number in the frontier.
const DIGITS: usize = 20;
/// An agent that needs longer to create the file of a claim gives it up. Others may have seen it empty for so
/// long that they made the next epoch.
const WRITE_MAX: Duration = Duration::from_secs(10);

/// A range of jobs, and who took it. Its jobs are those of the round from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its number in the round, counted from 1.
    pub number: u64,
    /// How often it was made, with this time.
    pub epoch: u32,
    /// The agent.
    pub agent: AgentKey,
    /// The number of its first job.
    pub first: u64,
    /// The number of its last job.
    pub last: u64,
}

/// The claims of a round, as one process knows them.
#[derive(Debug)]
pub struct Claims {
    dir: PathBuf,
    frontier: PathBuf,
    /// Opened for the first claim.
    frontier_file: Option<File>,
    /// The number of the next claim that this process does not know.
    next: u64,
    /// The last job of the claim before it.
    after: u64,
}

/// What [`Claims::take`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The agent has taken these jobs.
    Claim(Claim),
    /// No job is left that is not claimed.
    Nothing,
    /// The content of this claim is not complete. Either its agent is writing it, or it was lost meanwhile.
    /// Nothing behind it can be taken until then. See [`Claims::take_over_unwritten`].
    Unwritten(u64),
}

impl Claims {
    /// Opens the claims of a round.
    pub fn open(round: &Path) -> Self {
        let frontier = round.join(FRONTIER);
        Self { dir: round.join(CLAIMS), frontier, frontier_file: None, next: 1, after: 0 }
    }

    /// Takes the next free range. `range` returns the first and the last job of a range after the given job,
    /// or `None` if there is none.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub fn take(
        &mut self,
        agent: AgentKey,
        mut range: impl FnMut(u64) -> Option<(u64, u64)>,
    ) -> io::Result<Taken> {
        self.use_hint()?;
        loop {
            let Some((first, last)) = range(self.after) else { return Ok(Taken::Nothing) };
            let claim = Claim { number: self.next, epoch: 1, agent, first, last };
            match self.create(claim)? {
                Created::Mine(claim) => {
                    self.pass(claim);
                    self.write_hint();
                    return Ok(Taken::Claim(claim));
                }
                Created::Other(Some(other)) => self.pass(other),
                Created::Other(None) => return Ok(Taken::Unwritten(self.next)),
            }
        }
    }

    /// Takes claim `number`, whose content is not complete, and whose agent counts as lost: makes its next
    /// epoch with the range that `range` returns, as [`take`](Self::take) does. `None` if another agent was
    /// faster, or if its content is complete now.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub fn take_over_unwritten(
        &mut self,
        number: u64,
        agent: AgentKey,
        mut range: impl FnMut(u64) -> Option<(u64, u64)>,
    ) -> io::Result<Option<Claim>> {
        if number != self.next || self.bounds_of(number)?.is_some() {
            return Ok(None);
        }
        let Some((first, last)) = range(self.after) else { return Ok(None) };
        let last_epoch = self.list()?.get(&number).copied().unwrap_or(0);
        let Some(epoch) = last_epoch.checked_add(1) else { return Ok(None) };
        match self.create(Claim { number, epoch, agent, first, last })? {
            Created::Mine(claim) => {
                self.pass(claim);
                self.write_hint();
                Ok(Some(claim))
            }
            Created::Other(_) => Ok(None),
        }
    }

    /// Makes the next epoch of a claim of a lost agent. `None` if another agent was faster.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub fn take_over(&self, old: Claim, agent: AgentKey) -> io::Result<Option<Claim>> {
        let Some(epoch) = old.epoch.checked_add(1) else { return Ok(None) };
        match self.create(Claim { epoch, agent, ..old })? {
            Created::Mine(claim) => Ok(Some(claim)),
            Created::Other(_) => Ok(None),
        }
    }

    /// Returns the highest epoch of each claim.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn list(&self) -> io::Result<BTreeMap<u64, u32>> {
        Ok(self.epochs()?.into_iter().collect())
    }

    /// Returns the epochs of all claims, in ascending order.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn epochs(&self) -> io::Result<Vec<(u64, u32)>> {
        let mut epochs = Vec::new();
        let entries =
            fs::read_dir(&self.dir).map_err(|error| file::named("cannot read", &self.dir, &error))?;
        for entry in entries {
            epochs.extend(entry?.file_name().to_str().and_then(parse_name));
        }
        epochs.sort_unstable();
        Ok(epochs)
    }

    /// Reads one epoch of a claim. `None` if it does not exist, or if its content is not complete.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read(&self, number: u64, epoch: u32) -> io::Result<Option<Claim>> {
        let content = match file::read(&self.path(number, epoch), LEN_MAX) {
            // It is too long, so it is not what an agent writes.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            content => content?,
        };
        let Some((agent, first, last)) = content.as_deref().and_then(decode) else { return Ok(None) };
        Ok(Some(Claim { number, epoch, agent, first, last }))
    }

    /// Reads the first epoch of a claim that is complete: its bounds are those of the claim.
    fn bounds_of(&self, number: u64) -> io::Result<Option<Claim>> {
        if let Some(claim) = self.read(number, 1)? {
            return Ok(Some(claim));
        }
        for epoch in 2..=self.list()?.get(&number).copied().unwrap_or(0) {
            if let Some(claim) = self.read(number, epoch)? {
                return Ok(Some(claim));
            }
        }
        Ok(None)
    }

    /// Returns the number of the last job that is known to be claimed.
    pub fn passed(&self) -> u64 {
        self.after
    }

    /// Continues behind a claim.
    fn pass(&mut self, claim: Claim) {
        self.next = claim.number + 1;
        self.after = claim.last;
    }

    /// Continues behind the claim that the frontier names, if it is further and exists.
    fn use_hint(&mut self) -> io::Result<()> {
        // A hint that cannot be read is left out.
        let Ok(Some(text)) = file::read(&self.frontier, DIGITS as u64 + 1) else { return Ok(()) };
        let digits = text.strip_suffix(b"\n").filter(|digits| digits.len() == DIGITS);
        let free: Option<u64> = digits.and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
        if let Some(last) = free.filter(|free| *free > self.next).map(|free| free - 1)
            && let Some(claim) = self.bounds_of(last)?
        {
            self.pass(claim);
        }
        Ok(())
    }

    /// Tells other agents which claim may be free. They find it without that, too, so errors do not matter.
    fn write_hint(&mut self) {
        if self.frontier_file.is_none() {
            self.frontier_file = open_private_file(&self.frontier).ok();
        }
        if let Some(file) = &self.frontier_file {
            let _ = write_all_at(file, format!("{:0DIGITS$}\n", self.next).as_bytes(), 0);
        }
    }

    /// Creates the file of a claim, unless it exists.
    fn create(&self, claim: Claim) -> io::Result<Created> {
        let path = self.path(claim.number, claim.epoch);
        let started_at = Instant::now();
        let mut file = match file::create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(match self.bounds_of(claim.number)? {
                    // The answer to the first request was lost, and the request was repeated.
                    Some(found) if found == claim => Created::Mine(found),
                    found => Created::Other(found),
                });
            }
            file => file?,
        };
        if started_at.elapsed() > WRITE_MAX {
            return Ok(Created::Other(self.bounds_of(claim.number)?));
        }
        let text = format!("{} {} {}\n", claim.agent, claim.first, claim.last);
        if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
            // Others would wait for it. They have not yet done so for long enough to make the next epoch.
            let _ = fs::remove_file(&path);
            return Err(file::named("cannot write", &path, &error));
        }
        Ok(Created::Mine(claim))
    }

    fn path(&self, number: u64, epoch: u32) -> PathBuf {
        self.dir.join(format!("{number}.{epoch}"))
    }
}

/// What came of creating the file of a claim.
enum Created {
    Mine(Claim),
    /// Another agent has the claim, with these bounds, if they are complete.
    Other(Option<Claim>),
}

/// Returns the number and the epoch in the name of a claim's file.
fn parse_name(name: &str) -> Option<(u64, u32)> {
    let (number, epoch) = name.split_once('.')?;
    let claim = (number.parse().ok()?, epoch.parse().ok()?);
    (format!("{}.{}", claim.0, claim.1) == name && claim.0 > 0 && claim.1 > 0).then_some(claim)
}

fn decode(text: &[u8]) -> Option<(AgentKey, u64, u64)> {
    let text = str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let mut words = text.split(' ');
    let agent = words.next()?.parse().ok()?;
    let first = words.next()?.parse().ok()?;
    let last = words.next()?.parse().ok()?;
    (words.next().is_none() && first > 0 && first <= last).then_some((agent, first, last))
}

/// Returns the most jobs of the next claim: as many as an agent finishes in 30 s, by the jobs that it has
/// finished so far. Without any, one for each of its slots.
///
/// ```
/// use std::time::Duration;
/// use minder_cluster::claim::range_len;
///
/// assert_eq!(range_len(4, 0, Duration::ZERO), 4);
/// // 100 jobs in 10 s.
/// assert_eq!(range_len(4, 100, Duration::from_secs(10)), 300);
/// assert_eq!(range_len(4, 1, Duration::from_secs(3600)), 1);
/// assert_eq!(range_len(4, 1_000_000, Duration::from_secs(1)), 10_000);
/// ```
pub fn range_len(slots: u64, finished: u64, elapsed: Duration) -> u64 {
    const GOAL_MILLIS: u128 = 30_000;
    if finished == 0 {
        return slots.clamp(1, JOBS_MAX);
    }
    let jobs = u128::from(finished) * GOAL_MILLIS / elapsed.as_millis().max(1);
    u64::try_from(jobs).unwrap_or(JOBS_MAX).clamp(1, JOBS_MAX)
}
