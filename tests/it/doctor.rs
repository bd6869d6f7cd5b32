//! `minder doctor`: what the command prints of this machine.

use std::process::{Command, Output};

fn doctor(args: &[&str], locale: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minder-dup"));
    command.arg("doctor").args(args).env("LC_ALL", locale);
    let output = crate::support::output(&mut command);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "the report is data and goes to stdout: {output:?}");
    output
}

#[test]
fn report_names_each_backend_and_the_chosen_one() {
    let text = String::from_utf8(doctor(&[], "C.UTF-8").stdout).expect("decode UTF-8");
    assert!(text.starts_with("program      minder "), "{text}");
    let waiting = text.lines().find(|line| line.starts_with("waiting      ")).expect("find line of waiting");
    for backend in crate::support::backends() {
        assert!(waiting.contains(&format!("{backend} ✓")), "{waiting}");
    }
    assert_eq!(waiting.matches("(chosen)").count(), 1, "{waiting}");
    assert!(text.contains("\nchildren     ") && text.contains("\nlimits       "), "{text}");
}

#[test]
fn report_is_ascii_without_utf8() {
    assert!(doctor(&[], "C").stdout.is_ascii());
}

#[test]
fn json_report_is_one_list() {
    let text = String::from_utf8(doctor(&["--json"], "C").stdout).expect("decode UTF-8");
    assert!(text.starts_with("[\n") && text.ends_with("]\n"), "{text}");
    // One more is the program.
    assert_eq!(text.matches("\"state\":").count(), 1 + minder::capabilities().len());
}
