//! `minder bench wait`: one wait for one of many objects.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use minder::lab::{Meter, Objects, Waiting, waits};

use super::{BenchSession, BenchSpec, Case, Measurement, at_least, chosen, conduct, note, points};
use crate::flags::WaitFlags;
use crate::report::chart::Curve;

/// How long one measurement lasts, and how many waits it has at least, unless they take too long.
/// Where CPU time goes on in steps that can be seen, a measurement has so many of them.
const TIME: Duration = at_least(16, Duration::from_millis(30));
const WAITS_MIN: u64 = 50;
const TIME_MAX: Duration = Duration::from_secs(1);
/// How long the signal and the reset alone are measured, and how often: the least counts, so that
/// what else the machine does in these moments is not taken off.
const REST_TIME: Duration = at_least(8, Duration::from_millis(1));
const RESTS: usize = if REST_TIME.as_millis() > 1 { 2 } else { 8 };
/// Waits before anything is measured: threads find their processors, memory comes into caches.
const WARM: u64 = 5;
/// Descriptors that are not objects: standard streams, signals, the mechanism's own.
const OTHERS: u64 = 32;

/// Measures what the flags ask for, and shows it.
pub(super) fn run(flags: &WaitFlags) -> Result<ExitCode> {
    let subject = BenchSpec {
        operation: "wait",
        size: "objects",
        sizes: "objects",
        kinds: false,
        whose: "all threads",
        title: "Waiting for one of many objects",
        axis: "objects that are waited for",
        published: vec![published()],
        note: note(),
    };
    let mechanisms = chosen(&waits().collect::<Vec<_>>(), &flags.measure)?;
    let sizes = flags.objects.as_ref().map_or(Objects::SIZES, |sizes| &sizes.0);
    let points = points(sizes, &mechanisms);
    conduct(&subject, &flags.measure, BenchSession::enter()?, &points, measure)
}

/// Measures one point.
fn measure(point: &Case, desk: &mut BenchSession) -> Result<Measurement> {
    let (count, limit) = (usize::try_from(point.size)?, desk.descriptors());
    let needed = point.size * Objects::DESCRIPTORS as u64 + OTHERS;
    if needed > limit {
        bail!(
            "{needed} descriptors are needed, and this process may have {limit}; \
             cure: a higher hard limit, such as `ulimit -n {needed}` as root"
        );
    }
    let objects = Objects::open(count)?;
    if count == 0 {
        let mut waiting = Waiting::open(point.mechanism, objects)?;
        return repeat(TIME, || waiting.look());
    }
    let mut indices = Indices::new(point.size);
    let mut rest = MOST;
    for _ in 0..RESTS {
        rest = least(rest, repeat(REST_TIME, || objects.rest(indices.next()))?);
    }
    let mut waiting = Waiting::open(point.mechanism, objects)?;
    for _ in 0..WARM {
        waiting.cycle(indices.next())?;
    }
    let cycle = repeat(TIME, || waiting.cycle(indices.next()))?;
    Ok(Measurement {
        operations: cycle.operations,
        cpu_ns: (cycle.cpu_ns - rest.cpu_ns).max(0.0),
        wall_ns: (cycle.wall_ns - rest.wall_ns).max(0.0),
    })
}

/// What is measured when nothing was yet.
const MOST: Measurement = Measurement { operations: 0, cpu_ns: f64::INFINITY, wall_ns: f64::INFINITY };

fn least(one: Measurement, other: Measurement) -> Measurement {
    let (cpu_ns, wall_ns) = (one.cpu_ns.min(other.cpu_ns), one.wall_ns.min(other.wall_ns));
    Measurement { operations: one.operations + other.operations, cpu_ns, wall_ns }
}

/// Does something for so long, and often enough; returns what it took.
fn repeat(time: Duration, mut act: impl FnMut() -> minder::Result<()>) -> Result<Measurement> {
    let meter = Meter::start();
    let (mut count, mut batch) = (0, 1);
    loop {
        for _ in 0..batch {
            act()?;
        }
        count += batch;
        let spent = meter.spent();
        if spent.wall >= time && count >= WAITS_MIN || spent.wall >= TIME_MAX {
            return Ok(Measurement::of(count, spent));
        }
        // A look at the clocks costs as much as a short wait.
        if spent.wall < time / 16 {
            batch *= 2;
        }
    }
}

/// Places of objects in an order that no cache foresees, the same in every run.
struct Indices {
    state: u64,
    count: u64,
}

impl Indices {
    fn new(count: u64) -> Self {
        Self { state: 0x9e37_79b9_7f4a_7c15, count }
    }

    /// The next one: Marsaglia's xorshift.
    fn next(&mut self) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (((self.state >> 32) * self.count) >> 32) as usize
    }
}

/// What is known of a pool of threads elsewhere, for context.
fn published() -> Curve {
    // A straight line in sizes, which logarithmic axes bend.
    let line = |objects: f64| (objects, 10e3 + 120e3 * (objects - 64.0) / (2048.0 - 64.0));
    let pool = [64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0, 1024.0, 2048.0].map(line);
    let points = [(2.0, 1e3), (64.0, 1e3)].into_iter().chain(pool).collect();
    let label = "published: pool of waiter threads, Emacs on Windows, 6-core laptop";
    Curve { label: label.to_owned(), points, published: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_has_its_turn() {
        for count in [1, 2, 64, 1000] {
            let mut indices = Indices::new(count);
            let mut turns = vec![0; usize::try_from(count).expect("few")];
            (0..count * 100).for_each(|_| turns[indices.next()] += 1);
            assert!(turns.iter().all(|turns| (40..200).contains(turns)), "{count}: {turns:?}");
        }
    }

    #[test]
    fn measuring_lasts_long_enough() {
        let mut done = 0;
        let each = repeat(Duration::from_millis(2), || {
            done += 1;
            Ok(())
        })
        .expect("nothing fails");
        assert!(each.operations == done && each.operations >= WAITS_MIN, "{each:?}");
        assert!(each.wall_ns * each.operations as f64 >= 2e6, "{each:?}");
        let least = least(each, Measurement { operations: 1, cpu_ns: 0.0, wall_ns: f64::INFINITY });
        assert!(least.cpu_ns == 0.0 && (least.wall_ns - each.wall_ns).abs() < 0.1, "{least:?}");
    }
}
