//! The tables for each shell, checked against the shells of this machine: their builtins, and how
//! they parse displayed commands.

use std::collections::BTreeSet;
use std::process::Stdio;

use super::*;

/// The command that lists the builtins of each shell.
const LISTS: &[(&str, &[&str])] = &[
    ("bash", &["-c", "compgen -b"]),
    ("zsh", &["-fc", "zmodload zsh/parameter; print -l ${(k)builtins}"]),
    ("ksh93", &["-c", "builtin"]),
    ("busybox", &["sh", "-c", "help"]),
];

/// Builtins that accept a value as any argument, or have a separate rule. All others must be
/// refused.
const TAKE_VALUES: &str = ". : [ [[ bg break builtin caller cd chdir command continue declare dirs disown \
                           echo exec exit export false fg hash help jobs kill local logout popd print \
                           printf pushd pwd read readonly return sleep source suspend test times true type \
                           typeset ulimit umask whence where which noglob nocorrect - wait";

fn output(shell: &OsStr, arguments: &[&str]) -> String {
    let output = Command::new(shell).args(arguments).stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// If a builtin were missing in the tables, it would count as a program.
#[test]
fn tables_contain_every_builtin() {
    for shell in shells() {
        let name = Path::new(&shell).file_name().unwrap().to_str().unwrap().to_owned();
        let Some((_, arguments)) = LISTS.iter().find(|(known, _)| *known == name) else { continue };
        let listed = output(&shell, arguments);
        let words =
            listed.split_ascii_whitespace().filter(|word| !word.contains('/') && !word.ends_with("---"));
        let builtins: BTreeSet<&str> =
            words.filter(|word| !matches!(*word, "Built-in" | "commands:")).collect();
        assert!(builtins.len() > 30, "{name}: {builtins:?}");
        // A static BusyBox lists its programs among its builtins.
        let programs = if name == "busybox" { output(&shell, &["--list"]) } else { String::new() };
        let programs: BTreeSet<&str> = programs.split_ascii_whitespace().collect();
        let builtins = &builtins - &programs;
        let known: BTreeSet<&str> = TAKE_VALUES.split_ascii_whitespace().collect();
        for builtin in builtins.difference(&known) {
            let refused = Template::parse(&[format!("{builtin} {{}} x").into()], &with_shell(&shell));
            assert!(refused.is_err(), "{name}: `{builtin}` is a builtin, and takes a value");
        }
    }
}

/// Templates whose line is displayed, pasted, and compared with the job itself. `P` prints its
/// arguments.
const SHOWN: &[&str] = &[
    "P {}",
    "P \"x {} y\" {}",
    "P 'x {} y'{}",
    "P a{}b{.}c {/}",
    "P {} >&1",
    "P {}>&1",
    "P 2{}>&1",
    "P {1..{}} {a,{}}",
    "P x={} --y={} +{}",
    "P a # b\nP {} c",
    "P 'a\nb' {}",
    "P $UNSET{}",
    "P \"$UNSET{}\"",
    "V={}; P \"$V\" {}",
    "P \u{1b}x {}",
    "if P {}; then P '{}'; fi",
    "P $(P {})",
    "P ~{}",
    "P [{}]",
];

/// Values that shells parse in many ways.
const ODD: &[&str] = &[
    "",
    " ",
    "a b",
    "a\nb",
    "a\n",
    "\n",
    "\n\n",
    "'",
    "''",
    "a'b",
    "\"",
    "\\",
    "\\'",
    "$(touch C)",
    "`touch C`",
    "\u{1}\\'; touch C #",
    "\u{7f}'; touch C #",
    "\u{1b}[31m",
    "a=b",
    "3",
    "1",
    "if",
    "time",
    "!",
    "{",
    "}",
    "[[",
    "-n",
    "--",
    "~",
    "root",
    "*",
    "?",
    "[a]",
    "{1,2}",
    "#",
    "a#",
    "%1",
    "=ls",
    "^",
    "a;b",
    "&",
    "|",
    "<",
    ">",
    "(",
    ")",
    "\t",
    "\r",
    "é",
    "\u{a0}",
    "\u{3000}",
    "\u{202e}",
    "!!",
    "%s",
    "%%",
    "\\n",
    "\\0",
    "$'a'",
    "a\u{1}b\u{2}c",
    "0",
    "x$y",
    "UNSET",
    "abc",
];

#[test]
fn displayed_line_has_same_effect_in_every_shell() {
    let place = Place::new();
    // `P` is a separate script, so that no builtin takes its place.
    let program = place.dir.path().join("P");
    std::fs::write(&program, "#!/bin/sh\nfor i do printf '<%s>' \"$i\"; done; printf '[%s]' \"$#\"\n")
        .unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    let canary = place.canary();
    let is_full = crate::support::is_full();
    for shell in shells_and_yash() {
        let yash = shell.as_bytes().ends_with(b"yash");
        for (row, template) in SHOWN.iter().enumerate() {
            // A bell of our own in a line means nothing to look at for shells that drop it.
            let line = OsString::from(template.replace('P', program));
            let Ok(parsed) = Template::parse(&[line], &with_shell(&shell)) else { continue };
            let values: Vec<String> = ODD.iter().map(|value| value.replace('C', &canary)).collect();
            // Without MINDER_ORACLE=full, every template is tried with an eighth of the values, and every
            // value with an eighth of the templates. With MINDER_LONG=1, it is a quarter.
            let every = if crate::support::is_long() { 4 } else { 8 };
            let is_chosen = |column: usize| is_full || (row + column).is_multiple_of(every);
            let values = values.iter().enumerate().filter(|(column, _)| is_chosen(*column));
            for (_, value) in values.filter(|(_, value)| !yash || value.is_ascii()) {
                let columns = [OsString::from(value)];
                let job = Job { columns: &columns, ..Job::default() };
                let ran = place.run(&parsed.argv(&job).unwrap()).unwrap();
                let shown = parsed.display(&job);
                let mut pasted = parsed.argv(&Job { columns: &columns, ..Job::default() }).unwrap();
                let at = pasted.iter().position(|word| word == "-c").unwrap();
                pasted.truncate(at + 1);
                pasted.push(OsString::from(&shown));
                let again =
                    place.run(&pasted).unwrap_or_else(|why| panic!("{}: {why}: {shown}", shell.display()));
                assert_eq!(
                    String::from_utf8_lossy(&again),
                    String::from_utf8_lossy(&ran),
                    "{}: {template:?} with {value:?} is shown as {shown:?}",
                    shell.display()
                );
            }
        }
    }
}

/// Commands without a shell are displayed so that any shell runs the same.
#[test]
fn displayed_arguments_are_parsed_alike_by_every_shell() {
    let place = Place::new();
    let program = place.dir.path().join("P");
    std::fs::write(&program, "#!/bin/sh\nfor i do printf '<%s>' \"$i\"; done; printf '[%s]' \"$#\"\n")
        .unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let words = [program.clone().into_os_string(), "{}".into(), "x{}".into(), "a=b".into(), "=y".into()];
    let template = Template::parse(&words, &Options::default()).unwrap();
    let canary = place.canary();
    for shell in shells_and_yash() {
        let head = if shell.as_bytes().ends_with(b"busybox") { vec!["sh", "-c"] } else { vec!["-c"] };
        let yash = shell.as_bytes().ends_with(b"yash");
        for value in ODD.iter().filter(|value| !yash || value.is_ascii()) {
            let columns = [OsString::from(value.replace('C', &canary))];
            let job = Job { columns: &columns, ..Job::default() };
            let ran = place.run(&template.argv(&job).unwrap()).unwrap();
            let shown = template.display(&job);
            let mut pasted: Vec<OsString> = vec![shell.clone()];
            pasted.extend(head.iter().map(OsString::from));
            pasted.push(OsString::from(&shown));
            let again =
                place.run(&pasted).unwrap_or_else(|why| panic!("{}: {why}: {shown}", shell.display()));
            assert_eq!(again, ran, "{}: {value:?} is shown as {shown:?}", shell.display());
        }
    }
    // A value that is the command is a command still.
    let columns = ["a=b", "if", "x y"].map(OsString::from);
    for (column, shown) in columns.iter().zip(["'a=b' x", "'if' x", "'x y' x"]) {
        let template = Template::parse(&["{}".into(), "x".into()], &Options::default()).unwrap();
        let columns = std::slice::from_ref(column);
        assert_eq!(template.display(&Job { columns, ..Job::default() }), shown);
    }
}

/// A word for a line to paste has no control characters, and is the same argument in every shell.
#[test]
fn shell_word_is_one_line_and_one_argument_in_every_shell() {
    let place = Place::new();
    let mut values: Vec<Vec<u8>> = hostile(&place.canary()).into_iter().map(String::into_bytes).collect();
    let odd: [&[u8]; 10] = [
        b"echo one >/dev/null\necho two {}",
        b"a\n",
        b"\n\na\n\n\n",
        b"\n",
        b"-a\n-b",
        b"\x1b[2J\r\t!x!\x7f",
        b"\xff\n\xfe",
        b"100%\n`\"\\n'$x",
        "\u{9b}\u{202e}\u{2028}\u{feff}".as_bytes(),
        b"\r\n",
    ];
    values.extend(odd.map(<[u8]>::to_vec));
    let words: Vec<String> =
        values.iter().map(|value| minder_template::shell_word(OsStr::from_bytes(value))).collect();
    for word in &words {
        assert!(!word.contains(char::is_control), "{word:?}");
    }
    let expected: Vec<u8> = values.iter().flat_map(|value| [b"<", &value[..], b">"].concat()).collect();
    for shell in shells() {
        let head = if shell.as_bytes().ends_with(b"busybox") { vec!["sh", "-c"] } else { vec!["-c"] };
        let mut argv: Vec<OsString> = vec![shell.clone()];
        argv.extend(head.iter().map(OsString::from));
        argv.push(format!("printf '<%s>' {}", words.join(" ")).into());
        let printed = place.run(&argv).unwrap_or_else(|why| panic!("{}: {why}", shell.display()));
        assert_eq!(
            String::from_utf8_lossy(&printed),
            String::from_utf8_lossy(&expected),
            "{}: {words:?}",
            shell.display()
        );
        assert!(printed == expected, "{}: {words:?}", shell.display());
    }
}
