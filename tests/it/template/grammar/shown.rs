//! Displayed commands (`--dry-run`, records), pasted into a shell: no value is evaluated, and
//! programs get the same arguments.

use std::ffi::OsString;

use super::*;

/// Runs the displayed line of a case. Probes must get the same arguments as in the job itself.
pub(super) fn fault(
    case: &Case,
    template: &Template,
    subject: &Subject,
    sandbox: &mut Sandbox,
) -> Option<Fault> {
    // A job with a refused number of arguments can be displayed, too.
    template.argv(&case.job()).ok()?;
    let shown = template.display(&case.job());
    let trace = sandbox.run_text(&subject.head, shown.as_bytes(), subject.variables);
    match case.judge(&trace) {
        Some(Fault::Evaluated | Fault::Changed) => Some(Fault::Shown),
        _ => None,
    }
}

/// Lines with known arguments of their program.
const LINES: [&str; 9] = [
    "prog probe0 {} end",
    "prog probe0 \"{}\" end",
    "prog probe0 '{}' end",
    "prog probe0 a{}0 end",
    "prog probe0 \"a {}'0\" end",
    "prog probe0 '$(x \"{}' end",
    "v={}; prog probe0 \"$v\" end",
    "prog \"$(echo probe0)\" {} end # it's",
    "{ prog probe0 {} end; } >f2",
];

/// The arguments of `LINES`. NUL stands for the value.
const MEANT: [&str; 9] = ["\0", "\0", "\0", "a\x000", "a \0'0", "$(x \"\0", "\0", "\0", "\0"];

#[test]
fn a_line_as_it_is_shown_does_the_same_in_every_shell() {
    let ground = Ground::new();
    let subjects = shells::found(&ground);
    let values: Vec<OsString> = Values::new().all().collect();
    let mut sandbox = Sandbox::new(&ground, 90);
    let mut wrong = Vec::new();
    for (nth, subject) in subjects.iter().enumerate() {
        for (place, line) in LINES.iter().enumerate() {
            // Every value in every shell, each in one line, or in a long run in all lines.
            let long = number("MINDER_GRAMMAR").is_some();
            let chosen = |value: &usize| long || (value + nth) % LINES.len() == place;
            // yash replaces an argument that is invalid in its locale by an empty one.
            let text = |value: &&OsString| subject.family != "yash" || value.as_bytes().is_ascii();
            let chosen = (0..values.len()).filter(chosen).map(|value| &values[value]).filter(text);
            let chosen: Vec<&OsString> = chosen.collect();
            // One text with several values, so that one process tries them all.
            for some in chosen.chunks(20) {
                if !is_the_same(line, MEANT[place], some, subject, &mut sandbox) {
                    let alone = |value: &&&OsString| {
                        !is_the_same(line, MEANT[place], &[**value], subject, &mut sandbox)
                    };
                    let describe = |value| format!("{}: {line}: {value:?}", subject.name);
                    wrong.extend(some.iter().filter(alone).map(describe));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "evaluated, or handed on as something else:\n{}", wrong.join("\n"));
}

/// Returns whether the displayed line passes each of these values and evaluates none.
fn is_the_same(
    line: &str,
    meant: &str,
    values: &[&OsString],
    subject: &Subject,
    sandbox: &mut Sandbox,
) -> bool {
    // The line for `sh`, which users paste into their shell.
    let options = Options { shell: Some("/bin/sh".into()), ..Options::default() };
    let template = Template::parse(&[OsString::from(line)], &options).unwrap();
    let mut text = String::new();
    let mut expected = Vec::new();
    let (before, after) = meant.split_once('\0').unwrap();
    for value in values {
        let columns = [(*value).clone()];
        text += &template.display(&Job { columns: &columns, ..Job::default() });
        text.push('\n');
        let word = [before.as_bytes(), value.as_bytes(), after.as_bytes()].concat();
        expected.push(vec![b"probe0".to_vec(), word, b"end".to_vec()]);
    }
    let trace = sandbox.run_text(&subject.head, text.as_bytes(), subject.variables);
    !trace.marked && trace.calls == expected
}
