//! Values of a million levels, in a thread with a small stack. Without optimisation it is a tenth of that.

use minder_cells::{Heap, HeapConfig, Mutator, RegionPool, Result, Step, Value, View};
use std::time::Duration;

const LEVELS: usize = match (cfg!(miri), cfg!(debug_assertions)) {
    (true, _) => 40,
    (_, true) => 100_000,
    _ => 1_000_000,
};

/// The least stack that the standard library starts a thread with, or more.
const STACK_BYTES: usize = if cfg!(miri) { 1 << 20 } else { 64 << 10 };

/// Runs a test in a thread with a small stack.
fn in_small_thread(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(test).expect("start a thread");
    thread.join().expect("the thread does not panic");
}

fn heap() -> Heap {
    Heap::new(HeapConfig::new()).expect("reserve a heap")
}

/// Panics unless the two texts, which are too long to be shown, are the same.
#[track_caller]
fn assert_text(text: &str, expected: &str) {
    assert!(text == expected, "{} bytes in place of {}", text.len(), expected.len());
}

/// Collects at once and in steps, and compares what was found with the number of values.
fn collect(heap: &mut Heap, values: usize) {
    heap.collect().expect("collect");
    assert_eq!(heap.stats().found_values, values as u64);
    while heap.step(Duration::ZERO).expect("a step") == Step::Unfinished {}
    assert_eq!(heap.stats().found_values, values as u64);
}

/// Reads a message in every way, and prints it in both languages.
fn check_message(message: String, lisp: String, values: usize) {
    in_small_thread(move || {
        let region = RegionPool::new().parse_json(message.as_bytes()).expect("it is JSON");
        assert_text(&region.view().to_json(), &message);
        assert_text(&region.view().to_lisp(), &lisp);
        let mut heap = heap();
        let [copied, parsed] = heap.mutate(|cells| {
            let copy = cells.copy(region.view()).expect("the heap has room");
            let parsed = cells.parse_json(message.as_bytes()).expect("it is JSON");
            [copy, parsed].map(|value| cells.root(value).expect("memory for a root"))
        });
        drop(region);
        collect(&mut heap, values);
        for root in [copied, parsed] {
            assert_text(&heap.get(root).expect("it is a root").to_json(), &message);
            assert!(heap.release(root));
        }
        collect(&mut heap, 0);
    });
}

#[test]
fn nested_arrays_need_no_stack() {
    let inner = LEVELS - 1;
    let text = format!("{}[]{}", "[".repeat(inner), "]".repeat(inner));
    check_message(text.clone(), text, 2 * LEVELS);
}

#[test]
fn nested_objects_need_no_stack() {
    let message = format!("{}7{}", "{\"a\":".repeat(LEVELS), "}".repeat(LEVELS));
    let lisp = format!("{}7{}", "((a . ".repeat(LEVELS), "))".repeat(LEVELS));
    // The copy and the message have the only symbol in common.
    check_message(message, lisp, 2 * LEVELS + 1);
}

#[test]
fn arrays_and_objects_in_turn_need_no_stack() {
    let levels = LEVELS / 2;
    let message = format!("{}null{}", "[1,{\"b\":".repeat(levels), "}]".repeat(levels));
    let lisp = format!("{}null{}", "[1 ((b . ".repeat(levels), "))]".repeat(levels));
    check_message(message, lisp, 4 * levels + 1);
}

#[test]
fn a_message_of_open_brackets_is_refused_at_its_end() {
    in_small_thread(|| {
        for (text, rest) in [("[", ""), ("{\"a\":", ""), ("[", "}")] {
            let message = text.repeat(LEVELS) + rest;
            let error = RegionPool::new().parse_json(message.as_bytes()).expect_err("it is not JSON");
            assert_eq!(error.offset(), text.len() * LEVELS);
        }
    });
}

/// Makes pairs in pairs, and checks what is printed, copied and collected.
fn check_pairs(
    make: impl for<'h> Fn(&mut Mutator<'_, 'h>, Value<'h>, i64) -> Result<Value<'h>> + Send + 'static,
    json: String,
    lisp: String,
) {
    in_small_thread(move || {
        let mut heap = heap();
        let root = heap.mutate(|cells| {
            let mut value = cells.nil();
            for _ in 0..LEVELS {
                value = make(cells, value, 5).expect("the heap has room");
            }
            cells.root(value).expect("memory for a root")
        });
        let text = |view: View<'_>| [view.to_json(), view.to_lisp()];
        let [ours, lisp_of_ours] = text(heap.get(root).expect("it is a root"));
        assert_text(&ours, &json);
        assert_text(&lisp_of_ours, &lisp);
        collect(&mut heap, LEVELS);
        assert_eq!(heap.stats().allocated_cells, LEVELS as u64);
        let mut other = self::heap();
        let view = heap.get(root).expect("it is a root");
        let copy = other.mutate(|cells| {
            let copy = cells.copy(view).expect("the heap has room");
            cells.root(copy).expect("memory for a root")
        });
        drop(heap);
        collect(&mut other, LEVELS);
        assert_text(&other.get(copy).expect("it is a root").to_lisp(), &lisp);
    });
}

#[test]
fn pairs_nested_by_first_need_no_stack() {
    let json = "[".repeat(LEVELS) + "[]" + &",5]".repeat(LEVELS);
    let lisp = "(".repeat(LEVELS) + "nil" + &" . 5)".repeat(LEVELS);
    check_pairs(
        |cells, value, number| {
            let number = cells.int(number)?;
            cells.cons(value, number)
        },
        json,
        lisp,
    );
}

#[test]
fn pairs_nested_by_second_need_no_stack() {
    let json = format!("[5{}]", ",5".repeat(LEVELS - 1));
    let lisp = format!("(5{})", " 5".repeat(LEVELS - 1));
    check_pairs(
        |cells, value, number| {
            let number = cells.int(number)?;
            cells.cons(number, value)
        },
        json,
        lisp,
    );
}
