//! Jobs in another order than that of the input: the input is read completely into a replay buffer
//! first.

use std::collections::HashMap;

use anyhow::Result;

use crate::input::ArgumentReader;
use crate::input::JobArgs;
use crate::input::Record;
use crate::input::replay_buffer::ReplayBuffer;
use crate::input::replay_buffer::ReplayCursor;

/// The order of jobs.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Given,
    /// A random order, the same for the same seed.
    Random(u64),
    /// By how long the jobs are expected to take.
    Shortest(Durations),
    Longest(Durations),
}

/// The expected durations of jobs, in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations {
    /// By the fingerprint of the arguments.
    pub(crate) known: HashMap<u64, f32>,
    /// For all other jobs.
    pub(crate) other: f32,
}

impl Durations {
    fn of(&self, arguments: &Record) -> f32 {
        self.known.get(&fingerprint(arguments)).copied().unwrap_or(self.other)
    }
}

/// An input that was read to its end.
#[derive(Debug)]
pub(crate) struct Ordered {
    buffer: ReplayBuffer,
    /// The offset and number of each job, in reverse order. `None` for the order of the buffer.
    index: Option<Vec<(u64, u32)>>,
    cursor: ReplayCursor,
    taken: u64,
}

impl Ordered {
    /// Reads all of `reader`.
    ///
    /// # Errors
    /// The input cannot be read, or there is no space to keep it.
    pub(crate) fn read(reader: &mut ArgumentReader, order: &Order) -> Result<Self> {
        let mut buffer = ReplayBuffer::default();
        let mut places = Vec::new();
        let mut costs = Vec::new();
        while let Some(arguments) = reader.next_arguments()? {
            if !matches!(order, Order::Given) {
                places.push((buffer.end(), buffer.records() as u32 + 1));
            }
            if let Order::Shortest(durations) | Order::Longest(durations) = order {
                costs.push(durations.of(&arguments));
            }
            buffer.push(&arguments)?;
        }
        let index = match order {
            Order::Given => None,
            Order::Random(seed) => {
                shuffle(&mut places, *seed);
                Some(places)
            }
            Order::Shortest(_) => Some(sort_by_cost(places, &costs, false)),
            Order::Longest(_) => Some(sort_by_cost(places, &costs, true)),
        };
        Ok(Self { buffer, index, cursor: ReplayCursor::default(), taken: 0 })
    }

    /// Returns the number of jobs.
    pub(crate) fn total(&self) -> u64 {
        self.buffer.records()
    }

    /// Returns the next job: its number in the input, and its arguments.
    ///
    /// # Errors
    /// The kept input cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, JobArgs)>> {
        let Some(index) = &mut self.index else {
            self.taken += 1;
            return Ok(self.cursor.next(&self.buffer)?.map(|arguments| (self.taken, arguments)));
        };
        let Some((place, number)) = index.pop() else { return Ok(None) };
        let arguments = ReplayCursor::at(place).next(&self.buffer)?;
        Ok(arguments.map(|arguments| (u64::from(number), arguments)))
    }
}

/// Returns a checksum of a job's arguments.
pub(crate) fn fingerprint(arguments: &Record) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    match arguments {
        Record::Columns(columns) => {
            columns.iter().for_each(|column| column.as_encoded_bytes().hash(&mut hasher))
        }
        Record::Unfit(why) => why.hash(&mut hasher),
    }
    hasher.finish()
}

/// Sorts the jobs by cost, in reverse: the first jobs to run come last. Equal ones stay in the
/// order of the input.
fn sort_by_cost(mut places: Vec<(u64, u32)>, costs: &[f32], longest: bool) -> Vec<(u64, u32)> {
    let cost = |number: u32| costs[number as usize - 1];
    places.sort_by(|(_, one), (_, other)| {
        let order = cost(*one).total_cmp(&cost(*other));
        let order = if longest { order.reverse() } else { order };
        order.then(one.cmp(other)).reverse()
    });
    places
}

/// Shuffles (Fisher and Yates) with the generator SplitMix64 (Steele, Lea, Flood 2014).
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    for last in (1..items.len()).rev() {
        // The bias of the remainder is below 2^-40 for any input that fits into a machine.
        let other = next() % (last as u64 + 1);
        items.swap(last, other as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_orders_by_cost_and_keeps_equal_ones() {
        let places: Vec<(u64, u32)> = (1..=5).map(|number| (0, number)).collect();
        let costs = [5.0, 3.0, 1.0, 3.0, 1.0];
        let numbers = |longest| {
            let mut order: Vec<u32> =
                sort_by_cost(places.clone(), &costs, longest).into_iter().map(|(_, number)| number).collect();
            order.reverse();
            order
        };
        assert_eq!(numbers(false), [3, 5, 2, 4, 1]);
        assert_eq!(numbers(true), [1, 2, 4, 3, 5]);
    }

    #[test]
    fn shuffle_is_a_reproducible_permutation() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..1000).collect();
            shuffle(&mut items, seed);
            items
        };
        let once = shuffled(7);
        assert_eq!(once, shuffled(7));
        assert_ne!(once, shuffled(8));
        let mut back = once.clone();
        back.sort_unstable();
        assert!(once != back && back == (0..1000).collect::<Vec<_>>());
    }
}
