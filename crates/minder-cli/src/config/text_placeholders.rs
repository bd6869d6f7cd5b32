//! Texts in braces that look like placeholders and are passed on as text, to warn the user before the
//! run. Braces are common in commands (JSON, awk, brace expansion), so only a text that is a
//! placeholder with another flag, or has one typing error, counts.

use std::ffi::{OsStr, OsString};

use anyhow::{Result, bail};
use minder_template::{Options, Template};

use crate::flags::RunFlags;
use crate::likeness::nearest;

/// The maximum length of a text in braces that is considered.
const INNER_MAX: usize = 64;

/// The placeholders of one value, between their braces.
const BASIC: [&str; 4] = [".", "/", "//", "/."];

/// The placeholders of `--plus` that are unlikely to be text. `{:-DEFAULT}` and `{%.EXTENSION}` are
/// recognised, too.
const PLUS: [&str; 10] = ["..", "...", "/..", "/...", "+/", "+.", "+..", "+...", "##", "slot"];

/// Statements of awk, which often stand alone in braces.
const AWK: [&str; 9] =
    ["print", "next", "nextfile", "exit", "getline", "return", "break", "continue", "delete"];

/// Something in a command line that the user may have meant in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    /// The text that it is about.
    pub(crate) text: String,
    /// The treatment of the text, as a predicate: `is passed on as text`.
    pub(crate) what: &'static str,
    pub(crate) advice: String,
}

impl Hint {
    /// Returns the line before a run.
    pub(crate) fn line(&self) -> String {
        let Self { text, what, advice } = self;
        format!("`{text}` {what}: {advice}")
    }
}

/// Variables of GNU parallel in the environment of jobs, and those of minder.
const VARIABLES: [(&str, &str); 2] =
    [("$PARALLEL_SEQ", "$MINDER_JOB"), ("$PARALLEL_JOBSLOT", "$MINDER_SLOT")];

/// Names for the number of a job and of its slot that are unlikely to be text, and the placeholders.
const NAMES: [(&str, &str); 3] = [("seq", "{#}"), ("jobnum", "{#}"), ("jobslot", "{%}")];

/// Returns a hint about the first variable of GNU parallel in the command.
pub(super) fn foreign_variable(words: &[OsString]) -> Option<Hint> {
    let is_in = |name: &str| words.iter().any(|word| word.to_str().is_some_and(|word| word.contains(name)));
    let (theirs, ours) = VARIABLES.iter().find(|(theirs, _)| is_in(theirs))?;
    let advice = format!("use `{ours}` (`minder parallel` sets both)");
    Some(Hint { text: (*theirs).to_owned(), what: "is not set by `minder run`", advice })
}

/// Returns a hint about the first text in the command that only looks like a placeholder.
/// `names` are the names of the columns.
pub(crate) fn text_placeholder(
    words: &[OsString],
    flags: &RunFlags,
    options: &Options,
    names: &[OsString],
) -> Option<Hint> {
    let (text, advice) = words.iter().find_map(|word| find(word, flags, options, names))?;
    Some(Hint { text: text.to_owned(), what: "is passed on as text", advice })
}

/// Refuses a name in braces that no column has, where columns have names. `names` are the names of the
/// columns.
///
/// # Errors
/// The first such name, with the columns that there are.
pub(super) fn check_column_names<'a>(
    mut texts: impl Iterator<Item = &'a OsString>,
    flags: &RunFlags,
    options: &Options,
    names: &[OsString],
) -> Result<()> {
    let find_unknown = |text: &'a OsString| {
        let text = text.to_str()?;
        in_braces(text, options).find(|(_, inner)| is_identifier(inner) && !AWK.contains(inner))
    };
    if names.is_empty() {
        return Ok(());
    }
    let Some((text, inner)) = texts.find_map(find_unknown) else { return Ok(()) };
    if let Some(meant) = nearest(inner, names.iter().filter_map(|name| name.to_str())) {
        bail!("`{text}` names no column: did you mean `{{{meant}}}`?");
    }
    let advice = undivided(flags, names).map_or_else(|| as_text(inner), str::to_owned);
    bail!("`{text}` names no column: {} ({advice})", list(names));
}

/// Returns what divides the only column, if its name looks like several.
fn undivided(flags: &RunFlags, names: &[OsString]) -> Option<&'static str> {
    let has = |byte| matches!(names, [name] if name.as_encoded_bytes().contains(&byte));
    match (&flags.input.colsep, flags.input.csv) {
        (_, false) if has(b',') => Some("`--csv` divides at commas"),
        (_, true) if has(b'\t') => Some("`--colsep '\\t'` without `--csv` divides at tabs"),
        (Some(_), false) if has(b'\t') => Some("`--colsep '\\t'` divides at tabs"),
        _ => None,
    }
}

/// Returns how a name in braces is passed on as text.
fn as_text(name: &str) -> String {
    format!("for this text write `{{''{name}}}` in a shell line, or use --rpl '{{text}} {{{name}}}'")
}

fn find<'a>(
    word: &'a OsStr,
    flags: &RunFlags,
    options: &Options,
    names: &[OsString],
) -> Option<(&'a str, String)> {
    let word = word.to_str()?;
    let perl_in = |text: &'a str| {
        let perl = perl(text)?;
        let own = [("seq()", "`{#}` is the number of the job"), ("slot()", "`{%}` is its slot")];
        let own = own.iter().find(|(call, _)| perl.contains(call)).map(|(_, own)| *own);
        let own = own.unwrap_or("with --plus, {/old/new} replaces and {%.gz} removes a text");
        Some((perl, format!("minder runs no Perl ({own})")))
    };
    opened(word).find_map(|text| {
        perl_in(text).or_else(|| {
            let (text, inner) = braces_at(text, options)?;
            Some((text, advice(inner, flags, names)?))
        })
    })
}

/// Returns the texts from each opening brace on. `${…}` is a variable of the shell, and `@{…}` a revision
/// of Git.
fn opened(word: &str) -> impl Iterator<Item = &str> {
    let is_text = |(at, _): &(usize, &str)| !word[..*at].ends_with(['$', '@', '\\']);
    word.match_indices('{').filter(is_text).map(|(at, _)| &word[at..])
}

/// Returns the texts in braces other than placeholders, and what is in the braces.
fn in_braces<'a>(word: &'a str, options: &Options) -> impl Iterator<Item = (&'a str, &'a str)> {
    opened(word).filter_map(|text| braces_at(text, options))
}

/// Returns the text in braces at the start of `text`, unless it is a placeholder.
fn braces_at<'a>(text: &'a str, options: &Options) -> Option<(&'a str, &'a str)> {
    let inner = text.get(1..text.find('}')?)?;
    let text = &text[..inner.len() + 2];
    let is_candidate = inner.len() <= INNER_MAX && !inner.contains('{');
    (is_candidate && !is_placeholder(text, options)).then_some((text, inner))
}

/// Returns how the text between two braces becomes a placeholder, if it looks like one.
fn advice(inner: &str, flags: &RunFlags, names: &[OsString]) -> Option<String> {
    if !flags.placeholders.plus && is_of_plus(inner) {
        return Some("with --plus it is a placeholder".to_owned());
    }
    if let Some(meant) = misspelt(inner) {
        return Some(format!("did you mean `{{{meant}}}`?"));
    }
    // Where columns have names, another name is an error.
    if !is_identifier(inner) || AWK.contains(&inner) || !names.is_empty() || flags.input.header.is_some() {
        return None;
    }
    if flags.input.csv || flags.input.colsep.is_some() {
        return Some("with `--header :` the first line names the columns".to_owned());
    }
    let (_, meant) = NAMES.iter().find(|(name, _)| *name == inner)?;
    Some(format!("did you mean `{meant}`?"))
}

/// Returns how the columns are named.
fn list(names: &[OsString]) -> String {
    const LISTED_MAX: usize = 8;
    let mut listed: Vec<_> = names.iter().take(LISTED_MAX).map(|name| name.to_string_lossy()).collect();
    if names.len() > LISTED_MAX {
        listed.push("…".into());
    }
    let noun = if names.len() == 1 { "the only column is" } else { "the columns are" };
    format!("{noun} {}", listed.join(", "))
}

/// Returns the beginning of a text that is a placeholder of GNU parallel in Perl: `{= … =}`.
fn perl(text: &str) -> Option<&str> {
    let code = text.strip_prefix("{=")?;
    let code = &code[..code.find("=}")?];
    let braces = code.trim_matches(|c| c != '{' && c != '}');
    (!braces.starts_with('}')).then(|| &text[..code.len() + 4])
}

fn is_placeholder(text: &str, options: &Options) -> bool {
    Template::text(&text.into(), options).has_placeholders()
}

fn is_of_plus(inner: &str) -> bool {
    let of_column = inner.trim_start_matches('-').trim_start_matches(|c: char| c.is_ascii_digit());
    let is_word = |text: &str| {
        text.len() >= 2 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    PLUS.contains(&inner)
        || ["0#", "0%"].contains(&inner)
        || PLUS[..8].contains(&of_column)
        || of_column.strip_prefix(":-").is_some_and(is_word)
        || of_column.strip_prefix("%.").is_some_and(is_word)
}

/// Returns the placeholder that was meant by one with a typing error: `/.` for `./`, `1.` for `.1`.
fn misspelt(inner: &str) -> Option<String> {
    let end = inner.find(|c: char| c.is_ascii_digit()).unwrap_or(inner.len());
    let (signs, column) = inner.split_at(end);
    let is_column = !column.is_empty() && column.bytes().all(|byte| byte.is_ascii_digit());
    if is_column && BASIC.contains(&signs) {
        return Some(format!("{column}{signs}"));
    }
    // A flag may have made a text of a placeholder.
    if BASIC.contains(&inner) || !inner.bytes().all(|byte| b"./".contains(&byte)) {
        return None;
    }
    let meant = ["/.", "//"].into_iter().find(|known| strsim::osa_distance(known, inner) == 1);
    meant.map(str::to_owned)
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config::{CompatMode, input};
    use crate::flags::{Flags, Verb};

    #[test]
    fn unknown_column_is_refused_where_columns_have_names() {
        for (flags, names, command, expected) in [
            (
                "--header :",
                &["name", "age"][..],
                "echo {nmae}",
                "`{nmae}` names no column: did you mean `{name}`?",
            ),
            (
                "--header :",
                &["name", "age"],
                "echo {city}",
                "`{city}` names no column: the columns are name, age (for this text write `{''city}` in a \
                 shell line, or use --rpl '{text} {city}')",
            ),
            (
                "--header :",
                &["name,age"],
                "echo {city}",
                "`{city}` names no column: the only column is name,age (`--csv` divides at commas)",
            ),
            (
                "--header : --colsep ;",
                &["name\tage"],
                "echo {city}",
                "`{city}` names no column: the only column is name\tage (`--colsep '\\t'` divides at tabs)",
            ),
            ("--header :", &["name"], "awk '{print}' {name} ${x} HEAD@{u} {.} {name.}", ""),
            ("", &[], "echo {city}", ""),
        ] {
            let line = ["minder", "run"].into_iter().chain(flags.split_whitespace()).chain(["--", command]);
            let Verb::Run(flags) = Flags::try_parse_from(line).expect("parse flags").verb else {
                panic!("another subcommand");
            };
            let names: Vec<OsString> = names.iter().map(OsString::from).collect();
            let words = [OsString::from(command)];
            let options =
                input::options(&flags, CompatMode::Own, &names, &words, None).expect("make options");
            let checked = check_column_names(words.iter(), &flags, &options, &names);
            assert_eq!(
                checked.err().map(|error| error.to_string()).unwrap_or_default(),
                expected,
                "{command}"
            );
        }
    }

    /// Returns the line about a command, which is one argument. `flags` are separated by spaces; `~`
    /// stands for a space within a flag.
    fn hint(flags: &str, names: &[&str], command: &str) -> Option<String> {
        let flags = flags.split_whitespace().map(|flag| flag.replace('~', " "));
        let head = ["minder", "run"].map(str::to_owned).into_iter();
        let line = head.chain(flags).chain(["--".to_owned(), command.to_owned()]);
        let Verb::Run(flags) = Flags::try_parse_from(line).expect("parse flags").verb else {
            panic!("another subcommand");
        };
        let names: Vec<OsString> = names.iter().map(OsString::from).collect();
        let words = [OsString::from(command)];
        let options = input::options(&flags, CompatMode::Own, &names, &words, Some(1)).expect("make options");
        text_placeholder(&words, &flags, &options, &names).map(|hint| hint.line())
    }

    #[test]
    fn text_placeholder_gets_advice() {
        let perl = "minder runs no Perl (with --plus, {/old/new} replaces and {%.gz} removes a text)";
        let plus = "with --plus it is a placeholder";
        let header = "with `--header :` the first line names the columns";
        for (flags, names, command, text, advice) in [
            ("", &[][..], "echo {= s/a/b/ =}", "{= s/a/b/ =}", perl),
            ("", &[], "echo {=1 $_++ =} {..}", "{=1 $_++ =}", perl),
            (
                "",
                &[],
                "echo {= $_=seq() =}",
                "{= $_=seq() =}",
                "minder runs no Perl (`{#}` is the number of the job)",
            ),
            ("", &[], "echo {seq}", "{seq}", "did you mean `{#}`?"),
            ("", &[], "echo {jobslot}", "{jobslot}", "did you mean `{%}`?"),
            ("", &[], "echo {} {..}", "{..}", plus),
            ("", &[], "echo {1..}", "{1..}", plus),
            ("", &[], "echo {-1+/}", "{-1+/}", plus),
            ("", &[], "echo {#} of {##}", "{##}", plus),
            ("", &[], "echo {0#}{slot}", "{0#}", plus),
            ("", &[], "gunzip <{} >{%.gz}", "{%.gz}", plus),
            ("", &[], "echo {2:-none}", "{2:-none}", plus),
            ("", &[], "echo {./}", "{./}", "did you mean `{/.}`?"),
            ("", &[], "echo {///}", "{///}", "did you mean `{//}`?"),
            ("", &[], "echo {.1}", "{.1}", "did you mean `{1.}`?"),
            ("", &[], "echo {//12}", "{//12}", "did you mean `{12//}`?"),
            ("--csv", &[], "echo {name}", "{name}", header),
            ("--colsep ,", &[], "echo {1} {name}", "{name}", header),
        ] {
            let expected = format!("`{text}` is passed on as text: {advice}");
            assert_eq!(hint(flags, names, command), Some(expected), "{flags} {command}");
        }
    }

    #[test]
    fn foreign_variable_names_that_of_minder() {
        let line = |word: &str| foreign_variable(&[word.into()]).map(|hint| hint.line());
        let expected =
            "`$PARALLEL_SEQ` is not set by `minder run`: use `$MINDER_JOB` (`minder parallel` sets both)";
        assert_eq!(line("echo $PARALLEL_SEQ {}").as_deref(), Some(expected));
        assert_eq!(line("echo $MINDER_JOB {}"), None);
    }

    #[test]
    fn text_placeholder_is_silent_about_placeholders_and_other_braces() {
        for (flags, command) in [
            ("", "echo {} {.} {/} {//} {/.} {#} {%} {1} {2.} {-1/}"),
            ("", r#"curl -d '{"a": 1, "b": {}}' url"#),
            ("", "awk '{print}'"),
            ("", "awk '{print $1}' {}"),
            ("", "awk '{ print }'"),
            ("--colsep ,", "awk '{print}' {1}"),
            ("", "git show HEAD@{1} HEAD@{u} @{..}"),
            ("", "find . -exec rm {} +"),
            ("", "echo {1..3} {a..z} {a,b} file{,.bak}"),
            ("", "echo ${x} ${x##*/} ${x%.gz} ${..} ${#x} ${:-none}"),
            ("", "for f in *; do { echo; }; done; {:}"),
            ("", "f() { echo; }; f"),
            ("", "echo {name} {foo_bar} { } {{}} {"),
            ("", "{% if x %} {# note #} {{ x }} {%- x %}"),
            ("", r"grep -E 'a{2,3}b{4,}\{..}'"),
            ("", "python -c 'print(f\"{x:.2f} {y!r} {:2} {:>10}\")'"),
            ("", "echo {=x} {=}"),
            ("--plus", "echo {..} {##} {0#} {slot} {%.gz} {:-none} {+/}"),
            ("--rpl={..}~x", "echo {..}"),
            ("--dirnamereplace DIR --basenameextensionreplace BASE", "echo {//} {/.}"),
            ("-I {..}", "echo {..}"),
        ] {
            assert_eq!(hint(flags, &[], command), None, "{command}");
        }
        assert_eq!(hint("--header :", &["name"], "echo {name} {name.}"), None);
        assert_eq!(hint("--header :", &["one", "two"], "awk '{print}' {one}"), None);
    }
}
