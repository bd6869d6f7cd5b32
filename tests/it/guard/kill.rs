//! Victims, states and workloads: survivors and status of each.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getpid};

use super::harness::{
    MIX, MIX_ALIVE, Pids, Setting, command_line, every_process, group_of, is_root, kill, note, private_copy,
    race_seconds, send, send_group, skip, stat, wait_for,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Outer,
    Inner,
    Runner,
    OuterRunner,
    InnerRunner,
    /// Both guardians; only ever stopped.
    Both,
    Group,
    Session,
    /// As `timeout -s KILL` does: the process, then the group.
    OuterThenGroup,
    /// As `pkill -9 -x` does.
    Name,
    /// As `pkill -9 -f` does.
    Path,
}
use Victim::{Both, Group, Inner, InnerRunner, Name, Outer, OuterRunner, OuterThenGroup, Runner, Session};

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Running,
    Stopped(Victim),
    CtrlZ,
}
use State::{CtrlZ, Running, Stopped};

impl Victim {
    fn pids(self, pids: Pids) -> Vec<Pid> {
        match self {
            Outer => vec![pids.outer],
            Inner => vec![pids.inner],
            Runner => vec![pids.runner],
            OuterRunner => vec![pids.outer, pids.runner],
            InnerRunner => vec![pids.inner, pids.runner],
            Both => vec![pids.outer, pids.inner],
            Group | Session | OuterThenGroup | Name | Victim::Path => vec![],
        }
    }

    fn kill(self, pids: Pids, program: &Path) {
        for pid in self.pids(pids) {
            kill(pid);
        }
        let program = program.to_str().expect("path is UTF-8");
        match self {
            Group => send_group(pids.outer, Signal::KILL),
            OuterThenGroup => {
                let runner = pids.runner;
                kill(pids.outer);
                // The group lives on in the runner.
                if group_of(runner) == Some(pids.outer) {
                    let _ = rustix::process::kill_process_group(pids.outer, Signal::KILL);
                }
            }
            Session => {
                let session = stat(pids.outer).expect("read stat of process")[4].clone();
                assert_ne!(Some(&session), stat(getpid()).map(|s| s[4].clone()).as_ref(), "not ours");
                kill_each(|pid| stat(pid).is_some_and(|s| s[4] == session));
            }
            Name => {
                let name = program.rsplit_once('/').expect("find file name").1;
                kill_each(|pid| stat(pid).is_some_and(|s| s[0] == name));
            }
            Victim::Path => kill_each(|pid| command_line(pid).contains(program)),
            _ => {}
        }
    }
}

/// Kills every process for which `chosen` holds, except this one.
fn kill_each(chosen: impl Fn(Pid) -> bool) {
    for pid in every_process(chosen) {
        kill(pid);
    }
}

/// Starts a run, brings it into the state, kills the victim, and checks that all processes end.
fn case(victim: Victim, state: State, before: &[&str], words: &[&str], alive: usize) -> Duration {
    let what = format!("{state:?}, kill {victim:?}, {before:?} {words:?}");
    let dir = tempfile::tempdir().expect("create temporary directory");
    let name = format!("gk{}", std::process::id());
    let by_name = matches!(victim, Name | Victim::Path);
    let program = by_name.then(|| private_copy(dir.path(), &name, 0o755));
    let shell = ["session", "holding-shell", "REPORT"];
    let all: Vec<&str> = match state {
        CtrlZ => shell.into_iter().chain(before.iter().copied()).collect(),
        _ => ["session"].into_iter().chain(before.iter().copied()).collect(),
    };
    let mut setting = Setting::new(&all, words);
    if let Some(program) = &program {
        setting.program = program;
    }
    let mut run = setting.start();
    let pids = run.ready();
    run.expect_alive(alive);
    match state {
        Running => {}
        Stopped(victim) => {
            for pid in victim.pids(pids) {
                stop(pid);
            }
        }
        CtrlZ => {
            send_group(pids.outer, Signal::TSTP);
            run.expect_line("stopped", 1);
        }
    }
    let killed = Instant::now();
    victim.kill(pids, program.as_deref().unwrap_or(Path::new("/nothing")));
    let took = run.expect_gone(killed, &what);
    if state == CtrlZ && victim != Session {
        run.expect_line("ended None Some(9)", 1);
    } else {
        assert_eq!(run.shell_status(), 137, "{what}");
    }
    took
}

fn stop(pid: Pid) {
    send(pid, Signal::STOP);
    let stopped = wait_for(|| stat(pid).filter(|s| s[1] == "T"));
    assert!(stopped.is_some(), "{pid:?} stops");
}

/// All cases once, and again until the time for races has ended.
fn cases(all: &[(Victim, State)], before: &[&str], words: &[&str], alive: usize) {
    let until = Instant::now() + Duration::from_secs(race_seconds());
    let mut worst = Duration::ZERO;
    loop {
        for &(victim, state) in all {
            worst = worst.max(case(victim, state, before, words, alive));
        }
        if Instant::now() >= until {
            break;
        }
    }
    note(&format!("worst of {} {before:?} {words:?}: {} ms", all.len(), worst.as_millis()));
}

#[test]
fn killing_one_or_two_guard_processes_ends_the_tree() {
    let all = [Outer, Inner, Runner, OuterRunner, InnerRunner].map(|victim| (victim, Running));
    cases(&all, &[], &MIX, MIX_ALIVE);
}

#[test]
fn killing_group_session_name_or_path_ends_the_tree() {
    let all = [Group, Session, OuterThenGroup, Name, Victim::Path].map(|victim| (victim, Running));
    cases(&all, &[], &MIX, MIX_ALIVE);
}

#[test]
fn killing_one_while_another_is_stopped_ends_the_tree() {
    let three = [Outer, Inner, Runner];
    let pairs = three.iter().flat_map(|s| three.iter().filter(move |k| *k != s).map(|k| (*k, Stopped(*s))));
    // Two stopped: only the kernel can wake the one that has to act.
    let both = [(Runner, Stopped(Both)), (OuterRunner, Stopped(Inner)), (InnerRunner, Stopped(Outer))];
    cases(&pairs.chain(both).collect::<Vec<_>>(), &[], &MIX, MIX_ALIVE);
}

#[test]
fn killing_a_run_stopped_by_the_terminal_ends_the_tree() {
    let all = [Outer, Inner, Runner, OuterRunner, InnerRunner, Group, Session].map(|victim| (victim, CtrlZ));
    cases(&all, &[], &MIX, MIX_ALIVE);
}

#[test]
fn four_hundred_sessions_are_killed() {
    cases(&[(Outer, Running), (Runner, Running), (Inner, Running), (Group, Running)], &[], &["many"], 400);
}

#[test]
fn twenty_forking_daemons_are_killed() {
    cases(&[(Outer, Running), (Runner, Running), (Inner, Running), (Group, Running)], &[], &["comet"; 20], 3);
}

#[test]
fn nested_run_is_killed() {
    // The inner run has three own processes and three jobs.
    let all = [Outer, Inner, Runner, Group].map(|victim| (victim, Running));
    cases(&all, &[], &["run", "plain"], 3 + 1 + 6);
}

#[test]
fn tree_is_killed_without_children_files() {
    let words: Vec<&str> = MIX.into_iter().chain(["no-children-file=1"]).collect();
    cases(&[(Outer, Running), (Inner, Running), (Group, Running)], &[], &words, MIX_ALIVE);
}

#[test]
fn tree_is_killed_without_pidfds() {
    let words: Vec<&str> = MIX.into_iter().chain(["no-pidfd=1"]).collect();
    let all =
        [(Outer, Running), (Inner, Running), (Runner, Running), (Group, Running), (Outer, Stopped(Inner))];
    cases(&all, &[], &words, MIX_ALIVE);
}

#[test]
fn unprivileged_guard_kills_the_tree() {
    if !is_root() {
        return skip("only root can become another user");
    }
    let dir = tempfile::tempdir().expect("create temporary directory");
    let program = private_copy(dir.path(), "guard_child", 0o755);
    for victim in [Outer, Inner, Runner, Group] {
        let mut setting = Setting::new(&["session", "unprivileged"], &MIX);
        setting.program = &program;
        let mut run = setting.start();
        let pids = run.ready();
        run.expect_alive(MIX_ALIVE);
        let killed = Instant::now();
        victim.kill(pids, Path::new("/nothing"));
        run.expect_gone(killed, &format!("unprivileged, {victim:?}"));
        assert_eq!(run.shell_status(), 137);
    }
}

#[test]
fn killing_both_guardians_usually_ends_the_tree() {
    // The exception: the guardian that sees the other's death first kills the runner, and may be
    // killed before it has killed the jobs. When neither got so far, the runner ends its own tree.
    // Of twenty times, that is one at least.
    let ended = (0..20).any(|_| {
        let mut run = super::harness::start(&["plain", "setsid", "ignore", "stopped", "nested"]);
        let pids = run.ready();
        run.expect_alive(3 + 15);
        kill(pids.inner);
        kill(pids.outer);
        assert_eq!(run.shell_status(), 137);
        let killed = Instant::now();
        wait_for(|| (run.alive().is_empty() || killed.elapsed() > Duration::from_millis(300)).then_some(()));
        run.alive().is_empty()
    });
    assert!(ended);
}

#[test]
fn runner_without_guardians_ends_its_own_tree() {
    let mut run =
        super::harness::start(&["alone=1", "plain", "setsid", "ignore", "stopped", "nested", "end=die"]);
    assert_eq!(run.shell_status(), 130);
    run.expect_gone(Instant::now(), "alone");
}

#[test]
fn tree_is_swept_without_a_free_descriptor() {
    for victim in [Outer, Inner, Runner, OuterRunner, InnerRunner] {
        let mut run = super::harness::start(&["plain", "setsid", "daemon", "nested"]);
        let pids = run.ready();
        run.expect_alive(3 + 10);
        for guardian in [pids.outer, pids.inner] {
            // As when the machine's table of open files is full: what is open stays, and nothing more can be
            // opened.
            let none = Rlimit { current: Some(0), maximum: Some(0) };
            rustix::process::prlimit(Some(guardian), Resource::Nofile, none).expect("set resource limit");
        }
        let killed = Instant::now();
        victim.kill(pids, Path::new("/nothing"));
        run.expect_gone(killed, &format!("without descriptors, {victim:?}"));
        assert_eq!(run.shell_status(), 137);
    }
}

#[test]
fn orphans_of_another_user_do_not_block_the_shell() {
    if !is_root() {
        return skip("only root can make a program setuid root");
    }
    let dir = tempfile::tempdir().expect("create temporary directory");
    let program = private_copy(dir.path(), "guard_child", 0o755);
    let setuid = private_copy(dir.path(), "setuid", 0o4755);
    let job = format!("litter:{}", setuid.display());
    let mut setting = Setting::new(&["session", "unprivileged"], &["plain", &job]);
    setting.program = &program;
    let said = dir.path().join("said");
    setting.stderr = std::fs::File::create(&said).expect("create file").into();
    let mut run = setting.start();
    let pids = run.ready();
    let is_root_job = |pid: &Pid| command_line(*pid).ends_with("job litter ");
    let found = wait_for(|| run.alive().into_iter().find(is_root_job).filter(|p| owner(*p) == Some(0)));
    let root_job = found.expect("find job that became root");
    kill(pids.runner);
    // It gives up in time: this has a deadline.
    assert_eq!(run.shell_status(), 137);
    let said = std::fs::read_to_string(said).expect("read file");
    assert!(said.contains("could not end process"), "{said:?}");
    kill(root_job);
    wait_for(|| run.alive().is_empty().then_some(()));
}

#[test]
fn process_of_another_user_is_reported_and_left() {
    if !is_root() {
        return skip("only root can make a program setuid root");
    }
    let dir = tempfile::tempdir().expect("create temporary directory");
    let program = private_copy(dir.path(), "guard_child", 0o755);
    let setuid = private_copy(dir.path(), "setuid", 0o4755);
    let job = format!("root:{}", setuid.display());
    let mut setting = Setting::new(&["session", "unprivileged"], &["plain", "setsid", &job]);
    setting.program = &program;
    let said = dir.path().join("said");
    // Not a pipe: the process that is left keeps its write end open.
    setting.stderr = std::fs::File::create(&said).expect("create file").into();
    let mut run = setting.start();
    let pids = run.ready();
    let is_root_job = |pid: &Pid| command_line(*pid).ends_with("job root ");
    let found = wait_for(|| run.alive().into_iter().find(is_root_job).filter(|p| owner(*p) == Some(0)));
    let root_job = found.expect("find job that became root");
    kill(pids.runner);
    // It gives up in time: this has a deadline.
    assert_eq!(run.shell_status(), 137);
    let said = std::fs::read_to_string(said).expect("read file");
    assert!(said.starts_with(&format!("minder: could not end process {root_job} `")), "{said:?}");
    assert_eq!(said.lines().count(), 1, "{said:?}");
    assert_eq!(run.alive(), [root_job], "all others are gone");
    kill(root_job);
}

/// Returns the real user id of a process. A setuid program sets it last.
fn owner(pid: Pid) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_whitespace().next()?.parse().ok()
}
