//! Numbers at which waits for handles break on Windows, and the ends of whole trees there.
//!
//! A wait for several objects takes 64 at most, less one for a wake: a user of it has a step
//! there, and another at every further 63. So what is shown here is shown on either side of such
//! numbers.
//!
//! What is counted here means the same under Wine; how long it takes does not.

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use minder::{
    Backend, ChildId, ChildSet, ChildSetOptions, Command, ErrorKind, ExitStatus, Group, SpawnOptions, Stdio,
    Termination,
};

use crate::support::{
    EventLog, TEST_CHILD, alone, each_backend, end, killed, limits, lives, nap, patience, patterned,
    quiet_child, test_child, threads,
};

/// The number of bytes that every child of a crowd writes to stdout before it reads.
const OUT: usize = 20_000;
const ERR: usize = 1_500;

/// Returns the deadline of tests with many children.
fn long_patience() -> Instant {
    Instant::now() + Duration::from_secs(240)
}

/// Starts that many of the command, or as many as fit, which is printed.
fn start(set: &mut ChildSet, count: usize, command: impl Fn(usize) -> Command) -> Vec<ChildId> {
    let mut ids = Vec::new();
    for number in 0..count {
        match set.spawn(&command(number), SpawnOptions::default()) {
            Ok(id) => ids.push(id),
            Err(error) if error.kind() == ErrorKind::Exhausted && number > 64 => {
                crate::support::skip(format_args!("{count} children: after {number} {error}"));
                break;
            }
            Err(error) => panic!("child {number} of {count}: {error}"),
        }
    }
    ids
}

/// Reads until all are done, for longer than most tests would.
fn finish(set: &mut ChildSet, event_log: &mut EventLog, until: Instant) {
    while !set.is_empty() {
        let event = set.next_event_deadline(Some(until)).expect("wait for event").into_event();
        event_log.record(event.unwrap_or_else(|| panic!("{} children are not done", set.len())));
    }
}

/// Returns the input of child number `number`: more for some than for others.
fn words_for(number: usize) -> Vec<u8> {
    format!("child {number}\n").repeat(1 + number % 50).into_bytes()
}

/// Children with three pipes each that all live at once: each writes on both outputs, then prints
/// its input, and exits with its own code. Returns how many threads there were then.
fn crowd(backend: Backend, count: usize) -> usize {
    let mut set = ChildSet::new(limits(backend)).expect("create set");
    let ids = start(&mut set, count, |number| {
        let mut command = test_child(&format!("relay {OUT} {ERR} {number}"));
        command.stdin(Stdio::piped());
        command
    });
    let mut event_log = EventLog::default();
    let until = long_patience();
    let mut waiting = ids.len();
    while waiting > 0 {
        let event = set.next_event_deadline(Some(until)).expect("wait for event").into_event();
        let event = event.unwrap_or_else(|| panic!("{waiting} of {count} have not written"));
        let Some(id) = event.child() else { continue };
        event_log.record(event);
        let outs = &event_log.child(id).outs;
        waiting -= usize::from(outs[0].len() == OUT && outs[1].len() == ERR);
    }
    for id in &ids {
        assert!(lives(set.pid(*id).expect("get pid")), "they do not live at once");
    }
    let threads = threads();
    for (number, id) in ids.iter().enumerate() {
        let words = words_for(number);
        assert_eq!(set.write(*id, &words).expect("write to stdin"), words.len());
        set.close_stdin(*id).expect("close stdin");
    }
    finish(&mut set, &mut event_log, until);
    for (number, id) in ids.iter().enumerate() {
        let record = event_log.child(*id);
        assert!(record.outs[0] == [patterned(OUT), words_for(number)].concat(), "child {number} of {count}");
        assert!(record.outs[1] == patterned(ERR), "child {number} of {count}");
        assert_eq!((record.eofs, record.exit), ([1, 1], Some(ExitStatus::Exited(number as i32))));
        let outcome = event_log.outcome(*id);
        assert!(!outcome.leaked && !outcome.left_running && outcome.dropped == 0, "{number}: {outcome:?}");
    }
    assert_eq!((set.len(), set.buffered_bytes()), (0, 0));
    threads
}

#[test]
fn set_handles_29_to_65_children() {
    each_backend(|backend| {
        for count in [29, 32, 64, 65] {
            crowd(backend, count);
        }
    });
}

#[test]
fn set_handles_1021_children_with_few_threads() {
    alone("windows::set_handles_1021_children_with_few_threads", || {
        let before = threads();
        let backend = minder::Backend::available().next().expect("find first backend");
        let more = crowd(backend, 1021).saturating_sub(before);
        assert!(more <= 2 + 1021_usize.div_ceil(63), "{more} threads more");
    });
}

/// Returns how many threads this process has beyond `before` while 130 silent children run.
fn threads_with(before: usize, backend: Backend, command: impl Fn(usize) -> Command) -> usize {
    const COUNT: usize = 130;
    // Threads of the pool of Windows stay for some seconds after their last work.
    let until = patience();
    while threads() > before && Instant::now() < until {
        nap(Duration::from_millis(20));
    }
    let mut set = ChildSet::new(limits(backend)).expect("create set");
    assert_eq!(start(&mut set, COUNT, command).len(), COUNT);
    // Late starts are done by then.
    let mut event_log = EventLog::default();
    event_log.read_until(&mut set, Instant::now() + Duration::from_millis(200), |_| false);
    let more = threads().saturating_sub(before);
    assert!(more <= 2 + COUNT.div_ceil(63), "{more} threads more for {COUNT} children, on {backend}");
    set.kill_all(Termination::IMMEDIATE).expect("kill all children");
    finish(&mut set, &mut event_log, long_patience());
    more
}

/// Returns a silent child: it reads its stdin, to which nothing is written.
fn reader(_number: usize) -> Command {
    let mut command = test_child("cat");
    command.stdin(Stdio::piped());
    command
}

#[test]
fn threads_do_not_grow_with_pipes_and_little_with_children() {
    alone("windows::threads_do_not_grow_with_pipes_and_little_with_children", || {
        let before = threads();
        each_backend(|backend| {
            let bare = threads_with(before, backend, |_| quiet_child("sleep-ms 600000"));
            let piped = threads_with(before, backend, reader);
            assert!(piped <= bare, "{piped} threads with pipes, {bare} without, on {backend}");
        });
    });
}

#[test]
fn one_writer_is_read_at_once_among_300_silent_children() {
    alone("windows::one_writer_is_read_at_once_among_300_silent_children", || {
        // Every backend reads outputs through the same port.
        let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
        start(&mut set, 300, reader);
        let talker = start(&mut set, 1, reader)[0];
        let mut event_log = EventLog::default();
        let mut best = Duration::MAX;
        // From our write to its echo, which is more than what is asked for. The best of a few, on a busy
        // machine.
        for round in 1..=5 {
            let begun = Instant::now();
            assert_eq!(set.write(talker, b"word\n").expect("write to stdin"), 5);
            let heard = |event_log: &EventLog| event_log.child(talker).outs[0].len() == 5 * round;
            assert!(event_log.read_until(&mut set, patience(), heard));
            best = best.min(begun.elapsed());
        }
        assert!(best < Duration::from_millis(500), "heard after {best:?}");
        set.kill_all(Termination::IMMEDIATE).expect("kill all children");
        finish(&mut set, &mut event_log, long_patience());
    });
}

#[test]
#[ignore = "takes minutes: cargo xtask wine --full"]
fn set_handles_2048_children() {
    alone("windows::set_handles_2048_children", || {
        many_that_end_at_once(2048, true);
    });
}

/// Wine's server has about 5.1 descriptors for each child, so that there are at most `ulimit -n` /
/// 5.1 of them.
#[test]
#[ignore = "takes minutes: cargo xtask wine --full"]
fn set_handles_3600_children() {
    alone("windows::set_handles_3600_children", || {
        many_that_end_at_once(3600, false);
    });
}

/// Children that share one input, and end with it.
fn many_that_end_at_once(count: usize, pipes: bool) {
    let begun = Instant::now();
    let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
    let (gate, opener) = std::io::pipe().expect("create pipe");
    let gate = Stdio::shared(std::sync::Arc::new(crate::support::file(gate)));
    let ids = start(&mut set, count, |number| {
        let mut command = quiet_child(&format!("relay {} 0 {number}", if pipes { OUT } else { 0 }));
        command.stdin(gate.clone());
        if pipes {
            command.stdout(Stdio::piped());
        }
        command
    });
    let started = begun.elapsed();
    let mut event_log = EventLog::default();
    // Their output is read meanwhile, so that none of them is held by a full pipe when it is to
    // end.
    let all = |event_log: &EventLog| ids.iter().all(|id| event_log.child(*id).outs[0].len() == OUT);
    assert!(!pipes || read_rarely(&mut set, &mut event_log, all), "not all have written");
    let living = ids.iter().filter(|id| lives(set.pid(**id).expect("get pid"))).count();
    assert_eq!(living, ids.len(), "they do not live at once");
    drop(opener);
    let opened = Instant::now();
    finish(&mut set, &mut event_log, long_patience());
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(event_log.child(*id).exit, Some(ExitStatus::Exited(number as i32)));
        assert!(!pipes || event_log.child(*id).outs[0] == patterned(OUT), "child {number}");
    }
    eprintln!(
        "{} of {count} children lived at once: started in {started:.1?}, ended in {:.1?}",
        ids.len(),
        opened.elapsed()
    );
}

/// As the event log does, with a look at all of them only where nothing comes for a moment.
fn read_rarely(set: &mut ChildSet, event_log: &mut EventLog, enough: impl Fn(&EventLog) -> bool) -> bool {
    let until = long_patience();
    while Instant::now() < until {
        match set
            .next_event_deadline(Some(Instant::now() + Duration::from_millis(50)))
            .expect("wait for event")
            .into_event()
        {
            Some(event) => event_log.record(event),
            None if enough(event_log) => return true,
            None => (),
        }
    }
    false
}

#[test]
fn exit_codes_keep_all_32_bits() {
    each_backend(|backend| {
        let codes: [u32; 7] = [0, 1, 255, 256, 0x7fff_ffff, 0xc000_013a, 0xffff_ffff];
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let ids = codes.map(|code| {
            ["exit", "kill-self"].map(|verb| {
                set.spawn(&quiet_child(&format!("{verb} {code}")), SpawnOptions::default())
                    .expect("spawn test child")
            })
        });
        let mut event_log = EventLog::default();
        event_log.wait_all(&mut set);
        for (code, ids) in codes.into_iter().zip(ids) {
            for id in ids {
                assert_eq!(
                    event_log.outcome(id).exit.status,
                    ExitStatus::Exited(code.cast_signed()),
                    "{code:x}"
                );
            }
        }
    });
}

#[test]
fn kill_ends_every_tree() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let ids: Vec<_> = (0..8)
            .map(|_| set.spawn(&test_child("tree 4"), SpawnOptions::default()).expect("spawn test child"))
            .collect();
        let mut event_log = EventLog::default();
        let all = |event_log: &EventLog| ids.iter().all(|id| event_log.text(*id).lines().count() == 4);
        assert!(event_log.read_until(&mut set, patience(), all));
        let of = |event_log: &EventLog, id| -> Vec<u32> {
            event_log.text(id).lines().filter_map(|line| line.parse().ok()).collect()
        };
        set.kill(ids[0], Termination::IMMEDIATE).expect("kill tree");
        assert!(
            event_log.read_until(&mut set, patience(), |event_log| event_log.child(ids[0]).done.is_some())
        );
        assert!(!of(&event_log, ids[0]).into_iter().any(lives), "a process is alive after Done");
        assert!(ids[1..].iter().all(|id| of(&event_log, *id).into_iter().all(lives)), "others were killed");
        set.kill_all(Termination::IMMEDIATE).expect("kill all trees");
        event_log.wait_all(&mut set);
        for id in ids {
            assert!(!of(&event_log, id).into_iter().any(lives), "a process is alive after Done");
            assert!(killed(event_log.outcome(id).exit.status, 9) && !event_log.outcome(id).left_running);
        }
    });
}

#[test]
fn suspend_is_unsupported() {
    let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
    let id = set.spawn(&quiet_child("sleep-ms 600000"), SpawnOptions::default()).expect("spawn test child");
    assert_eq!(set.suspend(id).expect_err("suspend child on Windows").kind(), ErrorKind::Unsupported);
    set.kill_all(Termination::IMMEDIATE).expect("kill all children");
    EventLog::default().wait_all(&mut set);
}

/// Starts what starts twenty trees of two, which print their pids; ends it abruptly,
/// and sees whether all forty end with it.
fn end_with_its_trees(command: &mut Command) {
    command.group(Group::Inherit).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut runner = command.spawn().expect("spawn test child");
    let lines = BufReader::new(runner.stdout.take().expect("take stdout")).lines();
    let all: Vec<u32> =
        lines.take(40).map(|line| line.expect("read line").parse().expect("parse number")).collect();
    assert!(all.len() == 40 && all.iter().all(|pid| lives(*pid)), "they do not live at once");
    end(runner.id());
    let until = Instant::now() + Duration::from_secs(10);
    while let Some(left) = all.iter().find(|pid| lives(**pid)) {
        assert!(Instant::now() < until, "{left} lives on");
        nap(Duration::from_millis(5));
    }
    runner.wait().expect("wait for child");
}

#[test]
fn killed_host_leaves_no_process() {
    end_with_its_trees(&mut test_child("herd 20 tree 2"));
}

#[test]
fn killed_command_leaves_no_process() {
    let state = tempfile::tempdir().expect("create temporary directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_minder-dup"));
    command.args(["run", "-u", "-j20", TEST_CHILD, "tree", "2", "{}", ":::"]);
    command.args((0..20).map(|job| job.to_string())).env("MINDER_STATE_DIR", state.path());
    end_with_its_trees(&mut command);
}
