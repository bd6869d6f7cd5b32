//! The grammar of arithmetic, and of offsets in `${v:offset:length}`.
//!
//! Shells evaluate the text of a value there. So each job checks that it is a plain number.

use crate::error::Error;
use crate::kinds::{BASH, KORN, MKSH, ZSH};
use crate::placeholder::expression::Placeholder;
use crate::placeholder::site::Quote;
use crate::posix::names::{is_name, name_length};
use crate::posix::scanner::{Forbidden, Scanner};
use crate::word::Word;

const ARITHMETIC: Forbidden = Forbidden {
    location: "in a substitution in arithmetic, which evaluates the output",
    hint: "check values with `--only '[0-9]+'`, or write `$(expr {} + 1)`",
    allows_checked: true,
    number: Some("stands in arithmetic"),
};
const PARENTHESES: Forbidden = Forbidden {
    location: "in `((…))`, which is arithmetic in bash, zsh and the Korn shells only",
    hint: "write `[ {} -gt 3 ]`, or use `--shell bash`",
    allows_checked: true,
    number: None,
};

/// A form of arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArithmeticForm {
    /// `$((…))`
    Expansion,
    /// `((…))`
    Command,
    /// The head of `for ((…;…;…))`
    Loop,
    /// `$[…]`
    Brackets,
}

impl ArithmeticForm {
    fn text(self) -> &'static str {
        match self {
            ArithmeticForm::Expansion => "$((…))",
            ArithmeticForm::Command | ArithmeticForm::Loop => "((…))",
            ArithmeticForm::Brackets => "$[…]",
        }
    }

    /// Returns the bytes that open a pair of brackets, that close it, and that end the arithmetic.
    fn brackets(self) -> (u8, u8, &'static [u8]) {
        match self {
            ArithmeticForm::Brackets => (b'[', b']', b"]"),
            _ => (b'(', b')', b"))"),
        }
    }
}

impl Scanner<'_> {
    /// Reads arithmetic up to and including its end. The opening was read already.
    pub(crate) fn arithmetic(&mut self, form: ArithmeticForm) -> Result<(), Error> {
        let from = self.at;
        let what = form.text();
        let (opening, closing, end) = form.brackets();
        self.enter_nesting()?;
        let regions = self.forbidden.len();
        self.forbidden.push(ARITHMETIC);
        if form == ArithmeticForm::Command && !self.rules.kinds.is_within(KORN.or(BASH)) {
            self.forbidden.push(PARENTHESES);
        }
        let mut open = 0;
        let mut word = Word::default();
        loop {
            if self.arithmetic_value(from)? {
                continue;
            }
            match self.peek(0) {
                None => return Err(self.unclosed(&format!("`{what}`"), from)),
                Some(byte) if byte == closing && open == 0 => break,
                Some(byte) if byte == closing => open -= 1,
                Some(byte) if byte == opening => open += 1,
                Some(b'\'' | b'"' | b'`' | b'\\') => {
                    return Err(Error::refused(format!(
                        "quotes inside `{what}` are read differently by different shells: leave them out"
                    )));
                }
                Some(b'$') => {
                    let name = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
                    let before = self.at > 0 && name(self.source[self.at - 1]);
                    self.arithmetic_dollar(&mut word)?;
                    // Together with the text next to it, it is a name that the line does not contain.
                    self.flow.names_filled |= before || self.peek(0).is_some_and(name);
                    continue;
                }
                Some(byte) if byte.is_ascii_digit() => {
                    let digit = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
                    let length = self.rest().iter().take_while(|byte| digit(byte)).count();
                    self.advance(length);
                    continue;
                }
                Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                    let name = &self.rest()[..name_length(self.rest())];
                    self.flow.read_in_arithmetic(name);
                    self.record_filled(name);
                    self.advance(name.len());
                    continue;
                }
                Some(_) => {}
            }
            self.advance(1);
        }
        if !self.rest().starts_with(end) {
            return Err(Error::refused(format!(
                "`{what}` does not end in `))`: write `( (` with a space for nested commands"
            )));
        }
        self.advance(end.len());
        self.forbidden.truncate(regions);
        self.nesting -= 1;
        Ok(())
    }

    /// Reads a placeholder in arithmetic that began at `from`. Returns whether there is one.
    fn arithmetic_value(&mut self, from: usize) -> Result<bool, Error> {
        let before = &self.source[from..self.at];
        let Some(placeholder) = self.placeholder(Quote::Inner)? else { return Ok(false) };
        refuse_sign_before(placeholder, before)?;
        // After a letter, the number is part of a name that the line does not contain.
        let is_name_byte = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let token = before.iter().rev().take_while(is_name_byte).collect::<Vec<_>>();
        if token.iter().any(|byte| !byte.is_ascii_digit()) {
            self.flow.evaluate_any();
            self.flow.names_filled = true;
        }
        Ok(true)
    }

    /// Reads `$[…]`, which is arithmetic in bash and zsh.
    pub(crate) fn bracket_arithmetic(&mut self, word: &mut Word) -> Result<(), Error> {
        if !self.rules.kinds.is_within(BASH | ZSH) {
            return Err(Error::refused(
                "`$[` is arithmetic in some shells and text in others: write `$((…))`, or `\\$[` for the \
                 text",
            ));
        }
        word.add_expansion();
        self.advance(2);
        self.arithmetic(ArithmeticForm::Brackets)
    }

    /// Reads `((…;…;…))` after `for`.
    pub(crate) fn loop_head(&mut self) -> Result<(), Error> {
        if !self.rules.kinds.is_within(KORN.or(BASH)) || self.rules.kinds == MKSH {
            return Err(Error::refused(
                "`for ((` is not part of POSIX sh: write `for v in …`, or use `--shell bash`",
            ));
        }
        self.advance(2);
        // After `i=0`, the variable is a number: arithmetic assigns nothing else.
        let inner = self.rest();
        let name = &inner[..name_length(inner)];
        let digits = inner[name.len()..].strip_prefix(b"=").unwrap_or_default();
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if is_name(name) && length > 0 && digits.get(length) == Some(&b';') {
            self.flow.number(name, self.nesting == 1);
        }
        self.arithmetic(ArithmeticForm::Loop)
    }

    /// Reads a `$` in arithmetic. Numbers such as `$?` and `${#v}` are harmless there. A variable
    /// is recorded, since its text may not be a number. Anything else counts as an evaluation.
    fn arithmetic_dollar(&mut self, word: &mut Word) -> Result<(), Error> {
        let rest = &self.rest()[1..];
        let braces = rest.first() == Some(&b'{');
        let inner = if braces { &rest[1..] } else { rest };
        let length = name_length(inner);
        let name = &inner[..length];
        let closed = !braces || inner.get(length) == Some(&b'}');
        match inner.first() {
            Some(b'#')
                if braces
                    && name_length(&inner[1..]) > 0
                    && inner.get(1 + name_length(&inner[1..])) == Some(&b'}') =>
            {
                let before = self.expanded.len();
                self.dollar(word, Quote::Double)?;
                self.expanded.truncate(before);
                Ok(())
            }
            Some(b'?' | b'$' | b'!') if !braces => self.dollar(word, Quote::Double),
            Some(byte) if is_name(name) && closed && !byte.is_ascii_digit() => {
                self.flow.read_in_arithmetic(name);
                self.record_filled(name);
                let before = self.expanded.len();
                self.dollar(word, Quote::Double)?;
                self.expanded.truncate(before);
                Ok(())
            }
            _ => {
                self.flow.evaluate_any();
                self.dollar(word, Quote::Double)
            }
        }
    }
}

/// Refuses a checked number directly after a sign. The number may begin with a sign, too.
pub(crate) fn refuse_sign_before(placeholder: Placeholder, before: &[u8]) -> Result<(), Error> {
    if placeholder.is_checked() && matches!(before, [.., b'-' | b'+']) {
        return Err(Error::refused(format!(
            "`{placeholder}` follows a sign, and its value may have one, which makes `--` or `++`: put a \
             space before it"
        )));
    }
    Ok(())
}
