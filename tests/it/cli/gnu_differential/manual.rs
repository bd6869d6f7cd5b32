//! `docs/from-parallel.md` against the manual of the GNU parallel that is installed, and against
//! the tables.

use std::collections::BTreeSet;
use std::path::Path;

use minder::{Command, Stdio};

use super::case::Case;
use super::shell_words::split;
use super::{TABLES, harness, random};

const DOCUMENT: &str = include_str!("../../../../docs/from-parallel.md");
const MANUAL: &str = "/usr/share/man/man1/parallel.1.gz";

/// Rows that no case can show.
const WITHOUT_CASE: &[&str] = &["command", "--_parset"];

/// Why a row is not checked here.
const ELSEWHERE: &[&str] = &["No SQL server", "No Perl"];

/// Returns the rows of the table of options: names, support in minder, and reason.
fn rows() -> Vec<(Vec<&'static str>, &'static str, &'static str)> {
    let table = DOCUMENT.split_once("| --- | --- | --- |\n").expect("read table").1;
    let cells = |line: &'static str| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>();
    let row = |line: &'static str| match cells(line)[..] {
        [names, how, why] => (names.split(", ").map(|name| name.trim_matches('`')).collect(), how, why),
        [names, how] => (names.split(", ").map(|name| name.trim_matches('`')).collect(), how, ""),
        _ => panic!("a row of three cells: {line}"),
    };
    table.lines().take_while(|line| line.starts_with('|')).map(row).collect()
}

/// Returns the options of a manual page in troff, in its order.
fn options(page: &str) -> Vec<String> {
    let after = page.split_once(".SH \"OPTIONS\"").expect("find section OPTIONS").1;
    let section = after.split_once(".SH \"EXAMPLES\"").expect("find section EXAMPLES").0;
    let mut found: Vec<String> = Vec::new();
    for line in section.lines() {
        let Some((_, item)) = line.split_once(".IP \"") else { continue };
        let Some(item) = item.strip_suffix("\" 4") else { continue };
        let name = name(&plain(item));
        if name.starts_with(['-', ':', '{']) && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Removes troff's font changes from a text.
fn plain(troff: &str) -> String {
    let fonts = ["\\f(CB", "\\f(CI", "\\fB", "\\fI", "\\fR", "\\s-1", "\\s0"];
    fonts.iter().fold(troff.to_owned(), |text, font| text.replace(font, "")).replace("\\-", "-")
}

/// Returns the name of an option, without its value, or a replacement string such as `{/.}`.
fn name(item: &str) -> String {
    if item.starts_with('{')
        && let Some(end) = item.find('}')
    {
        return item[..=end].to_owned();
    }
    item.split([' ', '[', '=']).next().unwrap_or_default().to_owned()
}

#[test]
fn document_lists_every_option_of_the_manual() {
    if !Path::new(MANUAL).exists() || harness::find("zcat").is_none() {
        crate::support::skip(format_args!("there is no {MANUAL}; hint: apt-get install parallel"));
        return;
    }
    let page = crate::support::stdout_of(Command::new("zcat").arg(MANUAL).stdin(Stdio::null()));
    let options = options(&page);
    assert!(options.len() > 200, "the manual is read in another way: {} options", options.len());
    let listed: Vec<&str> = rows().into_iter().flat_map(|(names, ..)| names).collect();
    let missing: Vec<&String> = options.iter().filter(|name| !listed.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "docs/from-parallel.md does not list {missing:?}");
    let in_order: Vec<&str> =
        listed.iter().copied().filter(|name| options.iter().any(|it| it == name)).collect();
    assert_eq!(in_order, options, "the manual's order");
}

#[test]
fn every_row_states_support_and_reason() {
    for (names, how, why) in rows() {
        assert!(["same", "different", "not supported"].contains(&how), "{names:?}: {how}");
        assert!(how == "same" || !why.is_empty(), "{names:?} is {how}: why?");
    }
}

#[test]
fn nine_in_ten_options_are_supported() {
    let is_elsewhere = |how: &str, why: &str| {
        how == "not supported" && ELSEWHERE.iter().any(|reason| why.starts_with(reason))
    };
    let rows = rows();
    let of =
        |wanted: &str| rows.iter().filter(|(_, how, why)| *how == wanted && !is_elsewhere(how, why)).count();
    let same = of("same");
    let different = of("different");
    let missing = of("not supported");
    let there = same + different;
    let all = same + different + missing;
    eprintln!(
        "{same} options are the same, {different} differ, {missing} are not supported: {:.1} % are \
         supported; {} concern SQL or Perl",
        100.0 * there as f64 / all as f64,
        rows.len() - all
    );
    assert!(there * 10 >= all * 9, "{there} of {all} options are there");
}

#[test]
fn document_contains_every_known_difference() {
    let cases = TABLES.iter().flat_map(|(_, cases)| *cases).filter_map(|case| case.differs);
    let reasons: BTreeSet<&str> = cases.chain(random::KNOWN.iter().map(|known| known.why)).collect();
    // The document is wrapped: a reason may continue on the next line.
    let document = DOCUMENT.split_whitespace().collect::<Vec<_>>().join(" ");
    for why in reasons {
        assert!(document.contains(why), "docs/from-parallel.md does not contain: {why}");
    }
}

#[test]
fn every_option_has_a_case() {
    let lines: Vec<Vec<String>> = TABLES.iter().flat_map(|(_, cases)| *cases).map(words).collect();
    let words: Vec<&String> = lines.iter().flatten().collect();
    let has = |name: &str| match name.strip_prefix('-') {
        Some(short) if !short.starts_with('-') => words.iter().any(|word| is_short(word, short)),
        Some(_) => words.iter().any(|word| word.split('=').next() == Some(name)),
        None => words.iter().any(|word| word.contains(&name.replace("{n", "{1").replace(" expression", ""))),
    };
    let listed = rows().into_iter().flat_map(|(names, ..)| names);
    let without_case: Vec<&str> = listed
        .filter(|name| !WITHOUT_CASE.contains(name))
        .filter(|name| !has(name) && !name.starts_with("{="))
        .collect();
    assert!(without_case.is_empty(), "without a case: {without_case:?}");
}

/// Returns whether an argument is a bundle of short options that begins with this one or with `-k`
/// and this one.
fn is_short(word: &str, short: &str) -> bool {
    let bundle = word.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
    bundle.is_some_and(|bundle| bundle.starts_with(short) || bundle.starts_with(&format!("k{short}")))
}

/// Returns the arguments of a case; those of a script are split at spaces only.
fn words(case: &Case) -> Vec<String> {
    if case.is_script {
        let parts = case.line.split(|char: char| char.is_whitespace() || ";'\"".contains(char));
        return parts.map(str::to_owned).collect();
    }
    let mut words = split(case.line);
    let more: Vec<String> = words.iter().flat_map(|word| word.split(' ')).map(str::to_owned).collect();
    words.extend(more);
    words
}
