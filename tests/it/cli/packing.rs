//! Lines with as many arguments as fit: each argument reaches a job, whatever the stack limit, the
//! environment and the lengths of the words are.

use minder::{Command, Stdio};

use super::resume::Random;
use super::{MINDER, Run};
use crate::support::cases;

/// The command lines that pack, and a command that prints its arguments.
const LINES: [&str; 9] = [
    "run -X echo",
    "run -X 'echo {}'",
    "run -X 'echo {} | cat'",
    "run -m echo {}",
    "run --xargs 'echo {}'",
    "run -j3 -m --xargs echo",
    "run -X -s 1000000 echo",
    "parallel -X echo",
    "parallel -m 'echo {} | cat'",
];

/// Returns the sorted words that a command line prints for this input. The variables take `bytes`.
#[track_caller]
fn words(line: &str, stack: &str, bytes: usize, input: &str) -> Vec<String> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -s {stack} && exec {line}"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut left = bytes;
    for number in 0.. {
        let size = left.min(120_000);
        command.env(format!("LARGE_{number}"), "v".repeat(size));
        left -= size;
        if left == 0 {
            break;
        }
    }
    let ended = Run::start(command.stdin(super::input(input.as_bytes()))).wait().exit_code(0);
    let mut words: Vec<String> = ended.text().split_whitespace().map(str::to_owned).collect();
    words.sort_unstable();
    words
}

#[test]
fn every_argument_reaches_a_job_as_with_xargs() {
    let mut random = Random::new("packed lines");
    for case in 0..usize::try_from(cases("MINDER_PACKINGS", 12, 300)).expect("few cases") {
        let (stack, bytes) = [
            ("512", 0),
            ("700", 30_000),
            ("1024", 0),
            ("1024", 150_000),
            ("2048", 100_000),
            ("8192", 1_500_000),
            ("8192", 1_900_000),
            ("unlimited", 1_900_000),
        ][random.below(8)];
        let longest = [1, 5, 40, 3000][random.below(4)];
        let most: usize = [200, 40_000, 100_000, 400][random.below(4)];
        let count = 1 + random.below(most.min(4_000_000 / longest));
        let input: String = (0..count)
            .map(|number| {
                let len = 1 + random.below(longest);
                format!("{}\n", char::from(b'a' + (number % 26) as u8).to_string().repeat(len))
            })
            .collect();
        let mut expected: Vec<String> = input.lines().map(str::to_owned).collect();
        expected.sort_unstable();
        let line = LINES[case % LINES.len()];
        let what = format!("{line}, stack {stack}, {bytes} bytes of variables, {count} words of {longest}");
        let ours = words(&format!("{MINDER} {line}"), stack, bytes, &input);
        assert!(ours == expected, "{what}: {} of {count}", ours.len());
        assert!(words("xargs echo", stack, bytes, &input) == expected, "{what}: xargs");
    }
}

/// The longest word of Linux fits alone, and together with others.
#[test]
fn words_of_the_greatest_length_are_packed() {
    let long = "x".repeat(100_000);
    let input = format!("a\n{long}\nb\n{long}\nc\n");
    for line in LINES.iter().filter(|line| !line.contains("'")) {
        let ours = words(&format!("{MINDER} {line}"), "512", 0, &input);
        assert_eq!(ours.len(), 5, "{line}");
    }
}
