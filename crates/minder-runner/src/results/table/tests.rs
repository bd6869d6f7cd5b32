//! The rows of a table.

use crate::results::table::*;

fn table(form: TableForm, names: &[&str]) -> ResultsTable {
    let names = names.iter().map(OsString::from).collect();
    ResultsTable {
        form,
        names,
        header: Once::new(),
        first_job: ColumnCount::default(),
        columns: OnceLock::new(),
    }
}

/// Returns the table of one job with these arguments and outputs, which arrive in chunks of `step`
/// bytes.
fn written(table: &ResultsTable, args: &[&str], outputs: [&[u8]; 2], step: usize) -> Vec<u8> {
    let ended = JobFinished { job: 7, at: 1.5, wall: 0.25, exit: Some(3), out: 9, ..JobFinished::default() };
    let columns: Vec<OsString> = args.iter().map(OsString::from).collect();
    let output = |stream: Stream, take: &mut dyn FnMut(&[u8]) -> io::Result<()>| {
        outputs[stream as usize].chunks(step).try_for_each(take)
    };
    let mut out = Vec::new();
    table.begin(columns.len(), |line| out.extend_from_slice(line));
    table.row((&ended, None), "echo a", &columns, &output, &mut out).expect("memory");
    out
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

#[test]
fn table_has_columns_of_gnu_parallel() {
    let comma = TableForm::Separated(b',');
    let head = "Seq,Host,Starttime,JobRuntime,Send,Receive,Exitval,Signal,Command,";
    for step in 1..6 {
        let row = text(written(&table(comma, &[]), &["x", "y z"], [b"a\"b\n,c\n", b""], step));
        let wanted = format!(
            "{head}V1,V2,Stdout,Stderr\n7,:,1.500,0.250,0,9,3,0,\"echo a\",x,\"y z\",\"a\"\"b\n,c\n\",\n"
        );
        assert_eq!(row, wanted);
    }
    let row = text(written(&table(comma, &["z z", "y,\"x"]), &["1"], [b";'\x01", b"e"], 9));
    let wanted =
        format!("{head}\"z z\",\"y,\"\"x\",Stdout,Stderr\n7,:,1.500,0.250,0,9,3,0,\"echo a\",1,,;'\u{1},e\n");
    assert_eq!(row, wanted);
    let row = text(written(&table(TableForm::Separated(b'\t'), &[]), &[], [b"a,b", b"\t"], 9));
    let wanted = "\tCommand\tStdout\tStderr\n7\t:\t1.500\t0.250\t0\t9\t3\t0\t\"echo a\"\ta,b\t\"\t\"\n";
    assert!(row.ends_with(wanted), "{row}");
}

#[test]
fn host_of_a_job_is_quoted() {
    let output = |_: Stream, _: &mut dyn FnMut(&[u8]) -> io::Result<()>| Ok(());
    for (form, wanted) in [
        (TableForm::Separated(b','), "0,\"a\"\"b\",0.000"),
        (TableForm::Json, "\"Seq\": 0, \"Host\": \"a\\\"b\", \"Starttime\": 0.000"),
    ] {
        let mut out = Vec::new();
        let job = (&JobFinished::default(), Some("a\"b"));
        table(form, &[]).row(job, "x", &[], &output, &mut out).expect("memory");
        let row = text(out);
        assert!(row.contains(wanted), "{row}");
    }
}

#[test]
fn header_counts_arguments_of_first_job() {
    let table = table(TableForm::Separated(b','), &[]);
    table.first_job.set(2);
    let rows: Vec<String> = [&["3"][..], &["1", "2"], &["4", "5", "6"]]
        .map(|args| text(written(&table, args, [b"o", b"e"], 9)))
        .into();
    let (head, short) = rows[0].split_once('\n').expect("header line");
    assert!(head.ends_with(",Command,V1,V2,Stdout,Stderr"), "{head}");
    assert!(short.ends_with(",\"echo a\",3,,o,e\n"), "{short}");
    assert!(rows[1].ends_with(",\"echo a\",1,2,o,e\n"), "{}", rows[1]);
    assert!(rows[2].ends_with(",\"echo a\",4,5,o,e,6\n"), "{}", rows[2]);
}

#[test]
fn header_columns_are_counted_in_file() {
    let mut file = tempfile::NamedTempFile::new().expect("create temp file");
    let head =
        "Seq,Host,Starttime,JobRuntime,Send,Receive,Exitval,Signal,Command,\"a,\nb\",V2,Stdout,Stderr\n";
    file.write_all(head.as_bytes()).expect("write temp file");
    let (mut opened, rows) = open(file.path(), true, TableForm::Separated(b',')).expect("open table");
    assert_eq!(rows.fields - BEFORE.len() - BEHIND.len(), 2);
    assert_eq!(opened.stream_position().expect("find position"), head.len() as u64);
}

#[test]
fn json_rows_are_valid_json() {
    for step in 1..9 {
        let out = "a\"b\tc\n\\ä€𝄞\u{7f}".as_bytes();
        let row = text(written(&table(TableForm::Json, &[]), &["x", "ä"], [out, b"\xff\xc3"], step));
        let wanted = "{ \"Seq\": 7, \"Host\": \":\", \"Starttime\": 1.500, \"JobRuntime\": 0.250, \
                      \"Send\": 0, \"Receive\": 9, \"Exitval\": 3, \"Signal\": 0, \
                      \"Command\": \"echo a\", \"V\": [ \"x\",\"ä\" ], \
                      \"Stdout\": \"a\\\"b\\u0009c\\u000a\\\\ä€𝄞\u{7f}\", \
                      \"Stderr\": \"\u{fffd}\u{fffd}\" }\n";
        assert_eq!(row, wanted, "{step}");
        assert!(serde_json::from_str::<serde_json::Value>(&row).is_ok());
    }
}

#[test]
fn complete_rows_exclude_incomplete_row() {
    let comma = TableForm::Separated(b',');
    let whole = |text: &str, form| complete_rows(text.as_bytes(), form).expect("memory").len;
    for (text, rows) in [
        ("", 0),
        ("a,b\n", 4),
        ("a,b\nc", 4),
        ("a\n\"b\n", 2),
        ("a\n\"b\n\"\"\n\",c\nd", 12),
        ("a\n\"\"\"\n", 2),
    ] {
        assert_eq!(whole(text, comma), rows, "{text:?}");
    }
    assert_eq!(whole("{\"a\": \"\\\"\"}\n{\"b", TableForm::Json), 12);
}
