//! The crate `minder-bench`: each mechanism for waiting reports the right object at the sizes where
//! its cost changes, and leaves no thread.

use std::time::{Duration, Instant};

use minder::ErrorKind;
use minder_bench::{Stopwatch, WaitBench, WaitObjects, is_wine, waits};

#[cfg(windows)]
use crate::support::threads;

/// The system call without a library.
const BARE: &str = if cfg!(windows) { "bare-wfmo" } else { "bare-poll" };
/// Baselines of this operating system, and those of them that have threads.
const BASELINES: &[&str] = if cfg!(windows) {
    &["bare-wfmo", "scan", "threads-at-each-wait", "pool", "posting-pool"]
} else {
    &["select", "bare-poll", "thread-each", "pool"]
};
const THREADED: &[&str] =
    if cfg!(windows) { &["threads-at-each-wait", "pool", "posting-pool"] } else { &["thread-each", "pool"] };

/// Returns the most objects that a mechanism takes.
fn objects_max(name: &str) -> usize {
    if name == "bare-wfmo" { 64 } else { usize::MAX }
}

/// Returns the first index, the last one and some in between.
fn sample_indices(count: usize) -> impl Iterator<Item = usize> {
    [0, count - 1].into_iter().chain((0..count).step_by(count.div_ceil(13))).chain([count / 2, count / 2])
}

#[test]
fn each_mechanism_reports_the_signalled_object() {
    for name in waits().filter(|name| crate::support::has_backend(name)) {
        // One call takes 64 objects; an `fd_set` has 1024 bits.
        for count in [1, 2, 63, 64, 65, 127, 1100].into_iter().filter(|count| *count <= objects_max(name)) {
            let mut bench =
                WaitBench::open(name, WaitObjects::open(count).expect("make objects")).expect(name);
            for index in sample_indices(count) {
                bench.cycle(index).unwrap_or_else(|error| panic!("{name}, {count}, {index}: {error}"));
            }
        }
    }
}

#[test]
fn poll_without_a_signalled_object_does_not_wait() {
    for name in waits().filter(|name| crate::support::has_backend(name)) {
        // No object, one call, and several threads.
        for count in [0, 3, 70].into_iter().filter(|count| *count <= objects_max(name)) {
            if count == 0 && name == "bare-wfmo" {
                continue;
            }
            let mut bench =
                WaitBench::open(name, WaitObjects::open(count).expect("make objects")).expect(name);
            for _ in 0..3 {
                bench.poll().unwrap_or_else(|error| panic!("{name}, {count}: {error}"));
            }
            if count > 0 {
                bench.cycle(count - 1).unwrap_or_else(|error| panic!("{name}, {count}: {error}"));
                bench.poll().unwrap_or_else(|error| panic!("{name}, {count}: {error}"));
            }
        }
    }
}

/// Starts 66 threads, more than one call can wait for.
#[cfg(windows)]
#[test]
fn pool_takes_thousands_of_objects() {
    let mut bench =
        WaitBench::open("pool", WaitObjects::open(4096).expect("make objects")).expect("start 66 threads");
    for index in [0, 63, 64, 2048, 4095] {
        bench.cycle(index).expect("wait for object");
    }
}

#[test]
fn wine_is_reported_on_windows_only() {
    assert!(cfg!(windows) || !is_wine());
}

#[test]
fn backends_come_first_and_names_are_unique() {
    let names: Vec<&str> = waits().collect();
    let ours: Vec<&str> = minder::Backend::available().map(minder::Backend::name).collect();
    assert_eq!(names[..ours.len()], ours);
    for name in BASELINES {
        assert_eq!(names.iter().filter(|it| *it == name).count(), 1, "{name}");
    }
}

#[test]
fn objects_are_reset_after_signal_without_waiter() {
    let objects = WaitObjects::open(3).expect("make objects");
    assert!(objects.len() == 3 && !objects.is_empty());
    for index in [0, 2, 2, 1] {
        objects.signal_and_reset(index).expect("signal object");
    }
    let mut bench = WaitBench::open(BARE, objects).expect(BARE);
    bench.cycle(1).expect("wait for object 1 only");
}

#[test]
fn unsupported_sizes_and_names_are_refused() {
    let open = |name, count| WaitBench::open(name, WaitObjects::open(count).expect("make objects"));
    if objects_max(BARE) < usize::MAX {
        for count in [0, 65] {
            let error = open(BARE, count).expect_err("open for 0 or 65 objects");
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        }
    }
    let error = open("magic", 1).expect_err("open unknown mechanism");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`magic`"), "{error}");
}

#[test]
fn dropped_mechanism_leaves_no_thread() {
    let before = threads();
    // On Windows each thread has 63 objects.
    let count = if cfg!(windows) { 4096 } else { 200 };
    for name in THREADED.iter().copied() {
        let bench = WaitBench::open(name, WaitObjects::open(count).expect("make objects")).expect(name);
        drop(bench);
        // Once without a wait, and once after a wait.
        let mut bench = WaitBench::open(name, WaitObjects::open(count).expect("make objects")).expect(name);
        bench.cycle(100).expect(name);
        drop(bench);
        // Other tests start and end threads meanwhile.
        let deadline = Instant::now() + Duration::from_secs(10);
        while threads() >= before + 50 {
            assert!(Instant::now() < deadline, "{name}: {before} threads became {}", threads());
            std::thread::yield_now();
        }
    }
}

/// Returns the number of threads of this process on Linux, and 0 elsewhere.
#[cfg(unix)]
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[test]
fn stopwatch_counts_cpu_and_wall_time() {
    let stopwatch = Stopwatch::start();
    let mut elapsed = stopwatch.elapsed();
    // On a busy machine this takes longer.
    while elapsed.cpu < Duration::from_millis(5) {
        elapsed = stopwatch.elapsed();
    }
    assert!(elapsed.wall > Duration::ZERO, "{elapsed:?}");
    let later = stopwatch.elapsed();
    assert!(later.cpu >= elapsed.cpu && later.wall >= elapsed.wall, "{elapsed:?} {later:?}");
}
