//! Settings of `minder run` from files and from the environment.
//!
//! A setting becomes words of the command line, in front of those that were typed. What was typed
//! counts most; then the variables `MINDER_RUN_…`, the project's `minder.toml`, and the user's. A
//! weaker setting is left out if a stronger source sets the same flag, or one that excludes it.

mod setting;
mod classify;
mod interface;
mod find;
mod file;
mod environment;
mod merge;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;

pub(crate) use self::environment::status_words;
use self::file::SettingsFile;
pub(crate) use self::find::FileKind;
use self::find::Found;
use self::interface::RunInterface;
pub(crate) use self::merge::Merged;
pub(crate) use self::setting::{Setting, Source};
use crate::config;
use crate::flags::{Flags, RunFlags, Verb};
use crate::ui::format_error;

/// A file that was looked for, and what was found.
#[derive(Debug)]
pub(crate) struct LookedAt {
    pub(crate) kind: FileKind,
    pub(crate) path: PathBuf,
    /// `None`: it is used.
    pub(crate) unused: Option<&'static str>,
}

/// All settings around a run.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) files: Vec<LookedAt>,
    /// The names of all profiles.
    pub(crate) profiles: Vec<String>,
    /// The selected profile, and the variable that selects it, if one does.
    pub(crate) profile: Option<(String, Option<&'static str>)>,
    pub(crate) merged: Merged,
}

/// A command line with its settings.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) flags: Box<RunFlags>,
    /// The complete command line.
    pub(crate) args: Vec<OsString>,
    /// The settings in it.
    pub(crate) in_force: Vec<Setting>,
}

/// Adds the settings to a command line of `minder run`.
///
/// # Errors
/// A file or a variable is invalid, or there is no such profile.
pub(crate) fn apply(flags: Box<RunFlags>, mut args: Vec<OsString>) -> Result<Applied> {
    let is_recorded = config::mode(&flags).is_some() && flags.record.joblog.is_none();
    if is_recorded && flags.profile.is_some() {
        bail!("a run is resumed with its recorded settings: leave out `--profile`");
    }
    if flags.no_config || is_recorded {
        return Ok(Applied { flags, args, in_force: Vec::new() });
    }
    let Gathered { files, merged, .. } = gather(flags.profile.as_deref(), args.get(2..).unwrap_or_default())?;
    if !flags.display.quiet {
        report_unused(&files);
    }
    let words = merged.words();
    if words.is_empty() {
        return Ok(Applied { flags, args, in_force: merged.in_force });
    }
    args.splice(2..2, words);
    let Verb::Run(mut flags) = Flags::try_parse_from(&args)?.verb else { unreachable!() };
    let is_set = |flag: &&str| merged.in_force.iter().any(|setting| setting.name == *flag);
    flags.control.set_by_settings = ["env", "wd"].into_iter().filter(is_set).collect();
    Ok(Applied { flags, args, in_force: merged.in_force })
}

/// Prints a message for each file that must not be used.
fn report_unused(files: &[LookedAt]) {
    for file in files {
        if let Some(why) = file.unused.filter(|why| *why != NOT_FOUND) {
            crate::ui::message(&format!("`{}` is ignored: {why}", file.path.display()));
        }
    }
}

/// Returns the path of the user's file, whether it exists or not.
pub(crate) fn user_path() -> Option<PathBuf> {
    find::user_path(|name| std::env::var_os(name), std::env::consts::FAMILY)
}

/// Why a file that does not exist is not used.
pub(crate) const NOT_FOUND: &str = "not found";

/// Collects the settings. `profile` and `words` were typed; the words follow `run`.
///
/// # Errors
/// A file or a variable is invalid, or there is no such profile.
pub(crate) fn gather(profile: Option<&str>, words: &[OsString]) -> Result<Gathered> {
    let variables = environment::variables();
    let user_path = user_path();
    let project_path = std::env::current_dir().ok().and_then(|cwd| find::project_path(&cwd));
    let is_user = |path: &PathBuf| user_path.as_ref().is_some_and(|user| find::is_same(path, user));
    let project_path = project_path.filter(|path| !is_user(path));
    let mut gathered = Gathered::default();
    let mut texts = Vec::new();
    for (kind, path) in [(FileKind::Project, project_path), (FileKind::User, user_path.clone())] {
        let Some(path) = path else { continue };
        let unused = match find::read(&path, kind)? {
            Found::Absent => Some(NOT_FOUND),
            Found::Ignored(why) => Some(why),
            Found::Text(text) => {
                texts.push((kind, path.clone(), text));
                None
            }
        };
        gathered.files.push(LookedAt { kind, path, unused });
    }
    if variables.is_empty() && texts.is_empty() && profile.is_none() {
        return Ok(gathered);
    }
    let mut interface = RunInterface::new();
    let mut layers = vec![environment::settings(&variables, &mut interface)?];
    let files = texts
        .iter()
        .map(|(kind, path, text)| file::parse(text, path, *kind, user_path.clone(), &mut interface));
    let files: Vec<SettingsFile> = files.collect::<Result<_>>()?;
    let profiles = files.iter().flat_map(|file| file.profiles.iter().map(|(name, _)| name.clone()));
    gathered.profiles = profiles.collect();
    gathered.profiles.sort_unstable();
    gathered.profiles.dedup();
    gathered.profile = selected(profile, &variables);
    if let Some((name, variable)) = &gathered.profile {
        check_profile(name, *variable, &gathered.profiles)?;
    }
    let name = gathered.profile.as_ref().map(|(name, _)| name.as_str());
    for SettingsFile { run, profiles } in files {
        layers.extend(profiles.into_iter().find(|(known, _)| Some(known.as_str()) == name).map(|it| it.1));
        layers.push(run);
    }
    gathered.merged = merge::merge(&mut interface, words, layers);
    Ok(gathered)
}

/// Returns the profile that was typed, or that the variable selects.
fn selected(typed: Option<&str>, variables: &[(String, OsString)]) -> Option<(String, Option<&'static str>)> {
    if let Some(typed) = typed {
        return Some((typed.to_owned(), None));
    }
    let value = variables.iter().find(|(name, _)| name == environment::PROFILE)?;
    Some((value.1.to_string_lossy().into_owned(), Some(environment::PROFILE)))
}

fn check_profile(name: &str, variable: Option<&str>, defined: &[String]) -> Result<()> {
    let defined: Vec<&str> = defined.iter().map(String::as_str).collect();
    if defined.contains(&name) {
        return Ok(());
    }
    let error = file::unknown_profile(name, &defined);
    Err(match variable {
        Some(variable) => Source::Variable(variable.to_owned()).error(&error.to_string()),
        None => error,
    })
}

/// Adds to an error about a flag where the flag is set, unless it was typed.
pub(crate) fn name_source(in_force: &[Setting], error: anyhow::Error) -> anyhow::Error {
    let text = format_error(&error);
    let is_named = |setting: &&Setting| {
        let flag = format!("--{}", setting.name);
        text.match_indices(&flag).any(|(at, _)| {
            !text[at + flag.len()..].starts_with(|next: char| next == '-' || next.is_alphanumeric())
        })
    };
    match in_force.iter().find(is_named) {
        Some(setting) => anyhow::anyhow!("{text} (`--{}` is set by {})", setting.name, setting.source),
        None => error,
    }
}
