//! Signal one, wait, see that it is the one, reset it: many times, by the clocks.

use crate::contestants::Contestant;
use anyhow::{Result, bail, ensure};
use rustix::fd::OwnedFd;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The fewest waits that make a row, however dear each is, and the most.
const WAITS: std::ops::RangeInclusive<u32> = 32..=50_000;
/// Turns before the clocks are read: memory is touched, and a turn's price is known.
const WARM_UP: u32 = 32;

/// Nanoseconds of one turn.
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

/// Which object is next: the same sequence for everybody in a round, another one in the next.
#[derive(Clone, Copy)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(round: usize) -> Self {
        Self((round as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below `sides`: xorshift64, whose high half is scaled.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * sides as u64) >> 32) as usize
    }
}

/// How many waits were made, and what one turn cost; without a contestant, what a turn costs
/// without a wait.
pub(crate) fn measure(
    objects: &[OwnedFd],
    mut contestant: Option<&mut dyn Contestant>,
    mut dice: Dice,
    budget: Duration,
) -> Result<(u32, Cost)> {
    // Whoever registers lazily does it in the first wait.
    run(objects, &mut contestant, &mut dice, 1)?;
    let started = Instant::now();
    run(objects, &mut contestant, &mut dice, WARM_UP)?;
    let each = (started.elapsed() / WARM_UP).max(Duration::from_nanos(1));
    let fits = u32::try_from(budget.as_nanos() / each.as_nanos()).unwrap_or(u32::MAX);
    let waits = fits.clamp(*WAITS.start(), *WAITS.end());
    let (wall, cpu) = (Instant::now(), processor());
    run(objects, &mut contestant, &mut dice, waits)?;
    let (cpu, wall) = (processor() - cpu, wall.elapsed());
    let per_wait = |spent: Duration| spent.as_nanos() as f64 / f64::from(waits);
    Ok((waits, Cost { cpu: per_wait(cpu), wall: per_wait(wall) }))
}

fn run(
    objects: &[OwnedFd],
    contestant: &mut Option<&mut dyn Contestant>,
    dice: &mut Dice,
    turns: u32,
) -> Result<()> {
    for _ in 0..turns {
        let place = dice.roll(objects.len());
        rustix::io::write(&objects[place], &1u64.to_ne_bytes())?;
        if let Some(contestant) = contestant {
            let told = contestant.wait()?;
            if told != Some(place) {
                bail!("object {place} was signalled, and {told:?} was told");
            }
        }
        let mut counter = [0; 8];
        rustix::io::read(&objects[place], &mut counter)?;
        ensure!(u64::from_ne_bytes(counter) == 1, "object {place} was signalled by somebody else");
    }
    Ok(())
}

/// Processor time of all threads of this process.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
