//! Every byte of every job, in every view.

use super::{Text, compare, feed, run_with_input, texts, untangle};

const MIB: usize = 1 << 20;

/// Checks that the output of each job is complete and contiguous. Returns the jobs in their order.
#[track_caller]
fn whole(flags: &str, jobs: &[Text]) -> Vec<usize> {
    let order = compare(flags, jobs);
    let mut sorted = order.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), order.len(), "`{flags}`: jobs are mixed: {order:?}");
    order
}

fn with_output(jobs: &[Text]) -> Vec<usize> {
    jobs.iter().filter(|job| job.lens[0] > 0).map(|job| job.id).collect()
}

#[test]
fn grouped_output_is_complete() {
    for degree in ["-j1", "-j3", "-j16"] {
        whole(degree, &texts(10, 20_000, 5 * MIB));
    }
}

#[test]
fn ordered_output_is_complete() {
    for degree in ["-j1", "-j3", "-j16"] {
        let jobs = texts(10, 20_000, 5 * MIB);
        assert_eq!(whole(&format!("-k {degree}"), &jobs), with_output(&jobs));
    }
}

/// More at once than is read at once: jobs wait for their turn to be read.
#[test]
fn output_waiting_in_files_is_complete() {
    let most = if cfg!(windows) { 8 } else { 48 };
    let jobs: Vec<Text> =
        (0..most).map(|id| Text { id, lens: [MIB, 100_000], longest: 20_000, code: 0 }).collect();
    for flags in ["-j48", "-j48 --no-record", "-j48 --retries 2", "--tag -j48", "-j48 --buffer 64k"] {
        whole(flags, &jobs);
    }
    for flags in ["-k -j48", "-k --no-record -j48", "-k --tag -j48"] {
        assert_eq!(whole(flags, &jobs), with_output(&jobs), "{flags}");
    }
}

#[test]
fn line_buffered_output_is_complete() {
    for degree in ["-j1", "-j3", "-j16"] {
        compare(&format!("--lb {degree}"), &texts(10, 20_000, 5 * MIB));
    }
}

#[test]
fn tagged_output_is_complete() {
    let jobs = texts(9, 20_000, MIB);
    whole("--tag -j1", &jobs);
    whole("--tag -j4", &jobs);
    assert_eq!(whole("--tag -k -j4", &jobs), with_output(&jobs));
    compare("--tag --lb -j4", &jobs);
    compare("--tag --lb -j16 --buffer 64k", &jobs);
    whole("--tag --spool -j4", &jobs);
}

#[test]
fn spooled_output_is_complete() {
    let jobs = texts(10, 20_000, 5 * MIB);
    for flags in ["--spool -j1", "--spool -j3", "--spool -j16 --no-record", "--spool -j3 --buffer 64k"] {
        whole(flags, &jobs);
    }
    assert_eq!(whole("--spool -k -j4", &jobs), with_output(&jobs));
    assert_eq!(whole("--spool -k -j4 --no-record", &jobs), with_output(&jobs));
}

#[test]
fn output_is_complete_with_little_memory_or_without_a_record() {
    let jobs = texts(12, 90_000, MIB);
    for flags in ["--buffer 64k -j8", "--no-record -j8", "--no-record --buffer 64k -j8", "--sync -j4"] {
        whole(flags, &jobs);
    }
    for flags in ["-k --buffer 64k -j8", "-k --no-record --buffer 64k -j8"] {
        assert_eq!(whole(flags, &jobs), with_output(&jobs));
    }
}

#[test]
fn ungrouped_output_is_complete() {
    let jobs = texts(8, 3000, MIB);
    let ended = run_with_input("run -u -j1 CHILD text", &feed(&jobs)).exit_code(0);
    untangle(&ended.out, 0, &jobs, false);
    untangle(&ended.errors, 1, &jobs, false);
    // Several at once are mixed, and nothing is lost.
    let ended = run_with_input("run -u -j4 CHILD text", &feed(&jobs)).exit_code(0);
    for (stream, bytes) in [ended.out, ended.errors].iter().enumerate() {
        let written: usize = jobs.iter().map(|job| job.lines(stream).concat().len()).sum();
        assert_eq!(bytes.len(), written);
    }
}

#[test]
fn hundreds_of_small_outputs_are_complete() {
    // Under Wine, a start takes many times as long.
    let many = if cfg!(windows) { 60 } else { 400 };
    let jobs: Vec<Text> =
        (0..many).map(|id| Text { id, lens: [id % 3 * 40, id % 7 * 9], longest: 30, code: 0 }).collect();
    whole("-j16", &jobs);
    assert_eq!(whole("-k -j16", &jobs), with_output(&jobs));
    compare("--lb -j16", &jobs);
}
