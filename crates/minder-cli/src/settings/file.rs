//! Reads the settings of a file `minder.toml`.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::classify;
use super::find::FileKind;
use super::interface::RunInterface;
use super::setting::{Setting, Source, Value};
use crate::likeness::nearest;

/// The maximum number of profiles in a file: each setting of each is checked at each start.
const PROFILES_MAX: usize = 100;

/// The settings of one file.
#[derive(Debug)]
pub(super) struct SettingsFile {
    /// The settings of `[run]`, in the order of their lines.
    pub(super) run: Vec<Setting>,
    /// The settings of each `[profile.NAME]`.
    pub(super) profiles: Vec<(String, Vec<Setting>)>,
}

/// A file that is being read.
struct Reader<'a> {
    path: &'a Path,
    kind: FileKind,
    /// The user's file, which messages name.
    user_path: Option<PathBuf>,
    /// The position at which each line begins.
    line_starts: Vec<usize>,
    interface: &'a mut RunInterface,
}

/// Parses the text of a file.
///
/// # Errors
/// The text is not TOML, or has a setting that may not be set this way.
pub(super) fn parse(
    text: &[u8],
    path: &Path,
    kind: FileKind,
    user_path: Option<PathBuf>,
    interface: &mut RunInterface,
) -> Result<SettingsFile> {
    let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let line_starts = std::iter::once(0).chain(newlines).collect();
    let mut reader = Reader { path, kind, user_path, line_starts, interface };
    let text =
        std::str::from_utf8(text).map_err(|error| reader.error(error.valid_up_to(), "it is not UTF-8"))?;
    let document = DeTable::parse(text).map_err(|error| {
        let why = error.message().lines().next().unwrap_or_default().to_owned();
        reader.error(error.span().map_or(0, |span| span.start), &why)
    })?;
    let mut file = SettingsFile { run: Vec::new(), profiles: Vec::new() };
    for (key, value) in in_order(document.get_ref()) {
        match key.get_ref().as_ref() {
            "run" => file.run = reader.table(key, value)?,
            "profile" => {
                let profiles = in_order(reader.table_of(key, value)?);
                if profiles.len() > PROFILES_MAX {
                    let why = format!("there are more than {PROFILES_MAX} profiles");
                    return Err(reader.error(key.span().start, &why));
                }
                for (name, value) in profiles {
                    file.profiles.push((name.get_ref().to_string(), reader.table(name, value)?));
                }
            }
            other => {
                let hint = match nearest(other, ["run", "profile"]) {
                    Some(meant) => format!("; did you mean `{meant}`?"),
                    None if reader.interface.takes_value(other).is_some() => {
                        "; put it below [run]".to_owned()
                    }
                    None => String::new(),
                };
                return Err(reader.error(key.span().start, &format!("unknown table `{other}`{hint}")));
            }
        }
    }
    Ok(file)
}

/// Returns the entries of a table in the order of the text.
fn in_order<'a, 'b>(table: &'a DeTable<'b>) -> Vec<(&'a Spanned<DeString<'b>>, &'a Spanned<DeValue<'b>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

impl Reader<'_> {
    fn source(&self, offset: usize) -> Source {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        Source::File { path: self.path.to_owned(), line }
    }

    fn error(&self, offset: usize, why: &str) -> anyhow::Error {
        self.source(offset).error(why)
    }

    fn table_of<'a, 'b>(
        &self,
        key: &Spanned<DeString<'_>>,
        value: &'a Spanned<DeValue<'b>>,
    ) -> Result<&'a DeTable<'b>> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.error(key.span().start, &format!("`{}` must be a table", key.get_ref()))),
        }
    }

    /// Returns the settings of a table.
    fn table(&mut self, key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>) -> Result<Vec<Setting>> {
        let mut settings = Vec::new();
        for (key, value) in in_order(self.table_of(key, value)?) {
            let name = key.get_ref().as_ref();
            let source = self.source(key.span().start);
            let text = value_of(name, value.get_ref()).map_err(|why| source.error(&why))?;
            let setting = self.interface.setting(name, &text, source.clone())?;
            if self.kind == FileKind::Project
                && let Some(why) = classify::forbidden(name, &text)
            {
                return Err(self.forbidden(name, why, &source));
            }
            self.interface.check(&setting)?;
            settings.push(setting);
        }
        self.interface.check_table(&settings)?;
        Ok(settings)
    }

    fn forbidden(&self, name: &str, why: &str, source: &Source) -> anyhow::Error {
        let hint = match &self.user_path {
            Some(path) => format!("set it in {}, or type it", path.display()),
            None => "type it".to_owned(),
        };
        source.error(&format!("`{name}` may not be set by a project's file: {why} ({hint})"))
    }
}

/// Returns the value of a key.
fn value_of(name: &str, value: &DeValue<'_>) -> Result<Value, String> {
    let invalid = |what: &str| Err(format!("`{name}` cannot be {what}"));
    match value {
        DeValue::Boolean(value) => Ok(Value::Bool(*value)),
        DeValue::Array(values) => {
            let texts = values.iter().map(|value| text_of(value.get_ref()));
            match texts.collect::<Option<Vec<_>>>() {
                Some(texts) => Ok(Value::List(texts.into_iter().map(Into::into).collect())),
                None => Err(format!("`{name}` may be an array of texts or numbers only")),
            }
        }
        DeValue::Table(_) => invalid("a table"),
        DeValue::Datetime(_) => invalid("a date: write it in quotes"),
        value => match text_of(value) {
            Some(text) => Ok(Value::Text(text.into())),
            None => invalid("this number: write it in decimal, or in quotes"),
        },
    }
}

/// Returns a text or a decimal number as it is typed.
fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().replace('_', "")),
        DeValue::Float(number) if number.as_str().contains(|c: char| c.is_ascii_digit()) => {
            Some(number.as_str().replace('_', ""))
        }
        _ => None,
    }
}

/// Returns the error about a profile that no file defines.
pub(super) fn unknown_profile(name: &str, defined: &[&str]) -> anyhow::Error {
    match (nearest(name, defined.iter().copied()), defined) {
        (_, []) => anyhow!("unknown profile `{name}`: no minder.toml defines one"),
        (Some(meant), _) => {
            let all = defined.join(", ");
            anyhow!("unknown profile `{name}`; did you mean `{meant}`? The profiles are {all}")
        }
        (None, _) => anyhow!("unknown profile `{name}`: the profiles are {}", defined.join(", ")),
    }
}
