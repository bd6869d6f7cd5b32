//! Help, the version and `doctor`: what a person asks before anything runs.

use minder::Stdio;

#[cfg(unix)]
use super::minder_as;
use super::{Run, minder, pipe, run_to_end};

/// The short names of the flags of `run`, and their other long names. A unit test of minder-cli compares
/// the first long names with the table of flags.
const RUN: &[&str] = &[
    "-j",
    "-P",
    "-N",
    "-h",
    "-t",
    "-v",
    "-a",
    "-0",
    "-d",
    "-C",
    "-E",
    "-r",
    "-n",
    "-L",
    "-X",
    "-m",
    "-s",
    "-x",
    "-I",
    "-q",
    "-o",
    "-p",
    "-k",
    "-u",
    "--silent",
    "--cf",
    "--xapply",
    "--bt",
    "--rrs",
    "--removerecsep",
    "--round",
    "--lb",
    "--outputasfiles",
    "--max-procs",
    "--total",
    "--max-lines",
    "--er",
    "--bnr",
    "--dnr",
    "--bner",
    "--tmpl",
    "--res",
    "--output-as-files",
    "--halt-on-error",
    "--term-seq",
    "--workdir",
    "--open-tty",
    "--spreadstdin",
    "--pipepart",
    "--block-size",
    "--groupby",
    "--jl",
];

/// The flags of `relay`, long and short.
const RELAY: &[&str] = &["--pty", "--rows", "--columns", "--buffer", "--linger", "--help", "-h"];

/// The flags that `retry` and `resume` declare themselves, and the short and other long names of those
/// that they take from `run`. `resume` has `--failed`, too.
const RETRY: &[&str] = &[
    "-j",
    "-P",
    "--max-procs",
    "-k",
    "--lb",
    "-u",
    "--silent",
    "-t",
    "-v",
    "--cf",
    "--halt-on-error",
    "--term-seq",
    "-p",
    "--skip-lost",
    "--dry-run",
    "--help",
    "-h",
];

/// The flags of `log`, long and short.
const LOG: &[&str] = &[
    "--number",
    "--failed",
    "--stdout",
    "--stderr",
    "--attempt",
    "--slow",
    "--match",
    "--follow",
    "--json",
    "--csv",
    "--junit",
    "--sql",
    "--sqlite",
    "--prune",
    "--dry-run",
    "--help",
    "-n",
    "-f",
    "-h",
];

/// The flags of `bench wait`.
const WAIT: &[&str] = &["--objects", "--mechanism", "--rounds", "--csv", "--json", "--svg", "--help", "-h"];

/// The flags of `bench exit`.
const EXIT: &[&str] =
    &["--live", "--child", "--mechanism", "--rounds", "--csv", "--json", "--svg", "--help", "-h"];

/// The flags of `bench spawn`.
const SPAWN: &[&str] =
    &["--parent-mib", "--child", "--mechanism", "--rounds", "--csv", "--json", "--svg", "--help", "-h"];

/// The flags of `bench sweep`.
const SWEEP: &[&str] =
    &["--cells", "--block", "--mechanism", "--rounds", "--csv", "--json", "--svg", "--help", "-h"];

/// The flags of `config`.
const CONFIG: &[&str] = &["--profile", "--json", "--help", "-h"];

/// The flags of `clock`.
const CLOCK: &[&str] = &["--csv", "--json", "--svg", "--help", "-h"];

/// The flags of `clock measure`.
const CLOCK_MEASURE: &[&str] =
    &["--time", "--way", "--count", "--load", "--each", "--csv", "--json", "--svg", "--help", "-h"];

/// The flags of `clock sweep`.
const CLOCK_SWEEP: &[&str] = &["--hold", "--setting", "--csv", "--json", "--svg", "--help", "-h"];

/// The flags of `clock watch`.
const CLOCK_WATCH: &[&str] =
    &["--time", "--way", "--interval", "--lines", "--csv", "--json", "--svg", "--help", "-h"];

/// The flags of `bench turnaround`.
const TURNAROUND: &[&str] = &[
    "--quick",
    "--full",
    "--minutes",
    "--results",
    "--fresh",
    "--workload",
    "--runner",
    "--bias",
    "--count",
    "--degree",
    "--equal",
    "--repetitions",
    "--csv",
    "--json",
    "--svg",
    "--xlsx",
    "--help",
    "-h",
];

#[test]
fn help_names_every_flag() {
    for (line, flags) in [
        ("run --help", RUN),
        ("help run", RUN),
        ("relay --help", RELAY),
        ("relay -h", RELAY),
        ("resume --help", RETRY),
        ("resume -h", &["--failed", "--dry-run"]),
        ("retry --help", RETRY),
        ("retry -h", &["-j", "-k", "--dry-run"]),
        ("help retry", RETRY),
        ("log --help", LOG),
        ("log -h", LOG),
        ("help log", LOG),
        ("doctor --help", &["--json", "--help"]),
        ("bench wait --help", WAIT),
        ("bench wait -h", WAIT),
        ("help bench wait", WAIT),
        ("bench exit --help", EXIT),
        ("bench exit -h", EXIT),
        ("bench spawn --help", SPAWN),
        ("bench sweep --help", SWEEP),
        ("bench sweep -h", SWEEP),
        ("bench turnaround --help", TURNAROUND),
        ("bench spawn -h", SPAWN),
        ("bench turnaround -h", TURNAROUND),
        ("config --help", CONFIG),
        ("config -h", CONFIG),
        ("help config", CONFIG),
        ("clock --help", CLOCK),
        ("clock -h", CLOCK),
        ("help clock", CLOCK),
        ("clock measure --help", CLOCK_MEASURE),
        ("clock measure -h", CLOCK_MEASURE),
        ("help clock measure", CLOCK_MEASURE),
        ("clock sweep --help", CLOCK_SWEEP),
        ("clock sweep -h", CLOCK_SWEEP),
        ("clock watch --help", CLOCK_WATCH),
        ("clock watch -h", CLOCK_WATCH),
    ] {
        let ended = run_to_end(line).exit_code(0).stderr("");
        for flag in flags {
            let words = ended.text().split([' ', ',', ']', '[', '\n']).any(|word| word == *flag);
            assert!(words, "`{line}` does not name {flag}:\n{}", ended.text());
        }
    }
}

#[test]
fn every_flag_in_help_is_listed_here() {
    for (line, flags) in [
        ("relay -h", RELAY),
        ("log -h", LOG),
        ("bench wait -h", WAIT),
        ("bench exit -h", EXIT),
        ("bench spawn -h", SPAWN),
        ("bench sweep -h", SWEEP),
        ("bench turnaround -h", TURNAROUND),
        ("config -h", CONFIG),
        ("clock -h", CLOCK),
        ("clock measure -h", CLOCK_MEASURE),
        ("clock sweep -h", CLOCK_SWEEP),
        ("clock watch -h", CLOCK_WATCH),
    ] {
        let help = run_to_end(line).exit_code(0).text();
        let named =
            help.lines().filter(|line| line.trim_start().starts_with('-')).flat_map(str::split_whitespace);
        for flag in named
            .map(|word| word.split(['[', ',', ']', ':', '.']).next().unwrap_or(word))
            .filter(|word| word.starts_with("--"))
        {
            assert!(flags.contains(&flag), "{flag} is new: add it to the list, and a test of what it does");
        }
    }
}

#[test]
fn help_explains_every_exit_status() {
    let help = run_to_end("run --help").exit_code(0).text();
    for status in ["0 ", "1 to 100", "101", "130, 143", "141", "255"] {
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(status)),
            "{status} is not in:\n{help}"
        );
    }
    let short = run_to_end("run -h").exit_code(0).text();
    assert!(short.lines().any(|line| line.starts_with("Exit status: 0")), "{short}");
}

#[test]
fn log_help_explains_columns_and_exit_statuses() {
    let help = run_to_end("log --help").exit_code(0).stderr("").text();
    assert!(help.contains("Usage: minder log [FLAGS] [RUN [JOB]]"), "{help}");
    for status in ["0 ", "141", "255"] {
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(status)),
            "{status} is not in:\n{help}"
        );
    }
    // Each table's columns, as they are.
    let names = |line: &str| {
        let mut lines = help.lines().skip_while(|it| !it.trim_start().starts_with(line));
        let first = lines.next().expect(line).trim_start().strip_prefix(line).expect(line);
        // Lines that are still running stand below the names.
        let more = lines.take_while(|it| it.starts_with("            "));
        let all: Vec<&str> = std::iter::once(first).chain(more).collect();
        all.join(" ").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for table in ["runs", "attempts", "jobs"] {
        let dir = super::temp_dir();
        let mut query = minder("log --csv --sql");
        query.arg(format!("select * from {table}")).env("MINDER_STATE_DIR", dir.path());
        let head = Run::start(&query).wait().exit_code(0).stderr("").text();
        let all: Vec<&str> = head.trim_end().split(',').filter(|name| !name.ends_with("_form")).collect();
        assert_eq!(names(&format!("{table} ")), all, "{table}");
    }
}

#[test]
fn help_fits_a_terminal() {
    for line in [
        "--help",
        "run --help",
        "run -h",
        "relay --help",
        "relay -h",
        "doctor --help",
        "resume --help",
        "resume -h",
        "retry --help",
        "retry -h",
        "log --help",
        "log -h",
        "bench --help",
        "bench wait --help",
        "bench wait -h",
        "bench exit --help",
        "bench exit -h",
        "bench spawn --help",
        "bench spawn -h",
        "bench sweep --help",
        "bench sweep -h",
        "bench turnaround --help",
        "bench turnaround -h",
        "config --help",
        "config -h",
        "clock --help",
        "clock -h",
        "clock measure --help",
        "clock measure -h",
        "clock sweep --help",
        "clock sweep -h",
        "clock watch --help",
        "clock watch -h",
        "parallel --help",
        "sem --help",
        "xargs --help",
    ] {
        let help = Run::start(minder(line).env("COLUMNS", "80")).wait().exit_code(0).text();
        let paragraphs: Vec<&str> = help.split("\n\n").collect();
        for paragraph in paragraphs {
            assert!(paragraph.lines().all(|line| line.chars().count() <= 80), "{paragraph}");
            // A line that was broken by force leaves a stub among full ones.
            let lines: Vec<&str> = paragraph.lines().collect();
            let stub = lines.windows(3).any(|three| {
                let [long, short, next] = [three[0], three[1], three[2]].map(|line| line.chars().count());
                let prose = three.iter().all(|line| !line.starts_with(' '));
                prose && long > 65 && short < 40 && next > 60
            });
            assert!(!stub, "broken badly:\n{paragraph}");
        }
    }
}

#[test]
fn help_works_with_a_broken_environment() {
    let mut command = minder("run --help");
    command
        .env("MINDER_BACKEND", "magic")
        .env(minder_os::system_paths::TEMP_DIR_VARIABLE, "/no/such")
        .stdin(Stdio::null());
    assert!(Run::start(&command).wait().exit_code(0).text().contains("Usage: minder run"));
    // Windows has no device that is always full.
    #[cfg(unix)]
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("open /dev/full");
    #[cfg(unix)]
    Run::start(command.stdout(full))
        .wait()
        .exit_code(255)
        .error_line(&["cannot write to standard output: no space left on device"]);
    let (reader, writer) = pipe();
    drop(reader);
    Run::start(command.stdout(writer)).wait().exit_code(0).stderr("");
}

#[test]
fn version_is_printed() {
    for line in ["--version", "-V", "version", "run --version", "log -V", "bench wait --version"] {
        let ended = run_to_end(line).exit_code(0).stderr("");
        assert_eq!(ended.text(), format!("minder {}\n", version()));
    }
}

/// Returns the version of the packages of this workspace.
fn version() -> &'static str {
    let (_, rest) =
        include_str!("../../../Cargo.toml").split_once("[workspace.package]").expect("find section");
    rest.split('"').nth(1).expect("find version")
}

#[test]
fn doctor_reports_as_table_and_json() {
    let table = run_to_end("doctor").exit_code(0).stderr("").text();
    for word in ["waiting", "children", "limits", "(chosen)"] {
        assert!(table.contains(word), "{table}");
    }
    for backend in minder::Backend::available() {
        assert!(table.contains(backend.name()), "{table}");
    }
    let json = run_to_end("doctor --json").exit_code(0).stderr("").text();
    assert!(json.starts_with('[') && json.trim_end().ends_with(']'), "{json}");
    for name in ["area", "name", "state", "reason", "chosen", "value", "note"] {
        assert!(json.contains(&format!("\"{name}\":")), "{json}");
    }
    // A reader that closes early ends it quietly.
    let (reader, writer) = pipe();
    drop(reader);
    Run::start(minder("doctor --json").stdout(writer)).wait().exit_code(141).stderr("");
}

#[test]
fn version_as_json_says_how_the_program_was_built() {
    for line in ["--version --json", "--json --version", "-V --json", "--json -V"] {
        let text = run_to_end(line).exit_code(0).stderr("").text();
        assert!(text.starts_with('{') && text.ends_with("}\n"), "{text}");
        for name in ["commit", "features", "libc", "target"] {
            assert!(text.contains(&format!("\"{name}\":")), "{text}");
        }
        assert!(text.contains(&format!("\"version\":\"{}\"", version())), "{text}");
    }
}

#[cfg(unix)] // Scripts in place of programs.
#[test]
fn doctor_names_other_programs_in_path() {
    use std::os::unix::ffi::OsStrExt;

    let dir = super::temp_dir();
    let executable: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    for name in ["old", "odd\u{1b}", "plain"] {
        std::fs::create_dir(dir.path().join(name)).expect("create directory");
        let program = dir.path().join(name).join("minder");
        // None of them is run.
        std::fs::write(&program, "#!/bin/sh\ntouch \"$0.run\"\n").expect("write script");
        if name != "plain" {
            std::fs::set_permissions(&program, executable.clone()).expect("make script executable");
        }
    }
    std::fs::create_dir_all(dir.path().join("directory/minder")).expect("create directory");
    std::os::unix::fs::symlink(super::MINDER, dir.path().join("minder")).expect("create link");
    let paths = ["", "old", "odd\u{1b}", "plain", "directory", "old"].map(|name| dir.path().join(name));
    let mut search = std::env::join_paths(paths.iter()).expect("join paths");
    search.push(":/usr/bin:/bin:relative");
    let run = |flag: &str, bytes: &[u8]| {
        let mut search = search.clone();
        search.push(std::ffi::OsStr::from_bytes(bytes));
        let mut command = minder(&format!("doctor {flag}"));
        Run::start(command.env("PATH", search)).wait().exit_code(0).stderr("").text()
    };
    let text = run("", b"");
    let old = super::path(&dir.path().join("old/minder")).to_owned();
    assert_eq!(text.matches(&format!("another one in PATH: {old}\n")).count(), 1, "{text}");
    assert!(text.contains("odd") && !text.contains('\u{1b}') && !text.contains("plain"), "{text}");
    assert!(!text.contains("directory/minder") && text.contains("(cargo build)"), "{text}");
    assert!(!dir.path().join("old/minder.run").exists(), "it was run");
    // Text of a path that is not UTF-8.
    let mut odd = dir.path().as_os_str().to_owned();
    odd.push(std::ffi::OsStr::from_bytes(b"/x\xff"));
    std::fs::create_dir(&odd).expect("create directory");
    std::fs::copy(dir.path().join("old/minder"), std::path::Path::new(&odd).join("minder"))
        .expect("copy program");
    let bytes = [b":", odd.as_bytes()].concat();
    assert!(run("--json", &bytes).contains("/x\u{fffd}/minder\""));
}

#[cfg(unix)] // A limit of descriptors.
#[test]
fn doctor_works_with_few_descriptors() {
    let poor = Run::start(&minder_as("nofile=12", "doctor")).wait().exit_code(0);
    assert!(poor.text().contains("12 descriptors"), "{}", poor.text());
}
