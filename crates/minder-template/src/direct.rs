//! The direct form: each word is one argument, or one for each value, and placeholders are replaced
//! inside it.

use std::ffi::{OsStr, OsString};

use crate::checks::CheckCache;
use crate::error::{Error, ErrorKind};
use crate::job::Job;
use crate::options::{Options, Repeat};
use crate::placeholder::expression::{DefinitionPart, Placeholder, Source};
use crate::size::{CommandLength, Size};
use crate::word::Word;
use crate::{display, eval_commands};

/// The words of a command that is run without a shell.
#[derive(Debug, Clone)]
pub(crate) struct DirectCommand {
    words: Vec<Vec<DefinitionPart>>,
    repeat: Repeat,
    lenient: bool,
    /// A text that is no command, and one word whatever its values are.
    text: bool,
    /// Values are what `--only` says.
    harmless: bool,
    checks: CheckCache,
}

impl DirectCommand {
    pub(crate) fn parse(words: &[OsString], options: &Options) -> Result<DirectCommand, Error> {
        if words[0].is_empty() {
            return Err(Error::syntax("the command is empty"));
        }
        let mut words: Vec<_> =
            words.iter().map(|word| options.placeholders.split(word.as_encoded_bytes())).collect();
        if options.append && !words.iter().flatten().any(|piece| matches!(piece, DefinitionPart::Value(_))) {
            words.push(vec![DefinitionPart::Value(options.placeholders.value().0)]);
        }
        let (repeat, lenient) = (options.repeat, options.missing_is_empty);
        let harmless = options.demand.is_harmless();
        let words =
            DirectCommand { words, repeat, lenient, text: false, harmless, checks: CheckCache::default() };
        words.check(1)?;
        Ok(words)
    }

    /// A text that is no command: nothing is added to it.
    pub(crate) fn text(word: &OsString, options: &Options) -> DirectCommand {
        DirectCommand {
            words: vec![options.placeholders.split(word.as_encoded_bytes())],
            repeat: Repeat::Joined,
            lenient: options.missing_is_empty,
            text: true,
            harmless: true,
            checks: CheckCache::default(),
        }
    }

    pub(crate) fn has_fixed_program(&self) -> bool {
        self.words[0].iter().all(|piece| matches!(piece, DefinitionPart::Text(_)))
    }

    pub(crate) fn program(&self) -> Option<OsString> {
        let text = |piece: &DefinitionPart| match piece {
            DefinitionPart::Text(text) => Some(text.clone()),
            DefinitionPart::Value(_) => None,
        };
        self.words[0].iter().map(text).collect()
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.words.iter().flatten().filter_map(|piece| match piece {
            DefinitionPart::Value(placeholder) => Some(*placeholder),
            DefinitionPart::Text(_) => None,
        })
    }

    /// See [`crate::template::Template::lengths`].
    pub(crate) fn lengths(&self) -> CommandLength {
        let mut lengths = CommandLength::default();
        for word in &self.words {
            let text = word.iter().map(|piece| match piece {
                DefinitionPart::Text(text) => text.len(),
                DefinitionPart::Value(_) => 0,
            });
            // With the blank behind the word; the last one stands for the end of the line.
            let text = text.sum::<usize>() + 1;
            let each =
                word.iter().filter(|piece| matches!(piece, DefinitionPart::Value(p) if p.repeats())).count();
            lengths.times += each;
            if self.repeat == Repeat::Context && each > 0 {
                lengths.each += text;
            } else {
                lengths.once += text;
                lengths.add_joined(each);
            }
        }
        lengths
    }

    pub(crate) fn argv(&self, job: &Job<'_>) -> Result<Vec<OsString>, Error> {
        let mut argv = Vec::with_capacity(self.words.len());
        if !self.text {
            self.checks.of(job.columns.len(), |count| self.check(count))?;
        }
        for word in &self.words {
            self.expand(word, job, &mut argv)?;
        }
        if argv.is_empty() {
            return Err(Error::new(ErrorKind::Column, "the command is a value, and the input has none"));
        }
        Ok(argv)
    }

    /// What a word is with the values of a job: several words if it stands for several values.
    fn expand(&self, word: &[DefinitionPart], job: &Job<'_>, out: &mut Vec<OsString>) -> Result<(), Error> {
        let count = job.columns.len();
        let mut now = OsString::new();
        if self.text {
            for piece in word {
                match piece {
                    DefinitionPart::Text(text) => now.push(text),
                    DefinitionPart::Value(placeholder) => {
                        placeholder.push_all(job, self.lenient, &mut now)?
                    }
                }
            }
        } else if count == 1 || !word.iter().any(DefinitionPart::repeats) {
            for piece in word {
                piece.push(job, 0, self.lenient, &mut now)?;
            }
        } else if self.repeat == Repeat::Context && count > 0 {
            for nth in 0..count {
                let mut now = OsString::new();
                for piece in word {
                    piece.push(job, nth, self.lenient, &mut now)?;
                }
                out.push(now);
            }
            return Ok(());
        } else {
            for piece in word {
                for nth in 0..if piece.repeats() { count } else { 1 } {
                    if nth > 0 {
                        out.push(std::mem::take(&mut now));
                    }
                    piece.push(job, nth, self.lenient, &mut now)?;
                }
            }
            if count == 0 && word.iter().all(DefinitionPart::repeats) {
                return Ok(());
            }
        }
        out.push(now);
        Ok(())
    }

    /// Looks for values that would be program text, with so many arguments.
    fn check(&self, count: usize) -> Result<(), Error> {
        let mut words = Vec::new();
        for word in &self.words {
            self.describe(word, count, &mut words);
        }
        match words.is_empty() {
            true => Ok(()),
            false => eval_commands::check_programs(&words, self.harmless, false).map(drop),
        }
    }

    fn describe(&self, pieces: &[DefinitionPart], count: usize, out: &mut Vec<Word>) {
        let mut word = Word::default();
        let several = count != 1 && pieces.iter().any(DefinitionPart::repeats);
        let context = several && self.repeat == Repeat::Context && count > 0;
        for piece in pieces {
            match piece {
                DefinitionPart::Text(text) => word.text.extend_from_slice(text.as_encoded_bytes()),
                DefinitionPart::Value(placeholder) if placeholder.repeats() && !context => {
                    word.values(*placeholder, count, out);
                }
                DefinitionPart::Value(placeholder) => word.value(*placeholder),
            }
        }
        match (several, context) {
            (_, true) => out.extend(std::iter::repeat_n(word.among_several(), count)),
            (true, _) if count == 0 && pieces.iter().all(DefinitionPart::repeats) => {}
            _ => out.push(word),
        }
    }

    pub(crate) fn display(&self, job: &Job<'_>) -> String {
        let words = self.words.iter().enumerate().map(|(at, pieces)| {
            let mut words = Vec::new();
            // A text such as a tag has no command.
            let first = at == 0 && !self.text;
            match self.expand(pieces, job, &mut words) {
                Ok(()) => {
                    let shown = words.iter().enumerate().map(|(nth, word)| match first && nth == 0 {
                        true => display::command(word),
                        false => display::bare(word),
                    });
                    shown.collect::<Vec<_>>().join(" ")
                }
                Err(_) => pieces.iter().map(written).collect(),
            }
        });
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// See [`crate::size::Size`].
    pub(crate) fn measure(&self, argument: Option<(usize, &OsStr)>, size: &mut Size) {
        for word in &self.words {
            let repeated = self.repeat == Repeat::Context && word.iter().any(DefinitionPart::repeats);
            for piece in word {
                piece.measure(argument, repeated, Source::Each, size);
            }
            if argument.is_none() {
                size.once += 1;
                size.each += usize::from(repeated);
            }
        }
    }
}

fn written(piece: &DefinitionPart) -> String {
    match piece {
        DefinitionPart::Text(text) => display::bare(text),
        DefinitionPart::Value(placeholder) => placeholder.to_string(),
    }
}
