//! A few forms of shell lines, for tests whose point is not the shell, on systems without one.
//!
//! `mini-shell LINE VALUE…` knows lists, `case`, `until` and groups, quotes, redirections, and the
//! commands in [`MiniShell::builtin`]. `$1` and so on are the values, everywhere and always as they
//! are. `CHILD` is this program, which does its verbs itself where it can.
//! A backslash is an ordinary character, except for `printf`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::append::{append, when_free};
use super::{Words, pause};

/// A token of a line.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// Text, and whether some of it was quoted.
    Word(String, bool),
    Operator(&'static str),
    /// A stream's number and where it goes: `>`, `>>`, or `>&`.
    Redirection(u8, &'static str),
}

/// The target of an output of a command.
#[derive(Clone, Debug, PartialEq)]
enum Sink {
    Stream(u8),
    Null,
    File(String, bool),
}

pub(super) fn run(words: &Words) -> io::Result<i32> {
    let line = words.word(1);
    let values = words.0.get(2..).unwrap_or_default();
    let mut shell = MiniShell { tokens: tokens(line, values), at: 0, over: None };
    let status = shell.list(true)?;
    if shell.at < shell.tokens.len() && shell.over.is_none() {
        eprintln!("test_child: mini-shell: not understood from {:?}: {line}", shell.tokens[shell.at]);
        return Ok(126);
    }
    Ok(shell.over.unwrap_or(status))
}

fn tokens(line: &str, values: &[String]) -> Vec<Token> {
    const OPERATORS: [&str; 7] = [";;", "&&", "||", ";", "(", ")", "\n"];
    const ARROWS: [&str; 3] = [">>", ">&", ">"];
    let mut found = Vec::new();
    let mut word: Option<(String, bool)> = None;
    let mut quote = None;
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let mut used = first.len_utf8();
        let value = rest.strip_prefix('$').and_then(|rest| {
            let digit = rest.chars().next()?.to_digit(10)?;
            values.get(digit as usize - 1)
        });
        if let Some(value) = value {
            let word = word.get_or_insert_default();
            word.0 += value;
            word.1 = true;
            used = 2;
        } else if quote == Some(first) {
            quote = None;
        } else if quote.is_some() {
            word.get_or_insert_default().0.push(first);
        } else if matches!(first, '\'' | '"') {
            quote = Some(first);
            word.get_or_insert_default().1 = true;
        } else if let Some(arrow) = ARROWS.iter().find(|arrow| rest.starts_with(**arrow)) {
            let stream = match word.take() {
                Some((number, false)) if matches!(&*number, "1" | "2") => number.as_bytes()[0] - b'0',
                other => {
                    found.extend(other.map(|(text, quoted)| Token::Word(text, quoted)));
                    1
                }
            };
            found.push(Token::Redirection(stream, arrow));
            used = arrow.len();
        } else if let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
            found.extend(word.take().map(|(text, quoted)| Token::Word(text, quoted)));
            found.push(Token::Operator(if *operator == "\n" { ";" } else { operator }));
            used = operator.len();
        } else if first == '#' && word.is_none() {
            break;
        } else if first == ' ' {
            found.extend(word.take().map(|(text, quoted)| Token::Word(text, quoted)));
        } else {
            word.get_or_insert_default().0.push(first);
        }
        rest = &rest[used..];
    }
    found.extend(word.map(|(text, quoted)| Token::Word(text, quoted)));
    found
}

struct MiniShell {
    tokens: Vec<Token>,
    at: usize,
    /// `exit` was done, with this status.
    over: Option<i32>,
}

impl MiniShell {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn takes(&mut self, operator: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Operator(it)) if *it == operator);
        self.at += usize::from(found);
        found
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(text, false)) if text == keyword)
    }

    fn takes_keyword(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self) -> String {
        match self.peek().cloned() {
            Some(Token::Word(text, _)) => {
                self.at += 1;
                text
            }
            _ => String::new(),
        }
    }

    /// Commands with `;` between them. Where `runs` is false they are passed over.
    fn list(&mut self, runs: bool) -> io::Result<i32> {
        let mut status = 0;
        loop {
            let ends = matches!(self.peek(), None | Some(Token::Operator(";;" | ")")))
                || ["}", "esac", "do", "done"].iter().any(|word| self.is_keyword(word));
            if ends {
                return Ok(status);
            }
            if self.takes(";") {
                continue;
            }
            let at = self.at;
            let now = runs && self.over.is_none();
            let answer = self.chain(now)?;
            if now {
                status = answer;
            }
            if self.at == at {
                return Ok(status);
            }
        }
    }

    /// Commands with `&&` and `||` between them.
    fn chain(&mut self, runs: bool) -> io::Result<i32> {
        let mut status = self.command(runs)?;
        loop {
            let wanted = if self.takes("&&") {
                true
            } else if self.takes("||") {
                false
            } else {
                return Ok(status);
            };
            let now = runs && self.over.is_none() && (status == 0) == wanted;
            let answer = self.command(now)?;
            if now {
                status = answer;
            }
        }
    }

    fn command(&mut self, runs: bool) -> io::Result<i32> {
        if self.takes_keyword("case") {
            return self.case(runs);
        }
        if self.takes_keyword("until") {
            return self.until(runs);
        }
        if self.takes_keyword("{") {
            let status = self.list(runs)?;
            self.takes_keyword("}");
            return Ok(status);
        }
        if self.takes("(") {
            let status = self.list(runs)?;
            self.takes(")");
            // What exits is a separate process.
            return Ok(self.over.take().unwrap_or(status));
        }
        self.simple(runs)
    }

    fn case(&mut self, runs: bool) -> io::Result<i32> {
        let value = self.word();
        let mut status = 0;
        let mut open = runs;
        self.takes_keyword("in");
        while !self.takes_keyword("esac") && self.peek().is_some() {
            let pattern = self.word();
            self.takes(")");
            let fits = match pattern.strip_suffix('*') {
                Some(start) => value.starts_with(start),
                None => value == pattern,
            };
            let answer = self.list(open && fits)?;
            if open && fits {
                (status, open) = (answer, false);
            }
            self.takes(";;");
        }
        Ok(status)
    }

    fn until(&mut self, runs: bool) -> io::Result<i32> {
        let begin = self.at;
        loop {
            self.at = begin;
            let holds = self.list(runs)? == 0;
            self.takes_keyword("do");
            self.list(runs && !holds)?;
            self.takes_keyword("done");
            if holds || !runs || self.over.is_some() {
                return Ok(0);
            }
        }
    }

    fn simple(&mut self, runs: bool) -> io::Result<i32> {
        let mut words = Vec::new();
        let mut sinks = [Sink::Stream(1), Sink::Stream(2)];
        loop {
            match self.peek().cloned() {
                Some(Token::Word(text, _)) => words.push(text),
                Some(Token::Redirection(stream, arrow)) => {
                    self.at += 1;
                    let target = match self.peek() {
                        Some(Token::Word(text, _)) => text.clone(),
                        _ => String::new(),
                    };
                    sinks[usize::from(stream) - 1] = match arrow {
                        ">&" => sinks[usize::from(target == "2")].clone(),
                        _ if target == "/dev/null" => Sink::Null,
                        _ => Sink::File(target, arrow == ">>"),
                    };
                }
                _ => break,
            }
            self.at += 1;
        }
        if !runs {
            return Ok(0);
        }
        let negated = words.first().is_some_and(|word| word == "!");
        let status = self.act(&words[usize::from(negated)..], &sinks)?;
        io::stdout().flush()?;
        Ok(if negated { i32::from(status == 0) } else { status })
    }

    fn act(&mut self, words: &[String], sinks: &[Sink; 2]) -> io::Result<i32> {
        let last = words.first().is_some_and(|word| word == "exec");
        let words = &words[usize::from(last)..];
        let Some(name) = words.first() else {
            // A redirection alone makes the file.
            return out(&sinks[0])?.flush().map(|()| 0);
        };
        let status = if name == "CHILD" || Path::new(name).file_stem().is_some_and(|it| it == "test_child") {
            child(&words[1..], sinks, last)?
        } else {
            self.builtin(words, sinks)?
        };
        if last {
            self.over = Some(status);
        }
        Ok(status)
    }

    fn builtin(&mut self, words: &[String], sinks: &[Sink; 2]) -> io::Result<i32> {
        let word = |place: usize| words.get(place).map_or("", String::as_str);
        match word(0) {
            "echo" => out(&sinks[0])?.write_all(format!("{}\n", words[1..].join(" ")).as_bytes())?,
            "printf" => out(&sinks[0])?.write_all(&printf(word(1), &words[2..]))?,
            "exit" => {
                let status = word(1).parse().unwrap_or(2);
                self.over = Some(status);
                return Ok(status);
            }
            "true" | ":" => drop(out(&sinks[0])?),
            "false" => return Ok(1),
            "test" | "[" => return Ok(i32::from(!holds(&words[1..]))),
            "touch" => {
                for path in &words[1..] {
                    drop(append(Path::new(path))?);
                }
            }
            // rm -f FILE
            "rm" => _ = std::fs::remove_file(word(2)),
            "sleep" => pause((word(1).parse().unwrap_or(0.0) * 1000.0) as usize),
            "seq" => {
                let lines: String =
                    (1..=word(1).parse().unwrap_or(0)).map(|number: u64| format!("{number}\n")).collect();
                out(&sinks[0])?.write_all(lines.as_bytes())?;
            }
            "cat" if word(1).is_empty() => drop(io::copy(&mut io::stdin(), &mut out(&sinks[0])?)?),
            "cat" => drop(io::copy(&mut File::open(word(1))?, &mut out(&sinks[0])?)?),
            name => {
                eprintln!("test_child: mini-shell: no such command: {name}");
                return Ok(127);
            }
        }
        Ok(0)
    }
}

/// Does a verb of this program: in this process, unless it would end it or writes elsewhere.
fn child(words: &[String], sinks: &[Sink; 2], last: bool) -> io::Result<i32> {
    let ends = matches!(words.first().map(String::as_str), Some("exit" | "relay" | "kill-self" | "gate"));
    if *sinks == [Sink::Stream(1), Sink::Stream(2)] && (last || !ends) {
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        return super::act(&Words(words.to_vec()), &args).map(i32::from);
    }
    let stdio = |sink: &Sink| -> io::Result<Stdio> {
        Ok(match sink {
            Sink::Stream(1) => io::stdout().into(),
            Sink::Stream(_) => io::stderr().into(),
            Sink::Null => Stdio::null(),
            Sink::File(path, append) => open(path, *append)?.into(),
        })
    };
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).stdout(stdio(&sinks[0])?).stderr(stdio(&sinks[1])?);
    // DETACHED_PROCESS: else it gets a console, whose host is one more process.
    #[cfg(windows)]
    std::os::windows::process::CommandExt::creation_flags(&mut command, 8);
    Ok(command.status()?.code().unwrap_or(128))
}

fn open(path: &str, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(append).write(!append).truncate(!append).create(true);
    when_free(&options, Path::new(path))
}

fn out(sink: &Sink) -> io::Result<Box<dyn Write>> {
    Ok(match sink {
        Sink::Stream(1) => Box::new(io::stdout()),
        Sink::Stream(_) => Box::new(io::stderr()),
        Sink::Null => Box::new(io::sink()),
        Sink::File(path, true) => Box::new(append(Path::new(path))?),
        Sink::File(path, false) => Box::new(open(path, false)?),
    })
}

fn holds(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "]").collect();
    match words[..] {
        ["!", ref rest @ ..] => !holds(&rest.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()),
        ["-e", path] => Path::new(path).exists(),
        ["-d", path] => Path::new(path).is_dir(),
        [left, "=", right] => left == right,
        [left, "!=", right] => left != right,
        [left, "-eq", right] => left.parse::<i64>().ok() == right.parse::<i64>().ok(),
        [left, "-lt", right] => left.parse::<i64>().ok() < right.parse::<i64>().ok(),
        [left, "-gt", right] => left.parse::<i64>().ok() > right.parse::<i64>().ok(),
        _ => false,
    }
}

/// Formats values as printf(1) does: it knows `%s` and escapes, and repeats the format until all
/// values are used.
fn printf(format: &str, values: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut values = values.iter();
    loop {
        let mut rest = format.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            (rest, _) = (after, ());
            match (first, after) {
                (b'%', [b's', ..]) => {
                    out.extend_from_slice(values.next().map_or("", String::as_str).as_bytes());
                    rest = &after[1..];
                }
                (b'%', [b'%', ..]) => {
                    out.push(b'%');
                    rest = &after[1..];
                }
                (b'\\', [b'0'..=b'7', ..]) => {
                    let digits = after.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                    out.push(after[..digits].iter().fold(0_u8, |all, digit| (all << 3) | (digit - b'0')));
                    rest = &after[digits..];
                }
                (b'\\', [escape, ..]) => {
                    out.push(match escape {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        other => *other,
                    });
                    rest = &after[1..];
                }
                _ => out.push(first),
            }
        }
        if values.len() == 0 || !format.contains("%s") {
            return out;
        }
    }
}
