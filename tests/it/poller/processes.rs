//! Processes as sources: children, those that ended, those that another process started.

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use minder::poll::{Interest, Poller, Source, Token};
use minder::{Child, ErrorKind, Stdio, Termination};

use super::{names, open, settle, wait_events};
use crate::support::{each_backend, end as kill, lives, nap, patience, quiet_child, test_child};

const ONCE: Interest = Interest::READABLE.oneshot();
/// Longer than the longest time between two looks at a process that has no descriptor.
const QUIET: Duration = Duration::from_millis(80);

/// Starts a child that runs until it is killed.
fn sleeper() -> Child {
    quiet_child("sleep-ms 600000").spawn().expect("spawn test child")
}

/// Waits for one event and returns its token.
fn next(poller: &Poller) -> u64 {
    let reported = wait_events(poller, patience());
    match reported[..] {
        [one] => {
            assert!(one.readable && !one.expired, "{one:?}");
            one.token.0
        }
        _ => panic!("reported {reported:?}"),
    }
}

fn assert_silent(poller: &Poller, what: &str) {
    assert_eq!(wait_events(poller, Instant::now() + QUIET), [], "{what}");
}

fn end(child: &mut Child) {
    child.kill(Termination::IMMEDIATE).expect("kill child");
    child.wait().expect("wait for child");
}

#[test]
fn child_exit_is_reported_until_deleted() {
    each_backend(|backend| {
        let poller = open(backend);
        let mut child = sleeper();
        poller.add(&child, Token(1), Interest::READABLE).expect("add child");
        assert_silent(&poller, "it lives");
        child.kill(Termination::IMMEDIATE).expect("kill child");
        assert_eq!([next(&poller), next(&poller)], [1, 1]);
        let exit = child.try_wait().expect("poll child");
        assert!(exit.is_some(), "reported before its end");
        assert_eq!(next(&poller), 1, "reaped, and not deleted");
        poller.delete(&child).expect("delete source");
        assert_silent(&poller, "it was deleted");
        assert_eq!(poller.delete(&child).expect_err("delete source again").kind(), ErrorKind::Unknown);
    });
}

#[test]
fn process_is_watched_by_pid() {
    each_backend(|backend| {
        let poller = open(backend);
        let mut one = sleeper();
        let mut other = sleeper();
        poller.add(Source::process(one.id()), Token(1), Interest::READABLE).expect("add process");
        poller.add(Source::process(other.id()), Token(2), Interest::READABLE).expect("add process");
        assert_silent(&poller, "both live");
        other.kill(Termination::IMMEDIATE).expect("kill child");
        assert_eq!(next(&poller), 2);
        poller.delete(Source::process(other.id())).expect("delete source");
        assert_silent(&poller, "one lives, and the other was deleted");
        end(&mut one);
        assert_eq!(next(&poller), 1);
        poller.delete(Source::process(one.id())).expect("delete source");
        end(&mut other);
    });
}

#[test]
fn unreaped_child_is_reported_at_once() {
    each_backend(|backend| {
        let mut child = quiet_child("exit 3").spawn().expect("spawn test child");
        let first = open(backend);
        first.add(&child, Token(0), Interest::READABLE).expect("add child");
        assert_eq!(next(&first), 0);
        // A zombie from here on.
        let poller = open(backend);
        poller.add(Source::process(child.id()), Token(1), Interest::READABLE).expect("add exited child");
        assert_eq!(next(&poller), 1);
        poller.delete(Source::process(child.id())).expect("delete source");
        poller.add(&child, Token(2), Interest::READABLE).expect("add exited child");
        assert_eq!(next(&poller), 2);
        assert_eq!(
            child.wait().expect("wait for child").status,
            minder::ExitStatus::Exited(3),
            "its status was left"
        );
    });
}

#[test]
fn unused_pid_is_rejected() {
    each_backend(|backend| {
        let poller = open(backend);
        let mut child = quiet_child("exit 0").spawn().expect("spawn test child");
        let number = child.id();
        child.wait().expect("wait for child");
        // Windows keeps the pid while a handle is open.
        drop(child);
        let until = patience();
        let error = loop {
            match poller.add(Source::process(number), Token(1), Interest::READABLE) {
                Err(error) => break error,
                // On Windows other processes may have the process open for a moment.
                Ok(()) => assert!(cfg!(windows) && Instant::now() < until, "the pid is still in use"),
            }
            poller.delete(Source::process(number)).expect("delete source");
        };
        assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
        assert_eq!(
            poller.delete(Source::process(number)).expect_err("delete unknown process").kind(),
            ErrorKind::Unknown
        );
        for number in [0, u32::MAX, 1 << 31] {
            let error = poller
                .add(Source::process(number), Token(1), Interest::READABLE)
                .expect_err("add process with invalid pid");
            let kind = if cfg!(windows) { ErrorKind::Unknown } else { ErrorKind::InvalidInput };
            assert_eq!(error.kind(), kind, "{number}: {error}");
        }
        assert_silent(&poller, "nothing is watched");
    });
}

/// Starts a child that leaves its own child, which no test reaps.
fn stranger() -> u32 {
    let mut child = test_child("leave-group 600000").stderr(Stdio::null()).spawn().expect("spawn test child");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("take stdout")).read_line(&mut line).expect("read line");
    child.wait().expect("wait for child");
    line.trim().parse().expect("parse number")
}

#[test]
fn exit_of_a_process_started_elsewhere_is_reported() {
    each_backend(|backend| {
        let poller = open(backend);
        let one = stranger();
        let other = stranger();
        poller.add(Source::process(one), Token(1), Interest::READABLE).expect("add process");
        poller.add(Source::process(other), Token(2), ONCE).expect("add process");
        assert_silent(&poller, "both live");
        kill(one);
        assert_eq!(next(&poller), 1);
        assert!(!lives(one), "reported before its end");
        poller.delete(Source::process(one)).expect("delete source");
        kill(other);
        assert_eq!(next(&poller), 2);
        assert_silent(&poller, "reported once");
    });
}

#[test]
fn process_is_registered_once() {
    each_backend(|backend| {
        let poller = open(backend);
        let mut child = sleeper();
        let number = child.id();
        let source = || Source::process(number);
        poller.add(source(), Token(1), Interest::READABLE).expect("add process");
        let error = poller.add(source(), Token(2), Interest::READABLE).expect_err("add source again");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        poller.modify(source(), Token(3), Interest::READABLE).expect("modify source");
        assert_silent(&poller, "it lives");
        poller.delete(source()).expect("delete source");
        let error =
            poller.modify(source(), Token(4), Interest::READABLE).expect_err("modify deleted process");
        assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
        poller.add(source(), Token(5), Interest::READABLE).expect("add source again");
        child.kill(Termination::IMMEDIATE).expect("kill child");
        assert_eq!(next(&poller), 5);
        poller.modify(source(), Token(6), Interest::READABLE).expect("modify source");
        assert_eq!([next(&poller), next(&poller)], [6, 6]);
        poller.delete(source()).expect("delete source");
        assert_silent(&poller, "it was deleted");
        child.wait().expect("wait for child");
    });
}

/// An end comes once: edge is the same as one-shot.
#[test]
fn oneshot_exit_is_reported_once() {
    each_backend(|backend| {
        let poller = open(backend);
        for interest in [ONCE, Interest::READABLE.edge()] {
            let mut child = sleeper();
            let number = child.id();
            let source = || Source::process(number);
            poller.add(source(), Token(1), interest).expect("add process");
            child.kill(Termination::IMMEDIATE).expect("kill child");
            assert_eq!(next(&poller), 1);
            assert_silent(&poller, "reported once");
            poller.modify(source(), Token(2), interest).expect("modify source");
            assert_eq!(next(&poller), 2);
            assert_silent(&poller, "reported once");
            poller.delete(source()).expect("delete one-shot source");
            child.wait().expect("wait for child");
        }
    });
}

#[test]
fn exit_is_reported_to_a_wait_in_progress() {
    each_backend(|backend| {
        let poller = open(backend);
        for round in 0..6 {
            let mut child = sleeper();
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| names(&wait_events(&poller, patience())));
                if round % 2 == 0 {
                    settle();
                }
                poller
                    .add(Source::process(child.id()), Token(round), Interest::READABLE)
                    .expect("add process");
                if round % 3 == 0 {
                    nap(Duration::from_millis(3));
                }
                child.kill(Termination::IMMEDIATE).expect("kill child");
                assert_eq!(waiting.join().expect("join waiter"), [round]);
            });
            poller.delete(Source::process(child.id())).expect("delete source");
            child.wait().expect("wait for child");
        }
    });
}

/// A wait with a deadline is as exact with processes as without.
#[test]
fn processes_end_no_wait_early() {
    each_backend(|backend| {
        let poller = open(backend);
        let mut child = sleeper();
        poller.add(Source::process(child.id()), Token(1), Interest::READABLE).expect("add process");
        for round in 0..60 {
            let deadline = Instant::now() + Duration::from_micros(200 + 37 * round);
            assert_eq!(wait_events(&poller, deadline), []);
            assert!(Instant::now() >= deadline, "early");
        }
        end(&mut child);
        poller.delete(Source::process(child.id())).expect("delete source");
    });
}

#[test]
fn many_exits_are_reported() {
    each_backend(|backend| {
        let poller = open(backend);
        let mut children: Vec<_> = (0..super::CROWD)
            .map(|number| quiet_child(&format!("exit {}", number % 7)).spawn().expect("spawn test child"))
            .collect();
        for (token, child) in (0..).zip(&children) {
            poller.add(child, Token(token), ONCE).expect("add child");
        }
        let mut seen = vec![0; children.len()];
        while seen.contains(&0) {
            let reported = wait_events(&poller, patience());
            assert!(
                !reported.is_empty(),
                "{} ends were not reported",
                seen.iter().filter(|&&times| times == 0).count()
            );
            reported.iter().for_each(|one| seen[one.token.0 as usize] += 1);
        }
        assert!(seen.iter().all(|&times| times == 1), "some were reported twice");
        for (number, child) in children.iter_mut().enumerate() {
            poller.delete(&*child).expect("delete source");
            let exit = child.try_wait().expect("poll child").expect("child has exited");
            assert_eq!(exit.status, minder::ExitStatus::Exited(number as i32 % 7));
        }
    });
}
