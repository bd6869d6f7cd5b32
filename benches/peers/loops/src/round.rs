//! Signals an object, waits, checks what is reported, and resets it: many times, measured.

use crate::candidates::Candidate;
use anyhow::{Result, bail, ensure};
use rustix::fd::OwnedFd;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The fewest and the most waits of a row.
const WAITS: std::ops::RangeInclusive<u32> = 32..=50_000;
/// Cycles before the measurement: they touch the memory, and tell how long a cycle takes.
const WARM_UP: u32 = 32;

/// Nanoseconds of one cycle.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// Of all threads of the process.
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
}

impl Cost {
    pub(crate) fn less(self, floor: Self) -> Self {
        Self { cpu: self.cpu - floor.cpu, wall: self.wall - floor.wall }
    }
}

/// Picks the next object: the same sequence for all candidates of a round, another one in the next.
#[derive(Clone, Copy)]
pub(crate) struct ObjectPicker(u64);

impl ObjectPicker {
    pub(crate) fn new(round: usize) -> Self {
        Self((round as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below `count`: xorshift64, whose high half is scaled.
    fn pick(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * count as u64) >> 32) as usize
    }
}

/// Returns how many waits were made and the cost of one cycle; without a candidate, the cost of a
/// cycle without a wait.
pub(crate) fn measure(
    objects: &[OwnedFd],
    mut candidate: Option<&mut dyn Candidate>,
    mut picker: ObjectPicker,
    budget: Duration,
) -> Result<(u32, Cost)> {
    // Some loops register in their first wait.
    run(objects, &mut candidate, &mut picker, 1)?;
    let started = Instant::now();
    run(objects, &mut candidate, &mut picker, WARM_UP)?;
    let each = (started.elapsed() / WARM_UP).max(Duration::from_nanos(1));
    let fits = u32::try_from(budget.as_nanos() / each.as_nanos()).unwrap_or(u32::MAX);
    let waits = fits.clamp(*WAITS.start(), *WAITS.end());
    let wall = Instant::now();
    let cpu = processor();
    run(objects, &mut candidate, &mut picker, waits)?;
    let cpu = processor() - cpu;
    let wall = wall.elapsed();
    let per_wait = |spent: Duration| spent.as_nanos() as f64 / f64::from(waits);
    Ok((waits, Cost { cpu: per_wait(cpu), wall: per_wait(wall) }))
}

fn run(
    objects: &[OwnedFd],
    candidate: &mut Option<&mut dyn Candidate>,
    picker: &mut ObjectPicker,
    cycles: u32,
) -> Result<()> {
    for _ in 0..cycles {
        let place = picker.pick(objects.len());
        rustix::io::write(&objects[place], &1u64.to_ne_bytes())?;
        if let Some(candidate) = candidate {
            let reported = candidate.wait()?;
            if reported != Some(place) {
                bail!("object {place} was signalled, and {reported:?} was reported");
            }
        }
        let mut counter = [0; 8];
        rustix::io::read(&objects[place], &mut counter)?;
        ensure!(u64::from_ne_bytes(counter) == 1, "object {place} was signalled by something else");
    }
    Ok(())
}

/// Returns the processor time of all threads of this process.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
