//! The user, the groups, the limits and the umask of a child.

#![expect(unsafe_code, reason = "the user of a process that a test has for itself")]

use std::sync::Arc;

use minder::{ChildSet, ChildSetOptions, Command, ErrorKind, Event, Resource, SpawnOptions, Termination};
use rustix::process::{DumpableBehavior, dumpable_behavior};

use crate::support::{alone, patience, skip};

const UNPRIVILEGED: u32 = 65534;

/// Returns whether this process may set user ids, and skips the test otherwise.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(format_args!("only root may start a child as another user"));
    }
    is_root
}

/// Returns the values of a field of `/proc/PID/status`.
fn field<'a>(status: &'a str, name: &str) -> Vec<&'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("find field").split_whitespace().collect()
}

/// Returns the status of a child that is started by itself, and of one in a set, which are alike.
fn status(change: impl Fn(&mut Command) -> &mut Command) -> String {
    let mut command = Command::new("cat");
    change(command.arg("/proc/self/status"));
    let lone = command.output().expect("start cat").stdout;
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    command.stdout(minder::Stdio::piped());
    set.spawn(&command, SpawnOptions::new()).expect("start cat in a set");
    let mut output = Vec::new();
    let on_event = |event| {
        if let Event::Output { chunk, .. } = event {
            output.extend_from_slice(&chunk);
        }
    };
    set.wait_all(None, on_event).expect("wait for cat");
    let [lone, in_set] = [lone, output].map(|text| String::from_utf8(text).expect("text"));
    for name in ["Uid", "Gid", "Groups", "Umask"] {
        assert_eq!(field(&lone, name), field(&in_set, name));
    }
    lone
}

#[test]
fn child_has_the_user_and_the_groups_of_its_command() {
    if !is_root() {
        return;
    }
    let text = status(|command| command.uid(UNPRIVILEGED).gid(7).groups([8, 9]));
    assert_eq!((field(&text, "Uid"), field(&text, "Gid")), (vec!["65534"; 4], vec!["7"; 4]));
    assert_eq!(field(&text, "Groups"), ["8", "9"]);
    // Those of root are dropped with its user.
    let text = status(|command| command.uid(UNPRIVILEGED));
    assert!(field(&text, "Groups").is_empty(), "{text}");
    let text = status(|command| command.groups([5]));
    assert_eq!((field(&text, "Uid"), field(&text, "Groups")), (vec!["0"; 4], vec!["5"]));
}

#[test]
fn start_as_another_user_does_not_change_this_process() {
    if !is_root() {
        return;
    }
    alone("spawn::attributes::start_as_another_user_does_not_change_this_process", || {
        let mut command = Command::new("true");
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED).umask(0o777).limit(Resource::CoreSize, Some(0), Some(0));
        let command = Arc::new(command);
        let start = || {
            let command = Arc::clone(&command);
            std::thread::spawn(move || {
                for _ in 0..30 {
                    assert!(command.status().expect("start true").success());
                }
                std::fs::read_to_string("/proc/thread-self/status").expect("read own status")
            })
        };
        for thread in [start(), start(), start()] {
            let text = thread.join().expect("join thread");
            assert_eq!((field(&text, "Uid"), field(&text, "Gid")), (vec!["0"; 4], vec!["0"; 4]));
            assert_ne!(field(&text, "Umask"), ["0777"]);
        }
        assert_eq!(dumpable_behavior().expect("read own state"), DumpableBehavior::Dumpable);
    });
}

#[test]
fn child_of_another_user_dies_with_its_parent() {
    if !is_root() {
        return;
    }
    let start = || {
        let mut command = Command::new("sleep");
        command.arg("600").uid(UNPRIVILEGED).die_with_parent(true);
        command.spawn().expect("start sleep")
    };
    let mut child = std::thread::spawn(start).join().expect("join thread");
    let exit = child.wait_deadline(patience()).expect("wait for child");
    if exit.is_none() {
        child.kill(Termination::IMMEDIATE).expect("kill child");
    }
    assert_eq!(exit.expect("the child ends with the thread").status.signal(), Some(9));
}

#[test]
fn child_has_the_limits_and_the_umask_of_its_command() {
    let text = status(|command| command.umask(0o027));
    assert_eq!(field(&text, "Umask"), ["0027"]);
    let resources = [
        (Resource::AddressSpace, "Max address space"),
        (Resource::CoreSize, "Max core file size"),
        (Resource::CpuTime, "Max cpu time"),
        (Resource::Data, "Max data size"),
        (Resource::FileSize, "Max file size"),
        (Resource::LockedMemory, "Max locked memory"),
        (Resource::OpenFiles, "Max open files"),
        (Resource::Processes, "Max processes"),
        (Resource::Stack, "Max stack size"),
    ];
    for (resource, line) in resources {
        let name = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
        let own = std::fs::read_to_string("/proc/self/limits").expect("read own limits");
        let own_hard = own.lines().find_map(|text| text.strip_prefix(line)).expect("find limit");
        let own_hard = own_hard.split_whitespace().nth(1).and_then(|text| text.parse().ok());
        let soft = Some(own_hard.unwrap_or(1 << 40).min(1 << 40) / 2);
        let mut command = Command::new("cat");
        // The last call counts.
        command.arg("/proc/self/limits").limit(resource, Some(1), Some(1)).limit(resource, soft, own_hard);
        let output = command.output().expect("start cat");
        let text = String::from_utf8(output.stdout).expect("text");
        let found = text.lines().find_map(|text| text.strip_prefix(line)).expect("find limit");
        let found: Vec<_> = found.split_whitespace().take(2).collect();
        assert_eq!(found, [name(soft), name(own_hard)], "{resource:?}");
    }
}

#[test]
fn error_names_the_attribute_that_is_refused() {
    alone("spawn::attributes::error_names_the_attribute_that_is_refused", || {
        if rustix::process::geteuid().is_root() {
            // SAFETY: numbers only. The test is alone in its process.
            assert_eq!(unsafe { libc::setgid(UNPRIVILEGED) } | unsafe { libc::setuid(UNPRIVILEGED) }, 0);
        }
        let refused = |change: &dyn Fn(&mut Command) -> &mut Command| {
            let mut command = Command::new("sleep");
            let error = change(command.arg("600")).spawn().expect_err("start without the right");
            (error.kind(), error.to_string())
        };
        let (kind, text) = refused(&|command| command.uid(0));
        assert!(text.starts_with("failed to set the user id `0`: "), "{text}");
        assert_eq!(kind, ErrorKind::PermissionDenied);
        let (kind, text) = refused(&|command| command.gid(0));
        assert!(text.starts_with("failed to set the group id `0`: "), "{text}");
        assert_eq!(kind, ErrorKind::PermissionDenied);
        let (kind, text) = refused(&|command| command.groups([0]));
        assert!(text.starts_with("failed to set the groups of `sleep`: "), "{text}");
        assert_eq!(kind, ErrorKind::PermissionDenied);
        let (kind, text) = refused(&|command| command.limit(Resource::OpenFiles, Some(2), Some(1)));
        assert_eq!(kind, ErrorKind::InvalidInput);
        assert!(text.starts_with("failed to set the limit of `open files`: "), "{text}");
    });
}
