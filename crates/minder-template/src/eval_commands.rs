//! Refuses placeholders in arguments that a program reads as code.
//!
//! This is a courtesy, based on the table in `programs`: an argument is refused if a known program
//! reads it as code whatever the value is. A word counts as a program's name wherever it can be
//! one: first, after a wrapper, and after an unknown program. Values that happen to look like
//! options are not checked here.

use crate::error::Error;
use crate::placeholder::expression::Placeholder;
use crate::program_text::{self, Alphabet, Language, VALUE, ValueCheck};
use crate::programs::{
    EVAL, GATHERERS, INNER_RUN, PLAIN, PROGRAMS, ProgramRule, ProgramTextRule, SHELL, WINDOWS, WRAPPERS,
};
use crate::word::{PROCESS, Word};
use crate::word_list::lists;

/// The minimum length of an abbreviated long option.
const ABBREVIATION_MIN: usize = 3;

/// The content of the program texts in a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramText {
    /// A program text contains an expansion.
    pub(crate) has_expansion: bool,
    /// The variables in the program texts.
    pub(crate) variables: Vec<Vec<u8>>,
    /// The checks of the values in the program texts.
    pub(crate) checks: Vec<ValueCheck>,
    /// The program texts of shells that contain values.
    pub(crate) shell_texts: Vec<ShellText>,
}

/// The values that may stand in program texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    Nothing,
    /// Values that each job checks, where the text is understood.
    PlainValues,
    /// Every value: the user vouches for them.
    Everything,
}

/// The program text of a shell, with values in it.
#[derive(Debug, Clone)]
pub(crate) struct ShellText {
    pub(crate) shell: String,
    pub(crate) text: Vec<u8>,
    /// The values, and the indices in `text` where they stand.
    pub(crate) values: Vec<(usize, Placeholder)>,
    pub(crate) hint: String,
    /// The error if the text is not accepted.
    pub(crate) refusal: Error,
}

impl ShellText {
    pub(crate) fn check(&self, placeholder: &'static [u8], alphabet: Alphabet) -> ValueCheck {
        ValueCheck { placeholder, alphabet, program: self.shell.clone(), hint: self.hint.clone() }
    }
}

/// Checks the words of a command for placeholders in program texts. `windows`: the shell is cmd or
/// PowerShell, and `cmd` is a shell.
pub(crate) fn check_programs(words: &[Word], trust: Trust, windows: bool) -> Result<ProgramText, Error> {
    let trusted = trust == Trust::Everything;
    let mut program_text = ProgramText::default();
    let Some(first) = words.first() else {
        return Ok(program_text);
    };
    let is_wrapped = lists(WRAPPERS, name(first)) || first.is_option() || first.first_expansion.is_some();
    let windows = if windows || std::env::consts::FAMILY == "windows" { WINDOWS } else { &[] };
    let mut first_is_known = false;
    for (at, word) in words.iter().enumerate() {
        // The first word, and any word after a wrapper, can be the name of a program. After an
        // unknown program, a word can be one unless it follows an option.
        let is_name = at == 0 || is_wrapped;
        if !is_name && lists(PLAIN, name(first)) {
            break;
        }
        for rule in PROGRAMS.iter().chain(windows) {
            let Some(rest) = rule.names.iter().find_map(|known| arguments_of(known, word, &words[at + 1..]))
            else {
                continue;
            };
            let takes_operands = matches!(
                rule.code,
                ProgramTextRule::Operand { .. } | ProgramTextRule::Remote { .. } | ProgramTextRule::All
            );
            if !is_name && takes_operands && words[at - 1].is_option() {
                continue;
            }
            // The arguments of a shell or an interpreter are for its own program. Among them only an
            // option such as `-c` directly after the name counts.
            if first_is_known && !is_name && !has_code_option(rule.code, rest) {
                continue;
            }
            first_is_known |= at == 0;
            let program = String::from_utf8_lossy(name(word));
            let code = code_words(rule.code, rest);
            for &i in &code {
                program_text.has_expansion |= rest[i].has_expansion;
                program_text.variables.extend_from_slice(&rest[i].variables);
                let Some(placeholder) = rest[i].placeholder else { continue };
                if trusted {
                    continue;
                }
                let refusal = as_code(placeholder, &program, rule.hint, rest[i].is_single_value());
                if trust != Trust::PlainValues
                    || !accepts_plain_values(rule, &program, rest, &code, i, &refusal, &mut program_text)
                {
                    return Err(refusal);
                }
            }
            if !trusted {
                program_text.checks.extend(perl_files(rule, &program, rest, &code));
            }
            if let Some(process) = rest.iter().find(|word| word.nested && word.text == PROCESS)
                && !trusted
                && !matches!(rule.code, ProgramTextRule::Starts(_))
            {
                let placeholder = process.placeholder.unwrap_or(Placeholder::VALUE);
                return Err(as_code(placeholder, &program, rule.hint, false));
            }
        }
    }
    if !trusted {
        check_unknown(words)?;
        check_wrapped(words)?;
    }
    Ok(program_text)
}

/// Returns whether the program text at the index `at` of `words` may contain values that each job checks,
/// and records the checks. `code` are the indices of all words that are program text.
fn accepts_plain_values(
    rule: &ProgramRule,
    program: &str,
    words: &[Word],
    code: &[usize],
    at: usize,
    refusal: &Error,
    found: &mut ProgramText,
) -> bool {
    let Some(language) = rule.language else { return false };
    let word = &words[at];
    let is_changed = word.has_expansion
        || word.nested
        || word.special
        || word.braces
        || word.one_of_several
        || word.is_option()
        || word.values.first().map(|(index, _)| *index) != word.first_expansion;
    // The texts of several options are one program, except in sed and SQL.
    let is_part = code.len() > 1 && !matches!(language, Language::Sed | Language::Sql | Language::Shell);
    if is_changed || is_part {
        return false;
    }
    let hint = hint_for(rule.hint, program);
    if language == Language::Shell {
        // The text follows the last option.
        if code.iter().any(|other| *other > at) {
            return false;
        }
        found.shell_texts.push(ShellText {
            shell: program.to_owned(),
            text: word.text.clone(),
            values: word.values.clone(),
            hint,
            refusal: refusal.clone(),
        });
        return true;
    }
    let mut text = word.text.clone();
    for (index, _) in word.values.iter().rev() {
        text.insert(*index, VALUE);
    }
    let Some(alphabets) = program_text::alphabets(language, &text) else { return false };
    for ((_, placeholder), alphabet) in word.values.iter().zip(alphabets) {
        found.checks.push(ValueCheck {
            placeholder: placeholder.text(),
            alphabet,
            program: program.to_owned(),
            hint: hint.clone(),
        });
    }
    true
}

/// Refuses a here-string that a shell or an interpreter reads as its program: `bash <<< {}`.
pub(crate) fn check_input(words: &[Word], input: &Word) -> Result<ProgramText, Error> {
    let mut program_text = ProgramText::default();
    let Some((program, rule)) = read_program(words) else { return Ok(program_text) };
    program_text.has_expansion |= input.has_expansion;
    program_text.variables.extend_from_slice(&input.variables);
    match input.placeholder {
        Some(placeholder) => Err(as_code(placeholder, &program, rule.hint, input.is_single_value())),
        None => Ok(program_text),
    }
}

/// Returns the shell or the interpreter that reads its input as its program, and its rule.
pub(crate) fn read_program(words: &[Word]) -> Option<(String, &'static ProgramRule)> {
    words.iter().enumerate().find_map(|(at, word)| {
        let rest = &words[at + 1..];
        let reads_program = |rule: &&ProgramRule| {
            let is_interpreter = match rule.code {
                ProgramTextRule::Shell => true,
                ProgramTextRule::Option { anywhere, .. } => !anywhere && name(word) != b"env",
                _ => false,
            };
            is_interpreter && rule.names.iter().any(|known| arguments_of(known, word, rest).is_some())
        };
        let rule = PROGRAMS.iter().find(reads_program)?;
        let has_script = rest.iter().find(|word| !word.is_option()).is_some_and(|word| word.text != b"-");
        let reads_stdin = rest.iter().any(|word| word.text == b"-s" || word.text == b"-");
        (!has_script || reads_stdin).then(|| (String::from_utf8_lossy(name(word)).into_owned(), rule))
    })
}

/// Returns the checks of values that perl opens with `-n` or `-p` as files: it runs `command|`.
fn perl_files(rule: &ProgramRule, program: &str, words: &[Word], code: &[usize]) -> Vec<ValueCheck> {
    let loops = |word: &Word| {
        let letters = word.text.strip_prefix(b"-").unwrap_or_default();
        let flags = letters.iter().take_while(|letter| !b"eEIMmxFiCdD".contains(letter));
        word.is_option() && flags.clone().any(|letter| b"np".contains(letter))
    };
    let first = code.iter().max().map_or(0, |last| last + 1);
    if rule.language != Some(Language::Perl) || !words.iter().take(first.max(1)).any(loops) {
        return Vec::new();
    }
    let files = words.iter().skip(first).filter(|word| !word.is_option());
    let values = files.flat_map(|word| &word.values).filter(|(_, placeholder)| !placeholder.is_counter());
    let check = |(_, placeholder): &(usize, Placeholder)| ValueCheck {
        placeholder: placeholder.text(),
        alphabet: Alphabet::PerlFile,
        program: program.to_owned(),
        hint: "write `perl -ne '…' < {}` as a shell line".to_owned(),
    };
    values.map(check).collect()
}

/// Returns the arguments of the program `known` if `word` names it. `known` may end in a
/// subcommand, as in `git rebase`; the arguments are then those of the subcommand. A subcommand of minder
/// is its first argument: behind another one, such as `relay`, it may be a word of any command.
fn arguments_of<'w>(known: &str, word: &Word, rest: &'w [Word]) -> Option<&'w [Word]> {
    let (program, subcommand) = match known.split_once(' ') {
        Some((program, subcommand)) => (program, Some(subcommand)),
        None => (known, None),
    };
    let base = name(word);
    let is_program = match program.strip_suffix('*') {
        None => base == program.as_bytes(),
        Some(stem) => base.strip_prefix(stem.as_bytes()).is_some_and(|version| {
            let version = version.strip_suffix(b"-dbg").unwrap_or(version);
            version.iter().all(|byte| byte.is_ascii_digit() || b".-".contains(byte))
        }),
    };
    if !is_program {
        return None;
    }
    let Some(subcommand) = subcommand else { return Some(rest) };
    let is_subcommand = |word: &Word| word.first_expansion.is_none() && word.text == subcommand.as_bytes();
    let at = match program {
        "minder" => rest.first().is_some_and(is_subcommand).then_some(0)?,
        _ => rest.iter().position(is_subcommand)?,
    };
    Some(&rest[at + 1..])
}

/// Refuses several values where a wrapper takes one. The second value would be the command that the
/// wrapper runs: `env V={} cmd`, `timeout {} cmd`.
fn check_wrapped(words: &[Word]) -> Result<(), Error> {
    let program = name(&words[0]);
    let Some(first) = words.iter().position(|word| word.one_of_several) else { return Ok(()) };
    if first == 0 || !lists(WRAPPERS, program) {
        return Ok(());
    }
    let assigns = |word: &Word| word.literal_start().contains(&b'=');
    let before = &words[1..first];
    // After the first operand come the arguments of the wrapped command.
    if lists(GATHERERS, program) || before.iter().any(|w| !w.is_option() && !assigns(w)) {
        return Ok(());
    }
    let tail = &words[first..];
    let (values, after) = tail.split_at(tail.iter().take_while(|word| word.one_of_several).count());
    let start = values[0].literal_start();
    // `V={}` and `-n{}` become one word that keeps its start, and others that do not.
    let is_split = (assigns(&values[0]) || values[0].is_option())
        && values[1..].iter().any(|word| word.literal_start() != start);
    let is_option_argument =
        start.is_empty() && before.last().is_some_and(|word| word.is_option() && word.text != b"--");
    let precedes_command = start.is_empty() && after.iter().any(|word| !word.is_option());
    match values[0].placeholder {
        Some(placeholder) if is_split || is_option_argument || precedes_command => {
            Err(Error::refused(format!(
                "`{placeholder}` stands where `{}` takes one value, and the next would be its command: give \
                 each job one value",
                String::from_utf8_lossy(program)
            )))
        }
        _ => Ok(()),
    }
}

/// Returns an error if a placeholder is part of text that looks like program text, for a program
/// whose name is not known beforehand. Such text follows `-c` or `-e`, and contains spaces.
fn check_unknown(words: &[Word]) -> Result<(), Error> {
    if words[0].first_expansion.is_none() {
        return Ok(());
    }
    for pair in words.windows(2) {
        let is_code_option = matches!(pair[0].text.as_slice(), b"-c" | b"-e" | b"-lc" | b"-ec");
        if let Some(placeholder) = pair[1].placeholder
            && is_code_option
            && pair[1].text.contains(&b' ')
        {
            let option = String::from_utf8_lossy(&pair[0].text);
            return Err(Error::refused(format!(
                "`{placeholder}` is part of the value of `{option}`, which a program that is not known \
                 beforehand may run as code: pass it as a separate argument"
            )));
        }
    }
    Ok(())
}

/// Returns whether the first argument is an option for program text, such as `-c` or `-lc`.
fn has_code_option(code: ProgramTextRule, rest: &[Word]) -> bool {
    let letters = match code {
        ProgramTextRule::Shell => b"c".as_slice(),
        ProgramTextRule::Option { letters, .. } => letters,
        _ => return false,
    };
    let cluster = rest.first().map_or(b"".as_slice(), |word| &word.text);
    cluster.starts_with(b"-") && !cluster.starts_with(b"--") && cluster.iter().any(|b| letters.contains(b))
}

/// Returns the indices of the arguments that are program text.
fn code_words(code: ProgramTextRule, words: &[Word]) -> Vec<usize> {
    let mut found = match code {
        ProgramTextRule::All => return (0..words.len()).collect(),
        ProgramTextRule::Semaphore => {
            let name = semaphore_name(words);
            return (0..words.len()).filter(|at| Some(*at) != name).collect();
        }
        ProgramTextRule::Starts(starts) => {
            let begins =
                |word: &Word| starts.iter().any(|start| word.literal_start().starts_with(start.as_bytes()));
            return (0..words.len()).filter(|&i| begins(&words[i])).collect();
        }
        ProgramTextRule::Shell => shell_code(words),
        ProgramTextRule::Option { letters, long, takes, anywhere } => {
            option_code(letters, long, takes, anywhere, words).0
        }
        ProgramTextRule::Operand { takes, anywhere } => {
            let (mut found, operand) = option_code(b"e", &["expression", "source"], takes, anywhere, words);
            let before = operand.unwrap_or(words.len());
            // An `sed` that stops at the first operand takes no program text from an option after it.
            if !found.iter().any(|&i| i < before) && !words[..before].iter().any(|w| names_file(w, takes)) {
                found.extend(operand);
            }
            found
        }
        ProgramTextRule::Remote { long, takes } => {
            let (mut found, host) = option_code(b"", long, takes, false, words);
            found.extend(host.map_or(0..0, |host| host + 1..words.len()));
            found
        }
    };
    // Braces make several words of one. These may be an option and its argument.
    found.extend((0..words.len()).filter(|&i| words[i].braces && words[i].literal_start().contains(&b'{')));
    found
}

/// Returns the index of the value of `--id`, if it is one value, and only options that are known precede it:
/// behind another word, it may be an argument of the command.
fn semaphore_name(words: &[Word]) -> Option<usize> {
    let mut at = 0;
    loop {
        let word =
            words.get(at).filter(|word| word.first_expansion.is_none() && word.placeholder.is_none())?;
        let next = words.get(at + 1);
        at += match word.text.as_slice() {
            b"--fg" | b"--bg" => 1,
            b"-j" if next.is_some_and(|next| is_number(&next.text)) => 2,
            b"--id" | b"--semaphore-name" => {
                let is_one = |next: &&Word| next.placeholder.is_some() && next.is_single_value();
                return next.filter(is_one).filter(|next| !next.one_of_several).map(|_| at + 1);
            }
            text if text.strip_prefix(b"-j").is_some_and(is_number) => 1,
            _ => return None,
        };
    }
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// Returns whether an option, such as `-f` or `-nf`, names a file with the program text.
fn names_file(word: &Word, takes: &[u8]) -> bool {
    let is_special = |letter: &&u8| **letter == b'e' || takes.contains(letter);
    match word.text.strip_prefix(b"-") {
        Some(long) if long.starts_with(b"-") => long.starts_with(b"-file"),
        Some(letters) => letters.iter().find(is_special) == Some(&b'f'),
        None => false,
    }
}

/// Returns the indices of the arguments of a shell that are program text: the first operand, if an
/// option contains `c`.
fn shell_code(words: &[Word]) -> Vec<usize> {
    let option = |w: &Word| w.is_option() || w.literal_start().starts_with(b"+");
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|w| option(w) && w.text != b"--") {
        let cluster = &word.text[1..];
        if cluster.first() != Some(&b'-') && (cluster.contains(&b'c') || word.placeholder.is_some()) {
            // The program text follows the last option. A value among the options may be one, too.
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

/// Returns the indices of the arguments that are program text because of an option, and the index
/// of the first operand. See [`ProgramTextRule::Option`] for the parameters.
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
        // Some programs, such as emacs, accept long options with one dash.
        let bare = text.strip_prefix(b"--").unwrap_or(&text[1..]);
        let option = bare.split(|&b| b == b'=').next().unwrap_or(bare);
        if !option.is_empty() && long.iter().any(|name| name.as_bytes() == option) {
            found.push(if bare.contains(&b'=') { here } else { at });
            at += usize::from(!bare.contains(&b'='));
            continue;
        }
        // It may also be another option, whose argument is not known.
        let is_short_for =
            |name: &&str| option.len() >= ABBREVIATION_MIN && name.as_bytes().starts_with(option);
        if text.starts_with(b"--") && long.iter().any(is_short_for) {
            found.push(if bare.contains(&b'=') { here } else { at });
        }
        if text.starts_with(b"--") {
            continue;
        }
        let special = |b: &u8| letters.contains(b) || takes.contains(b);
        let Some(letter) = text[1..].iter().position(special) else {
            // A value among the letters of an option may contain the letter and the program text.
            if word.placeholder.is_some() && !letters.is_empty() {
                found.push(here);
            }
            continue;
        };
        let attached = letter + 2 < text.len() || word.first_expansion.is_some();
        if letters.contains(&text[1 + letter]) {
            found.push(if attached { here } else { at });
        }
        at += usize::from(!attached);
    }
    found.retain(|&i| i < words.len());
    (found, operand.filter(|&i| i < words.len()))
}

/// Returns the name of a program without its directory and `.exe`.
pub(crate) fn name(word: &Word) -> &[u8] {
    let base = word.text.rsplit(|&b| b == b'/').next().unwrap_or(b"");
    base.strip_suffix(b".exe").unwrap_or(base)
}

fn hint_for(hint: &str, program: &str) -> String {
    hint.replace("% ", &format!("{program} "))
}

fn as_code(placeholder: Placeholder, program: &str, hint: &str, whole: bool) -> Error {
    let part = if whole { "is" } else { "is part of" };
    let shell = if program == "eval" { "sh" } else { program };
    let hint = match hint {
        INNER_RUN => {
            let text =
                format!("`{placeholder}` would be run as a command by the inner `{program}`: {INNER_RUN}");
            return Error::refused(text);
        }
        SHELL | EVAL if whole => {
            format!("to run values as programs on purpose, pipe them: `printf '%s\\n' {{}} | {shell}`")
        }
        hint => hint_for(hint, program),
    };
    let hint = hint.replace("{}", &placeholder.to_string());
    Error::refused(format!(
        "`{placeholder}` {part} the program text of `{program}`, which runs it as code: {hint}"
    ))
}
