//! Limits of a heap, and what is usable at them.

use minder_cells::{Error, Heap, HeapConfig, LIMIT_BYTES_MAX, Result, Root};

const BLOCK_BYTES: usize = 64 << 10;
const BLOCK_CELLS: usize = BLOCK_BYTES / 16;

fn heap(blocks: usize) -> Heap {
    let config = HeapConfig::new().limit_bytes(blocks * BLOCK_BYTES).verify(true);
    Heap::new(config).expect("reserve a heap")
}

#[track_caller]
fn assert_full<T>(result: Result<T>, blocks: usize) {
    match result.map(|_| ()) {
        Err(Error::HeapFull { limit_bytes }) => assert_eq!(limit_bytes, blocks * BLOCK_BYTES),
        other => panic!("{other:?} in place of a full heap"),
    }
}

/// Makes values until the heap is full. Returns how many there were.
fn fill(heap: &mut Heap, blocks: usize, mut make: impl FnMut(&mut Heap) -> Result<()>) -> usize {
    for count in 0.. {
        if let Err(error) = make(heap) {
            assert_full::<()>(Err(error), blocks);
            return count;
        }
    }
    0
}

#[test]
fn pairs_fill_a_heap_to_the_last_cell_again_and_again() {
    let blocks = 70;
    let mut heap = heap(blocks);
    for _ in 0..3 {
        let pairs = fill(&mut heap, blocks, |heap| {
            heap.mutate(|cells| cells.cons(cells.nil(), cells.nil()).map(drop))
        });
        assert_eq!(pairs, blocks * BLOCK_CELLS);
        let stats = heap.stats();
        assert_eq!((stats.allocated_cells, stats.used_bytes), (pairs as u64, blocks * BLOCK_BYTES));
        // It is still full, and reads as before.
        assert_full(heap.mutate(|cells| cells.float(1.0).map(drop)), blocks);
        heap.collect().expect("collect");
        assert_eq!(heap.stats().allocated_cells, 0);
    }
}

#[test]
fn strings_of_every_size_fill_a_heap_as_far_as_they_fit() {
    let blocks = 6;
    let sizes = [2, 3, 64, 255, 256, 257, 1_000, 2_048, 2_049, 4_095, 4_096, 4_097, 8_192, 3 * 4_096];
    for cells_of_each in &sizes {
        let mut heap = heap(blocks);
        let text = "x".repeat(16 * cells_of_each - 8);
        for _ in 0..2 {
            let strings = fill(&mut heap, blocks, |heap| heap.mutate(|cells| cells.string(&text).map(drop)));
            // A string of up to a block is in one block; longer ones begin at a block.
            let expected = if *cells_of_each <= BLOCK_CELLS {
                blocks * (BLOCK_CELLS / cells_of_each)
            } else {
                blocks / cells_of_each.div_ceil(BLOCK_CELLS)
            };
            assert_eq!(strings, expected, "strings of {cells_of_each} cells");
            heap.collect().expect("collect");
            assert_eq!(heap.stats().allocated_cells, 0);
        }
    }
}

#[test]
fn what_a_full_heap_keeps_is_kept_and_released_cells_are_used_again() {
    let blocks = 3;
    let mut heap = heap(blocks);
    let mut roots: Vec<Root> = Vec::new();
    let made = fill(&mut heap, blocks, |heap| {
        let number = roots.len() as f64;
        let root = heap.mutate(|cells| cells.float(number).and_then(|number| cells.root(number)))?;
        roots.push(root);
        Ok(())
    });
    assert_eq!(made, blocks * BLOCK_CELLS);
    heap.collect().expect("collect");
    assert_full(heap.mutate(|cells| cells.float(0.5).map(drop)), blocks);
    // Every third cell is free: single ones fit, two in a row do not.
    for root in roots.iter().step_by(3) {
        assert!(heap.release(*root));
    }
    heap.collect().expect("collect");
    assert_full(heap.mutate(|cells| cells.string("more than one cell").map(drop)), blocks);
    heap.collect().expect("collect");
    let singles = fill(&mut heap, blocks, |heap| heap.mutate(|cells| cells.float(0.5).map(drop)));
    assert_eq!(singles, made.div_ceil(3));
    for (place, root) in roots.iter().enumerate().filter(|(place, _)| place % 3 > 0) {
        assert_eq!(heap.get(*root).and_then(|view| view.as_f64()), Some(place as f64));
    }
    // Two in a row are free: strings fit, except where one cell is at the end of the first block and the
    // other one in the second.
    for root in roots.iter().skip(1).step_by(3) {
        assert!(heap.release(*root));
    }
    heap.collect().expect("collect");
    let strings =
        fill(&mut heap, blocks, |heap| heap.mutate(|cells| cells.string("two cells of bytes").map(drop)));
    assert_eq!(strings, made / 3 - 1);
}

#[test]
fn a_message_that_does_not_fit_leaves_the_heap_usable() {
    let blocks = 2;
    let mut heap = heap(blocks);
    let kept = heap
        .mutate(|cells| cells.string("kept").and_then(|text| cells.root(text)))
        .expect("the heap has room");
    let message = format!("[{}1.5]", "{\"key\": [1.5, \"text\"]},".repeat(10_000));
    for _ in 0..3 {
        let error =
            heap.mutate(|cells| cells.parse_json(message.as_bytes()).map(drop)).expect_err("it does not fit");
        assert_eq!(error.kind(), minder_cells::JsonErrorKind::Memory);
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(
            source.as_deref(),
            Some("the heap is full: its limit is 131072 bytes (collect, or raise the limit)")
        );
        heap.collect().expect("collect");
        assert_eq!((heap.stats().allocated_cells, heap.stats().symbols), (1, 0));
        let small = heap
            .mutate(|cells| cells.parse_json(br#"{"key": [1.5]}"#).map(|value| cells.view(value).to_json()));
        assert_eq!(small.expect("the heap has room"), r#"{"key":[1.5]}"#);
        assert_eq!(heap.get(kept).and_then(|view| view.as_str()), Some("kept"));
    }
}

#[test]
fn a_heap_that_is_full_while_it_collects_is_usable_after_it() {
    let blocks = 4;
    let mut heap = heap(blocks);
    let list = heap.mutate(|cells| {
        let mut list = cells.nil();
        for number in 0..5_000 {
            let number = cells.int(number)?;
            list = cells.cons(number, list)?;
        }
        cells.root(list)
    });
    let list = list.expect("the heap has room");
    assert_eq!(heap.step(std::time::Duration::ZERO).expect("a step"), minder_cells::Step::Unfinished);
    let pairs =
        fill(&mut heap, blocks, |heap| heap.mutate(|cells| cells.cons(cells.nil(), cells.nil()).map(drop)));
    // What was left of the second block is free after the collection.
    assert_eq!(pairs, 2 * BLOCK_CELLS);
    while heap.step(std::time::Duration::ZERO).expect("a step") == minder_cells::Step::Unfinished {}
    assert_eq!(heap.get(list).expect("it is a root").list().count(), 5_000);
    heap.collect().expect("collect");
    assert_eq!(heap.stats().allocated_cells, 5_000);
    let pairs =
        fill(&mut heap, blocks, |heap| heap.mutate(|cells| cells.cons(cells.nil(), cells.nil()).map(drop)));
    assert_eq!(pairs, blocks * BLOCK_CELLS - 5_000);
}

/// The address space of the largest heap is reserved, and no memory is used.
#[test]
fn the_largest_heap_can_be_made_and_used() {
    let mut heap = Heap::new(HeapConfig::new().limit_bytes(usize::MAX)).expect("reserve 64 GiB");
    assert_eq!(LIMIT_BYTES_MAX as u64, if usize::BITS == 64 { 64 << 30 } else { 1 << 31 });
    let root = heap
        .mutate(|cells| cells.string("text").and_then(|text| cells.root(text)))
        .expect("the heap has room");
    heap.collect().expect("collect");
    assert_eq!(heap.get(root).and_then(|view| view.as_str()), Some("text"));
    assert!(heap.stats().used_bytes <= BLOCK_BYTES);
}

#[test]
fn a_limit_of_no_bytes_is_one_block() {
    let mut heap = Heap::new(HeapConfig::new().limit_bytes(0)).expect("reserve a heap");
    let pairs =
        fill(&mut heap, 1, |heap| heap.mutate(|cells| cells.cons(cells.nil(), cells.nil()).map(drop)));
    assert_eq!(pairs, BLOCK_CELLS);
}

#[test]
fn memory_of_empty_blocks_is_given_back_and_used_again() {
    let blocks = 200;
    let mut heap = heap(blocks);
    for _ in 0..3 {
        let text = "x".repeat(BLOCK_BYTES - 8);
        let strings = fill(&mut heap, blocks, |heap| heap.mutate(|cells| cells.string(&text).map(drop)));
        assert_eq!((strings, heap.stats().resident_bytes), (blocks, blocks * BLOCK_BYTES));
        heap.collect().expect("collect");
        assert_eq!(heap.stats().resident_bytes, blocks * BLOCK_BYTES);
        // As many blocks as were used between the last two collections are kept.
        assert!(!heap.maintain(std::time::Duration::MAX).expect("maintain"));
        assert_eq!(heap.stats().resident_bytes, blocks * BLOCK_BYTES);
        heap.collect().expect("collect");
        assert!(!heap.maintain(std::time::Duration::MAX).expect("maintain"));
        assert_eq!(heap.stats().resident_bytes, 0);
    }
}

/// Such a list is followed from one block to the next by neighbours alone.
#[test]
fn a_list_with_gaps_keeps_all_its_blocks() {
    let blocks = 24;
    let mut heap = heap(blocks);
    let list = heap.mutate(|cells| {
        let mut list = cells.nil();
        for number in 0..1_900 {
            let number = cells.int(number)?;
            list = cells.cons(number, list)?;
            for _ in 0..45 {
                cells.float(0.5)?;
            }
        }
        cells.root(list)
    });
    let list = list.expect("the heap has room");
    heap.collect().expect("collect");
    let floats = fill(&mut heap, blocks, |heap| heap.mutate(|cells| cells.float(1.5).map(drop)));
    assert_eq!(floats, blocks * BLOCK_CELLS - 1_900);
    let numbers = heap.get(list).expect("it is a root").list().map(|number| number.as_i64());
    assert!(numbers.eq((0..1_900).rev().map(Some)), "the list is as it was");
}
