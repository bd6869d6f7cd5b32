//! Kills of whole process trees.

use std::time::{Duration, Instant};

use minder::{ChildId, ChildSet, Event, ExitStatus, Group, Signal, SpawnOptions, Termination};
#[cfg(target_os = "linux")]
use minder::{ChildSetOptions, Stdio};

#[cfg(any(target_os = "linux", windows))]
use crate::support::lives;
use crate::support::{EventLog, each_backend, killed, limits, next_event, patience, quiet_child, test_child};
#[cfg(target_os = "linux")]
use crate::support::{alone, open_descriptors};

const SECOND: Duration = Duration::from_secs(1);

/// Starts a child and waits until it has printed a line. Returns the pids in that line.
pub(super) fn start(
    set: &mut ChildSet,
    event_log: &mut EventLog,
    words: &str,
    options: SpawnOptions,
) -> (ChildId, Vec<u32>) {
    let id = set.spawn(&test_child(words), options).expect("spawn test child");
    assert!(
        event_log.read_until(set, patience(), |event_log| event_log.text(id).ends_with('\n')),
        "{words} printed nothing"
    );
    let numbers = event_log.text(id).split_whitespace().filter_map(|word| word.parse().ok()).collect();
    (id, numbers)
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn immediate_kill_ends_group_and_stray_before_done() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let (id, numbers) = start(&mut set, &mut event_log, "stubborn-tree", SpawnOptions::default());
        assert!(numbers.len() == 3 && numbers.iter().all(|pid| lives(*pid)), "{numbers:?}");
        set.kill(id, Termination::IMMEDIATE).expect("kill tree");
        event_log.wait_all(&mut set);
        assert!(!numbers.iter().any(|pid| lives(*pid)), "one of {numbers:?} is alive after Done");
        let outcome = event_log.outcome(id);
        assert!(killed(outcome.exit.status, 9), "{outcome:?}");
        assert!(!outcome.left_running && !outcome.leaked, "{outcome:?}");
    });
}

// Windows has no request to exit: the first kill ends the child.
#[cfg(target_os = "linux")]
#[test]
fn graceful_kill_escalates_for_processes_that_ignore_it() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let (id, numbers) = start(&mut set, &mut event_log, "stubborn-tree", SpawnOptions::default());
        let asked = Instant::now();
        let grace = Duration::from_millis(300);
        set.kill(id, Termination::graceful(grace)).expect("kill tree");
        // On a busy machine the last wait may return late, after the kill that was due by then.
        let ended =
            event_log.read_until(&mut set, asked + grace, |event_log| event_log.child(id).exit.is_some());
        assert!(!ended || asked.elapsed() >= grace, "killed early");
        event_log.wait_all(&mut set);
        assert!(asked.elapsed() >= grace);
        assert!(!numbers.iter().any(|pid| lives(*pid)), "one of {numbers:?} is alive after Done");
    });
}

/// A process that leaves the group after the set has looked, and before the shell ends by the signal, would
/// not be found any more.
#[cfg(target_os = "linux")]
#[test]
fn graceful_kill_ends_what_a_forking_child_starts_meanwhile() {
    let seconds = format!("60000.{:07}", std::process::id());
    let script = format!("i=0; while [ $i -lt 300 ]; do setsid sleep {seconds} & i=$((i+1)); done; wait");
    // A shell that leads the group is stopped with it; one in another session is stopped alone.
    let shells = [["sh", "-c"].as_slice(), &["setsid", "--fork", "--wait", "sh", "-c"]];
    for round in 0..if crate::support::is_long() { 200 } else { 16 } {
        let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
        let id =
            set.spawn(&shell(shells[round as usize % 2], &script), SpawnOptions::new()).expect("spawn shell");
        let moment = Duration::from_millis(30 + round * 7 % 40);
        set.wait_all(Some(moment), drop).expect("wait for shell");
        set.kill(id, Termination::graceful(60 * SECOND)).expect("kill tree");
        assert!(set.wait_all(Some(patience() - Instant::now()), drop).expect("wait for shell"), "in time");
        assert_none_runs(&seconds, round);
    }
}

/// Many trees are searched in one look at the process table, unless most processes left their groups.
#[cfg(target_os = "linux")]
#[test]
fn kill_of_all_ends_what_forking_children_start_meanwhile() {
    const TREES: usize = 100;
    let seconds = format!("70000.{:07}", std::process::id());
    // What has left the group has children, too.
    let script = format!("setsid sh -c 'sleep {seconds} & setsid sleep {seconds} & wait' & wait");
    // One that leads no group is stopped alone.
    let commands = [Group::New, Group::Inherit].map(|group| {
        let mut command = shell(&["sh", "-c"], &script);
        command.group(group);
        command
    });
    for round in 0..if crate::support::is_long() { 30 } else { 3 } {
        let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
        for tree in 0..TREES {
            set.spawn(&commands[tree % 2], SpawnOptions::new()).expect("spawn shell");
        }
        set.wait_all(Some(Duration::from_millis(60 + round * 37 % 100)), drop).expect("wait for shells");
        if round % 3 > 0 {
            set.kill_all(Termination::graceful(60 * SECOND)).expect("ask all trees to exit");
        }
        // After the other one, some that have left their groups are known.
        if round % 3 < 2 {
            set.kill_all(Termination::IMMEDIATE).expect("kill all trees");
        }
        assert!(set.wait_all(Some(patience() - Instant::now()), drop).expect("wait for shells"), "in time");
        assert_none_runs(&seconds, round);
    }
}

#[cfg(target_os = "linux")]
fn shell(words: &[&str], script: &str) -> minder::Command {
    let mut command = minder::Command::new(words[0]);
    command.args(&words[1..]).arg(script);
    command
}

/// Checks that no process has this word in its command line, and ends those that have.
#[cfg(target_os = "linux")]
fn assert_none_runs(word: &str, round: u64) {
    use rustix::process::{Pid, Signal, kill_process};
    let has_word = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(word.len()).any(|part| part == word.as_bytes())
    };
    let pids = std::fs::read_dir("/proc").expect("list processes").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let left: Vec<u32> = pids.filter(has_word).collect();
    for pid in left.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
        let _ = kill_process(pid, Signal::KILL);
    }
    assert!(left.is_empty(), "round {round}: {left:?} are alive");
}

/// Such a process looks like a zombie, and its other threads run.
#[cfg(target_os = "linux")]
#[test]
fn process_whose_main_thread_has_exited_is_killed() {
    for how in [Termination::IMMEDIATE, Termination::graceful(60 * SECOND)] {
        let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
        let mut event_log = EventLog::default();
        let (id, numbers) = start(&mut set, &mut event_log, "headless-stray", SpawnOptions::default());
        let stray = numbers[1];
        let is_alive = || std::fs::read_dir(format!("/proc/{stray}/task")).is_ok_and(|all| all.count() > 1);
        let until = patience();
        while lives(stray) || !is_alive() {
            assert!(Instant::now() < until, "the main thread of {stray} exits");
            std::thread::yield_now();
        }
        set.kill(id, how).expect("kill tree");
        event_log.wait_all(&mut set);
        assert!(!is_alive(), "{stray} is alive after Done");
    }
}

/// Without a free descriptor the set cannot search `/proc`. It treats the processes of the tree as
/// alive, and kills them when it can search again.
#[cfg(target_os = "linux")]
#[test]
fn kill_without_a_free_descriptor_presumes_no_process_dead() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    alone("set::kill::kill_without_a_free_descriptor_presumes_no_process_dead", || {
        each_backend(|backend| {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let mut event_log = EventLog::default();
            let (id, numbers) = start(&mut set, &mut event_log, "stubborn-tree", SpawnOptions::default());
            let before = getrlimit(Resource::Nofile);
            set.kill(id, Termination::graceful(Duration::from_millis(100))).expect("kill tree");
            // The limit is the number of open descriptors: poll(2) takes no more sources than the limit.
            let open = Some(open_descriptors() as u64);
            setrlimit(Resource::Nofile, Rlimit { current: open, ..before }).expect("set resource limit");
            // Takes the free descriptors below the limit, too.
            let rest: Vec<_> =
                std::iter::repeat_with(|| std::fs::File::open("/dev/null")).map_while(Result::ok).collect();
            let until = Instant::now() + SECOND;
            let done = event_log.read_until(&mut set, until, |event_log| event_log.child(id).done.is_some());
            setrlimit(Resource::Nofile, before).expect("set resource limit");
            drop(rest);
            assert!(!done && event_log.child(id).exit.is_some(), "{:?}", event_log.child(id).done);
            event_log.wait_all(&mut set);
            assert!(!numbers.iter().any(|pid| lives(*pid)), "one of {numbers:?} is alive after Done");
        });
    });
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn graceful_kill_lets_a_tree_exit() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let (id, numbers) = start(&mut set, &mut event_log, "tree 4", SpawnOptions::default());
        assert!(
            event_log.read_until(&mut set, patience(), |event_log| event_log.text(id).lines().count() == 4)
        );
        assert!(!numbers.is_empty());
        let numbers: Vec<u32> = event_log.text(id).lines().filter_map(|line| line.parse().ok()).collect();
        set.kill(id, Termination::graceful(Duration::from_secs(600))).expect("kill tree");
        event_log.wait_all(&mut set);
        assert!(killed(event_log.outcome(id).exit.status, 15));
        assert!(!numbers.iter().any(|pid| lives(*pid)), "one of {numbers:?} is alive after Done");
    });
}

// Windows does not stop processes.
#[cfg(target_os = "linux")]
#[test]
fn stopped_tree_receives_a_graceful_kill() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let id = set.spawn(&quiet_child("stop-self"), SpawnOptions::default()).expect("spawn test child");
        let pid = set.pid(id).expect("get pid");
        let stopped =
            || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "));
        while !stopped() {
            std::thread::yield_now();
        }
        set.kill(id, Termination::graceful(Duration::from_secs(600))).expect("kill child");
        event_log.wait_all(&mut set);
        assert!(killed(event_log.outcome(id).exit.status, 15));
    });
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn stray_in_its_own_session_is_killed() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let (id, numbers) = start(&mut set, &mut event_log, "session-stray 600000", SpawnOptions::default());
        set.kill(id, Termination::graceful(Duration::from_secs(600))).expect("kill tree");
        event_log.wait_all(&mut set);
        assert_eq!(numbers.len(), 2);
        assert!(!numbers.iter().any(|pid| lives(*pid)), "one of {numbers:?} is alive after Done");
    });
}

/// The leader has exited, and its exit was not reported yet. It is not reaped, so its pid still
/// names the group.
/// watchexec/command-group#7: the rest of a group outlives the kill if its leader has exited.
#[cfg(any(target_os = "linux", windows))]
#[test]
fn group_of_an_exited_leader_is_killed() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let id =
            set.spawn(&test_child("leave-group 600000"), SpawnOptions::default()).expect("spawn test child");
        // The number of the grandchild comes before the exit, and both wait here until the next call.
        let until = patience();
        let grandchild: u32 = loop {
            let event = next_event(&mut set, until);
            let pid = if let Event::Output { chunk, .. } = &event {
                std::str::from_utf8(chunk).ok().and_then(|text| text.trim().parse().ok())
            } else {
                None
            };
            event_log.record(event);
            if let Some(pid) = pid {
                break pid;
            }
        };
        let pid = set.pid(id).expect("get pid");
        while lives(pid) {
            std::thread::yield_now();
        }
        assert!(lives(grandchild), "the grandchild ended with its parent");
        set.kill(id, Termination::IMMEDIATE).expect("kill group");
        event_log.wait_all(&mut set);
        assert!(!lives(grandchild), "{grandchild} of the group {pid} lives after Done");
        assert!(!event_log.outcome(id).left_running);
    });
}

/// A job that ends normally may leave a daemon: it is reported, and lives on.
#[cfg(any(target_os = "linux", windows))]
#[test]
fn normal_exit_leaves_the_group_running_and_reports_it() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let id =
            set.spawn(&test_child("leave-group 600000"), SpawnOptions::default()).expect("spawn test child");
        event_log.wait_all(&mut set);
        let pid: u32 = event_log.text(id).trim().parse().expect("parse number");
        assert!(lives(pid), "it was killed");
        let outcome = event_log.outcome(id);
        assert!(outcome.left_running && !outcome.leaked, "{outcome:?}");
        crate::support::end(pid);
    });
}

#[test]
fn deadline_kills_the_child_and_never_early() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let deadline = Instant::now() + Duration::from_millis(200);
        let options = SpawnOptions::default().deadline(deadline, Termination::IMMEDIATE);
        let late = set.spawn(&quiet_child("sleep-ms 600000"), options).expect("spawn test child");
        let options = SpawnOptions::default().deadline(patience(), Termination::IMMEDIATE);
        let early = set.spawn(&quiet_child("exit 3"), options).expect("spawn test child");
        // A busy machine may let us look only after the deadline.
        let ended =
            event_log.read_until(&mut set, deadline, |event_log| event_log.child(late).exit.is_some());
        assert!(!ended || Instant::now() >= deadline, "ended early");
        event_log.wait_all(&mut set);
        assert!(Instant::now() >= deadline);
        assert!(killed(event_log.outcome(late).exit.status, 9));
        assert_eq!(event_log.outcome(early).exit.status, ExitStatus::Exited(3));
    });
}

#[test]
fn past_deadline_kills_the_child_at_once() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let options = SpawnOptions::default().deadline(Instant::now() - SECOND, Termination::IMMEDIATE);
        let id = set.spawn(&quiet_child("sleep-ms 600000"), options).expect("spawn test child");
        event_log.wait_all(&mut set);
        assert!(killed(event_log.outcome(id).exit.status, 9));
    });
}

// Windows has no request to exit: the first kill ends the child.
#[cfg(unix)]
#[test]
fn stronger_kill_replaces_a_weaker_one_only() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let (id, _) = start(&mut set, &mut event_log, "ignore-term 600000", SpawnOptions::default());
        set.kill(id, Termination::graceful(Duration::from_secs(600))).expect("kill child");
        assert!(!event_log.read_until(&mut set, Instant::now() + Duration::from_millis(50), |event_log| {
            event_log.child(id).exit.is_some()
        }));
        set.kill(id, Termination::IMMEDIATE).expect("kill child");
        set.kill(id, Termination::graceful(Duration::from_secs(600))).expect("kill child");
        event_log.wait_all(&mut set);
        assert!(killed(event_log.outcome(id).exit.status, 9));
    });
}

// Windows has no request to exit: the first kill ends the child.
#[cfg(unix)]
#[test]
fn signal_sequence_continues_until_the_child_exits() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let ms = Duration::from_millis;
        let (one, _) = start(&mut set, &mut event_log, "ignore-term 600000", SpawnOptions::default());
        let (other, _) = start(&mut set, &mut event_log, "ignore-term 600000", SpawnOptions::default());
        let term = Signal::TERM;
        let hup = Signal::HUP;
        let asked = Instant::now();
        let minute = ms(60_000);
        set.kill(
            one,
            Termination::signals(&[(term, ms(100)), (hup, minute)]).expect("create signal sequence"),
        )
        .expect("kill child");
        set.kill(
            other,
            Termination::signals(&[(term, ms(100)), (term, ms(50))]).expect("create signal sequence"),
        )
        .expect("kill child");
        let ended = |event_log: &EventLog, id| event_log.child(id).exit.is_some();
        let any = |event_log: &EventLog| ended(event_log, one) || ended(event_log, other);
        assert!(event_log.read_until(&mut set, patience(), any) && asked.elapsed() >= ms(100));
        assert!(!ended(&event_log, other) || asked.elapsed() >= ms(150));
        event_log.wait_all(&mut set);
        assert!(asked.elapsed() >= ms(150));
        assert!(killed(event_log.outcome(one).exit.status, 1));
        assert!(killed(event_log.outcome(other).exit.status, 9));
    });
}

#[test]
fn signal_sequence_is_validated() {
    let step = (Signal::TERM, SECOND);
    assert_eq!(Termination::signals(&[]).expect("create empty sequence"), Termination::IMMEDIATE);
    assert_eq!(Termination::signals(&[step]).expect("create signal sequence"), Termination::graceful(SECOND));
    assert!(Termination::signals(&[step; 8]).is_ok());
    let other = |number| [(Signal::from_raw(number), SECOND)];
    for bad in [&[step; 9][..], &other(0), &other(-9), &other(65)] {
        let error = Termination::signals(bad).expect_err("create invalid sequence");
        assert_eq!(error.kind(), minder::ErrorKind::InvalidInput, "{error}");
    }
}

#[test]
fn kill_all_ends_many_trees() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let mut groups = vec![Group::New, Group::Session, Group::Inherit];
        if cfg!(unix) {
            groups.push(Group::Terminal(minder::Size::default()));
        }
        for group in &groups {
            for _ in 0..10 {
                let mut command = test_child("sleep-ms 600000");
                set.spawn(command.group(*group), SpawnOptions::default()).expect("spawn test child");
            }
        }
        set.kill_all(Termination::IMMEDIATE).expect("kill all children");
        event_log.wait_all(&mut set);
        assert_eq!(event_log.records.len(), groups.len() * 10);
        assert!(event_log.records.values().all(|record| record.exit.is_some_and(|status| killed(status, 9))));
    });
}

/// The kill races with the exit: in both orders there is one exit, and it is reported.
#[test]
fn kill_racing_with_exit_reports_one_exit() {
    each_backend(|backend| {
        let end = Instant::now() + crate::support::race_time() / 2;
        let mut round: u32 = 0;
        while Instant::now() < end {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let mut event_log = EventLog::default();
            let id = set.spawn(&test_child("spew 100"), SpawnOptions::default()).expect("spawn test child");
            let moment = Instant::now() + Duration::from_micros(u64::from(round % 30) * 100);
            event_log.read_until(&mut set, moment, |event_log| event_log.child(id).done.is_some());
            if event_log.child(id).done.is_none() {
                let how = if round.is_multiple_of(2) {
                    Termination::IMMEDIATE
                } else {
                    Termination::graceful(Duration::from_secs(600))
                };
                set.kill(id, how).expect("kill child that may have exited");
            }
            event_log.wait_all(&mut set);
            round += 1;
        }
    });
}

// On Windows children die with the process, whichever thread has started them.
#[cfg(target_os = "linux")]
#[test]
fn die_with_parent_kills_the_child_with_its_thread() {
    let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
    let mut event_log = EventLog::default();
    let mut command = quiet_child("sleep-ms 600000");
    command.die_with_parent(true).stdin(Stdio::null());
    let thread = std::thread::spawn(move || {
        let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
        (set, id)
    });
    let (mut set, id) = thread.join().expect("join thread");
    event_log.wait_all(&mut set);
    assert!(killed(event_log.outcome(id).exit.status, 9));
}
