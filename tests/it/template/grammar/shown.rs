//! What `--dry-run` and the records show of a job, pasted into a shell: no value is evaluated, and programs get the same.

use std::ffi::OsString;

use super::*;

/// Runs a case as it is shown. Probes have to see what they see in the job itself.
pub(super) fn fault(
    case: &Case,
    template: &Template,
    subject: &Subject,
    sandbox: &mut Sandbox,
) -> Option<Fault> {
    // It is shown what a refused number of arguments would do.
    template.argv(&case.job()).ok()?;
    let shown = template.display(&case.job());
    let trace = sandbox.run_text(&subject.head, shown.as_bytes(), subject.variables);
    match case.judge(&trace) {
        Some(Fault::Evaluated | Fault::Changed) => Some(Fault::Shown),
        _ => None,
    }
}

/// Lines of which it is known what a program gets.
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

/// The arguments of `LINES`, each with the value in the place of a NUL.
const MEANT: [&str; 9] = ["\0", "\0", "\0", "a\00", "a \0'0", "$(x \"\0", "\0", "\0", "\0"];

#[test]
fn a_line_as_it_is_shown_does_the_same_in_every_shell() {
    let ground = Ground::new();
    let subjects = shells::found(&ground);
    let values: Vec<OsString> = Values::new().all().collect();
    let mut sandbox = Sandbox::new(&ground, 90);
    let mut wrong = Vec::new();
    // The line for `sh`, which people paste into the shell that they have.
    let options = Options { shell: Some("/bin/sh".into()), ..Options::default() };
    for (line, meant) in LINES.iter().zip(MEANT) {
        let template = Template::parse(&[OsString::from(line)], &options).unwrap();
        for subject in &subjects {
            // One text with every value, so that one process tries them all.
            let columns = values.iter().map(|value| [value.clone()]);
            let texts = columns.map(|columns| template.display(&Job { columns: &columns, ..Job::default() }));
            let trace = sandbox.run_text(
                &subject.head,
                texts.collect::<Vec<_>>().join("\n").as_bytes(),
                subject.variables,
            );
            let expected = values.iter().map(|value| {
                let [before, after] = [0, 1].map(|nth| meant.split('\0').nth(nth).unwrap().as_bytes());
                let word = [before, value.as_bytes(), after].concat();
                vec![b"probe0".to_vec(), word, b"end".to_vec()]
            });
            if !trace.marked && trace.calls == expected.clone().collect::<Vec<_>>() {
                continue;
            }
            // Which of them it was.
            for (value, expected) in values.iter().zip(expected) {
                let columns = [value.clone()];
                let shown = template.display(&Job { columns: &columns, ..Job::default() });
                let trace = sandbox.run_text(&subject.head, shown.as_bytes(), subject.variables);
                if trace.marked || trace.calls != [expected] {
                    let why = if trace.marked { "is evaluated" } else { "is changed" };
                    wrong.push(format!("{}: {value:?} {why}: {shown}", subject.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}
