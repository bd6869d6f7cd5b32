//! Changes between the steps of a collection lose nothing, and a step takes no longer than it has to.

use std::time::Duration;

use minder_cells::{Heap, HeapConfig, Mutator, Result, Root, Step, Value};

use crate::random::Random;

fn heap() -> Heap {
    Heap::new(HeapConfig::new().verify(true)).expect("reserve a heap")
}

fn root_of(heap: &mut Heap, make: impl for<'h> FnOnce(&mut Mutator<'_, 'h>) -> Result<Value<'h>>) -> Root {
    heap.mutate(|cells| make(cells).and_then(|value| cells.root(value))).expect("the heap has room")
}

/// Makes a vector of vectors of pairs, which takes a collection many steps.
fn wide<'h>(cells: &mut Mutator<'_, 'h>, width: usize) -> Result<Value<'h>> {
    let rows = (0..width).map(|row| {
        let pairs = (0..width).map(|column| {
            let number = cells.int((row * width + column) as i64)?;
            let boxed = cells.cons(number, cells.nil())?;
            cells.cons(boxed, cells.nil())
        });
        let pairs = pairs.collect::<Result<Vec<_>>>()?;
        cells.vector(&pairs)
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    cells.vector(&rows)
}

const WIDTH: usize = 150;

/// Takes the first value out of random pairs and hides it elsewhere, between the steps.
fn hide_between_steps(
    seed: u64,
    mut hide: impl for<'h> FnMut(&mut Mutator<'_, 'h>, Value<'h>, usize) -> Result<()>,
) -> Heap {
    let mut heap = heap();
    let all = root_of(&mut heap, |cells| wide(cells, WIDTH));
    let mut random = Random::of(seed);
    let mut steps = 0;
    let mut hidden = 0;
    while heap.step(Duration::ZERO).expect("a step") == Step::Unfinished {
        steps += 1;
        heap.mutate(|cells| {
            let all = cells.get(all).expect("it is a root");
            for _ in 0..WIDTH / 5 {
                let row = cells.element(all, random.below(WIDTH))?;
                let pair = cells.element(row, random.below(WIDTH))?;
                let (boxed, _) = cells.pair(pair)?;
                if boxed != cells.nil() {
                    hide(cells, boxed, hidden)?;
                    hidden += 1;
                    let nil = cells.nil();
                    cells.set_first(pair, nil)?;
                }
            }
            Ok::<(), minder_cells::Error>(())
        })
        .expect("the heap has room");
    }
    assert!(steps >= 3 && hidden > WIDTH / 5, "{steps} steps, {hidden} values");
    // What is left and what was hidden is everything.
    heap.collect().expect("collect");
    let pairs = 2 * WIDTH * WIDTH;
    assert!(heap.stats().allocated_cells as usize >= pairs, "{:?}, {pairs} pairs", heap.stats());
    heap
}

/// Returns the numbers in boxes in a list, in order.
fn numbers(heap: &Heap, list: Root) -> Vec<i64> {
    let boxes = heap.get(list).expect("it is a root").list();
    boxes.map(|boxed| boxed.list().next().and_then(|number| number.as_i64()).expect("it is a box")).collect()
}

#[test]
fn a_value_that_moves_into_a_visited_value_is_kept() {
    let mut heap = heap();
    // The first root is visited first: it is black when the others are still white.
    let black = root_of(&mut heap, |cells| cells.cons(cells.nil(), cells.nil()));
    let all = root_of(&mut heap, |cells| wide(cells, WIDTH));
    let mut moved = 0;
    let mut random = Random::of(5);
    while heap.step(Duration::ZERO).expect("a step") == Step::Unfinished {
        let done = heap.mutate(|cells| {
            let [black, all] = [black, all].map(|root| cells.get(root).expect("it is a root"));
            let row = cells.element(all, random.below(WIDTH))?;
            let pair = cells.element(row, random.below(WIDTH))?;
            let (boxed, _) = cells.pair(pair)?;
            let nil = cells.nil();
            if boxed != nil {
                // The box is in the pair alone, then in a list that begins at the black pair alone.
                let (list, _) = cells.pair(black)?;
                cells.set_first(pair, nil)?;
                let list = cells.cons(boxed, list)?;
                cells.set_first(black, list)?;
                moved += 1;
            }
            Ok::<(), minder_cells::Error>(())
        });
        done.expect("the heap has room");
    }
    assert!(moved >= 3, "{moved} values moved");
    let list = heap.mutate(|cells| {
        let (list, _) = cells.get(black).and_then(|black| cells.pair(black).ok()).expect("it is a pair");
        cells.root(list).expect("memory for a root")
    });
    let found = numbers(&heap, list);
    assert_eq!(found.len(), moved);
    assert!(found.iter().all(|number| (0..(WIDTH * WIDTH) as i64).contains(number)));
    // After a whole collection exactly these are left.
    heap.collect().expect("collect");
    assert_eq!(numbers(&heap, list), found);
    let expected = (WIDTH + 1) * vector_cells(WIDTH) + 2 * WIDTH * WIDTH + 1 + moved;
    assert_eq!(heap.stats().allocated_cells as usize, expected);
}

fn vector_cells(elements: usize) -> usize {
    (elements + 1).div_ceil(2)
}

#[test]
fn a_value_that_moves_into_a_new_root_is_kept() {
    let mut roots = Vec::new();
    let heap = hide_between_steps(1, |cells, boxed, _| {
        roots.push(cells.root(boxed)?);
        Ok(())
    });
    for root in roots {
        assert!(
            heap.get(root)
                .expect("it is a root")
                .list()
                .next()
                .is_some_and(|number| number.as_i64().is_some())
        );
    }
}

#[test]
fn a_value_that_moves_into_new_values_is_kept() {
    let mut roots = Vec::new();
    let heap = hide_between_steps(2, |cells, boxed, number| {
        let key = cells.symbol(&format!("key {}", number % 7))?;
        let hidden = match number % 3 {
            0 => cells.vector(&[key, boxed])?,
            1 => cells.map(&[(key, boxed)])?,
            _ => cells.cons(key, boxed)?,
        };
        roots.push(cells.root(hidden)?);
        Ok(())
    });
    for (number, root) in roots.iter().enumerate() {
        let text = heap.get(*root).expect("it is a root").to_json();
        assert!(text.contains(&format!("key {}", number % 7)), "{text}");
    }
}

#[test]
fn a_symbol_that_only_the_table_has_is_kept_when_it_is_asked_for_during_a_collection() {
    let mut heap = heap();
    let all = root_of(&mut heap, |cells| wide(cells, WIDTH));
    heap.mutate(|cells| cells.parse_json(br#"{"alone": 1, "second": 2}"#).map(drop))
        .expect("the heap has room");
    assert_eq!(heap.step(Duration::ZERO).expect("a step"), Step::Unfinished);
    // Both by the table and by the prediction of the next key.
    let parsed = heap.mutate(|cells| {
        let parsed = cells.parse_json(br#"{"alone": 3, "second": 4}"#).expect("it is JSON");
        cells.root(parsed).expect("memory for a root")
    });
    while heap.step(Duration::ZERO).expect("a step") == Step::Unfinished {}
    // What was free is used again, and would overwrite the symbols.
    root_of(&mut heap, |cells| wide(cells, WIDTH));
    assert_eq!(heap.get(parsed).expect("it is a root").to_json(), r#"{"alone":3,"second":4}"#);
    assert!(heap.release(all));
    heap.collect().expect("collect");
    assert_eq!(heap.stats().symbols, 2);
}

#[test]
fn what_is_made_and_dropped_during_a_collection_is_freed_by_the_next_one() {
    let mut heap = heap();
    let all = root_of(&mut heap, |cells| wide(cells, WIDTH));
    heap.collect().expect("collect");
    let cells_before = heap.stats().allocated_cells;
    assert_eq!(heap.step(Duration::ZERO).expect("a step"), Step::Unfinished);
    for size in [1, 8, 9, 100, 5_000, 70_000, 1 << 20] {
        let text = "x".repeat(size);
        heap.mutate(|cells| cells.string(&text).map(drop)).expect("the heap has room");
        let _ = heap.step(Duration::ZERO).expect("a step");
    }
    while heap.step(Duration::ZERO).expect("a step") == Step::Unfinished {}
    heap.collect().expect("collect");
    assert_eq!(heap.stats().allocated_cells, cells_before);
    assert!(heap.get(all).is_some());
}

#[test]
fn maintenance_waits_for_the_end_of_a_collection_in_progress() {
    let mut heap = heap();
    root_of(&mut heap, |cells| wide(cells, WIDTH));
    let text = "x".repeat(1 << 20);
    heap.mutate(|cells| cells.string(&text).map(drop)).expect("the heap has room");
    assert_eq!(heap.step(Duration::ZERO).expect("a step"), Step::Unfinished);
    let resident = heap.stats().resident_bytes;
    assert!(!heap.maintain(Duration::MAX).expect("maintain"));
    assert_eq!(heap.stats().resident_bytes, resident);
    while heap.step(Duration::ZERO).expect("a step") == Step::Unfinished {}
    // What was used since the collection before may soon be needed again.
    heap.collect().expect("collect");
    assert!(!heap.maintain(Duration::MAX).expect("maintain"));
    assert!(heap.stats().resident_bytes <= resident - (1 << 20));
}

/// The steps of one collection of this value.
fn steps(make: impl for<'h> FnOnce(&mut Mutator<'_, 'h>) -> Result<Value<'h>>) -> usize {
    let mut heap = Heap::new(HeapConfig::new()).expect("reserve a heap");
    root_of(&mut heap, make);
    let mut steps = 1;
    while heap.step(Duration::ZERO).expect("a step") == Step::Unfinished {
        steps += 1;
    }
    steps
}

const LONG: usize = 200_000;

#[test]
fn a_long_list_takes_many_steps() {
    let list = steps(|cells| {
        let mut list = cells.nil();
        for number in 0..LONG {
            let number = cells.int(number as i64)?;
            list = cells.cons(number, list)?;
        }
        Ok(list)
    });
    assert!(list > LONG / 10_000, "{list} steps");
}

#[test]
fn a_long_vector_takes_many_steps_whatever_is_in_it() {
    let flat = steps(|cells| {
        let one = cells.int(1)?;
        cells.vector(&vec![one; 8 * LONG])
    });
    assert!(flat > LONG / 50_000, "{flat} steps for integers");
    let same = steps(|cells| {
        let text = cells.string("the same")?;
        cells.vector(&vec![text; LONG])
    });
    assert!(same > LONG / 10_000, "{same} steps for one string");
}

#[test]
fn collection_ends_though_much_is_made_and_dropped_between_its_steps() {
    let mut heap = Heap::new(HeapConfig::new().limit_bytes(64 << 20)).expect("reserve a heap");
    let kept = root_of(&mut heap, |cells| wide(cells, 40));
    let mut steps = 0;
    while heap.step(Duration::ZERO).expect("a step") == Step::Unfinished {
        steps += 1;
        assert!(steps < 50, "the collection does not end");
        let made: Result<()> = heap.mutate(|cells| {
            let mut chain = cells.nil();
            for number in 0..3_000 {
                let number = cells.int(number)?;
                chain = cells.cons(number, chain)?;
            }
            Ok(())
        });
        made.expect("the heap has room");
    }
    assert!(heap.get(kept).is_some());
}

#[test]
fn value_that_is_stored_again_and_again_does_not_keep_a_collection_from_its_end() {
    let mut heap = heap();
    let all = root_of(&mut heap, |cells| wide(cells, WIDTH));
    let pair = root_of(&mut heap, |cells| cells.cons(cells.nil(), cells.nil()));
    assert_eq!(heap.step(Duration::ZERO).expect("a step"), Step::Unfinished);
    let stored: Result<()> = heap.mutate(|cells| {
        let [all, pair] = [all, pair].map(|root| cells.get(root).expect("it is a root"));
        for number in 0..100_000 {
            let row = cells.element(all, number % WIDTH)?;
            let moved = cells.element(row, number / WIDTH % WIDTH)?;
            cells.set_first(pair, moved)?;
        }
        Ok(())
    });
    stored.expect("the heap has room");
    let mut steps = 0;
    while heap.step(Duration::ZERO).expect("a step") == Step::Unfinished {
        steps += 1;
        assert!(steps < 100, "the collection does not end");
    }
}
