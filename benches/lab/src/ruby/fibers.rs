//! Fibers that sleep, timers without fibers, and wake-ups from another thread.

use super::Ruby;
use super::contestant::Contestant;
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Sample, Samples};
use anyhow::Result;

/// Close to the most fibers that Ruby 3.1 can have: each has two mappings, see `vm.max_map_count`.
const SLEEPERS: usize = 30_000;
const TIMERS: usize = 1_000_000;
const PUSHES: usize = 2_000;

/// Returns a table with a line for each contestant and a column for each number.
fn table(
    samples: &Samples,
    all: &[Contestant],
    size: usize,
    columns: &[(&str, (&str, f64, usize))],
) -> String {
    samples.table("contestant", (all, Contestant::title), size, columns)
}

pub(super) fn sleepers(bench: &Bench, ruby: &Ruby) -> Result<Answer> {
    // The goals are for this number, and a sample takes seconds.
    let count = SLEEPERS;
    let [parked, hook, reference] = ["parked", "hook", "reference"].map(Contestant::new);
    let ours = ruby.best();
    let all = [parked, hook.clone(), reference.clone(), ours.clone()];
    let samples = ruby.rounds(bench, &all, &[count], |(who, count)| {
        ruby.sample("sleepers.rb", &[who.name.clone(), count.to_string(), "1".into()])
    })?;
    let cpu = samples.spread((&ours, count), "cpu_s");
    let more = |one: &Sample, other: &Sample| Some(one.number("bytes_each")? - other.number("bytes_each")?);
    let beyond = |who| samples.paired((who, count), (&hook, count), more);
    let over = |other| samples.ratio((&ours, count), (other, count), "cpu_s");
    let goals = [
        Goal::of("start and end of all, CPU", " s", cpu, Aim::AtMost(0.6)),
        Goal::of("memory of a sleeper beyond its fiber", " bytes", beyond(&ours), Aim::AtMost(200.0)),
        Goal::of("the same of the reference scheduler", " bytes", beyond(&reference), Aim::None),
        Goal::ratio("CPU over the reference", over(&reference), Aim::None),
        Goal::ratio("CPU over parked fibers", over(&hook), Aim::None),
    ];
    let columns = [
        ("start CPU s", ("start_cpu_s", 1.0, 3)),
        ("end CPU s", ("end_cpu_s", 1.0, 3)),
        ("CPU us a fiber", ("cpu_us", 1.0, 1)),
        ("wall s", ("wall_s", 1.0, 2)),
        ("bytes a fiber", ("bytes_each", 1.0, 0)),
    ];
    let remarks = vec![format!(
        "{count} fibers, each of which sleeps 1 s. Bytes: resident memory of the process, that before the \
         start subtracted. The fiber alone is one that a hook in Ruby parks by `Fiber.yield`, in a scheduler \
         that keeps it in an array and knows no time. A parked fiber ends when it is resumed."
    )];
    let table = table(&samples, &all, count, &columns);
    Ok(Answer::with_goals(&samples, &goals, &table, remarks))
}

pub(super) fn timers(bench: &Bench, ruby: &Ruby) -> Result<Answer> {
    let count = bench.scaled(TIMERS);
    let ours = ruby.best();
    let all = [ours.clone()];
    let samples = ruby.rounds(bench, &all, &[count], |(who, count)| {
        ruby.sample("timers.rb", &[who.name.clone(), count.to_string()])
    })?;
    let goals = ["start", "fire", "cancel"].map(|what| {
        let figure = samples.spread((&ours, count), format!("{what}_ns").as_str());
        Goal::of(format!("{what} a timer, CPU"), " ns", figure, Aim::None)
    });
    let columns = [
        ("start ns", ("start_ns", 1.0, 0)),
        ("fire ns", ("fire_ns", 1.0, 0)),
        ("cancel ns", ("cancel_ns", 1.0, 0)),
        ("bytes a timer", ("bytes_each", 1.0, 0)),
    ];
    let remarks = vec![format!(
        "{count} timers of `Minder::Scheduler#after` at pseudo-random times, 1,000,000 in a second, with one \
         block; all fire, and of as many others every second one is cancelled. The program counts the calls. \
         The numbers contain the calls from Ruby, and the bytes the object that is returned."
    )];
    let table = table(&samples, &all, count, &columns);
    Ok(Answer::with_goals(&samples, &goals, &table, remarks))
}

pub(super) fn wakeup(bench: &Bench, ruby: &Ruby) -> Result<Answer> {
    let count = bench.scaled(PUSHES);
    let ours = ruby.best();
    let all = [vec![Contestant::new("threads"), Contestant::new("reference")], ruby.ours()].concat();
    let samples = ruby.rounds(bench, &all, &[count], |(who, count)| {
        ruby.sample("wakeup.rb", &[who.name.clone(), count.to_string()])
    })?;
    let spread = |name| samples.spread((&ours, count), name);
    let ratio = |other: &Contestant| samples.ratio((&ours, count), (other, count), "p50_us");
    let goals = [
        Goal::of("from the push to the fiber, p50", " us", spread("p50_us"), Aim::AtMost(300.0)),
        Goal::of("from the push to the fiber, p99", " us", spread("p99_us"), Aim::None),
        Goal::ratio("p50 over a thread that waits", ratio(&all[0]), Aim::None),
        Goal::ratio("p50 over the reference", ratio(&all[1]), Aim::None),
    ];
    let columns = [
        ("p50 us", ("p50_us", 1.0, 0)),
        ("p99 us", ("p99_us", 1.0, 0)),
        ("max us", ("max_us", 1.0, 0)),
        ("CPU us a push", ("cpu_us", 1.0, 1)),
    ];
    let remarks = vec![format!(
        "{count} pushes to a `Thread::Queue` with pauses of 1 ms; the time from before the push to the \
         return of `pop`. threads: a thread waits in place of the fiber."
    )];
    let table = table(&samples, &all, count, &columns);
    Ok(Answer::with_goals(&samples, &goals, &table, remarks))
}
