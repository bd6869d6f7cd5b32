//! Random inputs, cut into parts for the jobs in random ways.

use proptest::prelude::*;

use super::Invocation;

/// The parts of which an input is made.
const PARTS: &[&str] = &[
    "a",
    "b",
    "1",
    "22",
    "long text",
    "\n",
    "\n",
    "\n",
    "\n\n",
    ";",
    ",",
    ">",
    ">a\n",
    ";>",
    " ",
    "ä",
    "END",
    "x;y,z\n",
    "\0",
];

/// Flags for the end or the beginning of a record.
const RECORDS: &[&[&str]] = &[
    &[],
    &[],
    &["--recend", ";"],
    &["--recend", "\\n\\n"],
    &["--recend", "END"],
    &["--recend", ""],
    &["--recstart", ">"],
    &["--recend", "\\n", "--recstart", ">"],
    &["--recend", ";", "--recstart", ">"],
    &["--regexp", "--recend", "[;,]"],
    &["--regexp", "--recend", "\\n+"],
    &["--regexp", "--recstart", "[0-9]"],
];

/// Flags for the amount of input that a job gets.
const AMOUNTS: &[&[&str]] = &[
    &[],
    &["--block", "1"],
    &["--block", "5"],
    &["--block", "12"],
    &["--block", "40"],
    &["-N1"],
    &["-N2"],
    &["-N3"],
    &["-L1"],
    &["-L2"],
    &["-L2", "-N2"],
    &["-N2", "--block", "8"],
];

const HEADERS: &[&[&str]] = &[&[], &[], &[], &[], &["--header", ":"], &["--header", "2"]];

const MANNERS: &[&[&str]] = &[
    &["-k"],
    &["-j1"],
    &["-k", "-j3"],
    &["-k", "--tagstring", "{#}"],
    &["-j1", "--lb"],
    &["-k", "-r"],
    &["-j1", "-u"],
];

/// Flags for the way in which a job gets its part, and its command.
const MODES: &[(&[&str], &str)] = &[
    (&["--pipe"], "cat; echo \"<$PARALLEL_SEQ>\""),
    (&["--pipe"], "cat; echo '<{#}>'"),
    (&["--pipe", "--cat"], "cat {}; echo '<{#}>'"),
    (&["--pipe", "--fifo"], "cat {}; echo '<{#}>'"),
    (&["--pipe-part", "-a", "file"], "cat; echo '<{#}>'"),
];

/// Returns a random input, and a random way to cut it.
pub(super) fn invocation() -> impl Strategy<Value = Invocation> {
    let choices = (
        prop::sample::select(MODES),
        prop::sample::select(RECORDS),
        prop::sample::select(AMOUNTS),
        prop::sample::select(HEADERS),
        prop::sample::select(MANNERS),
        prop::bool::weighted(0.2),
    );
    let input = prop::collection::vec(prop::sample::select(PARTS), 0..20);
    (choices, input).prop_map(|((mode, records, amount, header, manner, is_bare), input)| {
        // The parts of a file are found by their size alone.
        let by_size = |amount: &&[&str]| !mode.0.contains(&"--pipe-part") || amount[0] == "--block";
        let amount = Some(amount).filter(|amount| !amount.is_empty()).filter(by_size).unwrap_or(&[]);
        let bare: &[&str] = if is_bare { &["--rrs"] } else { &[] };
        let words = [mode.0, records, amount, header, manner, bare, &[mode.1]].concat();
        let bytes = input.concat().into_bytes();
        let in_file = mode.0.contains(&"file");
        Invocation {
            words: words.into_iter().map(str::to_owned).collect(),
            input: if in_file { Vec::new() } else { bytes.clone() },
            files: if in_file { vec![("file".to_owned(), bytes)] } else { Vec::new() },
            is_quoted: false,
            is_plain: true,
            has_blank: false,
            has_empty: false,
            has_control: false,
            has_end: false,
            is_sorted: false,
        }
    })
}

/// Returns whether `-N` counts records and one of them consists only of its end, of its start, or
/// of the bytes before the first start.
pub(super) fn has_bare_record(invocation: &Invocation) -> bool {
    if !["-N1", "-N2", "-N3"].iter().any(|amount| invocation.has(amount)) {
        return false;
    }
    let value = |flag: &str| {
        let at = invocation.words.iter().position(|word| word == flag)?;
        Some(invocation.words[at + 1].as_str())
    };
    let text = String::from_utf8_lossy(&invocation.input);
    let lines = value("--header").map_or(0, |lines| lines.parse().unwrap_or(1));
    let text = text.splitn(lines + 1, '\n').last().unwrap_or_default();
    let borders: &[&str] = match (value("--recend"), value("--recstart")) {
        (Some("[;,]"), _) => &[";", ","],
        (Some("END"), _) => &["END"],
        (Some(";"), None) => &[";"],
        (Some("\\n\\n"), None) => &["\n\n", "\n"],
        (Some(""), None) => return false,
        (None | Some("\\n" | "\\n+"), None) => &["\n"],
        (None, Some(">")) => return !text.starts_with('>') || text.contains(">>"),
        // What begins and ends records at once.
        _ => return true,
    };
    let follows = |border: &&str| borders.iter().any(|next| text.contains(&format!("{border}{next}")));
    borders.iter().any(|border| text.starts_with(border)) || borders.iter().any(follows)
}
