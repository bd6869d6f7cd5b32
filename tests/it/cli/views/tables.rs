//! `--results NAME.csv`, `.tsv`, `.json`: one complete row for each job, with any output.

use std::collections::BTreeMap;
use std::fs;

use super::{Run, feed, input, minder, path, shell, temp_dir, texts};

/// Rows of a table with quotes around what needs them.
fn rows(text: &[u8], between: u8) -> Vec<Vec<Vec<u8>>> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut field = Vec::new();
    let mut within = false;
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if within && bytes.next_if_eq(&b'"').is_some() => field.push(b'"'),
            b'"' => within = !within,
            byte if within => field.push(byte),
            byte if byte == between => row.push(std::mem::take(&mut field)),
            b'\n' => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            byte => field.push(byte),
        }
    }
    assert!(row.is_empty() && field.is_empty() && !within, "the last row is torn");
    rows
}

#[test]
fn each_job_is_one_row_with_any_output() {
    let jobs = texts(9, 3000, 700_000);
    for flags in ["-j1", "-j4", "-k -j4", "--spool -j4", "-j4 --buffer 64k --no-record", "--tag -j3"] {
        for (name, between) in [("out.csv", b','), ("out.tsv", b'\t'), ("-.csv", b',')] {
            let dir = temp_dir();
            let table = dir.path().join(name);
            let to_screen = name.starts_with('-');
            let results = if to_screen { name } else { path(&table) };
            let mut command = minder(&format!("run {flags} --results {results} CHILD text"));
            let ended = Run::start(command.stdin(input(&feed(&jobs)))).wait().exit_code(0);
            assert!(ended.errors.is_empty(), "{flags} {name}: {:?}", String::from_utf8_lossy(&ended.errors));
            assert!(to_screen || ended.out.is_empty(), "{flags} {name}");
            let all = if to_screen { ended.out } else { fs::read(&table).expect("read table") };
            let mut found = rows(&all, between);
            let head: Vec<_> =
                found.remove(0).into_iter().map(|name| String::from_utf8(name).unwrap()).collect();
            assert_eq!(head[..3], ["Seq", "Host", "Starttime"]);
            assert_eq!(head[8..], ["Command", "V1", "Stdout", "Stderr"]);
            if flags.contains("-k") || flags == "-j1" {
                assert!(
                    found.iter().map(|row| &row[0]).eq((1..=jobs.len())
                        .map(|job| job.to_string().into_bytes())
                        .collect::<Vec<_>>()
                        .iter())
                );
            }
            let found: BTreeMap<_, _> = found.iter().map(|row| (row[9].clone(), row)).collect();
            assert_eq!(found.len(), jobs.len(), "{flags} {name}");
            for job in &jobs {
                let row = found[job.word().as_bytes()];
                assert!(row[10] == job.lines(0).concat(), "{flags} {name}: stdout of {job:?}");
                assert!(row[11] == job.lines(1).concat(), "{flags} {name}: stderr of {job:?}");
                assert_eq!(row[5], row[10].len().to_string().as_bytes());
            }
        }
    }
}

#[test]
fn json_rows_are_lines() {
    let dir = temp_dir();
    let table = dir.path().join("out.json");
    let line = r"printf 'a\377\001ä\n'; exit {}";
    Run::start(&shell(&format!("-j1 --results {}", path(&table)), line, &["0", "3"])).wait().exit_code(1);
    let text = fs::read_to_string(&table).expect("read file");
    for (line, code) in text.lines().zip([0, 3]) {
        assert!(line.contains(&format!("\"Exitval\": {code}, \"Signal\": 0, ")), "{line}");
        let end =
            format!("\"V\": [ \"{code}\" ], \"Stdout\": \"a\u{fffd}\\u0001ä\\u000a\", \"Stderr\": \"\" }}");
        assert!(line.ends_with(&end), "{line}");
    }
    assert_eq!(text.lines().count(), 2);
}

#[cfg(unix)] // A shell decides which job sleeps.
#[test]
fn header_has_columns_of_first_job_when_last_job_finishes_first() {
    let line = "[ {1} = 1 ] && sleep 0.3; true {}";
    for (flags, first) in [("-k", &b"1"[..]), ("", b"2"), ("--shuf --seed 1 -k", b"1")] {
        let command = shell(&format!("-j2 -n2 {flags} --results -.csv"), line, &["1", "2", "3"]);
        let found = rows(&Run::start(&command).wait().exit_code(0).out, b',');
        assert_eq!(found[0][9..], [&b"V1"[..], b"V2", b"Stdout", b"Stderr"].map(Vec::from), "{flags}");
        assert_eq!(found[1][0], first, "{flags}");
        for row in &found[1..] {
            let values: [&[u8]; 4] =
                if row[0] == b"1" { [b"1", b"2", b"", b""] } else { [b"3", b"", b"", b""] };
            assert_eq!(row[9..], values.map(Vec::from), "{flags}");
        }
    }
}

#[cfg(unix)] // The jobs run in sequence, in the shell of Unix.
#[test]
fn values_beyond_header_come_after_stderr() {
    let mut command = minder("run -j1 --colsep , --results -.csv true");
    let found = rows(&Run::start(command.stdin(input(b"a\nb,c\n"))).wait().exit_code(0).out, b',');
    let texts: Vec<Vec<_>> =
        found.iter().map(|row| row[9..].iter().map(|it| String::from_utf8_lossy(it)).collect()).collect();
    assert_eq!(texts, [vec!["V1", "Stdout", "Stderr"], vec!["a", "", ""], vec!["b", "", "", "c"]]);
}

#[test]
fn resumed_table_keeps_columns_of_its_header() {
    let dir = temp_dir();
    let table = dir.path().join("out.csv");
    let joblog = dir.path().join("log");
    let flags = format!("-j1 --colsep , --no-record --joblog {} --results {}", path(&joblog), path(&table));
    for (more, lines) in [("", "a,b\n"), ("--resume", "a,b\nc\n")] {
        let mut command = minder(&format!("run {flags} {more} CHILD exit 0"));
        Run::start(command.stdin(input(lines.as_bytes()))).wait().exit_code(0);
    }
    // The resumed run does not know how long the first row was, except by the file.
    let mut command = minder(&format!("run {flags} --resume CHILD exit 0"));
    Run::start(command.stdin(input(b"a\nc\nd\n"))).wait();
    let found = rows(&fs::read(&table).expect("read table"), b',');
    assert!(found.iter().all(|row| row.len() == 13), "{found:?}");
}

#[test]
fn job_that_cannot_start_has_a_row() {
    let dir = temp_dir();
    let table = dir.path().join("out.csv");
    let mut command = minder(&format!("run -j1 --results {} {{}} :::", path(&table)));
    let fine = if cfg!(windows) { "hostname" } else { "true" };
    Run::start(command.args([fine, "/no/such/program"])).wait().exit_code(1);
    let found = rows(&fs::read(&table).expect("read table"), b',');
    assert_eq!(found.len(), 3);
    assert_eq!([&found[1][6][..], &found[2][6][..]], [&b"0"[..], b"127"]);
}

#[test]
fn resume_continues_the_table() {
    let dir = temp_dir();
    let table = dir.path().join("out.csv");
    let joblog = dir.path().join("log");
    let flags = format!("-j1 --no-record --joblog {} --results {}", path(&joblog), path(&table));
    let run = |more: &str, args: &[&str]| {
        Run::start(&shell(&format!("{flags} {more}"), "echo {}; echo e >&2", args)).wait().exit_code(0)
    };
    run("", &["a", "b"]);
    let before = fs::read(&table).expect("read table");
    // Torn within quotes, where a line ends as well.
    fs::write(&table, [&before[..], b"3,:,1.000,0.000,0,2,0,0,echo,c,\"c\nc"].concat()).expect("write file");
    run("--resume", &["a", "b", "c"]);
    let found = rows(&fs::read(&table).expect("read table"), b',');
    let seen: Vec<_> = found.iter().map(|row| String::from_utf8_lossy(&row[10]).into_owned()).collect();
    assert_eq!(seen, ["Stdout", "a\n", "b\n", "c\n"]);
    // Without --resume it is emptied.
    run("", &["d"]);
    assert_eq!(rows(&fs::read(&table).expect("read table"), b',').len(), 2);
}

#[test]
fn delayed_row_is_written_once() {
    let dir = temp_dir();
    let at = |name: &str| dir.path().join(name);
    let table = at("out.csv");
    let joblog = at("log");
    let go = at("go");
    fs::create_dir(at("state")).expect("create directory");
    let flags = format!("-k -j2 --joblog {} --results {}", path(&joblog), path(&table));
    let line = format!("test {{}} = b || until test -e {}; do sleep 0.1; done; echo {{}}", path(&go));
    let mut command = shell(&flags, &line, &["a", "b"]);
    let mut live = Run::start(command.env("MINDER_STATE_DIR", at("state")));
    live.wait_until_true("a row", || fs::read_to_string(&joblog).is_ok_and(|log| log.lines().count() == 2));
    live.kill();
    live.wait();
    fs::write(&go, "").expect("write file");
    let mut command = minder("run --resume last");
    Run::start(command.env("MINDER_STATE_DIR", at("state"))).wait().exit_code(0);
    let found = rows(&fs::read(&table).expect("read table"), b',');
    let seen: Vec<_> = found.iter().map(|row| String::from_utf8_lossy(&row[10]).into_owned()).collect();
    assert_eq!(seen, ["Stdout", "a\n", "b\n"]);
}

#[test]
fn unwritable_table_is_one_line_of_error() {
    let dir = temp_dir();
    let nowhere = dir.path().join("no/such/out.csv");
    Run::start(&shell(&format!("--results {}", path(&nowhere)), "echo {}", &["a"]))
        .wait()
        .exit_code(255)
        .error_line(&["cannot write results in `", path(&nowhere)]);
    // Windows has no device that is always full.
    #[cfg(unix)]
    if std::path::Path::new("/dev/full").exists() {
        let table = dir.path().join("full.csv");
        std::os::unix::fs::symlink("/dev/full", &table).expect("create symbolic link");
        Run::start(&shell(&format!("--results {}", path(&table)), "echo {}", &["a", "b"]))
            .wait()
            .exit_code(255)
            .error_line(&["cannot write to the results in `"]);
    }
}
