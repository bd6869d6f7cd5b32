//! The flags of `minder run` that a file may set, and the values to which it may set them.

use super::setting::Value;
use crate::flags::{Flag, FlagSource};
use minder_ui::table::escape;

/// Returns why no file and no variable may set this flag.
pub(super) fn typed_only(name: &str) -> Option<&'static str> {
    match Flag::named(name)?.source {
        FlagSource::CommandLine(why) => Some(why),
        FlagSource::AnyFile | FlagSource::UserFile(_) => None,
    }
}

/// Returns why a project's file may not set this flag to this value.
pub(super) fn forbidden(name: &str, value: &Value) -> Option<&'static str> {
    if let FlagSource::UserFile(why) = Flag::named(name)?.source {
        return Some(why);
    }
    match value {
        Value::Bool(value) => (name == "quiet" && *value).then_some(SILENT),
        Value::Text(text) => forbidden_text(name, &text.to_string_lossy()),
        Value::List(texts) => texts.iter().find_map(|text| forbidden_text(name, &text.to_string_lossy())),
    }
}

/// Why nothing may keep a run from saying what it does.
const SILENT: &str = "the run would not say what it does or what fails";

fn forbidden_text(name: &str, text: &str) -> Option<&'static str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match name {
        "jobs" => {
            let digits = text.strip_suffix('%').unwrap_or_else(|| text.trim_start_matches(['+', '-']));
            (!is_number(digits)).then_some("it names a file, and only a number such as 4 or 50% may be set")
        }
        "tagstring" => (escape(text.as_bytes()) != text)
            .then_some("it has a control character, which the terminal would interpret"),
        "success-output" | "failure-output" => (text == "never").then_some(SILENT),
        "halt" => (text.starts_with('-') || text.contains("success") || text.contains("done"))
            .then_some("the run would leave out jobs although none has failed"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_sets_jobs_to_numbers_only() {
        for (text, is_allowed) in [
            ("4", true),
            ("50%", true),
            ("+2", true),
            ("-1", true),
            ("0", true),
            ("procs", false),
            ("./4", false),
            ("", false),
        ] {
            assert_eq!(forbidden("jobs", &Value::Text(text.into())).is_none(), is_allowed, "{text}");
        }
        assert!(forbidden("shell", &Value::Bool(false)).is_some());
        assert!(forbidden("tag", &Value::Bool(true)).is_none());
    }

    #[test]
    fn a_project_keeps_no_run_from_reporting_and_none_from_its_jobs() {
        for (name, text, is_allowed) in [
            ("tagstring", "{#}: ä", true),
            ("tagstring", "\x1b[2J", false),
            ("tagstring", "a\nb", false),
            ("tagstring", "\u{9b}2J", false),
            ("tagstring", "\u{202e}", false),
            ("success-output", "final", true),
            ("success-output", "never", false),
            ("failure-output", "never", false),
            ("halt", "never", true),
            ("halt", "soon,fail=1", true),
            ("halt", "2", true),
            ("halt", "20%", true),
            ("halt", "-1", false),
            ("halt", "now,success=1", false),
            ("halt", "soon,done=10%", false),
        ] {
            assert_eq!(forbidden(name, &Value::Text(text.into())).is_none(), is_allowed, "{name} {text}");
            assert_eq!(
                forbidden(name, &Value::List(vec![text.into()])).is_none(),
                is_allowed,
                "{name} {text}"
            );
        }
        assert!(forbidden("quiet", &Value::Bool(true)).is_some());
        assert!(forbidden("quiet", &Value::Bool(false)).is_none());
    }
}
