//! One placeholder: what it takes of a job, and the value that it has there.

use std::ffi::{OsStr, OsString};
use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::job::Job;
use crate::placeholder::transform::Transform;
use minder_os::encoding::os_str_from_encoded;

/// One placeholder: how it is written, what it takes, and what is cut away from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placeholder {
    written: &'static [u8],
    pub(crate) source: Source,
    pub(crate) cut: Transform,
}

/// What a placeholder takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Every argument, one after the other.
    Each,
    /// Counted from 1.
    Nth(u32),
    /// Counted from 1, from the last.
    Last(u32),
    Number,
    Slot,
    Total,
    PaddedNumber,
    PaddedSlot,
}

/// A part of a word or of what an own placeholder stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DefinitionPart {
    Text(OsString),
    Value(Placeholder),
}

impl Placeholder {
    /// `{}`.
    pub(crate) const VALUE: Placeholder =
        Placeholder { written: b"{}", source: Source::Each, cut: Transform::Nothing };

    pub(crate) fn new(written: &'static [u8], source: Source, cut: Transform) -> Placeholder {
        Placeholder { written, source, cut }
    }

    /// Says whether it stands for each argument separately.
    pub(crate) fn repeats(self) -> bool {
        match (self.source, self.cut) {
            (Source::Each, Transform::Own(pieces)) => pieces.iter().any(DefinitionPart::repeats),
            (source, _) => source == Source::Each,
        }
    }

    /// Says whether it is digits whatever the input is: `{#}`, `{%}`.
    pub(crate) fn is_number(self) -> bool {
        !matches!(self.source, Source::Each | Source::Nth(_) | Source::Last(_))
    }

    /// Says whether it, or a part of what it stands for, fulfils the condition.
    pub(crate) fn any(self, condition: &dyn Fn(Source) -> bool) -> bool {
        condition(self.source)
            || match self.cut {
                Transform::Own(pieces) => {
                    pieces.iter().any(|piece| matches!(piece, DefinitionPart::Value(p) if p.any(condition)))
                }
                _ => false,
            }
    }

    /// The largest column number that it asks for.
    pub(crate) fn max_column(self) -> u32 {
        let inner = match self.cut {
            Transform::Own(pieces) => pieces.iter().map(DefinitionPart::max_column).max().unwrap_or(0),
            _ => 0,
        };
        match self.source {
            Source::Nth(n) => n.max(inner),
            _ => inner,
        }
    }

    /// Appends the value for `job` to `out`; that of the argument `nth`, from 0, if it stands for
    /// each. `lenient`: a column that is missing is empty.
    pub(crate) fn push(
        self,
        job: &Job<'_>,
        nth: usize,
        lenient: bool,
        out: &mut OsString,
    ) -> Result<(), Error> {
        let column = match self.source {
            Source::Each => Some(nth),
            Source::Nth(n) => Some(n as usize - 1),
            Source::Last(n) => Some(job.columns.len().checked_sub(n as usize).unwrap_or(usize::MAX)),
            _ => None,
        };
        let Some(column) = column else {
            out.push(self.counted(job)?);
            return Ok(());
        };
        if let Transform::Own(pieces) = self.cut {
            for piece in pieces {
                piece.push(job, column, lenient, out)?;
            }
            return Ok(());
        }
        match job.columns.get(column) {
            Some(value) => self.push_cut(value, job, out),
            None if lenient => Ok(()),
            None => Err(self.missing(job.columns.len())),
        }
    }

    /// Appends the values for all arguments, a blank between them.
    pub(crate) fn push_all(self, job: &Job<'_>, lenient: bool, out: &mut OsString) -> Result<(), Error> {
        if !self.repeats() {
            return self.push(job, 0, lenient, out);
        }
        for nth in 0..job.columns.len() {
            if nth > 0 {
                out.push(" ");
            }
            self.push(job, nth, lenient, out)?;
        }
        Ok(())
    }

    fn counted(self, job: &Job<'_>) -> Result<String, Error> {
        let total = || {
            let text = || format!("`{self}` asks how many jobs there are, which is not known");
            job.total.ok_or_else(|| Error::new(ErrorKind::Total, text()))
        };
        Ok(match self.source {
            Source::Slot => job.slot.to_string(),
            Source::PaddedSlot => format!("{:01$}", job.slot, digits(job.slots.unwrap_or(1).into())),
            Source::Total => total()?.to_string(),
            Source::PaddedNumber => format!("{:01$}", job.number, digits(total()?)),
            _ => job.number.to_string(),
        })
    }

    fn push_cut(self, value: &OsStr, job: &Job<'_>, out: &mut OsString) -> Result<(), Error> {
        let bytes = value.as_encoded_bytes();
        if bytes.contains(&0) {
            let text = format!("the value of job {} holds a NUL byte, which no argument can", job.number);
            return Err(Error::new(ErrorKind::Nul, text));
        }
        match self.cut {
            Transform::Nothing => out.push(value),
            cut => out.push(os_str_from_encoded(&cut.apply(bytes))),
        }
        Ok(())
    }

    fn missing(self, columns: usize) -> Error {
        let wanted = match self.source {
            Source::Nth(n) => nth_column(n),
            Source::Last(n) => format!("column {n} from the last"),
            _ => "a value".to_owned(),
        };
        Error::new(ErrorKind::Column, format!("`{self}` asks for {wanted}, the input has {columns}"))
    }
}

impl DefinitionPart {
    pub(crate) fn repeats(&self) -> bool {
        matches!(self, DefinitionPart::Value(placeholder) if placeholder.repeats())
    }

    pub(crate) fn max_column(&self) -> u32 {
        match self {
            DefinitionPart::Value(placeholder) => placeholder.max_column(),
            DefinitionPart::Text(_) => 0,
        }
    }

    pub(crate) fn push(
        &self,
        job: &Job<'_>,
        nth: usize,
        lenient: bool,
        out: &mut OsString,
    ) -> Result<(), Error> {
        match self {
            DefinitionPart::Text(text) => {
                out.push(text);
                Ok(())
            }
            DefinitionPart::Value(placeholder) => placeholder.push(job, nth, lenient, out),
        }
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.written))
    }
}

fn digits(number: u64) -> usize {
    number.max(1).ilog10() as usize + 1
}

fn nth_column(n: u32) -> String {
    const WORDS: [&str; 12] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
        "eleventh", "twelfth",
    ];
    let article = if n == 8 || n == 11 { "an" } else { "a" };
    match WORDS.get(n as usize - 1) {
        Some(word) => format!("{article} {word} column"),
        None => format!("column {n}"),
    }
}
