//! A reader of standard output or standard error that takes nothing: jobs are started, timed out, killed
//! and recorded as if it did, and it gets every byte once it reads.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use minder::{Command, Group, Size, Stdio};
use rustix::process::Signal;

use super::record::Place;
use super::{PATIENCE, Run, RunOutput, file, pipe};

/// A job with more output than a pipe takes, but not more than the run takes of a job that is shown while
/// it runs.
const MUCH: &str = "seq 180000";
/// A job that leaves a mark when it is asked to end.
const ENDS: &str = "trap 'echo x >>../marks; exit 1' TERM; sleep 60 & wait";

fn much() -> String {
    (1..=180_000).map(|number| format!("{number}\n")).collect()
}

fn marks(place: &Place) -> usize {
    file(&place.at("marks")).len() / 2
}

/// Waits for a condition, and reads nothing meanwhile.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Starts a run whose standard output is a pipe that nothing reads yet.
fn start<S: AsRef<str>>(place: &Place, line: &str, words: impl IntoIterator<Item = S>) -> (Run, File) {
    let (reader, writer) = pipe();
    let mut command = place.command(line);
    for word in words {
        command.arg(word.as_ref());
    }
    (Run::start(command.stdout(writer)), reader)
}

fn read_all(mut reader: File) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("read what was written");
    text
}

/// Starts jobs one of which writes much and the others do not end, waits until all of the others were
/// timed out, and only then reads.
#[track_caller]
fn time_out(place: &Place, command: &mut Command, reader: File) -> (String, RunOutput) {
    let live = Run::start(command.args(["--timeout", "1", ":::", MUCH, ENDS, ENDS, ENDS]));
    *command = Command::new("true"); // the writer's end is closed
    wait_until("the other jobs are timed out", || marks(place) == 3);
    let read = read_all(reader);
    (read, live.wait().exit_code(3))
}

#[test]
fn jobs_are_timed_out_whatever_the_order_of_the_output() {
    for flags in ["", "--lb", "--tag", "--no-record", "-k --spool", "--results ../results"] {
        let place = Place::new();
        let (reader, writer) = pipe();
        let mut command = place.command(&format!("run -j4 --grace 60 {flags}"));
        let (read, _) = time_out(&place, command.stdout(writer), reader);
        let tag = format!("{MUCH}\t"); // which no other job writes
        let read = if flags.contains("--tag") { read.replace(&tag, "") } else { read };
        assert!(read == much(), "{flags}: {} bytes", read.len());
    }
}

/// A job that is shown while it runs waits for the reader itself, like any program in front of a pipe, and
/// only that job.
#[test]
fn live_job_alone_waits_for_its_reader() {
    let place = Place::new();
    let (live, reader) = start(&place, "run -k -j4 --timeout 1", [":::", "yes", ENDS, ENDS, ENDS]);
    wait_until("the other jobs are timed out", || marks(&place) == 3);
    let read = read_all(reader);
    assert!(live.wait().exit_code(4).err.contains("4 timed out"));
    assert!(read.len() > 1 << 20 && read.as_bytes().chunks(2).all(|line| b"y\n".starts_with(line)));
}

#[test]
fn jobs_are_timed_out_whatever_takes_the_output() {
    let place = Place::new();
    let (reader, writer) = UnixStream::pair().expect("create sockets");
    let reader = File::from(OwnedFd::from(reader));
    let writer = File::from(OwnedFd::from(writer));
    let (read, _) = time_out(&place, place.command("run -j4 --grace 60").stdout(writer), reader);
    assert!(read == much(), "socket: {} bytes", read.len());

    let place = Place::new();
    let path = place.at("fifo");
    make_fifo(&path);
    // Opened for both directions, so that this does not wait.
    let both = File::options().read(true).write(true).open(&path).expect("open named pipe");
    let writer = File::options().write(true).open(&path).expect("open named pipe");
    let reader = File::open(&path).expect("open named pipe");
    drop(both);
    let (read, _) = time_out(&place, place.command("run -j4 --grace 60").stdout(writer), reader);
    assert!(read == much(), "named pipe: {} bytes", read.len());
}

#[test]
fn terminal_that_is_not_read_holds_nothing_up() {
    for flags in ["", "-k", "--progress", "--status-level all"] {
        let place = Place::new();
        let mut command = place.command(&format!("run -j4 --grace 60 --timeout 1 {flags}"));
        command.group(Group::Terminal(Size::new(24, 80))).stdin(Stdio::inherit());
        command.env("TERM", "xterm").args([":::", "seq 20000", ENDS, ENDS, ENDS]);
        // Nothing is read before `wait`.
        let live = Run::start(&command);
        wait_until("the other jobs are timed out", || marks(&place) == 3);
        let text = live.wait().exit_code(3).text();
        let numbers: Vec<&str> = text
            .lines()
            .map(str::trim_end)
            .filter(|line| line.bytes().all(|byte| byte.is_ascii_digit()))
            .collect();
        let wanted: Vec<String> = (1..=20_000).map(|number| number.to_string()).collect();
        assert!(
            flags == "--progress" || numbers.iter().filter(|line| !line.is_empty()).eq(wanted.iter()),
            "{flags}"
        );
        assert!(text.contains("3 timed out"), "{flags}: {text:?}");
    }
}

#[test]
fn messages_wait_for_a_reader_of_stderr_and_jobs_do_not() {
    let place = Place::new();
    let (reader, writer) = pipe();
    let mut command = place.command("run -j4 --grace 60 --timeout 1 --status-level all");
    command.stderr(writer).args([":::", "seq 180000 >&2", ENDS, ENDS, ENDS]);
    let live = Run::start(&command);
    drop(command);
    wait_until("the other jobs are timed out", || marks(&place) == 3);
    let read = read_all(reader);
    live.wait().exit_code(3);
    let rest = read.strip_prefix(&much()).expect("the output of the job comes first, and whole");
    assert_eq!(rest.matches(" (timed out after 1.0 s) trap").count(), 3, "{rest}");
    assert!(rest.contains("3 timed out"), "{rest}");
}

/// The end of a line on a terminal is recognized in output that waited in a file, too.
#[test]
fn no_line_is_ended_twice_on_a_terminal() {
    let place = Place::new();
    let mut command = place.command("run -j2 --status-level all");
    command.group(Group::Terminal(Size::new(24, 80))).stdin(Stdio::inherit());
    command.env("TERM", "xterm").args([
        ":::",
        "seq 100000; echo x >>../marks",
        "sleep 0.1; echo x >>../marks",
    ]);
    let live = Run::start(&command);
    wait_until("both jobs have run", || marks(&place) == 2);
    let text = live.wait().exit_code(0).text();
    assert!(text.contains("\n100000\r\n") && !text.contains("\r\n\r\n"), "{:?}", &text[text.len() - 300..]);
}

/// `2>&1`: one reader, one order.
#[test]
fn both_streams_in_one_pipe_keep_their_order() {
    let place = Place::new();
    let (reader, writer) = pipe();
    let copy = writer.try_clone().expect("duplicate descriptor");
    // A job that is shown while it runs would wait for the reader in its own write.
    let mut command = place.command("run -j1 --spool --status-level all");
    command.stdout(writer).stderr(copy);
    let jobs = ["seq 100000; seq 100000 >&2", "seq 100000; echo x >>../marks"];
    let live = Run::start(command.args([":::"]).args(jobs));
    drop(command);
    wait_until("the last job has written", || marks(&place) == 1);
    let read = read_all(reader);
    live.wait().exit_code(0);
    let part: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let expected = [part.clone() + &part, part];
    let mut rest = &read[..];
    for part in &expected {
        rest = rest.strip_prefix(part).expect("the output of a job in one piece");
        let (line, after) = rest.split_once('\n').expect("a line about the job");
        assert!(line.contains("/2] ok "), "{line:?}");
        rest = after;
    }
}

#[test]
fn jobs_are_started_while_output_waits() {
    for flags in ["-j2", "-j2 -k", "-j2 --lb"] {
        let place = Place::new();
        let jobs = [":::", MUCH].into_iter().chain(["echo x | tee -a ../marks"; 40]);
        let (live, reader) = start(&place, &format!("run {flags}"), jobs);
        wait_until("all jobs have run", || marks(&place) == 40);
        let read = read_all(reader);
        live.wait().exit_code(0);
        let mut lines: Vec<&str> = read.lines().collect();
        lines.retain(|line| *line != "x");
        assert!(read.len() == much().len() + 80 && lines.len() == 180_000, "{flags}: {} bytes", read.len());
    }
}

#[test]
fn halt_kills_while_output_waits() {
    let place = Place::new();
    let fails = "until [ -e ../go ]; do sleep 0.05; done; exit 3";
    let jobs = [":::", "seq 180000; echo x >>../marks", ENDS, fails];
    let (live, reader) = start(&place, "run -j4 --grace 60 --halt now,fail=1", jobs);
    wait_until("the first job has written", || marks(&place) == 1);
    fs::write(place.at("go"), "").expect("write file");
    wait_until("the other job is ended", || marks(&place) == 2);
    assert!(read_all(reader) == much());
    live.wait().exit_code(3);
}

#[test]
fn interrupted_run_writes_what_is_finished() {
    let place = Place::new();
    let jobs = [":::", "seq 180000; echo x >>../marks", ENDS];
    let (live, reader) = start(&place, "run -j2 --grace 60", jobs);
    wait_until("the first job has written", || marks(&place) == 1);
    live.signal(Signal::INT);
    wait_until("the other job is ended", || marks(&place) == 2);
    assert!(read_all(reader) == much());
    live.wait().killed_by(Signal::INT);
}

/// A resumed run shows the output that the reader did not get, even if the job had its result.
#[test]
fn killed_run_loses_no_output_that_waits() {
    for flags in ["-j2", "-j2 -k", "-j1 --lb"] {
        let place = Place::new();
        let job = "seq 180000; echo end {}; echo x >>../marks";
        let (live, reader) = start(&place, &format!("run {flags}"), [job, ":::", "1", "2", "3", "4"]);
        let least = if flags == "-j2" { 4 } else { 1 };
        wait_until("jobs have written", || marks(&place) >= least);
        live.kill();
        let first = read_all(reader);
        live.wait().killed();
        let again = place.ended(&format!("resume {flags}")).exit_code(0).text();
        for job in 1..=4 {
            let end = format!("end {job}\n");
            let seen = [&first, &again].map(|text| text.matches(&end).count());
            assert!(seen[0] + seen[1] >= 1 && seen[1] <= 1, "{flags}: job {job}: {seen:?}");
        }
        let whole: usize = again.matches("\n180000\n").count();
        assert_eq!(whole, again.matches("end ").count(), "{flags}: shown in parts");
    }
}

/// More than the memory of a stream holds, from jobs that are decorated line by line.
#[test]
fn much_waits_in_files() {
    let place = Place::new();
    let words = ["seq 300000; echo x >>../marks; : {}", ":::", "1", "2", "3", "4", "5"];
    let (live, reader) = start(&place, "run -j4 --tag", words);
    wait_until("all jobs have written", || marks(&place) == 5);
    assert!(memory(live.pid()) < 16 << 10, "memory of the run: {} KiB", memory(live.pid()));
    let read = read_all(reader);
    live.wait().exit_code(0);
    for job in 1..=5 {
        let part: String = (1..=300_000).map(|number| format!("{job}\t{number}\n")).collect();
        assert!(read.contains(&part), "job {job}");
    }
    assert_eq!(left_in(&place.run()), 0);
}

/// The tag of each line makes a hundred times as much of what the job wrote.
#[test]
fn decorated_output_of_a_live_job_waits_in_files() {
    let place = Place::new();
    let tag = "t".repeat(2000);
    let job = "yes '' | head -c 50000; echo x >>../marks; echo x >>../marks";
    let (live, reader) = start(&place, "run -k -j2 --tagstring", [&tag, ":::", job]);
    wait_until("the job has written", || marks(&place) == 2);
    wait_until("its output waits", || memory(live.pid()) > 0);
    assert!(memory(live.pid()) < 32 << 10, "memory of the run: {} KiB", memory(live.pid()));
    assert_eq!(read_all(reader).len(), 50_000 * 2002);
    live.wait().exit_code(0);
}

#[test]
fn reader_of_stderr_that_ends_while_output_waits_ends_nothing() {
    let place = Place::new();
    let (reader, writer) = pipe();
    let mut command = place.command("run -j2 --quiet --tag");
    command.stderr(writer).args([
        "seq 300000 >&2; echo x >>../marks; sleep 0.2; echo {}",
        ":::",
        "1",
        "2",
        "3",
    ]);
    let live = Run::start(&command);
    drop(command);
    wait_until("all jobs have written", || marks(&place) == 3);
    drop(reader);
    assert_eq!(live.wait().exit_code(0).sorted(), ["1\t1", "2\t2", "3\t3"]);
}

/// Many jobs that end while the lines of another wait.
#[test]
fn killed_run_loses_no_line_that_waits() {
    let place = Place::new();
    let line = "if [ {} = 1 ]; then seq 180000; else echo line {}; fi; echo x >>../marks";
    let words = [line, ":::"].map(str::to_owned).into_iter().chain((1..=900).map(|job| job.to_string()));
    let (live, reader) = start(&place, "run --lb -j2", words);
    wait_until("all jobs have run", || marks(&place) == 900);
    live.kill();
    let mut read = read_all(reader);
    live.wait().killed();
    // The pipe may end in the middle of a line.
    read.push('\n');
    read += &place.ended("resume --lb").exit_code(0).text();
    let seen: std::collections::HashSet<&str> = read.lines().collect();
    assert!((1..=180_000).all(|number| seen.contains(&*number.to_string())));
    let lost: Vec<u32> = (2..=900).filter(|job| !seen.contains(&*format!("line {job}"))).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn lines_of_failed_tries_wait_for_the_reader() {
    let place = Place::new();
    let line = "if [ {} = 1 ]; then seq 180000; else until [ -s ../marks ]; do sleep 0.01; done; \
                echo job {} try $MINDER_ATTEMPT; fi; echo x >>../marks; [ {} = 1 ]";
    let words = [line, ":::"].map(str::to_owned).into_iter().chain((1..=9).map(|job| job.to_string()));
    let (live, reader) = start(&place, "run --lb -j3 --retries 2 --quiet", words);
    wait_until("all jobs have run", || marks(&place) == 17);
    let read = read_all(reader);
    live.wait().exit_code(8);
    assert_eq!(read.lines().filter(|line| line.starts_with("job ")).count(), 16, "{read:.200}");
}

/// The last messages wait for their reader, and a signal ends that.
#[test]
fn signal_ends_a_run_whose_last_message_is_not_read() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        let (reader, writer) = pipe();
        let full = writer.try_clone().expect("duplicate descriptor");
        rustix::io::ioctl_fionbio(&full, true).expect("make the pipe non-blocking");
        while std::io::Write::write(&mut &full, &[b'x'; 4096]).is_ok() {}
        while std::io::Write::write(&mut &full, b"x").is_ok() {}
        rustix::io::ioctl_fionbio(&full, false).expect("make the pipe blocking");
        drop(full);
        let mut command = place.command("run -j2");
        command.stderr(writer).args(["echo x >>../marks; exit 3", ":::", "1", "2"]);
        let live = Run::start(&command);
        drop(command);
        wait_until("the record is closed", || {
            marks(&place) == 2 && file(&place.run().join("attempt-1.jsonl")).contains(r#""event":"over""#)
        });
        live.signal(signal);
        let ended = live.wait();
        assert!(!ended.status.success() && ended.wall < super::SOON, "{ended:?}");
        drop(reader);
    }
}

/// A reader that takes nothing holds up the end of a run for seven seconds, whatever waits for it, and
/// the run can be resumed.
#[test]
fn interrupted_run_gives_its_reader_up() {
    let live = "seq 300000; echo end {}";
    let finished = "head -c 900000 /dev/zero | tr '\\0' '\\n'; echo end {}; echo x >>../marks";
    let forwarded = "yes | head -c 9000000; echo end {}";
    // Of the forwarded output, the reader takes more than what passes through minder.
    let cases = [
        ("-j1", live, 0),
        ("-j1 --lb", live, 0),
        ("-k -j2", live, 0),
        ("-j2", finished, 0),
        ("-j1", forwarded, 3 << 20),
    ];
    let runs = cases.map(|(flags, job, len)| {
        let place = Place::new();
        let (run, mut reader) =
            start(&place, &format!("run --grace 30 {flags}"), [job, ":::", "1", "2", "3"]);
        let mut first = vec![0; len];
        reader.read_exact(&mut first).expect("read the beginning");
        if job == finished {
            wait_until("all jobs have run", || marks(&place) == 3);
        } else {
            // A job that waits for the reader is asleep, and all of the pipes are full.
            let mut before = 0;
            wait_until("the pipe is full", || {
                let waiting = rustix::io::ioctl_fionread(&reader).expect("ask for what waits");
                std::thread::park_timeout(Duration::from_millis(300));
                std::mem::replace(&mut before, waiting) == waiting && waiting > 0
            });
        }
        run.signal(Signal::TERM);
        (flags, job, place, run, reader, first, Instant::now())
    });
    for (flags, job, place, run, reader, first, since) in runs {
        let ended = run.wait().killed_by(Signal::TERM);
        let wall = since.elapsed();
        assert!(wall < Duration::from_secs(25), "{flags}: {wall:?}");
        assert!(
            ended.err.contains(&format!("to resume: minder resume {}", place.id())),
            "{flags}: {}",
            ended.err
        );
        let journal = file(&place.run().join("attempt-1.jsonl"));
        assert!(journal.contains(r#""why":"interrupted""#), "{flags}: {journal}");
        let note = place.ended("log").exit_code(0).text();
        assert!(note.contains("interrupted") && note.contains(" · minder resume "), "{flags}: {note}");
        let first = String::from_utf8(first).expect("read text") + &read_all(reader);
        let again = place.ended("resume").exit_code(0).text();
        for number in 1..=3 {
            let end = format!("end {number}\n");
            assert!(first.contains(&end) || again.contains(&end), "{flags}: {job}: job {number} is lost");
        }
        assert_eq!(left_in(&place.run()), 0, "{flags}: {job}");
    }
}

/// A reader that takes everything is not given up while processes of a job have their grace time.
#[test]
fn interrupted_run_keeps_a_reader_that_takes_everything() {
    const LEN: usize = 3_000_000;
    let place = Place::new();
    let job = "if [ {} = 2 ]; then echo second; echo x >>../marks; exit; fi; yes | head -c 3000000; \
               (trap '' TERM; exec sleep 9) & trap 'exit 0' TERM; wait";
    let (run, mut reader) = start(&place, "run --no-record --grace 60 -k -j2", [job, ":::", "1", "2"]);
    reader.read_exact(&mut vec![0; LEN]).expect("read the output of the first job");
    wait_until("the second job has run", || marks(&place) == 1);
    run.signal(Signal::TERM);
    assert_eq!(read_all(reader), "second\n");
    run.wait().killed_by(Signal::TERM);
}

/// The third signal waits for no reader. The run is recorded nevertheless. Without a record, a message says
/// that output is lost.
#[test]
fn third_signal_ends_and_records_a_run_that_is_not_read() {
    for flags in ["", "--no-record"] {
        let place = Place::new();
        let words = ["seq 300000; : {}", ":::", "1", "2", "3"];
        let (run, reader) = start(&place, &format!("run -j1 --grace 60 {flags}"), words);
        wait_until("the job has written", || rustix::io::ioctl_fionread(&reader).is_ok_and(|len| len > 0));
        for _ in 0..3 {
            std::thread::park_timeout(Duration::from_millis(300));
            run.signal(Signal::TERM);
        }
        let since = Instant::now();
        let ended = run.wait().killed_by(Signal::TERM);
        assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
        let lost = "minder: cannot write the rest of the output: its reader takes nothing, ";
        assert_eq!(ended.err.contains(lost), !flags.is_empty(), "{}", ended.err);
        if flags.is_empty() {
            assert!(ended.err.contains("to resume: minder resume "), "{}", ended.err);
            assert!(place.ended("log").text().contains("interrupted · 3 left · minder resume "));
        }
        drop(reader);
    }
}

/// A worker thread that hangs in a write ends no more. The main thread records the end of the run.
#[test]
fn third_signal_records_a_run_whose_worker_thread_hangs() {
    let place = Place::new();
    let joblog = place.at("joblog");
    make_fifo(&joblog);
    let both = File::options().read(true).write(true).open(&joblog).expect("open named pipe");
    let long = "x".repeat(100_000);
    let words = [": {}; echo x >>../marks", ":::", &long, &long, &long];
    let (run, reader) = start(&place, "run -j1 --joblog ../joblog", words);
    wait_until("the joblog is full", || rustix::io::ioctl_fionread(&both).is_ok_and(|len| len > 60_000));
    for _ in 0..3 {
        std::thread::park_timeout(Duration::from_millis(300));
        run.signal(Signal::TERM);
    }
    let since = Instant::now();
    let ended = run.wait();
    assert!(since.elapsed() < Duration::from_secs(5) && !ended.status.success(), "{ended:?}");
    assert!(ended.err.contains("to resume: minder resume "), "{}", ended.err);
    let journal = file(&place.run().join("attempt-1.jsonl"));
    assert!(journal.contains(r#""why":"interrupted""#), "{:.300}", journal.replace(&long, "x"));
    drop((reader, both));
}

fn make_fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)
        .expect("create named pipe");
}

/// Returns the private memory of a process and its children, in KiB.
fn memory(pid: u32) -> usize {
    let status = |pid: u32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let anonymous = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    super::children(pid).into_iter().chain([pid]).map(|pid| anonymous(&status(pid))).max().unwrap_or(0)
}

/// Returns how many files with output a run has.
fn left_in(run: &Path) -> usize {
    let names = fs::read_dir(run).expect("list directory").flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().contains("spill")).count()
}
