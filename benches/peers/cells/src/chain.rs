//! A chain of cells: it is made, collected while it lives, thinned at random, dropped, and made again.

use crate::numbers::{Numbers, Spent, count, spent};
use anyhow::{Context, Result, bail};
use minder_cells::{Heap, HeapConfig, Root};
use std::time::Duration;

pub(crate) fn measure(contestant: &str, cells: usize) -> Result<Numbers> {
    let is_maintained = match contestant {
        "minder" => false,
        "minder-maintained" => true,
        other => bail!("unknown contestant `{other}` of chain"),
    };
    let mut heap = Heap::new(HeapConfig::new().limit_bytes(cells * 40 + (1 << 20)))?;
    let root = heap.mutate(|cells| cells.root(cells.nil()))?;
    let mut numbers = Numbers::new();
    let mut add = |name: &str, spent: Spent, cells: usize| {
        numbers.push((format!("{name}_ns"), spent.cpu * 1e9 / count(cells)));
        numbers.push((format!("{name}_ms"), spent.cpu * 1e3));
        numbers.push((format!("{name}_wall_ms"), spent.wall * 1e3));
    };
    let (time, made) = spent(|| grow(&mut heap, root, cells));
    made?;
    add("build", time, cells);
    heap.collect()?;
    add("live", collect(&mut heap, is_maintained)?, cells);
    let left = thin(&mut heap, root)?;
    add("half", collect(&mut heap, is_maintained)?, cells);
    // The sweep has left a bit for each cell that lives. Counting them checks it.
    let (time, counted) = spent(|| heap.stats().allocated_cells);
    anyhow::ensure!(counted == left as u64, "{counted} cells live in place of {left}");
    add("counted", time, cells);
    let bits = vec![0x5555_5555_5555_5555_u64; cells.div_ceil(64)];
    let (time, counted) = spent(|| count_ones(&bits));
    anyhow::ensure!(counted == 32 * bits.len() as u64, "{counted} ones");
    add("counted_baseline", time, cells);
    let (time, made) = spent(|| grow(&mut heap, root, cells - left));
    made?;
    add("refill_half", time, cells - left);
    // Before the chain is dropped: afterwards it would give memory back, which the next chain needs.
    if is_maintained {
        heap.maintain(Duration::MAX)?;
    }
    heap.mutate(|cells| cells.set_root(root, cells.nil()));
    let (time, collected) = spent(|| heap.collect());
    collected?;
    add("dead", time, cells);
    anyhow::ensure!(heap.stats().allocated_cells == 0, "the chain is not dead");
    let (time, made) = spent(|| grow(&mut heap, root, cells));
    made?;
    add("refill_dead", time, cells);
    scatter(&mut heap, root)?;
    heap.collect()?;
    add("scattered", collect(&mut heap, is_maintained)?, cells);
    Ok(numbers)
}

/// Counts as the heap does, with the instructions that every x86-64 processor has.
#[inline(never)]
fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Changes the order of the chain, so that no cell is followed by its neighbour in memory.
fn scatter(heap: &mut Heap, root: Root) -> Result<()> {
    heap.mutate(|cells| {
        let nil = cells.nil();
        let mut chain = nil;
        let mut cell = cells.get(root).context("the root")?;
        let mut held = [nil; 8];
        while cell != nil {
            let mut count = 0;
            while cell != nil && count < held.len() {
                held[count] = cell;
                count += 1;
                cell = cells.pair(cell)?.1;
            }
            // Every second cell first, so that each is two before or after the last.
            let even = held[..count].iter().step_by(2);
            for held in even.chain(held[..count].iter().skip(1).step_by(2)) {
                cells.set_second(*held, chain)?;
                chain = *held;
            }
        }
        cells.set_root(root, chain);
        Ok(())
    })
}

fn collect(heap: &mut Heap, is_maintained: bool) -> Result<Spent> {
    if is_maintained {
        heap.maintain(Duration::MAX)?;
    }
    let (time, collected) = spent(|| heap.collect());
    collected?;
    Ok(time)
}

/// Adds this many cells to the front of the chain.
fn grow(heap: &mut Heap, root: Root, count: usize) -> Result<()> {
    heap.mutate(|cells| {
        let mut chain = cells.get(root).context("the root")?;
        let first = cells.int(0)?;
        for _ in 0..count {
            chain = cells.cons(first, chain)?;
        }
        cells.set_root(root, chain);
        Ok(())
    })
}

/// Takes about half of the cells out of the chain. Returns how many are left.
fn thin(heap: &mut Heap, root: Root) -> Result<usize> {
    heap.mutate(|cells| {
        let mut random = 1_u64;
        let mut left = 1;
        let nil = cells.nil();
        // The first one stays.
        let mut last = cells.get(root).context("the root")?;
        let mut cell = cells.pair(last)?.1;
        while cell != nil {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if random >> 63 == 0 {
                left += 1;
                cells.set_second(last, cell)?;
                last = cell;
            }
            cell = cells.pair(cell)?.1;
        }
        cells.set_second(last, nil)?;
        Ok(left)
    })
}
