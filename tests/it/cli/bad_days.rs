//! Machines that have run out of something, and odd circumstances. What mistakes lead to is in
//! `messages.rs`.

use super::{Live, fed, minder};
#[cfg(unix)]
use super::{file, folder, input, is_public, is_root, minder_as, path};
#[cfg(unix)]
use crate::kit::KID;

#[test]
fn a_column_that_is_not_there_is_named_once() {
    fed("run -j4 KID echo-args {2}", &b"x\n".repeat(5000)).code(255).complains(&["`{2}`", "second column"]);
}

#[test]
fn the_backend_is_chosen_by_the_environment_too() {
    let mut command = minder("run -j3 KID echo-args ::: 1 2 3");
    let last = if cfg!(windows) { "iocp" } else { "poll" };
    let ended = Live::start(command.env("MINDER_BACKEND", last)).finish().code(0).says("");
    assert_eq!(ended.sorted(), ["\"1\"", "\"2\"", "\"3\""]);
    Live::start(command.env("MINDER_BACKEND", "magic")).finish().code(255).complains(&["magic", last]);
    let mut command = minder(&format!("run --backend {last} KID exit ::: 0"));
    Live::start(command.env("MINDER_BACKEND", "magic")).finish().code(0);
}

#[cfg(unix)] // A limit of descriptors.
#[test]
fn few_descriptors_make_it_slower_and_nothing_else() {
    for backend in crate::kit::backends() {
        let lines: String = (0..600).map(|job| format!("{job:03}\n")).collect();
        let line = format!("run -j100 --backend {backend} KID echo-args");
        let ended = Live::start(minder_as("nofile=64", &line).stdin(input(lines.as_bytes())))
            .finish()
            .code(0)
            .says("");
        let expected: Vec<String> = lines.lines().map(|line| format!("{line:?}")).collect();
        assert_eq!(ended.sorted(), expected, "{backend}");
    }
}

#[cfg(unix)] // The same.
#[test]
fn too_few_descriptors_for_a_single_job_are_an_error_at_once() {
    let mut kinds = 0;
    for limit in (5..40).step_by(3) {
        let ended =
            Live::start(&minder_as(&format!("nofile={limit}"), "run -j4 KID echo-args ::: 1 2 3")).finish();
        if ended.status.success() {
            assert_eq!(ended.sorted().len(), 3, "{limit}: {ended:?}");
            continue;
        }
        kinds += 1;
        eprintln!("{limit}: {}", ended.err.trim_end());
        assert!(ended.out.is_empty(), "{limit}: {ended:?}");
        assert!(ended.wall < std::time::Duration::from_secs(10), "{limit}: {:?}", ended.wall);
        if limit >= 14 {
            ended.code(255).complains(&["too many open files"]);
        }
    }
    assert!(kinds > 2, "even 5 descriptors were enough");
}

/// A user whose processes nobody else counts, not even the same test of another run. 65534 is
/// everybody's nobody.
#[cfg(unix)]
fn user(place: u32) -> u32 {
    50_000 + 2 * (std::process::id() % 7_000) + place
}

#[cfg(unix)] // A limit of a user's processes.
#[test]
fn few_processes_make_it_slower_and_nothing_else() {
    if !is_root() || !is_public(super::MINDER) {
        crate::kit::skip(format_args!("a limit of processes needs a user without any, and so root"));
        return;
    }
    let folder = folder();
    let log = folder.path().join("log");
    let lines: String = (0..60).map(|job| format!("{job:02}\n")).collect();
    // Two guardians, a runner and its threads, and a few jobs that run long enough to meet.
    let changes = format!("user={},nproc=14", user(0));
    let mut command = minder_as(&changes, "run --no-record -j50");
    command.arg(format!("{KID} sleep-ms 20; {KID} append {} {{}}", path(&log)));
    let ended = Live::start(command.env("TMPDIR", folder.path()).stdin(input(lines.as_bytes()))).finish();
    let mut ran: Vec<String> = file(&log).lines().map(str::to_owned).collect();
    ran.sort();
    eprintln!("{}", ended.err);
    // A shell that finds no process for its own command fails; the job was run, once.
    assert!(ran.windows(2).all(|pair| pair[0] != pair[1]), "run twice: {ran:?}");
    let folder = super::folder();
    let log = folder.path().join("log");
    let mut command = minder_as(&changes, &format!("run --no-record -j50 KID append {}", path(&log)));
    let ended = Live::start(command.stdin(input(lines.as_bytes()))).finish().code(0).says("");
    assert_eq!(ended.sorted().join("\n") + "\n", lines);
    let mut ran: Vec<String> = file(&log).lines().map(str::to_owned).collect();
    ran.sort();
    assert_eq!(ran.join("\n") + "\n", lines);
}

#[cfg(unix)] // The same.
#[test]
fn no_process_at_all_is_an_error_at_once() {
    if !is_root() || !is_public(super::MINDER) {
        crate::kit::skip(format_args!("a limit of processes needs a user without any, and so root"));
        return;
    }
    for most in 1..=6 {
        let ended = Live::start(&minder_as(
            &format!("user={},nproc={most}", user(1)),
            "run --no-record -j4 KID echo-args ::: 1 2",
        ))
        .finish();
        eprintln!("{most}: {}", ended.err.trim_end());
        if !ended.status.success() {
            assert!(ended.out.is_empty(), "{most}: {ended:?}");
            ended.code(255).complains(&["minder doctor"]);
        }
    }
}

#[cfg(unix)] // Signals.
#[test]
fn what_the_parent_ignored_or_blocked_does_no_harm() {
    // SIGCHLD ignored: the system would reap children before their status is read.
    for changes in
        ["ignore=17", "block=17", "ignore=17,block=2,block=15,block=1,block=18", "ignore=13,block=13"]
    {
        let ended = Live::start(&minder_as(changes, "run -j3 KID exit ::: 0 5 0 6 0")).finish().code(2);
        assert!(ended.err.contains("exit 5") && ended.err.contains("exit 6"), "{changes}: {}", ended.err);
        let mut line = minder_as(changes, "run -j1");
        line.arg("grep SigBlk /proc/self/status; : {}").args([":::", "1"]);
        let blocked = Live::start(&line).finish();
        if cfg!(target_os = "linux") {
            assert_eq!(blocked.code(0).text(), "SigBlk:\t0000000000000000\n", "{changes}");
        }
    }
}

#[cfg(unix)] // A limit of the size of files.
#[test]
fn a_file_that_may_not_grow_is_a_full_disk_to_us_and_a_signal_to_jobs() {
    let (folder, kid) = (folder(), crate::kit::TESTKID);
    let run = |words: &str| {
        let mut command = super::from("/bin/sh", "-c");
        command.arg(format!("ulimit -f 1; exec \"$0\" run {words}")).arg(super::MINDER);
        Live::start(command.current_dir(folder.path()).env("MINDER_STATE_DIR", folder.path())).finish()
    };
    // One block of 512 or 1024 bytes.
    let ended =
        run(&format!("--no-record --joblog log -j1 \"{kid}\" exit ::: $(seq 0 9999 | sed 's/.*/0/')"))
            .code(255);
    assert!(ended.err.contains("file too large"), "{ended:?}");
    let ended = run(&format!("--no-record 'echo {{}}; \"{kid}\" spew 100000 >large' ::: 1")).code(1);
    assert!(ended.text() == "1\n" && ended.err.contains("1 failed"), "{ended:?}");
}

#[cfg(unix)] // A limit of the stack.
#[test]
fn a_stack_that_is_too_small_is_said() {
    for (limit, code) in [(64, 255), (1024, 0)] {
        let mut command = super::from("/bin/sh", "-c");
        command.arg(format!("ulimit -s {limit}; exec \"$0\" run --no-record echo ::: a")).arg(super::MINDER);
        let ended = Live::start(&command).finish().code(code);
        assert_eq!(ended.err.contains("stack limit is 64 KiB"), code != 0, "{ended:?}");
    }
}

#[test]
fn jobs_that_could_not_run_are_told_by_a_dry_run_as_by_a_run() {
    for (words, code) in [("-x a -y", 2_u8), ("a b", 0)] {
        let mut command = super::minder("run --no-record --dry-run --no-dash-values echo :::");
        let ended = Live::start(command.args(words.split(' '))).finish().code(code.into());
        assert_eq!(ended.err.lines().count(), usize::from(code), "{ended:?}");
    }
}
