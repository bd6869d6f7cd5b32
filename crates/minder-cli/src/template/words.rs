//! The direct form: each word is one argument, and placeholders are replaced inside it.

use std::ffi::OsString;

use super::evaluators::{self, Word};
use super::{Error, Job, Placeholder, display, os_str};

/// The words of a command that is run without a shell.
#[derive(Debug, Clone)]
pub(super) struct Words {
    words: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone)]
enum Piece {
    Text(OsString),
    Value(Placeholder),
}

impl Words {
    pub(super) fn parse(words: &[OsString]) -> Result<Words, Error> {
        if words[0].is_empty() {
            return Err(Error::syntax("the command is empty"));
        }
        let mut words: Vec<_> = words.iter().map(|word| split(word.as_encoded_bytes())).collect();
        if !words.iter().flatten().any(|piece| matches!(piece, Piece::Value(_))) {
            words.push(vec![Piece::Value(Placeholder::VALUE)]);
        }
        let seen: Vec<Word> = words.iter().map(|word| describe(word)).collect();
        evaluators::check_programs(&seen)?;
        Ok(Words { words })
    }

    /// A text that is no command: nothing is added to it.
    pub(super) fn text(word: &OsString) -> Words {
        Words { words: vec![split(word.as_encoded_bytes())] }
    }

    pub(super) fn has_fixed_program(&self) -> bool {
        self.words[0].iter().all(|piece| matches!(piece, Piece::Text(_)))
    }

    pub(super) fn argv(&self, job: &Job<'_>) -> Result<Vec<OsString>, Error> {
        self.words.iter().map(|word| expand(word, job)).collect()
    }

    pub(super) fn display(&self, job: &Job<'_>) -> String {
        let words = self.words.iter().map(|pieces| match expand(pieces, job) {
            Ok(word) => display::bare(&word),
            Err(_) => pieces.iter().map(Piece::written).collect(),
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

impl Piece {
    fn written(&self) -> String {
        match self {
            Piece::Text(text) => display::bare(text),
            Piece::Value(placeholder) => placeholder.to_string(),
        }
    }
}

fn expand(word: &[Piece], job: &Job<'_>) -> Result<OsString, Error> {
    let mut out = OsString::new();
    for piece in word {
        match piece {
            Piece::Text(text) => out.push(text),
            Piece::Value(placeholder) => placeholder.push(job, &mut out)?,
        }
    }
    Ok(out)
}

fn split(word: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < word.len() {
        let Some((placeholder, length)) = Placeholder::at(&word[at..]) else {
            at += 1;
            continue;
        };
        if start < at {
            pieces.push(Piece::Text(os_str(&word[start..at]).into_owned()));
        }
        pieces.push(Piece::Value(placeholder));
        at += length;
        start = at;
    }
    if start < word.len() {
        pieces.push(Piece::Text(os_str(&word[start..]).into_owned()));
    }
    pieces
}

fn describe(pieces: &[Piece]) -> Word {
    let mut word = Word::default();
    for piece in pieces {
        match piece {
            Piece::Text(text) => word.text.extend_from_slice(text.as_encoded_bytes()),
            Piece::Value(placeholder) => word.value(*placeholder),
        }
    }
    word
}
