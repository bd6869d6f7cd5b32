//! Combines settings with the flags that were typed: the stronger source counts.

use std::ffi::OsString;

use clap::parser::ValueSource;

use super::interface::RunInterface;
use super::setting::Setting;
use crate::config;

/// Flags of which one takes the place of the other, without an error if both are typed.
const REPLACING: [(&str, &str); 1] = [("tag", "tagstring")];

/// The settings of a run.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// Those that count.
    pub(crate) in_force: Vec<Setting>,
    /// Those that do not, and why.
    pub(crate) ignored: Vec<(Setting, String)>,
}

impl Merged {
    /// Returns the words that stand before the typed ones.
    pub(super) fn words(&self) -> Vec<OsString> {
        self.in_force.iter().flat_map(|setting| setting.words.iter().cloned()).collect()
    }

    fn by_name(&self, name: &str) -> Option<&Setting> {
        self.in_force.iter().find(|setting| setting.name == name)
    }
}

/// Combines the layers, the strongest first, with what was typed after `run`.
pub(super) fn merge(interface: &mut RunInterface, typed: &[OsString], layers: Vec<Vec<Setting>>) -> Merged {
    let mut merged = Merged::default();
    let Ok((matches, _)) = interface.parse(&[typed]) else { return merged };
    // The typed flags are refused later, with their own message.
    if interface.exclusion(&[typed]).is_some() {
        return merged;
    }
    let ids = interface.ids();
    let is_typed = |name: &str| {
        let id = ids.iter().find(|(long, _)| long == name).map(|(_, id)| id.as_str());
        id.is_some_and(|id| matches.value_source(id) == Some(ValueSource::CommandLine))
    };
    for layer in layers {
        // Settings of one table do not exclude each other.
        let mut kept = Vec::new();
        for setting in layer {
            let words = merged.words();
            let replaced_by = |(one, other): &(&str, &str)| {
                let by = if setting.name == *one { *other } else { *one };
                let is_pair = setting.name == *one || setting.name == *other;
                let is_set = is_typed(by) || merged.by_name(by).is_some_and(|by| !by.words.is_empty());
                (is_pair && is_set).then(|| format!("`--{by}` replaces it"))
            };
            let why = if is_typed(&setting.name) {
                Some("typed".to_owned())
            } else if let Some(by) = merged.by_name(&setting.name) {
                Some(format!("overridden by {}", by.source))
            } else if setting.words.is_empty() {
                None
            } else if let Some(why) = REPLACING.iter().find_map(replaced_by) {
                Some(why)
            } else {
                interface.exclusion(&[&setting.words, &words, typed])
            };
            match why {
                Some(why) => merged.ignored.push((setting, why)),
                None => kept.push(setting),
            }
        }
        merged.in_force.append(&mut kept);
    }
    drop_dependent(interface, typed, &mut merged);
    merged
}

/// Ignores settings that have no effect without a flag that is not given.
fn drop_dependent(interface: &mut RunInterface, typed: &[OsString], merged: &mut Merged) {
    while let Ok((_, flags)) = interface.parse(&[&merged.words(), typed])
        && let Some((flag, other)) = config::missing(&flags)
    {
        let is_meant = |setting: &Setting| flag.strip_prefix("--") == Some(&setting.name);
        let Some(index) = merged.in_force.iter().position(is_meant) else { return };
        let setting = merged.in_force.remove(index);
        merged.ignored.push((setting, format!("requires {other}")));
    }
}
