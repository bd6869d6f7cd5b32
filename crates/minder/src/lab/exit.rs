//! What it costs to hear that a child has ended, among many that live.

use std::collections::HashSet;
use std::io;
use std::time::Instant;

use super::Spent;
use crate::command::{Command, Stdio};
use crate::event::Event;
use crate::poller::backends;
use crate::random::Random;
use crate::set::{ChildSet, ChildSetConfig, SpawnOptions};
use crate::sys::lab::exit as sys;
use crate::sys::lab::exit::{End, Hear, How};
use crate::sys::spawn::{Spawned, Spawner};
use crate::{Error, ErrorKind, Result};

/// The names that [`Exits::new`] takes: those of [`backends`](crate::backends), a
/// [`ChildSet`](crate::ChildSet) each, then the baselines.
///
/// | name | where | how |
/// | --- | --- | --- |
/// | `floor` | everywhere | `waitpid` of the child that was killed just now, or `WaitForSingleObject`: the least there is, and no way to hear of any other |
/// | `sigchld-any` | Linux | `SIGCHLD`, then `waitpid(-1)` until none is left |
/// | `sigchld-each` | Linux | `SIGCHLD`, then `waitpid` of every child that lives, as libuv does |
/// | `thread-each` | everywhere | a thread for each child, in `waitpid` or `WaitForSingleObject` of it |
/// | `thread-one` | Unix | one thread for all, in `waitpid(-1)` |
/// | `scan` | Windows | told that one has ended, looks at every child that lives, 64 by each `WaitForMultipleObjects` |
pub fn exits() -> impl Iterator<Item = &'static str> {
    backends().chain(sys::BASELINES.iter().copied())
}

/// A command that does nothing until it is killed, if this system has one: `sleep` on Unix; nothing
/// of the kind comes with Windows.
#[must_use]
pub fn idle() -> Option<Command> {
    let (program, args) = sys::IDLE?;
    let mut command = Command::new(program);
    command.args(args);
    Some(command)
}

/// Children that live, and one mechanism that hears their ends.
///
/// The children are killed by their numbers, one by one or all at once; the mechanism notices the
/// ends and takes them. What is measured is both together. `sigchld-any` and `thread-one` take the
/// end of any child of this process, and those of `SIGCHLD` need that signal blocked in every other
/// thread: they refuse where that is not so.
///
/// It belongs to the thread that made it: where the system can, the children die with that thread
/// (Linux) or with this process (Windows). All that still live are killed and reaped when it is
/// dropped.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// let mut sleep = minder::Command::new("sleep");
/// sleep.arg("1000");
/// let mut exits = minder::lab::Exits::new("epoll", &sleep)?;
/// exits.fill(8)?;
/// let (ends, spent) = (4, exits.one_by_one(4)?);
/// println!("{} ns an exit", spent.cpu.as_nanos() / ends);
/// exits.burst()?;
/// assert_eq!(exits.live(), 0);
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Debug)]
pub struct Exits {
    mechanism: Mechanism,
    command: Command,
    live: Vec<u32>,
    random: Random,
}

#[derive(Debug)]
enum Mechanism {
    Ours(Box<Ours>),
    Baseline(Box<Spawner>, Box<dyn Hear>),
}

/// A set, and the numbers of its children by the index of their tokens.
#[derive(Debug)]
struct Ours {
    set: ChildSet,
    pids: Vec<u32>,
}

impl Exits {
    /// Numbers of living children with which it is worth while to look on this system.
    pub const SIZES: &[u64] = sys::SIZES;

    /// Makes a mechanism for children that run this command, without a child yet. The command's
    /// streams and what becomes of it when its parent dies are set here: no input, no output,
    /// the end.
    ///
    /// # Errors
    /// `Unsupported` for a name that is not among [`exits`]; what this machine refuses.
    pub fn new(mechanism: &str, child: &Command) -> Result<Self> {
        let refused = |error| Error::new("open the mechanism", error).with_subject(mechanism);
        let known = exits().find(|name| *name == mechanism);
        let known = known.ok_or_else(|| refused(io::ErrorKind::Unsupported.into()))?;
        let mechanism = if backends().any(|name| name == known) {
            let limits = ChildSetConfig { backend: Some(known), ..ChildSetConfig::default() };
            Mechanism::Ours(Box::new(Ours { set: ChildSet::new(limits)?, pids: Vec::new() }))
        } else {
            let spawner = Spawner::for_many().map_err(refused)?;
            Mechanism::Baseline(Box::new(spawner), sys::open(known).map_err(refused)?)
        };
        let mut command = child.clone();
        command.stdin(Stdio::Null).stdout(Stdio::Null).stderr(Stdio::Null).die_with_parent(true);
        Ok(Self { mechanism, command, live: Vec::new(), random: Random::new(0) })
    }

    /// Starts this command once, kills it and takes its end: whether it is one that can be measured
    /// with.
    ///
    /// # Errors
    /// As [`Command::spawn`]; `InvalidInput` for one that ended by itself meanwhile.
    pub fn check(child: &Command) -> Result<()> {
        let Some(&mechanism) = sys::BASELINES.first() else { return Ok(()) };
        let mut exits = Self::new(mechanism, child)?;
        exits.fill(1)?;
        exits.burst().map(drop)
    }

    /// How many children live, as far as was heard.
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Starts children until so many live, and waits until the last ones have come to rest.
    ///
    /// # Errors
    /// As [`Command::spawn`]; `Exhausted` also when the mechanism itself can take no more, such as
    /// threads.
    pub fn fill(&mut self, live: usize) -> Result<()> {
        /// More than one processor can be late with.
        const LAST: usize = 64;
        let before = self.live.len();
        while self.live.len() < live {
            self.start()?;
        }
        let fresh = &self.live[before.min(self.live.len())..];
        sys::settle(&fresh[fresh.len().saturating_sub(LAST)..]);
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        match &mut self.mechanism {
            Mechanism::Ours(ours) => {
                let token = ours.set.spawn(&self.command, SpawnOptions::default())?;
                let pid = ours.set.id(token)?;
                self.live.push(pid);
                if ours.pids.len() <= token.index() {
                    ours.pids.resize(token.index() + 1, 0);
                }
                ours.pids[token.index()] = pid;
            }
            Mechanism::Baseline(spawner, hear) => {
                let spawned = spawner.spawn(&self.command);
                let spawned = spawned.map_err(|failure| crate::spawn::explain(&self.command, failure))?;
                // From here on it is cleared away, whatever happens.
                self.live.push(spawned.process.pid());
                hear.add(spawned)
                    .map_err(|error| Error::new("watch", error).with_subject(self.command.get_program()))?;
            }
        }
        Ok(())
    }

    /// Kills `exits` children, chosen at random but always the same, each when the end of the one
    /// before was heard. A quarter of them may be missing before others are started in their
    /// place, outside of what is measured.
    ///
    /// # Errors
    /// `Limit` when an end was not heard within ten seconds; `InvalidInput` when a child ended by
    /// itself; as [`fill`](Self::fill).
    pub fn one_by_one(&mut self, exits: usize) -> Result<Spent> {
        let full = self.live.len();
        let (mut left, mut total) = (exits, Spent::default());
        while left > 0 && full > 0 {
            self.fill(full)?;
            let victims = self.choose((full / 4).clamp(1, left));
            let spent = self.strike(&victims, How::OneByOne)?;
            total.cpu += spent.cpu;
            total.wall += spent.wall;
            left -= victims.len();
        }
        self.fill(full)?;
        Ok(total)
    }

    /// Kills all children at once, and hears the ends of all.
    ///
    /// # Errors
    /// As [`one_by_one`](Self::one_by_one); none is lost unless it is said.
    pub fn burst(&mut self) -> Result<Spent> {
        let victims = self.live.clone();
        self.strike(&victims, How::Burst)
    }

    fn strike(&mut self, victims: &[u32], how: How) -> Result<Spent> {
        let batch = match &mut self.mechanism {
            Mechanism::Ours(ours) => ours.strike(victims, how),
            Mechanism::Baseline(_, hear) => hear.strike(victims, how),
        };
        let batch = batch
            .map_err(|error| Error::new("hear the end of", error).with_subject(self.command.get_program()))?;
        let ended: HashSet<u32> = batch.ends.iter().map(|end| end.pid).collect();
        self.live.retain(|pid| !ended.contains(pid));
        if batch.ends.iter().any(|end| !end.killed || !victims.contains(&end.pid)) {
            let why = "it ended by itself; what is measured needs a child that ends when it is killed, such as `sleep 1000000`";
            return Err(Error::of_kind(ErrorKind::InvalidInput, "hear the exits of", why)
                .with_subject(self.command.get_program()));
        }
        let lost = victims.len() - ended.len().min(victims.len());
        if lost > 0 {
            let what = format!("{lost} of {} exits", victims.len());
            return Err(
                Error::of_kind(ErrorKind::Limit, "hear", "lost, or later than 10 seconds").with_subject(what)
            );
        }
        Ok(Spent { cpu: batch.cpu, wall: batch.wall })
    }

    /// Draws so many of those that live, without repetition.
    fn choose(&mut self, count: usize) -> Vec<u32> {
        let count = count.min(self.live.len());
        for place in 0..count {
            let rest = (self.live.len() - place) as u64;
            let drawn = place + usize::try_from(self.random.draw() % rest).unwrap_or(0);
            self.live.swap(place, drawn);
        }
        self.live[..count].to_vec()
    }
}

impl Drop for Exits {
    fn drop(&mut self) {
        // Before the mechanism: its threads wait for these.
        sys::end_all(&self.live);
    }
}

impl Hear for Ours {
    fn add(&mut self, _child: Spawned) -> io::Result<()> {
        Ok(())
    }

    fn next(&mut self, _awaited: u32, deadline: Instant) -> io::Result<Option<End>> {
        loop {
            match self.set.next(Some(deadline))? {
                Some(Event::Done(token, outcome)) => {
                    let pid = self.pids.get(token.index()).copied().unwrap_or(0);
                    let killed = sys::was_killed(outcome.exit.status);
                    return Ok(Some(End { pid, killed }));
                }
                Some(_) => (),
                None => return Ok(None),
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::sys::lab::exit::Batch;

    /// Passes over the first of the children that are killed.
    #[derive(Debug)]
    struct HardOfHearing(Box<dyn Hear>);

    impl Hear for HardOfHearing {
        fn add(&mut self, child: Spawned) -> io::Result<()> {
            self.0.add(child)
        }

        fn next(&mut self, awaited: u32, deadline: Instant) -> io::Result<Option<End>> {
            self.0.next(awaited, deadline)
        }

        fn strike(&mut self, victims: &[u32], how: How) -> io::Result<Batch> {
            self.0.strike(&victims[1..], how)
        }
    }

    fn sleepers(mechanism: &str, count: usize) -> Exits {
        let mut sleep = Command::new("sleep");
        let mut exits = Exits::new(mechanism, sleep.arg("1000000")).expect("a mechanism");
        exits.fill(count).expect("children");
        exits
    }

    #[test]
    fn a_lost_end_is_named_and_its_child_does_not_stay() {
        let mut exits = sleepers("floor", 3);
        let Mechanism::Baseline(_, hear) = &mut exits.mechanism else { panic!("a baseline") };
        *hear = Box::new(HardOfHearing(sys::open("floor").expect("a mechanism")));
        let error = exits.burst().expect_err("one was not heard");
        assert_eq!(error.to_string(), "failed to hear `1 of 3 exits`: lost, or later than 10 seconds");
        let left = exits.live.clone();
        assert_eq!(left.len(), 1);
        drop(exits);
        assert!(!std::path::Path::new(&format!("/proc/{}", left[0])).exists());
    }

    #[test]
    fn children_are_chosen_once_each_and_always_the_same() {
        let mut exits = sleepers("floor", 0);
        exits.live = (1..=100).collect();
        let mut chosen = exits.choose(25);
        assert_ne!(chosen, (1..=25).collect::<Vec<_>>());
        let mut again = sleepers("floor", 0);
        again.live = (1..=100).collect();
        assert_eq!(again.choose(25), chosen);
        chosen.sort_unstable();
        chosen.dedup();
        assert_eq!(chosen.len(), 25);
        // They are no children of ours.
        exits.live.clear();
        again.live.clear();
    }
}
