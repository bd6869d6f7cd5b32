//! Data for programs: exact for any bytes; and queries, which are read-only.

use std::ffi::OsString;
use std::fs;

use super::{State, before_times, path};
use crate::cli::{RunOutput, script, text};

/// Arguments that are hard to write.
const HARD: [&[u8]; 6] =
    [b"plain", b"a \"b\",\n c\x1b[1m", NO_TEXT, "d\u{e9}j\u{e0}".as_bytes(), b"", b" x "];
/// Bytes that are not text; Windows rejects them as arguments.
const NO_TEXT: &[u8] = if cfg!(unix) { b"\xff\xfe\x01" } else { b"\x01" };

const LINE: &str = "printf %s {} >&2; exit 3";

/// Creates a run whose jobs have the arguments in `HARD`.
fn hard() -> State {
    let state = State::new();
    let mut words: Vec<OsString> = script(LINE).into_iter().map(Into::into).collect();
    words.push(":::".into());
    words.extend(HARD.map(|arg| minder_os::encoding::os_string_from_encoded(arg.to_vec())));
    state.run("aaaa0001", "-j1", &words).exit_code(6);
    state
}

fn sql(state: &State, flags: &str, query: &str) -> RunOutput {
    state.with(&format!("log {flags} --sql"), &[query])
}

#[test]
fn json_is_exact() {
    let state = hard();
    let text = state.log("last --json").exit_code(0).stderr("").text();
    let lines: Vec<&str> = text.lines().collect();
    let values = [
        r#""plain""#,
        r#""a \"b\",\n c\u001b[1m""#,
        if cfg!(unix) { r#"{"base64":"//4B"}"# } else { r#""\u0001""# },
        "\"d\u{e9}j\u{e0}\"",
        r#""""#,
        r#"" x ""#,
    ];
    assert_eq!(lines.len(), values.len(), "{text}");
    for (number, (line, value)) in lines.iter().zip(values).enumerate() {
        let begin = format!(r#"{{"run":"aaaa0001","job":{},"args":[{value}],"#, number + 1);
        assert_eq!(before_times(line), begin);
        let tail = if value == "\"\"" { "null" } else { value };
        let end = r#""out_tail":null,"timed_out":false,"attempts":1,"cause":null,"node":null,"agent":null}"#;
        assert!(line.ends_with(&format!(r#","leaked":false,"tail":{tail},{end}"#)), "{line}");
        assert!(line.contains(r#","exit":3,"signal":null,"error":null,"out":0,"err":"#), "{line}");
    }
    assert_eq!(state.log("last --json --failed").exit_code(0).text(), text);
    assert_eq!(state.log("--json --follow").exit_code(0).text(), text);
    let runs = state.log("--json").exit_code(0).stderr("").text();
    let words: Vec<String> = script(LINE).iter().map(|word| format!("{word:?}")).collect();
    let command = format!(r#""command":[{}],"jobs":6,"failed":6,"elapsed":"#, words.join(","));
    assert!(runs.starts_with(r#"{"run":"aaaa0001","at":"#) && runs.contains(&command), "{runs}");
    assert!(runs.ends_with("\"state\":\"over\",\"note\":null}\n"), "{runs}");
}

#[test]
fn junit_has_a_case_for_each_job() {
    let state = hard();
    let text = state.log("last --junit").exit_code(0).stderr("").text();
    let counts = r#"tests="6" failures="6" errors="0" time=""#;
    assert!(
        text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"minder\" "),
        "{text}"
    );
    assert_eq!((text.matches(counts).count(), text.matches("<testcase ").count()), (2, 6), "{text}");
    assert_eq!(text.matches("<failure message=\"exit 3\"/>").count(), 6, "{text}");
    // Quotes and control characters are those that XML can write.
    let quoted = "a &quot;b&quot;,&#10; c";
    for part in [&format!(" name=\"{quoted}\" time=\""), &format!("<system-err>{quoted}</system-err>")] {
        assert!(text.contains(part.as_str()), "{part}: {text}");
    }
    assert_eq!(state.log("--junit --failed").exit_code(0).text(), text);
    assert_eq!(state.log("last --junit").exit_code(0).text(), text);

    // The names do not depend on the order of the jobs.
    let names = |text: &str| -> Vec<String> {
        text.split("<testcase ").skip(1).map(|case| case.split('"').nth(3).unwrap().to_owned()).collect()
    };
    state.run("bbbb0001", "-j1 CHILD echo-args -- {} :::", &["b", "a", "b", "b (2)", "b"]).exit_code(0);
    let text = state.log("bbbb0001 --junit").exit_code(0).text();
    assert_eq!(names(&text), ["b", "a", "b (3)", "b (2)", "b (4)"]);

    state.run("bbbb0002", "-j1", &["no-such-program-anywhere{}", ":::", "x"]).exit_code(1);
    let text = state.log("bbbb0002 --junit").exit_code(0).text();
    assert!(text.contains(r#"tests="1" failures="0" errors="1""#), "{text}");
    assert!(text.contains("<error message=\"") && text.contains("not found in PATH"), "{text}");
}

#[test]
fn csv_is_exact() {
    let state = hard();
    let text = state.log("last --csv").exit_code(0).stderr("").text();
    let head = "run,job,args,at,wall,user,system,ready,main,rss,exit,signal,error,out,err,leaked,tail,\
                out_tail,timed_out,attempts,cause,node,agent,args_form,tail_form,out_tail_form\r\n";
    let rows = text.strip_prefix(head).expect("strip head line");
    let no_text = if cfg!(unix) { "//4B" } else { "\u{1}" };
    let fields = ["plain", "\"a \"\"b\"\",\n c\u{1b}[1m\"", no_text, "d\u{e9}j\u{e0}", "\"\"", "\" x \""];
    let rows: Vec<&str> = rows.split_terminator("\r\n").collect();
    assert_eq!(rows.len(), fields.len(), "{text}");
    for (number, (row, field)) in rows.iter().zip(fields).enumerate() {
        assert!(row.starts_with(&format!("aaaa0001,{},{field},", number + 1)), "{row:?}");
        let (form, tail_form) = match field {
            "//4B" => ("base64", "base64"),
            "\"\"" => ("text", ""),
            _ => ("text", "text"),
        };
        let tail = if tail_form.is_empty() { "" } else { field };
        let len = HARD[number].len();
        assert!(row.ends_with(&format!(",3,,,0,{len},0,{tail},,0,1,,,,{form},{tail_form},")), "{row:?}");
    }
}

#[test]
fn query_selects_and_aggregates() {
    let state = hard();
    state.run("bbbb0002", "-j1 CHILD exit :::", &["0", "0", "7"]).exit_code(1);
    let of_all = "select run, count(*) n, sum(exit) from jobs group by run order by run";
    let csv = sql(&state, "--csv", of_all).exit_code(0).stderr("").text();
    assert_eq!(csv, "run,n,sum(exit)\r\naaaa0001,6,18\r\nbbbb0002,3,7\r\n");
    let json = sql(&state, "bbbb --json", of_all).exit_code(0).stderr("").text();
    assert_eq!(json, "{\"run\":\"bbbb0002\",\"n\":3,\"sum(exit)\":7}\n");
    let shown = sql(&state, "", of_all).exit_code(0).stderr("").text();
    assert_eq!(super::table(&shown)[1..], [["aaaa0001", "6", "18"], ["bbbb0002", "3", "7"]]);
    assert_eq!(sql(&state, "-n1 --csv", "select count(*) c from runs").exit_code(0).text(), "c\r\n1\r\n");
    // No rows: the head alone.
    assert_eq!(sql(&state, "--csv", "select job from jobs where 0").exit_code(0).text(), "job\r\n");
    assert_eq!(sql(&state, "--json", "select job from jobs where 0").exit_code(0).text(), "");
    let ends = "select attempt, succeeded, failed, why from attempts";
    assert_eq!(
        sql(&state, "bbbb --csv", ends).exit_code(0).text(),
        "attempt,succeeded,failed,why\r\n1,2,1,\r\n"
    );
}

#[cfg(unix)] // Arguments are bytes there.
#[test]
fn query_returns_non_utf8_arguments_as_blobs() {
    let state = hard();
    let bytes =
        "select job, typeof(args), hex(args), args_form from jobs where run = 'aaaa0001' and job in (1, 3)";
    let rows = sql(&state, "--csv", bytes).exit_code(0).text();
    assert!(rows.ends_with("1,text,706C61696E,text\r\n3,blob,FFFE01,bytes\r\n"), "{rows}");
    let values =
        sql(&state, "--json", "select args from jobs where job = 3 and run = 'aaaa0001'").exit_code(0);
    assert_eq!(values.text(), "{\"args\":{\"base64\":\"//4B\"}}\n");
}

#[test]
fn query_that_writes_is_rejected() {
    let state = hard();
    let file = state.file("x.db");
    let name = path(&file);
    for query in [
        format!("attach '{name}' as x"),
        format!("vacuum into '{name}'"),
        "pragma query_only = 0".to_owned(),
        "pragma table_info(jobs)".to_owned(),
        "select * from pragma_database_list".to_owned(),
        "delete from jobs".to_owned(),
        "update jobs set exit = 0 returning job".to_owned(),
        "insert into jobs(job) values (1)".to_owned(),
        "drop table jobs".to_owned(),
        "create table x(y)".to_owned(),
        "create temp table x(y)".to_owned(),
        "select load_extension('x')".to_owned(),
        "select readfile('/etc/passwd')".to_owned(),
        format!("select writefile('{name}', 'x')"),
        "select 1; delete from jobs".to_owned(),
        "select 1; select 2".to_owned(),
        "begin".to_owned(),
        "selec 1".to_owned(),
        "select\nnothing\nfrom\njobs".to_owned(),
        "select (".to_owned(),
        String::new(),
        "-- nothing".to_owned(),
    ] {
        for flags in ["", "--json", "--csv"] {
            let ended = sql(&state, flags, &query).exit_code(255).error_line(&[]);
            // The names of columns may be known before it is refused; no row is.
            assert!(ended.text().lines().count() <= 1, "{query}: {}", ended.text());
            assert!(!ended.text().contains("main"), "{query}: {}", ended.text());
        }
    }
    sql(&state, "", "delete from jobs").error_line(&["`delete from jobs` is refused", "may only read"]);
    sql(&state, "", "selec 1").error_line(&["cannot answer `selec 1`", "syntax error"]);
    assert!(!file.exists());
    // What goes wrong later than the first row.
    let late = "select abs(value) from (select 1 value union all select -9223372036854775808)";
    assert_eq!(sql(&state, "--json", late).exit_code(255).err.lines().count(), 1);
    assert_eq!(state.log("last --json").exit_code(0).text().lines().count(), 6, "the record is as it was");
}

#[test]
fn sqlite_export_is_new_and_complete() {
    let state = hard();
    let file = state.file("runs.db");
    let write = |words: &str| state.with(&format!("log {words} --sqlite"), &[&file]);
    assert_eq!(write("").exit_code(0).stderr("").text(), "");
    // Modes are those of Unix.
    #[cfg(unix)]
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).expect("read metadata").permissions());
    #[cfg(unix)]
    assert_eq!(mode & 0o777, 0o600, "arguments may be secret");
    let before = fs::read(&file).expect("read file");
    write("last").exit_code(255).error_line(&["cannot write `", "runs.db`", "it exists already"]);
    assert_eq!(fs::read(&file).expect("read file"), before);
    state
        .with("log --sqlite", &["/no/such/runs.db"])
        .exit_code(255)
        .error_line(&["/no/such/runs.db", if cfg!(windows) { "not found" } else { "no such file" }]);
    // A name that SQLite would take for something else, and that Windows refuses.
    #[cfg(unix)]
    in_memory(&state);
    let left: Vec<String> = fs::read_dir(state.file(""))
        .expect("list directory")
        .flatten()
        .map(|entry| text(entry.file_name().as_encoded_bytes()))
        .filter(|name| name.contains("journal") || name.contains("-wal"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    read_by_python(&file);
}

#[cfg(unix)]
fn in_memory(state: &State) {
    let mut command = state.command("log --sqlite :memory:");
    let here = crate::cli::Run::start(command.current_dir(state.file(""))).wait();
    here.exit_code(0).stderr("");
    super::assert_there(&state.file(":memory:"));
}

#[cfg(windows)] // No python3 is at hand.
fn read_by_python(_file: &std::path::Path) {}

#[cfg(unix)]
fn read_by_python(file: &std::path::Path) {
    let script = "import sqlite3, sys\n\
        base = sqlite3.connect(sys.argv[1])\n\
        print(base.execute('pragma integrity_check').fetchone()[0])\n\
        print([row[0] for row in base.execute('select name from sqlite_master order by name')])\n\
        print(list(base.execute('select run, jobs, failed, state from runs')))\n\
        print([row[0] for row in base.execute('select args from jobs order by job')])\n\
        print(list(base.execute('select attempt, failed from attempts')))\n";
    let python = |script: &str| {
        let mut command = std::process::Command::new("python3");
        command.args(["-c", script]).arg(file).env("PYTHONUTF8", "1").output()
    };
    // The smallest package of Python has no module for it.
    if !python("import sqlite3").is_ok_and(|read| read.status.success()) {
        crate::support::skip(format_args!("reading it by another program: python3 has no sqlite3"));
        return;
    }
    let read = python(script).expect("run program");
    let wanted = "ok\n['attempts', 'jobs', 'runs', 'tries']\n[('aaaa0001', 6, 6, 'over')]\n\
        ['plain', 'a \"b\",\\n c\\x1b[1m', b'\\xff\\xfe\\x01', 'd\u{e9}j\u{e0}', '', ' x ']\n[(1, 6)]\n";
    assert_eq!(text(&read.stdout), wanted, "{}", text(&read.stderr));
}
