//! What a request of one process does for others: the request, another process and a child.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use minder::clock::resolution;
use minder::{
    ChildId, ChildSet, ChildSetOptions, Command, ErrorKind, Event, SpawnOptions, Stdio, Termination,
};

use super::probe::{CHILD, DELAY, ProbeOptions, ProbeReport, READY, SELF};
use crate::{Error, Result};

/// The time between two looks at whether the measurement is cancelled.
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);
/// How much longer than asked for the probes may take.
const GRACE: Duration = Duration::from_secs(20);

/// What a process can set about its timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimerSetting {
    /// The timer slack. Linux.
    Slack,
    /// The period of the tick. Windows.
    Tick,
}

impl TimerSetting {
    /// Returns what can be set on this system.
    #[must_use]
    pub fn of_system() -> Option<Self> {
        let stated = resolution();
        match (stated.timer_slack, stated.tick) {
            (Some(_), _) => Some(Self::Slack),
            (_, Some(_)) => Some(Self::Tick),
            _ => None,
        }
    }
}

/// What three processes saw at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepReport {
    /// The process with the setting.
    pub setter: ProbeReport,
    /// A process that has set nothing.
    pub other: ProbeReport,
    /// A child of the first process, which has set nothing.
    pub child: ProbeReport,
}

/// Starts the processes of the experiment.
#[derive(Debug)]
pub struct SweepBench {
    setting: TimerSetting,
    probe: Command,
}

impl SweepBench {
    /// Makes a bench. `probe` is the command that calls [`ProbeOptions::run`]; the arguments of a probe
    /// are added to it.
    ///
    /// # Errors
    /// `Unsupported`: a process cannot set anything about its timers.
    pub fn new(probe: Command) -> Result<Self> {
        let Some(setting) = TimerSetting::of_system() else {
            let reason = "the timers of this system have no slack and no tick";
            return Err(Error::new(ErrorKind::Unsupported, "measure settings of timers", None, reason));
        };
        Ok(Self { setting, probe })
    }

    /// Lets a process hold this slack or tick, or nothing, for a time, and measures meanwhile what it, its
    /// child and another process see. Returns `None` if it was cancelled. No process is left then.
    ///
    /// The calling process sets nothing, so there is nothing to restore: a setting ends with the process
    /// that has made it.
    ///
    /// # Errors
    /// Those of starting a process; a probe failed, or did not end in time.
    pub fn measure(
        &self,
        value: Option<Duration>,
        hold: Duration,
        is_cancelled: &AtomicBool,
    ) -> Result<Option<SweepReport>> {
        let mut options = ProbeOptions { child: true, ..ProbeOptions::new(hold) };
        let mut setter = self.probe.clone();
        match (self.setting, value) {
            (TimerSetting::Slack, Some(slack)) => {
                setter.timer_slack(slack);
            }
            (TimerSetting::Tick, tick) => options.tick = tick,
            (TimerSetting::Slack, None) => (),
        }
        let mut set = ChildSet::new(ChildSetOptions::new())?;
        let result = self.watch(&mut set, setter, options, is_cancelled);
        // Dropping the set would leave what still runs.
        let killed = kill_all(&mut set);
        let report = result?;
        killed.map(|()| report)
    }

    /// Starts the processes and reads their reports.
    fn watch(
        &self,
        set: &mut ChildSet,
        setter: Command,
        options: ProbeOptions,
        is_cancelled: &AtomicBool,
    ) -> Result<Option<SweepReport>> {
        let hold = options.time;
        let mut texts =
            Texts { setter: start(set, setter, options)?, other: None, lines: [const { Vec::new() }; 2] };
        let deadline = Instant::now() + hold + GRACE;
        while !set.is_empty() {
            if is_cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let now = Instant::now();
            if now >= deadline {
                return Err(failed("it did not end in time"));
            }
            match set.next_event_deadline(Some(now + CANCEL_INTERVAL))?.into_event() {
                Some(Event::Output { child, chunk, .. }) => texts.add(child, &chunk),
                Some(Event::Done { outcome, .. }) if !outcome.exit.status.success() => {
                    return Err(failed(&format!("it ended with {}", outcome.exit.status)));
                }
                _ => (),
            }
            if texts.other.is_none() && texts.is_ready() {
                let options = ProbeOptions { delay: DELAY, ..ProbeOptions::new(hold) };
                texts.other = Some(start(set, self.probe.clone(), options)?);
            }
        }
        match (texts.report(0, SELF), texts.report(1, SELF), texts.report(0, CHILD)) {
            (Some(setter), Some(other), Some(child)) => Ok(Some(SweepReport { setter, other, child })),
            _ => Err(failed("its report is not complete")),
        }
    }
}

/// What the setter and the other process have written.
struct Texts {
    setter: ChildId,
    other: Option<ChildId>,
    lines: [Vec<u8>; 2],
}

impl Texts {
    fn add(&mut self, child: ChildId, bytes: &[u8]) {
        let index = usize::from(child != self.setter);
        self.lines[index].extend_from_slice(bytes);
    }

    /// Returns whether the setter has its setting.
    fn is_ready(&self) -> bool {
        self.lines[0].starts_with(READY.as_bytes())
    }

    fn report(&self, index: usize, name: &str) -> Option<ProbeReport> {
        let text = String::from_utf8_lossy(&self.lines[index]);
        let find = |line: &str| line.trim_end().strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        text.lines().find_map(find)
    }
}

fn start(set: &mut ChildSet, mut command: Command, options: ProbeOptions) -> Result<ChildId> {
    command.args(options.args()).stdin(Stdio::null()).stdout(Stdio::piped()).die_with_parent(true);
    Ok(set.spawn(&command, SpawnOptions::new())?)
}

/// Kills what still runs, and waits for its end.
fn kill_all(set: &mut ChildSet) -> Result<()> {
    if set.is_empty() {
        return Ok(());
    }
    set.kill_all(Termination::IMMEDIATE)?;
    let deadline = Instant::now() + GRACE;
    while !set.is_empty() {
        if set.next_event_deadline(Some(deadline))?.into_event().is_none() {
            return Err(failed("it cannot be killed"));
        }
    }
    Ok(())
}

fn failed(reason: &str) -> Error {
    Error::new(ErrorKind::Other, "measure sleeps in another process", None, reason)
}
