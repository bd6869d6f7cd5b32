//! Compound commands of a shell line: loops, `case`, `[[ … ]]`, functions.

use crate::error::{Error, NumberCheck};
use crate::kinds::{BASH, KORN};
use crate::posix::flow::PARAMETERS;
use crate::posix::names::{is_name, mentions};
use crate::posix::scanner::{Forbidden, ListEnd, Scanner};
use crate::posix::simple_command::{self, is_compared, is_comparison};
use crate::word::Word;

impl Scanner<'_> {
    /// Reads `if … fi`.
    pub(crate) fn if_command(&mut self) -> Result<(), Error> {
        self.advance(2);
        loop {
            self.list(&["then"], false)?;
            match self.list(&["elif", "else", "fi"], false)? {
                ListEnd::Word("elif") => {}
                ListEnd::Word("else") => return self.list(&["fi"], false).map(drop),
                _ => return Ok(()),
            }
        }
    }

    /// Reads `while … done` or `until … done`.
    pub(crate) fn while_loop(&mut self, word: &[u8]) -> Result<(), Error> {
        self.advance(word.len());
        self.list(&["do"], false)?;
        self.list(&["done"], false).map(drop)
    }

    /// Reads `for … done` or `select … done`.
    pub(crate) fn for_loop(&mut self, word: &[u8]) -> Result<(), Error> {
        self.advance(word.len());
        self.skip_spaces()?;
        if self.rest().starts_with(b"((") {
            self.loop_head()?;
            return self.loop_body();
        }
        let name = self.bare_word();
        if !is_name(name) {
            return Err(Error::refused("`for` without a name is not followed here: write `for v in …`"));
        }
        self.advance(name.len());
        self.skip_separators()?;
        let mut numbers = true;
        let mut from = Vec::new();
        if self.bare_word() == b"in" {
            self.advance(2);
            loop {
                self.skip_spaces()?;
                match self.peek(0) {
                    None | Some(b';' | b'\n') => break,
                    Some(b'&' | b'|' | b'(' | b')' | b'<' | b'>' | b'#') => {
                        return Err(Error::syntax("the words after `in` end in `;`"));
                    }
                    Some(_) => {}
                }
                let words = self.words()?;
                numbers &= words.iter().all(|w| {
                    let is_digits = w.first_expansion.is_none() && w.text.iter().all(u8::is_ascii_digit);
                    !w.special && (is_digits || w.is_one_number(0))
                });
                self.record_assignment(name, words.iter().find_map(|word| word.placeholder))?;
                for word in &words {
                    self.record_item(name, word);
                }
                from.extend(words.iter().flat_map(mentions));
            }
        } else if self.functions == 0 {
            let name = String::from_utf8_lossy(name);
            return Err(Error::refused(format!(
                "`for {name}` without `in` walks minder's own parameters: write `for {name} in {{}}`"
            )));
        } else {
            numbers = false;
            from = vec![PARAMETERS.to_vec()];
        }
        if numbers {
            self.flow.number(name, self.nesting == 1);
        } else {
            self.flow.copy(name, &from);
        }
        self.loop_body()
    }

    /// Records a word of the list of a loop.
    fn record_item(&mut self, name: &[u8], word: &Word) {
        match word.placeholder {
            Some(placeholder) if !word.nested => self.flow.assign_value(name, placeholder),
            None if word.composes_name(0) => self.flow.compose(name),
            _ => (),
        }
    }

    /// Reads the commands of a loop `for`.
    fn loop_body(&mut self) -> Result<(), Error> {
        self.skip_separators()?;
        if self.bare_word() != b"do" {
            return Err(Error::syntax("`for` has no `do`"));
        }
        self.advance(2);
        self.list(&["done"], false).map(drop)
    }

    /// Reads `case … esac`.
    pub(crate) fn case(&mut self) -> Result<(), Error> {
        self.advance(4);
        self.skip_spaces()?;
        self.word()?;
        self.skip_separators()?;
        if self.bare_word() != b"in" {
            return Err(Error::syntax("`case` has no `in`"));
        }
        self.advance(2);
        loop {
            self.skip_separators()?;
            if self.bare_word() == b"esac" {
                self.advance(4);
                return Ok(());
            }
            self.pattern()?;
            if self.list(&["esac"], false)? == ListEnd::Word("esac") {
                return Ok(());
            }
        }
    }

    /// Reads the patterns of a branch of `case`, with the `)`.
    fn pattern(&mut self) -> Result<(), Error> {
        let opened = self.peek(0) == Some(b'(');
        if opened {
            self.advance(1);
        } else if self.substitutions > 0 {
            // Older shells, such as bash of macOS, read the `)` of the pattern as the end of `$(`.
            return Err(Error::refused(
                "a `case` pattern inside `$(…)` needs both parentheses: write `(pattern)`",
            ));
        }
        loop {
            self.skip_spaces()?;
            match self.peek(0) {
                Some(b')') => break,
                Some(b'|') => self.advance(1),
                None | Some(b'\n' | b';' | b'&' | b'(' | b'<' | b'>' | b'#') => {
                    return Err(Error::syntax("a `case` pattern has no `)`"));
                }
                Some(_) => drop(self.word()?),
            }
        }
        self.advance(1);
        Ok(())
    }

    /// Reads `[[ … ]]`. Operators are ordinary characters there, and comparisons of numbers
    /// evaluate their operands.
    pub(crate) fn conditional(&mut self) -> Result<(), Error> {
        if !self.rules.kinds.is_within(KORN.or(BASH)) {
            return Err(Error::refused("`[[` is not part of POSIX sh: write `[ … ]`, or use `--shell bash`"));
        }
        self.advance(2);
        let mut words: Vec<Word> = Vec::new();
        loop {
            self.skip_spaces()?;
            match self.peek(0) {
                None => return Err(Error::syntax("`[[` has no `]]`")),
                Some(b'\n') => self.newline()?,
                Some(b'(' | b')' | b'&' | b'|') => self.advance(1),
                Some(b'<' | b'>') if self.peek(1) != Some(b'(') => self.advance(1),
                Some(b';' | b'#') => {
                    return Err(Error::syntax("`[[ … ]]` holds a bare `;` or `#`: quote it"));
                }
                Some(_) if self.bare_word() == b"]]" => break,
                Some(_) => words.push(self.word()?),
            }
        }
        self.advance(2);
        let operators: &[&[u8]] =
            if self.rules.kinds.meets(KORN) { &[b"-v", b"-R", b"-t"] } else { &[b"-v", b"-R"] };
        let evaluates = words
            .iter()
            .any(|w| simple_command::may_be_comparison(w) || simple_command::may_be_operator(w, operators));
        if !evaluates {
            return Ok(());
        }
        if !self.rules.trusted {
            refuse_compared_values(&words)?;
        }
        let names: Vec<Vec<u8>> = words.iter().flat_map(mentions).collect();
        if (0..words.len()).any(|at| is_compared(&words, at) && words[at].composes_name(0)) {
            self.flow.evaluate_any();
        }
        let is_other_operator = |word: &Word| {
            simple_command::may_be_operator(word, operators)
                || simple_command::may_be_comparison(word) && !is_comparison(word)
        };
        if words.iter().any(is_other_operator) {
            self.flow.evaluate(&names);
        } else {
            self.flow.compare(&names);
        }
        Ok(())
    }

    /// Reads the rest of a function definition after the name.
    pub(crate) fn function(&mut self) -> Result<(), Error> {
        const BODY: Forbidden = Forbidden {
            location: "in a function, where the parameters are the function's own",
            hint: "hand it over as an argument, `f {}`, and write `$1`",
            allows_checked: false,
            number: None,
        };
        if self.peek(0) == Some(b'(') {
            self.advance(1);
            self.skip_spaces()?;
            if self.peek(0) != Some(b')') {
                return Err(Error::syntax("`(` after a word opens nothing: quote it"));
            }
            self.advance(1);
        }
        self.skip_separators()?;
        if matches!(self.bare_word(), b"!" | b"time") {
            return Err(Error::syntax("a function's body is one command: write `{ …; }`"));
        }
        self.forbidden.push(BODY);
        self.functions += 1;
        self.command()?;
        self.functions -= 1;
        self.forbidden.pop();
        // The arguments of the function may be values.
        self.flow.store(PARAMETERS);
        self.tail = None;
        Ok(())
    }
}

/// Refuses values in `[[ … ]]` with an operator that evaluates its operands. A value that is the
/// operand of a comparison may be a number.
fn refuse_compared_values(words: &[Word]) -> Result<(), Error> {
    for (at, word) in words.iter().enumerate() {
        let Some(placeholder) = word.placeholder else { continue };
        let error = Error::refused(format!(
            "`{placeholder}` stands in `[[ … ]]` next to an operator that evaluates it as arithmetic: write \
             `[ … ]`, or check values with `--only '[0-9]+'`"
        ));
        return Err(if is_compared(words, at) && word.is_single_value() {
            let position = "is compared as a number in `[[ … ]]`";
            error.unless_number(NumberCheck { text: placeholder.text(), position })
        } else {
            error
        });
    }
    Ok(())
}
