//! `lab`: every mechanism tells of the right object, at the sizes where something changes, and
//! leaves nothing.

use std::time::{Duration, Instant};

use minder::ErrorKind;
use minder::lab::{Meter, Objects, Waiting, is_wine, waits};

#[cfg(windows)]
use crate::support::threads;

/// The bare call of this system.
const BARE: &str = if cfg!(windows) { "bare-wfmo" } else { "bare-poll" };
/// Baselines that everybody knows here, and those of them that have threads.
const KNOWN: &[&str] = if cfg!(windows) {
    &["bare-wfmo", "scan", "threads-at-each-wait", "pool", "posting-pool"]
} else {
    &["select", "bare-poll", "thread-each", "pool"]
};
const THREADED: &[&str] =
    if cfg!(windows) { &["threads-at-each-wait", "pool", "posting-pool"] } else { &["thread-each", "pool"] };

/// How many objects a mechanism takes here, where something limits it.
fn most(name: &str) -> usize {
    if name == "bare-wfmo" { 64 } else { usize::MAX }
}

/// Of each size the first, the last and some in between.
fn some(count: usize) -> impl Iterator<Item = usize> {
    [0, count - 1].into_iter().chain((0..count).step_by(count.div_ceil(13))).chain([count / 2, count / 2])
}

#[test]
fn each_mechanism_tells_what_was_signalled() {
    for name in waits().filter(|name| crate::support::has_backend(name)) {
        // A call of a pool takes 64; a set of select has 1024 bits, unless it is ours.
        for count in [1, 2, 63, 64, 65, 127, 1100].into_iter().filter(|count| *count <= most(name)) {
            let mut waiting = Waiting::open(name, Objects::open(count).expect("objects")).expect(name);
            for index in some(count) {
                waiting.cycle(index).unwrap_or_else(|error| panic!("{name}, {count}, {index}: {error}"));
            }
        }
    }
}

#[test]
fn a_look_finds_what_was_signalled_and_does_not_wait() {
    for name in waits().filter(|name| crate::support::has_backend(name)) {
        // Without any object, in one call, and with threads if there are any.
        for count in [0, 3, 70].into_iter().filter(|count| *count <= most(name)) {
            if count == 0 && name == "bare-wfmo" {
                continue;
            }
            let mut waiting = Waiting::open(name, Objects::open(count).expect("objects")).expect(name);
            for _ in 0..3 {
                waiting.look().unwrap_or_else(|error| panic!("{name}, {count}: {error}"));
            }
            if count > 0 {
                waiting.cycle(count - 1).unwrap_or_else(|error| panic!("{name}, {count}: {error}"));
                waiting.look().unwrap_or_else(|error| panic!("{name}, {count}: {error}"));
            }
        }
    }
}

/// 66 threads: more than one call could wait for.
#[cfg(windows)]
#[test]
fn the_published_pool_takes_thousands() {
    let mut waiting = Waiting::open("pool", Objects::open(4096).expect("objects")).expect("66 threads");
    [0, 63, 64, 2048, 4095].iter().for_each(|index| waiting.cycle(*index).expect("an object"));
}

#[test]
fn wine_is_found_out() {
    assert!(cfg!(windows) || !is_wine());
}

#[test]
fn backends_come_first_and_names_are_unique() {
    let names: Vec<&str> = waits().collect();
    let ours: Vec<&str> = minder::backends().collect();
    assert_eq!(names[..ours.len()], ours);
    for name in KNOWN {
        assert_eq!(names.iter().filter(|it| *it == name).count(), 1, "{name}");
    }
}

#[test]
fn objects_rest_when_nobody_waits() {
    let objects = Objects::open(3).expect("objects");
    assert!(objects.len() == 3 && !objects.is_empty());
    for index in [0, 2, 2, 1] {
        objects.rest(index).expect("an object");
    }
    let mut waiting = Waiting::open(BARE, objects).expect(BARE);
    waiting.cycle(1).expect("nothing was left from before");
}

#[test]
fn what_cannot_be_is_said() {
    let open = |name, count| Waiting::open(name, Objects::open(count).expect("objects"));
    if most(BARE) < usize::MAX {
        for count in [0, 65] {
            let error = open(BARE, count).expect_err("a call takes 64");
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        }
    }
    let error = open("magic", 1).expect_err("no such mechanism");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`magic`"), "{error}");
}

#[test]
fn a_mechanism_ends_its_threads() {
    // On Windows a thread has 63 of them.
    let (before, count) = (threads(), if cfg!(windows) { 4096 } else { 200 });
    for name in THREADED.iter().copied() {
        let waiting = Waiting::open(name, Objects::open(count).expect("objects")).expect(name);
        drop(waiting);
        // Never used, and used.
        let mut waiting = Waiting::open(name, Objects::open(count).expect("objects")).expect(name);
        waiting.cycle(100).expect(name);
        drop(waiting);
        // Other tests have some of their own for a while.
        let until = Instant::now() + Duration::from_secs(10);
        while threads() >= before + 50 {
            assert!(Instant::now() < until, "{name}: {before} threads became {}", threads());
            std::thread::yield_now();
        }
    }
}

/// How many threads this process has, where the system tells.
#[cfg(unix)]
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
