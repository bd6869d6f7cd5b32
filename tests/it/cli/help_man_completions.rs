//! Help by topics, manual pages, completions: made of the flags themselves, and read by the
//! programs that they are for.

use std::path::PathBuf;

use minder::{Command, ExitStatus, Stdio};

use super::{Run, file, minder, path, pipe, run_to_end, temp_dir};

/// Returns the path of a program of this name. If there is none, the skipped test is reported.
fn find(name: &str) -> Option<PathBuf> {
    if cfg!(windows) {
        // Those that read what is made are programs of Unix.
        return None;
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|dir| dir.join(name)).find(|path| path.is_file());
    if found.is_none() {
        crate::support::skip(format_args!("{name} is not in PATH; hint: apt-get install {name}"));
    }
    found
}

/// Runs a program on a file with this text.
fn reads(program: &str, words: &[&str], text: &str) -> Option<super::RunOutput> {
    let program = find(program)?;
    let dir = temp_dir();
    let text_file = dir.path().join("text");
    std::fs::write(&text_file, text).expect("write file");
    let mut command = Command::new(program);
    command
        .args(words)
        .arg(&text_file)
        .env("HOME", dir.path())
        .env("LC_ALL", "C.UTF-8")
        .env("MANWIDTH", "80");
    command.current_dir(dir.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(Run::start(&command).wait())
}

#[test]
fn help_lists_verbs_and_topics() {
    let list = run_to_end("help").exit_code(0).stderr("").text();
    let named: Vec<&str> =
        list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    for name in named.iter().filter(|name| **name != "parallel,") {
        let text = run_to_end(&format!("help {name}")).exit_code(0).stderr("").text();
        assert!(text.lines().count() > 3, "{name}: {text}");
        // What commands print is as wide as it is.
        let narrow = |line: &str| line.chars().count() <= 100 || line.starts_with("    minder: ");
        assert!(text.lines().all(narrow), "{name}: {text}");
    }
    assert!(named.contains(&"run") && named.contains(&"quoting"), "{list}");
    assert_eq!(run_to_end("help run").text(), run_to_end("run --help").text());
    run_to_end("help nothing").exit_code(255).error_line(&["`nothing`", "run", "quoting"]);
    run_to_end("help sem").exit_code(255).error_line(&["`minder sem --help`"]);
}

#[test]
fn help_of_run_begins_with_its_short_help() {
    for columns in [80, 100] {
        let text = |line: &str| {
            let ended = Run::start(minder(line).env("COLUMNS", columns.to_string())).wait();
            ended.exit_code(0).stderr("").text()
        };
        let short = text("run -h");
        assert!(short.lines().count() <= 60, "{short}");
        assert!(short.lines().all(|line| line.chars().count() <= columns), "{short}");
        for word in ["minder resume", "minder log --failed", "minder parallel", "minder xargs"] {
            assert!(short.contains(word), "{word} is not in:\n{short}");
        }
        for long in [text("run --help"), text("help run")] {
            assert!(long.starts_with(short.trim_end()), "{long}");
        }
    }
}

#[test]
fn help_verbs_exit_quietly_when_the_reader_is_gone() {
    for line in ["help", "help input", "man run", "completions bash"] {
        let (reader, writer) = pipe();
        drop(reader);
        Run::start(minder(line).stdout(writer)).wait().exit_code(141).stderr("");
    }
}

#[test]
fn manual_pages_format_without_warnings() {
    for line in [
        "man",
        "man run",
        "man resume",
        "man retry",
        "man relay",
        "man log",
        "man doctor",
        "man bench",
        "man bench wait",
        "man bench exit",
        "man bench spawn",
        "man bench sweep",
        "man bench turnaround",
        "man config",
        "man clock",
        "man clock measure",
        "man clock sweep",
        "man clock watch",
        "man help",
        "man completions",
        "man man",
    ] {
        let page = run_to_end(line).exit_code(0).stderr("").text();
        assert!(page.contains(".TH MINDER"), "{page}");
        let Some(read) = reads("man", &["--warnings", "-l"], &page) else { return };
        let text = read.exit_code(0).stderr("").text();
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"] {
            assert!(text.lines().any(|line| line == section), "{line} has no {section}:\n{text}");
        }
    }
    let page = run_to_end("man run").text().replace('\\', "");
    for (line, word) in [("man resume", "--failed"), ("man retry", "--retries"), ("man", "minder-resume(1)")]
    {
        assert!(run_to_end(line).text().replace('\\', "").contains(word), "{word} is not in `{line}`");
    }
    for flag in ["--keep-order", "--lb", "-P", "--timeout", "--pipe", "--resume"] {
        assert!(page.contains(flag), "{flag} is not in the page");
    }
    for topic in ["input", "quoting", "exit"] {
        assert!(
            run_to_end("man").text().contains(&format!("minder help {topic}")),
            "{topic} is not in the page"
        );
    }
    run_to_end("man nothing").exit_code(255).error_line(&["`nothing`", "run"]);
}

#[test]
fn shells_parse_their_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let text = run_to_end(&format!("completions {shell}")).exit_code(0).stderr("").text();
        if let Some(read) = reads(shell, &["-n"], &text) {
            let read = read.stderr("");
            assert_eq!(read.status, ExitStatus::Exited(0), "{shell}");
        }
    }
    for shell in ["elvish", "powershell"] {
        assert!(
            run_to_end(&format!("completions {shell}"))
                .exit_code(0)
                .stderr("")
                .text()
                .contains("--keep-order")
        );
    }
    run_to_end("completions tcsh").exit_code(255).error_line(&["tcsh", "minder completions --help"]);
}

#[test]
fn completions_offer_no_hidden_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = run_to_end(&format!("completions {shell}")).exit_code(0).text();
        assert!(text.contains("turnaround") && text.contains("watch"), "{shell}");
        assert!(!text.contains("probe") && !text.contains("Does nothing until it is killed"), "{shell}");
    }
}

#[test]
fn bash_completes_flags() {
    if find("bash").is_none() {
        return;
    }
    let dir = temp_dir();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("completions"), run_to_end("completions bash").exit_code(0).text())
        .expect("write file");
    let script = "source completions\nCOMP_WORDS=(minder run --keep) COMP_CWORD=2\n\
                  _minder minder --keep run\nprintf '%s\\n' \"${COMPREPLY[@]}\" > reply\n";
    std::fs::write(at("script"), script).expect("write file");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-i", path(&at("script"))]).current_dir(dir.path()).env("HOME", dir.path());
    Run::start(bash.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())).wait();
    assert_eq!(file(&at("reply")), "--keep-order\n");
}
