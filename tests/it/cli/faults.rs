//! Runs whose record meets a full disk, a folder that cannot be written, a damaged journal, another run, a clock that jumps.
#![cfg(any(target_os = "linux", windows))]

mod damage;
#[cfg(unix)] // Pipes and links with names.
mod kept;
#[cfg(unix)] // File systems that are mounted for them.
mod disk;

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt, symlink};

#[cfg(unix)]
use super::is_root;
use super::record::Place;
use super::{Live, file, path, scripted};

/// The words of three jobs that say their numbers, behind these flags.
fn three(flags: &str) -> String {
    format!("run -j1 -k {flags} KID append ../log ::: 1 2 3")
}

/// The run goes on without a record, and says so in one line; where the record was asked for, it is an error.
fn goes_without(place: &Place, part: &str) {
    for flags in ["", "--lb", "--spool"] {
        let flags = if flags.is_empty() { "-j2" } else { flags };
        let ended = place
            .ended(&three(flags).replace("-k --lb", "--lb"))
            .code(0)
            .complains(&["leaves no record", part]);
        assert_eq!(ended.sorted(), ["1", "2", "3"], "{flags}");
    }
    assert_eq!(place.ended(&three("--quiet")).code(0).says("").sorted(), ["1", "2", "3"]);
    assert_eq!(place.ended(&three("--no-record")).code(0).says("").sorted(), ["1", "2", "3"]);
    fs::remove_file(place.at("log")).expect("a log");
    place.ended(&three("--sync")).code(255).complains(&["record", part]);
    assert!(!place.at("log").exists(), "jobs ran");
}

#[test]
fn a_state_folder_that_is_a_file_costs_the_record_only() {
    let place = Place::new();
    fs::write(place.at("state"), "mine").expect("a file");
    goes_without(&place, "state");
    assert_eq!(file(&place.at("state")), "mine");
}

#[cfg(unix)] // Not everybody may make links on Windows.
#[test]
fn a_state_folder_that_leads_nowhere_costs_the_record_only() {
    let place = Place::new();
    symlink(place.at("nowhere"), place.at("state")).expect("a link");
    goes_without(&place, "state");
    assert!(!place.at("nowhere").exists(), "the link was followed");
}

#[cfg(unix)] // Modes are those of Unix.
#[test]
fn a_state_folder_that_cannot_be_written_costs_the_record_only() {
    let place = Place::new();
    if is_root() {
        // Root may write everywhere but where nobody can.
        let Some(_disk) = disk::Disk::mount(&place.at("state"), 1 << 20) else { return };
        disk::Disk::read_only(&place.at("state"));
        return goes_without(&place, "ead-only");
    }
    fs::create_dir(place.at("state")).expect("a folder");
    fs::set_permissions(place.at("state"), fs::Permissions::from_mode(0o500)).expect("its permissions");
    goes_without(&place, "ermission denied");
}

#[test]
fn a_run_is_taken_up_by_one_only() {
    let place = Place::new();
    let wait = place.at("wait");
    let mut command = place.command("run -j2");
    let line = format!("echo {{}} >>../log; [ -e ../go ] || exit 1; exec KID await {} {{}}", path(&wait));
    Live::start(scripted(&mut command, &line).args([":::", "1", "2"])).finish().code(2);
    fs::write(place.at("go"), "").expect("a file");
    let id = place.id();
    let mut first = Live::start(&place.command(&format!("run --retry-failed {id}")));
    first.until_true("its jobs", || file(&place.at("log")).lines().count() == 4);
    for flag in ["--resume", "--resume-failed", "--retry-failed"] {
        let second = place.ended(&format!("run {flag} {id}"));
        second.code(255).complains(&[&id, "being run by another minder"]);
    }
    fs::write(&wait, "").expect("a file");
    assert_eq!(first.finish().code(0).sorted(), ["1", "2"]);
    assert_eq!(file(&place.at("log")).lines().count(), 4, "something ran twice");
    place.ended(&format!("run --retry-failed {id}")).code(0).says("");
    assert_eq!(file(&place.at("log")).lines().count(), 4, "something ran twice");
}

#[test]
fn two_at_once_where_only_one_can_be_first() {
    for _ in 0..5 {
        let place = Place::new();
        let mut command = place.command("run");
        let line = "echo {} >>../log; [ -e ../go ]";
        Live::start(scripted(&mut command, line).args([":::", "1", "2", "3"])).finish().code(3);
        fs::write(place.at("go"), "").expect("a file");
        let again = place.command(&format!("run --retry-failed {}", place.id()));
        let both = [Live::start(&again), Live::start(&again)].map(Live::finish);
        for ended in both {
            // The second was refused, or came when all was done.
            assert!(
                ended.status == minder::Status::Exited(0) || ended.err.contains("another minder"),
                "{}",
                ended.err
            );
        }
        assert_eq!(file(&place.at("log")).lines().count(), 6, "a job ran twice, or not at all");
    }
}

#[test]
fn different_runs_at_once_have_records_of_their_own() {
    let place = Place::new();
    let mut lives: Vec<Live> = (0..6)
        .map(|run| Live::start(&place.command(&format!("run -j2 KID echo-args {run} ::: 1 2 3 4"))))
        .collect();
    for live in lives.drain(..) {
        let ended = live.finish().code(0).says("");
        assert_eq!(ended.sorted().len(), 8);
    }
    let runs = place.runs();
    assert_eq!(runs.len(), 6);
    for run in runs {
        let text = file(&run.join("attempt-1.jsonl"));
        assert_eq!(text.matches("{\"event\":\"ended\"").count(), 4, "{text}");
    }
}
