//! `minder uninstall`: what to remove, with the paths of this machine.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use minder_record::store;
use minder_ui::table::{Column, Table, escape};

use crate::installation;
use crate::settings;

/// The names under which minder has the command line of another tool.
const LINKS: [&str; 3] = ["parallel", "sem", "xargs"];

/// Lists the files and directories, and removes nothing.
pub(crate) fn run(out: &mut dyn Write) -> Result<()> {
    writeln!(out, "minder removes nothing. To uninstall it, end its runs, and remove these:\n")?;
    let mut table = Table::new(out, ["what", "path", "note"].map(Column::left).to_vec());
    for (what, path, note) in paths() {
        table.row(&[what, &escape(path.display().to_string().as_bytes()), note])?;
    }
    table.finish()?;
    writeln!(
        out,
        "\nThe completions of zsh are a file `_minder` in a directory of $fpath, those of PowerShell"
    )?;
    writeln!(out, "lines in $PROFILE. Settings of projects are in their files minder.toml.")?;
    Ok(())
}

/// Returns what belongs to minder: a name, a path, and a note.
fn paths() -> Vec<(&'static str, PathBuf, &'static str)> {
    let mut paths = Vec::new();
    if let Ok(program) = std::env::current_exe() {
        let note = installation::package(&program).map_or("", |package| package.removal);
        paths.push(("program", program.clone(), note));
        let dir = program.parent().unwrap_or(Path::new(""));
        let links = LINKS.iter().map(|name| dir.join(name)).filter(|link| leads_to(link, &program));
        paths.extend(links.map(|link| ("link", link, "")));
    }
    let note = |path: &Path, note: &'static str| if path.exists() { note } else { "absent" };
    if let Ok(root) = store::state_root() {
        let note = note(&root, "the record of all runs");
        paths.push(("record", root, note));
    }
    if let Some(file) = settings::user_path() {
        let note = note(&file, "");
        paths.push(("settings", file, note));
    }
    for file in completions(|name| std::env::var_os(name)) {
        let note = note(&file, "");
        paths.push(("completions", file, note));
    }
    paths
}

/// Returns whether a path is a link to the program.
fn leads_to(link: &Path, program: &Path) -> bool {
    let target = |path: &Path| path.canonicalize().ok();
    link.is_symlink() && target(link).is_some() && target(link) == target(program)
}

/// Returns the files of completions that `minder completions --help` names.
fn completions(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = |name: &str, below: &str| absolute(name).or_else(|| Some(absolute("HOME")?.join(below)));
    let data =
        base("XDG_DATA_HOME", ".local/share").map(|dir| dir.join("bash-completion/completions/minder"));
    let config = |below: &str| base("XDG_CONFIG_HOME", ".config").map(|dir| dir.join(below));
    let all = [data, config("fish/completions/minder.fish"), config("elvish/lib/minder.elv")];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;

    #[test]
    fn completions_are_below_the_home_directory_or_that_of_a_variable() {
        let of = |variables: &[(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
            let paths = completions(|name| find(name).map(|(_, value)| OsString::from(value)));
            paths.iter().map(|path| path.display().to_string().replace('\\', "/")).collect::<Vec<_>>()
        };
        assert!(of(&[]).is_empty());
        if cfg!(unix) {
            let paths = of(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "relative")]);
            assert_eq!(paths[0], "/h/.local/share/bash-completion/completions/minder");
            assert_eq!(paths[1], "/c/fish/completions/minder.fish");
            // They are those to which `minder completions --help` lets a user write.
            let help = Flags::interface().find_subcommand("completions").expect("find subcommand").clone();
            let help = help.get_after_long_help().or(help.get_after_help()).expect("find help").to_string();
            let named = help.split_whitespace().filter_map(|word| word.strip_prefix('~'));
            let named: Vec<_> = named.map(|path| format!("/h{}", path.trim_end_matches(','))).collect();
            assert_eq!(of(&[("HOME", "/h")]), named);
        }
    }
}
