//! Hints about what to type instead of a program that cannot run.

use std::path::MAIN_SEPARATOR;

use minder::ErrorKind;

/// Returns what follows the reason why `program` could not run, if the user may have meant something
/// else: a function of bash, or a script in the working directory. `has_directory` is whether jobs run
/// in another directory.
pub(super) fn start_hint(program: &str, kind: ErrorKind, has_directory: bool) -> String {
    let is_name = !program.contains(['/', MAIN_SEPARATOR]);
    if kind == ErrorKind::NotFound && is_name && is_exported_function(program) {
        return format!("; it is a function that bash exports: `--shell bash '{program} {{}}'` runs it");
    }
    let file = if has_directory { None } else { std::fs::metadata(program).ok() };
    let Some(file) = file.filter(std::fs::Metadata::is_file) else { return String::new() };
    if minder_os::files::is_executable(&file) {
        let here = kind == ErrorKind::NotFound && is_name;
        return if here { format!("; did you mean `./{program}`?") } else { String::new() };
    }
    let path = if is_name { format!("./{program}") } else { program.to_owned() };
    format!("; `{path}` is not executable (a script of sh runs as `sh {path}`)")
}

/// Returns whether bash has put a function of this name into the environment (`export -f`).
fn is_exported_function(name: &str) -> bool {
    std::env::var_os(format!("BASH_FUNC_{name}%%")).is_some()
}
