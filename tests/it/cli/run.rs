//! `minder run`'s main job: a command for each argument.

use std::time::Duration;

use super::{Run, file, input, jobs_in, minder, path, run_to_end, run_with_input, temp_dir};
use crate::support::{CHILD, TEST_CHILD};

#[test]
fn arguments_are_passed_without_a_shell() {
    let direct = run_to_end("run -j1 CHILD echo-args $HOME *{}* {} ::: a$(x) b|c").exit_code(0).stderr("");
    assert_eq!(direct.text(), "\"$HOME\"\n\"*a$(x)*\"\n\"a$(x)\"\n\"$HOME\"\n\"*b|c*\"\n\"b|c\"\n");
}

// A POSIX shell's line.
#[cfg(unix)]
#[test]
fn single_argument_is_a_shell_line() {
    let mut line = minder("run -j1");
    line.arg(format!("{CHILD} echo-args \"<{{}}>\" {{}} | cat; exit 3")).args([":::", "a  b", "$(x) 'y", ""]);
    let line = Run::start(&line).wait().exit_code(3);
    assert_eq!(line.text(), "\"<a  b>\"\n\"a  b\"\n\"<$(x) 'y>\"\n\"$(x) 'y\"\n\"<>\"\n\"\"\n");
}

/// A job whose value does not match fails, and the others run.
#[test]
fn only_skips_jobs_whose_values_do_not_match() {
    let ended = run_to_end("run -j1 --only [0-9]+ CHILD echo-args {} ::: 1 a 12 1a 3").exit_code(2);
    assert_eq!(ended.text(), "\"1\"\n\"12\"\n\"3\"\n");
    let ended =
        super::run_to_end("run -j1 --no-dash-values CHILD echo-args {/} ::: 1 -x a/-y 2").exit_code(2);
    assert_eq!(ended.text(), "\"1\"\n\"2\"\n");
    super::run_to_end("run --only ( CHILD exit 0 ::: 1").exit_code(255);
}

#[test]
fn value_without_placeholder_is_appended() {
    assert_eq!(
        run_to_end("run -j1 CHILD echo-args x ::: a b").exit_code(0).text(),
        "\"x\"\n\"a\"\n\"x\"\n\"b\"\n"
    );
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[test]
fn timer_slack_is_that_of_the_flag_or_of_the_user() {
    let ended =
        run_to_end("run -j1 --timer-slack 1.5ms CHILD timer-slack leaf ::: a").exit_code(0).stderr("");
    assert_eq!(ended.text(), "1500000\n");
    let own = rustix::thread::current_timer_slack().expect("read timer slack");
    for flags in ["", "--retries 2 --timeout 60", "--pty", "--delay 0.001 --nice 1"] {
        let ended =
            run_to_end(&format!("run -j2 {flags} CHILD timer-slack leaf ::: a b")).exit_code(0).stderr("");
        assert_eq!(ended.text().replace('\r', ""), format!("{own}\n{own}\n"), "{flags}");
    }
}

#[cfg(not(target_os = "linux"))]
#[test]
fn timer_slack_is_refused_where_timers_have_none() {
    let said = "--timer-slack: the timers of this system have no slack that could be set: leave the flag out";
    run_to_end("run --timer-slack 1ms CHILD exit 0 ::: a").exit_code(255).stderr_contains(said);
}

// POSIX shells' lines.
#[cfg(unix)]
#[test]
fn value_without_placeholder_is_appended_to_a_shell_line() {
    let mut line = minder("run -j1");
    line.arg(format!("exec {CHILD} echo-args x;")).args([":::", "a b"]);
    // After a semicolon a value would be a command.
    let ended = Run::start(&line).wait();
    assert!(!ended.text().contains("\"a b\"\n\"a b\""), "{ended:?}");
    let mut line = minder("run -j1");
    line.arg(format!("{CHILD} echo-args 'x y'")).args([":::", "a b"]);
    assert_eq!(Run::start(&line).wait().exit_code(0).text(), "\"x y\"\n\"a b\"\n");
}

#[test]
fn flags_after_the_command_belong_to_it() {
    let ended =
        run_to_end("run -j1 CHILD echo-args -q --bar -j5 --no-such -- ::: --help --").exit_code(0).stderr("");
    let start = "\"-q\"\n\"--bar\"\n\"-j5\"\n\"--no-such\"\n\"--\"\n";
    assert_eq!(ended.text(), format!("{start}\"--help\"\n{start}\"--\"\n"));
    assert_eq!(
        super::run_to_end("run -j1 -- CHILD echo-args -- ::: a").exit_code(0).text(),
        "\"--\"\n\"a\"\n"
    );
}

// A POSIX shell's line.
#[cfg(unix)]
#[test]
fn shell_flag_selects_the_shell() {
    let dir = temp_dir();
    // Called as `SHELL -c LINE NAME VALUE…`, and known by its name.
    let shell = dir.path().join("dash");
    std::fs::write(&shell, "#!/bin/sh\necho \"$1|$4\"\n").expect("write file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&shell, mode).expect("set permissions");
    let mut command = minder("run -j1 --shell");
    let ended = Run::start(command.arg(&shell).arg("echo {};").args([":::", "a b"])).wait().exit_code(0);
    assert_eq!(ended.text(), "-c|a b\n");
}

#[test]
fn largest_numbers_are_accepted() {
    let most = u64::MAX;
    let ended =
        run_to_end(&format!("run -j{most} --grace {most} CHILD echo-args ::: a b")).exit_code(0).stderr("");
    assert_eq!(ended.sorted(), ["\"a\"", "\"b\""]);
}

#[test]
fn jobs_and_slots_are_numbered() {
    let many = run_to_end("run -j3 CHILD echo-args {#}/{%} ::: a b c d e f g h").exit_code(0);
    let pairs: Vec<(u32, u32)> = many
        .sorted()
        .iter()
        .filter_map(|line| line.trim_matches('"').split_once('/'))
        .map(|(job, slot)| (job.parse().expect("parse number"), slot.parse().expect("parse number")))
        .collect();
    assert_eq!(pairs.iter().map(|pair| pair.0).collect::<Vec<_>>(), (1..=8).collect::<Vec<_>>());
    assert!(pairs.iter().all(|pair| (1..=3).contains(&pair.1)), "{pairs:?}");
}

#[test]
fn job_limit_is_reached_and_never_exceeded() {
    for (degree, jobs) in [(1, 4), (3, 24), (8, 40)] {
        let dir = temp_dir();
        let line = format!("run -j{degree} CHILD meet {} {degree}", path(dir.path()));
        let input: String = (0..jobs).map(|job| format!("{job}\n")).collect();
        let seen: Vec<u32> = run_with_input(&line, input.as_bytes())
            .exit_code(0)
            .text()
            .lines()
            .map(|l| l.parse().expect("parse count"))
            .collect();
        assert_eq!(seen.len(), jobs);
        assert_eq!(seen.iter().max(), Some(&degree), "-j{degree}: {seen:?}");
    }
}

#[test]
fn zero_jobs_means_as_many_as_descriptors_allow() {
    let dir = temp_dir();
    let numbers: Vec<String> = (0..60).map(|job| job.to_string()).collect();
    let mut command = minder(&format!("run -j0 CHILD meet {} 60 :::", path(dir.path())));
    assert_eq!(Run::start(command.args(numbers)).wait().exit_code(0).text().lines().count(), 60);
}

#[test]
fn exit_status_counts_failures_up_to_101() {
    run_to_end("run CHILD exit ::: 0 0 0").exit_code(0).stderr("");
    run_to_end("run CHILD exit ::: 0 7 255").exit_code(2).stderr_contains("3 jobs · 2 failed");
    let many = |count: usize| run_with_input("run -j4 CHILD exit 1", "\n".repeat(count).as_bytes());
    many(100).exit_code(100).stderr_contains("100 jobs · 100 failed");
    many(101).exit_code(101).stderr_contains("and 91 more");
}

// Windows has no signals: what ended a process is its exit code, see `windows.rs`.
#[cfg(unix)]
#[test]
fn job_killed_by_a_signal_has_failed() {
    // A job that a signal ended has failed, too, and the signal is named.
    run_to_end("run CHILD kill-self ::: 9 15")
        .exit_code(2)
        .stderr_contains("killed by KILL")
        .stderr_contains("killed by TERM");
}

#[test]
fn failed_jobs_are_reported_with_their_status() {
    let ended = run_to_end("run -j1 CHILD exit ::: 0 4").exit_code(1);
    let lines: Vec<&str> = ended.err.lines().collect();
    assert!(lines[0].starts_with("minder: 2 jobs · 1 failed · ") && lines[0].contains(" CPU"), "{lines:?}");
    let named = [TEST_CHILD, CHILD].map(|child| format!("minder:   failed: {child} exit 4  (exit 4, "));
    assert!(named.iter().any(|begin| lines[1].starts_with(begin)), "{lines:?}");
    assert_eq!(lines.len(), 2, "all failures are named: {lines:?}");
    let mut many = minder("run -j1 CHILD exit :::");
    let ended = Run::start(many.args(["1"; 11])).wait().exit_code(11);
    let last: Vec<&str> = ended.err.lines().rev().take(2).collect();
    assert!(
        last[0].starts_with("minder:   details: minder log ") && last[0].ends_with(" --failed"),
        "{last:?}"
    );
    assert_eq!(last[1], "minder:   and 1 more");
}

#[test]
fn quiet_hides_failed_jobs_but_not_errors() {
    run_to_end("run --quiet CHILD exit ::: 0 4").exit_code(1).stderr("");
    run_to_end("run --quiet no-such-program-anywhere ::: 1")
        .exit_code(255)
        .error_line(&["no-such-program-anywhere"]);
}

#[test]
fn missing_command_is_reported_once() {
    let arguments = run_to_end("run -j2 no-such-program-anywhere {} ::: a b c").exit_code(255);
    arguments
        .stderr("minder: cannot run `no-such-program-anywhere`: not found in PATH (3 jobs, none started)\n");
    let lines = run_with_input("run -j2 /no/such/program", &b"x\n".repeat(10_000)).exit_code(255);
    lines.error_line(&["cannot run `/no/such/program`: no such file", "(no job was started)"]);
}

#[test]
fn missing_programs_from_values_are_reported_one_by_one() {
    let fine = if cfg!(windows) { "hostname" } else { "true" };
    let ended = run_to_end(&format!("run -j2 {{}} ::: {fine} no-such-1 no-such-2 {fine}")).exit_code(2);
    for name in ["no-such-1", "no-such-2"] {
        assert_eq!(
            ended.err.matches(&format!("cannot run `{name}`: not found in PATH")).count(),
            1,
            "{}",
            ended.err
        );
    }
    assert!(ended.err.contains("4 jobs · 2 failed"), "{}", ended.err);
}

// Modes and `#!` are those of Unix; `windows.rs` has the unrunnable programs there.
#[cfg(unix)]
#[test]
fn unrunnable_program_is_reported_with_the_reason() {
    let dir = temp_dir();
    let [plain, foreign, orphan] = ["plain", "foreign", "orphan"].map(|name| dir.path().join(name));
    let write = |path: &std::path::Path, text: &str, mode: u32| {
        std::fs::write(path, text).expect("write file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("set permissions");
    };
    write(&plain, "#!/bin/sh\n", 0o644);
    write(&foreign, "\x7fELF\x02\x01\x01\0", 0o755);
    write(&orphan, "#!/no/such/interpreter\n", 0o755);
    for (program, reason) in [
        (path(&plain), "permission denied"),
        (path(dir.path()), "is a directory"),
        (path(&orphan), "interpreter"),
    ] {
        // The same for every job, so it is reported once.
        let ended = run_to_end(&format!("run -j2 {program} ::: a b c")).exit_code(255);
        ended.error_line(&[program, reason, "(3 jobs, none started)"]);
    }
    run_to_end(&format!("run -j2 {} ::: a", path(&foreign))).stderr_contains("neither a program");
}

#[test]
fn environment_is_passed_on() {
    let mut command = minder("run -j1 CHILD echo-env");
    let ended = Run::start(command.env("MINDER_TEST_WORD", "a b").args([":::", "1"])).wait().exit_code(0);
    assert!(ended.text().contains("\"MINDER_TEST_WORD\"=\"a b\"\n"), "{}", ended.text());
}

#[test]
fn jobs_have_an_empty_stdin() {
    let ended = run_with_input("run -j1 CHILD count ::: 1 2", b"not for jobs").exit_code(0);
    assert_eq!(ended.text(), "0\n0\n");
}

// Groups of processes are those of Unix.
#[cfg(unix)]
#[test]
fn jobs_have_their_own_process_group() {
    let ids = super::pids(&super::run_to_end("run -j1 CHILD ids ::: 1").exit_code(0).text());
    assert_eq!(ids[0], ids[1], "process and group");
}

// As `/proc` shows it; `handles` has what children inherit on Windows.
#[cfg(target_os = "linux")]
#[test]
fn jobs_inherit_no_descriptor_and_no_signal_state() {
    let ended = run_to_end("run -j4 CHILD fds ::: 1 2 3 4").exit_code(0);
    for line in ended.text().lines() {
        let ours = ["0 /dev/null", "1 pipe:", "2 pipe:"].iter().any(|start| line.starts_with(start));
        assert!(ours, "{}", ended.text());
    }
    let mut line = minder("run -j1");
    line.arg("grep -E 'Sig(Blk|Ign)' /proc/self/status; : {}").args([":::", "1"]);
    let ended = Run::start(&line).wait().exit_code(0);
    let ignored = super::inherited_ignored_signals();
    assert_eq!(ended.text(), format!("SigBlk:\t{:016x}\nSigIgn:\t{ignored:016x}\n", 0));
}

#[test]
fn thousands_of_short_jobs_run_once_each() {
    // Under Wine, a start takes many times as long.
    const JOBS: usize = if cfg!(windows) { 300 } else { 3000 };
    let dir = temp_dir();
    let log = dir.path().join("log");
    let lines: String = (0..JOBS).map(|job| format!("{job:05}\n")).collect();
    let ended = run_with_input(&format!("run -j16 CHILD append {}", path(&log)), lines.as_bytes())
        .exit_code(0)
        .stderr("");
    assert_eq!(ended.sorted().join("\n") + "\n", lines, "what was shown");
    let mut ran: Vec<String> = file(&log).lines().map(str::to_owned).collect();
    ran.sort();
    assert_eq!(ran.join("\n") + "\n", lines, "what was run");
}

#[test]
fn random_jobs_match_a_model() {
    // Under Wine, a start takes many times as long.
    const JOBS: usize = if cfg!(windows) { 50 } else { 200 };
    // xorshift: the same jobs every time, and none like the other.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut specs = Vec::new();
    for id in 0..JOBS {
        let size = [0, 1, 30, 5_000, 70_000, 300_000][random(6) as usize];
        let out = random(size + 1);
        let err = random(size / 3 + 1);
        specs.push((id, out, err, if random(3) == 0 { random(255) + 1 } else { 0 }));
    }
    let text: String =
        specs.iter().map(|(id, out, err, code)| format!("{id},{out},{err},{code}\n")).collect();
    let failed = specs.iter().filter(|spec| spec.3 != 0).count();
    for backend in crate::support::backends() {
        let mut command = minder(&format!("run --quiet -j7 --backend {backend} CHILD job"));
        let ended = Run::start(command.stdin(input(text.as_bytes()))).wait();
        assert_eq!(ended.status, minder::ExitStatus::Exited(failed as i32), "{backend}");
        for stream in [&ended.out, &ended.errors] {
            let mut ids = jobs_in(stream);
            ids.sort_unstable();
            assert_eq!(ids, (0..JOBS).collect::<Vec<_>>(), "{backend}");
        }
    }
}

// A POSIX shell's line.
#[cfg(unix)]
#[test]
fn nested_run_reads_a_pipe() {
    let lines = "1\n2\n3\n";
    let mut command = minder("run -j3");
    command
        .arg(format!("printf 'a\\nb\\n' | '{}' run -j1 {CHILD} echo-args {{}}", super::MINDER))
        .stdin(input(lines.as_bytes()));
    let ended = Run::start(&command).wait().exit_code(0);
    for own in ["1", "2", "3"] {
        assert!(ended.text().contains(&format!("\"{own}\"\n\"a\"\n\"{own}\"\n\"b\"\n")), "{}", ended.text());
    }
}

#[test]
fn nested_run_reads_a_file() {
    let dir = temp_dir();
    let list = dir.path().join("list");
    std::fs::write(&list, "a\nb\n").expect("write file");
    let inner = format!("MINDER run -j1 -a {} CHILD echo-args {{}}", path(&list));
    let ended = run_to_end(&format!("run -j3 {inner} ::: 1 2 3")).exit_code(0);
    for own in ["1", "2", "3"] {
        assert!(ended.text().contains(&format!("\"{own}\"\n\"a\"\n\"{own}\"\n\"b\"\n")), "{}", ended.text());
    }
}

#[test]
fn tag_escapes_control_characters() {
    let mut command = minder("run -k --tag CHILD echo-args :::");
    let ended = Run::start(command.args(["a\nb", "c\td", "e\x1b[31mf", "plain"])).wait().exit_code(0);
    let text = ended.text();
    let tags: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once('\t')?.0)).collect();
    assert_eq!(tags, ["a\\nb", "c\\td", "e\\x1b[31mf", "plain"], "{text:?}");
}

#[test]
fn unusable_directory_fails_only_its_job() {
    let dir = temp_dir();
    std::fs::write(dir.path().join("file"), "").expect("write file");
    let mut command = minder("run -j2 -k --wd");
    command.current_dir(dir.path()).args(["{}", TEST_CHILD, "echo-args", "{}", ":::", "a", "file", "", "b"]);
    let ended = Run::start(&command).wait().exit_code(2);
    assert_eq!(ended.text(), "\"a\"\n\"b\"\n", "{ended:?}");
    assert!(ended.err.contains("4 jobs · 2 failed"), "{ended:?}");
    // An error of all jobs is reported once.
    let mut command = minder("run -j2 --wd file CHILD echo-args ::: a b");
    let ended = Run::start(command.current_dir(dir.path())).wait().exit_code(255);
    ended.error_line(&["cannot make `file`"]);
}

#[cfg(unix)] // `./a` without an extension is a program there.
#[test]
fn program_is_looked_up_in_each_directory() {
    let dir = temp_dir();
    for name in ["a", "b", "c"] {
        std::fs::create_dir(dir.path().join(name)).expect("create directory");
    }
    for name in ["a", "c"] {
        std::os::unix::fs::symlink(TEST_CHILD, dir.path().join(name).join("child"))
            .expect("create symbolic link");
    }
    let mut command = minder("run -j1 -k --wd {} ./child echo-args {} ::: a b c");
    let ended = Run::start(command.current_dir(dir.path())).wait().exit_code(1);
    assert_eq!(ended.text(), "\"a\"\n\"c\"\n", "{ended:?}");
}

#[test]
fn template_file_is_never_overwritten() {
    let dir = temp_dir();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("write file");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).ok();
    let run = |flags: &str| {
        let mut command = minder("run -k");
        Run::start(command.current_dir(dir.path()).args(super::arguments(flags))).wait()
    };
    write("tpl", "<{}>");
    for (name, code) in [("tpl", 255), ("./tpl", 255), ("{}", 1)] {
        let ended = run(&format!("--template tpl={name} CHILD exit 0 ::: tpl")).exit_code(code);
        assert!(ended.err.contains("it is the template"), "{ended:?}");
        assert_eq!(read("tpl").as_deref(), Some("<{}>"), "{name}");
    }
    write("mine", "of the user");
    run("--cleanup --template tpl={} CHILD exit 0 ::: mine new").exit_code(0);
    assert_eq!((read("mine").as_deref(), read("new")), (Some("<mine>"), None));
}

#[test]
fn unlimited_retries_pause_between_attempts() {
    let dir = temp_dir();
    let tries = dir.path().join("tries");
    let mut command = minder("run --retries 0");
    let line = format!("CHILD append {} x; exit 1; : {{}}", super::path(&tries));
    let mut live = Run::start(super::with_script(&mut command, &line).args([":::", "a"]));
    live.wait_until_true("the first attempt", || tries.exists());
    // The first delay is a second, with a jitter of ±50 %.
    live.read_for(Duration::from_millis(300));
    assert_eq!(std::fs::read(&tries).expect("read file"), b"x\n");
    live.wait_until_true("the second attempt", || std::fs::read(&tries).is_ok_and(|bytes| bytes.len() > 2));
}

#[test]
fn jobs_know_their_number_and_slot() {
    let out = run_to_end("run -j1 -k -n0 CHILD echo-env ::: a b").exit_code(0).text();
    let own: Vec<&str> =
        out.lines().filter(|line| line.contains("MINDER_JOB") || line.contains("MINDER_SLOT")).collect();
    let expected =
        ["\"MINDER_JOB\"=\"1\"", "\"MINDER_SLOT\"=\"1\"", "\"MINDER_JOB\"=\"2\"", "\"MINDER_SLOT\"=\"1\""];
    assert_eq!(own, expected);
}

#[test]
fn exit_status_of_xargs_tells_kinds_of_failures_apart() {
    let status = |words: &str, code: i32| {
        run_to_end(&format!("run -j1 --quiet --exit-status xargs {words}")).exit_code(code);
    };
    status("CHILD exit ::: 0 0", 0);
    status("CHILD exit ::: 0 3 7", 123);
    status("CHILD exit ::: 3 255 0", 124);
    status("no-such-command ::: 1", 127);
    run_with_input("run --words --exit-status xargs CHILD exit", b"'0").exit_code(1);
    #[cfg(unix)]
    status("CHILD kill-self ::: 9", 125);
    run_to_end("run -j1 --quiet CHILD exit ::: 3 7").exit_code(2);
}

#[test]
fn env_substitutes_placeholders() {
    let out = run_to_end("run -j1 -k --env STAGE=<{}>{#} CHILD echo-env ::: a b").exit_code(0).text();
    let stages: Vec<&str> = out.lines().filter(|line| line.contains("STAGE")).collect();
    assert_eq!(stages, ["\"STAGE\"=\"<a>1\"", "\"STAGE\"=\"<b>2\""]);
}

#[test]
fn value_in_env_or_wd_is_not_appended() {
    let dir = temp_dir();
    let at = path(dir.path());
    let args = |flags: &str| {
        run_to_end(&format!("run -k {flags} ::: a b"))
            .exit_code(0)
            .text()
            .lines()
            .collect::<Vec<_>>()
            .join("|")
    };
    assert_eq!(args("--env STAGE={} CHILD echo-args x"), "\"x\"|\"x\"");
    assert_eq!(args(&format!("--wd {at}/{{/}} CHILD echo-args x")), "\"x\"|\"x\"");
    // A number is not a value, and a placeholder in the command stays.
    assert_eq!(args("--env SLOT={#} CHILD echo-args x"), "\"x\"|\"a\"|\"x\"|\"b\"");
    assert_eq!(args("--env STAGE={} CHILD echo-args {}{}"), "\"aa\"|\"bb\"");
    // A placeholder in the name does not use the value.
    assert_eq!(args("--env {} CHILD echo-args x"), "\"x\"|\"a\"|\"x\"|\"b\"");
    // Messages tell the jobs apart.
    let ended = run_to_end("run --env STAGE={} CHILD exit 3 ::: one two").exit_code(2);
    assert!(ended.err.contains("exit 3  # one  (exit 3, ") && ended.err.contains("# two"), "{}", ended.err);
}

#[test]
fn setting_with_a_value_takes_none_from_other_commands() {
    let mut command = minder("run CHILD echo-args ::: a");
    let ended = Run::start(command.env("MINDER_RUN_ENV", "STAGE={}")).wait().exit_code(255);
    ended.error_line(&["MINDER_RUN_ENV", "type the flag"]);
    let mut command = minder("run CHILD echo-args ::: a");
    let ended = Run::start(command.env("MINDER_RUN_ENV", "STAGE={#}")).wait().exit_code(0);
    assert_eq!(ended.text(), "\"a\"\n");
}

#[cfg(unix)] // A script.
#[test]
fn program_is_found_in_the_path_of_env() {
    let dir = temp_dir();
    for (name, text) in [("one", "1"), ("two", "2")] {
        std::fs::create_dir(dir.path().join(name)).expect("create directory");
        let tool = dir.path().join(name).join("tool");
        std::fs::write(&tool, format!("#!/bin/sh\necho {text}\n")).expect("write file");
        std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("change mode");
    }
    let at = path(dir.path());
    assert_eq!(
        run_to_end(&format!("run --env PATH={at}/none:{at}/two tool ::: x")).exit_code(0).text(),
        "2\n"
    );
    let out = run_to_end(&format!("run -k --env PATH={at}/{{}} tool ::: one two")).exit_code(0);
    assert_eq!(out.text(), "1\n2\n");
    // `sh` is in the PATH of this process only.
    run_to_end(&format!("run --env PATH={at} sh ::: x")).exit_code(255).stderr_contains("sh`");
}
