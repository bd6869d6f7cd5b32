//! Files of `packaging` with `@NAME@` in them, which stands for a value of the release.

use super::release::{Release, write};
use anyhow::{Context, Result, bail};
use std::path::Path;

/// The text that stands for the address of the sources until they have one: RELEASING.md.
const NO_ADDRESS: &str = "https://example.invalid/minder";

/// Returns the public address of the sources, if the manifest has one.
fn repository(release: &Release) -> Result<Option<String>> {
    let manifest = std::fs::read_to_string(release.source.join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = \""));
    Ok(line.and_then(|rest| rest.split('"').next()).map(str::to_owned))
}

/// Returns the values that every file may contain.
pub(super) fn values(release: &Release) -> Result<Vec<(&'static str, String)>> {
    let repository = repository(release)?;
    // A whole line, which is empty without an address.
    let homepage = repository.as_ref().map_or_else(String::new, |url| format!("homepage = \"{url}\""));
    let url = repository.as_ref().map_or_else(String::new, |url| format!("URL: {url}"));
    Ok(vec![
        ("VERSION", release.version.clone()),
        ("HOMEPAGE", homepage),
        ("URL", url),
        ("ADDRESS", repository.unwrap_or_else(|| NO_ADDRESS.to_owned())),
    ])
}

/// Writes a file of the sources with the values in place of their names.
pub(super) fn file(release: &Release, from: &str, to: &Path, values: &[(&str, String)]) -> Result<()> {
    let path = release.source.join(from);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    if let Some(dir) = to.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    write(to, &filled(&text, values).with_context(|| format!("cannot fill in {from}"))?)
}

/// Returns the text with the values. A name in capitals without a value is an error.
fn filled(text: &str, values: &[(&str, String)]) -> Result<String> {
    let mut filled = text.to_owned();
    for (name, value) in values {
        filled = filled.replace(&format!("@{name}@"), value);
    }
    let is_name = |part: &&str| {
        part.len() > 2 && part.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    // Every second part stands between two signs.
    let between = |line: &str| line.split('@').skip(1).find(is_name).map(str::to_owned);
    match filled.lines().find_map(between) {
        Some(name) => bail!("no value for @{name}@"),
        None => Ok(filled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_unknown_ones_are_errors() {
        let values = [("VERSION", "0.1.0".to_owned())];
        assert_eq!(filled("v@VERSION@ a@b \"$@\"", &values).unwrap(), "v0.1.0 a@b \"$@\"");
        assert!(filled("@SHA256_LINUX@", &values).is_err());
    }
}
