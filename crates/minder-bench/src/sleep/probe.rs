//! A process that measures sleeps of one millisecond, and reports them as a line of text.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use minder::clock::{Clock, SleepMethod, TimerResolution, measure_clock, measure_sleep, resolution};
use minder::{Command, Stdio};

use super::lateness::Lateness;
use crate::{Error, Result};

/// The time that the step of the coarse clock is measured for: several of its changes.
const STEP_TIME: Duration = Duration::from_millis(60);
/// The distance in time of the probes of one measurement.
pub(super) const DELAY: Duration = Duration::from_millis(100);
/// The sleeps between two looks at the time.
const BATCH: usize = 10;
/// The sleeps that are measured.
pub const PROBE_SLEEP: Duration = Duration::from_millis(1);
/// The first word of the report of a probe.
pub(super) const SELF: &str = "self";
/// The first word of the report of a probe that a probe has started.
pub(super) const CHILD: &str = "child";
/// The line that is written when the request has been made.
pub(super) const READY: &str = "ready";

/// What a probe does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbeOptions {
    /// How long it sleeps before it measures. The probes of one measurement read their coarse clocks one
    /// after another: reading a clock uses a whole processor.
    pub delay: Duration,
    /// How long it measures.
    pub time: Duration,
    /// The period of the tick that it requests meanwhile. Windows.
    pub tick: Option<Duration>,
    /// Whether it starts another probe, which requests nothing.
    pub child: bool,
    /// Whether it is that one.
    pub is_child: bool,
}

/// What a probe has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbeReport {
    /// What the system states: the timer slack, or the period of the tick.
    pub stated: Option<Duration>,
    /// The step of the coarse clock.
    pub step: Option<Duration>,
    /// The number of sleeps.
    pub sleeps: usize,
    /// The mean time of a sleep by the coarse clock, if there is one.
    pub mean_coarse: Option<Duration>,
    /// The mean time of a sleep by the monotonic clock.
    pub mean: Duration,
    /// The median time of a sleep by the monotonic clock.
    pub median: Duration,
}

impl ProbeOptions {
    /// Measures for this time, and does nothing else.
    #[must_use]
    pub fn new(time: Duration) -> Self {
        Self { delay: Duration::ZERO, time, tick: None, child: false, is_child: false }
    }

    /// Does what the options ask for, and writes the report. `itself` is the command of this program;
    /// the arguments of a probe are added to it.
    ///
    /// # Errors
    /// Those of requesting the tick, of measuring, of starting the other probe and of writing.
    pub fn run(&self, itself: &Command, out: &mut dyn Write) -> Result<()> {
        let _request = self.tick.map(TimerResolution::request).transpose()?;
        if !write_line(out, READY)? {
            return Ok(());
        }
        let mut child = None;
        if self.child {
            let options = Self { delay: 2 * DELAY, is_child: true, ..Self::new(self.time) };
            let mut command = itself.clone();
            command.args(options.args()).stdin(Stdio::null()).stdout(Stdio::inherit()).die_with_parent(true);
            child = Some(command.spawn()?);
        }
        minder_os::time::pause(self.delay, None);
        let report = ProbeReport::measure(self.time.saturating_sub(self.delay))?;
        let name = if self.is_child { CHILD } else { SELF };
        let is_read = write_line(out, &format!("{name} {report}"))?;
        if let Some(mut child) = child
            && is_read
        {
            child.wait()?;
        }
        Ok(())
    }

    /// Returns the arguments that [`parse`](Self::parse) reads.
    #[must_use]
    pub fn args(&self) -> Vec<String> {
        let nanos = |time: Duration| time.as_nanos().to_string();
        vec![
            nanos(self.delay),
            nanos(self.time),
            self.tick.map_or("-".into(), nanos),
            self.child.to_string(),
            self.is_child.to_string(),
        ]
    }

    /// Reads the arguments of a probe.
    ///
    /// ```
    /// use minder_bench::ProbeOptions;
    /// use std::time::Duration;
    ///
    /// let options = ProbeOptions::new(Duration::from_millis(5));
    /// assert_eq!(ProbeOptions::parse(&options.args()), Some(options));
    /// assert_eq!(ProbeOptions::parse(&["5".to_owned()]), None);
    /// ```
    #[must_use]
    pub fn parse(args: &[String]) -> Option<Self> {
        let [delay, time, tick, child, is_child] = args else { return None };
        let nanos = |text: &str| text.parse().ok().map(Duration::from_nanos);
        let tick = if tick == "-" { None } else { Some(nanos(tick)?) };
        let [child, is_child] = [child.parse().ok()?, is_child.parse().ok()?];
        Some(Self { delay: nanos(delay)?, time: nanos(time)?, tick, child, is_child })
    }
}

impl ProbeReport {
    /// Measures for about this time, and at least one batch of sleeps.
    fn measure(time: Duration) -> Result<Self> {
        let end = Instant::now() + time;
        let states = resolution();
        let step =
            measure_clock(Clock::MonotonicCoarse, STEP_TIME.min(time / 4)).ok().and_then(|cost| cost.step);
        // On Windows the sleep of the standard library does not depend on the tick, and `Sleep` does.
        let method = SleepMethod::available().find(|method| *method == SleepMethod::Sleep);
        let method = method.unwrap_or(SleepMethod::ThreadSleep);
        let never = AtomicBool::new(false);
        let mut lateness = Lateness::default();
        let begin_coarse = Clock::MonotonicCoarse.read().ok();
        let mut sleeps = 0;
        while sleeps == 0 || Instant::now() < end {
            lateness.extend(measure_sleep(method, PROBE_SLEEP, BATCH, &never)?);
            sleeps += BATCH;
        }
        let end_coarse = Clock::MonotonicCoarse.read().ok();
        let elapsed = end_coarse.zip(begin_coarse).map(|(end, begin)| end.saturating_sub(begin));
        let stats = lateness
            .stats()
            .ok_or_else(|| Error::new(minder::ErrorKind::Other, "measure sleeps", None, "there was none"))?;
        Ok(Self {
            stated: states.timer_slack.or(states.tick.map(|tick| tick.current)),
            step,
            sleeps,
            mean_coarse: elapsed.map(|elapsed| elapsed / u32::try_from(sleeps).unwrap_or(u32::MAX)),
            mean: stats.mean_slept,
            median: PROBE_SLEEP + stats.p50,
        })
    }
}

/// Writes a line at once, because a probe and its child write to the same pipe. Returns whether there is a
/// reader: if the measurement was cancelled, there is none, and the probe is killed soon.
fn write_line(out: &mut dyn Write, line: &str) -> Result<bool> {
    match out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::from_io("write the report", None, &error)),
    }
}

impl fmt::Display for ProbeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for time in [self.stated, self.step, self.mean_coarse, Some(self.mean), Some(self.median)] {
            match time {
                Some(time) => write!(f, "{} ", time.as_nanos())?,
                None => write!(f, "- ")?,
            }
        }
        write!(f, "{}", self.sleeps)
    }
}

impl FromStr for ProbeReport {
    type Err = ();

    /// Reads what `Display` writes.
    fn from_str(line: &str) -> std::result::Result<Self, ()> {
        let words: Vec<&str> = line.split(' ').collect();
        let [stated, step, coarse, mean, median, sleeps] = words[..] else { return Err(()) };
        let time = |word: &str| word.parse().map(Duration::from_nanos).map_err(|_| ());
        let some = |word: &str| if word == "-" { Ok(None) } else { time(word).map(Some) };
        Ok(Self {
            stated: some(stated)?,
            step: some(step)?,
            mean_coarse: some(coarse)?,
            mean: time(mean)?,
            median: time(median)?,
            sleeps: sleeps.parse().map_err(|_| ())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_survives_its_text() {
        let report = ProbeReport::measure(Duration::from_millis(20)).expect("measure some sleeps");
        assert!(report.mean >= Duration::from_micros(900) && report.sleeps >= BATCH, "{report:?}");
        assert_eq!(report.to_string().parse(), Ok(report));
        let none = ProbeReport { stated: None, step: None, mean_coarse: None, ..report };
        assert_eq!(none.to_string().parse(), Ok(none));
        for line in ["", "1 2 3", "- - - - - -", "1 2 3 4 5 x"] {
            assert_eq!(line.parse::<ProbeReport>(), Err(()), "{line}");
        }
    }
}
