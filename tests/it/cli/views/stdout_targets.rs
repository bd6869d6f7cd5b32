//! The targets of output: files, pipes, and targets that refuse it.

use std::fs::{self, File, OpenOptions};
use std::io::Read;

use super::{Run, Text, feed, input, is_known, minder, pipe, run_to_end, shell, temp_dir, texts, untangle};

const VIEWS: [&str; 9] = [
    "-j1",
    "-j3",
    "-k -j3",
    "--lb -j3",
    "--spool -j3",
    "--tag -k -j2",
    "-k -j3 --no-record",
    "-j1 --pty",
    "-u -j1",
];

/// Those that this system has.
fn views() -> impl Iterator<Item = &'static str> {
    VIEWS.into_iter().filter(|view| is_known(view))
}

fn jobs() -> Vec<Text> {
    texts(6, 5000, 400_000)
}

#[test]
fn file_is_written_from_the_start_or_appended() {
    for view in views().filter(|view| !view.contains("--pty")) {
        let dir = temp_dir();
        let target = dir.path().join("out");
        for (append, before) in [(false, ""), (true, "before\n")] {
            fs::write(&target, before).expect("write file");
            let file = OpenOptions::new().write(true).append(append).open(&target).expect("open file");
            let mut command = minder(&format!("run {view} CHILD text"));
            command.stdin(input(&feed(&jobs()))).stdout(file);
            let ended = Run::start(&command).wait().exit_code(0);
            let all = fs::read(&target).expect("read file");
            assert!(all.starts_with(before.as_bytes()), "{view}");
            untangle(&all[before.len()..], 0, &jobs(), view.contains("--tag"));
            untangle(&ended.errors, 1, &jobs(), view.contains("--tag"));
        }
    }
}

#[test]
fn only_job_writes_to_any_target() {
    let jobs = [Text { id: 0, lens: [3_000_000, 10], longest: 9000, code: 0 }];
    let dir = temp_dir();
    let target = dir.path().join("out");
    for append in [false, true] {
        fs::write(&target, "").expect("write file");
        let file = OpenOptions::new().write(true).append(append).open(&target).expect("open file");
        let mut command = minder("run CHILD text :::");
        Run::start(command.arg(jobs[0].word()).stdout(file)).wait().exit_code(0);
        untangle(&fs::read(&target).expect("read file"), 0, &jobs, false);
    }
    let null = if cfg!(windows) { "NUL" } else { "/dev/null" };
    let null = OpenOptions::new().write(true).open(null).expect("open null device");
    Run::start(minder("run CHILD text :::").arg(jobs[0].word()).stdout(null)).wait().exit_code(0);
    // Both streams into one file that is appended to: neither overwrites the other.
    fs::write(&target, "").expect("write file");
    let file = OpenOptions::new().append(true).open(&target).expect("open file");
    let both = minder::Stdio::from(file);
    // That many bytes at once: few of them take long under Wine.
    let chunk = if cfg!(windows) { 4000 } else { 1 };
    let mut command = minder(&format!("run -j1 CHILD both 500000 ::: {chunk}"));
    Run::start(command.stdout(both.clone()).stderr(both)).wait().exit_code(0);
    assert_eq!(fs::metadata(&target).expect("read metadata").len(), 1_000_000);
}

// Anonymous pipes of Windows always block.
#[cfg(unix)]
#[test]
fn nonblocking_pipe_is_waited_for() {
    let jobs = [Text { id: 0, lens: [1_500_000, 0], longest: 9000, code: 0 }];
    for view in VIEWS.iter().filter(|view| !view.contains("--pty") && !view.contains("-u")) {
        let (mut reader, writer) = pipe();
        rustix::io::ioctl_fionbio(&writer, true).expect("set nonblocking mode");
        let mut command = minder(&format!("run {view} CHILD text"));
        let mut live = Run::start(command.stdin(input(&feed(&jobs))).stdout(writer));
        drop(command);
        live.read_for(std::time::Duration::from_millis(50));
        let mut all = Vec::new();
        reader.read_to_end(&mut all).expect("read to end");
        live.wait().exit_code(0);
        untangle(&all, 0, &jobs, view.contains("--tag"));
    }
}

#[test]
fn closed_pipe_ends_the_run_quietly() {
    for view in views().filter(|view| !view.contains("-u")) {
        let (mut reader, writer) = pipe();
        let mut command = minder(&format!("run {view} CHILD spew 300000 :::"));
        let live = Run::start(command.args(["1"; 300]).stdout(writer));
        drop(command);
        reader.read_exact(&mut [0; 10]).expect("read bytes");
        drop(reader);
        live.wait().exit_code(141).stderr("");
    }
    // The only job, whose bytes go without a copy: before it writes, and while it writes.
    for early in [true, false] {
        let (mut reader, writer) = pipe();
        let mut command = minder("run CHILD lines 1000000 0 ::: 1");
        if early {
            command = minder("run CHILD spew 100 ::: 1");
        }
        let live = Run::start(command.stdout(writer));
        drop(command);
        if !early {
            reader.read_exact(&mut [0; 10]).expect("read bytes");
        }
        drop(reader);
        live.wait().exit_code(141).stderr("");
    }
}

// Windows has no device that is always full.
#[cfg(unix)]
#[test]
fn full_device_is_one_line_of_error() {
    for view in VIEWS.iter().filter(|view| !view.contains("-u")) {
        for line in ["CHILD spew 10 ::: 1", "CHILD spew 300000 ::: 1", "CHILD spew 100000 ::: 1 2 3 4"] {
            let full = OpenOptions::new().write(true).open("/dev/full").expect("open /dev/full");
            let ended = Run::start(minder(&format!("run {view} {line}")).stdout(full)).wait().exit_code(255);
            ended.error_line(&["cannot write to standard output: no space left on device"]);
        }
    }
}

// Unix starts programs without a standard stream.
#[cfg(unix)]
#[test]
fn closed_streams_fail_only_if_bytes_are_lost() {
    for view in ["", "-k", "--lb", "--spool", "--tag", "--pty"] {
        // Output that is lost is an error, and only where there is some: a closed stderr takes messages
        // alone.
        for (stream, code) in [(1, 255), (2, 0)] {
            for job in ["-j2 CHILD both 5 ::: 1 2 3", "CHILD spew 500000 ::: 1"] {
                let line = format!("run {view} {job}");
                let command = super::super::minder_as(&format!("close={stream}"), &line);
                Run::start(&command).wait().exit_code(code);
            }
        }
    }
}

#[test]
fn stderr_goes_to_its_own_file() {
    let dir = temp_dir();
    let target = dir.path().join("err");
    for view in ["", "-k", "--lb", "--spool", "-j1"] {
        let errors = File::create(&target).expect("create file");
        let mut command = minder(&format!("run {view} CHILD text"));
        let ended = Run::start(command.stdin(input(&feed(&jobs()))).stderr(errors)).wait().exit_code(0);
        untangle(&ended.out, 0, &jobs(), false);
        untangle(&fs::read(&target).expect("read file"), 1, &jobs(), false);
    }
    let ended = run_to_end("run -j1 CHILD both 100000 500 ::: 1").exit_code(0);
    assert_eq!((ended.out.len(), ended.errors.len()), (100_000, 100_000));
}

#[test]
fn leaked_output_is_reported_in_every_mode() {
    // What the job wrote is shown; an output that its child holds open is closed and reported, in every
    // mode of pipes.
    for view in ["-j1", "-j2", "-k -j2", "--lb -j2", "--tag -j2"] {
        let line = "CHILD hold-stdout 3000 7; echo; echo {}";
        let ended = Run::start(&shell(view, line, &["1", "2"]))
            .wait()
            .exit_code(0)
            .stderr_contains("left its output open");
        let bytes = if view.contains("--tag") { 2 * 10 + 2 * 4 } else { 2 * 10 };
        assert_eq!(ended.out.len(), bytes, "{view}: {:?}", ended.text());
    }
}
