//! Chains whose pairs are neighbours in memory, and what ends such an order.

use minder_cells::{Heap, HeapConfig, Mutator, Result, Value};

/// Some words of a bitmap.
const PAIRS: usize = if cfg!(miri) { 150 } else { 400 };
const STEP: usize = if cfg!(miri) { 31 } else { 1 };

/// Makes a chain in a heap, each second word of which is the neighbour above or below. Returns its pairs
/// from the first one on.
fn chain<'h>(cells: &mut Mutator<'_, 'h>, is_upwards: bool) -> Result<Vec<Value<'h>>> {
    let mut pairs = Vec::new();
    for number in 0..PAIRS {
        let number = cells.int(number as i64)?;
        pairs.push(cells.cons(number, cells.nil())?);
    }
    if !is_upwards {
        pairs.reverse();
    }
    for two in pairs.windows(2) {
        cells.set_second(two[0], two[1])?;
    }
    Ok(pairs)
}

/// Changes a chain at every place, and compares what is found with the number of values.
#[track_caller]
fn check(change: impl for<'h> Fn(&mut Mutator<'_, 'h>, &[Value<'h>], usize) -> Result<usize>) {
    for is_upwards in [false, true] {
        for at in (0..PAIRS - 1).step_by(STEP) {
            let mut heap = Heap::new(HeapConfig::new().limit_bytes(1 << 20).verify(true)).expect("a heap");
            let changed: Result<usize> = heap.mutate(|cells| {
                let pairs = chain(cells, is_upwards)?;
                let values = change(cells, &pairs, at)?;
                cells.root(pairs[0])?;
                Ok(values)
            });
            let values = changed.expect("the heap has room");
            for _ in 0..2 {
                heap.collect().expect("collect");
                assert_eq!(heap.stats().found_values, values as u64, "upwards: {is_upwards}, at {at}");
            }
        }
    }
}

#[test]
fn chain_in_order_is_found_and_nothing_else() {
    check(|_, _, _| Ok(PAIRS));
}

#[test]
fn first_word_in_cells_is_found() {
    check(|cells, pairs, at| {
        let text = cells.string("text")?;
        cells.set_first(pairs[at], text)?;
        Ok(PAIRS + 1)
    });
}

#[test]
fn pair_that_is_left_out_is_free() {
    check(|cells, pairs, at| {
        let after = pairs.get(at + 2).copied().unwrap_or(cells.nil());
        cells.set_second(pairs[at], after)?;
        Ok(PAIRS - 1)
    });
}

#[test]
fn chain_that_ends_is_not_followed_further() {
    check(|cells, pairs, at| {
        cells.set_second(pairs[at], cells.nil())?;
        Ok(at + 1)
    });
}

#[test]
fn chain_that_leads_back_ends() {
    check(|cells, pairs, at| {
        cells.set_second(pairs[PAIRS - 1], pairs[at])?;
        Ok(PAIRS)
    });
}

#[test]
fn part_that_another_root_has_is_found_once() {
    check(|cells, pairs, at| {
        cells.root(pairs[at])?;
        Ok(PAIRS)
    });
}
