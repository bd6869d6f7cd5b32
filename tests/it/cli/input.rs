//! The sources of arguments: lines of standard input, unchanged, with any content.

use minder::Stdio;

use super::{Run, minder, run_to_end, run_with_input, temp_dir};
#[cfg(unix)]
use super::{file, input, minder_as, pipe};
use crate::support::TEST_CHILD;

#[test]
fn job_starts_before_the_next_line_arrives() {
    let mut live = Run::start(minder("run -j4 CHILD echo-args").stdin(Stdio::piped()));
    for line in ["one", "two", "three"] {
        let before = live.record().outs[0].len();
        live.write(format!("{line}\n").as_bytes());
        live.wait_until("output of a job", |record| record.outs[0].len() > before);
        assert!(live.record().outs[0].ends_with(format!("\"{line}\"\n").as_bytes()));
    }
    live.write(b"no line end");
    live.close();
    assert_eq!(live.wait().exit_code(0).text(), "\"one\"\n\"two\"\n\"three\"\n\"no line end\"\n");
}

// Anonymous pipes of Windows always block.
#[cfg(unix)]
#[test]
fn input_is_read_ahead_within_a_limit() {
    use std::time::{Duration, Instant};

    let (reader, mut writer) = pipe();
    rustix::io::ioctl_fionbio(&writer, true).expect("set nonblocking mode");
    let mut live = Run::start(minder("run -j1 CHILD await /no/such/file").stdin(reader));
    let line = format!("{}\n", "x".repeat(1023));
    let mut written = 0;
    let mut quiet_since = Instant::now();
    while quiet_since.elapsed() < Duration::from_millis(400) {
        match std::io::Write::write(&mut writer, line.as_bytes()) {
            Ok(count) => {
                assert_eq!(count, line.len());
                written += count;
                quiet_since = Instant::now();
            }
            Err(_) => live.read_for(Duration::from_millis(20)),
        }
        assert!(written < 10 << 20, "the input is read without bound");
    }
    // The pipe, what is read ahead, one read, and the job that runs.
    let most = (64 << 10) + (64 << 10) + (16 << 10) + 1024;
    assert!(written <= most, "{written} bytes were taken, {most} are allowed");
    assert!(written >= 100 << 10, "{written} bytes were taken");
}

// As `/proc` shows it: Wine's figures of memory are not those of Windows.
#[cfg(target_os = "linux")]
#[test]
fn million_lines_take_constant_memory() {
    use std::io::Write;
    use std::time::Duration;

    // A program that writes lines forever, without a process: a thread of ours.
    let (reader, mut writer) = pipe();
    let producer = std::thread::spawn(move || {
        let mut many = Vec::new();
        for line in 0..1_000_000_u32 {
            many.extend_from_slice(format!("{line:0>200}\n").as_bytes());
            if many.len() > 60_000 {
                if writer.write_all(&many).is_err() {
                    return line;
                }
                many.clear();
            }
        }
        1_000_000
    });
    let mut live = Run::start(minder("run -j2 CHILD exit 0").stdin(reader));
    let peak = |live: &Run| {
        let runner = super::runner(live.pid()).expect("find runner");
        let status = file(std::path::Path::new(&format!("/proc/{runner}/status")));
        let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("find VmHWM").to_owned();
        line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok()).expect("parse number")
    };
    let outer = live.pid();
    live.wait_until_true("a runner", || super::runner(outer).is_some());
    live.read_for(Duration::from_millis(300));
    let early = peak(&live);
    live.read_for(Duration::from_millis(1200));
    let late = peak(&live);
    drop(live);
    assert!(producer.join().expect("join producer") < 1_000_000, "all lines were taken");
    assert!(late < early + 8192, "from {early} KiB to {late} KiB");
    assert!(late < 32 << 10, "{late} KiB");
}

#[test]
fn lines_reach_jobs_unchanged() {
    // Where lines end with `\r\n`, both are their end.
    let blank = if cfg!(windows) { "  b  " } else { "  b  \r" };
    let text = b"a\n\n  b  \r\n\tc\n'q' \"$(x)`y`\\\n--flag\n{}\n:::\nlast";
    let expected: Vec<String> = ["a", "", blank, "\tc", "'q' \"$(x)`y`\\", "--flag", "{}", ":::", "last"]
        .map(|v| format!("{v:?}\n"))
        .to_vec();
    assert_eq!(run_with_input("run -j1 CHILD echo-args", text).exit_code(0).text(), expected.concat());
    let mut line = minder("run -j1");
    super::with_script(&mut line, "CHILD echo-args {}").stdin(super::input(text));
    assert_eq!(Run::start(&line).wait().exit_code(0).text(), expected.concat());
}

#[test]
fn empty_input_runs_no_job() {
    run_with_input("run -j2 CHILD echo-args", b"").exit_code(0).stderr("");
    run_with_input("run -j2 CHILD echo-args", b"\n").exit_code(0).stderr("");
    assert_eq!(run_to_end("run CHILD echo-args x :::").exit_code(0).stderr("").text(), "");
}

// Unix starts programs without a standard input.
#[cfg(unix)]
#[test]
fn closed_stdin_runs_no_job() {
    let closed =
        Run::start(&super::minder_as("close=0", "run CHILD echo-args")).wait().exit_code(0).stderr("");
    assert_eq!(closed.text(), "");
}

// Arguments are bytes on Unix; `windows.rs` has what is not text there.
#[cfg(unix)]
#[test]
fn non_utf8_bytes_reach_jobs() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let odd: Vec<u8> = (1..=255).filter(|byte| *byte != b'\n').collect();
    assert_eq!(run_with_input("run -j1 CHILD raw", &odd).exit_code(0).out, odd);
    let mut command = minder("run -j1 CHILD raw :::");
    assert_eq!(Run::start(command.arg(OsStr::from_bytes(&odd))).wait().exit_code(0).out, odd);
    let mut line = minder("run -j1");
    line.arg("printf %s {}; exit 1").arg(":::").arg(OsStr::from_bytes(b"\xff\xfe\x1b[31m"));
    let line = Run::start(&line).wait().exit_code(1);
    assert_eq!(line.out, b"\xff\xfe\x1b[31m");
    assert!(!line.errors.contains(&0x1b) && line.err.contains("\\377"), "{:?}", line.err);
}

#[test]
fn missing_column_of_split_line_is_empty() {
    let lines = b"a,b\nc\nd,e\n";
    for flags in ["--colsep ,", "--csv", "--csv --header 0"] {
        let ended = run_with_input(&format!("run -j1 -k {flags} CHILD echo-args {{1}}-{{2}}"), lines);
        assert_eq!(ended.exit_code(0).text(), "\"a-b\"\n\"c-\"\n\"d-e\"\n", "{flags}");
        let ended =
            run_with_input(&format!("run -j1 -k {flags} --tagstring <{{2}}> CHILD echo-args {{1}}"), lines);
        assert_eq!(ended.exit_code(0).text(), "<b>\t\"a\"\n<>\t\"c\"\n<e>\t\"d\"\n", "{flags}");
    }
    let ended = run_with_input("run -j1 --header : CHILD echo-args {y}-{x}", b"x\ty\na\tb\nc\n");
    assert_eq!(ended.exit_code(0).text(), "\"b-a\"\n\"-c\"\n");
    // The last job has fewer arguments than the others.
    let ended = run_with_input("run -j1 -n2 CHILD echo-args {1}-{2}", b"a\nb\nc\n");
    assert_eq!(ended.exit_code(0).text(), "\"a-b\"\n\"c-\"\n");
}

#[test]
fn column_beyond_all_sources_fails_before_any_job() {
    for line in [
        "run CHILD echo-args {2} ::: a",
        "run -n2 CHILD echo-args {3} ::: a b c",
        "run --tagstring {3} CHILD echo-args {1} ::: a ::: b",
    ] {
        let ended = Run::start(&minder(line)).wait().exit_code(255);
        assert!(ended.out.is_empty(), "{line}");
        ended.stderr_contains("column, the input has ");
    }
}

#[test]
fn open_quote_ends_run_after_jobs_before_it() {
    let dir = temp_dir();
    let lines = dir.path().join("lines");
    std::fs::write(&lines, "a\nb,\"c\nd\n").expect("write file");
    let mut command = minder("run -j1 --csv CHILD echo-args {1} ::::");
    let command = command.arg(&lines).env("MINDER_STATE_DIR", dir.path());
    let ended = Run::start(command).wait().exit_code(255);
    assert_eq!(ended.text(), "\"a\"\n");
    let ended = ended.stderr_contains("line 2: a quote is not closed (--csv)");
    ended.stderr_contains("1 job · 0 failed").stderr_contains("to resume: minder resume ");
}

#[test]
fn nul_in_a_line_fails_only_its_job() {
    let ended = run_with_input("run -j1 CHILD echo-args", b"a\nb\0c\nd\n").exit_code(1);
    assert_eq!(ended.text(), "\"a\"\n\"d\"\n");
    ended.stderr_contains("NUL").stderr_contains("job 2").stderr_contains("3 jobs · 1 failed");
}

// The limit is Linux's; that of Windows is in `windows.rs`.
#[cfg(unix)]
#[test]
fn overlong_lines_fail_only_their_jobs() {
    let line = |length: usize| "x".repeat(length);
    let text = format!("a\n{}\n{}\n{}\nz\n", line(131_071), line(131_072), line(5 << 20));
    let ended = run_with_input("run -j1 CHILD count-args", text.as_bytes());
    assert_eq!(ended.text(), "1\n131071\n1\n");
    let ended = ended
        .exit_code(2)
        .stderr_contains("131,071")
        .stderr_contains(&format!("a line of {} bytes", 5 << 20));
    assert!(ended.err.len() < 4096, "{} bytes of complaints", ended.err.len());
    let mut command = minder("run -j1 CHILD count-args :::");
    let ended = Run::start(command.arg(line(131_071)).arg("b")).wait().exit_code(0);
    assert_eq!(ended.text(), "131071\n1\n");
}

#[test]
fn long_lines_fill_the_buffer_without_deadlock() {
    // Each of these waits for all of the room while little of it is used.
    let lens = if cfg!(windows) { [10_000, 30_000] } else { [20_000, 60_000] };
    let pair = format!("{}\n{}\n", "a".repeat(lens[0]), "b".repeat(lens[1]));
    let text = pair.repeat(20);
    for degree in [1, 3] {
        let ended = run_with_input(&format!("run -j{degree} CHILD count-args"), text.as_bytes()).exit_code(0);
        assert_eq!(ended.text().lines().count(), 40);
    }
}

// Anonymous pipes of Windows always block.
#[cfg(unix)]
#[test]
fn nonblocking_stdin_is_waited_for() {
    use std::time::Duration;

    let (reader, writer) = pipe();
    rustix::io::ioctl_fionbio(&reader, true).expect("set nonblocking mode");
    let mut command = minder("run -j1 CHILD echo-args");
    let mut live = Run::start(command.stdin(reader));
    live.read_for(Duration::from_millis(100));
    std::io::Write::write_all(&mut &writer, b"x\n").expect("write bytes");
    drop((writer, command));
    assert_eq!(live.wait().exit_code(0).stderr("").text(), "\"x\"\n");
}

// Windows opens no directory as a file.
#[cfg(unix)]
#[test]
fn unreadable_stdin_is_one_line_of_error() {
    let directory = temp_dir();
    let mut command = minder("run CHILD echo-args");
    let file = std::fs::File::open(directory.path()).expect("open directory");
    Run::start(command.stdin(file)).wait().exit_code(255).error_line(&["standard input", "directory"]);
}

// An endless device.
#[cfg(unix)]
#[test]
fn dry_run_stops_when_its_reader_is_gone() {
    let (reader, writer) = pipe();
    drop(reader);
    let mut command = minder("run --pipe --recend \\0 --block 100 --dry-run cat");
    // The input does not end.
    let endless = std::fs::File::open("/dev/zero").expect("open device");
    Run::start(command.stdin(endless).stdout(writer)).wait().exit_code(141).stderr("");
}

// A limit of descriptors.
#[cfg(unix)]
#[test]
fn tee_fails_without_descriptors_for_all_jobs() {
    let mut command = minder_as("nofile=64", "run --no-record --pipe --tee cat ::: 1 2 3 4 5 6 7 8");
    Run::start(command.stdin(input(b"1\n"))).wait().exit_code(255).stderr_contains("runs 8 jobs at once");
}

// `--fifo`: Windows has no pipes among its files.
#[cfg(unix)]
#[test]
fn fifo_never_replaces_an_existing_file() {
    let dir = temp_dir();
    let precious = dir.path().join("precious");
    std::fs::write(&precious, "kept").expect("write file");
    let line = format!("run --no-record --pipe --tee --fifo cat ::: {}", precious.display());
    assert_eq!(run_with_input(&line, b"1\n2\n").exit_code(0).text(), "1\n2\n");
    assert_eq!(file(&precious), "kept");
}

/// Returns the output of the jobs of this run, a line for each argument, and the number of jobs.
fn gathered(flags: &str, arguments: &[String]) -> (Vec<String>, usize) {
    let input =
        arguments.iter().flat_map(|argument| [argument.as_bytes(), b"\0"].concat()).collect::<Vec<_>>();
    let ended =
        run_with_input(&format!("run -0 -k --tagstring {{#}} {flags}"), &input).exit_code(0).stderr("");
    let text = ended.text();
    let lines = text.lines().map(|line| line.split_once('\t').expect("find tag"));
    let (jobs, lines): (std::collections::BTreeSet<_>, Vec<_>) =
        lines.map(|(job, line)| (job.to_owned(), line.to_owned())).unzip();
    (lines, jobs.len())
}

#[test]
fn xargs_fills_each_command_line() {
    let plain = (1..=30_000).map(|number| number.to_string()).collect::<Vec<_>>();
    let hard = (1..=6000).map(|number| format!("{number} \"\\")).collect::<Vec<_>>();
    let wide = (1..=6000).map(|number| format!("{number} 🦀ü")).collect::<Vec<_>>();
    for (arguments, most) in [(&plain, 6), (&hard, 3), (&wide, 2)] {
        let expected = arguments.iter().map(|argument| format!("{argument:?}")).collect::<Vec<_>>();
        let (found, jobs) = gathered("--xargs CHILD echo-args", arguments);
        assert!(found == expected, "{} of {} came", found.len(), expected.len());
        // With quotes and escapes a line of 32,766 units holds that much of them.
        assert_eq!(jobs, if cfg!(windows) { most } else { arguments.concat().len().div_ceil(120_000) });
    }
    let (found, _) = gathered("-j2 -X CHILD echo-args a{}\\\"b{#}", &hard);
    assert_eq!(found.len(), hard.len());
    let (found, _) = gathered("-j2 -m CHILD echo-args", &hard);
    assert_eq!(found.len(), hard.len());
}

#[test]
fn words_split_at_blanks_and_quotes_protect_them() {
    let bytes = b"a 'b c'\n\n\"d e\" f\\ g\n";
    let out = run_with_input("run -k --words CHILD echo-args", bytes);
    assert_eq!(out.exit_code(0).text(), "\"a\"\n\"b c\"\n\"d e\"\n\"f g\"\n");
    let out = run_with_input("run -k --words -E b CHILD echo-args", b"a b c");
    assert_eq!(out.exit_code(0).text(), "\"a\"\n");
    run_with_input("run -k --words CHILD echo-args", b"a\nb 'c\nd'\n")
        .exit_code(255)
        .stderr_contains("standard input, line 2: the quote `'` is not closed");
    run_with_input("run --words CHILD echo-args", &[b'x'; 140_000])
        .exit_code(255)
        .stderr_contains("standard input, line 1: a word has more than 131071 bytes");
}

#[test]
fn words_of_a_line_are_arguments_of_one_job() {
    let out = run_with_input("run -k --words -L1 CHILD echo-args -", b"a 'b c' \nd\n\ne f\n");
    let lines = "\"-\"\n\"a\"\n\"b c\"\n\"d\"\n\"-\"\n\"e\"\n\"f\"\n";
    assert_eq!(out.exit_code(0).text(), lines);
    // A line that never ends.
    run_with_input("run --words -L1 CHILD echo-args", &b"a ".repeat(1 << 20))
        .exit_code(255)
        .stderr_contains("standard input, line 1: its words take more than 8388608 bytes (-n limits them)");
}

#[test]
fn jobs_read_the_standard_input_that_the_user_names() {
    let dir = temp_dir();
    let file = dir.path().join("in");
    std::fs::write(&file, "from a file\n").expect("write file");
    let said = |stdin: &str, words: &str| {
        let mut command = minder("run -j1");
        if !stdin.is_empty() {
            command.args(["--stdin", stdin]);
        }
        command.args(super::arguments(words)).stdin(super::input(b"from minder\n"));
        Run::start(&command).wait().exit_code(0).text()
    };
    let jobs = "-n0 CHILD cat ::: 1 2";
    assert_eq!(said("", jobs), "");
    assert_eq!(said("null", jobs), "");
    assert_eq!(said("inherit", jobs), "from minder\n");
    assert_eq!(said(file.to_str().expect("path is UTF-8"), jobs), "from a file\nfrom a file\n");
    run_to_end("run --stdin inherit CHILD cat").exit_code(255).error_line(&["`--stdin inherit`", "`:::`"]);
    run_to_end("run --stdin /no/such/file CHILD cat ::: 1").exit_code(255).error_line(&["/no/such/file"]);
    let refused = |path: &std::path::Path, why: &str| {
        let mut command = minder("run --stdin");
        command.arg(path).args(super::arguments("-n0 CHILD cat ::: 1 2"));
        Run::start(&command).wait().exit_code(255).error_line(&[why, "(--stdin)"]);
    };
    refused(dir.path(), "is a directory");
    #[cfg(unix)]
    {
        // Nothing waits for a writer, so a signal would end the run at once.
        let fifo = dir.path().join("fifo");
        minder_os::files::create_fifo(&fifo).expect("create named pipe");
        refused(&fifo, "a named pipe can be read only once");
        let mut command = minder::Command::new("bash");
        command.args(["-c", "\"$0\" run --stdin <(echo piped) -j1 -n0 \"$1\" cat ::: 1 2", super::MINDER]);
        command.arg(crate::support::TEST_CHILD).env("MINDER_STATE_DIR", super::STATE);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        assert_eq!(Run::start(&command).wait().exit_code(0).text(), "piped\n");
    }
}

#[test]
fn words_and_stdin_refuse_flags_that_contradict_them() {
    for (line, flag) in [
        ("run --words -0 CHILD exit 0", "--null"),
        ("run --words --csv CHILD exit 0", "--csv"),
        ("run --words --trim l CHILD exit 0", "--trim"),
        ("run --words --pipe CHILD cat", "--pipe"),
        ("run --stdin null --pipe CHILD cat", "--pipe"),
        ("run --stdin null --tty CHILD cat", "--tty"),
    ] {
        run_to_end(line).exit_code(255).error_line(&[flag]);
    }
}

#[test]
fn skip_comments_leaves_out_lines_of_files_alone() {
    let dir = temp_dir();
    let list = dir.path().join("list");
    std::fs::write(&list, "# first\na\n\n   # indented\n#last\n a # b\n#").expect("write file");
    let flags = "run -k --skip-comments CHILD echo-args";
    let shown = Run::start(minder(flags).arg("::::").arg(&list)).wait().exit_code(0);
    assert_eq!((shown.text().as_str(), shown.err.as_str()), ("\"a\"\n\" a # b\"\n", ""));
    // A comment may be longer than any argument.
    let long = "x".repeat(200_000);
    std::fs::write(&list, format!("#{long}\na\n  # {long}\n")).expect("write file");
    let shown = Run::start(minder(flags).arg("::::").arg(&list)).wait().exit_code(0);
    assert_eq!((shown.text().as_str(), shown.err.as_str()), ("\"a\"\n", ""));
    let shown = Run::start(minder(flags).args([":::", "# a", ""])).wait().exit_code(0);
    assert_eq!(shown.text(), "\"# a\"\n\"\"\n");
}

#[test]
fn env_file_sets_variables_that_env_overrides() {
    let dir = temp_dir();
    let file = dir.path().join("job.env");
    let text =
        "# comment\nexport FIRST=1\n\nSECOND=\"two words\"\nTHIRD='$FIRST'\nFOURTH=pa$$word # comment\n";
    std::fs::write(&file, text).expect("write file");
    let shown = |more: &[&str]| {
        let mut command = minder("run -k --env-file");
        command.arg(&file).args(more).args([TEST_CHILD, "variable", ":::"]);
        Run::start(command.args(["FIRST", "SECOND", "THIRD", "FOURTH"])).wait().exit_code(0).text()
    };
    assert_eq!(shown(&[]), "1\ntwo words\n$FIRST\npa$$word\n");
    assert_eq!(shown(&["--env", "FIRST=9"]), "9\ntwo words\n$FIRST\npa$$word\n");

    std::fs::write(&file, vec![b'#'; (1 << 20) + 1]).expect("write file");
    let refused = Run::start(minder("run --env-file").arg(&file).args(["true", ":::", "a"])).wait();
    assert!(refused.exit_code(255).err.ends_with("it has more than 1 MiB\n"));
    // Many variables are set at once.
    let many: String = (0..60_000).map(|number| format!("V{number}=x\n")).collect();
    std::fs::write(&file, many).expect("write file");
    if cfg!(unix) {
        let mut command = minder("run --env-file");
        command.arg(&file).args([TEST_CHILD, "variable", ":::", "V59999", "V0"]);
        assert_eq!(Run::start(&command).wait().exit_code(0).text(), "x\nx\n");
    }
}

/// The other values stay in their pairs.
#[cfg(target_os = "linux")] // The limit of one argument.
#[test]
fn line_that_is_too_long_fails_its_whole_group() {
    let long = "x".repeat(140_000);
    let lines = format!("a\nb\n{long}\ny\nz\n{long}\nc\nd\ne\n");
    let mut command = minder("run -k -N 2 CHILD echo-args --");
    let ended = Run::start(command.stdin(super::input(lines.as_bytes()))).wait();
    let text = ended.text();
    let shown: Vec<&str> = text.split_whitespace().collect();
    for pair in [["a", "b"], ["c", "d"]] {
        assert!(
            shown.windows(2).any(|words| words[0].contains(pair[0]) && words[1].contains(pair[1])),
            "{text}"
        );
    }
    assert!(!text.contains('y') && !text.contains('z') && text.contains('e'), "{text}");
    assert!(ended.err.contains("5 jobs · 2 failed"), "{}", ended.err);
    assert!(ended.err.contains("a line of 140000 bytes"), "{}", ended.err);
}
