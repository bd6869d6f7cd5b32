//! The flags of `minder run` as settings: their names, their values as words, and their checks.

use std::ffi::OsString;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::classify;
use super::setting::{Setting, Source, Value};
use crate::config;
use crate::flags::{Flags, RunFlags, clap_error_line};
use crate::likeness::nearest;

/// The flags of `minder run`, built once.
#[derive(Debug)]
pub(crate) struct RunInterface {
    command: Command,
}

impl RunInterface {
    pub(crate) fn new() -> Self {
        let command =
            RunFlags::augment_args(Command::new("run")).no_binary_name(true).args_override_self(true);
        let mut command = command;
        command.build();
        Self { command }
    }

    fn flag(&self, name: &str) -> Option<&Arg> {
        self.command.get_arguments().find(|arg| arg.get_long() == Some(name))
    }

    /// Returns the flag that was meant by an unknown name.
    pub(super) fn meant(&self, name: &str) -> Option<&str> {
        let has_alias = |arg: &&Arg| {
            let shorts = arg.get_short().into_iter().chain(arg.get_all_short_aliases().into_iter().flatten());
            arg.get_all_aliases().into_iter().flatten().any(|alias| alias == name)
                || shorts.into_iter().any(|short| name == short.to_string())
        };
        let alias = self.command.get_arguments().find(has_alias).and_then(Arg::get_long);
        alias.or_else(|| nearest(name, self.settable()))
    }

    /// Returns the names of the flags that can be set.
    pub(super) fn settable(&self) -> impl Iterator<Item = &str> {
        let longs = self.command.get_arguments().filter_map(Arg::get_long);
        longs.filter(|name| classify::typed_only(name).is_none())
    }

    /// Returns whether a value follows the flag. `None`: there is no such flag.
    pub(super) fn takes_value(&self, name: &str) -> Option<bool> {
        self.flag(name).map(|arg| arg.get_action().takes_values())
    }

    /// Returns the setting that gives this flag this value.
    ///
    /// # Errors
    /// There is no such flag, or its value has another form.
    pub(super) fn setting(&self, name: &str, value: &Value, source: Source) -> Result<Setting> {
        if let Some(why) = classify::typed_only(name) {
            return Err(source.error(&format!("`{name}` can only be typed: {why}")));
        }
        let Some(arg) = self.flag(name) else {
            let is_short = |arg: &Arg| {
                arg.get_long().is_none() && arg.get_short().is_some_and(|short| name == short.to_string())
            };
            if self.command.get_arguments().any(is_short) {
                return Err(source.error(&format!("`-{name}` has no long name, and can only be typed")));
            }
            let hint = match self.meant(name) {
                Some(meant) => format!("; did you mean `{meant}`?"),
                None => String::new(),
            };
            return Err(source.error(&format!("unknown setting `{name}`{hint}")));
        };
        let words = words(arg, name, value).map_err(|why| source.error(&why))?;
        Ok(Setting { name: name.to_owned(), value: value.to_string(), words, source })
    }

    /// Returns the long name and the id of each flag.
    pub(super) fn ids(&self) -> Vec<(String, String)> {
        let longs = self.command.get_arguments();
        longs.filter_map(|arg| Some((arg.get_long()?.to_owned(), arg.get_id().to_string()))).collect()
    }

    /// Parses words of a command line.
    pub(super) fn parse(&mut self, words: &[&[OsString]]) -> Result<(ArgMatches, RunFlags), clap::Error> {
        let matches = self.command.try_get_matches_from_mut(words.concat())?;
        let flags = RunFlags::from_arg_matches(&matches)?;
        Ok((matches, flags))
    }

    /// Checks the value of one setting.
    ///
    /// # Errors
    /// The flag refuses its value.
    pub(super) fn check(&mut self, setting: &Setting) -> Result<()> {
        match self.parse(&[&setting.words]) {
            Ok((_, flags)) => config::check_values(&flags)
                .map_err(|error| setting.source.error(&crate::ui::format_error(&error))),
            Err(error) => Err(setting.source.error(&error_text(&error, &setting.words))),
        }
    }

    /// Checks that the settings of one table do not exclude each other.
    ///
    /// # Errors
    /// Two of them do.
    pub(super) fn check_table(&mut self, settings: &[Setting]) -> Result<()> {
        let mut words: Vec<OsString> = Vec::new();
        for setting in settings {
            words.extend_from_slice(&setting.words);
            if let Some(why) = self.exclusion(&[&words]) {
                return Err(setting.source.error(&why));
            }
        }
        Ok(())
    }

    /// Returns why these words exclude each other, if they do.
    pub(super) fn exclusion(&mut self, words: &[&[OsString]]) -> Option<String> {
        match self.parse(words) {
            Ok((_, flags)) => config::exclusion(&flags),
            Err(error) if error.kind() == ErrorKind::ArgumentConflict => {
                Some(error_text(&error, &words.concat()))
            }
            Err(_) => None,
        }
    }
}

/// Returns the words that give a flag this value.
fn words(arg: &Arg, name: &str, value: &Value) -> Result<Vec<OsString>, String> {
    let word = |text: &OsString| {
        let mut word = OsString::from(format!("--{name}="));
        word.push(text);
        word
    };
    let takes_value = arg.get_action().takes_values();
    let is_optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
    let is_list = matches!(arg.get_action(), ArgAction::Append);
    let texts = match value {
        Value::Bool(false) => return Ok(Vec::new()),
        Value::Bool(true) if !takes_value || is_optional => return Ok(vec![format!("--{name}").into()]),
        Value::Bool(true) => return Err(format!("`{name}` requires a value, such as a number or a text")),
        _ if !takes_value => return Err(format!("`{name}` is true or false")),
        Value::List(_) if !is_list => return Err(format!("`{name}` takes one value, not an array")),
        Value::Text(text) => std::slice::from_ref(text),
        Value::List(texts) => texts.as_slice(),
    };
    if texts.iter().any(|text| text.as_encoded_bytes().contains(&0)) {
        return Err(format!("the value of `{name}` contains a NUL character"));
    }
    Ok(texts.iter().map(word).collect())
}

fn error_text(error: &clap::Error, words: &[OsString]) -> String {
    let args: Vec<OsString> = std::iter::once("run".into()).chain(words.iter().cloned()).collect();
    clap_error_line(error, &Flags::interface(), &args)
}
