//! Tables of templates, with the line that each becomes or the reason for its refusal.

use std::ffi::OsString;

use super::*;

mod classes;
mod cmd;
mod numbers;
mod plus;
mod powershell;
mod program_texts;
mod several;

/// Options with a POSIX shell, since the default shell may be another one.
fn posix() -> Options {
    Options { shell: Some("/bin/sh".into()), ..Options::default() }
}

fn parse(line: &str) -> Result<Template, Error> {
    parse_with(line, "/bin/sh")
}

fn parse_with(line: &str, shell: &str) -> Result<Template, Error> {
    Template::parse(&[line.into()], &Options { shell: Some(shell.into()), ..Options::default() })
}

fn direct(arguments: &[&str]) -> Result<Template, Error> {
    Template::parse(&arguments.iter().map(OsString::from).collect::<Vec<_>>(), &posix())
}

fn argv(template: &Template, columns: &[&str]) -> Result<Vec<String>, Error> {
    let columns: Vec<OsString> = columns.iter().map(OsString::from).collect();
    let argv = template.argv(&Job { columns: &columns, number: 7, slot: 2, ..Job::default() })?;
    Ok(argv.into_iter().map(|word| word.into_string().unwrap()).collect())
}

#[track_caller]
fn assert_line(template: &str, line: &str, values: &[&str]) {
    let parsed = parse(template).unwrap_or_else(|e| panic!("{template}: {e}"));
    assert!(parsed.is_shell(), "{template}");
    let one = values == ["a/b.c two"];
    let argv = argv(&parsed, if one { &["a/b.c two"] } else { &["a/b.c", "two"] }).unwrap();
    assert_eq!(argv[..2], ["/bin/sh", "-c"], "{template}");
    assert_eq!(argv[2], line, "{template}");
    assert_eq!(argv[3], "/bin/sh", "{template}");
    assert_eq!(argv[4..], *values, "{template}");
}

#[track_caller]
fn assert_refused(template: &str, part: &str) {
    for shell in ["/bin/sh", "/usr/bin/bash"] {
        assert_refused_by(template, shell, part);
    }
}

#[track_caller]
fn assert_refused_by(template: &str, shell: &str, part: &str) {
    match parse_with(template, shell) {
        Ok(parsed) => panic!("{template} is accepted: {parsed:?}"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains(part), "{template}: {text}");
            assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
        }
    }
}

#[test]
fn values_become_positional_parameters() {
    let all = "a/b.c two";
    for (template, line) in [
        ("echo {}", r#"echo "$1""#),
        ("echo a{}b", r#"echo a"$1"b"#),
        ("echo {}{}", r#"echo "$1""$1""#),
        ("echo \"{}\"", r#"echo "${1}""#),
        ("echo \"x{}0\"", r#"echo "x${1}0""#),
        ("echo \"it's {}\"", r#"echo "it's ${1}""#),
        ("echo 'a {} b'", r#"echo 'a '"$1"' b'"#),
        ("echo '{}'", r#"echo ''"$1"''"#),
        ("echo '\\{}'", r#"echo '\'"$1"''"#),
        ("echo \"\\\\{}\"", r#"echo "\\${1}""#),
        ("echo \\\\{}", r#"echo \\"$1""#),
        ("echo \\${}", r#"echo \$"$1""#),
        ("echo $${}", r#"echo $$"$1""#),
        ("echo $HOME{}", r#"echo $HOME"$1""#),
        ("echo \"$(basename {})\"", r#"echo "$(basename "$1")""#),
        ("echo \"$(basename \"{}\" '{}')\"", r#"echo "$(basename "${1}" ''"$1"'')""#),
        ("echo $(echo $(echo {}))", r#"echo $(echo $(echo "$1"))"#),
        ("echo $( (echo {}) )", r#"echo $( (echo "$1") )"#),
        ("echo $(case x in (x) echo {};; esac)", r#"echo $(case x in (x) echo "$1";; esac)"#),
        ("gzip <{} >{}.gz 2>&1", r#"gzip <"$1" >"$1".gz 2>&1"#),
        ("{} --help", r#""$1" --help"#),
        ("{}>x", r#""$1">x"#),
        ("cat {} | sort & wait", r#"cat "$1" | sort & wait"#),
        ("for f in {} b; do echo \"$f\"; done", r#"for f in "$1" b; do echo "$f"; done"#),
        ("if [ -f {} ]; then cat {}; else :; fi", r#"if [ -f "$1" ]; then cat "$1"; else :; fi"#),
        ("case {} in *{}*|b) echo {} ;; (*) :; esac", r#"case "$1" in *"$1"*|b) echo "$1" ;; (*) :; esac"#),
        ("while ! test -e {}; do sleep 1; done", r#"while ! test -e "$1"; do sleep 1; done"#),
        ("{ echo {}; } && (echo {})", r#"{ echo "$1"; } && (echo "$1")"#),
        ("f={}; mv \"$f\" \"${f%.c}.d\"", r#"f="$1"; mv "$f" "${f%.c}.d""#),
        ("V={} awk '{print ENVIRON[\"V\"]}'", r#"V="$1" awk '{print ENVIRON["V"]}'"#),
        ("awk '{print $1}' {}", r#"awk '{print $1}' "$1""#),
        ("awk -v x={} -F: '{print x}' f", r#"awk -v x="$1" -F: '{print x}' f"#),
        ("sh -c 'echo \"$1\"' sh {}", r#"sh -c 'echo "$1"' sh "$1""#),
        ("sh {} x", r#"sh "$1" x"#),
        ("python3 train.py -c {}", r#"python3 train.py -c "$1""#),
        ("$CC -c {} -o x", r#"$CC -c "$1" -o x"#),
        ("echo {} # {} isn't here", "echo \"$1\" # {} isn't here"),
        ("echo {}#{}", "echo \"$1\"#\"$1\""),
        ("echo {a,{}} {foo} ${x} {,}", r#"echo {a,"$1"} {foo} ${x} {,}"#),
        ("n=0; until cp {} d; do n=$((n+1)); done", r#"n=0; until cp "$1" d; do n=$((n+1)); done"#),
        ("cat <<EOF; echo {}\nit's $HOME\nEOF", "cat <<EOF; echo \"$1\"\nit's $HOME\nEOF"),
        ("cat <<-'EOF'; echo {}\n\t`$(\n\tEOF\n", "cat <<-'EOF'; echo \"$1\"\n\t`$(\n\tEOF\n"),
        ("echo `date` {}", r#"echo `date` "$1""#),
        ("echo \\\n  {}", "echo \\\n  \"$1\""),
        ("f() { echo \"$1\"; shift; }; f {}", r#"f() { echo "$1"; shift; }; f "$1""#),
        ("set -euo pipefail; cat {}", r#"set -euo pipefail; cat "$1""#),
        ("printf '%s\\n' {}", r#"printf '%s\n' "$1""#),
        ("ssh {} uptime", r#"ssh "$1" uptime"#),
        ("diff <(zcat {}) y", r#"diff <(zcat "$1") y"#),
        ("[ {} -gt 3 ] && echo", r#"[ "$1" -gt 3 ] && echo"#),
        ("export X={} && env", r#"export X="$1" && env"#),
    ] {
        assert_line(template, line, &[all]);
    }
    assert_line("a {1} {2} {1}", r#"a "$1" "$2" "$1""#, &["a/b.c", "two"]);
    assert_line("a {1.} {1/} {1//} {1/.}", r#"a "$1" "$2" "$3" "$4""#, &["a/b", "b.c", "a", "b"]);
    assert_line("a '{#}' \"{%}\"", r#"a ''"$1"'' "${2}""#, &["7", "2"]);
}

#[test]
fn parameters_after_the_ninth_have_braces() {
    let template = "a {1} {2} {1.} {2.} {1/} {2/} {1//} {2//} {#} {%} '{%}'";
    let line = r#"a "$1" "$2" "$3" "$4" "$5" "$6" "$7" "$8" "$9" "${10}" ''"${10}"''"#;
    assert_line(template, line, &["a/b.c", "two", "a/b", "two", "b.c", "two", "a", ".", "7", "2"]);
}

#[test]
fn value_is_appended_to_last_command_without_placeholder() {
    for (template, line) in [
        ("gzip -9", r#"gzip -9 "$1""#),
        ("gzip -9 \n", "gzip -9 \"$1\" \n"),
        ("gzip -9 # it's {} here", "gzip -9 \"$1\" # it's {} here"),
        ("a; b -x;", r#"a; b -x "$1";"#),
        ("b -x &", r#"b -x "$1" &"#),
        ("b -x >out", r#"b -x >out "$1""#),
        ("a | b\\ ", "a | b\\  \"$1\""),
        ("cat <<E -\nx\nE\n", "cat <<E - \"$1\"\nx\nE\n"),
    ] {
        assert_line(template, line, &["a/b.c two"]);
    }
    for template in [
        "x=1",
        "(a b)",
        "for i in 1 2; do a; done",
        "f() { a; }",
        "a b; { c; }",
        "# only",
        "if a; then b; fi",
    ] {
        assert_refused(template, "not clear where the value belongs");
    }
    assert_refused("gzip \\", "ends in a backslash");
}

#[test]
fn placeholder_is_refused_where_shell_evaluates() {
    for (template, part) in [
        ("echo `basename {}`", "backticks"),
        ("echo \"`basename '{}'`\"", "backticks"),
        ("echo \"$(( $(cat {}) + 1 ))\"", "arithmetic"),
        ("echo ${x:-{}}", "`${…}`"),
        ("echo \"${x#{}}\"", "`${…}`"),
        ("echo ${{}}", "`${…}`"),
        ("echo \"${}\"", "expansion to the shell"),
        ("echo $'{}'", "`$'…'`"),
        ("echo $\"{}\"", "translated"),
        ("cat <<E\n{}\nE", "here-document"),
        ("cat <<'E'\n{}\nE", "here-document"),
        ("echo \\{}", "backslash"),
        ("echo \"\\{}\"", "backslash"),
        ("f() { echo {}; }; f", "in a function"),
        ("f() { :; } > {}; f", "in a function"),
        ("function f { echo {}; }; f", "in a function"),
        ("a=({})", "in an array"),
        ("a[{}]=1; :", "an array"),
        ("PS4={}; set -x", "`PS4`"),
        ("BASH_ENV={} bash x", "`BASH_ENV`"),
        ("RANDOM={}; :", "`RANDOM`"),
        ("for OPTIND in {}; do :; done", "`OPTIND`"),
        ("x={}; eval echo $x", "evaluates variables"),
        ("x={}; echo ${!x}", "evaluates variables"),
        ("x={}; echo ${x@P}", "evaluates variables"),
        ("x={}; y=abc; echo ${y:x}", "evaluates variables"),
        ("x={}; sh -c \"echo $x\"", "evaluates variables"),
        ("for x in {}; do ssh h \"ls $x\"; done", "evaluates variables"),
        ("echo {} | while read -r x; do echo $((x)); done", "evaluates variables"),
        ("f() { echo $(($1)); }; f {}", "evaluates variables"),
        ("declare -i x; x={}", "evaluates variables"),
        ("declare -n x={}", "`declare`"),
        ("x={}; printf \"$x\" y", "evaluates variables"),
        ("x={}; unset \"$x\"", "evaluates variables"),
        ("let x={}", "`let`"),
        ("read {}", "`read`"),
        ("unset 'a[{}]'", "`unset`"),
        ("export {}=1", "a name or an option's for `export`"),
        ("printf -v {} x", "`printf`"),
        ("printf {} x", "`printf`"),
        ("printf \"{}\\n\" x", "`printf`"),
        ("[ -v {} ]", "put an operator"),
        ("test {} {2}", "put an operator"),
        ("[ -{} {2} ]", "put an operator"),
        ("test -{1}{1} {2} -a x", "put an operator"),
        ("command eval \"echo {}\"", "program text of `eval`"),
        ("trap 'rm {}' EXIT", "`trap`"),
        ("alias x='echo {}'", "`alias`"),
        (". <(echo {})", "runs"),
        ("coproc cat {}", "`coproc`"),
    ] {
        assert_refused(template, part);
    }
    for (template, part) in [
        ("[[ -v {} ]]", "arithmetic"),
        ("[[ a -{} {2} ]]", "arithmetic"),
        ("[[ $(wc -l < {}) -gt 3 ]]", "arithmetic"),
    ] {
        assert_refused_by(template, "bash", part);
    }
    for (template, part) in [("echo $[{}]", "`$[`"), ("echo \"$[{}]\"", "`$[`"), ("((x = {}))", "arithmetic")]
    {
        assert_refused_by(template, "/bin/sh", part);
    }
    assert_refused_by("[[ -f {} ]]", "/bin/sh", "not part of POSIX sh");
    assert!(parse_with("[[ {} =~ ^(a|b)$ && ! -f {} ]]", "bash").is_ok());
}

#[test]
fn placeholder_is_refused_in_program_text() {
    for command in [
        "eval \"echo {}\"",
        "eval {}",
        "sh -c \"echo {}\"",
        "bash -c 'echo {}'",
        "/bin/bash -o pipefail -ec 'a {}'",
        "dash -c {}",
        "zsh -c \"a $(echo {})\"",
        "sh -c -e 'a {}'",
        "busybox sh -c 'a {}'",
        "xargs -n1 sh -c 'a {}'",
        "sudo -u x bash -lc 'a {}'",
        "find . -exec sh -c 'a {}' \\;",
        "wrapper sh -c 'a {}'",
        "env -i sh -c 'a {}'",
        "env -S'a {}'",
        "env -S 'a {}'",
        "su -c 'a {}'",
        "su - me -c 'a {}'",
        "ssh host \"ls {}\"",
        "ssh -p 22 host ls {}",
        "watch ls {}",
        "awk '/{}/'",
        "awk -F: {} f",
        "gawk -e '/{}/' f",
        "sed 's/a/{}/'",
        "sed -n {}p f",
        "sed -e 's/{}/b/' f",
        "perl -ne 'print if /{}/' f",
        "perl -e'{}'",
        "perl -{}",
        "python3 -c 'print({})'",
        "python3.11 -W ignore -c 'print({})'",
        "ruby -e 'p {}'",
        "node --eval='{}'",
        "node -p '{}'",
        "php -r 'x {};'",
        "$SHELL -c 'a {}'",
        "\"$0\" -c 'a {}'",
        "timeout 5 sh -c 'a {}'",
        "vim -c 's/{}/x/' f",
        "psql db -c 'select {}'",
        "bash <(echo {})",
        "flock f -c 'a {}'",
        "time -p sh -c 'a {}'",
        "! sh -c 'a {}'",
        "nice -n 5 perl -e 'a {}'",
        "\\eval \"a {}\"",
        "'s'h -c 'a {}'",
        "tar --to-command='a {}' -xf y",
    ] {
        assert_refused(command, "the program text of");
    }
    assert_refused("parallel a {}", "would be run as a command by the inner `parallel`");
    assert_refused("$X -c 'a {}'", "the value of `-c`");
    assert_refused("{} -c 'a {2}'", "the value of `-c`");
}

#[test]
fn placeholder_may_name_a_semaphore() {
    for command in
        ["minder sem --fg --id {1} -j2 cp a b", "minder sem -j 2 --id \"{}\" x", "sem -j2 --id {} x"]
    {
        assert!(parse(command).is_ok(), "{command}");
    }
    for command in [
        "minder sem --id {1} cp {2} b",
        "minder sem cp --id {}",
        "minder sem --fg x --id {}",
        "minder sem -j {} x",
        "minder sem --id a{} {2}",
        "minder sem --zz --id {} x",
        "minder run --id {} x",
        "minder sem -j --id {} x",
        "minder relay awk {} sem",
        "minder relay ssh h docker {} run img",
        "minder relay ssh h minder sem --fg --id {} true",
        "minder xargs ssh h sem --fg --id {} echo",
        "minder relay watch -n1 {} sem --id x",
    ] {
        assert!(parse(command).is_err(), "{command}");
    }
}

#[test]
fn placeholder_is_refused_in_program_text_without_shell() {
    for words in [
        &["sh", "-c", "echo {}"][..],
        &["env", "A=1", "bash", "-c", "{}"],
        &["ssh", "h", "ls", "{}"],
        &["perl", "-pe", "s/{}//"],
        &["sh", "-c"],
        &["xargs", "sh", "-c", "a {}"],
    ] {
        let error = direct(words).expect_err(words[0]);
        assert_eq!(error.kind(), ErrorKind::Refused);
    }
    let error = direct(&["sh", "-c", "echo {}"]).unwrap_err();
    let text =
        "`{}` is part of the program text of `sh`, which runs it as code: write `sh -c '… \"$1\" …' sh {}`";
    assert_eq!(error.to_string(), text);
}

#[test]
fn positional_parameters_of_the_line_are_refused() {
    for name in ["$1", "$@", "$*", "$#", "${1}", "${1:-x}", "${#}", "${#@}", "${@:1}", "${!1}", "${!#}"] {
        assert_refused(&format!("echo {name} {{}}"), "would be minder's own parameter");
        assert_refused(&format!("echo \"{name}\" {{}}"), "would be minder's own parameter");
        assert!(parse(&format!("echo '{name}' {{}}")).is_ok());
        assert!(parse(&format!("echo \"\\{name}\" {{}}")).is_ok() || name.contains("{1}"));
    }
    assert_refused("echo `echo $1` {}", "own parameter");
    assert_refused("echo {}; shift", "own parameters");
    assert_refused("set -- a; echo {}", "own parameters");
    assert_refused("set $x; echo {}", "own parameters");
    assert_refused("getopts ab x; echo {}", "own parameters");
    assert_refused("for x do echo {}; done", "own parameters");
}

#[test]
fn line_that_cannot_be_parsed_is_refused_with_reason() {
    for (template, part) in [
        ("echo {} 'abc", "a single quote is opened at character 9"),
        ("echo {} \"abc", "a double quote is opened at character 9"),
        ("echo {} $(abc", "`$(` is opened at character 9"),
        ("echo {} ${abc", "`${` is opened at character 9"),
        ("echo {} `abc", "a backtick is opened at character 9"),
        ("echo {} )", "closes nothing"),
        ("if echo {}; then a", "`fi` is missing"),
        ("(echo {}", "`(` is opened at character 1"),
        ("a(b) {}", "opens nothing"),
        ("cat <<E {}\nx", "the line that ends it is missing"),
        ("cat <<E {}", "its text is missing"),
        ("cat <<E {}\n$(x)\nE", "quote its end"),
        ("echo {} $(cat <<E)", "on a separate line"),
        ("echo $(case x in x) echo {};; esac)", "write `(pattern)`"),
        ("echo $(echo {} # isn't\n)", "a comment inside"),
        ("echo $'a\\'b' {}", "ends the quotes"),
        ("echo \"${x:-'a'}\" {}", "quotes inside"),
        ("echo $((x) ) {}", "does not end in `))`"),
        ("echo $\\\n(x) {}", "joins two lines"),
        ("ec\\\nho {}", "joins two lines"),
        ("echo {}; done", "no command is open"),
        ("alias a=b; a {}", "`alias`"),
    ] {
        assert_refused(template, part);
    }
    let deep = "$(".repeat(200);
    assert_refused(&format!("echo {deep}"), "deep");
    for shell in ["fish", "csh", "tcsh", "posh", "oksh", "rc"] {
        let error = parse_with("echo {}", shell).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shell);
    }
    for shell in ["cmd.exe", "C:\\x\\CMD.EXE"] {
        let refusal = parse_with("echo {}", shell).err().map(|error| error.kind());
        let windows = std::env::consts::FAMILY == "windows";
        assert_eq!(refusal, (!windows).then_some(ErrorKind::Shell), "{shell}");
    }
    for shell in [
        "sh",
        "dash",
        "bash",
        "/opt/bash5.2",
        "ksh93",
        "mksh",
        "yash",
        "zsh-5.9",
        "ash",
        "busybox",
        r"C:\Git\bin\SH.EXE",
        "pwsh",
        "powershell.exe",
    ] {
        assert!(parse_with("echo {}", shell).is_ok(), "{shell}");
    }
    assert_refused_by("echo ={}", "zsh", "begins with `=`");
    for template in ["[ {} -eq 1 ]", "printf '%d' {}", "exit {}", "sleep {} ;"] {
        assert!(parse_with(template, "bash").is_ok(), "{template}");
        assert_refused_by(
            template,
            "mksh",
            if template.starts_with("printf") { "more than text" } else { "evaluate" },
        );
    }
}

#[test]
fn several_arguments_run_without_shell() {
    for (words, expected) in [
        (&["gzip"][..], &["gzip", "a b.c"][..]),
        (&["gzip", "-9"], &["gzip", "-9", "a b.c"]),
        (&["cp", "{}", "--out={.}.gz"], &["cp", "a b.c", "--out=a b.gz"]),
        (&["a", "{}{}x{", "$1", "'{}'"], &["a", "a b.ca b.cx{", "$1", "'a b.c'"]),
        (&["{}"], &["a b.c"]),
        (&["a", "{#}", "{%}", "{1}", "{foo}", "{a,b}"], &["a", "7", "2", "a b.c", "{foo}", "{a,b}"]),
        (&["sh", "-c", "echo \"$1\"", "sh", "{}"], &["sh", "-c", "echo \"$1\"", "sh", "a b.c"]),
        (&["grep", "-e", "sh", "-r", "{}"], &["grep", "-e", "sh", "-r", "a b.c"]),
        (&["a", ""], &["a", "", "a b.c"]),
    ] {
        let template = direct(words).unwrap();
        assert!(!template.is_shell());
        assert_eq!(argv(&template, &["a b.c"]).unwrap(), expected);
    }
    assert_eq!(argv(&direct(&["a", "{}", "b"]).unwrap(), &[""]).unwrap(), ["a", "", "b"]);
    assert!(direct(&[]).is_err());
    assert!(direct(&[""]).is_err());
}

#[test]
fn argv_fails_for_missing_column_and_nul_byte() {
    let error = argv(&parse("echo {9}").unwrap(), &["a"]).unwrap_err();
    assert_eq!(error.to_string(), "`{9}` asks for a ninth column, the input has 1");
    let error = argv(&direct(&["echo", "{8.}", "{}"]).unwrap(), &["a", "b"]).unwrap_err();
    assert_eq!(error.to_string(), "`{8.}` asks for an eighth column, the input has 2");
    let error = argv(&parse("echo {}").unwrap(), &["a\0b"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the value of job 7 holds a NUL byte, which no argument can (-0 splits there)"
    );
    assert_eq!(error.kind(), ErrorKind::Nul);
}

#[test]
fn display_is_what_a_user_would_type() {
    for (template, value, shown) in [
        ("gzip -9 {}", "a.log", "gzip -9 a.log"),
        ("gzip -9 {}", "a b", "gzip -9 'a b'"),
        ("gzip -9 {}", "", "gzip -9 ''"),
        ("gzip -9 {}", "it's", r#"gzip -9 'it'"'"'s'"#),
        ("gzip -9 {}", "'a'", r#"gzip -9 "'"'a'"'""#),
        ("gzip -9 {}", "a=b", "gzip -9 'a=b'"),
        ("gzip -9 {}", "a\tb", "gzip -9 'a\tb'"),
        ("gzip -9 {}", "a\nb\x1b", "gzip -9 'a\nb'\"$(printf '\\033')\""),
        ("echo \"x {}\"", "$(a) \"b\"", r#"echo "x \$(a) \"b\"""#),
        ("echo \"x {}\"", "a\n\x01", "echo \"x a\n$(printf '\\001')\""),
        ("echo 'x {}'", "it's", r#"echo 'x it'"'"'s'"#),
        ("a\nb {}", "c", "a\nb c"),
        ("echo \x1b[m {}", "c", "eval \"$(printf 'echo \\033[m c')\""),
        ("echo {}>&1", "3", "echo '3'>&1"),
        ("echo {1..{}}", "3", "echo {1..'3'}"),
        ("{}=x true", "a", "'a'=x true"),
        ("{} x", "if", "'if' x"),
        ("echo $x{}", "y", "echo $x'y'"),
    ] {
        let columns = [OsString::from(value)];
        assert_eq!(
            parse(template).unwrap().display(&Job {
                columns: &columns,
                number: 1,
                slot: 1,
                ..Job::default()
            }),
            shown
        );
    }
    let columns = [OsString::from("x y")];
    let job = Job { columns: &columns, number: 1, slot: 1, ..Job::default() };
    assert_eq!(direct(&["a", "b c", "-{}", "{9}"]).unwrap().display(&job), "a 'b c' '-x y' {9}");
}

#[test]
fn slot_that_is_not_known_stays_a_placeholder() {
    let columns = ["a b".into()];
    let job = Job { columns: &columns, number: 7, slot: 0, ..Job::default() };
    for (template, shown) in [
        (parse("echo {} {%}"), "echo 'a b' {%}"),
        (parse("echo \"{#}-{%}\""), "echo \"7-{%}\""),
        (direct(&["echo", "{}-{%}.{#}"]), "echo 'a b'-{%}.7"),
    ] {
        let template = template.expect("parse template");
        assert_eq!(template.display(&job), shown);
        assert_eq!(template.argv(&job).expect_err("no slot").kind(), ErrorKind::Slot);
    }
}
