//! The program text of a shell, `sh -c '… {} …'`, with values in it.
//!
//! The text is a shell line, and is scanned as one: a value may stand where the scan accepts it as a
//! parameter. It is a part of the text, though, so each job checks that it consists of characters that
//! have no meaning to a shell there.

use std::sync::Arc;

use crate::error::Error;
use crate::eval_commands::ShellText;
use crate::kinds::{ShellSet, base_name};
use crate::options::Repeat;
use crate::placeholder::set::PlaceholderSet;
use crate::placeholder::site::{PlaceholderSite, Quote};
use crate::posix::scan::scan;
use crate::posix::scanner::ScanRules;
use crate::program_text::{Alphabet, ValueCheck};
use crate::template_line::TemplateLine;

/// Returns the checks of the values.
///
/// # Errors
/// A value could have a meaning to the shell, or the text is not understood.
pub(crate) fn check(text: &ShellText, placeholders: &Arc<PlaceholderSet>) -> Result<Vec<ValueCheck>, Error> {
    alphabets(text, placeholders)
        .map(|alphabets| {
            let values = text.values.iter().zip(alphabets);
            values.map(|((_, placeholder), alphabet)| text.check(placeholder.text(), alphabet)).collect()
        })
        .ok_or_else(|| text.refusal.clone())
}

fn alphabets(text: &ShellText, placeholders: &Arc<PlaceholderSet>) -> Option<Vec<Alphabet>> {
    let kinds = ShellSet::named(&base_name(text.shell.as_ref()))?;
    let mut words = text.text.split(|byte| b" \t\n;&|(){}".contains(byte));
    if words.any(|word| matches!(word, b"." | b"source")) {
        // It runs a file that a value may name.
        return None;
    }
    let mut line = Vec::new();
    let mut starts = Vec::new();
    let mut from = 0;
    for (at, placeholder) in &text.values {
        line.extend_from_slice(&text.text[from..*at]);
        starts.push(line.len());
        line.extend_from_slice(placeholder.text());
        from = *at;
    }
    line.extend_from_slice(&text.text[from..]);
    let rules = ScanRules {
        kinds,
        trusted: false,
        accepts_plain_values: false,
        repeat: Repeat::Joined,
        omits_missing: false,
        placeholders: Arc::clone(placeholders),
        numbers: Vec::new(),
    };
    let scanned = scan(&line, &rules, 1).ok()?;
    // Text of the line that looks like a placeholder is not one.
    if !scanned.sites.iter().map(|site| site.at).eq(starts) || !scanned.command_names.is_empty() {
        return None;
    }
    let template = TemplateLine { text: line, sites: scanned.sites, spans: Vec::new() };
    template.sites.iter().map(|site| alphabet(&template, site)).collect()
}

/// Returns what a value may be at a site, so that the shell reads it as text.
fn alphabet(line: &TemplateLine, site: &PlaceholderSite) -> Option<Alphabet> {
    let after = &line.text[site.at + site.length..];
    let next = after.iter().find(|byte| !b" \t".contains(byte));
    match site.quote {
        Quote::Single => Some(Alphabet::Text { excluded: Vec::new() }),
        // A letter would be a part of the variable.
        Quote::Double if line.follows_variable_name(site) => None,
        Quote::Double => Some(Alphabet::Text { excluded: Vec::new() }),
        // A digit before a redirection is a descriptor, and `esac` before a `)` ends a `case`.
        Quote::Bare if line.is_joined(site) || line.is_before_redirection(site) || next == Some(&b')') => {
            None
        }
        // `=` makes an assignment, and in zsh the path of a program.
        Quote::Bare => Some(Alphabet::Operand { excluded: vec![b'='] }),
        Quote::Inner => None,
    }
}
