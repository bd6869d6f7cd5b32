//! Compound commands of a shell line: loops, `case`, `[[ … ]]`, functions.

use crate::error::Error;
use crate::kinds::{BASH, KORN};
use crate::posix::flow::PARAMETERS;
use crate::posix::names::{is_name, mentions};
use crate::posix::scanner::{End, Forbidden, Scanner};
use crate::posix::simple_command;
use crate::word::Word;

impl Scanner<'_> {
    pub(crate) fn branches(&mut self) -> Result<(), Error> {
        self.copy(2);
        loop {
            self.list(&["then"], false)?;
            match self.list(&["elif", "else", "fi"], false)? {
                End::Word("elif") => {}
                End::Word("else") => return self.list(&["fi"], false).map(drop),
                _ => return Ok(()),
            }
        }
    }

    pub(crate) fn loop_body(&mut self, word: &[u8]) -> Result<(), Error> {
        self.copy(word.len());
        self.list(&["do"], false)?;
        self.list(&["done"], false).map(drop)
    }

    pub(crate) fn for_loop(&mut self, word: &[u8]) -> Result<(), Error> {
        self.copy(word.len());
        self.blanks()?;
        let name = self.plain();
        if !is_name(name) {
            return Err(Error::refused("`for` without a name is not followed here: write `for v in …`"));
        }
        self.copy(name.len());
        self.separators()?;
        let (mut numbers, mut from) = (true, Vec::new());
        if self.plain() == b"in" {
            self.copy(2);
            loop {
                self.blanks()?;
                match self.peek(0) {
                    None | Some(b';' | b'\n') => break,
                    Some(b'&' | b'|' | b'(' | b')' | b'<' | b'>' | b'#') => {
                        return Err(Error::syntax("the words after `in` end in `;`"));
                    }
                    Some(_) => {}
                }
                let words = self.words()?;
                numbers &=
                    words.iter().all(|w| w.gap.is_none() && !w.odd && w.text.iter().all(u8::is_ascii_digit));
                self.stored(name, words.iter().find_map(|word| word.holds))?;
                from.extend(words.iter().flat_map(mentions));
            }
        } else if self.functions == 0 {
            let name = String::from_utf8_lossy(name);
            return Err(Error::refused(format!(
                "`for {name}` without `in` walks minder's own parameters: write `for {name} in {{}}`"
            )));
        } else {
            (numbers, from) = (false, vec![PARAMETERS.to_vec()]);
        }
        match numbers {
            true => self.flow.number(name, self.nesting == 1),
            false => self.flow.copy(name, &from),
        }
        self.separators()?;
        if self.plain() != b"do" {
            return Err(Error::syntax("`for` has no `do`"));
        }
        self.copy(2);
        self.list(&["done"], false).map(drop)
    }

    pub(crate) fn case(&mut self) -> Result<(), Error> {
        self.copy(4);
        self.blanks()?;
        self.word()?;
        self.separators()?;
        if self.plain() != b"in" {
            return Err(Error::syntax("`case` has no `in`"));
        }
        self.copy(2);
        loop {
            self.separators()?;
            if self.plain() == b"esac" {
                self.copy(4);
                return Ok(());
            }
            self.pattern()?;
            if self.list(&["esac"], false)? == End::Word("esac") {
                return Ok(());
            }
        }
    }

    fn pattern(&mut self) -> Result<(), Error> {
        let opened = self.peek(0) == Some(b'(');
        if opened {
            self.copy(1);
        } else if self.substitutions > 0 {
            // Older shells, such as the bash of macOS, take the pattern's `)` for the end of `$(`.
            return Err(Error::refused(
                "a `case` pattern inside `$(…)` needs both parentheses: write `(pattern)`",
            ));
        }
        loop {
            self.blanks()?;
            match self.peek(0) {
                Some(b')') => break,
                Some(b'|') => self.copy(1),
                None | Some(b'\n' | b';' | b'&' | b'(' | b'<' | b'>' | b'#') => {
                    return Err(Error::syntax("a `case` pattern has no `)`"));
                }
                Some(_) => drop(self.word()?),
            }
        }
        self.copy(1);
        Ok(())
    }

    /// `[[ … ]]`: operators are ordinary characters, and comparisons of numbers evaluate.
    pub(crate) fn conditional(&mut self) -> Result<(), Error> {
        if !self.rules.kinds.is_within(KORN.or(BASH)) {
            return Err(Error::refused("`[[` is no part of POSIX sh: write `[ … ]`, or use `--shell bash`"));
        }
        self.copy(2);
        let mut words: Vec<Word> = Vec::new();
        loop {
            self.blanks()?;
            match self.peek(0) {
                None => return Err(Error::syntax("`[[` has no `]]`")),
                Some(b'\n') => self.newline()?,
                Some(b'(' | b')' | b'&' | b'|') => self.copy(1),
                Some(b'<' | b'>') if self.peek(1) != Some(b'(') => self.copy(1),
                Some(b';' | b'#') => {
                    return Err(Error::syntax("`[[ … ]]` holds a bare `;` or `#`: quote it"));
                }
                Some(_) if self.plain() == b"]]" => break,
                Some(_) => words.push(self.word()?),
            }
        }
        self.copy(2);
        let operators: &[&[u8]] =
            if self.rules.kinds.meets(KORN) { &[b"-v", b"-R", b"-t"] } else { &[b"-v", b"-R"] };
        let evaluates =
            words.iter().any(|w| simple_command::numeric(w) || simple_command::can_be(w, operators));
        match words.iter().find_map(|w| w.holds).filter(|_| !self.rules.harmless) {
            Some(placeholder) if evaluates => Err(Error::refused(format!(
                "`{placeholder}` stands in `[[ … ]]` beside an operator that evaluates it as arithmetic: write `[ … ]`, or check \
                 values with `--only '[0-9]+'`"
            ))),
            _ => {
                if evaluates {
                    let names: Vec<Vec<u8>> = words.iter().flat_map(mentions).collect();
                    self.flow.evaluate(&names);
                }
                Ok(())
            }
        }
    }

    pub(crate) fn function(&mut self) -> Result<(), Error> {
        const BODY: Forbidden = Forbidden {
            place: "in a function, where the parameters are the function's own",
            cure: "hand it over as an argument, `f {}`, and write `$1`",
            only: false,
        };
        if self.peek(0) == Some(b'(') {
            self.copy(1);
            self.blanks()?;
            if self.peek(0) != Some(b')') {
                return Err(Error::syntax("`(` after a word opens nothing: quote it"));
            }
            self.copy(1);
        }
        self.separators()?;
        if matches!(self.plain(), b"!" | b"time") {
            return Err(Error::syntax("a function's body is one command: write `{ …; }`"));
        }
        self.forbidden.push(BODY);
        self.functions += 1;
        self.command()?;
        self.functions -= 1;
        self.forbidden.pop();
        // Its arguments may be values.
        self.flow.store(PARAMETERS);
        self.tail = None;
        Ok(())
    }
}
