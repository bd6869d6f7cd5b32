//! Machines that have run out of something, and odd circumstances. What mistakes lead to is in
//! `messages.rs`.

use super::{Run, minder, run_with_input};
#[cfg(unix)]
use super::{file, input, is_public, is_root, minder_as, path, temp_dir};
#[cfg(unix)]
use crate::support::CHILD;

#[test]
fn missing_column_is_reported_once() {
    run_with_input("run -j4 CHILD echo-args {2}", &b"x\n".repeat(5000))
        .exit_code(255)
        .error_line(&["`{2}`", "second column"]);
}

#[test]
fn backend_is_selected_by_the_environment() {
    let mut command = minder("run -j3 CHILD echo-args ::: 1 2 3");
    let last = if cfg!(windows) { "iocp" } else { "poll" };
    let ended = Run::start(command.env("MINDER_BACKEND", last)).wait().exit_code(0).stderr("");
    assert_eq!(ended.sorted(), ["\"1\"", "\"2\"", "\"3\""]);
    Run::start(command.env("MINDER_BACKEND", "magic")).wait().exit_code(255).error_line(&["magic", last]);
    let mut command = minder(&format!("run --backend {last} CHILD exit ::: 0"));
    Run::start(command.env("MINDER_BACKEND", "magic")).wait().exit_code(0);
}

#[cfg(unix)] // The statuses of a shell.
#[test]
fn limit_command_that_is_no_program_ends_the_run() {
    for compat in ["run", "parallel"] {
        let ended =
            super::run_to_end(&format!("{compat} --limit 3 CHILD touch never 0 ::: 1 2")).exit_code(255);
        ended.error_line(&["--limit: cannot run `3` (exit 127): expected a command"]);
    }
}

/// A control group of the first version with a limit of memory.
#[cfg(target_os = "linux")]
#[test]
fn memfree_obeys_the_limit_of_a_control_group() {
    let group = std::path::PathBuf::from(format!("/sys/fs/cgroup/memory/minder-test-{}", std::process::id()));
    let limit = group.join("memory.limit_in_bytes");
    if std::fs::create_dir(&group).is_err() || std::fs::write(&limit, "200M").is_err() {
        let _ = std::fs::remove_dir(&group);
        return crate::support::skip(format_args!("only root may make a control group of version 1 here"));
    }
    let run = |size: &str| {
        let mut command = minder::Command::new("sh");
        let line = format!("echo $$ >'{}/cgroup.procs'; exec \"$@\"", group.display());
        command.args(["-c", &line, "sh", super::MINDER, "run", "--memfree", size, "echo", ":::", "1"]);
        command.env("MINDER_STATE_DIR", super::STATE);
        Run::start(command.stdout(minder::Stdio::piped()).stderr(minder::Stdio::piped())).wait()
    };
    let refused = run("1G");
    let ran = run("20M");
    // The group is busy until its last process has been reaped.
    let end = crate::support::patience();
    while std::fs::remove_dir(&group).is_err() && std::time::Instant::now() < end {
        std::thread::yield_now();
    }
    refused.exit_code(255).error_line(&["--memfree: 1.0 GiB is more than the 200 MiB that this machine or"]);
    assert_eq!(ran.exit_code(0).text(), "1\n");
}

#[cfg(unix)] // A limit of descriptors.
#[test]
fn few_descriptors_only_slow_the_run() {
    for backend in crate::support::backends() {
        let lines: String = (0..600).map(|job| format!("{job:03}\n")).collect();
        let line = format!("run -j100 --backend {backend} CHILD echo-args");
        let ended = Run::start(minder_as("nofile=64", &line).stdin(input(lines.as_bytes())))
            .wait()
            .exit_code(0)
            .stderr("");
        let expected: Vec<String> = lines.lines().map(|line| format!("{line:?}")).collect();
        assert_eq!(ended.sorted(), expected, "{backend}");
    }
}

/// A run that is refused before a job ran leaves no record. One that began has an end, and can be resumed.
#[cfg(unix)] // The same.
#[test]
fn record_of_a_run_without_descriptors_is_complete_or_absent() {
    let mut kinds = std::collections::BTreeSet::new();
    for limit in 14..32 {
        let place = super::record::Place::new();
        let line = "run --tmpdir DIR CHILD echo-args ::: a".replace("DIR", path(&place.at("here")));
        let mut command = minder_as(&format!("nofile={limit}"), &line);
        let ended = Run::start(command.env("MINDER_STATE_DIR", place.at("state"))).wait();
        let listed = place.ended("log").exit_code(0).text();
        eprintln!("{limit}: {} {listed}", ended.err.trim_end());
        if ended.status.success() {
            kinds.insert("succeeded");
            continue;
        }
        if place.runs().is_empty() {
            kinds.insert("refused");
            assert_eq!(std::fs::read_dir(place.at("here")).map_or(0, Iterator::count), 0, "{limit}");
            continue;
        }
        kinds.insert("aborted");
        assert!(listed.contains("aborted · 1 left · minder resume "), "{limit}: {listed}");
        assert_eq!(place.ended("resume last").exit_code(0).text(), "\"a\"\n");
    }
    assert_eq!(kinds.len(), 3, "{kinds:?}");
}

#[cfg(unix)] // The same.
#[test]
fn too_few_descriptors_for_one_job_fail_at_once() {
    let mut kinds = 0;
    for limit in (5..40).step_by(3) {
        let ended =
            Run::start(&minder_as(&format!("nofile={limit}"), "run -j4 CHILD echo-args ::: 1 2 3")).wait();
        if ended.status.success() {
            assert_eq!(ended.sorted().len(), 3, "{limit}: {ended:?}");
            continue;
        }
        kinds += 1;
        eprintln!("{limit}: {}", ended.err.trim_end());
        assert!(ended.out.is_empty(), "{limit}: {ended:?}");
        assert!(ended.wall < super::SOON, "{limit}: {:?}", ended.wall);
        if limit >= 14 {
            ended.exit_code(255).error_line(&["too many open files"]);
        }
    }
    assert!(kinds > 2, "even 5 descriptors were enough");
}

/// Whatever cannot be opened, the message names the program and the hint.
#[cfg(unix)] // The same.
#[test]
fn relay_without_descriptors_names_its_program() {
    let mut kinds = 0;
    let program = CHILD.trim_matches('\'');
    for limit in 7..20 {
        for flag in ["", "--pty"] {
            let line = format!("relay {flag} CHILD exit 0");
            let ended = Run::start(&minder_as(&format!("nofile={limit}"), &line)).wait();
            if ended.status.success() {
                continue;
            }
            kinds += 1;
            let last = ended.err.lines().last().unwrap_or_default().to_owned();
            let names = last.contains(&format!("cannot relay `{program}`: "))
                || last.contains(&format!("failed to start `{program}`: "));
            assert!(
                names && last.ends_with("(`minder doctor` shows the limits)"),
                "{limit} {flag}: {}",
                ended.err
            );
        }
    }
    assert!(kinds > 2, "7 descriptors were enough");
}

#[cfg(unix)] // The same.
#[test]
fn xargs_without_descriptors_fails_as_xargs() {
    for limit in [8, 12, 16] {
        let mut command = minder_as(&format!("nofile={limit}"), "xargs CHILD echo-args");
        let ended = Run::start(command.stdin(input(b"a\n"))).wait().exit_code(1);
        assert!(ended.err.starts_with("xargs: ") && ended.err.contains("too many open files"), "{ended:?}");
    }
}

/// Returns a user id without other processes, even of the same test in another run. 65534
/// has some on many machines.
#[cfg(unix)]
fn user(place: u32) -> u32 {
    50_000 + 2 * (std::process::id() % 7_000) + place
}

#[cfg(unix)] // A limit of a user's processes.
#[test]
fn few_processes_only_slow_the_run() {
    if !is_root() || !is_public(super::MINDER) {
        crate::support::skip(format_args!("a limit of processes needs a user without any, and so root"));
        return;
    }
    let dir = temp_dir();
    let log = dir.path().join("log");
    let lines: String = (0..60).map(|job| format!("{job:02}\n")).collect();
    // Two guardians, a runner and its threads, and a few jobs that run long enough to meet.
    let changes = format!("user={},nproc=14", user(0));
    let mut command = minder_as(&changes, "run --no-record -j50");
    command.arg(format!("{CHILD} sleep-ms 20; {CHILD} append {} {{}}", path(&log)));
    let ended = Run::start(command.env("TMPDIR", dir.path()).stdin(input(lines.as_bytes()))).wait();
    let mut ran: Vec<String> = file(&log).lines().map(str::to_owned).collect();
    ran.sort();
    eprintln!("{}", ended.err);
    // A shell that finds no process for its own command fails; the job was run, once.
    assert!(ran.windows(2).all(|pair| pair[0] != pair[1]), "run twice: {ran:?}");
    let dir = super::temp_dir();
    let log = dir.path().join("log");
    let mut command = minder_as(&changes, &format!("run --no-record -j50 CHILD append {}", path(&log)));
    let ended = Run::start(command.stdin(input(lines.as_bytes()))).wait().exit_code(0).stderr("");
    assert_eq!(ended.sorted().join("\n") + "\n", lines);
    let mut ran: Vec<String> = file(&log).lines().map(str::to_owned).collect();
    ran.sort();
    assert_eq!(ran.join("\n") + "\n", lines);
}

#[cfg(unix)] // The same.
#[test]
fn few_processes_lose_no_input_of_streams() {
    if !is_root() || !is_public(super::MINDER) {
        crate::support::skip(format_args!("a limit of processes needs a user without any, and so root"));
        return;
    }
    let dir = temp_dir();
    let lines = |count: u32| (1..=count).map(|line| format!("{line}\n")).collect::<String>();
    let run = |flags: &str, count: u32| {
        let changes = format!("user={},nproc=10", user(5));
        let mut command = minder_as(&changes, &format!("run --no-record -j40 --pipe {flags} cat"));
        let ended =
            Run::start(command.env("TMPDIR", dir.path()).stdin(input(lines(count).as_bytes()))).wait();
        assert!(ended.wall < super::SOON, "{flags}: {:?}", ended.wall);
        ended
    };
    // The input waits for the jobs that start later.
    for flags in ["--shard 1", "--bin 1", "--round-robin"] {
        let ended = run(flags, 5000).exit_code(0).stderr("");
        let mut got: Vec<u32> = ended.text().lines().map(|line| line.parse().expect("parse line")).collect();
        got.sort_unstable();
        assert!(got.into_iter().eq(1..=5000), "{flags}: lines are missing");
    }
    // More input than waits: the jobs that run get the rest only when all have started.
    for (flags, count) in
        [("--shard 1", 4_000_000), ("--round-robin --block 10k", 200_000), ("--tee", 400_000)]
    {
        let said = "cannot start all jobs of `--";
        run(flags, count).exit_code(255).error_line(&[said, flags.split(' ').next().unwrap_or_default()]);
    }
}

#[cfg(unix)] // The same.
#[test]
fn benchmark_of_threads_needs_as_many_as_it_names() {
    if !is_root() || !is_public(super::MINDER) {
        crate::support::skip(format_args!("a limit of processes needs a user without any, and so root"));
        return;
    }
    let flags = "--workload io --runner threads --repetitions 1 --bias 20 --count 8 --degree 8 --csv";
    let mut kinds = std::collections::BTreeSet::new();
    for most in [0, 1, 2, 4, 6, 20] {
        let changes = format!("user={},nproc={most}", user(3));
        let ended = Run::start(&minder_as(&changes, &format!("bench turnaround {flags}"))).wait();
        let last = ended.err.lines().last().unwrap_or_default().to_owned();
        eprintln!("{most}: {last}");
        assert!(!ended.err.contains("panicked"), "{most}: {}", ended.err);
        if ended.status.success() {
            assert_eq!(ended.text().lines().count(), 2, "{most}: {ended:?}");
            kinds.insert("measured");
            continue;
        }
        let ended = ended.exit_code(255);
        assert!(last.ends_with("(`minder doctor` shows the limits)"), "{most}: {last}");
        let kind = ["cannot start a thread: ", "cannot start 8 threads: the system allows "];
        kinds.extend(kind.into_iter().filter(|kind| last.starts_with(&format!("minder: {kind}"))));
        assert!(ended.out.is_empty(), "{most}: {ended:?}");
    }
    assert_eq!(kinds.len(), 3, "{kinds:?}");
}

#[cfg(unix)] // The same.
#[test]
fn no_free_process_fails_at_once() {
    if !is_root() || !is_public(super::MINDER) {
        crate::support::skip(format_args!("a limit of processes needs a user without any, and so root"));
        return;
    }
    for most in 1..=6 {
        let ended = Run::start(&minder_as(
            &format!("user={},nproc={most}", user(1)),
            "run --no-record -j4 CHILD echo-args ::: 1 2",
        ))
        .wait();
        eprintln!("{most}: {}", ended.err.trim_end());
        if !ended.status.success() {
            assert!(ended.out.is_empty(), "{most}: {ended:?}");
            ended.exit_code(255).error_line(&["minder doctor"]);
        }
    }
}

#[cfg(unix)] // Signals.
#[test]
fn inherited_signal_dispositions_do_no_harm() {
    // SIGCHLD ignored: the kernel would reap children before their status is read.
    for changes in
        ["ignore=17", "block=17", "ignore=17,block=2,block=15,block=1,block=18", "ignore=13,block=13"]
    {
        let ended = Run::start(&minder_as(changes, "run -j3 CHILD exit ::: 0 5 0 6 0")).wait().exit_code(2);
        assert!(ended.err.contains("exit 5") && ended.err.contains("exit 6"), "{changes}: {}", ended.err);
        let mut line = minder_as(changes, "run -j1");
        line.arg("grep SigBlk /proc/self/status; : {}").args([":::", "1"]);
        let blocked = Run::start(&line).wait();
        if cfg!(target_os = "linux") {
            assert_eq!(blocked.exit_code(0).text(), "SigBlk:\t0000000000000000\n", "{changes}");
        }
    }
}

#[cfg(unix)] // A limit of the size of files.
#[test]
fn file_size_limit_is_a_full_disk_for_us_and_a_signal_for_jobs() {
    let dir = temp_dir();
    let child = crate::support::TEST_CHILD;
    let run = |words: &str| {
        let mut command = super::from("/bin/sh", "-c");
        command.arg(format!("ulimit -f 1; exec \"$0\" run {words}")).arg(super::MINDER);
        Run::start(command.current_dir(dir.path()).env("MINDER_STATE_DIR", dir.path())).wait()
    };
    // One block of 512 or 1024 bytes.
    let ended =
        run(&format!("--no-record --joblog log -j1 \"{child}\" exit ::: $(seq 0 9999 | sed 's/.*/0/')"))
            .exit_code(255);
    assert!(ended.err.contains("file too large"), "{ended:?}");
    let ended = run(&format!("--no-record 'echo {{}}; \"{child}\" spew 100000 >large' ::: 1")).exit_code(1);
    assert!(ended.text() == "1\n" && ended.err.contains("1 failed"), "{ended:?}");
}

#[cfg(unix)] // A limit of the stack.
#[test]
fn too_small_stack_is_reported() {
    for (limit, code) in [(64, 255), (1024, 0)] {
        let mut command = super::from("/bin/sh", "-c");
        command.arg(format!("ulimit -s {limit}; exec \"$0\" run --no-record echo ::: a")).arg(super::MINDER);
        let ended = Run::start(&command).wait().exit_code(code);
        assert_eq!(ended.err.contains("stack limit is 64 KiB"), code != 0, "{ended:?}");
    }
}

#[test]
fn dry_run_fails_the_jobs_that_a_run_would_fail() {
    for (words, code) in [("-x a -y", 2_u8), ("a b", 0)] {
        let mut command = super::minder("run --no-record --dry-run --no-dash-values echo :::");
        let ended = Run::start(command.args(words.split(' '))).wait().exit_code(code.into());
        assert_eq!(ended.err.lines().count(), usize::from(code), "{ended:?}");
    }
}

#[cfg(target_os = "linux")] // The limits are those of Linux.
#[test]
fn memory_and_processor_time_of_each_process_are_limited() {
    let run = |flags: &str, line: &str| Run::start(minder(flags).args([line, ":::", "a"])).wait();
    let ended = run("run --memory-max 2G --cpu-max 1.2", ": {}; ulimit -v; ulimit -t; ulimit -Ht");
    assert_eq!(ended.exit_code(0).text(), "2097152\n2\n3\n");
    let ended = run("run --cpu-max 1", ": {}; while :; do :; done").exit_code(1);
    assert!(ended.err.contains("(killed by XCPU, "), "{}", ended.err);
}
