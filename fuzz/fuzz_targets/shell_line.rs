//! Shell lines of any bytes: parsing does not panic, and the line never contains a value.
//!
//! No shell runs. The first two bytes of an input choose the shell and the options, the others are
//! the template.

#![no_main]

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use libfuzzer_sys::fuzz_target;
use minder_template::{Form, Job, Options, Repeat, Template};

const SHELLS: [&str; 8] =
    ["/bin/sh", "/bin/dash", "/bin/bash", "/bin/zsh", "/bin/ksh", "/bin/mksh", "/bin/busybox", "/bin/posh"];

/// Two lists of values. A line may depend on their number only.
const VALUES: [[&str; 3]; 2] = [
    ["\u{2603}one\u{2603}", "\u{2603}two\u{2603}", "\u{2603}three\u{2603}"],
    ["\u{2604}$(x)", "\u{2604}'; x #\u{2604}", ""],
];

/// Characters of the values. Templates that contain them are skipped.
const MARKS: [&str; 2] = ["\u{2603}", "\u{2604}"];

fuzz_target!(|input: &[u8]| {
    let [shell, bits, text @ ..] = input else { return };
    if text.contains(&0) || MARKS.iter().any(|mark| contains(text, mark.as_bytes())) {
        return;
    }
    let bit = |nth: u8| bits >> nth & 1 == 1;
    let options = Options {
        shell: Some(SHELLS[usize::from(*shell) % SHELLS.len()].into()),
        form: Form::Line,
        repeat: if bit(0) { Repeat::Context } else { Repeat::Joined },
        missing_is_empty: bit(1),
        append: bit(2),
        ..Options::default()
    };
    let line = OsString::from_vec(text.to_vec());
    let Ok(template) = Template::parse(&[line], &options) else { return };
    for count in 0..=3 {
        let [first, second] = VALUES.map(|values| expanded_line(&template, &values[..count]));
        assert_eq!(first, second, "with {count} values the line, or whether it is refused, depends on them");
        let Some(line) = first else { continue };
        assert!(!MARKS.iter().any(|mark| contains(&line, mark.as_bytes())), "a value is in the line");
        // With other numbers of values, words are repeated. With `append`, a placeholder is added.
        if count == 1 && !bit(2) {
            assert!(is_made_of(text, &line), "the line is not the template's own: {}", line.escape_ascii());
        }
    }
});

/// Returns the line for these values, or `None` if they are refused.
fn expanded_line(template: &Template, values: &[&str]) -> Option<Vec<u8>> {
    let columns: Vec<OsString> = values.iter().map(OsString::from).collect();
    let job = Job { columns: &columns, ..Job::default() };
    let _ = template.display(&job);
    let argv = template.argv(&job).ok()?;
    let bytes: usize = argv.iter().map(|argument| argument.len() + 1).sum();
    assert!(bytes <= template.size_of(&columns), "argv is longer than its bound");
    let at = argv.iter().position(|argument| argument == "-c").expect("find the line after `-c`");
    Some(argv[at + 1].as_bytes().to_vec())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Returns whether the line is the template with parameters in place of some `{…}`, and nothing else.
fn is_made_of(template: &[u8], line: &[u8]) -> bool {
    let mut open = vec![(0, 0)];
    let mut known = HashSet::new();
    while let Some((at, to)) = open.pop() {
        if !known.insert((at, to)) {
            continue;
        }
        if at == template.len() && to == line.len() {
            return true;
        }
        if template.get(at).is_some_and(|byte| line.get(to) == Some(byte)) {
            open.push((at + 1, to + 1));
        }
        let (Some(length), reference) = (placeholder(&template[at..]), &line[to..]) else { continue };
        open.extend(parameters(reference).into_iter().map(|taken| (at + length, to + taken)));
    }
    false
}

/// Returns the length of the `{…}` at the start of the text.
fn placeholder(text: &[u8]) -> Option<usize> {
    let inner = text.strip_prefix(b"{")?;
    let end = inner.iter().position(|byte| b"{}".contains(byte))?;
    (inner[end] == b'}').then_some(end + 2)
}

/// Returns the possible lengths of a parameter at the start of the line, with its quotes.
fn parameters(line: &[u8]) -> Vec<usize> {
    let parameter = |text: &[u8]| -> Option<usize> {
        let (open, rest) = match text.strip_prefix(b"$")? {
            [b'{', rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        match (digits, open, rest.get(digits)) {
            (0, ..) | (_, true, None) => None,
            (_, true, Some(end)) => (*end == b'}').then_some(digits + 3),
            // `$10` is `$1` and the digit 0.
            (_, false, _) => Some(2),
        }
    };
    let quotes: [(&[u8], &[u8]); 3] = [(b"", b""), (b"\"", b"\""), (b"'\"", b"\"'")];
    let mut lengths = Vec::new();
    for (before, after) in quotes {
        let Some(rest) = line.strip_prefix(before) else { continue };
        let Some(length) = parameter(rest) else { continue };
        if rest[length..].starts_with(after) {
            lengths.push(before.len() + length + after.len());
        }
    }
    lengths
}
