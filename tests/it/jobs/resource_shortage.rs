//! Spawns that fail without a resource that other processes free.

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use crate::support::alone;

/// Opens files until no descriptor is free.
fn take_free_descriptors() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// Limits this process to 96 descriptors.
fn limit_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(96), maximum }).expect("set resource limit");
}

#[test]
fn first_spawn_is_retried() {
    alone("jobs::resource_shortage::first_spawn_is_retried", || {
        limit_descriptors();
        let test = PoolTest::new(max_running(2), (0..2).map(|_| test_child("exit 0")));
        test.pool.set_paused(true);
        test.run(|test| {
            test.assert_never("a start while paused", |log| !log.starts.is_empty());
            let held = take_free_descriptors();
            test.pool.set_paused(false);
            test.assert_never("a start without descriptors", |log| !log.starts.is_empty());
            drop(held);
        });
        assert_eq!(test.pool.counts().succeeded, 2);
    });
}

#[test]
fn spawn_is_retried_while_jobs_run() {
    alone("jobs::resource_shortage::spawn_is_retried_while_jobs_run", || {
        limit_descriptors();
        let test = PoolTest::new(max_running(4), (0..4).map(|_| test_child(LONG)));
        test.admission_limit.store(2, Ordering::SeqCst);
        test.run(|test| {
            test.wait_until("two run", |log| log.running.len() == 2);
            let held = take_free_descriptors();
            test.admission_limit.store(4, Ordering::SeqCst);
            test.pool.wake();
            test.assert_never("a start without descriptors", |log| log.starts.len() > 2);
            drop(held);
            test.wait_until("all run, and none has ended", |log| log.running.len() == 4);
            assert_eq!(test.counts(), (4, 0));
            test.pool.kill();
        });
    });
}

#[test]
fn permanent_shortage_is_an_error() {
    alone("jobs::resource_shortage::permanent_shortage_is_an_error", || {
        limit_descriptors();
        let pool = JobPool::new(max_running(1), Duration::from_secs(600));
        let test = PoolTest::new(max_running(1), (0..1).map(|_| test_child("exit 0")));
        let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
        let mut handler = TestHandler { test: &test, index: 0, written: HashMap::new() };
        let held = take_free_descriptors();
        let begun = Instant::now();
        let error =
            pool.run_worker(&mut set, 0, 1, &mut handler).expect_err("run worker without free descriptor");
        assert_eq!(error.kind(), minder::ErrorKind::Exhausted);
        assert!((1..60).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
        drop(held);
    });
}

/// A copy of the program of other jobs that is open for writing, and that file.
fn busy_program(dir: &tempfile::TempDir) -> (Command, File) {
    let path = dir.path().join("busy");
    std::fs::copy(env!("CARGO_BIN_EXE_test_child"), &path).expect("copy program");
    let mut command = Command::new(&path);
    command.args(["exit", "0"]);
    (command, File::options().append(true).open(&path).expect("open program"))
}

/// golang/go#22315, rust-lang/rust#114554: a program that was just written is busy for a moment.
#[cfg(target_os = "linux")] // Other systems run such a program.
#[test]
fn program_open_for_writing_is_started_once_it_is_closed() {
    let dir = tempfile::tempdir().expect("create directory");
    let (command, file) = busy_program(&dir);
    let others = (0..6).map(|_| test_child("exit 0"));
    let test = PoolTest::new(max_running(4), std::iter::once(command).chain(others));
    test.run(|test| {
        test.wait_until("the other jobs", |log| log.ends.len() == 6);
        assert_eq!(test.counts(), (6, 6), "started while open");
        drop(file);
    });
    assert_eq!((test.pool.counts().succeeded, test.pool.counts().retried), (7, 0));
}

#[cfg(target_os = "linux")]
#[test]
fn cancelled_pool_waits_for_no_program_that_is_open_for_writing() {
    let dir = tempfile::tempdir().expect("create directory");
    let (command, _file) = busy_program(&dir);
    let test = PoolTest::new(max_running(1), [command]);
    test.run(|test| test.pool.cancel());
    assert_eq!((test.counts().0, test.pool.counts().running), (0, 0));
}
