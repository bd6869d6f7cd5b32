//! Tests of the scripts: the same for the same seed, and some for every option.

use super::*;
use xtask::tree;

/// The fewest scripts for an option.
const LEAST: usize = 3;

/// Options for the functions `env_parallel` and `parset`, which the scripts do not load.
const OF_SHELL_FUNCTIONS: [&str; 2] = ["--env-setup", "--end-session"];

fn read(path: &str) -> String {
    std::fs::read_to_string(tree::root().join(path)).unwrap()
}

/// Returns the texts in backquotes of the first column of the table of options.
fn documented() -> Vec<String> {
    let page = read("docs/from-parallel.md");
    let table = page.split("## Every option").nth(1).unwrap();
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    cells.flat_map(|cell| cell.trim_end_matches('`').split("`, `").map(String::from)).collect()
}

/// Returns the options that minder takes under the name `parallel`.
fn known() -> Vec<String> {
    let source = read("crates/minder-cli/src/compat/parallel/options.rs");
    let table =
        source.split("pub(super) const OPTIONS").nth(1).unwrap().split("INTERNAL_OPTIONS").next().unwrap();
    let lists = table.split("&[\"").skip(1).filter_map(|rest| rest.split("\"]").next());
    let names = lists.flat_map(|list| list.split("\", \""));
    names.map(|name| format!("{}{name}", if name.len() == 1 { "-" } else { "--" })).collect()
}

fn count(scripts: &[Script], tool: Tool, name: &str) -> usize {
    scripts.iter().filter(|script| script.tool == tool && script.uses(&[name])).count()
}

#[test]
fn the_same_seed_gives_the_same_scripts() {
    let all = scripts(SEED);
    assert_eq!(all, scripts(SEED));
    assert_ne!(all, scripts(SEED + 1));
    assert_eq!(all.len(), 1500);
    assert!(all.iter().enumerate().all(|(at, script)| script.number == at + 1));
    // A change of this sum is a change of the scripts that the published counts are of.
    let text: String = all.iter().map(|script| format!("{:?}{}", script.environment, script.text)).collect();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(format!("{hash:016x}"), "9b0ef95e265d77e8");
}

#[test]
fn every_option_of_gnu_parallel_has_three_scripts() {
    let all = scripts(SEED);
    let mut names = documented();
    names.extend(known());
    names.retain(|name| !OF_SHELL_FUNCTIONS.contains(&name.as_str()));
    assert!(names.len() > 400, "{}", names.len());
    let lacking: Vec<&String> =
        names.iter().filter(|name| count(&all, Tool::Parallel, name) < LEAST).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}

#[test]
fn every_option_of_xargs_has_three_scripts() {
    let all = scripts(SEED);
    for name in [
        "-0",
        "--null",
        "-a",
        "--arg-file",
        "-d",
        "--delimiter",
        "-E",
        "-e",
        "--eof",
        "-I",
        "-i",
        "--replace",
        "-L",
        "-l",
        "--max-lines",
        "-n",
        "--max-args",
        "-P",
        "--max-procs",
        "-o",
        "--open-tty",
        "-p",
        "--interactive",
        "--process-slot-var",
        "-r",
        "--no-run-if-empty",
        "-s",
        "--max-chars",
        "--show-limits",
        "-t",
        "--verbose",
        "-x",
        "--exit",
        "--help",
        "--version",
    ] {
        assert!(count(&all, Tool::Xargs, name) >= LEAST, "{name}");
    }
}

#[test]
fn scripts_contain_the_options_that_they_name() {
    for script in scripts(SEED) {
        for option in script.options.iter().filter(|option| option.starts_with('-')) {
            assert!(script.text.contains(option), "{option}: {}", script.text);
        }
        for sign in ["OPT", "FLAGS", "COMMAND", "VALUES", "QUOTED"] {
            assert!(!script.text.contains(sign), "{}", script.text);
        }
    }
}

#[test]
fn environments_and_constructs_of_the_shell_are_frequent() {
    let all = scripts(SEED);
    for environment in Environment::ALL {
        assert!(
            all.iter().filter(|script| script.environment == environment).count() >= 80,
            "{environment:?}"
        );
    }
    let constructs = [
        ("function", "export -f"),
        ("pipe", " | "),
        ("process substitution", "<("),
        ("here-string", "<<<"),
        ("redirection", " > "),
        ("command substitution", "$("),
    ];
    for (construct, sign) in constructs {
        let count = all.iter().filter(|script| script.text.contains(sign)).count();
        assert!(count >= 30, "{construct}: {count}");
    }
}
