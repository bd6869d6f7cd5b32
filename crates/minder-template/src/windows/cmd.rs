//! The scanner of lines for `cmd.exe`: which quotes a place stands in, and of which command it is a
//! part.
//!
//! cmd goes over its line in phases ("cmd" and "Command prompt line string limitation" on
//! learn.microsoft.com; `cmd /?`, `set /?`): first each `%NAME%` becomes what the variable holds,
//! from left to right, and what came of it is not looked at again; then the line is taken apart,
//! where between double quotes nothing but the end of the quotes means anything; then commands run.
//! A value stands in the line as `"%MINDER_V1%"`. It enters in the first phase, and finds itself
//! between quotes that it cannot end in the second, since it holds none.
//!
//! So a place is refused where the first phase would not come upon our variable (behind a lone `%`,
//! in the name of another one), where the quotes around it would be none (behind `^`, behind a
//! variable that holds a quote), and where a line is read a second time: `call`, `start`, `for`,
//! another shell. A pipe starts another cmd for each of its sides unless that is a program: there
//! values with a `%` are refused, job by job.
//!
//! A variable of the user's is read as what it holds, since cmd does so, too: it may be several
//! words, or the name of a shell.

use std::ffi::OsString;
use std::ops::Range;

use crate::error::Error;
use crate::eval_commands;
use crate::options::Repeat;
use crate::placeholder::expression::Placeholder;
use crate::placeholder::set::PlaceholderSet;
use crate::placeholder::site::{PlaceholderSite, Quote};
use crate::windows::scanned_line::{Place, Scanned};
use crate::word::{Word, single};

/// How a line is read.
pub(crate) struct Rules<'a> {
    pub(crate) placeholders: &'a PlaceholderSet,
    pub(crate) repeat: Repeat,
    /// What the variables of the user's hold.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// How the names of our variables begin, as cmd reads them.
const OURS: &str = "MINDER_V";

/// Commands that read their arguments a second time, or as a command; and what to do.
const AGAIN: [(&str, &str); 6] = [
    ("call", "which expands variables in it again: leave `call` out"),
    ("start", "which hands it to another cmd: leave `start` out"),
    ("forfiles", "which makes a command of it: give the files as arguments of the run"),
    ("runas", "which makes a command of it: give the command as several words"),
    ("schtasks", "which makes a command of it: give the command as several words"),
    ("psexec", "which makes a command of it: give the command as several words"),
];

/// Shells, and what reads a program in its arguments, beside those that are known everywhere.
const SHELLS: [&str; 8] = ["cmd", "%comspec%", "powershell", "pwsh", "wsl", "wmic", "mshta", "at"];

/// What cmd does itself: no runtime takes these words apart, so no backslash before a quote means
/// anything.
const INTERNAL: [&str; 41] = [
    "assoc", "break", "cd", "chdir", "cls", "color", "copy", "date", "del", "dir", "dpath", "echo",
    "endlocal", "erase", "exit", "ftype", "goto", "if", "keys", "md", "mkdir", "mklink", "move", "path",
    "pause", "popd", "prompt", "pushd", "rd", "rem", "ren", "rename", "rmdir", "set", "setlocal", "shift",
    "time", "title", "type", "ver", "verify",
];

/// Variables that cmd makes up, which may hold what they like.
const MADE_UP: [&str; 4] = ["cd", "cmdcmdline", "__cd__", "__appdir__"];

pub(crate) fn scan(text: &[u8], rules: &Rules<'_>, count: usize) -> Result<Scanned, Error> {
    if text.iter().any(|byte| b"\r\n".contains(byte)) {
        return Err(Error::syntax(crate::shell::MORE_LINES));
    }
    let mut scanner = Scanner::new(text, rules, count);
    scanner.list()?;
    scanner.judge_all()?;
    let Scanner { seen, places, spans, tail, .. } = scanner;
    Ok(Scanned { seen, places, spans, tail })
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    rules: &'a Rules<'a>,
    count: usize,
    seen: Vec<PlaceholderSite>,
    places: Vec<Place>,
    spans: Vec<Range<usize>>,
    tail: Option<usize>,
    /// How many parentheses are open.
    depth: usize,
    /// A `%` that begins no variable came by.
    lone: bool,
    /// Some `%` came by.
    percent: bool,
    /// A variable of cmd's own making ends here.
    made_up: Option<usize>,
    piped: bool,
    /// A value goes into a variable.
    stores: bool,
    /// Something reads variables again.
    again: bool,
    /// A command with which no line of placeholders can be followed.
    alien: Option<&'static str>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a [u8], rules: &'a Rules<'a>, count: usize) -> Self {
        Self {
            text,
            at: 0,
            rules,
            count,
            seen: Vec::new(),
            places: Vec::new(),
            spans: Vec::new(),
            tail: None,
            depth: 0,
            lone: false,
            percent: false,
            made_up: None,
            piped: false,
            stores: false,
            again: false,
            alien: None,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    fn skip(&mut self, bytes: &[u8]) {
        while self.peek().is_some_and(|byte| bytes.contains(&byte)) {
            self.at += 1;
        }
    }

    /// Commands, and what joins them.
    fn list(&mut self) -> Result<(), Error> {
        loop {
            if self.rules.placeholders.placeholder_at(self.rest()).is_none() {
                self.skip(b"@");
            }
            match self.peek() {
                None => break,
                Some(_) if self.rules.placeholders.placeholder_at(self.rest()).is_some() => self.command()?,
                Some(b' ' | b'\t' | b',' | b';' | b'=') => self.at += 1,
                Some(b'(') => {
                    (self.depth, self.tail) = (self.depth + 1, None);
                    self.at += 1;
                }
                Some(b')') if self.depth > 0 => {
                    (self.depth, self.tail) = (self.depth - 1, None);
                    self.at += 1;
                }
                Some(b')') => return Err(Error::syntax("a `)` closes nothing")),
                Some(byte @ (b'&' | b'|')) => {
                    let twice = self.rest().get(1) == Some(&byte);
                    self.piped |= byte == b'|' && !twice;
                    self.at += if twice { 2 } else { 1 };
                    self.tail = None;
                }
                Some(_) => self.command()?,
            }
        }
        match self.depth {
            0 => Ok(()),
            _ => Err(Error::syntax("a `(` is not closed")),
        }
    }

    fn command(&mut self) -> Result<(), Error> {
        let first = self.seen.len();
        let mut words = Vec::new();
        let mut end = self.at;
        loop {
            if self.rules.placeholders.placeholder_at(self.rest()).is_none() {
                // Between a command's name and its arguments these are blanks.
                self.skip(if words.len() <= 1 { b" \t,;=" } else { b" \t" });
            }
            match self.peek() {
                Some(_) if self.rules.placeholders.placeholder_at(self.rest()).is_some() => {
                    self.words(&mut words, true)?
                }
                None | Some(b'&' | b'|') => break,
                Some(b')') if self.depth > 0 => break,
                Some(b'<' | b'>') => self.redirection()?,
                Some(_) => self.words(&mut words, true)?,
            }
            end = self.at;
            match words.as_slice() {
                [word] if word.text.eq_ignore_ascii_case(b"if") && word.gap.is_none() => {
                    return self.condition(first);
                }
                [word] if word.text.eq_ignore_ascii_case(b"else") && word.gap.is_none() => {
                    self.tail = None;
                    return Ok(());
                }
                [word, ..] => self.alien = self.alien.or(alien(word)),
                [] => {}
            }
        }
        self.tail = (!words.is_empty() && self.depth == 0 && self.alien.is_none()).then_some(end);
        self.judge(&words, first)
    }

    /// What stands between `if` and its command.
    fn condition(&mut self, first: usize) -> Result<(), Error> {
        self.tail = None;
        loop {
            let word = self.operand()?.text.to_ascii_lowercase();
            match word.as_slice() {
                b"/i" | b"not" => continue,
                b"exist" | b"defined" | b"errorlevel" | b"cmdextversion" => drop(self.operand()?),
                _ => {
                    self.skip(b" \t");
                    if self.rest().starts_with(b"==") {
                        self.at += 2;
                    } else {
                        let operator = self.operand()?.text.to_ascii_lowercase();
                        let known = [b"equ", b"neq", b"lss", b"leq", b"gtr", b"geq"];
                        if !known.iter().any(|known| known.as_slice() == operator) {
                            return Err(unfollowed_if());
                        }
                    }
                    self.operand()?;
                }
            }
            break;
        }
        for place in &mut self.places[first..] {
            place.program = false;
        }
        Ok(())
    }

    /// One word of a condition. Only some versions of cmd take a parenthesis for a part of it.
    fn operand(&mut self) -> Result<Word, Error> {
        let before = self.seen.len();
        self.skip(b" \t,;");
        let (from, mut words) = (self.at, Vec::new());
        self.words(&mut words, false)?;
        match single(&words, self.seen.get(before), ALONE)? {
            Some(word) if self.at > from && self.peek() != Some(b'(') => Ok(word.clone()),
            _ => Err(unfollowed_if()),
        }
    }

    fn redirection(&mut self) -> Result<(), Error> {
        self.skip(b"<>");
        if self.peek() == Some(b'&') {
            self.at += 1;
            return match self.peek() {
                Some(b'0'..=b'9') => {
                    self.at += 1;
                    Ok(())
                }
                _ => Err(Error::syntax("a redirection has no target")),
            };
        }
        self.skip(b" \t");
        let (before, from) = (self.seen.len(), self.at);
        let mut words = Vec::new();
        self.words(&mut words, true)?;
        if self.at == from {
            return Err(Error::syntax("a redirection has no target"));
        }
        single(&words, self.seen.get(before), ALONE)?;
        for place in &mut self.places[before..] {
            place.program = false;
        }
        Ok(())
    }

    /// Reads one word of the template; with several arguments it may be several, with none no word.
    /// `argument`: a `=` is a part of it.
    fn words(&mut self, words: &mut Vec<Word>, argument: bool) -> Result<(), Error> {
        let (from, before) = (self.at, self.seen.len());
        let count = if self.rules.repeat == Repeat::Context && self.count > 0 { 1 } else { self.count };
        let first = argument && words.is_empty();
        let (mut word, mut literal, mut expanded) = (Word::default(), false, false);
        loop {
            if let Some(placeholder) = self.placeholder(Quote::Bare)? {
                let count = if placeholder.repeats() { count } else { 1 };
                word.values(placeholder, count, words);
                literal |= count == 1;
                continue;
            }
            match self.peek() {
                None | Some(b' ' | b'\t' | b'&' | b'|') => break,
                Some(b')') if self.depth > 0 => break,
                Some(b'=' | b',' | b';') if !argument || first => break,
                Some(b'(') if !argument => break,
                Some(b'<' | b'>') => {
                    // The number of a handle is a part of the redirection.
                    if matches!(&self.text[from..self.at], [b'0'..=b'9']) {
                        return Ok(());
                    }
                    break;
                }
                Some(b'"') => self.quotes(&mut word)?,
                Some(b'^') => self.caret(&mut word)?,
                Some(b'%') => {
                    let held = self.percent(&mut word)?;
                    self.spread(&held, &mut word, words, argument)?;
                    expanded = true;
                    continue;
                }
                Some(byte) => {
                    word.text.push(byte);
                    self.at += 1;
                }
            }
            literal = true;
        }
        let repeats = self.seen[before..].iter().any(|seen| seen.placeholder.repeats());
        if repeats && self.rules.repeat == Repeat::Context {
            self.spans.push(from..self.at);
            if self.count > 1 {
                words.extend(std::iter::repeat_n(word.among_several(), self.count));
                return Ok(());
            }
        }
        if literal || !word.text.is_empty() || word.gap.is_some() || (self.count != 0 && !expanded) {
            words.push(word);
        }
        Ok(())
    }

    /// What a variable holds that stands outside of quotes.
    fn spread(
        &self,
        held: &[u8],
        word: &mut Word,
        words: &mut Vec<Word>,
        argument: bool,
    ) -> Result<(), Error> {
        let begins = words.is_empty() && word.text.is_empty() && word.gap.is_none();
        let joins = |byte: &u8| b"&|<>".contains(byte) || (*byte == b')' && self.depth > 0);
        let front = held.iter().find(|byte| !b" \t,;=".contains(byte));
        if held.iter().any(joins) || (begins && front.is_some_and(|byte| b"(@:".contains(byte))) {
            return Err(Error::refused(
                "a variable outside of double quotes holds a sign that joins commands: write it as `\"%NAME%\"`",
            ));
        }
        if !argument && held.iter().any(|byte| b" \t,;=()".contains(byte)) {
            return Err(unfollowed_if());
        }
        for &byte in held {
            let empty = word.text.is_empty() && word.gap.is_none();
            let at_name = words.is_empty() || (words.len() == 1 && empty);
            match byte {
                b' ' | b'\t' if empty => {}
                b',' | b';' | b'=' if at_name && empty => {}
                b' ' | b'\t' => words.push(std::mem::take(word)),
                b',' | b';' | b'=' if at_name => words.push(std::mem::take(word)),
                _ => word.text.push(byte),
            }
        }
        Ok(())
    }

    fn placeholder(&mut self, quote: Quote) -> Result<Option<Placeholder>, Error> {
        let Some((placeholder, length)) = self.rules.placeholders.placeholder_at(self.rest()) else {
            return Ok(None);
        };
        if let Some(alien) = self.alien {
            return Err(foreign(placeholder, alien));
        }
        if self.lone {
            return Err(Error::refused(format!(
                "a `%` stands before `{placeholder}`, where cmd looks for the name of a variable: write it behind the last \
                 value, or give the command as several words"
            )));
        }
        if quote == Quote::Bare && self.made_up == Some(self.at) {
            return Err(ends_in_variable(placeholder));
        }
        self.seen.push(PlaceholderSite { at: self.at, length, placeholder, quote });
        self.places.push(Place { program: true, twice: false });
        self.at += length;
        Ok(Some(placeholder))
    }

    /// What stands between double quotes.
    fn quotes(&mut self, word: &mut Word) -> Result<(), Error> {
        if self.made_up == Some(self.at) {
            return Err(Error::refused(
                "a `\"` follows a variable, which may end in `^`: put a blank between them",
            ));
        }
        let from = self.at;
        self.at += 1;
        loop {
            if let Some(placeholder) = self.placeholder(Quote::Double)? {
                word.value(placeholder);
                continue;
            }
            match self.peek() {
                None => {
                    let place = String::from_utf8_lossy(&self.text[..from]).chars().count() + 1;
                    return Err(Error::syntax(format!(
                        "a double quote is opened at character {place} of the line and not closed"
                    )));
                }
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'%') => {
                    let held = self.percent(word)?;
                    word.text.extend(held);
                }
                Some(byte) => {
                    word.text.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    /// `^` takes the meaning of what follows; behind it quotes are no quotes.
    fn caret(&mut self, word: &mut Word) -> Result<(), Error> {
        self.at += 1;
        match self.peek() {
            None => Err(Error::syntax("the line ends in `^`: leave it out, or quote it")),
            Some(b'%') => {
                Err(Error::refused("a `^` stands before `%`, which it does not change: leave it out"))
            }
            Some(_) if let Some((placeholder, _)) = self.rules.placeholders.placeholder_at(self.rest()) => {
                Err(Error::refused(format!(
                    "`{placeholder}` follows a `^`: leave it out, or write `^^` for one before the value"
                )))
            }
            Some(byte) => {
                word.text.push(byte);
                self.at += 1;
                Ok(())
            }
        }
    }

    /// A variable of the user's, or a lone `%`. Returns what it holds, as far as that is known;
    /// what is not leaves a `%` in the word.
    fn percent(&mut self, word: &mut Word) -> Result<Vec<u8>, Error> {
        self.percent = true;
        let Some(name) = self.reference() else {
            self.lone = true;
            word.text.push(b'%');
            self.at += 1;
            return Ok(Vec::new());
        };
        let (base, cut) = match name.split_once(':') {
            Some((base, _)) => (base, true),
            None => (name.as_str(), false),
        };
        if base.get(..OURS.len()).is_some_and(|start| start.eq_ignore_ascii_case(OURS)) {
            return Err(Error::refused(format!(
                "`%{name}%` would be minder's own variable: write `{{}}` or `{{1}}` for the value"
            )));
        }
        let lower = base.to_ascii_lowercase();
        let held = (self.rules.variable)(base).map(OsString::into_encoded_bytes);
        let odd = |held: &Vec<u8>| held.iter().any(|byte| b"\"^\r\n".contains(byte));
        if lower == "cmdcmdline" || held.as_ref().is_some_and(odd) {
            return Err(Error::refused(format!(
                "`%{name}%` holds a `\"` or a `^`, behind which quotes cannot be followed: write what it stands for"
            )));
        }
        self.at += name.len() + 2;
        let made_up = MADE_UP.contains(&lower.as_str());
        if made_up {
            self.made_up = Some(self.at);
        }
        match held {
            // Its value is cmd, whatever its name.
            _ if lower == "comspec" && !cut => Ok(b"%comspec%".to_vec()),
            Some(held) if !cut && !made_up => Ok(held),
            _ => {
                word.expansion();
                word.text.push(b'%');
                Ok(Vec::new())
            }
        }
    }

    /// The name between two `%`, with what is to be done to what it holds, if cmd can read it in
    /// one way only.
    fn reference(&self) -> Option<String> {
        let rest = self.rest().get(1..)?;
        let end = rest.iter().position(|&byte| byte == b'%').filter(|end| *end > 0)?;
        let odd = |at: usize| {
            !(rest[at].is_ascii_alphanumeric() || b"_()#$.-+~:,=/\\ @{}[]'".contains(&rest[at]))
                || self.rules.placeholders.placeholder_at(&rest[at..]).is_some()
        };
        if (0..end).any(odd) {
            return None;
        }
        let name = std::str::from_utf8(&rest[..end]).ok()?;
        // Blanks and signs only where something is replaced.
        let base = name.split(':').next().unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_()#$.-+@{}[]'~".contains(&byte);
        (!base.is_empty() && base.bytes().all(plain)).then(|| name.to_owned())
    }

    /// Judges a command by its name.
    fn judge(&mut self, words: &[Word], first: usize) -> Result<(), Error> {
        let Some(name) = words.first() else { return Ok(()) };
        let (lead, base) = names(name);
        // `cmd/c{}` is one word.
        let holder = || words.iter().find_map(|word| word.holds);
        let is = |known: &str| lead == known || base == known;
        if lead == "if" || lead == "else" {
            return Err(unfollowed_if());
        }
        if let (true, Some(placeholder)) =
            (name.dynamic && base.contains('%') && base != "%comspec%", holder())
        {
            return Err(Error::refused(format!(
                "`{placeholder}` is an argument of a program whose name comes from a variable and is not known beforehand: \
                 write the name"
            )));
        }
        if let Some((known, why)) = AGAIN.iter().find(|(known, _)| is(known)) {
            self.again = true;
            if let Some(placeholder) = holder() {
                return Err(Error::refused(format!("`{placeholder}` is an argument of `{known}`, {why}")));
            }
        }
        if let Some(shell) = SHELLS.iter().find(|shell| is(shell)) {
            self.again = true;
            if let Some(placeholder) = holder() {
                return Err(program_text(placeholder, shell));
            }
        }
        if let Some((shell, placeholder)) = behind(words) {
            return Err(program_text(placeholder, shell));
        }
        if is("set") {
            let arithmetic = words.iter().any(|word| lower(word).contains("/a"));
            match words.iter().find_map(|word| word.holds) {
                Some(placeholder) if arithmetic => {
                    return Err(Error::refused(format!(
                        "`{placeholder}` stands in `set /a`, which evaluates the value: reckon in a program"
                    )));
                }
                holds => self.stores |= holds.is_some(),
            }
        }
        let internal = INTERNAL.contains(&lead.as_str());
        if internal {
            for place in &mut self.places[first..] {
                place.program = false;
            }
            return Ok(());
        }
        self.again |= eval_commands::check_programs(&slashed(words), false, true)?.expands;
        Ok(())
    }

    /// Judges the line as a whole.
    fn judge_all(&mut self) -> Result<(), Error> {
        let Some(seen) = self.seen.first() else { return Ok(()) };
        let placeholder = seen.placeholder;
        if let Some(alien) = self.alien {
            return Err(foreign(placeholder, alien));
        }
        if self.stores && (self.again || (self.piped && self.percent)) {
            return Err(Error::refused(
                "the line puts a value into a variable and also reads variables again (`call`, another shell, a pipe), where \
                 the value would be code: write `{}` in place of the variable",
            ));
        }
        for place in &mut self.places {
            place.twice = self.piped;
        }
        Ok(())
    }
}

const ALONE: &str = "stands where the shell takes one word";

/// Begins what no line with placeholders may hold.
fn alien(first: &Word) -> Option<&'static str> {
    match names(first).0.as_str() {
        _ if first.text.starts_with(b":") => Some(":"),
        lead => ["for", "rem", "setlocal", "goto"].into_iter().find(|alien| *alien == lead),
    }
}

fn foreign(placeholder: Placeholder, alien: &str) -> Error {
    let why = match alien {
        "for" => {
            "reads what is in it again, and takes `%` in values for its own: give its items to the run as arguments"
        }
        "setlocal" => "may change what `!` means: leave it out",
        _ => "begins what is no command: leave it out",
    };
    Error::refused(format!("`{placeholder}` stands in a line with `{alien}`, which {why}"))
}

fn unfollowed_if() -> Error {
    Error::syntax(
        "an `if` cannot be followed: write `if exist FILE`, `if A==B` or `if not …`, with a blank behind `if`",
    )
}

fn program_text(placeholder: Placeholder, shell: &str) -> Error {
    Error::refused(format!(
        "`{placeholder}` is part of the program text of `{shell}`, which runs it as code: give the command as several words"
    ))
}

/// A shell behind a program that may run it, with a placeholder in its command.
fn behind(words: &[Word]) -> Option<(&'static str, Placeholder)> {
    words.windows(2).enumerate().skip(1).find_map(|(at, pair)| {
        let base = names(&pair[0]).1;
        let shell = SHELLS.iter().find(|shell| **shell == base)?;
        let flag = lower(&pair[1]);
        let runs = ["/c", "/k", "/r", "-c", "-e"].iter().any(|start| flag.starts_with(start));
        let placeholder = words[at + 1..].iter().find_map(|word| word.holds);
        Some((*shell, placeholder.filter(|_| runs)?))
    })
}

fn ends_in_variable(placeholder: Placeholder) -> Error {
    Error::refused(format!(
        "`{placeholder}` follows a variable, which may end in `^`: put it in double quotes"
    ))
}

/// How a command's name begins, as cmd looks for its own commands, and the name of a program: both
/// in small letters.
fn names(first: &Word) -> (String, String) {
    let text = lower(first);
    // What is known behind a variable counts, too.
    let gap = first.gap.filter(|gap| !first.dynamic && text.is_char_boundary(*gap));
    let known = &text[..gap.unwrap_or(text.len())];
    let base = known.rsplit(['\\', '/', ':']).next().unwrap_or(known);
    let base = [".exe", ".com"].iter().find_map(|end| base.strip_suffix(end)).unwrap_or(base).to_owned();
    // `cd\`, `dir/w`, `echo.`, `cmd/c`; but `echo.exe` is a program.
    let letters = known.bytes().take_while(u8::is_ascii_alphabetic).count();
    let program = [".exe", ".com", ".bat", ".cmd"].iter().any(|end| known.ends_with(end));
    let lead = match known.as_bytes().get(letters) {
        _ if program => String::new(),
        None => known.to_owned(),
        Some(byte) if b"/\\.:,;=+([]".contains(byte) => known[..letters].to_owned(),
        Some(_) => String::new(),
    };
    (lead, base)
}

/// The words as those of other systems are written, so that programs are known by their names.
fn slashed(words: &[Word]) -> Vec<Word> {
    let mut words = words.to_vec();
    for word in &mut words {
        word.text.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
    }
    if let Some(first) = words.first_mut() {
        first.text.make_ascii_lowercase();
    }
    words
}

fn lower(word: &Word) -> String {
    String::from_utf8_lossy(&word.text).to_ascii_lowercase()
}
