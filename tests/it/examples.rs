//! The examples of the library print what they promise. They are built with the tests of the whole
//! workspace.

#[cfg(target_os = "linux")] // `/proc` lists what they leave running.
mod programs;

use std::path::PathBuf;
use std::process::Command;

/// The examples that take arguments: see `programs`.
const PROGRAMS: [&str; 5] = ["build_tool", "supervisor", "language_server", "multiplexer", "ci_agent"];

/// Every other file in the directory of examples, and how the line begins that it ends with.
const EXAMPLES: [(&str, &str); 10] = [
    ("spawn", "spawn: "),
    ("child", "child: "),
    ("background", "background: "),
    ("poller", "poller: "),
    ("clock", "clock: 20 ticks on time, none early"),
    ("job_pool", "job pool: "),
    ("hundred", "100 children, "),
    ("in_tokio", "tokio: 1000 children wrote 5000 bytes"),
    ("in_smol", "smol: 1000 children wrote 5000 bytes"),
    ("in_mio", "mio: 1000 children wrote 5000 bytes"),
];

/// Returns the path of an example, which cargo builds in a directory next to that of this binary.
pub(crate) fn built(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().expect("find test binary");
    let profile =
        own.parent().and_then(std::path::Path::parent).expect("find directory of the cargo profile");
    let path = profile.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    path.exists().then_some(path)
}

#[test]
fn each_example_succeeds_and_prints_its_summary() {
    for (name, begins) in EXAMPLES {
        let Some(path) = built(name) else {
            crate::support::skip(format_args!(
                "the example `{name}` is not built; `cargo test --workspace` builds it"
            ));
            continue;
        };
        let output = crate::support::output(&mut Command::new(&path));
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}\n{said}{complained}", output.status);
        let last = said.lines().last().unwrap_or_default();
        assert!(last.starts_with(begins), "{name} ends with {last:?}");
        assert_eq!(complained, "", "{name} complains");
    }
}

#[test]
fn every_example_is_short_and_tested() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/minder/examples");
    let Ok(entries) = std::fs::read_dir(dir) else {
        crate::support::skip(format_args!("no sources next to the tests"));
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().trim_end_matches(".rs").to_owned();
        let lines = std::fs::read_to_string(entry.path()).expect("read file").lines().count();
        let known = EXAMPLES.iter().any(|(known, _)| *known == name) || PROGRAMS.contains(&&*name);
        assert!(known, "the example `{name}` is not run by this test");
        assert!(lines <= 60 || name == "hundred", "{name}.rs has {lines} lines");
    }
}
