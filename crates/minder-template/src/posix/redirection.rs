//! Redirections, and the here-documents that begin at the next line end.

use crate::error::Error;
use crate::posix::names::name_length;
use crate::posix::scanner::{HereDocument, Scanner};
use crate::word::Word;

impl Scanner<'_> {
    /// Reads the redirections after a compound command.
    pub(crate) fn redirections(&mut self) -> Result<(), Error> {
        loop {
            self.skip_spaces()?;
            let digits = self.rest().iter().take_while(|b| b.is_ascii_digit()).count();
            match self.peek(digits) {
                Some(b'<' | b'>') => {
                    self.advance(digits);
                    drop(self.redirection()?);
                }
                None | Some(b'\n' | b';' | b'&' | b'|' | b')' | b'#') if digits == 0 => return Ok(()),
                // `} done`, `fi }`: the only words that may follow are reserved ones.
                Some(_)
                    if matches!(
                        self.bare_word(),
                        b"then" | b"else" | b"elif" | b"fi" | b"do" | b"done" | b"esac" | b"}"
                    ) =>
                {
                    return Ok(());
                }
                _ => return Err(Error::syntax("a word follows a closed command: write `;` between them")),
            }
        }
    }

    /// Reads a redirection. Returns the text of a here-string, `<<<`.
    ///
    /// The accepted operators are those that all shells read alike. bash expands the target of `>&`
    /// a second time if it is not a number, so values are refused there.
    pub(crate) fn redirection(&mut self) -> Result<Option<Word>, Error> {
        const OPERATORS: [&[u8]; 10] = [b"<<<", b"<<-", b"<<", b"<>", b"<&", b">>", b">&", b">|", b"<", b">"];
        let operator =
            OPERATORS.into_iter().find(|operator| self.rest().starts_with(operator)).unwrap_or(b"");
        self.advance(operator.len());
        if matches!(self.peek(0), Some(b'&' | b'|' | b'!' | b';' | b'#')) {
            return Err(Error::refused(
                "a redirection is written as only some shells read it: write `>`, `>>`, `<`, or `2>&1` \
                 behind it",
            ));
        }
        self.skip_spaces()?;
        if matches!(operator, b"<<" | b"<<-") {
            return self.here_document_delimiter(operator == b"<<-").map(|()| None);
        }
        if matches!(self.peek(0), None | Some(b'\n' | b';' | b'&' | b'|' | b'(' | b')'))
            || (matches!(self.peek(0), Some(b'<' | b'>')) && self.peek(1) != Some(b'('))
        {
            return Err(Error::syntax("a redirection has no target"));
        }
        let before = self.sites.len();
        let target = self.word()?;
        if matches!(operator, b">&" | b"<&") {
            if let Some(placeholder) = target.placeholder
                && !self.rules.trusted
            {
                return Err(Error::refused(format!(
                    "`{placeholder}` stands behind `>&`, which bash expands a second time: write `> {{}} \
                     2>&1`"
                )));
            }
            self.flow.evaluate(&target.variables);
        }
        if operator == b"<<<" {
            return Ok(Some(target));
        }
        if !target.nested {
            self.redirected_sites += self.sites.len() - before;
        }
        Ok(None)
    }

    fn here_document_delimiter(&mut self, strips_tabs: bool) -> Result<(), Error> {
        let word = self.bare_word();
        let inner = match word {
            [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] | [b'\\', inner @ ..] => inner,
            inner => inner,
        };
        if inner.is_empty() || !inner.iter().all(|&b| b.is_ascii_alphanumeric() || b"_-.!+".contains(&b)) {
            return Err(Error::here_document("its end is not a plain word: write `<<'EOF'`"));
        }
        self.here_documents.push(HereDocument {
            delimiter: inner.to_vec(),
            strips_tabs,
            quoted: inner.len() < word.len(),
            is_program: false,
        });
        self.advance(word.len());
        Ok(())
    }

    /// Reads a line end and the here-documents that begin there.
    pub(crate) fn newline(&mut self) -> Result<(), Error> {
        self.advance(1);
        for document in std::mem::take(&mut self.here_documents) {
            self.here_document(&document)?;
        }
        Ok(())
    }

    fn here_document(&mut self, document: &HereDocument) -> Result<(), Error> {
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return Err(Error::here_document("the line that ends it is missing"));
            }
            let length = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
            let text = &rest[..length];
            let tabs =
                if document.strips_tabs { text.iter().take_while(|&&b| b == b'\t').count() } else { 0 };
            if text[tabs..] == document.delimiter {
                self.advance(length);
                return Ok(());
            }
            if let Some((placeholder, _)) = (0..length).find_map(|i| self.placeholder_at(&text[i..])) {
                return Err(Error::refused(format!(
                    "`{placeholder}` stands in a here-document: write `printf '%s\\n' {{}} | …` in its place"
                )));
            }
            let begins_expansion = |pair: &[u8]| {
                pair[0] == b'$' && !(pair[1].is_ascii_alphabetic() || pair[1] == b'_' || pair[1] == b' ')
            };
            if !document.quoted
                && (text.contains(&b'`') || text.ends_with(b"\\") || text.windows(2).any(begins_expansion))
            {
                return Err(Error::here_document(
                    "it has expansions that are not followed there: quote its end, `<<'EOF'`",
                ));
            }
            if !document.quoted {
                for (at, _) in text.iter().enumerate().filter(|(_, byte)| **byte == b'$') {
                    let name = &text[at + 1..];
                    self.check_text_after_name(&name[name_length(name)..])?;
                    if document.is_program {
                        self.flow.evaluate(&[name[..name_length(name)].to_vec()]);
                    }
                }
            }
            self.advance(length + 1);
        }
    }

    /// Refuses a word that began at `from` and has several lines while a here-document is pending.
    pub(crate) fn refuse_many_lines(&self, from: usize) -> Result<(), Error> {
        if !self.here_documents.is_empty() && self.source[from..self.at].contains(&b'\n') {
            return Err(Error::here_document(
                "a word after it goes over several lines: put it on the line before",
            ));
        }
        Ok(())
    }
}
