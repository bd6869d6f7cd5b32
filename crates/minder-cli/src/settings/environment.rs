//! Reads settings from the variables `MINDER_RUN_…`.

use std::ffi::{OsStr, OsString};

use anyhow::{Result, anyhow};

use super::classify;
use super::interface::RunInterface;
use super::setting::{Setting, Source, Value};
use crate::likeness::nearest;

/// The prefix of the name of each variable with a setting.
const PREFIX: &str = "MINDER_RUN_";
/// The variable that selects the profile.
pub(crate) const PROFILE: &str = "MINDER_RUN_PROFILE";
const NO_STATUS: &str = "MINDER_RUN_NO_STATUS";
/// The variable of `--backend` that the whole library reads.
const BACKEND: &str = "MINDER_BACKEND";

/// Returns the variables that may have settings and are not empty, sorted by name.
pub(super) fn variables() -> Vec<(String, OsString)> {
    let is_windows = std::env::consts::FAMILY == "windows";
    let may_count = |name: &OsStr| is_windows || name.as_encoded_bytes().starts_with(b"MINDER_");
    let given = std::env::vars_os().filter(|(name, value)| !value.is_empty() && may_count(name));
    let all = given.map(|(name, value)| {
        let name = name.to_string_lossy().into_owned();
        (if is_windows { name.to_ascii_uppercase() } else { name }, value)
    });
    let mut found: Vec<_> = all.filter(|(name, _)| name.starts_with(PREFIX) || name == BACKEND).collect();
    found.sort();
    found
}

/// Returns the settings of these variables.
///
/// # Errors
/// A variable is unknown, or has an invalid value.
pub(super) fn settings(
    variables: &[(String, OsString)],
    interface: &mut RunInterface,
) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    let has = |wanted: &str| variables.iter().any(|(name, _)| name == wanted);
    for (variable, value) in variables.iter().filter(|(name, _)| name != PROFILE) {
        let source = Source::Variable(variable.clone());
        if variable == BACKEND {
            if !has("MINDER_RUN_BACKEND") {
                let value = value.display().to_string();
                settings.push(Setting { name: "backend".to_owned(), value, words: Vec::new(), source });
            }
            continue;
        }
        let name = variable[PREFIX.len()..].to_ascii_lowercase().replace('_', "-");
        if classify::typed_only(&name).is_none() && interface.takes_value(&name).is_none() {
            return Err(unknown(variable, &name, interface));
        }
        let value = value_of(value, interface.takes_value(&name) == Some(true));
        let setting = interface.setting(&name, &value, source)?;
        interface.check(&setting)?;
        settings.push(setting);
    }
    interface.check_table(&settings)?;
    Ok(settings)
}

/// Returns what a variable says for a flag with or without a value.
fn value_of(value: &OsStr, takes_value: bool) -> Value {
    match value.to_str() {
        Some("true" | "yes") => Value::Bool(true),
        Some("1" | "on") if !takes_value => Value::Bool(true),
        Some("false" | "no" | "0" | "off") if !takes_value => Value::Bool(false),
        _ => Value::Text(value.to_owned()),
    }
}

fn unknown(variable: &str, name: &str, interface: &RunInterface) -> anyhow::Error {
    let meant = nearest(name, interface.settable().chain(["profile"])).or_else(|| interface.meant(name));
    match meant {
        Some(meant) => {
            let meant = meant.to_ascii_uppercase().replace('-', "_");
            anyhow!("unknown variable `{variable}`; did you mean `{PREFIX}{meant}`?")
        }
        None => anyhow!("unknown variable `{variable}`: no flag of `minder run` has this name"),
    }
}

/// Returns the flag that `MINDER_RUN_NO_STATUS` adds to a recorded run. No other setting is read
/// again.
///
/// # Errors
/// The variable has an invalid value.
pub(crate) fn status_words() -> Result<Vec<OsString>> {
    let value = std::env::var_os(NO_STATUS).filter(|value| !value.is_empty());
    match value.map(|value| value_of(&value, false)) {
        None | Some(Value::Bool(false)) => Ok(Vec::new()),
        Some(Value::Bool(true)) => Ok(vec!["--no-status".into()]),
        Some(_) => Err(Source::Variable(NO_STATUS.to_owned()).error("`no-status` is true or false")),
    }
}
