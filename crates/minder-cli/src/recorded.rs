//! The command line of a recorded run.

use std::ffi::{OsStr, OsString};

use clap::Parser;
use minder_record::event::OsBytes;
use minder_record::manifest::Manifest;
use minder_runner::config::BY_JOBLOG;
use minder_template::shell_word;

use crate::flags::{Flags, RunFlags, Verb};

/// Returns the command of a run as the user typed it, without the flags. A shell line is shown as it is, and
/// of several words each one that a shell would divide or change is quoted.
pub(crate) fn command_text(command: &[OsBytes]) -> String {
    match command {
        [] => "(commands)".to_owned(),
        [line] => line.to_string(),
        words => words.iter().map(word_text).collect::<Vec<_>>().join(" "),
    }
}

/// Returns a word as the user typed it. The braces of a placeholder need no quotes. Control characters are
/// left as they are: the caller escapes them, which is shorter than quotes that a shell understands.
pub(crate) fn word_text(word: &OsBytes) -> String {
    let text = word.to_string();
    // A shell expands only braces with a comma or a range.
    let is_expanded = text.contains('{') && (text.contains(',') || text.contains(".."));
    let letters = text.replace(['{', '}'], "x");
    if text.contains(char::is_control) || !is_expanded && shell_word(OsStr::new(&letters)) == letters {
        text
    } else {
        shell_word(&word.to_os())
    }
}

/// Returns the command that resumes a run, or `None` if it cannot be resumed. `id` names the run.
pub(crate) fn resume_command(manifest: &Manifest, id: &str) -> Option<String> {
    let typed = typed_flags(manifest).ok()?;
    let flags = parse(manifest, &[&typed], &[]).ok();
    if flags.is_some_and(|flags| flags.pipe.is_unrepeatable()) {
        return None;
    }
    if !manifest.flags.contains_key(BY_JOBLOG) {
        return Some(format!("minder resume {id}"));
    }
    let joblog: OsBytes = serde_json::from_value(manifest.flags.get("joblog")?.clone()).ok()?;
    Some(format!("minder run --resume --joblog {} COMMAND…", shell_word(&joblog.to_os())))
}

/// Returns the flags of a run as they were typed.
///
/// # Errors
/// The manifest is damaged.
pub(crate) fn typed_flags(manifest: &Manifest) -> Result<Vec<OsString>, serde_json::Error> {
    let typed: Vec<OsBytes> = match manifest.flags.get("typed") {
        Some(typed) => serde_json::from_value(typed.clone())?,
        None => Vec::new(),
    };
    Ok(typed.iter().map(OsBytes::to_os).collect())
}

/// Parses these flags with the command of a run, and with the arguments after it.
///
/// # Errors
/// This version does not know a flag, or two of them exclude each other.
pub(crate) fn parse(
    manifest: &Manifest,
    flags: &[&[OsString]],
    arguments: &[OsString],
) -> Result<Box<RunFlags>, clap::Error> {
    let mut line: Vec<OsString> = vec!["minder".into(), "run".into()];
    line.extend(flags.iter().copied().flatten().cloned());
    line.push("--".into());
    line.extend(manifest.words.iter().map(OsBytes::to_os));
    line.extend_from_slice(arguments);
    let Verb::Run(flags) = Flags::try_parse_from(&line)?.verb else { unreachable!() };
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_they_were_typed() {
        let text = |words: &[&str]| {
            let words: Vec<OsBytes> = words.iter().map(|word| OsBytes::from(*word)).collect();
            command_text(&words)
        };
        assert_eq!(text(&[]), "(commands)");
        assert_eq!(text(&["gzip {} | wc -c"]), "gzip {} | wc -c");
        assert_eq!(text(&["gzip", "-k", "{}", "out/{/.}.gz"]), "gzip -k {} out/{/.}.gz");
        assert_eq!(text(&["printf", "a b", "", "$x"]), r"printf 'a b' '' '$x'");
        assert_eq!(text(&["echo", "{a,b}", "{1..3}"]), "echo '{a,b}' '{1..3}'");
    }
}
