//! Lines for `cmd.exe`: tables, and a small model of cmd whose parse no value may change. Neither
//! needs Windows.

use proptest::prelude::*;

use super::*;
use crate::placeholder::set::PlaceholderSet;
use crate::shell::{self, Dialect, Shell};
use crate::windows::env_vars::Line;

fn cmd() -> Shell {
    Shell {
        program: "cmd.exe".into(),
        name: "cmd".to_owned(),
        dialect: Dialect::Cmd,
        kinds: None,
        pipefail: false,
    }
}

fn line(template: &str, options: &Options) -> Result<Line, Error> {
    Line::parse(template.as_ref(), options, cmd())
}

/// Returns the line without the quotes around it, and the variables that it refers to.
fn call(template: &str, columns: &[&str]) -> Result<(String, Vec<String>), Error> {
    call_with(template, columns, &Options::default())
}

fn call_with(template: &str, columns: &[&str], options: &Options) -> Result<(String, Vec<String>), Error> {
    let columns: Vec<OsString> = columns.iter().map(OsString::from).collect();
    let job = Job { columns: &columns, number: 7, slot: 2, ..Job::default() };
    let Invocation { argv, raw_tail, variables } = line(template, options)?.invocation(&job)?;
    assert_eq!(argv, ["cmd.exe", "/d", "/s", "/v:off", "/c"]);
    let tail = raw_tail.unwrap().into_string().unwrap();
    let names = (1..).map(|number| format!("MINDER_V{number}"));
    assert!(
        variables.iter().map(|(name, _)| name).eq(names.take(variables.len()).collect::<Vec<_>>().iter())
    );
    let variables = variables.into_iter().map(|(_, value)| value.into_string().unwrap()).collect();
    Ok((tail.strip_prefix('"').unwrap().strip_suffix('"').unwrap().to_owned(), variables))
}

/// Scans a line. `variable` returns the text of a variable of the user.
fn scan_with(variable: &dyn Fn(&str) -> Option<OsString>, text: &str) -> Result<(), Error> {
    let rules = crate::windows::cmd::Rules {
        placeholders: &PlaceholderSet::default(),
        repeat: Repeat::Joined,
        variable,
    };
    crate::windows::cmd::scan(text.as_bytes(), &rules, 1).map(drop)
}

#[track_caller]
fn assert_refused(template: &str, part: &str) {
    let text = call(template, &["v"]).expect_err(template).to_string();
    assert!(text.contains(part), "{template}: {text}");
    assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
}

#[test]
fn values_become_variables_in_quotes() {
    for (template, becomes, values) in [
        ("findstr x {}", r#"findstr x "%MINDER_V1%""#, &["a b"][..]),
        ("findstr x", r#"findstr x "%MINDER_V1%""#, &["a b"]),
        ("findstr \"x {}y\" z", r#"findstr "x %MINDER_V1%y" z "%MINDER_V2%""#, &[]),
        ("type {} & type {}", r#"type "%MINDER_V1%" & type "%MINDER_V1%""#, &["a b"]),
        ("copy {} {.}.bak>nul 2>&1", r#"copy "%MINDER_V1%" "%MINDER_V2%".bak>nul 2>&1"#, &["a b", "a b"]),
        (
            "if exist {} (prog {}) else echo no",
            r#"if exist "%MINDER_V1%" (prog "%MINDER_V1%") else echo no"#,
            &["a b"],
        ),
        ("if \"{}\"==\"\" echo empty", r#"if "%MINDER_V1%"=="" echo empty"#, &["a b"]),
        ("if not {}==x (a) else (b)", r#"if not "%MINDER_V1%"==x (a) else (b)"#, &["a b"]),
        ("prog \"a ^ {}\"", r#"prog "a ^ %MINDER_V1%""#, &["a b"]),
        ("prog ^\"{}^\"", r#"prog ^""%MINDER_V1%"^""#, &["a b"]),
        ("prog {} 100%", r#"prog "%MINDER_V1%" 100%"#, &["a b"]),
        ("prog %NO_SUCH% {}", r#"prog %NO_SUCH% "%MINDER_V1%""#, &["a b"]),
        ("prog {} > {}.txt", r#"prog "%MINDER_V1%" > "%MINDER_V1%".txt"#, &["a b"]),
        ("prog {} &", r#"prog "%MINDER_V1%" &"#, &["a b"]),
        ("call setup.bat & prog {}", r#"call setup.bat & prog "%MINDER_V1%""#, &["a b"]),
        ("set \"X={}\" & prog", r#"set "X=%MINDER_V1%" & prog"#, &["a b"]),
        ("{} --version", r#""%MINDER_V1%" --version"#, &["a b"]),
        ("@echo {#} {%}", r#"@echo "%MINDER_V1%" "%MINDER_V2%""#, &["7", "2"]),
    ] {
        let template = template.replace(" z", if values.is_empty() { " z {}" } else { " z" });
        let (line, variables) =
            call(&template, &["a b"]).unwrap_or_else(|error| panic!("{template}: {error}"));
        let becomes = if values.is_empty() { becomes.replace("V2", "V1") } else { becomes.to_owned() };
        assert_eq!(line, becomes, "{template}");
        assert_eq!(variables, if values.is_empty() { &["a b"] } else { values }, "{template}");
    }
}

#[test]
fn empty_values_have_no_variable() {
    assert_eq!(call("prog {} \"x{}y\" {1}", &[""]).unwrap(), ("prog \"\" \"xy\" \"\"".into(), vec![]));
    assert_eq!(
        call("prog {1} {2}", &["", "b"]).unwrap(),
        (r#"prog "" "%MINDER_V1%""#.into(), vec!["b".into()])
    );
    // Without a value, the placeholder disappears.
    assert_eq!(call("prog {} x{} \"{}\"", &[]).unwrap().0, "prog  x\"\" \"\"");
}

#[test]
fn several_values_are_separate_words() {
    let values = ["a", "b"];
    assert_eq!(call("prog {}", &values).unwrap().0, r#"prog "%MINDER_V1%" "%MINDER_V2%""#);
    assert_eq!(call("prog \"{}\"", &values).unwrap().0, r#"prog "%MINDER_V1% %MINDER_V2%""#);
    let context = Options { repeat: Repeat::Context, ..Options::default() };
    let (line, _) = call_with("prog -x{} > y", &values, &context).unwrap();
    assert_eq!(line, r#"prog -x"%MINDER_V1%" -x"%MINDER_V2%" > y"#);
    assert!(call("prog > {}", &values).unwrap_err().to_string().contains("takes one word"));
    assert!(call("if {}==a prog", &values).unwrap_err().to_string().contains("takes one word"));
}

#[test]
fn backslashes_before_a_quote_are_doubled_for_programs() {
    for (template, value, holds) in [
        ("prog {}", r"a\", r"a\\"),
        ("prog {}", r"a\\b", r"a\\b"),
        ("prog \"{}\"", r"a\\", r"a\\\\"),
        ("prog \"{} \"", r"a\", r"a\"),
        ("prog \"{}x\"", r"a\", r"a\"),
        (r#""C:\Program Files\x.exe" {}"#, r"a\", r"a\\"),
        ("dir {}", r"a\", r"a\"),
        ("cd/d {}", r"a\", r"a\"),
        ("echo.{}", r"a\", r"a\"),
        ("if exist {} echo", r"a\", r"a\"),
        ("prog >{}", r"a\", r"a\"),
    ] {
        let (_, variables) = call(template, &[value]).unwrap();
        assert_eq!(variables, [holds], "{template}");
    }
    // The first of two values in a word is before the quote if the second is empty or backslashes.
    for (values, line, variables) in [
        ([r"a\", ""], r#"prog "%MINDER_V1%""#, &[r"a\\"][..]),
        ([r"a\", r"\"], r#"prog "%MINDER_V1%%MINDER_V2%""#, &[r"a\\", r"\\"]),
        ([r"a\", "b"], r#"prog "%MINDER_V1%%MINDER_V2%""#, &[r"a\", "b"]),
    ] {
        assert_eq!(
            call("prog \"{1}{2}\"", &values).unwrap(),
            (line.into(), variables.iter().map(|v| (*v).into()).collect())
        );
    }
    let joined = call(r#"prog "{1}\{2}""#, &["a", ""]).unwrap();
    assert_eq!(joined, (r#"prog "%MINDER_V1%\\""#.into(), vec!["a".into()]));
}

#[test]
fn placeholder_is_refused_where_cmd_parses_differently() {
    for (template, part) in [
        ("echo \"{}", "a double quote is opened at character 6"),
        ("echo ^{}", "follows a `^`"),
        ("echo {} ^", "ends in `^`"),
        ("echo ^%{}", "stands before `%`"),
        ("echo %{}", "a `%` stands before"),
        ("echo 100% {}", "a `%` stands before"),
        ("echo %PATH:{}=x%", "a `%` stands before"),
        ("echo %a{}%", "a `%` stands before"),
        ("echo %MINDER_V1% {}", "minder's own variable"),
        ("echo %minder_v2:~1% {}", "minder's own variable"),
        ("echo %CMDCMDLINE% {}", "holds a `\"`"),
        ("echo %CD%{}", "follows a variable"),
        ("echo %CD%\"{}\"", "follows a variable"),
        ("call prog {}", "expands variables in it again"),
        ("a & @call:sub {}", "expands variables in it again"),
        ("start {}", "hands it to another cmd"),
        ("START/b prog {}", "hands it to another cmd"),
        ("for %i in (1 2) do echo {}", "reads what is in it again"),
        ("for %i in ({}) do echo %i", "reads what is in it again"),
        ("rem {}", "does not run a program"),
        (":: {}", "does not run a program"),
        ("setlocal enabledelayedexpansion & echo {}", "what `!` means"),
        ("set /a x={}", "evaluates the value"),
        ("cmd /c {}", "program text of `cmd`"),
        ("cmd/c\"echo {}\"", "program text of `cmd`"),
        ("C:\\Windows\\System32\\CMD.EXE /c {}", "program text of `cmd`"),
        ("\"%ComSpec%\" /c {}", "program text of `%comspec%`"),
        ("powershell -c {}", "program text of `powershell`"),
        ("wsl ls {}", "program text of `wsl`"),
        ("python -c {}", "program text of `python`"),
        ("\"C:\\Python 3\\python3.exe\" -c \"x {}\"", "program text of `python3`"),
        ("forfiles /c {}", "makes a command of it"),
        ("if exist x cmd /c {}", "program text of `cmd`"),
        ("if exist x (echo) else start {}", "hands it to another cmd"),
        ("if/i {}==x echo", "cannot be followed"),
        ("if {} x echo", "cannot be followed"),
        ("(echo {}", "a `(` is not closed"),
        ("echo {} & )", "closes nothing"),
        ("echo {} >", "has no target"),
        ("echo {} >& x", "has no target"),
        ("echo\n{}", "more than one line"),
        ("set \"X={}\" & call echo %X%", "reads variables again"),
        ("set \"X={}\" & echo %X% | more", "reads variables again"),
        ("(echo a)", "does not end in a simple command"),
        ("for %i in (1) do (echo)", "does not end in a simple command"),
    ] {
        assert_refused(template, part);
    }
    // Without a placeholder, the scanner accepts such lines.
    for template in ["for %i in (1 2) do echo %i", "cmd /c dir", "set /a 1+1 & rem x"] {
        let options = Options { append: false, ..Options::default() };
        assert_eq!(call_with(template, &["v"], &options).unwrap().0, template);
    }
}

#[test]
fn variable_with_quote_is_refused() {
    let variable = |name: &str| match name {
        "QUOTED" => Some(OsString::from("\"a")),
        "CARET" => Some(OsString::from("a^")),
        "LINES" => Some(OsString::from("a\nb")),
        _ => Some(OsString::from("a & b")),
    };
    let scan = |text: &str| scan_with(&variable, text);
    assert!(scan("\"%PLAIN%\" {}").is_ok());
    assert!(scan("x \"%ProgramFiles(x86)%\" \"%PLAIN:~0,1%{}\"").is_ok());
    for text in ["%QUOTED% {}", "%CARET%{}", "{} %CARET:~0,1%", "x \"%LINES%\" {}"] {
        assert!(scan(text).unwrap_err().to_string().contains("quotes cannot be followed"), "{text}");
    }
    for text in ["%PLAIN% {}", "x %PLAIN% {}", "if %PLAIN%==a x {}", "{} %PLAIN%"] {
        assert!(scan(text).unwrap_err().to_string().contains("joins commands"), "{text}");
    }
}

#[test]
fn variables_are_replaced_by_their_text() {
    let variable = |name: &str| match name {
        "SHELL" => Some(OsString::from("cmd")),
        "LINE" => Some(OsString::from(" cmd  /c")),
        "CALL" => Some(OsString::from("call,echo")),
        "TOOL" => Some(OsString::from(r"C:\Tools\tool.exe -v")),
        "ROOT" => Some(OsString::from(r"C:\windows")),
        "TWO" => Some(OsString::from("a==a cmd")),
        "BLANK" => Some(OsString::from(" ")),
        "BLOCK" => Some(OsString::from("(cmd")),
        "QUIET" => Some(OsString::from("@cmd")),
        "FOR" => Some(OsString::from("for /f")),
        _ => None,
    };
    let scan = |text: &str| scan_with(&variable, text);
    for text in [
        "%TOOL% {}",
        r#""%ROOT%\system32\find.exe" {}"#,
        r"%ROOT%\system32\find.exe %NO_SUCH% {}",
        "x %TOOL% {}",
        "%BLANK%x {}",
        "if %SHELL%==cmd x {}",
        "%NO_SUCH%\\x {}",
    ] {
        assert!(scan(text).is_ok(), "{text}: {}", scan(text).unwrap_err());
    }
    for (text, part) in [
        ("%SHELL% /c echo {}", "program text of `cmd`"),
        ("\"%SHELL%\" /c echo {}", "program text of `cmd`"),
        ("%SHELL%.exe /c echo {}", "program text of `cmd`"),
        (r"C:\windows\system32\%SHELL% /c echo {}", "program text of `cmd`"),
        (r"%ROOT%\system32\cmd /c echo {}", "program text of `cmd`"),
        ("c:%SHELL% /c echo {}", "program text of `cmd`"),
        ("%LINE% echo {}", "program text of `cmd`"),
        ("%BLANK% %LINE% echo {}", "program text of `cmd`"),
        ("x %LINE% echo {}", "program text of `cmd`"),
        ("conhost cmd /c echo {}", "program text of `cmd`"),
        ("gsudo powershell -Command echo {}", "program text of `powershell`"),
        ("%CALL% {}", "`call`"),
        ("%SHELL:c=c% /c echo {}", "not known beforehand"),
        ("%ComSpec:~0,99% /c echo {}", "not known beforehand"),
        ("%NO_SUCH% {}", "not known beforehand"),
        ("%CD%\\%NO_SUCH% {}", "not known beforehand"),
        ("%BLOCK% {}", "joins commands"),
        ("%QUIET% {}", "joins commands"),
        ("if %TWO% {}", "cannot be followed"),
        ("%FOR% {}", "`for`"),
        ("x > %LINE% {}", "a word is missing"),
    ] {
        let error = scan(text).expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn condition_of_if_ends_where_cmd_ends_it() {
    for condition in [
        "a==a,",
        "a==a;",
        "a equ a,",
        "not exist zz,",
        "exist zz;",
        "defined PATH;",
        "errorlevel 0,",
        "a==a =,;",
    ] {
        assert_refused(&format!("if {condition}cmd /c echo {{}}"), "program text of `cmd`");
        assert_refused(&format!("if {condition}call echo {{}}"), "`call`");
    }
    assert_refused("if a==a(cmd /c echo {})", "cannot be followed");
}

#[test]
fn value_that_cmd_cannot_receive_is_refused() {
    for (template, value, part) in [
        ("echo {}", "a\"b", "the value `a\"b` holds a quotation mark"),
        ("echo {}", "a\nb", "a line end"),
        ("echo {}", "a\rb", "a line end"),
        ("echo {}", "a\u{1a}", "a line end"),
        ("echo {} | more", "50%", "may take it for a variable"),
        ("echo {}", "a\0", "NUL"),
    ] {
        let error = call(template, &[value]).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(call("echo {} || x", &["50%"]).unwrap().1, ["50%"]);
    let long = "é".repeat(shell::CMD_LINE_MAX - "echo \"\"".len());
    assert!(call("echo {}", &[&long]).is_ok());
    let error = call("echo {}", &[&(long + "é")]).unwrap_err();
    assert!(
        error.to_string().starts_with("the line has 8192 characters with its values, and cmd takes 8191"),
        "{error}"
    );
    assert_eq!(shell::units("a\u{e9}\u{1f980}\u{ffff}".as_bytes()), 5);
}

#[test]
fn arguments_max_fits() {
    let line = line("prog {}", &Options::default()).unwrap();
    let most = line.arguments_max();
    assert!((300..600).contains(&most));
    assert!(call("prog {}", &vec!["a"; most]).is_ok());
}

#[test]
fn is_line_accepts_paths_of_programs() {
    let is_line = |word: &str| shell::is_line(word.as_bytes(), &PlaceholderSet::default(), Dialect::Cmd);
    for word in [
        "x",
        "x.exe",
        r"C:\tools\x.exe",
        r"..\x",
        r"C:\Program Files\a b\x.exe",
        r"\\host\a b\x.EXE",
        "{}",
        r"{//}\x",
    ] {
        assert!(!is_line(word), "{word}");
    }
    for word in [
        "a b",
        "a&b",
        "a|b",
        "a>b",
        "%X%",
        "a^b",
        "(a)",
        r"C:\x.exe C:\y.exe",
        r"C:\a b\x.exe /c",
        r"C:\x.exe a b.exe",
        r#""a b""#,
        r"C:\a b\x.bat",
    ] {
        assert!(is_line(word), "{word}");
    }
}

#[test]
fn display_is_what_a_user_would_type() {
    let shown = |template: &str, value: &str| {
        let columns = [OsString::from(value)];
        line(template, &Options::default()).unwrap().display(&Job { columns: &columns, ..Job::default() })
    };
    assert_eq!(shown("type {} > \"{}.x\"", "a b"), "type \"a b\" > \"a b.x\"");
    assert_eq!(shown("type {}", r"C:\x.txt"), r"type C:\x.txt");
    assert_eq!(shown("type {}", ""), "type \"\"");
    assert_eq!(shown("type {}", "a\n"), "type \"a\\n\"");
}

#[test]
fn user_line_is_not_changed() {
    let line = "echo \"a\" %PATH% & dir";
    let invocation = cmd().invocation(line.as_ref()).unwrap();
    assert_eq!(invocation.raw_tail.unwrap(), format!("\"{line}\"")[..]);
    assert!(cmd().invocation("a\nb".as_ref()).is_err());
    assert!(cmd().invocation("a".repeat(8192).as_ref()).is_err());
    let sh = shell::shell(Some("/bin/busybox".as_ref())).invocation("a b".as_ref()).unwrap();
    assert_eq!(sh.argv, ["/bin/busybox", "sh", "-c", "a b"]);
}

/// Models the first phase of cmd: replaces each `%NAME%` of a known variable by its text, from left
/// to right, without expanding that text again. Any other `%` stays.
fn expand(line: &str, variables: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('%') {
        out += &rest[..at];
        let behind = &rest[at + 1..];
        let name = behind.split(['%', ':']).next().unwrap_or_default();
        let ends = behind[name.len()..].starts_with('%');
        match variables.iter().find(|(known, _)| ends && known.eq_ignore_ascii_case(name)) {
            Some((_, held)) => {
                out += held;
                rest = &behind[name.len() + 1..];
            }
            None => {
                out.push('%');
                rest = behind;
            }
        }
    }
    out + rest
}

/// Models the second phase: splits a line into words with their quotes, and operators.
fn take_apart(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut word = String::new();
    let mut quoted = false;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                quoted = !quoted;
                word.push(c);
            }
            _ if quoted => word.push(c),
            '^' => word.extend(['^'].into_iter().chain(chars.next())),
            ' ' | '\t' | '&' | '|' | '<' | '>' | '(' | ')' | ',' | ';' | '=' => {
                parts.push(std::mem::take(&mut word));
                parts.push(c.to_string());
            }
            c => word.push(c),
        }
    }
    parts.push(word);
    parts
}

/// Returns whether there is a `|` that is not part of `||`.
fn pipes(parts: &[String]) -> bool {
    let is = |at: Option<usize>| at.and_then(|at| parts.get(at)).is_some_and(|part| part == "|");
    let double = |at: usize| {
        (is(Some(at + 2)) && parts[at + 1].is_empty()) || (is(at.checked_sub(2)) && parts[at - 1].is_empty())
    };
    (0..parts.len()).any(|at| is(Some(at)) && !double(at))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_value_changes_the_parse_of_a_line(
        parts in proptest::collection::vec(
            prop_oneof![
                3 => Just("{}"), 2 => Just("{2}"), 2 => Just("\""), 3 => Just(" "), 2 => Just("a"),
                1 => Just("^"), 1 => Just("%"), 1 => Just("%P%"), 1 => Just("&"), 1 => Just("|"),
                1 => Just("\\"), 1 => Just("("), 1 => Just(")"), 1 => Just(">"), 1 => Just("if "),
                1 => Just("=="), 1 => Just("set "), 1 => Just("x={}"), 1 => Just("\"{}\""),
                1 => Just("%P:~0,1%"),
            ],
            1..12,
        ),
        values in proptest::collection::vec(
            prop_oneof![
                3 => "[ab &|<>^()%!\\\\,;=P]{0,6}",
                1 => Just("%MINDER_V1%".to_owned()),
                1 => Just("%P%&x".to_owned()),
            ],
            2..3,
        ),
    ) {
        let template = parts.concat();
        let columns: Vec<OsString> = values.iter().map(OsString::from).collect();
        let job = Job { columns: &columns, ..Job::default() };
        let invocation = line(&template, &Options::default()).and_then(|line| line.invocation(&job));
        let Ok(Invocation { raw_tail: Some(tail), variables, .. }) = invocation else {
            return Ok(());
        };
        let tail = tail.into_string().unwrap();
        let text = &tail[1..tail.len() - 1];
        let held: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| (name.clone(), value.to_str().unwrap().to_owned()))
            .collect();
        let marks: Vec<String> = (0..held.len()).map(|i| format!("~~{i}~~")).collect();
        let marked: Vec<(String, String)> =
            held.iter().zip(&marks).map(|((name, _), mark)| (name.clone(), mark.clone())).collect();
        let with = |mut all: Vec<(String, String)>| { all.push(("P".into(), "p".into())); all };
        let held = with(held);
        let marked = with(marked);
        let mut lines = (expand(text, &held), expand(text, &marked));
        for _ in 0..2 {
            let mut expected = take_apart(&lines.1);
            for part in &mut expected {
                for (mark, (_, value)) in marks.iter().zip(&held) {
                    *part = part.replace(mark, value);
                }
            }
            prop_assert_eq!(take_apart(&lines.0), expected, "{} -> {}", &template, &lines.0);
            if !pipes(&take_apart(&lines.0)) {
                break;
            }
            // cmd parses the sides of a pipe once more.
            lines = (expand(&lines.0, &held), expand(&lines.1, &held));
        }
    }
}
