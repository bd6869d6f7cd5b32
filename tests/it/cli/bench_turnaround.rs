//! `minder bench turnaround`: its rows follow from the model's arithmetic, every format has them, and an
//! interrupted run is continued. Never how fast it is.

use std::collections::HashMap;
use std::path::Path;

#[cfg(unix)]
use rustix::process::Signal;

#[cfg(unix)]
use super::{Run, minder};
use super::{file, path, run_to_end, temp_dir};

/// A measurement, by the names of the columns.
type Row = HashMap<String, String>;

/// Returns the rows of CSV.
fn rows(csv: &str) -> Vec<Row> {
    let mut lines = csv.split("\r\n").filter(|line| !line.is_empty());
    let names: Vec<&str> = lines.next().expect("find the names of the columns").split(',').collect();
    lines
        .map(|line| {
            let values: Vec<&str> = line.split(',').collect();
            assert_eq!(values.len(), names.len(), "{line}");
            names.iter().zip(values).map(|(name, value)| ((*name).to_owned(), value.to_owned())).collect()
        })
        .collect()
}

/// Runs `minder bench turnaround` with `--csv`, and returns the rows.
fn measured(flags: &str) -> Vec<Row> {
    rows(&run_to_end(&format!("bench turnaround --csv {flags}")).exit_code(0).text())
}

fn number(row: &Row, name: &str) -> f64 {
    row[name].parse().unwrap_or_else(|_| panic!("{name} is not a number: {row:?}"))
}

/// Returns the form of a row: `threads 2 longest`.
fn form(row: &Row) -> String {
    ["runner", "degree", "order"].map(|name| row[name].as_str()).join(" ")
}

#[test]
fn each_form_is_measured_in_each_repetition() {
    let rows = measured("--workload io --count 2,3 --bias 2 --degree 2,9 --repetitions 2");
    let of = |count: &str, repetition: &str| -> Vec<String> {
        let asked = |row: &&Row| row["computations"] == count && row["repetition"] == repetition;
        rows.iter().filter(asked).map(form).collect()
    };
    let three = [
        "serial 1 longest",
        "serial 1 shortest",
        "threads 2 longest",
        "threads 2 shortest",
        "threads 9 longest",
        "children 2 longest",
        "children 9 longest",
        "timers 3 longest",
    ];
    assert_eq!(
        (of("3", "1"), of("3", "2")),
        (three.map(str::to_owned).into(), three.map(str::to_owned).into())
    );
    // All of two run at once with any degree from 2 on.
    let two = [
        "serial 1 longest",
        "serial 1 shortest",
        "threads 9 longest",
        "children 9 longest",
        "timers 2 longest",
    ];
    assert_eq!(of("2", "1"), two);
    assert_eq!(rows.len(), 2 * (three.len() + two.len()));
}

#[test]
fn sleeps_take_at_least_what_the_model_says() {
    let rows = measured("--workload io --runner serial --runner threads --runner timers --count 4 --bias 5");
    assert!(rows.len() >= 5 * 5);
    for row in &rows {
        // A time is rounded to a microsecond.
        assert!(number(row, "elapsed_ms") + 0.001 >= number(row, "model_elapsed_ms"), "{row:?}");
        assert!(number(row, "turnaround") + 0.001 >= number(row, "model_turnaround"), "{row:?}");
        assert!(number(row, "turnaround_p95") + 0.001 >= number(row, "turnaround"), "{row:?}");
    }
    let model = |wanted: &str| -> (f64, f64) {
        let row = rows.iter().find(|row| form(row) == wanted).expect("find the form");
        (number(row, "model_elapsed_ms"), number(row, "model_turnaround"))
    };
    // 20, 15, 10 and 5 ms: done after 20, 35, 45, 50, so (20/20 + 35/15 + 45/10 + 50/5) / 4.
    assert_eq!(model("serial 1 longest"), (50.0, 4.458));
    // Done after 5, 15, 30, 50: (1 + 1.5 + 2 + 2.5) / 4.
    assert_eq!(model("serial 1 shortest"), (50.0, 1.75));
    assert_eq!(model("timers 4 longest"), (20.0, 1.0));
    // The caller's thread sleeps itself in the serial form: for the longest time, 20 ms.
    let serial = rows.iter().filter(|row| form(row).starts_with("serial"));
    assert!(serial.into_iter().all(|row| number(row, "unresponsive_ms") >= 20.0));
}

#[test]
fn computations_take_processor_time_in_every_form() {
    let rows =
        measured("--workload cpu --workload loops --workload mixed --count 3 --bias 4 --repetitions 1");
    for workload in ["cpu", "loops", "mixed"] {
        assert!(rows.iter().any(|row| row["workload"] == workload), "{workload}");
    }
    assert!(rows.iter().any(|row| row["runner"] == "children"));
    // On Windows the clock has steps of 15.6 ms.
    let by_clock = |row: &&Row| row["workload"] == "cpu" && cfg!(unix);
    for row in rows.iter().filter(by_clock) {
        assert!(number(row, "cpu_ms") >= 24.0, "{row:?}");
    }
}

#[test]
fn equal_computations_have_equal_lengths() {
    let rows =
        measured("--equal --workload io --runner serial --runner threads --bias 3 --count 4 --repetitions 1");
    assert!(rows.iter().all(|row| row["lengths"] == "equal" && row["order"] == "longest"));
    let elapsed: Vec<f64> = rows.iter().map(|row| number(row, "model_elapsed_ms")).collect();
    // Serially, two at once, and all at once.
    assert_eq!(elapsed, [12.0, 6.0, 3.0]);
}

#[test]
fn tables_and_files_have_every_form() {
    let dir = temp_dir();
    let svg = dir.path().join("turn.svg");
    let xlsx = dir.path().join("turn.xlsx");
    let flags = "--quick --workload io --runner serial --runner threads --runner timers --count 2,5 --bias 1";
    let line = format!("bench turnaround {flags} --svg {} --xlsx {}", path(&svg), path(&xlsx));
    let ended = run_to_end(&line).exit_code(0);
    let text = ended.text();
    let head = "io, 1 ms × i, on ";
    assert!(text.starts_with(head) && text.contains("\nMean relative turnaround:\n"), "{text}");
    assert!(text.contains("\nOf 5 computations:\n"), "{text}");
    let forms = [
        "serial",
        "serial, shortest first",
        "2 threads",
        "2 threads, shortest first",
        "25 threads",
        "timers",
    ];
    let chart = file(&svg);
    for form in forms {
        assert_eq!(
            text.lines().filter(|line| line.starts_with(&format!("{form}  "))).count(),
            3,
            "{form}: {text}"
        );
        assert_eq!(chart.lines().filter(|line| *line == form).count(), 4, "{form}: {chart}");
    }
    for word in [
        "Serial or concurrent",
        "Elapsed time",
        "Mean relative turnaround",
        "p95 relative turnaround",
        "Unresponsive time",
        "computations",
        "io, 1 ms × i",
    ] {
        assert!(chart.lines().any(|line| line == word), "{word} is missing:\n{chart}");
    }
    assert!(std::fs::read(&xlsx).expect("read workbook").starts_with(b"PK"));
}

#[test]
fn runs_that_do_not_fit_are_left_out_and_named() {
    // Two orders of 90 s each.
    let flags = "--minutes 1 --workload io --runner serial --count 2 --bias 1,30000 --repetitions 2 --csv";
    let ended = run_to_end(&format!("bench turnaround {flags}")).exit_code(0);
    let stderr = ended.err.clone();
    assert!(stderr.starts_with("minder: 4 runs on "), "{stderr}");
    let left_out = "minder: left out, to end within 60.0 s: 30000 ms (1 repetition) (--minutes, --full)\n";
    assert!(stderr.contains(left_out), "{stderr}");
    assert_eq!(rows(&ended.text()).len(), 4);
}

/// Returns the milliseconds that the first line expects all runs to take.
#[cfg(unix)]
fn expected_ms(stderr: &str) -> f64 {
    let (_, rest) = stderr.split_once("expected to take ").expect("find the expected time");
    let mut words = rest.split(' ');
    let number: f64 = words.next().and_then(|word| word.parse().ok()).expect("parse the expected time");
    match words.next() {
        Some("ms") => number,
        Some("s") => number * 1e3,
        other => panic!("not a time: {other:?} in {stderr}"),
    }
}

#[cfg(unix)] // Signals.
#[test]
fn plan_is_shortened_until_it_fits_into_a_minute() {
    for (flags, left_out) in [
        ("--minutes 1", "17 computations, "),
        ("--quick --bias 100", "17 computations (--minutes or --full"),
        ("--minutes 1 --workload io --bias 4000 --count 5 --equal --repetitions 1 --degree 1,2", "degree 1 "),
    ] {
        let left_out = format!("minder: left out, to end within 60.0 s: {left_out}");
        let mut live = Run::start(&minder(&format!("bench turnaround {flags}")));
        live.wait_until("calibration", |log| String::from_utf8_lossy(&log.outs[1]).contains("calibration: "));
        live.signal(Signal::INT);
        let stderr = live.wait().exit_code(130).err.clone();
        assert!(expected_ms(&stderr) <= 60_000.0, "{flags}: {stderr}");
        assert!(stderr.contains(&left_out), "{flags}: {stderr}");
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))] // `/dev/full`.
#[test]
fn tables_and_other_files_are_written_when_one_file_cannot_be() {
    let dir = temp_dir();
    let xlsx = dir.path().join("turn.xlsx");
    let flags = "--workload io --runner serial --count 2 --bias 1 --repetitions 1";
    let full = "cannot write the chart `/dev/full`: no space left on device\n";
    for (more, shown) in [("", "Of 2 computations:"), ("--csv", "io,serial,1,longest,")] {
        let line = format!("bench turnaround {flags} {more} --svg /dev/full --xlsx {}", path(&xlsx));
        let ended = run_to_end(&line).exit_code(255);
        assert!(ended.text().contains(shown), "{ended:?}");
        assert!(ended.err.ends_with(&format!("minder: {full}")), "{ended:?}");
        assert!(std::fs::read(&xlsx).expect("read workbook").starts_with(b"PK"));
        std::fs::remove_file(&xlsx).expect("remove workbook");
    }
}

/// Mounts a file system of two pages. Only root may do that.
#[cfg(target_os = "linux")]
fn with_small_disk(run: impl FnOnce(&Path)) {
    let dir = temp_dir();
    let at = dir.path().join("small");
    std::fs::create_dir(&at).expect("create directory");
    let tool = |program: &str, words: &[&str]| {
        let mut command = minder::Command::new(program);
        command.args(words).arg(&at).stdin(minder::Stdio::null());
        command.stdout(minder::Stdio::null()).stderr(minder::Stdio::null());
        command.spawn().and_then(|mut child| child.wait()).is_ok_and(|exit| exit.status.success())
    };
    if !super::is_root() || !tool("mount", &["-t", "tmpfs", "-o", "size=8192", "minder-test"]) {
        crate::support::skip(format_args!("only root may mount a small file system here"));
        return;
    }
    let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&at)));
    assert!(tool("umount", &["-l"]), "cannot unmount");
    run.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[cfg(target_os = "linux")] // Mounts a file system.
#[test]
fn measured_runs_are_shown_when_the_disk_of_the_results_is_full() {
    with_small_disk(|disk| {
        let results = disk.join("results");
        let flags = "--workload io --runner serial --count 2 --bias 1 --repetitions 500";
        let line = |more: &str| format!("bench turnaround {flags} --results {} {more}", path(&results));
        let ended = run_to_end(&line("")).exit_code(255);
        let reason = format!("minder: cannot write the results `{}`: ", results.display());
        assert!(ended.err.lines().last().is_some_and(|line| line.starts_with(&reason)), "{ended:?}");
        assert!(ended.text().contains("Of 2 computations:"), "{ended:?}");
        // It stops at the row that finds no room, which is shown as well. The file has those before.
        std::fs::remove_file(&results).expect("remove results");
        let ended = run_to_end(&line("--csv")).exit_code(255);
        let shown = rows(&ended.text()).len();
        let kept = kept(&results).len();
        assert!(kept > 2 && shown == kept + 1, "{shown} {kept}");
    });
}

#[test]
fn one_of_several_simultaneous_starts_gets_the_results() {
    let dir = temp_dir();
    for round in 0..3 {
        let results = dir.path().join(format!("results-{round}"));
        let flags = "--workload io --runner timers --count 2 --bias 200 --repetitions 1 --json";
        let line = format!("bench turnaround {flags} --results {}", path(&results));
        let live: Vec<_> = (0..8).map(|_| super::Run::start(&super::minder(&line))).collect();
        let mut measured = Vec::new();
        for run in live {
            let ended = run.wait();
            if ended.err.contains("has 0 of 1 run\n") {
                assert!(ended.status.success(), "{ended:?}");
                measured.push(ended.text());
            } else {
                // Another one uses the file, or is done with it.
                let is_late = ended.err.contains("has 1 of 1 run\n");
                assert!(is_late || ended.err.contains(": another process uses it"), "{ended:?}");
            }
        }
        assert_eq!(measured.len(), 1, "{measured:?}");
        assert_eq!(measured.concat(), format!("{}\n", kept(&results).join("\n")));
    }
}

/// Returns the lines of a file of results, without the first.
fn kept(results: &Path) -> Vec<String> {
    file(results).lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn kept_measurements_are_not_repeated() {
    let dir = temp_dir();
    let results = dir.path().join("results");
    let run = |repetitions: u32, more: &str| {
        let flags = "--workload io --runner serial --runner timers --count 2 --bias 1";
        let line = format!(
            "bench turnaround {flags} --json --repetitions {repetitions} --results {} {more}",
            path(&results)
        );
        let ended = run_to_end(&line).exit_code(0);
        (ended.text(), ended.err.clone())
    };
    let (once, stderr) = run(1, "");
    assert!(stderr.contains("has 0 of 3 runs"), "{stderr}");
    assert_eq!(once.lines().map(str::to_owned).collect::<Vec<_>>(), kept(&results));
    let (twice, stderr) = run(2, "");
    assert!(stderr.contains("has 3 of 6 runs") && stderr.contains("calibration: "), "{stderr}");
    assert!(twice.starts_with(&once));
    // Nothing is left, so nothing is measured.
    let (again, stderr) = run(2, "");
    assert!(
        again == twice && stderr.contains("has 6 of 6 runs") && !stderr.contains("calibration: "),
        "{stderr}"
    );
    let (fresh, stderr) = run(1, "--fresh");
    assert!(fresh != once && stderr.contains("has 0 of 3 runs"), "{stderr}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&results).expect("read the mode").permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }
}

#[test]
fn rows_after_a_damaged_line_are_kept() {
    let dir = temp_dir();
    let results = dir.path().join("results");
    let flags = "--workload io --runner serial --count 2 --bias 1 --repetitions 2 --csv";
    let line = format!("bench turnaround {flags} --results {}", path(&results));
    run_to_end(&line).exit_code(0);
    let before = kept(&results);
    let text = file(&results);
    std::fs::write(&results, text.replacen("\"io\"", "\"i", 1)).expect("damage the first row");
    let stderr = run_to_end(&line).exit_code(0).err.clone();
    let damage = format!("minder: `{}`: line 2 cannot be read; other lines are kept\n", results.display());
    assert!(stderr.starts_with(&damage) && stderr.contains("has 3 of 4 runs"), "{stderr}");
    let after = kept(&results);
    assert!(after.len() == 4 && after.starts_with(&before[1..]), "{before:?} {after:?}");
}

#[cfg(unix)] // Windows sends Ctrl-C to consoles only; the other benchmarks test that.
#[test]
fn interrupted_run_is_continued() {
    let dir = temp_dir();
    let results = dir.path().join("results");
    let svg = dir.path().join("turn.svg");
    let line = |repetitions: u32| {
        let flags = "--workload io --runner serial --count 2 --bias 40";
        let files = format!("--results {} --svg {}", path(&results), path(&svg));
        format!("bench turnaround {flags} {files} --repetitions {repetitions}")
    };
    let mut live = Run::start(&minder(&line(400)));
    live.wait_until_true("two measurements", || kept(&results).len() >= 2);
    live.signal(Signal::INT);
    let ended = live.wait().exit_code(130);
    let stderr = ended.err.clone();
    assert!(stderr.ends_with("minder: interrupted; showing what was measured\n"), "{stderr}");
    assert!(ended.text().contains("Of 2 computations:") && file(&svg).contains("</svg>"), "{}", ended.text());
    let before = kept(&results);
    let repetitions = u32::try_from(before.len() / 2 + 1).expect("few repetitions");
    run_to_end(&line(repetitions)).exit_code(0);
    let after = kept(&results);
    assert!(after.len() == 2 * repetitions as usize && after.starts_with(&before), "{before:?} {after:?}");
}

#[cfg(unix)] // Signals.
#[test]
fn interrupt_before_the_first_measurement_leaves_no_files() {
    let dir = temp_dir();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("old.svg"), "old").expect("write an old chart");
    for chart in ["old.svg", "new.svg"] {
        let flags = "--runner timers --workload io --count 2 --bias 20000 --minutes 60";
        let files = format!("--svg {} --xlsx {}", path(&at(chart)), path(&at("new.xlsx")));
        let mut live = Run::start(&minder(&format!("bench turnaround {flags} {files}")));
        live.wait_until("calibration", |log| String::from_utf8_lossy(&log.outs[1]).contains("calibration: "));
        live.signal(Signal::INT);
        let ended = live.wait().exit_code(130);
        assert_eq!(ended.text(), "");
        assert!(ended.err.ends_with("minder: interrupted before the first measurement\n"), "{ended:?}");
    }
    assert_eq!(file(&at("old.svg")), "old");
    assert!(!at("new.svg").exists() && !at("new.xlsx").exists());
}

#[cfg(unix)] // Signals.
#[test]
fn interrupt_ends_children_and_long_computations() {
    for runner in ["serial", "threads", "children", "timers"] {
        let flags =
            format!("--runner {runner} --workload io --count 2 --bias 50000 --degree 2 --minutes 600");
        let mut live = Run::start(&minder(&format!("bench turnaround {flags}")));
        live.wait_until("calibration", |log| String::from_utf8_lossy(&log.outs[1]).contains("calibration: "));
        live.signal(Signal::TERM);
        let ended = live.wait().exit_code(143);
        assert_eq!(ended.text(), "", "{runner}");
    }
}
