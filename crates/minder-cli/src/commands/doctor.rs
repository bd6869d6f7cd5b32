//! `minder doctor`: the mechanisms that this machine supports, why others are refused, and its limits.

use std::io::Write;
use std::path::PathBuf;

use minder::{Availability, Capability};
use serde_json::json;

use minder_ui::format::fill_lines;
use minder_ui::symbols::Symbols;
use minder_ui::table::{escape, terminal_width};

use crate::installation::{self, Package};

/// The width of the first column, the areas.
const AREA_WIDTH: usize = 13;
/// The text before the rest of a text that is longer than a line.
const INDENT: &str = "  ";
/// The text between two mechanisms.
const GAP: &str = "   ";
/// The bounds of the width of a line. It is that of the terminal.
const LINE_WIDTH_MIN: usize = 40;
const LINE_WIDTH_MAX: usize = 110;

/// Prints the report as text, or as a JSON list with one object per mechanism.
pub(crate) fn run(out: &mut dyn Write, json: bool) -> anyhow::Result<()> {
    let mut capabilities = minder::capabilities();
    if let Ok(name) = std::env::var("MINDER_BACKEND") {
        mark_chosen(&mut capabilities, &name);
    }
    let program = Program::find();
    if json {
        let mut areas = vec![program.document()];
        areas.extend(document(&capabilities));
        writeln!(out, "{:#}", serde_json::Value::Array(areas))?;
    } else {
        let width = terminal_width().unwrap_or(LINE_WIDTH_MAX);
        let symbols = Symbols::of_locale();
        out.write_all(area("program", &program.lines(), width).as_bytes())?;
        out.write_all(table(&capabilities, symbols, width).as_bytes())?;
    }
    Ok(())
}

/// This program, and others of its name.
struct Program {
    path: Option<PathBuf>,
    package: Option<Package>,
    others: Vec<PathBuf>,
}

impl Program {
    fn find() -> Self {
        let path = std::env::current_exe().ok();
        let search = std::env::var_os("PATH").unwrap_or_default();
        Self {
            package: path.as_deref().and_then(installation::package),
            others: path.as_deref().map(|path| installation::others(path, &search)).unwrap_or_default(),
            path,
        }
    }

    fn lines(&self) -> Vec<String> {
        let shown = |path: &PathBuf| escape(path.display().to_string().as_bytes());
        let mut lines =
            vec![format!("minder {} ({})", env!("CARGO_PKG_VERSION"), installation::build_text())];
        if let Some(path) = &self.path {
            let package = self.package.map(|package| format!(" ({})", package.name)).unwrap_or_default();
            lines.push(format!("{}{package}", shown(path)));
        }
        lines.extend(self.others.iter().map(|path| format!("another one in PATH: {}", shown(path))));
        lines
    }

    fn document(&self) -> serde_json::Value {
        // JSON has no other text than Unicode.
        let text = |path: &PathBuf| path.display().to_string();
        let others: Vec<String> = self.others.iter().map(text).collect();
        json!({
            "area": "program", "name": "minder", "state": "there", "reason": null, "chosen": true,
            "value": null, "note": "", "build": installation::build(), "path": self.path.as_ref().map(text),
            "package": self.package.map(|package| package.name), "others": others,
        })
    }
}

/// Marks the wait mechanism named by the environment, if it is available. If it is not, `minder run`
/// reports why.
fn mark_chosen(capabilities: &mut [Capability], name: &str) {
    let mut waiting: Vec<&mut Capability> =
        capabilities.iter_mut().filter(|capability| capability.area == "waiting").collect();
    let is_available =
        |capability: &&mut Capability| capability.name == name && capability.state == Availability::Available;
    if waiting.iter().any(is_available) {
        for capability in &mut waiting {
            capability.chosen = capability.name == name;
        }
    }
}

fn document(capabilities: &[Capability]) -> Vec<serde_json::Value> {
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
    capabilities.iter().map(object).collect()
}

fn table(capabilities: &[Capability], symbols: Symbols, width: usize) -> String {
    let mut text = String::new();
    for group in capabilities.chunk_by(|one, other| one.area == other.area) {
        let items: Vec<String> =
            group.iter().map(|it| symbols.convert(&item(it, symbols)).into_owned()).collect();
        // A limit is a sentence on a separate line.
        let lines =
            if group[0].area == "limits" { items } else { fill_lines(&items, GAP, text_width(width)) };
        text.push_str(&area(group[0].area, &lines, width));
    }
    text
}

/// Returns the width of the text beside the names of the areas.
fn text_width(width: usize) -> usize {
    width.clamp(LINE_WIDTH_MIN, LINE_WIDTH_MAX) - AREA_WIDTH
}

/// Returns the lines of an area, the first one with its name.
fn area(name: &str, lines: &[String], width: usize) -> String {
    let width = text_width(width);
    let mut text = String::new();
    for (at, line) in lines.iter().flat_map(|line| wrapped(line, width)).enumerate() {
        let name = if at == 0 { name } else { "" };
        text.push_str(&format!("{name:AREA_WIDTH$}{line}\n"));
    }
    text
}

/// Breaks a text that is longer than a line; what does not fit is indented.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_owned()];
    }
    let words: Vec<&str> = text.split(' ').collect();
    let mut lines = fill_lines(&words, " ", width - INDENT.len());
    lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, INDENT));
    lines
}

fn item(it: &Capability, symbols: Symbols) -> String {
    if it.area == "limits" {
        return it.note.clone();
    }
    let [yes, no] = symbols.pick(["✓", "✗"], ["yes", "no"]);
    let (symbol, mut details) = match &it.state {
        Availability::Available => (yes, String::new()),
        Availability::Refused(reason) => (no, format!(" refused: {reason}")),
        _ => (no, String::new()),
    };
    if it.chosen {
        details.push_str(" (chosen)");
    }
    if !it.note.is_empty() {
        details = format!("{details} ({})", it.note);
    }
    format!("{} {symbol}{details}", it.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the capabilities of this machine, with one refused mechanism.
    fn with_refused() -> Vec<Capability> {
        let mut found = minder::capabilities();
        let wait = found.iter_mut().find(|it| it.area == "waiting").expect("find wait mechanism");
        wait.state = Availability::Refused("EPERM (seccomp?)".into());
        wait.note = "a \"note\"\n".into();
        found
    }

    #[test]
    fn mark_chosen_ignores_unavailable_mechanisms() {
        let chosen = |found: &[Capability]| -> Vec<&str> {
            found.iter().filter(|it| it.area == "waiting" && it.chosen).map(|it| it.name).collect()
        };
        let mut found = minder::capabilities();
        let default = chosen(&found);
        mark_chosen(&mut found, "");
        mark_chosen(&mut found, "magic");
        assert_eq!(chosen(&found), default);
        let there = |it: &&Capability| it.area == "waiting" && it.state == Availability::Available;
        let last = found.iter().rfind(there).map(|it| it.name).expect("find available mechanism");
        mark_chosen(&mut found, last);
        assert_eq!(chosen(&found), [last]);
        let other = found
            .iter_mut()
            .find(|it| it.area == "waiting" && it.name != last)
            .expect("find second mechanism");
        other.state = Availability::Refused("ENOSYS".to_owned());
        let refused = other.name;
        mark_chosen(&mut found, refused);
        assert_eq!(chosen(&found), [last]);
    }

    #[test]
    fn table_aligns_areas_and_limits_line_width() {
        let text = table(&minder::capabilities(), Symbols::Unicode, 200);
        let first: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
        let areas: Vec<&str> = first.iter().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(areas, ["waiting", "children", "limits"], "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= LINE_WIDTH_MAX && !line.ends_with(' '), "{line:?}");
            assert!(
                line.chars().nth(AREA_WIDTH - 1) == Some(' ') && line.chars().nth(AREA_WIDTH) != Some(' '),
                "{line:?}"
            );
        }
        assert!(text.contains("✓ (chosen)"), "{text}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for width in [40, 60, 80] {
            let narrow = table(&minder::capabilities(), Symbols::Unicode, width);
            assert!(narrow.lines().all(|line| line.chars().count() <= width), "{narrow}");
            assert_eq!(words(&narrow), words(&text), "{narrow}");
        }
    }

    #[test]
    fn table_shows_the_reason_of_a_refusal() {
        let first = table(&with_refused(), Symbols::Unicode, 110);
        assert!(
            first.lines().next().is_some_and(|line| line.contains("✗ refused: EPERM (seccomp?)")),
            "{first}"
        );
    }

    #[test]
    fn table_is_ascii_without_a_utf8_locale() {
        let text = table(&with_refused(), Symbols::Ascii, 110);
        assert!(text.is_ascii() && text.contains(" yes (chosen)") == text.contains(" (chosen)"), "{text}");
    }

    #[test]
    fn document_keeps_all_fields() {
        let found = with_refused();
        let text = format!("{:#}", serde_json::Value::Array(document(&found)));
        let read: serde_json::Value = serde_json::from_str(&text).expect("parse JSON");
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
}
