//! Children that start in a cgroup: those of version 2, with or without controllers.

use std::fs::File;
use std::time::Duration;

use minder::{ChildSet, ChildSetOptions, Command, ErrorKind, Event, SpawnOptions, Stdio};
use minder_os::cgroup::{Cgroup, Place};

use crate::support::{on_drop, skip};

/// Makes a cgroup, calls `test` with it, and removes it.
fn in_cgroup(name: &str, test: impl FnOnce(&Cgroup, &str)) {
    let place = Place::find().ok().flatten().map(|place| place.root);
    let name = format!("minder-test-{name}-{}", std::process::id());
    let Some((root, cgroup)) = place.and_then(|root| root.create(&name).ok().map(|made| (root, made))) else {
        skip(format_args!("only root may make a cgroup of version 2 here, if it is mounted"));
        return;
    };
    let _guard = on_drop(|| {
        let _ = cgroup.wait_empty(Duration::from_secs(10));
        root.remove(&name).expect("remove cgroup");
    });
    test(&cgroup, &name);
}

#[test]
fn child_starts_in_its_cgroup() {
    in_cgroup("starts", |cgroup, name| {
        let mut command = Command::new("cat");
        command.arg("/proc/self/cgroup").cgroup(cgroup.dir());
        let is_there = |output: &[u8]| {
            let text = String::from_utf8_lossy(output);
            let line = text.lines().find(|line| line.starts_with("0::")).expect("find cgroup of version 2");
            assert!(line.ends_with(&format!("/{name}")), "{text}");
        };
        is_there(&command.output().expect("start cat").stdout);
        let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
        command.stdout(Stdio::piped());
        for _ in 0..3 {
            set.spawn(&command, SpawnOptions::new()).expect("start cat in a set");
        }
        let mut outputs = 0;
        let on_event = |event| {
            if let Event::Output { chunk, .. } = event {
                is_there(&chunk);
                outputs += 1;
            }
        };
        set.wait_all(None, on_event).expect("wait for cat");
        assert_eq!(outputs, 3);
    });
}

#[test]
fn cgroup_changes_no_other_error() {
    in_cgroup("errors", |cgroup, _| {
        let mut command = Command::new("/no/such/program");
        let error = command.cgroup(cgroup.dir()).status().expect_err("there is no such program");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(cgroup.read("cgroup.procs").expect("read processes"), "");
    });
}

#[test]
fn removed_cgroup_fails_the_start() {
    let mut removed = None;
    in_cgroup("removed", |cgroup, _| removed = Some(cgroup.dir()));
    let Some(removed) = removed else { return };
    let error = Command::new("true").cgroup(removed).status().expect_err("the cgroup is gone");
    assert!(error.to_string().starts_with("failed to join the cgroup of `true`: "), "{error}");
}

#[test]
fn directory_of_another_file_system_fails_the_start() {
    let dir = File::open("/").expect("open directory");
    let error = Command::new("true").cgroup(dir).status().expect_err("it has no processes");
    assert!(error.to_string().starts_with("failed to join the cgroup of `true`: "), "{error}");
}
