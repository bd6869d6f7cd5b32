//! Finds a run by the beginning of its id, and names similar ones if that fails.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::Manifest;
use crate::store::{ID_LEN, check_run_dir, ids, runs_dir};

/// The maximum number of runs that an error names.
const NAMED_MAX: usize = 8;
/// The minimum number of digits in which a typing error is looked for. Shorter ones resemble too many.
const SIMILAR_MIN: usize = 3;
/// The maximum number of characters of a command in an error.
const COMMAND_MAX: usize = 40;

/// Returns the directory of the run whose id begins with `prefix`.
///
/// # Errors
///
/// - [`ErrorKind::InvalidId`] if `prefix` is not 1 to 8 hexadecimal digits;
/// - [`ErrorKind::UnknownRun`] or [`ErrorKind::AmbiguousId`] if no run or several runs match;
/// - [`ErrorKind::Insecure`] if a directory is a link or belongs to another user;
/// - [`ErrorKind::Io`] if the directory of the runs cannot be read.
pub fn find(root: &Path, prefix: &str) -> Result<PathBuf> {
    let is_hex = prefix.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex || prefix.is_empty() || prefix.len() > ID_LEN {
        let text = format!("invalid run id `{prefix}`: expected up to {ID_LEN} hexadecimal digits");
        return Err(Error::new(ErrorKind::InvalidId, text));
    }
    let prefix = prefix.to_ascii_lowercase();
    let mut all = ids(root)?;
    all.sort();
    let matching: Vec<String> = all.iter().filter(|id| id.starts_with(&prefix)).cloned().collect();
    let id = match matching.as_slice() {
        [] => {
            let mut text = format!("there is no run `{prefix}` in `{}`", runs_dir(root).display());
            let near = similar(&prefix, all);
            if !near.is_empty() {
                text += &format!("; did you mean {}?", names(root, &near));
            }
            return Err(Error::new(ErrorKind::UnknownRun, text));
        }
        [id] => id,
        several => {
            let runs = several.len();
            let text = format!("`{prefix}` is ambiguous: it matches {runs} runs, {}", names(root, several));
            return Err(Error::new(ErrorKind::AmbiguousId, text));
        }
    };
    let dir = runs_dir(root).join(id);
    check_run_dir(&dir)?;
    Ok(dir)
}

/// Returns the ids that a typing error in `prefix` may have meant: one wrong, missing, surplus or
/// swapped digit.
fn similar(prefix: &str, ids: Vec<String>) -> Vec<String> {
    let typed = prefix.as_bytes();
    let is_similar = |id: &String| {
        let id = id.as_bytes();
        let same = typed.iter().zip(id).take_while(|(one, other)| one == other).count();
        let rest = &typed[same..];
        let id = &id[same..];
        let fits = |rest: Option<&[u8]>, from: usize| {
            rest.is_some_and(|rest| id.get(from..).is_some_and(|id| id.starts_with(rest)))
        };
        let swapped = rest.len() > 1 && id.len() > 1 && rest[0] == id[1] && rest[1] == id[0];
        fits(rest.get(1..), 1)
            || fits(rest.get(1..), 0)
            || fits(Some(rest), 1)
            || swapped && fits(rest.get(2..), 2)
    };
    if typed.len() < SIMILAR_MIN { Vec::new() } else { ids.into_iter().filter(is_similar).collect() }
}

/// Names runs by their ids and the beginnings of their commands.
fn names(root: &Path, ids: &[String]) -> String {
    let manifest = |dir: &Path| check_run_dir(dir).and_then(|()| Manifest::read(dir));
    let name = |id: &String| match manifest(&runs_dir(root).join(id)) {
        Ok(manifest) => {
            let words: Vec<String> = manifest.words.iter().map(ToString::to_string).collect();
            let command = words.join(" ");
            match command.char_indices().nth(COMMAND_MAX) {
                Some((end, _)) => format!("{id} ({}…)", &command[..end]),
                None => format!("{id} ({command})"),
            }
        }
        Err(_) => id.clone(),
    };
    let more = if ids.len() > NAMED_MAX { ", …" } else { "" };
    ids.iter().take(NAMED_MAX).map(name).collect::<Vec<_>>().join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_finds_one_typing_error() {
        let ids = || ["61c0aa00", "7f3a0000"].map(str::to_owned).to_vec();
        for prefix in ["61d", "61d0", "6c0a", "6100", "661c0", "16c0", "61c0ab", "71c0"] {
            assert_eq!(similar(prefix, ids()), ["61c0aa00"], "{prefix}");
        }
        for prefix in ["abcd", "0", "6d", "61dd", "7f3b1"] {
            assert_eq!(similar(prefix, ids()), [""; 0], "{prefix}");
        }
    }
}
