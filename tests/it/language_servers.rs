//! The example `language_servers` of minder-cells, with real servers and with those that do something wrong.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::examples::built;
use crate::support::{output, skip};

/// The servers of the test. `MINDER_SERVERS` sets another number.
const SERVERS: usize = 4;

/// Far beyond what they need on a slow machine, in seconds.
const DEADLINE: &str = "300";

/// The servers that `cargo xtask test` installs, with the arguments of the example.
const PROGRAMS: [(&str, &str, &str); 2] = [
    ("cpp", "clangd", " -j=1 --background-index=false --pch-storage=memory --limit-results=0"),
    ("python", "pylsp", ""),
];

/// Returns the path of the example, or skips the test.
fn example() -> Option<PathBuf> {
    let path = built("language_servers");
    if path.is_none() {
        skip(format_args!("the example is not built; `cargo test --workspace` builds it"));
    }
    path
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

#[test]
fn real_servers_answer_every_request_once_and_exit_with_0() {
    let Some(path) = example() else { return };
    // The tests that run alongside this one have deadlines.
    let mut command = Command::new("nice");
    command.args(["-n", "10"]).arg(path);
    let servers = std::env::var("MINDER_SERVERS").ok().and_then(|number| number.parse().ok());
    let servers: usize = servers.unwrap_or(SERVERS);
    command.args(["--rounds", "1", "--deadline", DEADLINE, "--servers", &servers.to_string()]);
    let mut installed = 0;
    for (language, program, arguments) in PROGRAMS {
        if is_installed(program) {
            command.arg(format!("{language}={program}{arguments}"));
            installed += 1;
        } else {
            skip(format_args!("no {program}"));
        }
    }
    if installed == 0 {
        return;
    }
    let output = output(&mut command);
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}{complained}", output.status);
    assert_eq!(complained, "");
    // `initialize`, `shutdown`, and the completions.
    let last = said.lines().last().unwrap_or_default();
    let begin = format!("language servers: {servers} servers answered ");
    let answered = last.strip_prefix(&begin).and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    assert!(answered.is_some_and(|answered| answered >= 3 * servers), "{said}");
    assert!(last.ends_with(", and each exited with 0"), "{said}");
}

/// Runs the example with one server: a shell script. Returns what it complains of.
fn complaint(script: &str, deadline: &str) -> Option<String> {
    let directory = tempfile::tempdir().expect("make directory");
    let file = directory.path().join("server");
    std::fs::write(&file, script).expect("write script");
    complaint_about(&format!("sh {}", file.display()), deadline)
}

fn complaint_about(line: &str, deadline: &str) -> Option<String> {
    let path = example()?;
    let mut command = Command::new(path);
    command.args(["--servers", "1", "--deadline", deadline, &format!("python={line}")]);
    let Output { status, stdout, stderr } = output(&mut command);
    assert_eq!((status.code(), stdout), (Some(1), Vec::new()));
    Some(String::from_utf8(stderr).expect("the complaint is a text"))
}

/// Returns the line of a shell that writes a message.
fn message(json: &str) -> String {
    format!("printf 'Content-Length: {}\\r\\n\\r\\n%s' '{json}'\n", json.len())
}

/// Reads input until there is no more.
const LISTEN: &str = "exec cat > /dev/null\n";

#[test]
fn a_server_that_does_not_answer_is_named_after_the_deadline() {
    let Some(text) = complaint(LISTEN, "1") else { return };
    assert_eq!(text, "language_servers: after 1 s sh 1 has not answered `initialize` (1)\n");
}

#[test]
fn a_deadline_beyond_the_clock_is_refused() {
    let seconds = u64::MAX.to_string();
    let Some(text) = complaint(LISTEN, &seconds) else { return };
    assert_eq!(text, format!("language_servers: invalid value `{seconds}` for --deadline: too large\n"));
}

#[test]
fn an_answer_that_comes_twice_is_an_error() {
    let answer = message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let Some(text) = complaint(&format!("{answer}{answer}{LISTEN}"), DEADLINE) else { return };
    assert_eq!(text, "language_servers: sh 1 answers request 1 for the second time\n");
    let answer = message(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    let Some(text) = complaint(&format!("{answer}{LISTEN}"), DEADLINE) else { return };
    assert_eq!(text, "language_servers: sh 1 answers request 7, which was never sent\n");
}

#[test]
fn output_that_is_cut_short_or_is_not_a_message_is_an_error() {
    let answer = message(r#"{"jsonrpc":"2.0","id":1,"result":}"#);
    let Some(text) = complaint(&format!("{answer}{LISTEN}"), DEADLINE) else { return };
    assert!(text.contains("sh 1: the message at byte 0: invalid JSON at byte 33"), "{text}");
    let Some(text) = complaint("printf 'Content-Length: 9\\r\\n\\r\\n{}'", DEADLINE) else { return };
    assert!(text.contains("the stream ended after 23 bytes of the frame"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn a_server_that_ends_too_early_is_named_with_its_status() {
    let Some(text) = complaint("exit 3", DEADLINE) else { return };
    assert_eq!(text, "language_servers: sh 1 ended too early (exit 3)\n");
}

#[test]
fn a_program_that_is_missing_is_one_clear_line() {
    let missing = Path::new("/no/such/server");
    let Some(text) = complaint_about(&missing.display().to_string(), DEADLINE) else { return };
    assert!(text.starts_with("language_servers: ") && text.contains("/no/such/server"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn requests_of_servers_are_answered_by_their_kind() {
    // Each answer has the id of its request.
    let requests = [
        r#"{"jsonrpc":"2.0","id":"a","method":"workspace/configuration","params":{"items":[{},{}]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"client/registerCapability","params":{"registrations":[]}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"window/workDoneProgress/create","params":{"token":0}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"no/such"}"#,
    ];
    let answers = [
        r#""id":"a","jsonrpc":"2.0","result":[null,null]"#,
        r#""id":1,"jsonrpc":"2.0","result":null"#,
        r#""id":2,"jsonrpc":"2.0","result":null"#,
        r#""error":{"code":-32601,"message":"unknown method `no/such`"},"id":3"#,
    ];
    let directory = tempfile::tempdir().expect("make directory");
    let log = directory.path().join("log");
    let requests: String = requests.iter().map(|request| message(request)).collect();
    // It ends once it has read all answers.
    let path = log.display();
    let count = answers.len();
    let script = format!(
        "{requests}exec 3<&0; cat <&3 > '{path}' &\n\
         until [ \"$(grep -o jsonrpc '{path}' | grep -c .)\" -gt {count} ]; do sleep 0.02; done\n\
         kill $!; exit 3\n"
    );
    let Some(text) = complaint(&script, DEADLINE) else { return };
    assert_eq!(text, "language_servers: sh 1 ended too early (exit 3)\n");
    let sent = std::fs::read_to_string(&log).expect("read what was sent");
    for answer in answers {
        assert!(sent.contains(answer), "{answer}\n{sent}");
    }
}
