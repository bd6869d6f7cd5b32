//! Roots and symbols, many of them.

use minder_cells::{Heap, HeapConfig, Root, Value};

fn heap() -> Heap {
    Heap::new(HeapConfig::new()).expect("reserve a heap")
}

const MANY: usize = if cfg!(miri) { 40 } else { 1_000_000 };

fn float_root(heap: &mut Heap, number: f64) -> Root {
    heap.mutate(|cells| cells.float(number).and_then(|value| cells.root(value))).expect("the heap has room")
}

#[test]
fn a_released_root_stays_released_when_its_slot_is_used_again() {
    let mut heap = heap();
    let mut stale = Vec::new();
    for round in 0..if cfg!(miri) { 20 } else { 1_000 } {
        let root = float_root(&mut heap, f64::from(round));
        assert_eq!(heap.get(root).and_then(|view| view.as_f64()), Some(f64::from(round)));
        for old in &stale {
            assert!(heap.get(*old).is_none() && !heap.release(*old));
            let is_set = heap.mutate(|cells| cells.get(*old).is_some() || cells.set_root(*old, cells.nil()));
            assert!(!is_set, "{old:?} was released");
        }
        assert!(heap.release(root) && !heap.release(root));
        stale.push(root);
        stale.drain(..stale.len().saturating_sub(10));
        assert_eq!(heap.stats().roots, 0);
    }
}

#[test]
fn roots_are_independent_of_each_other() {
    let mut heap = heap();
    let [one, two] = heap.mutate(|cells| {
        let text = cells.string("both").expect("the heap has room");
        [cells.root(text), cells.root(text)].map(|root| root.expect("memory for a root"))
    });
    assert_ne!(one, two);
    assert!(heap.release(one));
    heap.collect().expect("collect");
    assert_eq!(heap.get(two).and_then(|view| view.as_str()), Some("both"));
    assert!(heap.mutate(|cells| cells.set_root(two, cells.nil())));
    heap.collect().expect("collect");
    assert!(heap.get(two).is_some_and(|view| view.is_nil()));
    assert_eq!((heap.stats().allocated_cells, heap.stats().roots), (0, 1));
}

#[test]
fn a_million_roots_keep_a_million_values() {
    let mut heap = heap();
    let roots: Vec<Root> = (0..MANY).map(|number| float_root(&mut heap, number as f64)).collect();
    heap.collect().expect("collect");
    assert_eq!((heap.stats().allocated_cells, heap.stats().roots), (MANY as u64, MANY));
    for (number, root) in roots.iter().enumerate() {
        assert_eq!(heap.get(*root).and_then(|view| view.as_f64()), Some(number as f64));
    }
    assert!(roots.iter().step_by(2).all(|root| heap.release(*root)));
    heap.collect().expect("collect");
    assert_eq!((heap.stats().allocated_cells, heap.stats().roots), (MANY as u64 / 2, MANY / 2));
    let again: Vec<Root> = (0..MANY / 2).map(|_| float_root(&mut heap, -1.0)).collect();
    assert!(roots.iter().step_by(2).all(|root| heap.get(*root).is_none()));
    assert!(again.iter().all(|root| heap.get(*root).is_some()));
}

#[test]
fn a_million_symbols_are_freed_and_made_again() {
    let mut heap = heap();
    let kept = heap
        .mutate(|cells| cells.symbol("name 5").and_then(|name| cells.root(name)))
        .expect("the heap has room");
    for _ in 0..2 {
        heap.mutate(|cells| {
            for number in 0..MANY {
                cells.symbol(&format!("name {number}")).expect("the heap has room");
            }
        });
        assert_eq!(heap.stats().symbols, MANY);
        heap.collect().expect("collect");
        assert_eq!((heap.stats().symbols, heap.stats().allocated_cells), (1, 1));
        let same = heap.mutate(|cells| {
            cells.symbol("name 5").expect("the heap has room") == cells.get(kept).expect("it is a root")
        });
        assert!(same, "a symbol exists once");
    }
    assert!(heap.release(kept));
    heap.collect().expect("collect");
    assert_eq!((heap.stats().symbols, heap.stats().allocated_cells), (0, 0));
}

#[test]
fn symbols_exist_once_and_strings_each_time() {
    let texts = [
        "",
        "a",
        "ab",
        "abcdefg",
        "abcdefgh",
        "abcdefghi",
        "abcdefgh\0",
        "abcdefgh\0\0",
        "\u{e9}\u{e9}\u{e9}\u{e9}",
    ];
    heap().mutate(|cells| {
        let mut symbols: Vec<Value<'_>> = Vec::new();
        for text in texts {
            let symbol = cells.symbol(text).expect("the heap has room");
            assert!(!symbols.contains(&symbol), "{text:?} is another symbol");
            symbols.push(symbol);
            let [one, two] =
                [cells.string(text), cells.string(text)].map(|text| text.expect("the heap has room"));
            assert_ne!(one, two);
        }
        for (text, symbol) in texts.iter().zip(symbols) {
            assert!(cells.symbol(text).expect("the heap has room") == symbol);
            assert_eq!(cells.view(symbol).as_str(), Some(*text));
        }
    });
}

#[test]
fn operations_of_another_kind_of_value_are_refused() {
    heap().mutate(|cells| {
        let [text, vector] =
            [cells.string("x"), cells.vector(&[])].map(|value| value.expect("the heap has room"));
        let pair = cells.cons(text, vector).expect("the heap has room");
        let shown = |result: minder_cells::Result<()>| result.expect_err("it is refused").to_string();
        assert_eq!(shown(cells.set_first(text, pair)), "expected a pair");
        assert_eq!(shown(cells.set_second(vector, pair)), "expected a pair");
        assert_eq!(shown(cells.pair(cells.nil()).map(drop)), "expected a pair");
        assert_eq!(shown(cells.set_element(pair, 0, text)), "expected a vector");
        assert_eq!(
            shown(cells.element(vector, 0).map(drop)),
            "expected an index below the number of elements"
        );
        assert_eq!(
            shown(cells.set_element(vector, usize::MAX, text)),
            "expected an index below the number of elements"
        );
        assert!(cells.view(text).elements().next().is_none() && cells.view(text).entries().next().is_none());
        assert!(cells.view(text).list().next().is_none() && cells.view(vector).get("x").is_none());
        assert!(cells.view(vector).index(0).is_none() && cells.view(pair).as_str().is_none());
    });
}

/// A collection looks at 32 words of a value at once.
#[test]
fn vectors_and_maps_of_every_size_keep_all_their_parts() {
    let mut heap = Heap::new(HeapConfig::new().verify(true)).expect("reserve a heap");
    for size in 0..if cfg!(miri) { 3 } else { 140 } {
        let [vector, map] = heap.mutate(|cells| {
            let numbers = (0..size).map(|number| cells.float(f64::from(number)).expect("the heap has room"));
            let numbers: Vec<Value<'_>> = numbers.collect();
            let entries: Vec<_> = numbers.iter().map(|number| (*number, *number)).collect();
            let values =
                [cells.vector(&numbers), cells.map(&entries)].map(|value| value.expect("it has room"));
            values.map(|value| cells.root(value).expect("memory for a root"))
        });
        for root in [vector, map] {
            heap.collect().expect("collect");
            assert!(heap.stats().found_values > size as u64, "{size} parts");
            assert!(heap.release(root));
        }
    }
}
