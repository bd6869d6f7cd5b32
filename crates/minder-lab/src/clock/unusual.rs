//! Decides what about the clocks and timers of a machine is unusual, and what it means.

use std::time::Duration;

use minder::clock::{Clock, SleepMethod};
use minder_bench::SleepStats;

use super::clock_facts::ClockFacts;
use super::output::{asked, short};
use minder_ui::count;

/// The timer slack that the first process of Linux has, and others inherit (prctl(2)).
const SLACK_DEFAULT: Duration = Duration::from_micros(50);
/// The longest time that reading a clock takes, unless it is a system call.
const READ_MAX_NANOS: f64 = 250.0;
/// A unit of a clock above this is that of a kernel without high-resolution timers.
const UNIT_MAX: Duration = Duration::from_micros(1);
/// Sleeps are later than their slack by less, unless the machine is busy or they end at a tick.
const LATE_MAX: Duration = Duration::from_micros(500);
/// The fastest tick of most machines with Windows.
const FASTEST_TICK: Duration = Duration::from_micros(500);

/// Returns a sentence for each thing that is unusual. `sleep` are sleeps of one millisecond by the sleep
/// of the standard library.
pub(super) fn remarks(facts: &ClockFacts, sleep: Option<SleepStats>) -> Vec<String> {
    let mut remarks = Vec::new();
    if facts.is_wine {
        remarks.push(
            "This is Wine: its timers have no tick, and these times are not those of Windows.".to_owned(),
        );
    }
    remarks.extend(slack(facts));
    remarks.extend(clocks(facts));
    remarks.extend(tick(facts));
    if facts.lacks_precise_timer {
        let method = SleepMethod::most_exact();
        remarks.push(format!(
            "The most exact timer, {method}, cannot be made: no descriptor is free, or a sandbox refuses \
             it. `minder::clock::Sleeper` then sleeps as `std::thread::sleep` does."
        ));
    }
    let processors = facts.processors;
    let load = facts.load.unwrap_or(0.0);
    if load > processors as f64 {
        remarks.push(format!(
            "The machine is busy, with a load of {load:.1} on {}: sleeps also wait for a processor.",
            count(processors as u64, "processor")
        ));
    } else if let Some(stats) = sleep
        && stats.p50 > LATE_MAX + facts.stated.timer_slack.unwrap_or_default()
        && facts.stated.tick.is_none()
    {
        remarks.push(format!(
            "Half of the sleeps end more than {} late: the processor has to leave a deep idle state, the \
             virtual machine waits for a processor, or the timers of the kernel have a low resolution.",
            short(stats.p50)
        ));
    }
    remarks
}

fn slack(facts: &ClockFacts) -> Option<String> {
    let slack = facts.stated.timer_slack?;
    if slack == SLACK_DEFAULT {
        return None;
    }
    let default = asked(SLACK_DEFAULT);
    Some(match slack {
        Duration::ZERO => {
            "This process has no timer slack, as with a real-time scheduling policy: its sleeps are more \
             exact than those of others."
                .to_owned()
        }
        slack if slack > SLACK_DEFAULT => format!(
            "The timer slack is {}, not {default}: sleeps and time-outs of this process and its children end \
             so much later. It was inherited. `minder run --timer-slack 50us` sets it for jobs.",
            asked(slack)
        ),
        slack => format!(
            "The timer slack is {}, not {default}: timers of this process and its children are more exact, \
             and wake the processor more often. It was inherited.",
            asked(slack)
        ),
    })
}

fn clocks(facts: &ClockFacts) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some((_, cost)) = facts.clocks.iter().find(|(clock, _)| *clock == Clock::Monotonic)
        && cost.read_nanos > READ_MAX_NANOS
        && !facts.is_wine
    {
        let source =
            facts.source.as_ref().map(|name| format!(" (clock source `{name}`)")).unwrap_or_default();
        remarks.push(format!(
            "Reading the clock takes {:.0} ns, so it is a system call or an access to a slow \
             device{source}: programs that read it often are slow.",
            cost.read_nanos
        ));
    }
    // Only Linux has slack; elsewhere the unit says nothing about timers.
    if let (Some(unit), Some(_)) = (facts.stated.monotonic, facts.stated.timer_slack)
        && unit > UNIT_MAX
    {
        remarks.push(format!(
            "The unit of the clock is {}, so high-resolution timers are off (`highres=off`, or an old \
             kernel): every sleep ends at a tick.",
            short(unit)
        ));
    }
    remarks
}

fn tick(facts: &ClockFacts) -> Vec<String> {
    let mut remarks = Vec::new();
    let Some(tick) = facts.stated.tick else { return remarks };
    if tick.current < tick.longest && !facts.is_wine {
        remarks.push(format!(
            "Some program has requested a faster tick: it is {}, not {}. Before Windows 10, version 2004, \
             that holds for all programs, since then for those that have requested it. `powercfg /energy`, \
             run as administrator, names them.",
            short(tick.current),
            short(tick.longest)
        ));
    }
    match &facts.fastest_tick {
        Some(Err(error)) => remarks.push(format!("The fastest tick cannot be requested: {error}.")),
        _ if tick.shortest > FASTEST_TICK => remarks.push(format!(
            "The fastest tick of this machine is {}, not {}.",
            short(tick.shortest),
            short(FASTEST_TICK)
        )),
        _ => (),
    }
    remarks
}

#[cfg(test)]
mod tests {
    use minder::clock::resolution;

    use super::*;

    /// Returns the facts of a machine without anything unusual.
    fn usual() -> ClockFacts {
        let mut stated = resolution();
        stated.monotonic = Some(Duration::from_nanos(1));
        stated.timer_slack = Some(SLACK_DEFAULT);
        stated.tick = None;
        ClockFacts {
            stated,
            clocks: Vec::new(),
            source: Some("tsc".into()),
            processors: 2,
            load: Some(1.5),
            lacks_precise_timer: false,
            fastest_tick: None,
            is_wine: false,
        }
    }

    fn one(facts: &ClockFacts) -> String {
        let remarks = remarks(facts, None);
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        remarks[0].clone()
    }

    #[test]
    fn usual_machine_has_no_remark() {
        assert_eq!(remarks(&usual(), None), [""; 0]);
    }

    #[test]
    fn each_unusual_fact_has_a_remark() {
        let mut facts = usual();
        facts.stated.timer_slack = Some(Duration::from_millis(7));
        assert!(one(&facts).starts_with("The timer slack is 7 ms, not 50 µs"));
        facts.stated.timer_slack = Some(Duration::from_nanos(1));
        assert!(one(&facts).contains("more exact"));
        facts.stated.timer_slack = Some(Duration::ZERO);
        assert!(one(&facts).contains("real-time"));

        let mut facts = usual();
        facts.stated.monotonic = Some(Duration::from_millis(4));
        assert!(one(&facts).contains("high-resolution timers are off"));

        let facts = ClockFacts { load: Some(2.5), ..usual() };
        assert!(one(&facts).contains("a load of 2.5 on 2 processors"));

        let facts = ClockFacts { lacks_precise_timer: true, ..usual() };
        assert!(one(&facts).contains(SleepMethod::most_exact().name()));

        let facts = ClockFacts { is_wine: true, ..usual() };
        assert!(one(&facts).contains("Wine"));
    }
}
