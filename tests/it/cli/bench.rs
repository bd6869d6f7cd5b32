//! `minder bench`: its measurements appear in every format, also after an interrupt.

#[cfg(unix)]
use rustix::process::Signal;

#[cfg(windows)]
use super::interrupted;
#[cfg(unix)]
use super::minder_as;
use super::{Run, file, minder, path, pipe, run_to_end, temp_dir};

/// Numbers of objects that every mechanism takes: on Windows one call takes 64. Under Wine a case
/// takes half a second.
const SIZES: &[u32] = if cfg!(windows) { &[64] } else { &[2, 70] };

/// A mechanism with a limit, its largest number of objects, and parts of the errors beyond that:
/// the limit of the mechanism, or that of descriptors.
const LIMITED: (&str, u32, &[&str]) = if cfg!(windows) {
    ("bare-wfmo", 64, &["one call takes 1 to 64 objects"])
} else {
    ("thread-each", 4096, &["at most 4096 threads", "descriptors are needed"])
};

/// Returns the mechanisms of this machine.
fn mechanisms() -> Vec<&'static str> {
    minder_bench::waits().filter(|name| crate::support::has_backend(name)).collect()
}

/// Returns a backend of minder and a baseline that every machine has.
fn two() -> [&'static str; 2] {
    [mechanisms()[0], "pool"]
}

/// Returns the arguments with `--mechanism` for each of these names.
fn with(line: &str, mechanisms: &[&str]) -> String {
    mechanisms.iter().fold(line.to_owned(), |line, name| format!("{line} --mechanism {name}"))
}

/// Returns the names of the columns: under Wine there is one more.
pub(super) fn columns(names: &str) -> String {
    if minder_bench::is_wine() { format!("{names},note") } else { names.to_owned() }
}

#[test]
fn table_has_every_mechanism() {
    let sizes: Vec<String> = SIZES.iter().map(u32::to_string).collect();
    let line = format!("bench wait --rounds 1 --objects {}", sizes.join(","));
    let mut bench = minder(&with(&line, &mechanisms()));
    let ended = Run::start(bench.env("LC_ALL", "C.UTF-8")).wait().exit_code(0).stderr("");
    let text = ended.text();
    let head: Vec<&str> = text
        .lines()
        .find(|line| line.starts_with("objects "))
        .expect("find the head of the table")
        .split_whitespace()
        .collect();
    assert_eq!(head[1..], mechanisms(), "{text}");
    let of_size =
        |line: &&str| line.split_whitespace().next().is_some_and(|word| sizes.iter().any(|it| it == word));
    let rows: Vec<&str> = text.lines().filter(of_size).collect();
    // One table of CPU time, and one of wall time.
    assert_eq!(rows.len(), 2 * sizes.len(), "{text}");
    for row in rows {
        let costs = row.matches(" ns").count() + row.matches(" µs").count() + row.matches(" ms").count();
        assert_eq!(costs, mechanisms().len(), "{text}");
    }
}

#[test]
fn csv_has_a_row_for_each_measurement() {
    let text =
        run_to_end(&with("bench wait --rounds 2 --objects 2,5 --csv", &two())).exit_code(0).stderr("").text();
    let mut lines = text.split("\r\n");
    assert_eq!(lines.next(), Some(&*columns("mechanism,objects,round,waits,cpu_ns,wall_ns")));
    let rows: Vec<Vec<&str>> =
        lines.filter(|line| !line.is_empty()).map(|line| line.split(',').collect()).collect();
    let heads: Vec<String> = rows.iter().map(|row| row[..3].join(" ")).collect();
    // Each round measures every mechanism at every size.
    let turns = [2, 5].into_iter().flat_map(|size| two().map(|name| format!("{name} {size}")));
    let wanted: Vec<String> =
        (1..=2).flat_map(|round| turns.clone().map(move |turn| format!("{turn} {round}"))).collect();
    assert_eq!(heads, wanted);
    for row in &rows {
        assert!(row[3].parse::<u64>().is_ok_and(|waits| waits >= 50), "{row:?}");
        assert!(row[4..6].iter().all(|cost| cost.parse::<f64>().is_ok_and(|cost| cost >= 0.0)), "{row:?}");
    }
}

#[test]
fn json_has_an_object_for_each_measurement() {
    let text = run_to_end("bench wait --rounds 1 --objects 2..4 --mechanism pool --json")
        .exit_code(0)
        .stderr("")
        .text();
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 2, "{text}");
    for (row, size) in rows.iter().zip([2, 4]) {
        let begin = format!("{{\"mechanism\":\"pool\",\"objects\":{size},\"round\":1,\"waits\":");
        assert!(row.starts_with(&begin) && row.contains("\"cpu_ns\":") && row.ends_with('}'), "{row}");
    }
}

#[test]
fn chart_has_a_curve_for_each_mechanism() {
    let dir = temp_dir();
    let svg = dir.path().join("wait.svg");
    let line = format!("bench wait --rounds 1 --objects 2,70 --svg {}", path(&svg));
    let asked = if cfg!(windows) { two().to_vec() } else { mechanisms() };
    run_to_end(&with(&line, &asked)).exit_code(0).stderr("");
    let text = file(&svg);
    assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{text}");
    let cost = if cfg!(windows) { "Wall time of one wait" } else { "CPU time of one wait, all threads" };
    let words = ["Waiting for one of many objects", "objects that are waited for", cost, "2", "70"];
    for word in asked.into_iter().chain(words) {
        assert!(text.lines().any(|line| line == word), "{word} is missing:\n{text}");
    }
    assert!(text.contains("published: pool of waiter threads"), "{text}");
}

#[test]
fn unsupported_sizes_are_listed_and_the_others_measured() {
    let (name, most, said) = LIMITED;
    let more = most + 1;
    let text = run_to_end(&format!("bench wait --rounds 1 --objects 2,{more} --mechanism {name}"))
        .exit_code(0)
        .stderr("")
        .text();
    let row = |size: u32| text.lines().find(|line| line.trim_start().starts_with(&format!("{size} ")));
    assert!(row(2).is_some_and(|row| !row.ends_with(" -")), "{text}");
    assert!(row(more).is_some_and(|row| row.ends_with(" -")), "{text}");
    let gap = text.lines().find(|line| line.starts_with(&format!("  {name}, {more} objects: ")));
    assert!(gap.is_some_and(|gap| said.iter().any(|said| gap.contains(said))), "{text}");
}

#[cfg(unix)] // Windows has no limit of descriptors.
#[test]
fn too_low_descriptor_limit_is_reported_with_a_hint() {
    let poor =
        minder_as("nofile=100", "bench wait --rounds 1 --objects 2,1000 --mechanism poll --mechanism pool");
    let text = Run::start(&poor).wait().exit_code(0).stderr("").text();
    assert!(text.lines().any(|line| line.starts_with("   1000 ") && line.ends_with(" -")), "{text}");
    for name in ["poll", "pool"] {
        let gap = text.lines().find(|line| line.starts_with(&format!("  {name}, 1000 objects: ")));
        assert!(gap.is_some_and(|gap| gap.contains("may have 100; hint: ")), "{text}");
    }
}

/// Returns a directory, a chart in it, and arguments of a measurement that takes minutes.
fn long(flags: &str) -> (tempfile::TempDir, std::path::PathBuf, String) {
    let dir = temp_dir();
    let svg = dir.path().join("wait.svg");
    let line =
        format!("bench wait --rounds 1000 --objects 2,4 --mechanism pool --svg {} {flags}", path(&svg));
    (dir, svg, line)
}

const INTERRUPTED: &str = "minder: interrupted; showing what was measured\n";

/// Fails unless the table and the chart show at least one measurement.
fn shows(table: &str, chart: &std::path::Path) {
    assert!(table.contains("CPU time of one wait") && table.contains("\n      2  "), "{table}");
    assert!(file(chart).contains("</svg>"));
}

#[cfg(unix)] // The next test is that of Windows.
#[test]
fn interrupt_shows_what_was_measured() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (_dir, svg, line) = long("");
        let mut live = Run::start(&minder(&line));
        // The command opens it after it began to handle signals.
        live.wait_until_true("the chart's file", || svg.exists());
        live.signal(signal);
        shows(&live.wait().exit_code(status).stderr(INTERRUPTED).text(), &svg);
    }
    let (_dir, _svg, line) = long("--csv");
    let mut live = Run::start(&minder(&line));
    live.wait_until("three rows", |record| record.outs[0].iter().filter(|byte| **byte == b'\n').count() > 3);
    live.signal(Signal::INT);
    let text = live.wait().exit_code(130).stderr(INTERRUPTED).text();
    assert!(text.lines().count() > 3 && text.ends_with("\r\n"), "{text}");
}

/// Wine cannot send Ctrl-Break, which stands for SIGTERM.
#[cfg(windows)]
#[test]
fn ctrl_c_shows_what_was_measured() {
    let (_dir, svg, line) = long("");
    // The command opens it after it began to handle Ctrl-C.
    shows(&interrupted(0, &svg, &minder(&line), 130).stderr(INTERRUPTED).text(), &svg);
}

/// Opening a FIFO blocks until it has a reader; a signal still ends the command. Opening a named
/// pipe of Windows does not block.
#[cfg(target_os = "linux")]
#[test]
fn signal_ends_command_that_opens_fifo_without_reader() {
    let dir = temp_dir();
    let fifo = dir.path().join("chart");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).expect("make FIFO");
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut live =
            Run::start(&minder(&format!("bench wait --rounds 1 --objects 2 --svg {}", path(&fifo))));
        // The second thread opens the FIFO; the command handles signals since before it started.
        let threads = format!("/proc/{}/task", live.pid());
        live.wait_until_true("the wait for a reader", || {
            std::fs::read_dir(&threads).is_ok_and(|tasks| tasks.count() == 2)
        });
        live.signal(signal);
        assert_eq!(live.wait().exit_code(status).stderr("").text(), "");
    }
}

#[test]
fn chart_is_not_overwritten_when_nothing_was_measured() {
    let dir = temp_dir();
    let svg = dir.path().join("wait.svg");
    std::fs::write(&svg, "the chart of yesterday").expect("write old chart");
    let (name, most, said) = LIMITED;
    let line =
        format!("bench wait --rounds 1 --objects {} --mechanism {name} --svg {}", most + 1, path(&svg));
    let ended = run_to_end(&line).exit_code(255);
    assert!(said.iter().any(|said| ended.err.contains(said)), "{}", ended.err);
    ended.error_line(&["nothing was measured"]);
    assert_eq!(file(&svg), "the chart of yesterday");
}

#[test]
fn closed_stdout_ends_command_quietly() {
    for form in ["", "--csv", "--json"] {
        let (reader, writer) = pipe();
        drop(reader);
        let mut command = minder(&format!("bench wait --rounds 1 --objects 2 --mechanism pool {form}"));
        Run::start(command.stdout(writer)).wait().exit_code(141).stderr("");
    }
}

/// Writing to a full pipe blocks; a signal still ends the command. On Windows a test cannot see
/// that the write has begun.
#[cfg(target_os = "linux")]
#[test]
fn interrupt_ends_command_that_blocks_on_stdout() {
    for options in ["", "--csv"] {
        let (_reader, mut writer) = pipe();
        rustix::io::ioctl_fionbio(&writer, true).expect("make pipe non-blocking");
        while std::io::Write::write(&mut writer, &[b'x'; 4096]).is_ok() {}
        rustix::io::ioctl_fionbio(&writer, false).expect("make pipe blocking");
        let mut command = minder(&format!("bench wait --rounds 1 --objects 2 --mechanism poll {options}"));
        let mut live = Run::start(command.stdout(writer));
        // The second thread writes.
        let threads = format!("/proc/{}/task", live.pid());
        live.wait_until_true("the write", || {
            std::fs::read_dir(&threads).is_ok_and(|tasks| tasks.count() == 2)
        });
        live.signal(Signal::INT);
        live.wait().exit_code(130);
    }
}
