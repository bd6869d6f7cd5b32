//! Features of Windows alone: names that are not text, two kinds of slashes, long paths, exit codes
//! of 32 bits, `\r\n`, and runs that are ended by TerminateProcess.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::windows::ffi::OsStringExt;
use std::path::PathBuf;

use super::{Run, job_bytes, jobs_in, minder, path, run_to_end, run_with_input, temp_dir};
use crate::support::{self, TEST_CHILD};

/// Returns an argument with an unpaired surrogate. Windows accepts it in a name; UTF-8 cannot
/// express it.
fn unpaired() -> OsString {
    OsString::from_wide(&[u16::from(b'a'), 0xd800, u16::from(b'.'), u16::from(b'b')])
}

/// Creates a directory whose path is longer than 260 units, the limit of old programs.
fn deep(below: &tempfile::TempDir) -> PathBuf {
    let deep = (0..6).fold(below.path().to_owned(), |path, _| path.join("x".repeat(60)));
    fs::create_dir_all(&deep).expect("create directory");
    deep
}

#[test]
fn unpaired_surrogates_reach_the_job() {
    let mut command = minder("run -j1 CHILD echo-args {} <{.}> {/} :::");
    let ended = Run::start(command.arg(unpaired())).wait().exit_code(0).stderr("");
    assert_eq!(ended.text(), "\"a\\u{d800}.b\"\n\"<a\\u{d800}>\"\n\"a\\u{d800}.b\"\n");
}

#[test]
fn unpaired_surrogates_are_recorded_exactly() {
    let dir = temp_dir();
    let state = dir.path().join("state");
    let late = dir.path().join("late.exe");
    let mut command = minder(&format!("run -j1 {} echo-args {{}} :::", path(&late)));
    Run::start(command.arg(unpaired()).env("MINDER_STATE_DIR", &state)).wait().exit_code(255);
    fs::copy(TEST_CHILD, &late).expect("copy program");
    let mut command = minder("run --resume last");
    let ended = Run::start(command.env("MINDER_STATE_DIR", &state)).wait().exit_code(0);
    assert_eq!(ended.text(), "\"a\\u{d800}.b\"\n");
    let mut command = minder("log last --json");
    let json = Run::start(command.env("MINDER_STATE_DIR", &state)).wait().exit_code(0).text();
    // Its bytes as the standard library has them (WTF-8).
    assert!(json.contains(r#""args":[{"base64":"Ye2ggC5i"}]"#), "{json}");
}

#[test]
fn both_slashes_separate_path_components() {
    for (value, name, dir, stem, bare) in [
        (r"C:\a\b.txt", "b.txt", r"C:\a", r"C:\a\b", "b"),
        ("C:/a/b.txt", "b.txt", "C:/a", "C:/a/b", "b"),
        (r"a/b\c.txt", "c.txt", "a/b", r"a/b\c", "c"),
        (r"\\server\share\x.y", "x.y", r"\\server\share\", r"\\server\share\x", "x"),
        // With a slash behind the directory it has to be this file again.
        ("C:x.txt", "x.txt", "C:.", "C:x", "x"),
    ] {
        let mut command = minder("run -j1 CHILD echo-args {/} {//} {.} {/.} :::");
        let ended = Run::start(command.arg(value)).wait().exit_code(0);
        let wanted: String = [name, dir, stem, bare].iter().map(|part| format!("{part:?}\n")).collect();
        assert_eq!(ended.text(), wanted, "{value}");
    }
}

#[test]
fn carriage_return_is_stripped_only_before_a_newline() {
    assert_eq!(
        run_with_input("run -j1 CHILD echo-args", b"\xef\xbb\xbfa\r\nb\r\n").exit_code(0).text(),
        "\"a\"\n\"b\"\n"
    );
    // With an explicit delimiter, a record is everything before it.
    assert_eq!(
        run_with_input("run -j1 -d \\n CHILD echo-args", b"a\r\nb").exit_code(0).text(),
        "\"a\\r\"\n\"b\"\n"
    );
    assert_eq!(
        run_with_input("run -j1 -0 CHILD echo-args", b"a\r\0b\r\n\0").exit_code(0).text(),
        "\"a\\r\"\n\"b\\r\\n\"\n"
    );
}

#[test]
fn three_hundred_jobs_deliver_every_byte() {
    let jobs: String = (0..300).map(|id| format!("{id},{},{},0\n", 256 + id, 300 - id)).collect();
    let ended = run_with_input("run -j16 CHILD job", jobs.as_bytes()).exit_code(0);
    for stream in [&ended.out, &ended.errors] {
        let mut ids = jobs_in(stream);
        ids.sort_unstable();
        assert_eq!(ids, (0..300).collect::<Vec<_>>());
    }
    assert!((0..=255).all(|byte| job_bytes(0, 256).contains(&byte)));
}

#[test]
fn exit_codes_keep_all_32_bits() {
    let dir = temp_dir();
    let joblog = dir.path().join("joblog");
    for (code, said, written) in [
        (1_u32, "exit 1", "1"),
        (255, "exit 255", "255"),
        (256, "exit 256", "256"),
        (0x7fff_ffff, "exit 2147483647", "2147483647"),
        (0xc000_013a, "exit 0xc000013a", "-1073741510"),
        (0xffff_ffff, "exit 0xffffffff", "-1"),
    ] {
        let line = format!("run -j1 --joblog {} CHILD exit ::: {code}", path(&joblog));
        run_to_end(&line).exit_code(1).stderr_contains(said);
        let log = super::file(&joblog);
        let row: Vec<&str> = log.lines().last().expect("find last row").split('\t').collect();
        assert_eq!((row[6], row[7]), (written, "0"), "{log}");
    }
    run_to_end("run -j1 CHILD exit ::: 0 0").exit_code(0).stderr("");
}

/// `minder` inside of a build with this jobserver.
fn in_build(line: &str, server: &str) -> minder::Command {
    let mut command = minder(line);
    command.env_remove("CARGO_MAKEFLAGS").env("MAKEFLAGS", format!("-j3 --jobserver-auth={server}"));
    command
}

#[test]
fn jobs_take_and_return_jobserver_tokens() {
    let dir = temp_dir();
    let go = dir.path().join("go");
    let name = format!("minder-test-{}", std::process::id());
    let tokens = support::Tokens::new(&name, 2);
    let line = format!("run --no-record -j8 CHILD await {} {{}} ::: 1 2 3 4 5 6", path(&go));
    let mut live = Run::start(&in_build(&line, &name));
    let runner = live.pid();
    // The first needs none.
    for jobs in [3, 4] {
        live.wait_until_true("a job for each token", || support::children_of(runner).len() == jobs);
        live.read_for(std::time::Duration::from_millis(300));
        assert_eq!((support::children_of(runner).len(), tokens.take_all()), (jobs, 0), "more than were lent");
        if jobs == 3 {
            tokens.put();
        }
    }
    fs::write(&go, "").expect("write file");
    assert_eq!(live.wait().exit_code(0).stderr("").sorted(), ["1", "2", "3", "4", "5", "6"]);
    assert_eq!(tokens.take_all(), 3);
}

#[test]
fn failed_jobs_return_tokens() {
    let name = format!("minder-test-fail-{}", std::process::id());
    let tokens = support::Tokens::new(&name, 2);
    Run::start(&in_build("run --no-record --quiet -j8 CHILD exit {} ::: 1 2 3 4", &name)).wait().exit_code(4);
    assert_eq!(tokens.take_all(), 2);
}

#[test]
fn missing_jobserver_is_reported_once() {
    let ended = Run::start(&in_build("run --no-record -j4 CHILD exit ::: 0 0", "minder-test-none"))
        .wait()
        .exit_code(0);
    assert_eq!(ended.err.lines().filter(|line| line.contains("jobserver")).count(), 1, "{}", ended.err);
    ended.stderr_contains("cannot use make's jobserver `minder-test-none`");
}

/// Ends a run of that many jobs at once, abruptly, and looks for survivors.
fn ends_with_its_jobs(degree: usize) {
    let mut command = minder(&format!("run -j{degree} CHILD sleep-ms 600000 :::"));
    let mut live = Run::start(command.args((0..degree + 3).map(|job| job.to_string())));
    let runner = live.pid();
    live.wait_until_true("all jobs", || support::children_of(runner).len() >= degree);
    live.read_for(std::time::Duration::from_millis(300));
    let jobs = support::children_of(runner);
    assert_eq!(jobs.len(), degree, "more run than were asked for");
    live.kill();
    live.wait_until_true("the end of all jobs", || !jobs.iter().any(|job| support::lives(*job)));
    live.wait().killed();
}

#[test]
fn sixty_four_jobs_end_with_the_run() {
    ends_with_its_jobs(64);
}

#[test]
fn sixty_five_jobs_end_with_the_run() {
    ends_with_its_jobs(65);
}

#[test]
fn two_hundred_jobs_end_with_the_run() {
    ends_with_its_jobs(200);
}

#[test]
fn long_paths_are_accepted() {
    let dir = temp_dir();
    let deep = deep(&dir);
    let list = deep.join("list");
    let results = deep.join("results");
    fs::write(&list, "a\nb\n").expect("write file");
    let line = format!("run -k -j1 -a {} --results {} CHILD echo-args", path(&list), path(&results));
    assert_eq!(run_to_end(&line).exit_code(0).stderr("").text(), "\"a\"\n\"b\"\n");
    assert_eq!(super::file(&results.join("1").join("b").join("stdout")), "\"b\"\n");
    let line = format!("run --no-record --joblog {} CHILD exit ::: 0", path(&deep.join("joblog")));
    run_to_end(&line).exit_code(0).stderr("");
    assert_eq!(super::file(&deep.join("joblog")).lines().count(), 2);
}

#[test]
#[ignore = "Wine starts no program whose path is longer than 259 units"]
fn long_program_path_is_accepted() {
    let dir = temp_dir();
    let program = deep(&dir).join("child.exe");
    fs::copy(TEST_CHILD, &program).expect("copy program");
    assert_eq!(
        run_to_end(&format!("run {} echo-args ::: a", path(&program))).exit_code(0).stderr("").text(),
        "\"a\"\n"
    );
}

#[test]
fn long_working_directory_is_entered_or_reported() {
    let dir = temp_dir();
    let deep = deep(&dir);
    // Windows takes at most 258 units for it ("CreateProcessW", lpCurrentDirectory), unless it was
    // set up otherwise.
    let ended = run_to_end(&format!("run -j1 --wd {} CHILD cwd ::: 1", path(&deep)));
    let name = deep.file_name().and_then(OsStr::to_str).expect("get name");
    let known = if ended.status.success() { ended.text() } else { ended.err.clone() };
    assert!(known.contains(name), "{ended:?}");
    assert!(ended.status.success() || known.contains("longer than the 258 characters"), "{ended:?}");
}

#[test]
fn unrunnable_program_is_reported_with_the_reason() {
    let dir = temp_dir();
    let text = dir.path().join("text.exe");
    fs::write(&text, "no program\r\n").expect("write file");
    run_to_end(&format!("run -j2 {} ::: a b", path(&text)))
        .exit_code(2)
        .stderr_contains("text.exe")
        .stderr_contains("not a program");
    let ended = run_to_end(&format!("run -j2 {} ::: a b", path(dir.path())));
    assert!(!ended.status.success() && ended.err.contains("cannot run `"), "{}", ended.err);
}

#[test]
fn overlong_command_lines_fail_only_their_jobs() {
    let input = format!("a\n{}\nz\n", "x".repeat(40_000));
    let ended = run_with_input("run -j1 CHILD count-args", input.as_bytes()).exit_code(1);
    assert_eq!(ended.text(), "1\n1\n");
    assert!(
        ended.err.len() < 4096 && ended.err.contains("longer than the 32,766 characters"),
        "{}",
        ended.err
    );
}

#[test]
fn xargs_fills_each_batch_file_call() {
    let dir = temp_dir();
    let batch = dir.path().join("all.bat");
    fs::write(&batch, "@echo %*\r\n").expect("write file");
    let input = (1..=5000).map(|number| format!("{number} ü\n")).collect::<String>();
    let ended =
        run_with_input(&format!("run -k --xargs {}", path(&batch)), input.as_bytes()).exit_code(0).stderr("");
    let said = String::from_utf8_lossy(&ended.out).into_owned();
    let found =
        said.split('"').filter_map(|part| part.split_once(' ')?.0.parse::<u32>().ok()).collect::<Vec<_>>();
    assert_eq!(found, (1..=5000).collect::<Vec<_>>());
    // 8,191 units less those around them, and nine each.
    assert_eq!(said.lines().count(), 6);
}
