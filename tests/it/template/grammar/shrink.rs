//! Shrinks a failure: removes parts of the line and simplifies values, as long as it fails.

use std::ffi::OsString;
use std::fmt::Write;

use super::values::MARK;
use super::{Case, Failure, Fault, Sandbox, Subject, Values, pasted, shown};

/// The maximum number of runs for one failure.
const RUNS_MAX: usize = 150;

/// Identifies a failure by its smallest line.
pub(super) fn failure(
    fault: Fault,
    case: &Case,
    subject: &Subject,
    seed: u64,
    sandbox: &mut Sandbox,
    values: &Values,
) -> Failure {
    let mut runs = 0;
    let mut fails = |case: &Case| {
        runs += 1;
        runs <= RUNS_MAX && self::fault(case, fault, subject, sandbox) == Some(fault)
    };
    let again = fails(case);
    let mut small = case.clone();
    if again {
        if small.columns.len() > 1 {
            let one = Case { columns: small.columns[..1].to_vec(), ..small.clone() };
            let last = Case { columns: small.columns[small.columns.len() - 1..].to_vec(), ..small.clone() };
            if let Some(fewer) = [one, last].into_iter().find(|case| fails(case)) {
                small = fewer;
            }
        }
        shorten(&mut small, &mut fails);
        plain(&mut small, values, &mut fails);
        usual(&mut small, &mut fails);
        shorten(&mut small, &mut fails);
    }
    let mut description = String::new();
    let once = if again { "" } else { " (seen once, not again)" };
    let _ = writeln!(description, "  values {:?}{once}", small.columns);
    let _ = writeln!(description, "  drawn {:?} with {:?}, MINDER_SEED={seed}", case.line, case.columns);
    if let Some(argv) = small.argv(subject) {
        let _ = writeln!(description, "  {}", pasted(&argv));
    }
    if let (Fault::Shown, Some(template)) = (fault, small.template(subject)) {
        let _ = writeln!(description, "  shown as {:?}", template.display(&small.job()));
    }
    Failure { fault, shell: subject.name.clone(), line: small.line, description }
}

/// Returns the fault of a case, if it is of this kind.
fn fault(case: &Case, kind: Fault, subject: &Subject, sandbox: &mut Sandbox) -> Option<Fault> {
    match kind {
        Fault::Shown => shown::fault(case, &case.template(subject)?, subject, sandbox),
        _ => case.run(subject, sandbox)?.0,
    }
}

/// Removes parts, larger ones first.
fn shorten(case: &mut Case, fails: &mut dyn FnMut(&Case) -> bool) {
    let mut tokens = tokens(&case.line);
    let mut size = tokens.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < tokens.len() {
            let end = tokens.len().min(at + size);
            let rest: Vec<String> = [&tokens[..at], &tokens[end..]].concat();
            let shorter = Case { line: rest.concat(), ..case.clone() };
            if shorter.line.contains('{') && !marks_itself(&shorter.line) && fails(&shorter) {
                *case = shorter;
                tokens = rest;
            } else {
                at = end;
            }
        }
        size /= 2;
    }
}

/// Returns whether the line creates the mark without a value: its own text evaluates to that.
fn marks_itself(line: &str) -> bool {
    line.replace("\":>MARK\"", "").contains(MARK)
}

/// Tries the usual placeholder without quotes.
fn usual(case: &mut Case, fails: &mut dyn FnMut(&Case) -> bool) {
    for form in ["\"{}\"", "'{}'", "{1}", "{2}", "{-1}", "{.}", "{/}", "{/.}", "\"{}\"", "'{}'"] {
        let plainer = Case { line: case.line.replace(form, "{}"), ..case.clone() };
        if plainer.line != case.line && fails(&plainer) {
            *case = plainer;
        }
    }
}

/// Tries simpler values.
fn plain(case: &mut Case, values: &Values, fails: &mut dyn FnMut(&Case) -> bool) {
    for nth in 0..case.columns.len() {
        for value in values.plainest() {
            let mut columns: Vec<OsString> = case.columns.clone();
            columns[nth] = value;
            let plainer = Case { columns, ..case.clone() };
            if plainer.columns != case.columns && fails(&plainer) {
                *case = plainer;
                break;
            }
        }
    }
}

/// Splits a line into words, placeholders and single characters.
fn tokens(line: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let word = rest.len() - rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').len();
        let placeholder = ["{}", "{1}", "{2}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{%}", "{-1}"]
            .into_iter()
            .find(|mark| rest.starts_with(mark))
            .map_or(0, str::len);
        let length = word.max(placeholder).max(first.len_utf8());
        let (token, behind) = rest.split_at(length);
        tokens.push(token.to_owned());
        rest = behind;
    }
    tokens
}
