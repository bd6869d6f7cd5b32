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
        let mut help = minder(&format!("help {name}"));
        let text = Run::start(help.env("COLUMNS", "80")).wait().exit_code(0).stderr("").text();
        assert!(text.lines().count() > 3, "{name}: {text}");
        let is_narrow = |line: &str| line.chars().count() <= 80;
        assert!(text.lines().all(is_narrow), "{name}: {text}");
    }
    assert!(named.contains(&"run") && named.contains(&"quoting"), "{list}");
    assert_eq!(run_to_end("help run").text(), run_to_end("run --help").text());
    run_to_end("help nothing").exit_code(255).error_line(&["`nothing`", "run", "quoting"]);
    for flag in ["--retries", "retries"] {
        let text = run_to_end(&format!("help {flag}")).exit_code(0).stderr("").text();
        assert!(text.contains("Start a failing job") && text.contains("minder help control"), "{text}");
    }
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
        assert!(short.lines().count() <= 48, "{short}");
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
fn uninstall_names_the_paths_of_this_machine_and_removes_nothing() {
    let dir = temp_dir();
    let state = dir.path().join("state");
    let mut run = minder("run CHILD exit ::: 0");
    Run::start(run.env("MINDER_STATE_DIR", &state)).wait().exit_code(0);
    let mut command = minder("uninstall");
    command.env("MINDER_STATE_DIR", &state).env("MINDER_CONFIG_DIR", dir.path());
    let text = Run::start(&command).wait().exit_code(0).stderr("").text();
    let row = |begin: &str| text.lines().find(|line| line.starts_with(begin)).unwrap_or_default();
    assert!(row("record ").contains(path(&state)), "{text}");
    assert!(row("settings ").contains("minder.toml") && row("settings ").ends_with("absent"), "{text}");
    assert!(row("program ").contains("minder"), "{text}");
    assert!(state.join("runs").is_dir(), "removed");
}

#[test]
fn help_verbs_exit_quietly_when_the_reader_is_gone() {
    for line in ["help", "help input", "man run", "completions bash", "uninstall"] {
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
        "man parallel",
        "man sem",
        "man xargs",
    ] {
        let page = run_to_end(line).exit_code(0).stderr("").text();
        assert!(page.contains(".TH MINDER"), "{page}");
        let Some(read) = reads("man", &["--warnings", "-l"], &page) else { return };
        let text = read.exit_code(0).stderr("").text();
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(wide, [""; 0], "{line}");
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
fn pages_of_all_commands_are_written_to_files() {
    let dir = temp_dir();
    let mut command = minder("man --all");
    Run::start(command.arg(dir.path())).wait().exit_code(0).stderr("");
    let read = |name: &str| super::file(&dir.path().join(name));
    assert_eq!(read("minder-run.1"), run_to_end("man run").text());
    assert_eq!(read("minder-clock-watch.1"), run_to_end("man clock watch").text());
    // A package has the time of its sources, and pages for users none.
    for name in ["minder-run.1", "minder-xargs.1"] {
        let day = Run::start(command.env("SOURCE_DATE_EPOCH", "86400")).wait();
        day.exit_code(0).stderr("");
        assert!(read(name).contains(" 1 1970-01-02 \"minder "), "{}", read(name));
    }
    let pages: Vec<String> = std::fs::read_dir(dir.path())
        .expect("list directory")
        .map(|entry| entry.expect("read entry").file_name().into_string().expect("UTF-8"))
        .collect();
    assert!(pages.len() > 25 && !pages.iter().any(|name| name.contains("__")), "{pages:?}");
    // Pages of subcommands that exist: every reference leads somewhere.
    let mut seen = 0;
    let mut left = Vec::new();
    for page in &pages {
        let text = read(page).replace('\\', "");
        for (at, _) in text.match_indices("(1)") {
            let name = text[..at].rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).next();
            let file = format!("{}.1", name.unwrap_or_default());
            seen += 1;
            if file.starts_with("minder") && !pages.contains(&file) {
                left.push(format!("{page}: {file}"));
            }
        }
    }
    assert!(seen > 50 && left.is_empty(), "{seen}, {left:?}");
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
    assert_eq!(file(&at("reply")), "--keep-order\n--keep-output\n");
}

/// Returns what a shell prints that runs `script` in a directory with the completions, in the file
/// `completions`, and with a run, in the record, and two profiles. `None` if the shell is absent.
#[cfg(unix)]
fn completed(shell: &str, words: &[&str], script: &str) -> Option<String> {
    find(shell)?;
    let dir = temp_dir();
    let at = |name: &str| dir.path().join(name);
    let text = run_to_end(&format!("completions {shell}")).exit_code(0).text();
    std::fs::write(at("completions"), text).expect("write file");
    std::fs::write(at("script"), script).expect("write file");
    std::fs::write(at("minder.toml"), "[profile.ci]\njobs = 2\n[profile.night]\njobs = 1\n")
        .expect("write file");
    let state = at("state");
    let mut run = minder("run echo ::: a");
    Run::start(run.env("MINDER_STATE_DIR", &state).current_dir(dir.path())).wait().exit_code(0);
    // The tests' command has another name.
    std::fs::create_dir(at("bin")).expect("create directory");
    std::os::unix::fs::symlink(super::MINDER, at("bin/minder")).expect("create symbolic link");
    let mut paths = vec![at("bin")];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut command = Command::new(shell);
    command.args(words).arg(at("script")).current_dir(dir.path()).env("HOME", dir.path());
    command.env("MINDER_STATE_DIR", &state).env("PATH", std::env::join_paths(paths).expect("join paths"));
    let ended = Run::start(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())).wait();
    let id = std::fs::read_dir(state.join("runs")).expect("list runs").flatten().next().expect("find run");
    Some(ended.text().replace(id.file_name().to_string_lossy().as_ref(), "ID"))
}

#[cfg(unix)] // Shells of Unix.
#[test]
fn bash_completes_names() {
    let mut script = "source ./completions\ntry() {\nCOMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                      COMPREPLY=()\n_minder_names minder \"${COMP_WORDS[COMP_CWORD]}\" \
                      \"${COMP_WORDS[COMP_CWORD - 1]}\"\necho \"${COMPREPLY[*]}\"\n}\n"
        .to_owned();
    let cases = [
        ("log ''", "last ID"),
        ("log -n 3 la", "last"),
        ("log --js", "--json"),
        ("resume -j 8 la", "last"),
        ("retry ''", "last ID"),
        ("advise la", "last"),
        ("run bas", "bas"),
        ("run -k -j 8 bas", "bas"),
        ("run bash ''", ""),
        ("run ./scr", ""),
        ("run --keep", "--keep-order --keep-output"),
        ("run --profile ''", "ci night"),
        ("run --profile = n", "night"),
        ("run --color = al", "always"),
        ("run --failure-output immediate-", "immediate-final"),
        ("config --profile c", "ci"),
        ("help quo", "quoting"),
        ("man rel", "relay"),
        ("rel", "relay"),
    ];
    for (words, _) in cases {
        script.push_str(&format!("try minder {words}\n"));
    }
    let Some(text) = completed("bash", &["--norc"], &script) else { return };
    let replies: Vec<&str> = text.lines().collect();
    assert_eq!(replies.len(), cases.len(), "{text}");
    for ((words, expected), reply) in cases.into_iter().zip(replies) {
        // Programs depend on the machine.
        let is_as_expected = match expected {
            "bas" => reply.split(' ').any(|name| name == "bash"),
            expected => reply == expected,
        };
        assert!(is_as_expected, "{words}: {reply}");
    }
}

#[cfg(unix)] // Shells of Unix.
#[test]
fn fish_completes_names() {
    let cases = [
        ("log ", "last\tthe last run\nID\techo\n"),
        ("resume l", "last\tthe last run\n"),
        ("help quo", "quoting\twhy a value never becomes shell code\n"),
        ("run --profile n", "night\n"),
    ];
    for (line, expected) in cases {
        let script = format!("source ./completions\ncomplete -C 'minder {line}'\n");
        let Some(text) = completed("fish", &["--no-config"], &script) else { return };
        assert_eq!(text, expected, "{line}");
    }
}

#[cfg(unix)] // Shells of Unix.
#[test]
fn zsh_completes_names() {
    let script = "compdef() { }\n_describe() { print -l -- ${(P)3} }\nsource ./completions\n\
                  _minder_runs; _minder_profiles\n_minder_topics | grep '^quo'\n";
    let Some(text) = completed("zsh", &["-f"], script) else { return };
    assert_eq!(text, "last:the last run\nID:echo\nci\nnight\nquoting:why a value never becomes shell code\n");
}

#[test]
fn candidates_never_fail() {
    for line in ["__candidates runs", "__candidates profiles", "__candidates nothing"] {
        let dir = temp_dir();
        std::fs::write(dir.path().join("minder.toml"), "not toml").expect("write file");
        let mut command = minder(line);
        command.env("MINDER_STATE_DIR", dir.path().join("absent")).current_dir(dir.path());
        let ended = Run::start(&command).wait().exit_code(0).stderr("");
        assert_eq!(ended.text(), "", "{line}");
    }
}
