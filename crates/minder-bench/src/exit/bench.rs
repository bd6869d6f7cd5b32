//! One mechanism that observes the exits of children.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;

use minder::{Backend, Command, ErrorKind, Stdio};

use super::set_under_test::SetUnderTest;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::stopwatch::CpuAndWall;
use crate::sys::exit as sys;
use crate::sys::exit::{ExitWatcher, KillMode};

/// Returns the names that [`ExitBench::new`] takes: those of [`Backend::available`], with a
/// [`ChildSet`](minder::ChildSet) each, then the baselines.
///
/// | name | where | how |
/// | --- | --- | --- |
/// | `floor` | everywhere | `waitpid` or `WaitForSingleObject` of the child that was just killed |
/// | `sigchld-any` | Linux | `SIGCHLD`, then `waitpid(-1)` until no more child has exited |
/// | `sigchld-each` | Linux | `SIGCHLD`, then `waitpid` of every live child, as libuv does |
/// | `thread-each` | everywhere | a thread for each child, in `waitpid` or `WaitForSingleObject` |
/// | `thread-one` | Unix | one thread for all children, in `waitpid(-1)` |
/// | `scan` | Windows | after an exit, checks every live child, 64 by each `WaitForMultipleObjects` |
///
/// `floor` is the least possible cost: it observes no other exit.
///
/// ```
/// assert!(minder_bench::exits().any(|name| name == "floor"));
/// ```
pub fn exits() -> impl Iterator<Item = &'static str> {
    Backend::available().map(Backend::name).chain(sys::BASELINES.iter().map(|(name, _)| *name))
}

/// Returns a command that does nothing until it is killed: `sleep` on Unix. `None` on Windows, which
/// comes with no such program.
///
/// ```
/// assert_eq!(minder_bench::idle_command().is_some(), cfg!(unix));
/// ```
#[must_use]
pub fn idle_command() -> Option<Command> {
    let (program, args) = sys::IDLE_COMMAND?;
    let mut command = Command::new(program);
    command.args(args);
    Some(command)
}

/// Live children, and a mechanism that observes their exits.
///
/// The benchmark kills children by their pids, one by one or all at once, and the mechanism
/// observes the exits and reaps the children. Both together are measured. `sigchld-any` and
/// `thread-one` reap every child of this process, so they refuse a process with other children. The
/// mechanisms of `SIGCHLD` refuse a process in which another thread does not block that signal.
///
/// A bench belongs to the thread that made it: the kernel kills the children when that thread exits
/// (Linux) or when this process exits (Windows). Dropping the bench kills and reaps all live
/// children.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// let mut sleep = minder::Command::new("sleep");
/// sleep.arg("1000");
/// let mut bench = minder_bench::ExitBench::new("epoll", &sleep)?;
/// bench.fill(8)?;
/// let total = bench.one_by_one(4)?;
/// println!("{} ns of CPU time an exit", total.cpu.as_nanos() / 4);
/// bench.burst()?;
/// assert_eq!(bench.live(), 0);
/// # }
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Debug)]
pub struct ExitBench {
    mechanism: Mechanism,
    command: Command,
    /// The pids of children whose exits were not observed.
    live: Vec<u32>,
    random: Random,
}

#[derive(Debug)]
enum Mechanism {
    Set(Box<SetUnderTest>),
    Baseline(Box<dyn ExitWatcher>),
}

impl ExitBench {
    /// The numbers of live children that are measured by default.
    pub const SIZES: &[u64] = sys::SIZES;

    /// Makes a mechanism for children that run `child`, without starting one. The children have no
    /// input and no output, and are killed when their parent exits.
    ///
    /// # Errors
    /// `Unsupported` for a name that is not in [`exits`]; other errors if the mechanism does not
    /// work in this process or on this machine.
    pub fn new(mechanism: &str, child: &Command) -> Result<Self> {
        let failed = |error| Error::from_io("open the mechanism", Some(OsStr::new(mechanism)), &error);
        let mechanism =
            if let Some(backend) = Backend::available().find(|backend| backend.name() == mechanism) {
                Mechanism::Set(Box::new(SetUnderTest::open(backend)?))
            } else {
                let baseline = sys::BASELINES.iter().find(|(name, _)| *name == mechanism);
                let (_, open) = baseline.ok_or_else(|| failed(io::ErrorKind::Unsupported.into()))?;
                Mechanism::Baseline(open().map_err(failed)?)
            };
        let mut command = child.clone();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).die_with_parent(true);
        Ok(Self { mechanism, command, live: Vec::new(), random: Random::new(0) })
    }

    /// Checks that a command is fit for a measurement: starts it, kills it and observes its exit.
    ///
    /// # Errors
    /// As [`Command::spawn`]; `InvalidInput` if the child exits by itself.
    pub fn check(child: &Command) -> Result<()> {
        let Some((mechanism, _)) = sys::BASELINES.first() else { return Ok(()) };
        let mut bench = Self::new(mechanism, child)?;
        bench.fill(1)?;
        bench.burst().map(drop)
    }

    /// Returns the number of children whose exits were not observed.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Starts children until `live` of them live, and waits until the last ones are idle.
    ///
    /// # Errors
    /// As [`Command::spawn`]; `Exhausted` also if the mechanism needs more threads or descriptors
    /// than it can get.
    pub fn fill(&mut self, live: usize) -> Result<()> {
        /// Children started before these are idle already.
        const SETTLED_MAX: usize = 64;
        let before = self.live.len();
        while self.live.len() < live {
            self.spawn()?;
        }
        let started = &self.live[before.min(self.live.len())..];
        sys::settle(&started[started.len().saturating_sub(SETTLED_MAX)..]);
        Ok(())
    }

    fn spawn(&mut self) -> Result<()> {
        match &mut self.mechanism {
            Mechanism::Set(set) => self.live.push(set.spawn(&self.command)?),
            Mechanism::Baseline(watcher) => {
                let child = self.command.spawn()?;
                // From here on `drop` cleans it up if a step fails.
                self.live.push(child.id());
                let subject = Some(self.command.get_program());
                watcher.add(child).map_err(|error| Error::from_io("watch", subject, &error))?;
            }
        }
        Ok(())
    }

    /// Kills `exits` children, each after the exit of the one before was observed. They are chosen
    /// at random, but the same in every run. Before more than a quarter of the children are
    /// missing, others are started in their place; that is not measured.
    ///
    /// # Errors
    /// `Limit` if an exit was not observed within ten seconds; `InvalidInput` if a child exited by
    /// itself; as [`fill`](Self::fill).
    pub fn one_by_one(&mut self, exits: usize) -> Result<CpuAndWall> {
        let full = self.live.len();
        let mut left = exits;
        let mut total = CpuAndWall::default();
        while left > 0 && full > 0 {
            self.fill(full)?;
            let victims = self.choose((full / 4).clamp(1, left));
            total += self.measure(&victims, KillMode::OneByOne)?;
            left -= victims.len();
        }
        self.fill(full)?;
        Ok(total)
    }

    /// Kills all children at once, and observes their exits.
    ///
    /// # Errors
    /// As [`one_by_one`](Self::one_by_one).
    pub fn burst(&mut self) -> Result<CpuAndWall> {
        let victims = self.live.clone();
        self.measure(&victims, KillMode::Burst)
    }

    fn measure(&mut self, victims: &[u32], mode: KillMode) -> Result<CpuAndWall> {
        let program = Some(self.command.get_program());
        let watcher: &mut dyn ExitWatcher = match &mut self.mechanism {
            Mechanism::Set(set) => set.as_mut(),
            Mechanism::Baseline(watcher) => watcher.as_mut(),
        };
        let measurement = watcher.measure(victims, mode);
        let measurement = measurement.map_err(|error| Error::from_io("hear the end of", program, &error))?;
        let exited: HashSet<u32> = measurement.exits.iter().map(|exit| exit.pid).collect();
        self.live.retain(|pid| !exited.contains(pid));
        if measurement.exits.iter().any(|exit| !exit.killed || !victims.contains(&exit.pid)) {
            let reason = "it ended by itself; what is measured needs a child that ends when it is \
                          killed, such as `sleep 1000000`";
            return Err(Error::new(ErrorKind::InvalidInput, "hear the exits of", program, reason));
        }
        let lost = victims.len() - exited.len().min(victims.len());
        if lost > 0 {
            let subject = format!("{lost} of {} exits", victims.len());
            let reason = "lost, or later than 10 seconds";
            return Err(Error::new(ErrorKind::Limit, "hear", Some(OsStr::new(&subject)), reason));
        }
        Ok(CpuAndWall { cpu: measurement.cpu, wall: measurement.wall })
    }

    /// Chooses `count` live children at random, each at most once.
    fn choose(&mut self, count: usize) -> Vec<u32> {
        let count = count.min(self.live.len());
        for index in 0..count {
            let other = index + self.random.below(self.live.len() - index);
            self.live.swap(index, other);
        }
        self.live[..count].to_vec()
    }
}

impl Drop for ExitBench {
    fn drop(&mut self) {
        // Before the mechanism is dropped, which joins threads that wait for these children.
        sys::end_all(&self.live);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Instant;

    use minder::Child;

    use super::*;
    use crate::sys::exit::{ExitMeasurement, ObservedExit};

    /// Does not kill the first of the victims, as if its exit had been lost.
    #[derive(Debug)]
    struct SkipsFirstExit(Box<dyn ExitWatcher>);

    impl ExitWatcher for SkipsFirstExit {
        fn add(&mut self, child: Child) -> io::Result<()> {
            self.0.add(child)
        }

        fn next(&mut self, awaited: u32, deadline: Instant) -> io::Result<Option<ObservedExit>> {
            self.0.next(awaited, deadline)
        }

        fn measure(&mut self, victims: &[u32], mode: KillMode) -> io::Result<ExitMeasurement> {
            self.0.measure(&victims[1..], mode)
        }
    }

    fn bench_with_sleepers(mechanism: &str, count: usize) -> ExitBench {
        let mut sleep = Command::new("sleep");
        let mut bench = ExitBench::new(mechanism, sleep.arg("1000000")).expect("open mechanism");
        bench.fill(count).expect("start children");
        bench
    }

    #[test]
    fn lost_exit_is_reported_and_its_child_is_killed_on_drop() {
        let mut bench = bench_with_sleepers("floor", 3);
        let (_, open) = sys::BASELINES.first().expect("find `floor`");
        let floor = open().expect("open `floor` again");
        bench.mechanism = Mechanism::Baseline(Box::new(SkipsFirstExit(floor)));
        let error = bench.burst().expect_err("observe all exits");
        assert_eq!(error.to_string(), "failed to hear `1 of 3 exits`: lost, or later than 10 seconds");
        let left = bench.live.clone();
        assert_eq!(left.len(), 1);
        drop(bench);
        assert!(!std::path::Path::new(&format!("/proc/{}", left[0])).exists());
    }

    #[test]
    fn chosen_children_are_distinct_and_the_same_in_every_run() {
        let mut bench = bench_with_sleepers("floor", 0);
        bench.live = (1..=100).collect();
        let mut chosen = bench.choose(25);
        assert_ne!(chosen, (1..=25).collect::<Vec<_>>());
        let mut second = bench_with_sleepers("floor", 0);
        second.live = (1..=100).collect();
        assert_eq!(second.choose(25), chosen);
        chosen.sort_unstable();
        chosen.dedup();
        assert_eq!(chosen.len(), 25);
        // These pids are not children of this process: dropping must not kill them.
        bench.live.clear();
        second.live.clear();
    }
}
