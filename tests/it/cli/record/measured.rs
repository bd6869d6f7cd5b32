//! The resources that a job used: recorded where they are the job's, and as a sample where reading
//! them costs much.

use super::{Place, input};
use crate::cli::Run;

/// Returns the values of one column of the only run, as `minder log --sql` prints them.
fn column(place: &Place, query: &str) -> Vec<String> {
    let mut log = place.command("log last --json --sql");
    Run::start(log.arg(query)).wait().exit_code(0).text().lines().map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn memory_below_that_of_minder_is_not_recorded() {
    let place = Place::new();
    let mut run = place.command("run -j2");
    run.args(["if test {} = big; then head -c 80000000 /dev/zero | tail -c 80000000 >/dev/null; fi"]);
    Run::start(run.args([":::", "small", "big"])).wait().exit_code(0);
    let recorded = column(&place, "select args, rss > 80000000 as big from jobs order by job");
    assert_eq!(recorded, [r#"{"args":"small","big":null}"#, r#"{"args":"big","big":1}"#]);
    let shown = place.ended("log last 1").exit_code(0).text();
    assert!(!shown.contains("maximum resident set"), "{shown}");
}

#[cfg(target_os = "linux")]
#[test]
fn waits_for_a_processor_are_sampled_in_short_jobs() {
    let place = Place::new();
    let numbers: String = (0..400).map(|number| format!("{number}\n")).collect();
    let mut run = place.command("run -j4 --quiet CHILD echo-args");
    let ended = Run::start(run.stdin(input(numbers.as_bytes()))).wait().exit_code(0);
    let counts = column(
        &place,
        "select count(ready) as known, count(ready) filter (where wall < 0.01) as short from jobs",
    );
    let number = |name: &str| -> f64 {
        let rest = counts[0].split_once(&format!("\"{name}\":")).expect("find the count").1;
        rest.split([',', '}']).next().expect("a number").parse().expect("parse count")
    };
    // Two worker threads read 20 a second each, and the first at once.
    let most = 2.0 * (1.0 + 20.0 * ended.wall.as_secs_f64());
    assert!(number("short") <= most, "{counts:?}, at most {most}");
    assert!(number("known") >= 1.0, "{counts:?}");
}
