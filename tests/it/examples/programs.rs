//! The examples that are whole programs, with children that do what they should not. Nothing is left running
//! after any of them.

use std::time::{Duration, Instant};

use minder::{ChildId, ChildSet, ChildSetOptions, Command, ExitStatus, SpawnOptions, Stdio};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::built;
use crate::support::{EventLog, catch_ignored_signals, file_of, nap, patience, skip};

/// Ignores what asks it to end.
const DEAF: &str = "trap '' TERM HUP INT; while :; do sleep 0.05; done";

/// Exits, and leaves two processes behind that hold its output. One of them writes.
const HOLDER: &str = "(trap '' TERM HUP; exec sleep 60) & (while echo again; do sleep 0.03; done) & exit 0";

/// Leaves a process behind that is in another session.
const DAEMON: &str = "setsid sleep 60 < /dev/null > /dev/null 2>&1 & exit 0";

/// The environment variable by which the processes of a test are found.
const MARK: &str = "MINDER_EXAMPLE";

/// An example that runs in a directory.
struct Program {
    set: ChildSet,
    id: ChildId,
    log: EventLog,
    mark: String,
}

impl Program {
    /// Starts an example with these arguments and this input.
    fn start(dir: &TempDir, name: &str, args: &[&str], input: &str) -> Option<Self> {
        Self::start_by(dir, &[], name, args, file_of(input.as_bytes()).into())
    }

    /// Starts an example that may open only few descriptors.
    fn start_limited(
        dir: &TempDir,
        descriptors: u32,
        name: &str,
        args: &[&str],
        input: &str,
    ) -> Option<Self> {
        let limit = format!("ulimit -n {descriptors} && exec \"$@\"");
        Self::start_by(dir, &["sh", "-c", &limit, "sh"], name, args, file_of(input.as_bytes()).into())
    }

    fn start_by(dir: &TempDir, by: &[&str], name: &str, args: &[&str], stdin: Stdio) -> Option<Self> {
        let Some(path) = built(name) else {
            skip(format_args!("the example `{name}` is not built; `cargo test --workspace` builds it"));
            return None;
        };
        catch_ignored_signals();
        let words = by.iter().map(Into::into).chain([path.into_os_string()]);
        let mut command = Command::from_argv(words.chain(args.iter().map(Into::into)).collect());
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mark = dir.path().display().to_string();
        command.env(MARK, &mark).current_dir(dir.path());
        let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
        let id = set.spawn(&command, SpawnOptions::new()).expect("start example");
        Some(Self { set, id, log: EventLog::default(), mark })
    }

    /// Waits until the example has written this to stdout.
    fn wait_for(&mut self, text: &str) {
        self.wait_for_times(text, 1);
    }

    fn wait_for_times(&mut self, text: &str, times: usize) {
        let id = self.id;
        let has_said = |log: &EventLog| log.text(id).matches(text).count() >= times;
        let is_enough = |log: &EventLog| has_said(log) || log.child(id).done.is_some();
        self.log.read_until(&mut self.set, patience(), is_enough);
        assert!(has_said(&self.log), "never said {text:?}: {}", self.log.text(id));
    }

    fn signal(&self, signal: Signal) {
        let pid = self.set.pid(self.id).expect("it runs");
        let pid = Pid::from_raw(pid.cast_signed()).expect("valid pid");
        kill_process(pid, signal).expect("signal example");
    }

    /// Waits for its end, checks that it leaves nothing behind, and returns its status and what it has
    /// written to stdout and stderr.
    fn finish(mut self) -> (ExitStatus, String, String) {
        self.log.wait_all(&mut self.set);
        let left = processes_with(&self.mark);
        assert!(left.is_empty(), "left running: {left:?}");
        let child = self.log.child(self.id);
        let [said, complained] = child.outs.each_ref().map(|text| String::from_utf8_lossy(text).into_owned());
        (self.log.outcome(self.id).exit.status, said, complained)
    }
}

/// Returns the names and pids of the processes with this mark.
fn processes_with(mark: &str) -> Vec<String> {
    let variable = format!("{MARK}={mark}");
    let has_mark = |path: &std::path::Path| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").expect("list processes").flatten().map(|entry| entry.path());
    let name = |path: std::path::PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        format!("{} {}", path.display(), name.trim_end())
    };
    entries.filter(|path| has_mark(path)).map(name).collect()
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("create temporary directory")
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = patience();
    while !is_so() {
        assert!(Instant::now() < until, "never: {what}");
        nap(Duration::from_millis(5));
    }
}

/// Writes a script, whose name then is an argument of `sh`.
fn script(dir: &TempDir, name: &str, text: &str) {
    std::fs::write(dir.path().join(name), text).expect("write script");
}

mod build_tool {
    use super::*;

    #[test]
    fn steps_run_after_those_that_they_need_and_say_nothing() {
        let dir = directory();
        let steps =
            "one: echo one; touch one\ntwo one: test -e one && touch two\nthree one two: test -e two\n";
        let Some(program) = Program::start(&dir, "build_tool", &[], steps) else { return };
        assert_eq!(program.finish(), (ExitStatus::Exited(0), String::new(), String::new()));
    }

    #[test]
    fn first_failure_is_shown_and_ends_deaf_steps() {
        let dir = directory();
        let steps = format!("bad: echo text; sleep 0.2; exit 3\ndeaf: {DEAF}\nnever bad: touch never\n");
        let Some(program) = Program::start(&dir, "build_tool", &[], &steps) else { return };
        let complaint = "build_tool: bad failed (exit 3): echo text; sleep 0.2; exit 3\ntext\n";
        assert_eq!(program.finish(), (ExitStatus::Exited(1), String::new(), complaint.to_owned()));
        assert!(!dir.path().join("never").exists());
    }

    #[test]
    fn what_steps_leave_running_holds_no_other_and_ends() {
        let dir = directory();
        let steps = format!("holder: {HOLDER}\ndaemon holder: {DAEMON}\nlast daemon: touch last\n");
        let Some(program) = Program::start(&dir, "build_tool", &[], &steps) else { return };
        assert_eq!(program.finish().0, ExitStatus::Exited(0));
        assert!(dir.path().join("last").exists());
    }

    #[test]
    fn wrong_names_are_clear() {
        let dir = directory();
        let cases = [
            ("a: no-such-program\n", 1, "build_tool: a failed (exit 127): no-such-program\n"),
            ("a b: true\n", 2, "build_tool: no step `b` so far\n"),
            ("true\n", 2, "build_tool: no `:` in `true`\n"),
        ];
        for (steps, status, complaint) in cases {
            let Some(program) = Program::start(&dir, "build_tool", &[], steps) else { return };
            let (exit, _, complained) = program.finish();
            assert_eq!(exit, ExitStatus::Exited(status));
            assert!(complained.starts_with(complaint), "{complained}");
        }
    }

    #[test]
    fn twenty_four_descriptors_are_enough() {
        let dir = directory();
        let steps: String = (0..40).map(|number| format!("{number}: echo {number} >> all\n")).collect();
        let started = Program::start_limited(&dir, 24, "build_tool", &[], &steps);
        let Some(program) = started else { return };
        assert_eq!(program.finish(), (ExitStatus::Exited(0), String::new(), String::new()));
        let all = std::fs::read_to_string(dir.path().join("all")).expect("read file");
        assert_eq!(all.lines().count(), 40);
    }

    #[test]
    fn terminate_ends_all_steps() {
        let dir = directory();
        let steps = format!("deaf: touch on; {DEAF}\n");
        let Some(program) = Program::start(&dir, "build_tool", &[], &steps) else { return };
        wait_until("the step runs", || dir.path().join("on").exists());
        program.signal(Signal::TERM);
        assert_eq!(program.finish().0.signal(), Some(15));
    }
}

mod supervisor {
    use super::*;

    #[test]
    fn services_are_named_and_start_again_until_terminate() {
        let dir = directory();
        script(&dir, "short", "echo one; printf two; exit 3");
        script(&dir, "long", "echo up; exec sleep 60");
        let args = ["short=sh short", "long=sh long"];
        let Some(mut program) = Program::start(&dir, "supervisor", &args, "") else { return };
        let run = "short: one\nshort: two\nshort ended: exit 3\n";
        program.wait_for("long: up\n");
        program.wait_for(&format!("{run}{run}"));
        program.signal(Signal::TERM);
        let (exit, said, complained) = program.finish();
        assert_eq!((exit, complained), (ExitStatus::Exited(0), String::new()));
        assert_eq!(said.matches("long: up").count(), 1, "{said}");
    }

    #[test]
    fn hang_up_restarts_and_terminate_ends_deaf_services_and_what_they_left() {
        let dir = directory();
        script(&dir, "deaf", &format!("echo deaf; {DEAF}"));
        script(&dir, "left", DAEMON);
        script(&dir, "good", "echo up; sleep 60");
        let args = ["deaf=sh deaf", "left=sh left", "good=sh good"];
        let Some(mut program) = Program::start(&dir, "supervisor", &args, "") else { return };
        program.wait_for("deaf: deaf\n");
        program.wait_for("good: up\n");
        program.wait_for("left ended: exit 0\n");
        program.signal(Signal::HUP);
        program.wait_for("good ended: signal 15\n");
        program.wait_for_times("good: up\n", 2);
        program.signal(Signal::TERM);
        let (exit, _, complained) = program.finish();
        assert_eq!((exit, complained), (ExitStatus::Exited(0), String::new()));
    }

    #[test]
    fn held_output_ends_with_the_supervisor() {
        let dir = directory();
        script(&dir, "holder", &format!("echo up; {HOLDER}"));
        let Some(mut program) = Program::start(&dir, "supervisor", &["a=sh holder"], "") else { return };
        program.wait_for("a: up\na: again\n");
        program.signal(Signal::INT);
        assert_eq!(program.finish().0, ExitStatus::Exited(0));
    }

    #[test]
    fn killed_supervisor_leaves_no_service() {
        let dir = directory();
        script(&dir, "deaf", &format!("({DAEMON}); echo deaf; {DEAF}"));
        let Some(mut program) = Program::start(&dir, "supervisor", &["a=sh deaf"], "") else { return };
        program.wait_for("a: deaf\n");
        program.signal(Signal::KILL);
        program.log.wait_all(&mut program.set);
        wait_until("nothing is left running", || processes_with(&program.mark).is_empty());
    }

    #[test]
    fn wrong_program_is_one_line_and_ends_the_others() {
        let dir = directory();
        script(&dir, "deaf", DEAF);
        let args = ["deaf=sh deaf", "a=no-such-program --flag"];
        let Some(program) = Program::start(&dir, "supervisor", &args, "") else { return };
        let (exit, _, complained) = program.finish();
        assert_eq!(exit, ExitStatus::Exited(1));
        let begin = "supervisor: failed to start `no-such-program`: ";
        assert!(complained.starts_with(begin) && complained.lines().count() == 1, "{complained}");
    }

    #[test]
    fn twenty_four_descriptors_are_enough_for_four_services() {
        let dir = directory();
        script(&dir, "short", "echo up; exit 3");
        let args = ["a=sh short", "b=sh short", "c=sh short", "d=sh short"];
        let started = Program::start_limited(&dir, 24, "supervisor", &args, "");
        let Some(mut program) = started else { return };
        for name in ["a", "b", "c", "d"] {
            program.wait_for(&format!("{name}: up\n{name} ended: exit 3\n"));
        }
        program.signal(Signal::TERM);
        let (exit, _, complained) = program.finish();
        assert_eq!((exit, complained), (ExitStatus::Exited(0), String::new()));
    }
}

mod ci_agent {
    use super::*;

    #[test]
    fn results_are_reported_in_order_and_nothing_is_left() {
        let dir = directory();
        let lines = format!("echo fine\necho bad; exit 3\n{DEAF}\n{HOLDER}\n{DAEMON}\nno-such-program\n");
        let Some(program) = Program::start(&dir, "ci_agent", &["1"], &lines) else { return };
        let (exit, said, complained) = program.finish();
        assert_eq!((exit, complained.as_str()), (ExitStatus::Exited(1), ""));
        let lines: Vec<&str> = said.lines().collect();
        let cut = "[0 bytes left out]";
        let begins = ["exit 0 ", "exit 3 ", cut, "bad", "", "timed out ", cut, "", "exit 0 ", "exit 0 "];
        for (line, begin) in lines.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line:?} does not begin with {begin:?}:\n{said}");
        }
        assert!(said.contains("exit 127 ") && said.contains("not found"), "{said}");
    }

    #[test]
    fn memory_for_output_is_bounded_and_its_end_is_shown() {
        let dir = directory();
        let lines = "yes | head -c 100000000; echo end; exit 3\n";
        let started = Program::start_limited(&dir, 24, "ci_agent", &["60"], lines);
        let Some(program) = started else { return };
        let (exit, said, complained) = program.finish();
        assert_eq!((exit, complained.as_str()), (ExitStatus::Exited(1), ""));
        assert!(
            (500_000..1_100_000).contains(&said.len()) && said.ends_with("y\nend\n\n"),
            "{} bytes",
            said.len()
        );
        let dropped = said.split_once('[').and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        assert!(dropped.is_some_and(|dropped: usize| dropped > 98_000_000), "{}", &said[..200]);
    }

    #[test]
    fn wrong_time_limit_is_one_line() {
        let dir = directory();
        let Some(program) = Program::start(&dir, "ci_agent", &["soon"], "true\n") else { return };
        let (exit, _, complained) = program.finish();
        assert_eq!(exit, ExitStatus::Exited(2));
        assert_eq!(complained, "ci_agent: SECONDS: invalid digit found in string\n");
    }
}

mod language_server {
    use super::*;

    const REQUEST: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n";

    /// Runs a server that is a shell script. Returns the status and the output of the client.
    fn run(server: &str, input: &str) -> Option<(ExitStatus, String, String)> {
        let dir = directory();
        script(&dir, "server", server);
        let args = ["1", "sh", "server"];
        Program::start_limited(&dir, 24, "language_server", &args, input).map(Program::finish)
    }

    fn frame(json: &str) -> String {
        format!("printf 'Content-Length: {}\\r\\n\\r\\n%s' '{json}'\n", json.len())
    }

    #[test]
    fn messages_are_printed_and_a_large_request_is_answered() {
        let notification = "{\"method\":\"changed\"}";
        let answer = "{\"id\":1,\"result\":2}";
        let server =
            format!("{}head -c 1000000 > /dev/null; {}cat > /dev/null", frame(notification), frame(answer));
        let text = "x".repeat(1_000_000);
        let request =
            format!("{{\"id\":1,\"method\":\"m\",\"params\":\"{text}\"}}\n{{\"method\":\"exit\"}}\n");
        let Some(ended) = run(&server, &request) else { return };
        assert_eq!(ended, (ExitStatus::Exited(0), format!("{notification}\n{answer}\n"), String::new()));
    }

    #[test]
    fn bad_servers_are_one_line_each() {
        let cases = [
            (DEAF.to_owned(), "sh: no answer within 1s"),
            (format!("exec < /dev/null; {DEAF}"), "sh: no answer within 1s"),
            ("exit 3".to_owned(), "sh: exit 3"),
            ("sleep 60 & kill -SEGV $$".to_owned(), "sh: signal 11"),
            ("echo Warning; cat".to_owned(), "failed to read a frame of `sh` at byte 0: "),
            (format!("{}cat", frame("{")), "EOF while parsing an object at line 1 column 1"),
        ];
        for (server, complaint) in cases {
            let Some((exit, said, complained)) = run(&server, REQUEST) else { return };
            assert_eq!((exit, said.as_str()), (ExitStatus::Exited(1), ""), "{server}: {complained}");
            let begin = format!("language_server: {complaint}");
            assert!(complained.starts_with(&begin) && complained.lines().count() == 1, "{complained}");
        }
    }

    #[test]
    fn what_a_server_leaves_running_ends_with_it() {
        let server = format!("{}(trap '' TERM; exec sleep 60) & exit 0", frame("{\"id\":1}"));
        let Some(ended) = run(&server, REQUEST) else { return };
        assert_eq!((ended.0, ended.1.as_str()), (ExitStatus::Exited(0), "{\"id\":1}\n"), "{}", ended.2);
    }

    #[test]
    fn wrong_program_is_one_line() {
        let dir = directory();
        let args = ["1", "no-such-program"];
        let Some(program) = Program::start(&dir, "language_server", &args, REQUEST) else { return };
        let (exit, _, complained) = program.finish();
        assert_eq!(exit, ExitStatus::Exited(1));
        let begin = "language_server: failed to start `no-such-program`: ";
        assert!(complained.starts_with(begin) && complained.lines().count() == 1, "{complained}");
    }
}

mod multiplexer {
    use super::*;

    fn files(dir: &TempDir) -> Vec<String> {
        let read = |number| std::fs::read_to_string(dir.path().join(format!("{number}"))).unwrap_or_default();
        (1..=20).map(read).collect()
    }

    #[test]
    fn each_terminal_is_complete_and_gets_input_and_size() {
        let dir = directory();
        // The terminal writes CR LF. The size is asked for after it has changed.
        let text = "stty -echo; echo ready; read a; stty size; seq 20000; echo \"$a\"; read b; echo \"$b\"";
        script(&dir, "program", &format!("{text}; cat"));
        let args = ["60", ".", "sh", "program"];
        let Some(mut program) = Program::start_by(&dir, &[], "multiplexer", &args, Stdio::piped()) else {
            return;
        };
        wait_until("all are ready", || files(&dir).iter().all(|shown| shown.contains("ready")));
        program.set.write(program.id, b"size 50 132\nfirst\nsecond\n").expect("write input");
        program.set.close_stdin(program.id).expect("close input");
        assert_eq!(program.finish(), (ExitStatus::Exited(0), String::new(), String::new()));
        let numbers: String = (1..=20_000).map(|number| format!("{number}\r\n")).collect();
        let expected = format!("ready\r\n50 132\r\n{numbers}first\r\nsecond\r\n");
        for text in files(&dir) {
            assert!(text == expected, "{:?}", &text[..text.len().min(200)]);
        }
    }

    #[test]
    fn deaf_programs_and_what_they_leave_running_end() {
        let dir = directory();
        script(&dir, "deaf", DEAF);
        script(&dir, "left", "(trap '' HUP TERM; exec sleep 60) & echo end");
        for (name, text) in [("deaf", ""), ("left", "end\r\n")] {
            let args = ["1", ".", "sh", name];
            let Some(program) = Program::start(&dir, "multiplexer", &args, "") else { return };
            assert_eq!(program.finish(), (ExitStatus::Exited(0), String::new(), String::new()));
            assert!(files(&dir).iter().all(|shown| shown.ends_with(text)), "{:?}", files(&dir));
        }
    }

    #[test]
    fn start_that_fails_is_one_line_and_ends_the_others() {
        let dir = directory();
        script(&dir, "deaf", DEAF);
        let cases = [("no-such-program", 99, "failed to start `no-such-program`: "), ("sh", 24, "")];
        for (name, descriptors, reason) in cases {
            let args = ["9", ".", name, "deaf"];
            let started = Program::start_limited(&dir, descriptors, "multiplexer", &args, "");
            let Some(program) = started else { return };
            let (exit, _, complained) = program.finish();
            assert_eq!(exit, ExitStatus::Exited(1));
            let begin = format!("multiplexer: {reason}");
            assert!(complained.starts_with(&begin) && complained.lines().count() == 1, "{complained}");
        }
    }
}
