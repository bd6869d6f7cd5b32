//! `minder bench sweep`: every heap has every phase, in every format.
#![cfg(any(target_os = "linux", windows))]

#[cfg(target_os = "linux")]
use rustix::process::Signal;

#[cfg(target_os = "linux")]
use super::text;
use super::{Run, file, minder, path, run_to_end, temp_dir};

/// The phases, in the order of measuring.
const PHASES: [&str; 7] =
    ["mark-live", "sweep-live", "mark-half", "sweep-half", "refill-half", "sweep-dead", "refill-dead"];

const COLUMNS: &str = "mechanism,kind,block_kib,round,cells,cpu_ns,wall_ns";

/// Returns the rows of CSV after the names of the columns, which it checks.
fn rows(csv: &str) -> Vec<Vec<String>> {
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some(&*super::bench::columns(COLUMNS)), "{csv}");
    lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_else(|_| panic!("`{cell}` is not a number"))
}

#[test]
fn every_heap_has_every_phase() {
    let line = "bench sweep --cells 20000 --block 1,32 --rounds 2 --csv";
    let ended = run_to_end(line).exit_code(0).stderr("");
    let rows = rows(&ended.text());
    for mechanism in minder_bench::cell_heaps() {
        let blocks: &[&str] = if mechanism.starts_with("minder") { &["64"] } else { &["1", "32"] };
        for (block, phase) in blocks.iter().flat_map(|block| PHASES.map(|phase| (*block, phase))) {
            for round in ["1", "2"] {
                let row = rows.iter().find(|row| row[..4] == [mechanism, phase, block, round]);
                let row = row.unwrap_or_else(|| panic!("no {phase} of {mechanism} in {rows:?}"));
                // CPU time on Windows is too coarse.
                assert!(number(&row[5]) >= 0.0 && number(&row[6]) > 0.0, "{row:?}");
                let cells = number(&row[4]);
                if matches!(phase, "mark-half" | "refill-half") {
                    assert!((8_000.0..12_000.0).contains(&cells), "{row:?}");
                } else {
                    assert!((cells - 20_000.0).abs() < 0.5, "{row:?}");
                }
            }
        }
    }
    assert_eq!(rows.len(), (2 * 2 + 2) * PHASES.len() * 2);
}

#[test]
fn json_has_an_object_for_each_measurement() {
    let line = "bench sweep --cells 20000 --rounds 1 --mechanism minder --json";
    let text = run_to_end(line).exit_code(0).stderr("").text();
    let kinds: Vec<&str> = text
        .lines()
        .map(|line| {
            let is_object = line.starts_with("{\"mechanism\":\"minder\",\"kind\":\"") && line.ends_with('}');
            assert!(is_object, "{line}");
            line.split('"').nth(7).unwrap_or_default()
        })
        .collect();
    assert_eq!(kinds, PHASES);
}

#[test]
fn tables_have_a_row_for_each_phase_and_a_chart_has_curves() {
    let directory = temp_dir();
    let svg = directory.path().join("sweep.svg");
    let line = "bench sweep --cells 20000 --block 1,1024 --rounds 1 --mechanism inline --mechanism minder";
    let mut command = minder(line);
    let ended = Run::start(command.arg("--svg").arg(path(&svg))).wait().exit_code(0).stderr("");
    let text = ended.text();
    for phase in PHASES {
        // Blocks of 1, 64 and 1024 KiB, in a table of CPU time and in one of wall time.
        assert_eq!(text.lines().filter(|line| line.starts_with(phase)).count(), 6, "{text}");
    }
    assert!(text.starts_with("CPU time of one cell") || minder_bench::is_wine(), "{text}");
    let chart = file(&svg);
    for part in ["Marking, sweeping and allocating cells", "KiB of a block", "a million cells", "</svg>"] {
        assert!(chart.contains(part), "{part} is not in the chart");
    }
    for phase in PHASES {
        assert!(chart.contains(phase), "{phase} is not in the chart");
    }
}

#[cfg(target_os = "linux")] // What Ctrl-C does on Windows is shown by bench_exit.rs.
#[test]
fn interrupt_shows_what_was_measured() {
    let mut live = Run::start(&minder("bench sweep --cells 20000 --rounds 1000 --csv"));
    live.wait_until("row", |record| text(&record.outs[0]).lines().count() > 1);
    live.signal(Signal::INT);
    let ended = live.wait().exit_code(130).stderr("minder: interrupted; showing what was measured\n");
    assert!(!rows(&ended.text()).is_empty());
}

#[test]
fn chain_beyond_free_memory_is_refused() {
    run_to_end("bench sweep --cells 1000000000000")
        .exit_code(255)
        .error_line(&["failed to make a heap of `1000000000000 cells`", "free memory"]);
}

#[test]
fn unfit_flags_are_refused() {
    run_to_end("bench sweep --block 3").exit_code(255).error_line(&["--block", "`3` is not a power of two"]);
    run_to_end("bench sweep --block 2048").exit_code(255).error_line(&["--block", "expected 1 to 1024"]);
    run_to_end("bench sweep --cells 10").exit_code(255).error_line(&["--cells"]);
    run_to_end("bench sweep --mechanism magic").exit_code(255).error_line(&["`magic`", "inline-shuffled"]);
}
