//! Single signals to the children of a set.

use std::time::Duration;

use minder::{
    BackgroundSet, ChildSet, ChildSetOptions, ErrorKind, Event, Outcome, Restart, RestartPolicy, Signal,
    SpawnOptions, Termination,
};

use crate::support::{each_backend, killed, limits, next_event, patience, quiet_child, test_child};

const SLEEP: &str = "sleep-ms 600000";

fn outcome_of(set: &mut ChildSet) -> Outcome {
    let until = patience();
    loop {
        if let Event::Done { outcome, .. } = next_event(set, until) {
            return outcome;
        }
    }
}

#[test]
fn signal_does_not_count_as_a_kill() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let id = set.spawn(&quiet_child(SLEEP), SpawnOptions::new()).expect("spawn test child");
        let error = set.signal(id, Signal::from_raw(4000)).expect_err("send a signal that does not exist");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        set.signal(id, Signal::WINCH).expect("send a signal that is ignored");
        set.signal(id, Signal::HUP).expect("signal test child");
        let outcome = outcome_of(&mut set);
        assert!(killed(outcome.exit.status, 1) && !outcome.killed, "{outcome:?}");
        assert_eq!(
            set.signal(id, Signal::HUP).expect_err("signal a child that is done").kind(),
            ErrorKind::Unknown
        );
    });
}

#[test]
fn signal_reaches_what_is_left_of_the_group_of_a_child_that_exited() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend).leak_timeout(None)).expect("create set");
        let child = test_child("hold-stdout 600000");
        let id = set.spawn(&child, SpawnOptions::new()).expect("spawn test child");
        let until = patience();
        while !matches!(next_event(&mut set, until), Event::Exited { .. }) {}
        set.signal(id, Signal::TERM).expect("signal what is left");
        // The output ends with the process that held it.
        let outcome = outcome_of(&mut set);
        assert!(outcome.exit.status.success() && !outcome.killed && !outcome.leaked, "{outcome:?}");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn suspended_child_handles_a_signal_when_it_is_resumed() {
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let id = set.spawn(&quiet_child(SLEEP), SpawnOptions::new()).expect("spawn test child");
    set.suspend(id).expect("suspend test child");
    super::suspend::await_state(&[set.pid(id).expect("it is not done")], true);
    set.signal(id, Signal::TERM).expect("signal test child");
    assert!(!set.wait_all(Some(Duration::from_millis(30)), drop).expect("wait"), "it is still suspended");
    set.resume(id).expect("resume test child");
    assert!(killed(outcome_of(&mut set).exit.status, 15));
}

#[test]
fn signal_does_not_end_the_restarts_and_does_nothing_between_two_runs() {
    let policy = RestartPolicy::new(Restart::Always).backoff(Duration::from_secs(3600)).max_restarts(Some(9));
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let id = set.spawn(&quiet_child(SLEEP), SpawnOptions::new().restart(policy)).expect("spawn test child");
    set.signal(id, Signal::KILL).expect("signal test child");
    let until = patience();
    while !matches!(next_event(&mut set, until), Event::Restarting { .. }) {}
    set.signal(id, Signal::KILL).expect("signal a child without a process");
    set.restart(id, Termination::IMMEDIATE).expect("start it now");
    while !matches!(next_event(&mut set, until), Event::Restarted { .. }) {}
    set.kill(id, Termination::IMMEDIATE).expect("kill test child");
    assert!(outcome_of(&mut set).killed);
}

#[test]
fn background_set_and_shared_child_send_signals() {
    let set = BackgroundSet::new(ChildSetOptions::new()).expect("create set");
    let id = set.spawn(&quiet_child(SLEEP), SpawnOptions::new()).expect("spawn test child");
    set.signal(id, Signal::HUP).expect("signal test child");
    let mut statuses = Vec::new();
    set.wait_all(Some(Duration::from_secs(60)), |event| {
        if let Event::Done { outcome, .. } = event {
            statuses.push(outcome.exit.status);
        }
    })
    .expect("wait for the child");
    let child = quiet_child(SLEEP).spawn().and_then(minder::Child::into_shared).expect("start test child");
    child.signal(Signal::HUP).expect("signal test child");
    statuses.push(child.wait_deadline(patience()).expect("wait").expect("in time").status);
    child.signal(Signal::HUP).expect("signal a child that was reaped");
    assert!(statuses.len() == 2 && statuses.iter().all(|status| killed(*status, 1)), "{statuses:?}");
}
