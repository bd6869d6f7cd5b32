//! What this system states about its clocks and timers, and what reading a clock costs.

use std::time::Duration;

use minder::clock::{
    Clock, ClockCost, Resolution, SleepMethod, Sleeper, TimerResolution, measure_clock, resolution,
};
use minder_os::host_stats;

/// How long each clock is read. A coarse clock changes several times meanwhile.
const READ_TIME: Duration = Duration::from_millis(60);
/// What a reading costs is the least of several short measurements: on a busy machine another program
/// uses the processor during some of them.
const COST_TIME: Duration = Duration::from_millis(1);
const COST_COUNT: usize = 10;
/// Where Linux names the device that its clocks come from. Other systems have no such file.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// What is known about the clocks and timers of this machine.
#[derive(Debug)]
pub(super) struct ClockFacts {
    pub(super) stated: Resolution,
    pub(super) clocks: Vec<(Clock, ClockCost)>,
    /// The device that the clocks come from. Linux.
    pub(super) source: Option<String>,
    pub(super) processors: usize,
    /// The load average. Unix.
    pub(super) load: Option<f64>,
    /// Whether the most exact timer of the system could not be made.
    pub(super) lacks_precise_timer: bool,
    /// What a request for the fastest tick gets. Windows.
    pub(super) fastest_tick: Option<Result<Duration, String>>,
    pub(super) is_wine: bool,
}

impl ClockFacts {
    /// Asks the system, and reads its clocks for a fifth of a second.
    pub(super) fn collect() -> Self {
        let stated = resolution();
        let clocks = Clock::ALL.into_iter().filter_map(|clock| Some((clock, measure(clock)?)));
        let source = std::fs::read_to_string(CLOCK_SOURCE).ok();
        Self {
            stated,
            clocks: clocks.collect(),
            source: source.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()),
            processors: host_stats::processors(),
            load: host_stats::load().ok(),
            lacks_precise_timer: Sleeper::precise().method() != SleepMethod::most_exact(),
            fastest_tick: stated.tick.map(|_| fastest_tick()),
            is_wine: minder_bench::is_wine(),
        }
    }

    /// Returns what the system states about a clock.
    pub(super) fn unit(&self, clock: Clock) -> Option<Duration> {
        match clock {
            Clock::Monotonic => self.stated.monotonic,
            Clock::MonotonicCoarse => self.stated.monotonic_coarse,
            Clock::Realtime => self.stated.realtime,
            _ => None,
        }
    }
}

/// Returns the step of a clock and the cost of reading it; `None` if this system has no such clock.
fn measure(clock: Clock) -> Option<ClockCost> {
    let mut cost = measure_clock(clock, READ_TIME).ok()?;
    for _ in 0..COST_COUNT {
        let again = measure_clock(clock, COST_TIME).ok()?;
        cost.read_nanos = cost.read_nanos.min(again.read_nanos);
    }
    Some(cost)
}

/// Requests the fastest tick, and returns what the system then states. The request ends here.
fn fastest_tick() -> Result<Duration, String> {
    let request = TimerResolution::request(Duration::ZERO).map_err(|error| error.to_string())?;
    Ok(resolution().tick.map_or(request.period(), |tick| tick.current))
}
