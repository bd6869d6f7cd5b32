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
    Ok(numbers)
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
