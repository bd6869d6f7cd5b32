//! The commands that read an argument as a program: where a placeholder in it would be code.
//!
//! This is a courtesy, by the table in `programs`: a place is refused when a known program reads it
//! as code whatever the value is. A program's name counts wherever it can be one: in front, behind
//! a wrapper, and behind a program that is not known. A value that happens to look like an option
//! is not this module's subject.

use crate::error::Error;
use crate::placeholder::expression::Placeholder;
use crate::programs::{Code, GATHERERS, PLAIN, PROGRAMS, Row, SHELL, WINDOWS, WRAPPERS};
use crate::word::{PROCESS, Word};
use crate::word_list::lists;

/// What a look at a command's words finds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reached {
    /// Some program gets an expansion as code.
    pub(crate) expands: bool,
    /// The variables in it.
    pub(crate) names: Vec<Vec<u8>>,
}

/// CheckCache a command whose words reach programs only. `harmless`: values are what `--only` says.
/// `windows`: `cmd` is its shell.
pub(crate) fn check_programs(words: &[Word], harmless: bool, windows: bool) -> Result<Reached, Error> {
    let mut reached = Reached::default();
    let Some(first) = words.first() else {
        return Ok(reached);
    };
    let first_name = String::from_utf8_lossy(name(first)).into_owned();
    let wrapped = lists(WRAPPERS, first_name.as_bytes()) || first.is_option() || first.gap.is_some();
    let windows = if windows || std::env::consts::FAMILY == "windows" { WINDOWS } else { &[] };
    let mut found = false;
    for (at, word) in words.iter().enumerate() {
        // What is a program's name for sure; behind a program that is not known, only what does not follow
        // an option.
        let known = at == 0 || wrapped;
        if !known && lists(PLAIN, first_name.as_bytes()) {
            break;
        }
        for row in PROGRAMS.iter().chain(windows) {
            let Some(rest) = row.names.iter().find_map(|known| behind(known, word, &words[at + 1..])) else {
                continue;
            };
            let unlikely = matches!(row.code, Code::Operand { .. } | Code::Remote { .. } | Code::All);
            if !known && unlikely && words[at - 1].is_option() {
                continue;
            }
            // Behind a shell's or a language's own program stands what that one reads: only the unmistakable
            // counts.
            if found && !known && !direct_flag(row.code, rest) {
                continue;
            }
            found |= at == 0;
            let program = String::from_utf8_lossy(name(word)).into_owned();
            for &i in &code_words(row.code, rest) {
                reached.expands |= rest[i].dynamic;
                reached.names.extend_from_slice(&rest[i].names);
                if let (Some(placeholder), false) = (rest[i].holds, harmless) {
                    return Err(as_code(placeholder, &program, row.cure, rest[i].is_whole()));
                }
            }
            if let Some(holder) = rest.iter().find(|w| w.nested && w.text == PROCESS)
                && !harmless
                && !matches!(row.code, Code::Starts(_))
            {
                return Err(as_code(holder.holds.unwrap_or(Placeholder::VALUE), &program, row.cure, false));
            }
        }
    }
    if !harmless {
        check_unknown(words)?;
        check_wrapped(words)?;
    }
    Ok(reached)
}

/// Refuses a text that a shell or a language reads as its program from standard input: `bash <<<
/// {}`.
pub(crate) fn check_input(words: &[Word], input: &Word) -> Result<Reached, Error> {
    let mut reached = Reached::default();
    for (at, word) in words.iter().enumerate() {
        let rest = &words[at + 1..];
        let reads = |row: &&Row| {
            let code = match row.code {
                Code::Shell => true,
                Code::Option { anywhere, .. } => !anywhere && name(word) != b"env",
                _ => false,
            };
            code && row.names.iter().any(|known| behind(known, word, rest).is_some())
        };
        let Some(row) = PROGRAMS.iter().find(reads) else { continue };
        let script = rest.iter().find(|word| !word.is_option()).is_some_and(|word| word.text != b"-");
        let stdin = rest.iter().any(|word| word.text == b"-s" || word.text == b"-");
        if !script || stdin {
            reached.expands |= input.dynamic;
            reached.names.extend_from_slice(&input.names);
            if let Some(placeholder) = input.holds {
                return Err(as_code(
                    placeholder,
                    &String::from_utf8_lossy(name(word)),
                    row.cure,
                    input.is_whole(),
                ));
            }
        }
    }
    Ok(reached)
}

/// Returns the words behind this program, and behind its verb if the name has one.
fn behind<'w>(known: &str, word: &Word, rest: &'w [Word]) -> Option<&'w [Word]> {
    let (program, verb) =
        known.split_once(' ').map_or((known, None), |(program, verb)| (program, Some(verb)));
    let base = name(word);
    let is = match program.strip_suffix('*') {
        None => base == program.as_bytes(),
        Some(stem) => base.strip_prefix(stem.as_bytes()).is_some_and(|version| {
            let version = version.strip_suffix(b"-dbg").unwrap_or(version);
            version.iter().all(|byte| byte.is_ascii_digit() || b".-".contains(byte))
        }),
    };
    match verb {
        _ if !is => None,
        None => Some(rest),
        Some(verb) => {
            let at = rest.iter().position(|word| word.gap.is_none() && word.text == verb.as_bytes())?;
            Some(&rest[at + 1..])
        }
    }
}

/// Several values where a wrapper wants one: the second would be the command that it runs. `env
/// V={} cmd`, `timeout {} cmd`.
fn check_wrapped(words: &[Word]) -> Result<(), Error> {
    let program = name(&words[0]);
    let first = words.iter().position(|word| word.several);
    let (Some(first), true) = (first.filter(|&i| i > 0), lists(WRAPPERS, program)) else {
        return Ok(());
    };
    let assigns = |word: &Word| word.start().contains(&b'=');
    let before = &words[1..first];
    // Behind a first operand stands what the wrapped command takes.
    if lists(GATHERERS, program) || before.iter().any(|w| !w.is_option() && !assigns(w)) {
        return Ok(());
    }
    let run = &words[first..];
    let length = run.iter().take_while(|word| word.several).count();
    let split = (assigns(&run[0]) || run[0].is_option())
        && run[1..length].iter().any(|w| w.start() != run[0].start());
    let argument =
        run[0].start().is_empty() && before.last().is_some_and(|word| word.is_option() && word.text != b"--");
    let command = run[0].start().is_empty() && run[length..].iter().any(|word| !word.is_option());
    match run[0].holds {
        Some(placeholder) if split || argument || command => Err(Error::refused(format!(
            "`{placeholder}` stands where `{}` takes one value, and the next would be its command: give each job one value",
            String::from_utf8_lossy(program)
        ))),
        _ => Ok(()),
    }
}

/// A program that is not known before the job runs: text with blanks after its `-c` or `-e` looks
/// like a program.
fn check_unknown(words: &[Word]) -> Result<(), Error> {
    if words[0].gap.is_none() {
        return Ok(());
    }
    for pair in words.windows(2) {
        let flagged = matches!(pair[0].text.as_slice(), b"-c" | b"-e" | b"-lc" | b"-ec");
        if let (true, Some(placeholder)) = (flagged, pair[1].holds)
            && pair[1].text.contains(&b' ')
        {
            return Err(Error::refused(format!(
                "`{placeholder}` is part of the program text of a program that is not known beforehand, which may run it as code: hand it over as an argument of its own"
            )));
        }
    }
    Ok(())
}

fn direct_flag(code: Code, rest: &[Word]) -> bool {
    let letters = match code {
        Code::Shell => b"c".as_slice(),
        Code::Option { letters, .. } => letters,
        _ => return false,
    };
    let cluster = rest.first().map_or(b"".as_slice(), |word| &word.text);
    cluster.starts_with(b"-") && !cluster.starts_with(b"--") && cluster.iter().any(|b| letters.contains(b))
}

/// Finds the words after a program's name that hold program text.
fn code_words(code: Code, words: &[Word]) -> Vec<usize> {
    let mut found = match code {
        Code::All => return (0..words.len()).collect(),
        Code::Starts(starts) => {
            let begins = |word: &Word| starts.iter().any(|start| word.start().starts_with(start.as_bytes()));
            return (0..words.len()).filter(|&i| begins(&words[i])).collect();
        }
        Code::Shell => shell_code(words),
        Code::Option { letters, long, takes, anywhere } => {
            option_code(letters, long, takes, anywhere, words).0
        }
        Code::Operand { takes } => {
            let (mut found, operand) = option_code(b"e", &["expression", "source"], takes, false, words);
            let given = |w: &Word| w.text.starts_with(b"-f") || w.text.starts_with(b"--file");
            let before = &words[..operand.unwrap_or(words.len())];
            if let (true, Some(operand)) = (found.is_empty() && !before.iter().any(given), operand) {
                found.push(operand);
            }
            found
        }
        Code::Remote { takes } => match option_code(b"", &[], takes, false, words).1 {
            Some(host) => (host + 1..words.len()).collect(),
            None => Vec::new(),
        },
    };
    // Braces make several words of one, which may be an option and its argument.
    found.extend((0..words.len()).filter(|&i| words[i].braces && words[i].start().contains(&b'{')));
    found
}

fn shell_code(words: &[Word]) -> Vec<usize> {
    let option = |w: &Word| w.is_option() || w.start().starts_with(b"+");
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|w| option(w) && w.text != b"--") {
        let cluster = &word.text[1..];
        if cluster.first() != Some(&b'-') && (cluster.contains(&b'c') || word.holds.is_some()) {
            // The program text follows the last option; a value among the options is as bad.
            let end = (at + 1..words.len()).find(|&i| !option(&words[i])).unwrap_or(words.len());
            return (at..words.len().min(end + 1)).collect();
        }
        let takes = cluster.ends_with(b"o")
            || cluster.ends_with(b"O")
            || matches!(cluster, b"-rcfile" | b"-init-file");
        at += if takes { 2 } else { 1 };
    }
    Vec::new()
}

/// The words that are code because of an option, and the first operand.
fn option_code(
    letters: &[u8],
    long: &[&str],
    takes: &[u8],
    anywhere: bool,
    words: &[Word],
) -> (Vec<usize>, Option<usize>) {
    let mut found = Vec::new();
    let mut operand = None;
    let mut at = 0;
    while at < words.len() {
        let word = &words[at];
        let text = word.text.as_slice();
        let here = at;
        at += 1;
        if !word.is_option() || text == b"--" {
            operand.get_or_insert(if text == b"--" { at } else { here });
            if anywhere && text != b"--" {
                continue;
            }
            break;
        }
        // Long options are also read with one dash, as emacs has them.
        let bare = text.strip_prefix(b"--").unwrap_or(&text[1..]);
        let option = bare.split(|&b| b == b'=').next().unwrap_or(bare);
        if !option.is_empty() && long.iter().any(|name| name.as_bytes() == option) {
            found.push(if bare.contains(&b'=') { here } else { at });
            at += usize::from(!bare.contains(&b'='));
            continue;
        }
        if text.starts_with(b"--") {
            continue;
        }
        let special = |b: &u8| letters.contains(b) || takes.contains(b);
        let Some(letter) = text[1..].iter().position(special) else {
            // A value among the letters of an option may be the letter, and the program.
            if word.holds.is_some() && !letters.is_empty() {
                found.push(here);
            }
            continue;
        };
        let attached = letter + 2 < text.len() || word.gap.is_some();
        if letters.contains(&text[1 + letter]) {
            found.push(if attached { here } else { at });
        }
        at += usize::from(!attached);
    }
    found.retain(|&i| i < words.len());
    (found, operand.filter(|&i| i < words.len()))
}

/// The name that decides what a program is: without folder and `.exe`.
pub(crate) fn name(word: &Word) -> &[u8] {
    let base = word.text.rsplit(|&b| b == b'/').next().unwrap_or(b"");
    base.strip_suffix(b".exe").unwrap_or(base)
}

fn as_code(placeholder: Placeholder, program: &str, cure: &str, whole: bool) -> Error {
    let part = if whole { "is" } else { "is part of" };
    let cure = match cure {
        SHELL if whole => {
            format!("to run values as programs on purpose, pipe them: `printf '%s\\n' {{}} | {program}`")
        }
        cure => cure.replace("% ", &format!("{program} ")),
    };
    Error::refused(format!(
        "`{placeholder}` {part} the program text of `{program}`, which runs it as code: {cure}"
    ))
}
