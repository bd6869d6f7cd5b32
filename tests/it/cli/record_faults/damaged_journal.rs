//! Journals that are cut anywhere, or whose clock jumped back.

use std::fs;

use super::Place;
use crate::cli::{Run, file, with_script};

/// Returns whether the tests damage every byte instead of some.
fn all() -> bool {
    std::env::var_os("MINDER_EVERY_BYTE").is_some()
}

#[test]
fn truncated_journal_is_read_as_far_as_it_goes() {
    let place = Place::new();
    place.ended("run -j1 CHILD append ../log ::: 1 2 3").exit_code(0);
    let journal = place.runs()[0].join("attempt-1.jsonl");
    let whole = fs::read(&journal).expect("read journal");
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').map(|at| at + 1).collect();
    let rows: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let from = ends[ends.len() - 4];
    let step = if all() { 1 } else { 17 };
    let near = ends.iter().flat_map(|end| [end - 2, end - 1, *end]);
    let mut cuts: Vec<usize> =
        (from..=whole.len()).step_by(step).chain(near.filter(|cut| *cut >= from)).collect();
    cuts.sort_unstable();
    cuts.dedup();
    for cut in cuts {
        // What the cut left, in the only attempt.
        for attempt in 2..4 {
            let _ = fs::remove_file(journal.with_file_name(format!("attempt-{attempt}.jsonl")));
        }
        fs::write(&journal, &whole[..cut]).expect("write file");
        let _ = fs::remove_file(place.at("log"));
        let complete = ends.iter().filter(|end| **end <= cut).count();
        let done = rows[..complete].iter().filter(|row| row.starts_with(b"{\"event\":\"ended\"")).count();
        let ended = place.ended(&format!("run --resume --quiet {}", place.id())).exit_code(0);
        let ran: Vec<String> = file(&place.at("log")).lines().map(str::to_owned).collect();
        let wanted: Vec<String> = (done + 1..=3).map(|job| job.to_string()).collect();
        assert_eq!(ran, wanted, "cut at {cut} of {}", whole.len());
        if ends.contains(&cut) {
            ended.stderr("");
        } else {
            ended.error_line(&["incomplete"]);
        }
        assert!(fs::read(&journal).expect("read journal") == whole[..cut], "an earlier attempt was changed");
    }
}

#[test]
fn damaged_line_reruns_only_its_job() {
    let place = Place::new();
    place.ended("run -j1 CHILD append ../log ::: 1 2 3").exit_code(0);
    let journal = place.runs()[0].join("attempt-1.jsonl");
    let mut bytes = fs::read(&journal).expect("read journal");
    let text = String::from_utf8(bytes.clone()).expect("decode UTF-8");
    let at = text.find("\"job\":2,").expect("find row") + 6;
    bytes[at] = b'9';
    fs::write(&journal, &bytes).expect("write file");
    fs::remove_file(place.at("log")).expect("remove file");
    place.ended(&format!("run --resume {}", place.id())).exit_code(0).error_line(&["line", "cannot be read"]);
    assert_eq!(file(&place.at("log")), "2\n");
}

/// Returns a journal whose times are shifted by this many seconds, with new checksums.
fn moved(text: &str, seconds: f64) -> String {
    let line = |line: &str| {
        let (head, rest) = line.split_once("\"at\":").unwrap_or((line, ""));
        let Some((at, tail)) = rest.split_once([',', '}']) else { return format!("{line}\n") };
        let at: f64 = at.parse().expect("parse time");
        let mark = rest.as_bytes()[rest.len() - tail.len() - 1] as char;
        let unsealed = format!("{head}\"at\":{:.6}{mark}{tail}", at + seconds);
        let (checked, _) = unsealed.split_once(",\"crc\":\"").expect("find checksum");
        format!("{checked},\"crc\":\"{:08x}\"}}\n", crc(checked.as_bytes()))
    };
    text.lines().map(line).collect()
}

/// Returns the CRC-32 of gzip and PNG.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8)
            .fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (0_u32.wrapping_sub(crc & 1))))
    })
}

#[test]
fn attempts_are_ordered_by_number_when_the_clock_jumps() {
    for seconds in [-3.0e8, 3.0e8] {
        let place = Place::new();
        let mut command = place.command("run -j1");
        let line = with_script(&mut command, "echo {} >>../log; [ -e ../go ]");
        Run::start(line.args([":::", "1", "2"])).wait().exit_code(2);
        let id = place.id();
        let journal = |number: u32| place.runs()[0].join(format!("attempt-{number}.jsonl"));
        // The first attempt seems later than the second, or much earlier; both were true once.
        let text = file(&journal(1));
        assert_eq!(moved(&text, 0.0).lines().count(), text.lines().count());
        fs::write(journal(1), moved(&text, -seconds)).expect("write file");
        fs::write(place.at("go"), "").expect("write file");
        place.ended(&format!("run --retry-failed {id}")).exit_code(0).stderr("");
        let text = file(&journal(2));
        fs::write(journal(2), moved(&text, seconds)).expect("write file");
        place.ended(&format!("run --retry-failed {id}")).exit_code(0).error_line(&["no job has failed"]);
        for flag in ["--resume-failed", "--resume"] {
            place.ended(&format!("run {flag} {id}")).exit_code(0).stderr("");
        }
        assert_eq!(file(&place.at("log")), "1\n2\n1\n2\n", "what had succeeded ran again");
    }
}
