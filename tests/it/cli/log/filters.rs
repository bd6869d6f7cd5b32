//! Which jobs of a run are shown: failed ones, the slowest, those with a text in their command.

use super::{State, table};
use crate::cli::{RunOutput, script};

/// Makes a run of five jobs, of which two fail.
fn state() -> State {
    let state = State::new();
    let words = [script("exit {}"), [":::", "0", "3", "0", "13", "0"].map(str::to_owned).to_vec()].concat();
    state.run("aaaa0001", "-j1", &words).exit_code(2);
    state
}

/// Returns the numbers of the jobs in a table.
fn jobs(shown: &RunOutput) -> Vec<String> {
    let text = shown.text();
    table(&text)[1..].iter().map(|row| row[0].to_owned()).collect()
}

#[test]
fn match_selects_by_the_command_as_typed() {
    let state = state();
    assert_eq!(jobs(&state.log("aaaa --match 3").exit_code(0).stderr("")), ["2", "4"]);
    // The text may be in the command as well as in an argument.
    if cfg!(unix) {
        assert_eq!(jobs(&state.with("log --match", &["exit 3"]).exit_code(0).stderr("")), ["2"]);
        assert_eq!(jobs(&state.with("log aaaa --match", &["exit "]).exit_code(0)).len(), 5);
    }
    let none = "minder: run aaaa0001: no job has `EXIT` in its command\n";
    assert_eq!(state.log("aaaa --match EXIT").exit_code(0).stderr(none).text(), "");
    assert_eq!(state.log("aaaa --match EXIT --json").exit_code(0).stderr("").text(), "");
}

#[test]
fn slow_lists_the_longest_first() {
    let state = State::new();
    let args = ["CHILD", "sleep-ms", ":::", "10", "300", "150"];
    state
        .run("aaaa0001", "-j1", &args.map(|word| word.replace("CHILD", crate::support::TEST_CHILD)))
        .exit_code(0);
    assert_eq!(jobs(&state.log("aaaa --slow 2").exit_code(0).stderr("")), ["2", "3"]);
    assert_eq!(jobs(&state.log("--slow 9").exit_code(0).stderr("")), ["2", "3", "1"]);
    let json = state.log("aaaa --slow 1 --json").exit_code(0).text();
    assert!(json.starts_with(r#"{"run":"aaaa0001","job":2,"#) && json.lines().count() == 1, "{json}");
}

#[test]
fn filters_combine() {
    let state = state();
    assert_eq!(jobs(&state.log("--failed --match 13").exit_code(0)), ["4"]);
    assert_eq!(jobs(&state.log("--failed --slow 9").exit_code(0)).len(), 2);
    assert_eq!(jobs(&state.log("--match 0 --slow 2").exit_code(0)).len(), 2);
    assert_eq!(state.log("--failed --match 3 --csv").exit_code(0).text().lines().count(), 3);
    let report = state.log("--failed --match 13 --junit").exit_code(0).text();
    assert!(report.contains(r#"tests="1" failures="1""#) && report.contains(r#"name="13""#), "{report}");
    assert_eq!(jobs(&state.log("--follow --match 13").exit_code(0)), ["4"]);
    for line in
        ["--slow 2 --follow", "--match a --sql x", "aaaa 1 --match a", "--slow 1 -n 2", "--slow 1 --prune"]
    {
        state.log(line).exit_code(255).error_line(&["cannot be used with"]);
    }
}
