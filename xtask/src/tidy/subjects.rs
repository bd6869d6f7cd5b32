//! Subjects of commits: a module, a colon and what changes, in at most 72 characters.

use super::Finding;
use crate::run;
use std::path::Path;

/// The most characters of a subject.
const CHARACTERS_MAX: usize = 72;
/// The commit before the first one that is checked, until there is a release with a tag.
const BEFORE_ALL: &str = "002dc372";

/// Checks the commits since the last release. Where git or that commit is missing, as in a shallow clone,
/// there is nothing to check.
pub(crate) fn check() -> Vec<Finding> {
    let git = |words: &[&str]| run::read(run::command("git").args(words));
    let tag = git(&["describe", "--tags", "--abbrev=0"]);
    let since = tag.as_deref().map_or(BEFORE_ALL, str::trim);
    let log = git(&["log", "--no-merges", "--format=%h %s", &format!("{since}..HEAD")]);
    log.unwrap_or_default().lines().filter_map(finding).collect()
}

fn finding(line: &str) -> Option<Finding> {
    let (commit, subject) = line.split_once(' ')?;
    let what = if subject.chars().count() > CHARACTERS_MAX {
        "a subject of more than 72 characters; hint: git commit --amend, with the rest in the body"
    } else if !subject
        .split_once(": ")
        .is_some_and(|(module, change)| is_module(module) && !change.is_empty())
    {
        "a subject without a module; hint: `module: imperative verb + object`"
    } else {
        return None;
    };
    Some(Finding::new(Path::new(&format!("commit {commit}")), 1, what))
}

fn is_module(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
    text.split(", ").all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_name_a_module_and_are_short() {
        for right in ["1a wait: round time-outs up in iocp", "1a set, jobs: end a run with its child"] {
            assert_eq!(finding(right), None);
        }
        let long = format!("1a wait: {}", "x".repeat(67));
        for wrong in ["1a Round time-outs up", "1a the wait: round", "1a wait: ", &long] {
            assert!(finding(wrong).is_some(), "{wrong}");
        }
    }
}
