//! `minder doctor`: what this machine has, what it refuses and why, how far its limits reach.

use std::io::Write;

use minder::{Availability, Capability};
use serde_json::json;

/// The width of the column of areas.
const AREA: usize = 13;
/// Where a line of mechanisms is broken.
const WIDTH: usize = 110;

/// Prints the report for people, or as one JSON document: a list of objects, one a mechanism.
pub(crate) fn run(out: &mut dyn Write, json: bool) -> anyhow::Result<()> {
    let mut found = minder::capabilities();
    if let Ok(name) = std::env::var("MINDER_BACKEND") {
        choose(&mut found, &name);
    }
    if json {
        writeln!(out, "{:#}", document(&found))?;
    } else {
        out.write_all(table(&found, Symbols::of_locale(|name| std::env::var(name).ok())).as_bytes())?;
    }
    Ok(())
}

/// Marks the wait mechanism that the environment asks for, if it is to be had: `minder run` will
/// say why not.
fn choose(found: &mut [Capability], name: &str) {
    let waiting = |it: &&mut Capability| it.area == "waiting";
    if found.iter().any(|it| it.area == "waiting" && it.name == name && it.state == Availability::Available) {
        found.iter_mut().filter(waiting).for_each(|it| it.chosen = it.name == name);
    }
}

fn document(found: &[Capability]) -> serde_json::Value {
    let object = |it: &Capability| {
        let (state, reason) = match &it.state {
            Availability::Available => ("there", None),
            Availability::Refused(reason) => ("refused", Some(reason)),
            _ => ("absent", None),
        };
        json!({
            "area": it.area, "name": it.name, "state": state, "reason": reason,
            "chosen": it.chosen, "value": it.value, "note": it.note,
        })
    };
    found.iter().map(object).collect()
}

/// The characters that say yes and no, as far as the terminal can show them.
#[derive(Clone, Copy)]
struct Symbols {
    yes: &'static str,
    no: &'static str,
    plain: bool,
}

const FINE: Symbols = Symbols { yes: "✓", no: "✗", plain: false };
const PLAIN: Symbols = Symbols { yes: "yes", no: "no", plain: true };

impl Symbols {
    /// The first of the three variables that is set to something decides, as in setlocale(3).
    fn of_locale(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set =
            ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|value| !value.is_empty());
        let name = set.unwrap_or_default().to_ascii_lowercase().replace('-', "");
        if name.contains("utf8") { FINE } else { PLAIN }
    }

    fn fit(self, text: String) -> String {
        if self.plain { text.replace('→', "->").replace('·', ",") } else { text }
    }
}

fn table(found: &[Capability], marks: Symbols) -> String {
    let mut text = String::new();
    for group in found.chunk_by(|one, other| one.area == other.area) {
        let items: Vec<String> = group.iter().map(|it| marks.fit(item(it, marks))).collect();
        // A limit is a sentence and has a line of its own.
        let lines = if group[0].area == "limits" { items } else { filled(&items, WIDTH - AREA) };
        for (at, line) in lines.iter().enumerate() {
            let area = if at == 0 { group[0].area } else { "" };
            text.push_str(&format!("{area:AREA$}{line}\n"));
        }
    }
    text
}

fn item(it: &Capability, marks: Symbols) -> String {
    if it.area == "limits" {
        return it.note.clone();
    }
    let (mark, mut more) = match &it.state {
        Availability::Available => (marks.yes, String::new()),
        Availability::Refused(reason) => (marks.no, format!(" refused: {reason}")),
        _ => (marks.no, String::new()),
    };
    if it.chosen {
        more.push_str(" (chosen)");
    }
    if !it.note.is_empty() {
        more = format!("{more} ({})", it.note);
    }
    format!("{} {mark}{more}", it.name)
}

/// Puts items side by side, as many as fit.
fn filled(items: &[String], width: usize) -> Vec<String> {
    const GAP: &str = "   ";
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        let fits = |line: &&mut String| line.chars().count() + GAP.len() + item.chars().count() <= width;
        match lines.last_mut().filter(fits) {
            Some(line) => *line = format!("{line}{GAP}{item}"),
            None => lines.push(item.clone()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the machine of the tests has, and what it would say if it had less.
    fn found() -> Vec<Capability> {
        let mut found = minder::capabilities();
        let wait = found.iter_mut().find(|it| it.area == "waiting").expect("a wait backend");
        wait.state = Availability::Refused("EPERM (seccomp?)".into());
        wait.note = "a \"note\"\n".into();
        found
    }

    #[test]
    fn the_environment_chooses_what_is_there() {
        let chosen = |found: &[Capability]| -> Vec<&str> {
            found.iter().filter(|it| it.area == "waiting" && it.chosen).map(|it| it.name).collect()
        };
        let mut found = minder::capabilities();
        let default = chosen(&found);
        choose(&mut found, "");
        choose(&mut found, "magic");
        assert_eq!(chosen(&found), default);
        let there = |it: &&Capability| it.area == "waiting" && it.state == Availability::Available;
        let last = found.iter().rfind(there).map(|it| it.name).expect("a backend");
        choose(&mut found, last);
        assert_eq!(chosen(&found), [last]);
        let other =
            found.iter_mut().find(|it| it.area == "waiting" && it.name != last).expect("a second backend");
        other.state = Availability::Refused("ENOSYS".to_owned());
        let refused = other.name;
        choose(&mut found, refused);
        assert_eq!(chosen(&found), [last]);
    }

    #[test]
    fn areas_stand_in_a_column_and_no_line_is_long() {
        let text = table(&minder::capabilities(), FINE);
        let first: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
        let areas: Vec<&str> = first.iter().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(areas, ["waiting", "children", "limits"], "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH && !line.ends_with(' '), "{line:?}");
            assert!(
                line.chars().nth(AREA - 1) == Some(' ') && line.chars().nth(AREA) != Some(' '),
                "{line:?}"
            );
        }
        assert!(text.contains("✓ (chosen)"), "{text}");
    }

    #[test]
    fn a_refusal_gives_its_reason() {
        let first = table(&found(), FINE);
        assert!(
            first.lines().next().is_some_and(|line| line.contains("✗ refused: EPERM (seccomp?)")),
            "{first}"
        );
    }

    #[test]
    fn without_utf8_all_is_ascii() {
        let marks = |all: Option<&str>, ctype: Option<&str>, lang: Option<&str>| {
            let value = |name: &str| match name {
                "LC_ALL" => all,
                "LC_CTYPE" => ctype,
                _ => lang,
            };
            Symbols::of_locale(|name| value(name).map(str::to_owned)).plain
        };
        assert!(!marks(None, None, Some("de_DE.UTF-8")) && !marks(Some(""), Some("C.utf8"), Some("C")));
        assert!(marks(Some("C"), Some("C.utf8"), None) && marks(None, None, None));
        let text = table(&found(), PLAIN);
        assert!(text.is_ascii() && text.contains(" yes (chosen)") == text.contains(" (chosen)"), "{text}");
    }

    #[test]
    fn json_is_read_back_as_it_was_meant() {
        let found = found();
        let text = format!("{:#}", document(&found));
        let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read.as_array().map(Vec::len), Some(found.len()));
        assert_eq!(
            (read[0]["reason"].as_str(), read[0]["note"].as_str()),
            (Some("EPERM (seccomp?)"), Some("a \"note\"\n"))
        );
        assert_eq!(read[0]["state"], "refused");
        assert!(
            read.as_array().into_iter().flatten().any(|it| it["chosen"] == true && it["state"] == "there")
        );
    }

    #[test]
    fn items_are_filled_into_lines() {
        let items = ["aaa", "bbb", "cc"].map(str::to_owned);
        assert_eq!(filled(&items, 9), ["aaa   bbb", "cc"]);
        assert_eq!(filled(&items, 2), ["aaa", "bbb", "cc"]);
    }
}
