//! Lines for PowerShell. No PowerShell ever ran them.

use super::*;

fn call(template: &str, columns: &[&str]) -> Result<(String, Vec<String>), Error> {
    let columns: Vec<OsString> = columns.iter().map(OsString::from).collect();
    let job = Job { columns: &columns, number: 7, slot: 2, ..Job::default() };
    let Invocation { argv, raw_tail, variables } = parse_with(template, "/opt/pwsh")?.invocation(&job)?;
    assert_eq!((argv.len(), raw_tail), (5, None));
    assert_eq!(argv[..4], ["/opt/pwsh", "-NoProfile", "-NonInteractive", "-Command"]);
    let values = variables.into_iter().map(|(_, value)| value.into_string().unwrap()).collect();
    Ok((argv[4].clone().into_string().unwrap(), values))
}

#[test]
fn values_become_environment_variables() {
    for (template, becomes) in [
        ("Get-Item {}", "Get-Item $env:MINDER_V1"),
        ("Get-Item -Force", "Get-Item -Force $env:MINDER_V1"),
        ("Get-Item -Path:x \"{}.txt\"", "Get-Item -Path:x \"${env:MINDER_V1}.txt\""),
        ("(Get-Item {}).Length", "(Get-Item $env:MINDER_V1).Length"),
        ("if ({} -eq 'x') { a }", "if ($env:MINDER_V1 -eq 'x') { a }"),
        ("$x = {}; echo $x", "$x = $env:MINDER_V1; echo $x"),
        ("if (Test-Path {}) { echo 1 }", "if (Test-Path $env:MINDER_V1) { echo 1 }"),
        ("gc {} | sort", "gc $env:MINDER_V1 | sort"),
        ("& git.exe log {}", "& git.exe log $env:MINDER_V1"),
        ("echo 'it''s' {}", "echo 'it''s' $env:MINDER_V1"),
        ("echo \"a `\" \"\"\" {}", "echo \"a `\" \"\"\" $env:MINDER_V1"),
        ("prog {} # it's", "prog $env:MINDER_V1 # it's"),
    ] {
        let (line, values) =
            call(template, &["a 'b\"; c"]).unwrap_or_else(|error| panic!("{template}: {error}"));
        assert_eq!((line.as_str(), values), (becomes, vec!["a 'b\"; c".to_owned()]), "{template}");
    }
    assert_eq!(call("prog {} \"x{}\"", &[""]).unwrap().0, "prog '' \"x\"");
    assert_eq!(
        call("prog {} \"{}\"", &["a", "b"]).unwrap().0,
        "prog $env:MINDER_V1 $env:MINDER_V2 \"${env:MINDER_V1} ${env:MINDER_V2}\""
    );
}

#[test]
fn placeholder_is_refused_where_it_is_not_a_variable() {
    for (template, part) in [
        ("{} x", "looks for a command"),
        ("& {} x", "looks for a command"),
        (". {} x", "looks for a command"),
        ("a; {} x", "looks for a command"),
        ("a | {}", "looks for a command"),
        ("echo x{}", "joined to other text"),
        ("echo {}.txt", "joined to other text"),
        ("echo '{}'", "single quotes"),
        ("echo \"{}", "a double quote is opened at character 6"),
        ("echo '{}", "single quotes"),
        ("echo 'a {1", "a single quote is opened at character 6"),
        ("echo `{}", "follows a backtick"),
        ("echo \"`{}\"", "follows a backtick"),
        ("echo \"${}\"", "is an expansion"),
        ("echo $(echo {})", "stands in `$(…)`"),
        ("echo @(echo {})", "stands in `$(…)`"),
        ("echo \"$(x)\" {}", "in double quotes is not followed"),
        ("ls | % { echo {} }", "stands in a script block"),
        ("iex {}", "`iex`, which runs text as code"),
        ("$x = {}; Invoke-Expression $x", "`invoke-expression`, which runs text as code"),
        ("[ScriptBlock]::Create({})", "`[scriptblock]`, which runs text as code"),
        ("Start-Process x {}", "runs text as code"),
        ("cmd /c {}", "program text of `cmd`"),
        ("pwsh -c {}", "program text of `pwsh`"),
        ("python.exe -c {}", "program text of `python`"),
        ("prog --% {}", "changes how the rest"),
        ("echo @\"\n{}\n\"@", "here-string"),
        ("echo <# x #> {}", "a comment within a line"),
        ("echo \u{201c}{}\u{201d}", "curly quotes"),
        ("echo $env:MINDER_V1 {}", "minder's own variable"),
        ("(echo {}", "a `(` is not closed"),
        ("if (x) { echo 1", "a `{` is not closed"),
        ("echo {} )", "closes nothing"),
        ("if (x) { echo 1 } #", "does not end in a simple command"),
    ] {
        let text = call(template, &["v"]).expect_err(template).to_string();
        assert!(text.contains(part), "{template}: {text}");
    }
}

#[test]
fn windows_powershell_refuses_values_that_it_does_not_quote() {
    let old = parse_with("prog {}", r"C:\x\PowerShell.exe").unwrap();
    let call = |value: &str| old.invocation(&Job { columns: &[value.into()], ..Job::default() });
    assert!(call(r"a b").is_ok() && call(r"ab\").is_ok());
    for value in ["a\"b", r"a b\"] {
        assert!(call(value).unwrap_err().to_string().contains("use `--shell pwsh`"));
    }
}
