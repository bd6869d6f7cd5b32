//! The texts in the command's sources that a person can read, and whether a case shows them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The crates whose texts a person can read.
const CRATES: &[&str] =
    &["minder-cli", "minder-lab", "minder-ui", "minder-runner", "minder-record", "minder-template"];

/// Files without messages: tables, bars and help, which have their own tests. `cli::xargs_compat`
/// compares the messages of xargs with those of findutils, and `cli::config` has those of settings.
const VIEWS: &[&str] = &[
    "minder-ui/exit.rs",
    "minder-cli/flags/",
    "minder-lab/flags/",
    "minder-cli/ui/summary.rs",
    "minder-cli/ui/progress",
    "minder-cli/export/rows.rs",
    "minder-ui/rows.rs",
    "minder-cli/commands/candidates.rs",
    "minder-cli/commands/uninstall.rs",
    "minder-cli/installation.rs",
    "minder-cli/commands/log/junit.rs",
    "minder-lab/chart",
    "minder-lab/redraw.rs",
    "minder-ui/table.rs",
    "minder-ui/format.rs",
    "minder-cli/compat/parallel/info.rs",
    "minder-cli/compat/xargs/",
    "minder-cli/commands/xargs/",
    "minder-cli/commands/config.rs",
    "minder-cli/settings/",
    "minder-runner/results/table.rs",
    "minder-lab/bench/results.rs",
    "minder-lab/bench/turnaround/charts.rs",
    "minder-lab/bench/turnaround/summary.rs",
    "minder-lab/bench/turnaround/tables.rs",
    "minder-lab/bench/turnaround/workbook.rs",
    "minder-lab/clock/sleep_chart.rs",
    "minder-lab/clock/unusual.rs",
    "minder-cli/commands/doctor.rs",
    "minder-cli/commands/advise/text.rs",
    "minder-cli/commands/log/job.rs",
    "minder-cli/commands/help.rs",
];

/// Constants whose texts are names with spaces between them: builtins, variables and programs. They
/// are data, of which a message shows one name at most.
const NAMES: &[(&str, &[&str])] = &[
    ("minder-template/posix/builtins.rs", &["SAFE", "RULED", "OTHERS"]),
    ("minder-template/posix/simple_command.rs", &["SHOPT"]),
    ("minder-template/programs.rs", &["WRAPPERS", "GATHERERS", "PLAIN"]),
    ("minder-template/program_text/perl.rs", &["STEMS", "WORDS", "BEFORE_REGEXP"]),
    ("minder-template/program_text/sql.rs", &["STEMS"]),
    ("minder-template/program_text/syntax.rs", &["AWK", "PYTHON", "RUBY", "NODE"]),
    ("minder-template/posix/variables.rs", &["TEXT", "EVALUATED", "RUN", "GRAMMAR", "FILLED"]),
];

/// The file without format strings: `%` in them stands for a program.
const HINTS: &str = "minder-template/programs.rs";

/// Texts that no case shows: a part of each, and why. Where a separate test shows it, that file,
/// in which the part stands.
const WITHOUT_A_CASE: &[(&str, &str)] = &[
    // Their own tests.
    ("name the machines of the group", "one more way to write a machine"),
    ("there is no `--pipe`", "GNU parallel's own message is like it"),
    ("is not a file: with", "a named pipe as a file of arguments"),
    ("--ungroup is ignored: output of other", "a warning, and the run begins"),
    ("hosts are more than", "a thousand hosts"),
    ("it is larger than {} MiB", "a file of that size"),
    ("{}: copied minder {}", "see cli/ssh/programs.rs: copied minder"),
    ("; trying again", "see cli/ssh/refusals.rs: trying again"),
    ("the command of the run is too long", "4 MiB of a command"),
    ("no answer for {} s", "a network that is cut"),
    ("its arguments are too long to be sent", "4 MiB of arguments"),
    ("returns less than it should", "see cli/ssh/files.rs: returns less than it should"),
    ("a line of its journal is", "a host that sends something else"),
    ("cannot write the record of the run", "a full disk"),
    ("is not a file that job {job} returns", "a host that sends something else"),
    ("the link has ended", "the host's own message, which no link shows"),
    ("the link sends something else", "another program than minder"),
    ("cannot change to `{}`", "a home directory that is missing on a host"),
    ("this user has no home directory", "a user without one"),
    ("it has closed the connection", "the host's own message, which no link shows"),
    ("any more, and {left} left", "see cli/agents.rs: no host works on the run any more, and 1 job left"),
    ("any more, and its input was not read", "a round that another process ends"),
    ("no agent works on it", "see cli/attach.rs: no agent works on it, 2 of 4 done"),
    ("{} may still work", "an agent that is stopped"),
    (", {} of {} done (minder {verb} {id})", "see cli/attach.rs: 2 of 4 done (minder resume"),
    ("detached · minder attach {id}", "see cli/attach.rs: detached · minder attach"),
    ("detached from run {run}", "see cli/attach.rs: detached from run"),
    ("no agent has worked on the run (`minder resume` finishes it)", "its process was killed before"),
    ("no agent of the run has begun", "agents that are killed when they begin"),
    (" (minder resume {run})", "see cli/attach.rs: 3 jobs left (minder resume"),
    (" (minder attach {run})", "see cli/attach.rs: wait for them first (minder attach"),
    ("or go on? [c/d/g]", "see cli/attach.rs: [c/d/g]"),
    ("cannot detach from the run", "see cli/attach.rs: cannot detach from the run"),
    ("agents still work on the run", "see cli/attach.rs: agents still work on the run"),
    ("the run was cancelled, and {left} left", "see cli/attach.rs: the run was cancelled, and 2 jobs left"),
    ("waiting to see whether {} still works", "see cli/attach.rs: waiting to see"),
    ("the minder of run {run} on {node}", "see cli/attach.rs: waiting to see"),
    ("another minder of run {run}", "a coordinator that was killed before it has described itself"),
    ("it could not show that it works", "a directory that cannot be written for half a minute"),
    ("another minder has taken it over", "see cli/attach.rs: another minder has taken it over"),
    ("is in use by another minder on {node}", "see cli/attach.rs: is in use by another minder on"),
    ("cannot hold run {}", "a directory that cannot be written"),
    ("cannot resume the run on agents", "see cli/agents.rs: cannot resume the run on agents"),
    ("was not read to its end, and is lost", "see cli/agents.rs: was not read to its end, and is lost"),
    ("by the record of the run, which cannot be written", "see cli/agents.rs: which cannot be written"),
    (
        "cannot change to the directory of the run",
        "see cli/agents.rs: cannot change to the directory of the run",
    ),
    ("the manifest is damaged", "a manifest that is JSON, with other flags than a list"),
    ("cannot find the program of an agent", "the operating system does not tell it"),
    ("other agents take the jobs over", "a directory that cannot be written for half a minute"),
    ("cannot read the results of agents", "a directory that cannot be read for half a minute"),
    ("cannot read the agents of the run", "a directory that cannot be read"),
    ("a newer minder has written the spool", "a spool that this version does not write"),
    (" (and {more} more)", "see cli/agents/record.rs: is missing: what only it ran"),
    ("is damaged: agent {", "see cli/agents/record.rs: is damaged: agent"),
    ("the key of an agent has {KEY_LEN}", "a damaged event, which is skipped"),
    ("its first line cannot be read", "see cli/agents.rs: its first line cannot be read"),
    ("other machines may work on it", "a unit test of the retention shows it"),
    ("cannot claim jobs", "a directory that cannot be read for half a minute"),
    ("cannot start an agent", "a limit of processes at this moment"),
    ("without `--csv` divides at tabs", "a tab in a name; a unit test shows it"),
    ("`--colsep '\\t'` divides at tabs", "a tab in a name; a unit test shows it"),
    ("run all at once: not by the build's jobserver", "see cli/jobserver.rs: run all at once"),
    ("standard input is the null device", "see cli/first_hour/running.txt: minder run gzip *.log"),
    ("; did you mean `./{program}`?", "see cli/first_hour/running.txt: then minder run ./greet"),
    ("enough have failed", "see cli/log/job_status.rs: enough have failed"),
    ("asked {jobs} to stop", "see cli/shutdown.rs: to stop"),
    ("it has more than 1 MiB", "see cli/input.rs: it has more than 1 MiB"),
    ("the rest of the output: its reader", "see cli/slow_readers.rs: the rest of the output: its reader"),
    ("{name}: no job runs", "see cli/tries.rs: interrupted: no job runs"),
    ("Ctrl-C again kills them", "see cli/signals.rs: Ctrl-C again kills them"),
    ("a second signal kills them", "see cli/shutdown.rs: a second signal kills them"),
    ("\\builtin ", "shell code, see cli/env_parallel.rs: aliases_change_no_function_when_they_are_loaded"),
    ("display notification body", "part of a script for osascript, which macOS has"),
    ("output of `{}` ({result})", "see cli/views/times.rs: minder: output of `"),
    ("uses the terminal", "see cli/terminal.rs: uses the terminal"),
    ("interrupted before the first job", "the process ends by the signal"),
    ("gives jobs the terminal, one at a time", "see cli/terminal.rs: hint_for_jobs_that_use_the_terminal"),
    ("a kill -9 of minder would leave", "see cli/relay.rs: a kill -9 of minder would leave"),
    ("this minder was built without it", "the tests build the command with the feature xlsx"),
    ("--pty needs Linux", "only where there are no pseudo-terminals"),
    ("the timers of this system have no slack", "see cli/run.rs: the timers of this system have no slack"),
    (
        "cannot write to standard output: it is closed",
        "see cli/output.rs: cannot write to standard output: it is closed",
    ),
    ("cannot hand standard output to the jobs", "see cli/output.rs: cannot hand standard output to the jobs"),
    ("running jobs cannot be seen on this system", "Linux shows them"),
    ("process {pid} is not the one of the run", "the pid belongs to another process by now"),
    ("{count} running or left", "see cli/surroundings.rs: 2 running or left"),
    ("1 running job cannot be told apart", "see cli/log/running.rs: 1 running job cannot be told apart"),
    ("running jobs cannot be told apart", "see cli/log/running.rs: 2 running jobs cannot be told apart"),
    ("(process {}, which /proc hides)", "a process of another user, with the mount option hidepid"),
    ("the journal of the run has no beginning", "a damaged journal of a run that runs now"),
    ("only the first {has} of {all} are in the record", "it takes 512 MiB of output"),
    ("of {all} are in the record{why}", "see cli/log/stored.rs: only the last 2.0 KiB"),
    ("`minder run --keep-output` keeps all", "see cli/log/stored.rs: only the last 2.0 KiB"),
    ("had stored 512 MiB, the limit of a run", "see cli/log/stored.rs: had stored 512 MiB"),
    ("has not finished yet", "see cli/log/job.rs: has not finished yet"),
    ("it did not run, or was cut off", "see cli/log/job.rs: or was cut off"),
    ("keeps output that was not shown", "see cli/log/prune.rs: keeps output"),
    ("older than {} days", "see cli/log/prune.rs: older than"),
    ("is missing: what only it ran", "see cli/record_faults/pending_output.rs: of the record in"),
    ("the stack limit is {limit} KiB", "see cli/resource_limits.rs: stack limit is 64 KiB"),
    ("other processes are in the cgroup of minder", "see cli/memory_max.rs: other processes are in"),
    ("its cgroup is not delegated: {}", "see cli/memory_max.rs: its cgroup is not delegated: "),
    ("` limits the memory of each job)", "see cli/memory_max.rs: limits the memory of each job)"),
    ("cgroups of version 2 are not mounted", "it depends on the machine"),
    ("cgroups of version 2 have no controller of memory here", "it depends on the machine"),
    (
        "the cgroup of minder has no controller of memory",
        "see cli/memory_max.rs: has no controller of memory",
    ),
    ("its cgroup is not mounted here", "a container that shows another part of the hierarchy"),
    ("cannot open its cgroup: {}", "another file system at the place of the hierarchy"),
    ("cannot read its cgroup: {}", "a cgroup that is removed meanwhile"),
    ("cannot limit the memory of jobs", "a limit of the number of cgroups"),
    ("cannot start all jobs of", "see cli/resource_limits.rs: cannot start all jobs of"),
    ("no job runs whose end could free some", "see cli/resource_limits.rs: too many open files"),
    ("of the input has changed: nothing is run", "see cli/record.rs: has changed"),
    ("--tee runs {jobs} jobs at once", "see cli/input.rs: jobs at once"),
    ("a word has more than {bytes_max}", "see cli/input.rs: a word has more than"),
    ("stdout was closed by its reader", "stdout is closed: the exit status reports it"),
    ("the best of the others is used", "see seccomp.rs: the best of the others is used"),
    ("interrupted; showing what was measured", "see cli/bench.rs: showing what was measured"),
    (
        "interrupted before the first measurement",
        "see cli/bench_turnaround.rs: interrupted before the first measurement",
    ),
    ("Waiting for one of many objects", "see cli/bench.rs: Waiting for one of many objects"),
    ("objects that are waited for", "see cli/bench.rs: objects that are waited for"),
    ("Hearing that a child has ended", "see cli/bench_exit.rs: Hearing that a child has ended"),
    ("children that live", "see cli/bench_exit.rs: children that live"),
    ("Starting a child", "see cli/bench_exit.rs: Starting a child"),
    ("MiB of the parent", "see cli/bench_exit.rs: MiB of the parent"),
    ("Marking, sweeping and allocating cells", "see cli/bench_sweep.rs: Marking, sweeping and allocating"),
    ("KiB of a block", "see cli/bench_sweep.rs: KiB of a block"),
    ("1 µs to 10 ms", "see cli/clock.rs: 1 µs to 10 ms"),
    ("would take it from the command", "see cli/config.rs: would take it from the command"),
    ("by each way, {}; how much later they end", "see cli/clock.rs: how much later they end"),
    ("Shorter than asked for", "Windows, whose ticks Wine does not have"),
    ("under Wine, whose timers have no tick", "Wine is not Windows"),
    ("later than asked for", "see cli/clock.rs: later than asked for"),
    ("{load} threads compute", "see cli/clock.rs: 2 threads compute"),
    ("{what}: turn {} of {TURNS}", "see cli/clock.rs: turn 1 of 10"),
    ("{} (a sleep may end this much late)", "see cli/clock.rs: (a sleep may end this"),
    ("without requests, at best", "see cli/clock.rs: without requests, at best"),
    ("while this program requested", "see cli/clock.rs: while this program requested"),
    ("Nothing is unusual.", "see cli/clock.rs: Nothing is unusual."),
    ("{what}: {} of {}, about {} left", "see cli/clock.rs: 2 of 2, about"),
    ("The {setting} that the system states", "see cli/clock.rs: that the system states"),
    ("`it` is a process with the", "see cli/clock.rs: is a process with the"),
    ("the process with the setting", "see cli/clock.rs: the process with the setting"),
    ("What a timer setting of one process does", "see cli/clock.rs: What a timer setting of one process"),
    ("{} that the process has set, in milliseconds", "see cli/clock.rs: that the process has set, in milli"),
    ("a sleep of 1 ms", "see cli/clock.rs: a sleep of 1 ms"),
    ("the coarse clock", "see cli/clock.rs: the coarse clock"),
    ("interrupted before the first line: there is no chart", "see cli/clock.rs: before the first line"),
    ("How late sleeps of {} end", "see cli/clock.rs: How late sleeps of 1 ms end"),
    ("seconds since the start", "see cli/clock.rs: seconds since the start"),
    ("published: pool of waiter threads", "see cli/bench.rs: published: pool"),
    ("under Wine: these are not times of Windows", "Windows, and not even that"),
    ("This job was killed because it timed out", "see cli/parallel_compat.rs: because it timed out"),
    ("Starting no more jobs", "see cli/parallel_compat.rs: Starting no more jobs"),
    ("its words take more than", "see cli/input.rs: its words take more than"),
    ("cannot find the path of minder", "only where the system does not tell it"),
    ("cannot find this program", "Windows, where the program is gone while it runs"),
    ("`{name}` is not a number", "a damaged row is measured again, not quoted"),
    ("`{column}` is unknown", "a damaged row is measured again, not quoted"),
    ("other lines are kept", "see cli/bench_turnaround.rs: other lines are kept"),
    ("other users may write to it", "file modes: a unit test of results_file.rs shows it"),
    ("it is a link, or belongs to another user", "the state directory would have to be another user's"),
    ("cannot write the results", "a disk that is full in the middle"),
    ("{}: {number}, about {} left", "a terminal is needed"),
    (", about {} s left", "see cli/terminal.rs: round 2 of 2, about "),
    ("{what}, round {round} of {}{left}", "see cli/terminal.rs: round 2 of 2"),
    ("its record has no CPU times", "systems that do not tell what a child used, such as macOS"),
    ("line has no `--order`", "tested in command_line.rs: which order is best depends on the times"),
    ("no arguments by which jobs are known again", "as above"),
    ("`--order` excludes other flags of it", "as above"),
    (
        "asks for the slot of the job, which is not known",
        "`minder log RUN JOB` shows the placeholder instead",
    ),
    ("a named pipe can be read only once", "see cli/input.rs: a named pipe can be read only once"),
    // A terminal is needed, or that there is none.
    ("reading arguments from the terminal", "standard input has to be a terminal"),
    ("{why}: give the input again, … | minder", "see cli/terminal.rs: give the input again, … | minder"),
    ("arguments were to be kept out of its record", "standard input has to be a terminal"),
    ("its input was a file that is gone", "standard input has to be a terminal"),
    ("its input came through a pipe", "standard input has to be a terminal"),
    ("-p asks on the terminal, and there is none", "the tests may run on a terminal"),
    // The bar, `--progress` and tables show these.
    ("its output was closed", "a state, for `minder log`"),
    ("its manifest cannot be read", "a cell of a table"),
    ("enough have succeeded", "a reason for a line of the summary"),
    ("enough are done", "a reason for a line of the summary"),
    ("too little memory is free", "a state, for the bar"),
    ("refused by the --limit command", "a state, for the bar"),
    ("resuming suspended jobs", "a state, for the bar"),
    ("of memory free", "a state, for the bar"),
    ("the machine swaps", "a state, for the bar"),
    ("measuring ", "a state, for the bar"),
    ("a disk is busy for", "a state, for the bar"),
    ("no answer within {}", "it takes a command of `--limit` that hangs for long"),
    // Texts that are for SQLite and for serde.
    ("pragma ", "for SQLite"),
    ("insert into", "for SQLite"),
    ("a string, or an object with `base64`", "a damaged row is counted, not quoted"),
    ("of a newer version", "such rows are passed over"),
    ("3<&0", "for the shell"),
    ("tail -c +{}", "for the shell"),
    ("minder(1), minder help", "a part of a page"),
    ("minder-run(1), minder-resume(1)", "a part of a page"),
    // Other builds and systems.
    ("there is nothing to measure on this system yet", "a system on which no test runs"),
    ("needs SQLite, which this minder was built without", "a build without the feature"),
    // The machine would have to fail at one moment.
    ("cannot read the input again that was kept in a file", "a disk that fails"),
    ("cannot read standard input", "the descriptor is there, or the runtime opens /dev/null for it"),
    (
        "cannot write the record in",
        "a disk that is full in the middle: see cli/record_faults/full_disk.rs: write",
    ),
    ("cannot write the joblog: {}", "a disk that is full in the middle"),
    (
        "cannot read output that waited in a file",
        "see cli/record_faults/pending_output.rs: cannot read output that waited",
    ),
    ("{bytes} bytes of it are missing", "see cli/record_faults/pending_output.rs: bytes of it are missing"),
    ("cannot read the kept output of {jobs}", "see cli/record_faults/pending_output.rs: kept output of job"),
    (
        "runs when the run is resumed",
        "see cli/record_faults/pending_output.rs: when the run is resumed once more",
    ),
    ("counted as done (--skip-lost)", "see cli/record_faults/pending_output.rs: counted as done"),
    (
        "would run what is lost again",
        "see cli/record_faults/pending_output.rs: --resume would run what is lost again",
    ),
    ("what is lost will run again", "see cli/record_faults/pending_output.rs: will run again"),
    ("cannot count the run in", "a disk that is full in the middle"),
    ("that could have been resumed: ", "see cli/log/prune.rs: that could have been resumed"),
    ("{exit} (", "see cli/log/job_status.rs: timed out (2 tries)"),
    ("the record of this run is gone", "see cli/record_faults.rs: the record of this run is gone"),
    ("cannot use `{}`", "see cli/record_faults.rs: it is a link"),
    ("it is a link", "see cli/record_faults.rs: it is a link"),
    ("other users could change", "see cli/record_faults.rs: other users could change"),
    (" (MINDER_STATE_DIR names another)", "a file system without modes"),
    ("the file is too short", "see cli/record_faults/pending_output.rs: too short"),
    ("belongs to another user", "see cli/record_faults/pending_output.rs: belongs to another user"),
    ("its row is damaged", "a row with numbers that no file has"),
    ("{more} more jobs", "it takes nine reasons at once"),
    ("cannot read the output of a job", "a disk that fails"),
    ("cannot find the working directory", "the system has to refuse its name"),
    ("cannot run jobs in the working directory", "see cli/surroundings.rs: cannot run jobs in the working"),
    ("became shorter while it was read", "it has to be cut in the middle"),
    ("cannot start a thread", "the limit differs between machines: see cli/resource_limits.rs: nproc"),
    ("no guardians", "a fork has to fail"),
    ("no memory for a block", "the memory differs between machines"),
    (", which is ignored: {reason}", "/proc has to vanish in the middle"),
    ("cannot check `{flag}`", "/proc has to be missing"),
    ("another minder took it", "two at one moment"),
    ("cannot find minder's own program", "it has to be removed while it runs"),
    ("cannot lock the semaphore", "a file system without locks"),
    ("cannot lock a slot", "a file system without locks"),
    ("cannot use the standard streams", "no descriptor is free at one moment"),
    ("there are too many attempts", "four thousand million of them"),
    // A gigabyte of input.
    ("a group of lines (`--group-by`) is", "a gigabyte without an end of it"),
    ("the records of a job (`-N`) are", "a gigabyte without an end of it"),
    ("a record (`--recstart`, `--recend`) is", "a gigabyte without an end of it"),
    ("a record of `{path}` is longer", "a gigabyte without an end of it"),
    ("the template `{}` is larger", "a file of 64 MiB"),
    ("asks how many jobs there are", "the input is read to its end first"),
    ("all names are taken", "thousands of files that bear our names"),
    ("the results in `{}`", "the file has to be full in the middle"),
    ("it is too large", "a manifest of 16 MiB"),
    // Nothing that is typed leads there: what stands before it has refused it, or cannot make it.
    ("`--shell-quote` requires a command to run", "its arguments are those of a run"),
    ("is not the directory of a run", "only directories with such names are read"),
    ("the arguments of run {} are not in its record", "asked only where they are"),
    ("an argument contains a NUL byte", "none can"),
    ("is not the name of an output", "the names are ours"),
    ("is not the name of a file with stored output", "the names are ours"),
    ("stands before the first list of arguments", "the first of these words is its beginning"),
    ("a word is missing", "a word is read after its first letter was found"),
    ("cannot be read in parts", "only regular files come there"),
    ("`--block` is 0, the minimum is 1", "`--block` itself is refused first"),
    ("a part of minder panicked", "a defect would be needed"),
];

/// The functions and macros that print their argument for a person. Their texts are messages, even
/// if they are one word or less.
const SAYERS: &[&str] = &[
    "bail",
    "ensure",
    "anyhow",
    "say",
    "say_if_heard",
    "note",
    "context",
    "refused",
    "syntax",
    "other",
    "fail",
    "refuse",
    "Unsupported",
    "warn",
    "unfollowed",
    "unclosed",
    "only_word",
];

/// A text in a source.
struct Literal {
    line: usize,
    text: String,
    /// The names before the brackets that it stands in, the innermost last.
    within: Vec<String>,
    /// The constant that it is a part of.
    constant: Option<String>,
}

/// Fails unless each text is in the lines, or in the list of those that cannot be.
pub(super) fn check(root: &Path, lines: &[&str]) {
    let mut missing = String::new();
    let mut used = BTreeSet::new();
    let mut names = BTreeSet::new();
    let visit_all = |look: &mut dyn FnMut(&Path)| {
        CRATES.iter().for_each(|name| visit(&root.join(name).join("src"), &mut |path: &Path| look(path)));
    };
    visit_all(&mut |path| {
        let name = path.strip_prefix(root).expect("strip root").to_string_lossy().replacen("/src/", "/", 1);
        if VIEWS.iter().any(|view| name.starts_with(view)) || name.contains("tests") {
            return;
        }
        let source = fs::read_to_string(path).expect("read file");
        let source = source.split("\nmod tests {").next().unwrap_or_default();
        for literal in literals(source) {
            if let Some(list) = list_of_names(&name, &literal) {
                names.insert(list);
                continue;
            }
            if !is_message(&literal) {
                continue;
            }
            let part = if name == HINTS { hint(&literal.text) } else { fixed(&literal.text) };
            if part.trim().len() < 4 || lines.iter().any(|line| line.contains(&part)) {
                continue;
            }
            match WITHOUT_A_CASE.iter().find(|(text, _)| literal.text.contains(text)) {
                Some((text, _)) => _ = used.insert(*text),
                None => missing += &format!("{name}:{}: {}\n", literal.line, literal.text),
            }
        }
    });
    assert!(
        missing.is_empty(),
        "no case shows these: add one to tests/it/cli/messages/*.txt, or a reason to \
            WITHOUT_A_CASE\n\n{missing}"
    );
    for (text, why) in WITHOUT_A_CASE {
        let Some((file, part)) = why.split_once("see ").and_then(|(_, see)| see.split_once(": ")) else {
            continue;
        };
        let test = Path::new(env!("CARGO_MANIFEST_DIR")).join("it").join(file);
        let test = fs::read_to_string(&test).unwrap_or_else(|error| panic!("{}: {error}", test.display()));
        assert!(test.contains(part), "{file} says nothing of `{part}`, for `{text}`");
    }
    let unused = WITHOUT_A_CASE.iter().find(|(text, _)| !used.contains(text));
    assert!(unused.is_none(), "it has a case, or is no more: {unused:?}");
    for (file, constants) in NAMES {
        let gone = constants.iter().find(|constant| !names.contains(&(*file, **constant)));
        assert!(gone.is_none(), "{file} has no such list of names: {gone:?}");
    }
}

/// Returns the list of [`NAMES`] that a text belongs to.
fn list_of_names(file: &str, literal: &Literal) -> Option<(&'static str, &'static str)> {
    let (file, constants) = NAMES.iter().find(|(known, _)| *known == file)?;
    let constant = constants.iter().find(|constant| literal.constant.as_deref() == Some(**constant))?;
    Some((file, constant))
}

fn visit(dir: &Path, look: &mut impl FnMut(&Path)) {
    let mut paths: Vec<_> =
        fs::read_dir(dir).expect("list directory").flatten().map(|it| it.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            visit(&path, look);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            look(&path);
        }
    }
}

/// Returns whether a text is a message for users: a sentence, or an argument of a function that
/// prints.
fn is_message(literal: &Literal) -> bool {
    let within = |name: &str| literal.within.iter().any(|call| call == name);
    // What `lists` looks a name up in is data, too.
    if within("#") || within("expect") || within("lists") || literal.text.len() > 600 {
        return false;
    }
    let words = literal.text.split(' ').filter(|word| word.chars().any(char::is_alphabetic)).count();
    let said = literal.within.iter().rev().take(4).any(|call| SAYERS.contains(&call.as_str()));
    words >= 3 || said && words >= 2
}

/// Returns the longest constant part of a format string.
fn fixed(format: &str) -> String {
    let mut parts = vec![String::new()];
    let mut chars = format.chars().peekable();
    let mut depth = 0;
    while let Some(char) = chars.next() {
        let doubled = matches!(char, '{' | '}') && depth == 0 && chars.peek() == Some(&char);
        match char {
            _ if doubled => {
                chars.next();
                parts.last_mut().expect("find last part").push(char);
            }
            '{' => {
                depth += 1;
                parts.push(String::new());
            }
            '}' if depth > 0 => depth -= 1,
            _ if depth > 0 => (),
            _ => parts.last_mut().expect("find last part").push(char),
        }
    }
    parts.into_iter().max_by_key(String::len).unwrap_or_default().trim().to_owned()
}

/// Returns the longest part of a hint that is the same for each program.
fn hint(text: &str) -> String {
    text.split('%').max_by_key(|part| part.len()).unwrap_or_default().trim().to_owned()
}

/// Returns all string literals of a source, except those in comments.
fn literals(source: &str) -> Vec<Literal> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let mut within = Vec::new();
    let mut at = 0;
    // The constant that is declared here, and how many brackets it stands in.
    let mut constant: Option<(String, usize)> = None;
    while at < bytes.len() {
        let rest = &source[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some((text, length)) = literal(rest) {
            let line = source[..at].matches('\n').count() + 1;
            let constant = constant.as_ref().map(|(name, _)| name.clone());
            found.push(Literal { line, text, within: within.clone(), constant });
            length
        } else if let Some(length) = character(rest) {
            length
        } else {
            match bytes[at] {
                b'(' | b'[' | b'{' => within.push(called(&source[..at])),
                b')' | b']' | b'}' => _ = within.pop(),
                b';' if constant.as_ref().is_some_and(|(_, depth)| *depth == within.len()) => constant = None,
                b'c' => constant = declared(source, at).map(|name| (name, within.len())).or(constant),
                _ => (),
            }
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at += length;
    }
    found
}

/// Returns the name of the constant whose declaration begins here.
fn declared(source: &str, at: usize) -> Option<String> {
    let in_word = |char: char| char.is_alphanumeric() || char == '_';
    if source[..at].ends_with(in_word) {
        return None;
    }
    let rest = source[at..].strip_prefix("const ")?;
    let name = rest.split(|char| !in_word(char)).next()?;
    (name != "fn").then(|| name.to_owned())
}

/// Returns the name before a bracket: `bail` of `bail!(`, `#` of `#[`.
fn called(before: &str) -> String {
    let before = before.trim_end().trim_end_matches('!');
    if before.ends_with('#') {
        return "#".to_owned();
    }
    let name = before.rsplit(|char: char| !char.is_alphanumeric() && char != '_').next();
    name.unwrap_or_default().to_owned()
}

/// Returns the string literal at the start of the text, and its length in the source.
fn literal(text: &str) -> Option<(String, usize)> {
    if let Some(rest) = text.strip_prefix("r#\"").or_else(|| text.strip_prefix("r\"")) {
        let begin = text.len() - rest.len();
        let end = if text.starts_with("r#") { "\"#" } else { "\"" };
        let length = rest.find(end)?;
        return Some((rest[..length].to_owned(), begin + length + end.len()));
    }
    let rest = text.strip_prefix('"')?;
    let mut out = String::new();
    let mut chars = rest.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((out, at + 2)),
            '\\' => match chars.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                // The line continues where the next one begins.
                '\n' => {
                    let skipped = rest[at..].trim_start_matches('\\').trim_start().len();
                    while chars.clone().next().is_some_and(|(next, _)| rest.len() - next > skipped) {
                        chars.next();
                    }
                }
                other => out.push(other),
            },
            char => out.push(char),
        }
    }
    None
}

/// Returns the length of the character literal at the start of the text. The character may be a
/// quote or a bracket.
fn character(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('\'')?;
    let inner = match rest.strip_prefix('\\') {
        Some(escaped) => 1 + escaped.find('\'').map(|at| at.max(1))?,
        None => rest.chars().next()?.len_utf8(),
    };
    rest[inner..].starts_with('\'').then_some(inner + 2)
}
