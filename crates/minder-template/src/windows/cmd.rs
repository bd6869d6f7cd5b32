//! The scanner of lines for `cmd.exe`: the quotes around each site, and the command it belongs to.
//!
//! cmd processes a line in phases ("cmd" and "Command prompt line string limitation" on
//! learn.microsoft.com; `cmd /?`, `set /?`). First it replaces each `%NAME%` by the variable, from
//! left to right, and does not expand the result again. Then it parses the line; between double
//! quotes, only the closing quote is special. Then it runs the commands. A value is in the line as
//! `"%MINDER_V1%"`. The first phase inserts it. In the second phase it is between quotes, and
//! cannot end them, since it contains none.
//!
//! So a site is refused in three cases:
//!
//! - the first phase would not find minder's variable: after a stray `%`, in the name of another
//!   variable;
//! - the quotes around it would not be quotes: after `^`, after a variable that contains a quote;
//! - the line is parsed a second time: `call`, `start`, `for`, another shell.
//!
//! A pipe starts another cmd for each of its sides that is not a program. There, a value that
//! contains `%` is refused, job by job.
//!
//! The scanner replaces a variable of the user by its text, as cmd does. It may be several words,
//! or the name of a shell.

use std::ffi::OsString;
use std::ops::Range;

use crate::error::Error;
use crate::eval_commands::{self, Trust};
use crate::options::Repeat;
use crate::placeholder::expression::Placeholder;
use crate::placeholder::set::PlaceholderSet;
use crate::placeholder::site::{PlaceholderSite, Quote};
use crate::windows::scanned_line::{ScannedLine, SiteContext};
use crate::word::{Word, only_word};

/// The rules by which a line is scanned.
pub(crate) struct Rules<'a> {
    pub(crate) placeholders: &'a PlaceholderSet,
    pub(crate) repeat: Repeat,
    /// Returns the text of an environment variable of the user.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// The prefix of the names of minder's variables.
const OWN_PREFIX: &str = "MINDER_V";

/// Commands that parse their arguments a second time or as a command, with the reason and a hint.
const REREADERS: [(&str, &str); 6] = [
    ("call", "which expands variables in it again: leave `call` out"),
    ("start", "which hands it to another cmd: leave `start` out"),
    ("forfiles", "which makes a command of it: give the files as arguments of the run"),
    ("runas", "which makes a command of it: give the command as several words"),
    ("schtasks", "which makes a command of it: give the command as several words"),
    ("psexec", "which makes a command of it: give the command as several words"),
];

/// Shells, and other programs of Windows that take program text as an argument.
const SHELLS: [&str; 8] = ["cmd", "%comspec%", "powershell", "pwsh", "wsl", "wmic", "mshta", "at"];

/// The internal commands of cmd. They do not use the MSVC runtime, so a backslash before a quote is
/// an ordinary character.
const INTERNAL: [&str; 41] = [
    "assoc", "break", "cd", "chdir", "cls", "color", "copy", "date", "del", "dir", "dpath", "echo",
    "endlocal", "erase", "exit", "ftype", "goto", "if", "keys", "md", "mkdir", "mklink", "move", "path",
    "pause", "popd", "prompt", "pushd", "rd", "rem", "ren", "rename", "rmdir", "set", "setlocal", "shift",
    "time", "title", "type", "ver", "verify",
];

/// Variables that cmd computes, so that their text is unknown here.
const COMPUTED: [&str; 4] = ["cd", "cmdcmdline", "__cd__", "__appdir__"];

pub(crate) fn scan(text: &[u8], rules: &Rules<'_>, count: usize) -> Result<ScannedLine, Error> {
    if text.iter().any(|byte| b"\r\n".contains(byte)) {
        return Err(Error::syntax(crate::shell::MORE_LINES));
    }
    let mut scanner = Scanner::new(text, rules, count);
    scanner.list()?;
    scanner.check_whole_line()?;
    let Scanner { sites, contexts, spans, tail, .. } = scanner;
    Ok(ScannedLine { sites, contexts, spans, tail })
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    rules: &'a Rules<'a>,
    count: usize,
    sites: Vec<PlaceholderSite>,
    contexts: Vec<SiteContext>,
    spans: Vec<Range<usize>>,
    tail: Option<usize>,
    /// The number of open parentheses.
    depth: usize,
    /// The line contained a `%` that begins no variable.
    stray_percent: bool,
    /// The line contained a `%`.
    has_percent: bool,
    /// The index where the last computed variable ends.
    computed_end: Option<usize>,
    piped: bool,
    /// The line puts a value into a variable.
    stores: bool,
    /// A command of the line expands variables again.
    rereads: bool,
    /// A command that makes a line with placeholders unsafe.
    unsupported: Option<&'static str>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a [u8], rules: &'a Rules<'a>, count: usize) -> Self {
        Self {
            text,
            at: 0,
            rules,
            count,
            sites: Vec::new(),
            contexts: Vec::new(),
            spans: Vec::new(),
            tail: None,
            depth: 0,
            stray_percent: false,
            has_percent: false,
            computed_end: None,
            piped: false,
            stores: false,
            rereads: false,
            unsupported: None,
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

    /// Reads commands, and the operators between them.
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
                    self.depth += 1;
                    self.tail = None;
                    self.at += 1;
                }
                Some(b')') if self.depth > 0 => {
                    self.depth -= 1;
                    self.tail = None;
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
        if self.depth > 0 {
            return Err(Error::syntax("a `(` is not closed"));
        }
        Ok(())
    }

    fn command(&mut self) -> Result<(), Error> {
        let first = self.sites.len();
        let mut words = Vec::new();
        let mut end = self.at;
        loop {
            if self.rules.placeholders.placeholder_at(self.rest()).is_none() {
                // Between the name of a command and its arguments, `,;=` separate like spaces.
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
                [word] if word.text.eq_ignore_ascii_case(b"if") && word.first_expansion.is_none() => {
                    return self.condition(first);
                }
                [word] if word.text.eq_ignore_ascii_case(b"else") && word.first_expansion.is_none() => {
                    self.tail = None;
                    return Ok(());
                }
                [word, ..] => self.unsupported = self.unsupported.or(unsupported(word)),
                [] => {}
            }
        }
        self.tail = (!words.is_empty() && self.depth == 0 && self.unsupported.is_none()).then_some(end);
        self.check_command(&words, first)
    }

    /// Reads the condition between `if` and its command.
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
        for context in &mut self.contexts[first..] {
            context.follows_msvc_rules = false;
        }
        Ok(())
    }

    /// Reads one word of a condition. Only some versions of cmd accept a parenthesis in it.
    fn operand(&mut self) -> Result<Word, Error> {
        let before = self.sites.len();
        self.skip(b" \t,;");
        let from = self.at;
        let mut words = Vec::new();
        self.words(&mut words, false)?;
        match only_word(&words, self.sites.get(before), ALONE)? {
            word if self.at > from && self.peek() != Some(b'(') => Ok(word.clone()),
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
        let before = self.sites.len();
        let from = self.at;
        let mut words = Vec::new();
        self.words(&mut words, true)?;
        if self.at == from {
            return Err(Error::syntax("a redirection has no target"));
        }
        only_word(&words, self.sites.get(before), ALONE)?;
        for context in &mut self.contexts[before..] {
            context.follows_msvc_rules = false;
        }
        Ok(())
    }

    /// Reads one word of the template. For several arguments it may become several words, for none
    /// no word. With `argument`, `=` is part of the word.
    fn words(&mut self, words: &mut Vec<Word>, argument: bool) -> Result<(), Error> {
        let from = self.at;
        let before = self.sites.len();
        let count = if self.rules.repeat == Repeat::Context && self.count > 0 { 1 } else { self.count };
        let first = argument && words.is_empty();
        let mut word = Word::default();
        let mut literal = false;
        let mut expanded = false;
        loop {
            if let Some(placeholder) = self.placeholder(Quote::Bare)? {
                let count = if placeholder.repeats() { count } else { 1 };
                word.add_values(placeholder, count, words);
                literal |= count == 1;
                continue;
            }
            match self.peek() {
                None | Some(b' ' | b'\t' | b'&' | b'|') => break,
                Some(b')') if self.depth > 0 => break,
                Some(b'=' | b',' | b';') if !argument || first => break,
                Some(b'(') if !argument => break,
                Some(b'<' | b'>') => {
                    // The number of a handle belongs to the redirection.
                    if matches!(&self.text[from..self.at], [b'0'..=b'9']) {
                        return Ok(());
                    }
                    break;
                }
                Some(b'"') => self.quotes(&mut word)?,
                Some(b'^') => self.caret(&mut word)?,
                Some(b'%') => {
                    let held = self.percent(&mut word)?;
                    self.add_variable_text(&held, &mut word, words, argument)?;
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
        let repeats = self.sites[before..].iter().any(|site| site.placeholder.repeats());
        if repeats && self.rules.repeat == Repeat::Context {
            self.spans.push(from..self.at);
            if self.count > 1 {
                words.extend(std::iter::repeat_n(word.into_one_of_several(), self.count));
                return Ok(());
            }
        }
        if literal
            || !word.text.is_empty()
            || word.first_expansion.is_some()
            || (self.count != 0 && !expanded)
        {
            words.push(word);
        }
        Ok(())
    }

    /// Adds the text of a variable that is outside of quotes.
    fn add_variable_text(
        &self,
        held: &[u8],
        word: &mut Word,
        words: &mut Vec<Word>,
        argument: bool,
    ) -> Result<(), Error> {
        let is_first = words.is_empty() && word.text.is_empty() && word.first_expansion.is_none();
        let joins = |byte: &u8| b"&|<>".contains(byte) || (*byte == b')' && self.depth > 0);
        let front = held.iter().find(|byte| !b" \t,;=".contains(byte));
        if held.iter().any(joins) || (is_first && front.is_some_and(|byte| b"(@:".contains(byte))) {
            return Err(Error::refused(
                "a variable outside of double quotes holds a sign that joins commands: write it as \
                 `\"%NAME%\"`",
            ));
        }
        if !argument && held.iter().any(|byte| b" \t,;=()".contains(byte)) {
            return Err(unfollowed_if());
        }
        for &byte in held {
            let empty = word.text.is_empty() && word.first_expansion.is_none();
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
        if let Some(unsupported) = self.unsupported {
            return Err(in_unsupported_line(placeholder, unsupported));
        }
        if self.stray_percent {
            return Err(Error::refused(format!(
                "a `%` stands before `{placeholder}`, where cmd looks for the name of a variable: write it \
                 behind the last value, or give the command as several words"
            )));
        }
        if quote == Quote::Bare && self.computed_end == Some(self.at) {
            return Err(ends_in_variable(placeholder));
        }
        self.sites.push(PlaceholderSite { at: self.at, length, placeholder, quote, is_required: false });
        self.contexts.push(SiteContext { follows_msvc_rules: true, expanded_twice: false });
        self.at += length;
        Ok(Some(placeholder))
    }

    /// Reads text between double quotes.
    fn quotes(&mut self, word: &mut Word) -> Result<(), Error> {
        if self.computed_end == Some(self.at) {
            return Err(Error::refused(
                "a `\"` follows a variable, which may end in `^`: put a space between them",
            ));
        }
        let from = self.at;
        self.at += 1;
        loop {
            if let Some(placeholder) = self.placeholder(Quote::Double)? {
                word.add_value(placeholder);
                continue;
            }
            match self.peek() {
                None => {
                    let character = String::from_utf8_lossy(&self.text[..from]).chars().count() + 1;
                    return Err(Error::syntax(format!(
                        "a double quote is opened at character {character} of the line and not closed"
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

    /// Reads `^`, which quotes the next character. A quote after it is an ordinary character.
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

    /// Reads a variable of the user, or a stray `%`. Returns the text of the variable if it is
    /// known. Otherwise adds a `%` to the word.
    fn percent(&mut self, word: &mut Word) -> Result<Vec<u8>, Error> {
        self.has_percent = true;
        let Some(name) = self.reference() else {
            self.stray_percent = true;
            word.text.push(b'%');
            self.at += 1;
            return Ok(Vec::new());
        };
        let (base, cut) = match name.split_once(':') {
            Some((base, _)) => (base, true),
            None => (name.as_str(), false),
        };
        if base.get(..OWN_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(OWN_PREFIX)) {
            return Err(Error::refused(format!(
                "`%{name}%` would be minder's own variable: write `{{}}` or `{{1}}` for the value"
            )));
        }
        let lower = base.to_ascii_lowercase();
        let held = (self.rules.variable)(base).map(OsString::into_encoded_bytes);
        let odd = |held: &Vec<u8>| held.iter().any(|byte| b"\"^\r\n".contains(byte));
        if lower == "cmdcmdline" || held.as_ref().is_some_and(odd) {
            return Err(Error::refused(format!(
                "`%{name}%` holds a `\"` or a `^`, behind which quotes cannot be followed: write what it \
                 stands for"
            )));
        }
        self.at += name.len() + 2;
        let made_up = COMPUTED.contains(&lower.as_str());
        if made_up {
            self.computed_end = Some(self.at);
        }
        match held {
            // Its text is the path of cmd.
            _ if lower == "comspec" && !cut => Ok(b"%comspec%".to_vec()),
            Some(held) if !cut && !made_up => Ok(held),
            _ => {
                word.add_expansion();
                word.text.push(b'%');
                Ok(Vec::new())
            }
        }
    }

    /// Returns the text between two `%`: a name, and a substitution after `:`. Returns `None` if
    /// cmd could parse it in several ways.
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
        // Spaces and other characters are allowed in the substitution only.
        let base = name.split(':').next().unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_()#$.-+@{}[]'~".contains(&byte);
        (!base.is_empty() && base.bytes().all(plain)).then(|| name.to_owned())
    }

    /// Checks a command by its name.
    fn check_command(&mut self, words: &[Word], first: usize) -> Result<(), Error> {
        let Some(name) = words.first() else { return Ok(()) };
        let (lead, base) = names(name);
        // Includes the first word, since `cmd/c{}` is one.
        let holder = || words.iter().find_map(|word| word.placeholder);
        let is = |known: &str| lead == known || base == known;
        if lead == "if" || lead == "else" {
            return Err(unfollowed_if());
        }
        if let (true, Some(placeholder)) =
            (name.has_expansion && base.contains('%') && base != "%comspec%", holder())
        {
            return Err(Error::refused(format!(
                "`{placeholder}` is an argument of a program whose name comes from a variable and is not \
                 known beforehand: write the name"
            )));
        }
        if let Some((known, why)) = REREADERS.iter().find(|(known, _)| is(known)) {
            self.rereads = true;
            if let Some(placeholder) = holder() {
                return Err(Error::refused(format!("`{placeholder}` is an argument of `{known}`, {why}")));
            }
        }
        if let Some(shell) = SHELLS.iter().find(|shell| is(shell)) {
            self.rereads = true;
            if let Some(placeholder) = holder() {
                return Err(program_text(placeholder, shell));
            }
        }
        if let Some((shell, placeholder)) = shell_behind_program(words) {
            return Err(program_text(placeholder, shell));
        }
        if is("set") {
            let arithmetic = words.iter().any(|word| lower(word).contains("/a"));
            match words.iter().find_map(|word| word.placeholder) {
                Some(placeholder) if arithmetic => {
                    return Err(Error::refused(format!(
                        "`{placeholder}` stands in `set /a`, which evaluates the value: reckon in a program"
                    )));
                }
                holds => self.stores |= holds.is_some(),
            }
        }
        let is_internal = INTERNAL.contains(&lead.as_str());
        if is_internal {
            for context in &mut self.contexts[first..] {
                context.follows_msvc_rules = false;
            }
            return Ok(());
        }
        self.rereads |= eval_commands::check_programs(&slashed(words), Trust::Nothing, true)?.has_expansion;
        Ok(())
    }

    /// Checks what depends on the whole line.
    fn check_whole_line(&mut self) -> Result<(), Error> {
        let Some(site) = self.sites.first() else { return Ok(()) };
        let placeholder = site.placeholder;
        if let Some(unsupported) = self.unsupported {
            return Err(in_unsupported_line(placeholder, unsupported));
        }
        if self.stores && (self.rereads || (self.piped && self.has_percent)) {
            return Err(Error::refused(
                "the line puts a value into a variable and also reads variables again (`call`, another \
                 shell, a pipe), where the value would be code: write `{}` in place of the variable",
            ));
        }
        for context in &mut self.contexts {
            context.expanded_twice = self.piped;
        }
        Ok(())
    }
}

const ALONE: &str = "stands where the shell takes one word";

/// Returns the name of a command that no line with placeholders may contain.
fn unsupported(first: &Word) -> Option<&'static str> {
    match names(first).0.as_str() {
        _ if first.text.starts_with(b":") => Some(":"),
        lead => ["for", "rem", "setlocal", "goto"].into_iter().find(|unsupported| *unsupported == lead),
    }
}

fn in_unsupported_line(placeholder: Placeholder, unsupported: &str) -> Error {
    let why = match unsupported {
        "for" => {
            "reads what is in it again, and takes `%` in values for its own: give its items to the run as \
             arguments"
        }
        "setlocal" => "may change what `!` means: leave it out",
        _ => "does not run a program: leave it out",
    };
    Error::refused(format!("`{placeholder}` stands in a line with `{unsupported}`, which {why}"))
}

fn unfollowed_if() -> Error {
    Error::syntax(
        "an `if` cannot be followed: write `if exist FILE`, `if A==B` or `if not …`, with a space after \
         `if`",
    )
}

fn program_text(placeholder: Placeholder, shell: &str) -> Error {
    Error::refused(format!(
        "`{placeholder}` is part of the program text of `{shell}`, which runs it as code: give the command \
         as several words"
    ))
}

/// Returns the name of a shell that is an argument of another program, which may run it, and the
/// placeholder in the shell's command.
fn shell_behind_program(words: &[Word]) -> Option<(&'static str, Placeholder)> {
    words.windows(2).enumerate().skip(1).find_map(|(at, pair)| {
        let base = names(&pair[0]).1;
        let shell = SHELLS.iter().find(|shell| **shell == base)?;
        let flag = lower(&pair[1]);
        let runs = ["/c", "/k", "/r", "-c", "-e"].iter().any(|start| flag.starts_with(start));
        if !runs {
            return None;
        }
        let placeholder = words[at + 1..].iter().find_map(|word| word.placeholder)?;
        Some((*shell, placeholder))
    })
}

fn ends_in_variable(placeholder: Placeholder) -> Error {
    Error::refused(format!(
        "`{placeholder}` follows a variable, which may end in `^`: put it in double quotes"
    ))
}

/// Returns the name that cmd looks up among its internal commands, and the name of a program. Both
/// are in lower case.
fn names(first: &Word) -> (String, String) {
    let text = lower(first);
    // The text after a variable counts, too.
    let first_expansion = first
        .first_expansion
        .filter(|first_expansion| !first.has_expansion && text.is_char_boundary(*first_expansion));
    let known = &text[..first_expansion.unwrap_or(text.len())];
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

/// Returns the words with slashes for backslashes, so that the table of programs applies.
fn slashed(words: &[Word]) -> Vec<Word> {
    let mut words = words.to_vec();
    for word in &mut words {
        for byte in word.text.iter_mut().filter(|byte| **byte == b'\\') {
            *byte = b'/';
        }
    }
    if let Some(first) = words.first_mut() {
        first.text.make_ascii_lowercase();
    }
    words
}

fn lower(word: &Word) -> String {
    String::from_utf8_lossy(&word.text).to_ascii_lowercase()
}
