//! Spawns that fail without a resource that other processes free.

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use crate::support::alone;

/// Takes all descriptors that are free.
fn hog() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// Few descriptors for this process.
fn few() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(96), maximum }).expect("set resource limit");
}

#[test]
fn first_spawn_is_retried() {
    alone("jobs::resource_shortage::first_spawn_is_retried", || {
        few();
        let site = Site::new(degree(2), (0..2).map(|_| test_child("exit 0")));
        site.crew.set_paused(true);
        site.run(|site| {
            site.never("a start while held", |log| !log.starts.is_empty());
            let hogged = hog();
            site.crew.set_paused(false);
            site.never("a start without descriptors", |log| !log.starts.is_empty());
            drop(hogged);
        });
        assert_eq!(site.crew.counts().succeeded, 2);
    });
}

#[test]
fn spawn_is_retried_while_jobs_run() {
    alone("jobs::resource_shortage::spawn_is_retried_while_jobs_run", || {
        few();
        let site = Site::new(degree(4), (0..4).map(|_| test_child(LONG)));
        site.admitted.store(2, Ordering::SeqCst);
        site.run(|site| {
            site.await_log("two run", |log| log.running.len() == 2);
            let hogged = hog();
            site.admitted.store(4, Ordering::SeqCst);
            site.crew.wake();
            site.never("a start without descriptors", |log| log.starts.len() > 2);
            drop(hogged);
            site.await_log("all run, and none has ended", |log| log.running.len() == 4);
            assert_eq!(site.seen(), (4, 0));
            site.crew.kill();
        });
    });
}

#[test]
fn permanent_shortage_is_an_error() {
    alone("jobs::resource_shortage::permanent_shortage_is_an_error", || {
        few();
        let crew = JobPool::new(degree(1), Duration::from_secs(600));
        let site = Site::new(degree(1), (0..1).map(|_| test_child("exit 0")));
        let mut set = ChildSet::new(ChildSetConfig::default()).expect("create set");
        let mut hand = Hand { site: &site, place: 0, written: HashMap::new() };
        let hogged = hog();
        let begun = Instant::now();
        let error =
            crew.run_worker(&mut set, 0, 1, &mut hand).expect_err("run worker without free descriptor");
        assert_eq!(error.kind(), minder::ErrorKind::Exhausted);
        assert!((1..10).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
        drop(hogged);
    });
}
