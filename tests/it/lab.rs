//! `lab`: every mechanism tells of the right object, at the sizes where something changes, and leaves nothing.

use std::time::Duration;

use minder::ErrorKind;
use minder::lab::{Meter, Objects, Waiting, waits};

/// Of each size the first, the last and some in between.
fn some(count: usize) -> impl Iterator<Item = usize> {
    [0, count - 1].into_iter().chain((0..count).step_by(count.div_ceil(13))).chain([count / 2, count / 2])
}

#[test]
fn each_mechanism_tells_what_was_signalled() {
    for name in waits().filter(|name| crate::kit::has_backend(name)) {
        // A call of a pool takes 64; a set of select has 1024 bits, unless it is ours.
        for count in [1, 2, 63, 64, 65, 127, 1100] {
            let mut waiting = Waiting::open(name, Objects::open(count).expect("objects")).expect(name);
            for index in some(count) {
                waiting.cycle(index).unwrap_or_else(|error| panic!("{name}, {count}, {index}: {error}"));
            }
        }
    }
}

#[test]
fn backends_come_first_and_names_are_unique() {
    let names: Vec<&str> = waits().collect();
    let ours: Vec<&str> = minder::backends().collect();
    assert_eq!(names[..ours.len()], ours);
    for name in ["select", "bare-poll", "thread-each", "pool"] {
        assert_eq!(names.iter().filter(|it| **it == name).count(), 1, "{name}");
    }
}

#[test]
fn objects_rest_when_nobody_waits() {
    let objects = Objects::open(3).expect("objects");
    assert!(objects.len() == 3 && !objects.is_empty());
    for index in [0, 2, 2, 1] {
        objects.rest(index).expect("an object");
    }
    let mut waiting = Waiting::open("bare-poll", objects).expect("poll");
    waiting.cycle(1).expect("nothing was left from before");
}

#[test]
fn what_cannot_be_is_said() {
    let open = |name, count| Waiting::open(name, Objects::open(count).expect("objects"));
    let error = open("magic", 1).expect_err("no such mechanism");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`magic`"), "{error}");
}

#[test]
fn a_mechanism_ends_its_threads() {
    let before = threads();
    for name in ["thread-each", "pool"] {
        let waiting = Waiting::open(name, Objects::open(200).expect("objects")).expect(name);
        drop(waiting);
        // Never used, and used.
        let mut waiting = Waiting::open(name, Objects::open(200).expect("objects")).expect(name);
        waiting.cycle(100).expect(name);
        drop(waiting);
    }
    // Other tests have a few of their own at any time.
    assert!(threads() < before + 100, "{before} threads became {}", threads());
}

/// How many threads this process has, where the system tells.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[test]
fn the_meter_counts_what_is_done() {
    let meter = Meter::start();
    let mut spent = meter.spent();
    // A busy machine may give us little of it.
    while spent.cpu < Duration::from_millis(5) {
        spent = meter.spent();
    }
    assert!(spent.wall > Duration::ZERO, "{spent:?}");
    let later = meter.spent();
    assert!(later.cpu >= spent.cpu && later.wall >= spent.wall, "{spent:?} {later:?}");
}
