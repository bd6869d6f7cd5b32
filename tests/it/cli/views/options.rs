//! The flags about output: their effects, their output and their errors.

use std::fs;

#[cfg(unix)]
use minder::{Group, Size};

use super::{Run, is_known, minder, path, run_to_end, run_with_input, shell, temp_dir};

#[test]
fn conflicting_flags_are_one_line_of_error() {
    let pairs = [
        "--lb -k",
        "--lb -u",
        "-k --line-buffer",
        "-u -k",
        "-u --tag",
        "-u --tagstring x",
        "-u --names x",
        "--tag --names x",
        "-u --results /tmp/x",
        "-u --spool",
        "-u --pty",
        "--pty --spool",
        "--spool --lb",
        "--quiet --verbose",
        "--no-record --sync",
        "--no-record --redact-args",
    ];
    for pair in pairs {
        let ended = run_to_end(&format!("run {pair} CHILD exit ::: 0")).exit_code(255);
        let said = ended.err.trim_end();
        assert_eq!(said.lines().count(), 1, "`{pair}`: {said}");
        assert!(said.starts_with("minder: ") && said.contains("cannot be used with"), "`{pair}`: {said}");
        assert_eq!(ended.out.len(), 0);
    }
}

#[test]
fn buffer_sizes_are_checked() {
    for (size, why) in [
        ("1k", "minimum is 64k"),
        ("0", "minimum is 64k"),
        ("x", "invalid number"),
        ("99999999999G", "too large"),
    ] {
        let ended = run_to_end(&format!("run --buffer {size} CHILD exit ::: 0"))
            .exit_code(255)
            .stderr_contains(why)
            .stderr_contains("--buffer");
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    }
    for size in ["64k", "64K", "1m", "2G", "65536"] {
        run_to_end(&format!("run --buffer {size} CHILD exit ::: 0")).exit_code(0).stderr("");
    }
}

#[cfg(unix)] // Shell lines.
#[test]
fn tags_and_colors_never_follow_an_open_line() {
    let text = |flags: &str, line: &str| {
        let mut command = minder(&format!("run --quiet {flags}"));
        Run::start(command.arg(line).args([":::", "0", "1", "0", "0"])).wait().text()
    };
    for flags in ["-k", "-j1", "-j1 --lb", "-k --no-record", "-k --spool", "-j1 --pty"] {
        let tagged = text(&format!("{flags} --tag"), "printf %s {}");
        assert_eq!(tagged, "0\t0\n1\t1\n0\t0\n0\t0", "{flags}");
    }
    assert_eq!(text("-k --tag", "echo {}; printf x"), "0\t0\n0\tx\n1\t1\n1\tx\n0\t0\n0\tx\n0\t0\n0\tx");
    // Longer than what is kept of a line.
    let long = text("-j1 --lb --tag", "head -c 2000000 /dev/zero | tr '\\0' x; : {}").replace('x', "");
    assert_eq!(long, "0\t\n1\t\n0\t\n0\t");
    let red = "\x1b[48;5;196;38;5;231m\x1b[K1\x1b[m\n";
    for flags in ["-k", "-j1", "-k --no-record", "-k --spool"] {
        let failed = text(&format!("{flags} --color-failed"), "printf %s {}; exit {}");
        assert_eq!(failed, format!("0\n{red}00"), "{flags}");
    }
    let mut gnu = minder("parallel -j1 --tag");
    let gnu = Run::start(gnu.arg("printf %s {}").args([":::", "0", "1"])).wait().exit_code(0);
    assert_eq!(gnu.text(), "0\t01\t1");
}

#[test]
fn tag_is_the_argument_or_a_template() {
    assert_eq!(
        run_to_end("run --tag -k -j2 CHILD lines 2 0 ; ::: a").exit_code(0).text(),
        "a\tline 0\na\tline 1\n"
    );
    let ended =
        run_with_input("run -k -j2 --tagstring <{#}:{/}> CHILD echo-args", b"x/y\nz z\n").exit_code(0);
    assert_eq!(ended.text(), "<1:y>\t\"x/y\"\n<2:z z>\t\"z z\"\n");
    // Errors are tagged as well, empty lines too; what has no end stays without.
    let line = "printf 'one\\n\\ntwo'; printf 'err' >&2";
    for view in ["--tag -j1", "--tag -j2", "--tag --lb", "--tag --spool", "--tag -k", "--tag --buffer 64k"] {
        let ended = Run::start(&shell(view, line, &["t"])).wait().exit_code(0);
        assert_eq!((ended.text().as_str(), ended.err.as_str()), ("t\tone\nt\t\nt\ttwo", "t\terr"), "{view}");
    }
    // Nothing written, nothing tagged; any bytes may be a tag.
    assert_eq!(super::run_to_end("run --tag CHILD exit ::: 0").exit_code(0).out.len(), 0);
    // On Windows, what is not text cannot be an argument.
    if cfg!(unix) {
        let ended = run_with_input("run --tag -j1 CHILD raw", b"\xff\xfe\n").exit_code(0);
        assert_eq!(ended.out, b"\xff\xfe\t\xff\xfe");
    }
}

#[test]
fn dry_run_prints_and_changes_nothing() {
    let dir = temp_dir();
    let state = dir.path().join("state");
    let mark = dir.path().join("mark");
    let results = dir.path().join("results");
    let all = ["", "-k", "--spool", "--lb", "-u", "--pty", "--joblog", "--results", "--tmpdir /no/such"];
    for flags in all.into_iter().filter(|flags| is_known(flags)) {
        let flags = match flags {
            "--joblog" => format!("--joblog {}", path(&dir.path().join("joblog"))),
            "--results" => format!("--results {}", path(&results)),
            flags => flags.to_owned(),
        };
        let mut command = minder(&format!("run --dry-run {flags} touch :::"));
        command.args([path(&mark), "a b", "c"]).env("MINDER_STATE_DIR", &state);
        let ended = Run::start(&command).wait().exit_code(0).stderr("");
        let text = ended.text();
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(
            text.starts_with(&format!("touch {}\n", path(&mark))) && text.ends_with("\ntouch c\n"),
            "{text}"
        );
        assert!(
            text.contains("touch 'a b'\n") || text.contains("touch a\\ b\n") || text.contains("\"a b\""),
            "{text}"
        );
    }
    // The commands are the whole of stdout, also where a message names their directory.
    let ended = run_to_end("run --dry-run --wd /no/such echo ::: x").exit_code(0);
    assert_eq!(ended.text(), "echo x\n");
    run_to_end("run --quiet --dry-run --wd /no/such echo ::: x").exit_code(0).stderr("");
    run_to_end("parallel --dry-run --wd /no/such echo ::: x").exit_code(0).stderr("");
    assert_eq!(super::files(dir.path()), 0);
    assert!(!state.exists() && !mark.exists() && !results.exists());
    // From standard input, a shell line, and into a pipe that is closed.
    let ended = run_with_input("run --dry-run echo {#} {}", b"x\ny\n").exit_code(0);
    assert_eq!(ended.text(), "echo 1 x\necho 2 y\n");
    let (reader, writer) = super::pipe();
    drop(reader);
    Run::start(minder("run --dry-run echo ::: 1").stdout(writer)).wait().exit_code(141).stderr("");
}

// Windows has no device that is always full.
#[cfg(unix)]
#[test]
fn dry_run_into_a_full_device_is_one_line_of_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("open /dev/full");
    Run::start(minder("run --dry-run echo ::: 1").stdout(full))
        .wait()
        .exit_code(255)
        .error_line(&["no space left"]);
}

#[test]
fn dry_run_continues_after_an_invalid_value() {
    // As the run would: such a job fails, the others run.
    let mut bytes = b"a\n".to_vec();
    bytes.extend(vec![b'x'; 200_000]);
    bytes.extend(b"\nb\n");
    let ended = run_with_input("run --dry-run echo", &bytes);
    assert_eq!(ended.text(), "echo a\necho b\n");
}

#[test]
fn verbose_prints_each_command() {
    for flag in ["-t", "--verbose"] {
        let ended = run_to_end(&format!("run {flag} -j1 CHILD echo-args ::: a b")).exit_code(0);
        assert_eq!(ended.text(), "\"a\"\n\"b\"\n");
        let said: Vec<&str> = ended.err.lines().collect();
        assert_eq!(said.len(), 2, "{}", ended.err);
        assert!(said[0].ends_with("echo-args a") && said[1].ends_with("echo-args b"), "{}", ended.err);
    }
    let views = ["-k -j3", "--lb -j3", "-u -j2", "--spool -j2", "--pty -j2"];
    for view in views.into_iter().filter(|view| is_known(view)) {
        let ended = run_to_end(&format!("run --verbose {view} CHILD echo-args ::: a b c")).exit_code(0);
        assert_eq!(
            ended.err.lines().filter(|line| line.contains("echo-args")).count(),
            3,
            "{view}: {}",
            ended.err
        );
    }
}

#[test]
fn ungrouped_jobs_inherit_our_outputs() {
    let dir = temp_dir();
    let target = dir.path().join("out");
    let file = fs::File::create(&target).expect("create file");
    let child = if cfg!(target_os = "linux") { "fds" } else { "echo-args x" };
    let mut command = minder(&format!("run -u -j2 CHILD {child} ::: 1 2"));
    let ended = Run::start(command.stdout(file)).wait().exit_code(0).stderr("");
    assert_eq!(ended.out.len(), 0);
    let text = super::file(&target);
    let own = |line: &str| line.starts_with("1 ") && line.ends_with("/out");
    assert!(text.lines().any(|line| own(line) || !cfg!(target_os = "linux")), "{text}");
    let ended = super::run_to_end("run --ungroup -j3 CHILD script 5 5 0 ::: 1 0 2 3").exit_code(3);
    assert_eq!(ended.out.len(), 20);
    assert!(ended.err.contains("exit"), "what failed is named: {}", ended.err);
}

#[cfg(unix)] // No pseudo console is made on Windows as yet.
#[test]
fn pty_gives_jobs_a_terminal() {
    let dir = temp_dir();
    let line = "test -t 1 && test -t 2 && printf '\\033[31mred {}\\033[0m\\n'; test -t 0 && echo in; true";
    for view in [
        "--pty -j1",
        "--pty -j3",
        "--pty -k -j2",
        "--pty --lb -j2",
        "--pty --no-record -j2",
        "--pty --tag -j2",
    ] {
        let ended = Run::start(&shell(view, line, &["a", "b"])).wait();
        for name in ["a", "b"] {
            assert!(
                ended.text().contains(&format!("\u{1b}[31mred {name}\u{1b}[0m")),
                "{view}: {:?}",
                ended.text()
            );
        }
        // Both are one stream.
        ended.exit_code(0).stderr("");
    }
    // Without it there is none.
    assert!(!Run::start(&shell("-j2", line, &["a"])).wait().text().contains("red"));
    // Large ones are whole, each job for itself.
    let results = dir.path().join("results");
    let mut command = shell(
        &format!("--pty -j3 --buffer 64k --results {}", path(&results)),
        "CHILD spew 700000; echo; echo {} >&2",
        &["1", "2", "3"],
    );
    let ended = Run::start(command.env("TERM", "xterm")).wait().exit_code(0);
    let once = crate::support::patterned(700_000);
    let bytes: Vec<u8> = ended.out.iter().copied().filter(|byte| *byte != b'\r').collect();
    assert_eq!(bytes.len(), 3 * 700_003);
    assert_eq!(bytes.split(|byte| *byte == b'\n').filter(|line| *line == once).count(), 3);
    assert!(fs::metadata(results.join("1/2/stdout")).is_ok_and(|about| about.len() >= 700_003));
    assert_eq!(fs::metadata(results.join("1/2/stderr")).map(|about| about.len()).unwrap_or(1), 0);
}

#[cfg(unix)] // The same.
#[test]
fn pty_has_a_window_size() {
    let size = |command: &minder::Command| Run::start(command).wait().text();
    let line = "stty size </dev/tty; true";
    let text = size(&shell("--pty -j2", line, &["1"]));
    assert!(text.contains("24 80"), "{text:?}");
    let mut command = shell("--pty -j2 --quiet", line, &["1"]);
    command.group(Group::Terminal(Size::new(33, 111))).stdin(minder::Stdio::inherit()).env("TERM", "xterm");
    let text = size(&command);
    assert!(text.contains("33 111"), "{text:?}");
}

#[cfg(target_os = "linux")] // As `/proc` shows it.
#[test]
fn tmpdir_holds_waiting_output() {
    let dir = temp_dir();
    let own = dir.path().join("own");
    fs::create_dir(&own).expect("create directory");
    // A directory by a path from here.
    let mut command = minder("run --tmpdir own --spool -j2 CHILD fds ::: 1");
    let text = Run::start(command.current_dir(dir.path())).wait().exit_code(0).text();
    assert!(text.lines().any(|line| line.starts_with("1 ") && line.contains("/own/")), "{text}");
    assert_eq!(super::files(&own), 0);
}

#[test]
fn names_stand_before_lines_and_in_messages() {
    let ended = run_to_end("run -k --names api,web CHILD exit ::: 0 3").exit_code(1);
    assert!(ended.err.contains("failed: web  (exit 3"), "{}", ended.err);
    for view in ["-k", "-j1 --lb", "-k --spool"] {
        let ended = run_to_end(&format!("run {view} --names api,web CHILD echo-args ::: a b")).exit_code(0);
        assert_eq!(ended.text(), "api\t\"a\"\nweb\t\"b\"\n", "{view}");
    }
    let dir = temp_dir();
    let state = |line: &str| {
        let mut command = minder(line);
        Run::start(command.env("MINDER_STATE_DIR", dir.path())).wait().exit_code(1)
    };
    state("run --names api,web CHILD exit ::: 0 3");
    let again = state("retry last --names p,q");
    assert!(again.err.contains("failed: q  (exit 3"), "{}", again.err);
    // The number of jobs is not known before the input has ended: those without a name have their number.
    let ended = run_with_input("run -k --names api,web CHILD echo-args", b"a\nb\nc\n").exit_code(0);
    assert_eq!(ended.text(), "api\t\"a\"\nweb\t\"b\"\n3\t\"c\"\n");
}
