//! `minder bench`: what it measures is shown in every form, also when somebody wants an end.

use rustix::process::Signal;

use super::{Live, ended, file, folder, minder, minder_as, path, pipe};

/// A few moments of measuring.
const LITTLE: &str = "bench wait --rounds 1 --objects 2,70";

/// Those of this machine.
fn mechanisms() -> Vec<&'static str> {
    minder::lab::waits().filter(|name| crate::kit::has_backend(name)).collect()
}

/// The same, with each of them asked for.
fn with_all(line: &str) -> String {
    mechanisms().iter().fold(line.to_owned(), |line, name| format!("{line} --mechanism {name}"))
}

#[test]
fn the_table_has_every_mechanism() {
    let text = ended(&with_all(LITTLE)).code(0).says("").text();
    let head: Vec<&str> =
        text.lines().find(|line| line.starts_with("objects ")).expect("a head").split_whitespace().collect();
    assert_eq!(head[1..], mechanisms(), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with(['2', '7'])).collect();
    // Of CPU time, and of wall time.
    assert_eq!(rows.len(), 4, "{text}");
    for row in rows {
        let costs = row.matches(" ns").count() + row.matches(" us").count() + row.matches(" ms").count();
        assert_eq!(costs, mechanisms().len(), "{text}");
    }
}

#[test]
fn csv_has_a_row_for_each_measurement() {
    let text = ended("bench wait --rounds 2 --objects 2,5 --mechanism poll --mechanism select --csv")
        .code(0)
        .says("");
    let text = text.text();
    let mut lines = text.split("\r\n");
    assert_eq!(lines.next(), Some("mechanism,objects,round,waits,cpu_ns,wall_ns"));
    let rows: Vec<Vec<&str>> =
        lines.filter(|line| !line.is_empty()).map(|line| line.split(',').collect()).collect();
    let heads: Vec<String> = rows.iter().map(|row| row[..3].join(" ")).collect();
    // Rounds are interleaved: in each, every mechanism has its turn at every size.
    let turns = ["poll 2", "select 2", "poll 5", "select 5"];
    let wanted: Vec<String> = (1..=2).flat_map(|round| turns.map(|turn| format!("{turn} {round}"))).collect();
    assert_eq!(heads, wanted);
    for row in &rows {
        assert!(row[3].parse::<u64>().is_ok_and(|waits| waits >= 50), "{row:?}");
        assert!(row[4..].iter().all(|cost| cost.parse::<f64>().is_ok_and(|cost| cost >= 0.0)), "{row:?}");
    }
}

#[test]
fn json_has_an_object_for_each_measurement() {
    let text = ended("bench wait --rounds 1 --objects 2..4 --mechanism pool --json").code(0).says("").text();
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 2, "{text}");
    for (row, size) in rows.iter().zip([2, 4]) {
        let begin = format!("{{\"mechanism\":\"pool\",\"objects\":{size},\"round\":1,\"waits\":");
        assert!(row.starts_with(&begin) && row.contains("\"cpu_ns\":") && row.ends_with('}'), "{row}");
    }
}

#[test]
fn the_chart_has_a_curve_for_each_mechanism() {
    let folder = folder();
    let svg = folder.path().join("wait.svg");
    ended(&format!("{LITTLE} --svg {}", path(&svg))).code(0).says("");
    let text = file(&svg);
    assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{text}");
    let words = [
        "Waiting for one of many objects",
        "objects that are waited for",
        "CPU time of one wait, all threads",
    ];
    for word in mechanisms().into_iter().chain(words).chain(["2", "70"]) {
        assert!(text.lines().any(|line| line == word), "{word} is missing:\n{text}");
    }
    assert!(text.contains("published: pool of waiter threads"), "{text}");
}

#[test]
fn what_does_not_fit_is_named_and_the_rest_is_measured() {
    let poor =
        minder_as("nofile=100", "bench wait --rounds 1 --objects 2,1000 --mechanism epoll --mechanism poll");
    let text = Live::start(&poor).finish().code(0).says("").text();
    assert!(text.lines().any(|line| line.starts_with("   1000 ") && line.ends_with(" -")), "{text}");
    for name in ["epoll", "poll"] {
        let gap = text.lines().find(|line| line.starts_with(&format!("  {name}, 1000 objects: ")));
        assert!(gap.is_some_and(|gap| gap.contains("may have 100; cure: ")), "{text}");
    }
    let many =
        ended("bench wait --rounds 1 --objects 2,4097 --mechanism thread-each").code(0).says("").text();
    assert!(many.contains("at most 4096 threads") || many.contains("descriptors are needed"), "{many}");
}

/// A measurement that would take minutes, and has begun.
fn long(flags: &str) -> (tempfile::TempDir, Live) {
    let folder = folder();
    let svg = folder.path().join("wait.svg");
    let line =
        format!("bench wait --rounds 1000 --objects 2,4 --mechanism poll --svg {} {flags}", path(&svg));
    let mut live = Live::start(&minder(&line));
    // It is opened when signals are heard.
    live.until_true("the chart's file", || svg.exists());
    (folder, live)
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    const SAID: &str = "minder: interrupted; showing what was measured\n";
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (folder, live) = long("");
        live.signal(signal);
        let text = live.finish().code(status).says(SAID).text();
        assert!(text.starts_with("CPU time of one wait") && text.contains("\n      2  "), "{text}");
        assert!(file(&folder.path().join("wait.svg")).contains("</svg>"));
    }
    let (_folder, mut live) = long("--csv");
    live.until("three rows", |record| record.outs[0].iter().filter(|byte| **byte == b'\n').count() > 3);
    live.signal(Signal::INT);
    let text = live.finish().code(130).says(SAID).text();
    assert!(text.lines().count() > 3 && text.ends_with("\r\n"), "{text}");
}

/// Whoever names a pipe that nobody reads can still end the wait for a reader.
#[cfg(target_os = "linux")]
#[test]
fn a_chart_that_nobody_reads_does_not_keep_it_from_ending() {
    let folder = folder();
    let fifo = folder.path().join("chart");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).expect("a pipe");
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut live = Live::start(&minder(&format!("{LITTLE} --svg {}", path(&fifo))));
        // The second thread is the one that waits; signals are held before it begins.
        let threads = format!("/proc/{}/task", live.pid());
        live.until_true("the wait for a reader", || {
            std::fs::read_dir(&threads).is_ok_and(|tasks| tasks.count() == 2)
        });
        live.signal(signal);
        assert_eq!(live.finish().code(status).says("").text(), "");
    }
}

#[test]
fn a_chart_stays_when_nothing_was_measured() {
    let folder = folder();
    let svg = folder.path().join("wait.svg");
    std::fs::write(&svg, "the chart of yesterday").expect("a file");
    let poor = format!("bench wait --rounds 1 --objects 1000 --mechanism poll --svg {}", path(&svg));
    Live::start(&minder_as("nofile=100", &poor)).finish().code(255);
    assert_eq!(file(&svg), "the chart of yesterday");
}

#[test]
fn it_ends_quietly_when_nobody_reads() {
    for form in ["", "--csv", "--json"] {
        let (reader, writer) = pipe();
        drop(reader);
        let mut command = minder(&format!("bench wait --rounds 1 --objects 2 --mechanism poll {form}"));
        Live::start(command.stdout(writer)).finish().code(141).says("");
    }
}

/// A pipe that is full, and that nobody reads: whoever asks for an end gets it.
#[cfg(target_os = "linux")]
#[test]
fn a_stdout_that_takes_nothing_does_not_outlast_ctrl_c() {
    for options in ["", "--csv"] {
        let (_reader, mut writer) = pipe();
        rustix::io::ioctl_fionbio(&writer, true).expect("a pipe");
        while std::io::Write::write(&mut writer, &[b'x'; 4096]).is_ok() {}
        rustix::io::ioctl_fionbio(&writer, false).expect("a pipe");
        let mut command = minder(&format!("bench wait --rounds 1 --objects 2 --mechanism poll {options}"));
        let mut live = Live::start(command.stdout(writer));
        // The second thread is the one that writes.
        let threads = format!("/proc/{}/task", live.pid());
        live.until_true("the write", || std::fs::read_dir(&threads).is_ok_and(|tasks| tasks.count() == 2));
        live.signal(Signal::INT);
        live.finish().code(130);
    }
}
