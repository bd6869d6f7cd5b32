//! A parsed placeholder, and the value that it has in a job.

use std::ffi::{OsStr, OsString};
use std::fmt;

use crate::display;
use crate::error::{Error, ErrorKind};
use crate::job::Job;
use crate::placeholder::transform::Transform;
use minder_os::encoding::os_str_from_encoded;

/// A placeholder: its text in the template, its source, and the form of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placeholder {
    text: &'static [u8],
    pub(crate) source: Source,
    pub(crate) form: ValueForm,
    /// Each job checks that its value is a plain decimal number, which stands in this position.
    checked: Option<&'static str>,
}

/// The part of a job that a placeholder reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Every argument, one after the other.
    Each,
    /// One argument, counted from 1.
    Nth(u32),
    /// One argument, counted from 1 and from the end.
    Last(u32),
    Number,
    Slot,
    Total,
    PaddedNumber,
    PaddedSlot,
}

/// The way in which an argument becomes the value of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// The argument, transformed.
    Transformed(Transform),
    /// The definition of a custom placeholder. Placeholders in it without a number read the same
    /// argument.
    Defined(&'static [DefinitionPart]),
}

impl ValueForm {
    /// The argument as it is.
    pub(crate) const PLAIN: ValueForm = ValueForm::Transformed(Transform::Identity);
}

/// A part of an argument of the template, or of the definition of a custom placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DefinitionPart {
    Text(OsString),
    Value(Placeholder),
}

impl Placeholder {
    /// `{}`.
    pub(crate) const VALUE: Placeholder =
        Placeholder { text: b"{}", source: Source::Each, form: ValueForm::PLAIN, checked: None };

    pub(crate) fn new(text: &'static [u8], source: Source, form: ValueForm) -> Placeholder {
        Placeholder { text, source, form, checked: None }
    }

    /// Returns its spelling in the template.
    pub(crate) fn text(self) -> &'static [u8] {
        self.text
    }

    /// Returns the placeholder for which each job checks that the value is a plain decimal number.
    pub(crate) fn checked(self, position: &'static str) -> Placeholder {
        Placeholder { checked: Some(position), ..self }
    }

    /// Returns whether it stands for each argument separately.
    pub(crate) fn repeats(self) -> bool {
        match (self.source, self.form) {
            (Source::Each, ValueForm::Defined(parts)) => parts.iter().any(DefinitionPart::repeats),
            (source, _) => source == Source::Each,
        }
    }

    /// Returns whether its value consists of digits for every input: `{#}`, `{%}`.
    pub(crate) fn is_counter(self) -> bool {
        !matches!(self.source, Source::Each | Source::Nth(_) | Source::Last(_))
    }

    /// Returns whether its value is a number: that of a counter, or one that each job checks.
    pub(crate) fn is_number(self) -> bool {
        self.checked.is_some() || self.is_counter()
    }

    /// Returns whether each job checks that its value is a number. It may have a sign.
    pub(crate) fn is_checked(self) -> bool {
        self.checked.is_some()
    }

    /// Refuses a value that is not a plain decimal number, if it must be one. It may have a sign and
    /// at most 18 digits, so that it fits into 64 bits, and no leading zeros, which shells read as an
    /// octal number.
    pub(crate) fn check_number(self, value: &OsStr) -> Result<(), Error> {
        let Some(position) = self.checked else { return Ok(()) };
        if is_plain_number(value.as_encoded_bytes()) {
            return Ok(());
        }
        let mut shown = String::new();
        display::text(value.as_encoded_bytes(), &mut shown);
        let text = format!(
            "the value `{shown}` is not a decimal number of at most 18 digits without leading zeros, and \
             `{self}` {position}: correct the value, or see `--only`"
        );
        Err(Error::new(ErrorKind::Value, text))
    }

    /// Returns whether the condition holds for it, or for a placeholder in its definition.
    pub(crate) fn any(self, condition: &dyn Fn(Source) -> bool) -> bool {
        let is_match =
            |part: &DefinitionPart| matches!(part, DefinitionPart::Value(inner) if inner.any(condition));
        match self.form {
            _ if condition(self.source) => true,
            ValueForm::Defined(parts) => parts.iter().any(is_match),
            ValueForm::Transformed(_) => false,
        }
    }

    /// Returns whether it has no value in a job with this many columns.
    pub(crate) fn is_missing(self, columns: usize) -> bool {
        let has_text = !matches!(self.form, ValueForm::Transformed(transform) if !transform.has_default());
        match self.source {
            Source::Nth(n) | Source::Last(n) => n as usize > columns && !has_text,
            _ => false,
        }
    }

    /// Returns the largest column number that it reads.
    pub(crate) fn max_column(self) -> u32 {
        let inner = match self.form {
            ValueForm::Defined(parts) => parts.iter().map(DefinitionPart::max_column).max().unwrap_or(0),
            ValueForm::Transformed(_) => 0,
        };
        match self.source {
            Source::Nth(n) => n.max(inner),
            _ => inner,
        }
    }

    /// Appends the value for `job` to `out`. A placeholder for each argument appends the value of
    /// argument `nth`, counted from 0. With `lenient`, a missing column is empty.
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
            out.push(self.job_number(job)?);
            return Ok(());
        };
        let transform = match self.form {
            ValueForm::Transformed(transform) => transform,
            ValueForm::Defined(parts) => {
                for part in parts {
                    part.push(job, column, lenient, out)?;
                }
                return Ok(());
            }
        };
        match job.columns.get(column) {
            Some(value) => push_transformed(value, transform, job, out),
            None if lenient => Ok(()),
            None => Err(self.missing_column(job.columns.len())),
        }
    }

    /// Appends the values for all arguments, separated by spaces.
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

    /// Returns the number of the job, of its slot, or of all jobs.
    fn job_number(self, job: &Job<'_>) -> Result<String, Error> {
        let total = || {
            let text = || format!("`{self}` asks how many jobs there are, which is not known");
            job.total.ok_or_else(|| Error::new(ErrorKind::Total, text()))
        };
        if job.slot == 0 && matches!(self.source, Source::Slot | Source::PaddedSlot) {
            let text = format!("`{self}` asks for the slot of the job, which is not known");
            return Err(Error::new(ErrorKind::Slot, text));
        }
        Ok(match self.source {
            Source::Slot => job.slot.to_string(),
            Source::PaddedSlot => format!("{:01$}", job.slot, digits(job.slots.unwrap_or(1).into())),
            Source::Total => total()?.to_string(),
            Source::PaddedNumber => format!("{:01$}", job.number, digits(total()?)),
            _ => job.number.to_string(),
        })
    }

    pub(crate) fn missing_column(self, columns: usize) -> Error {
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
        f.write_str(&String::from_utf8_lossy(self.text))
    }
}

fn push_transformed(
    value: &OsStr,
    transform: Transform,
    job: &Job<'_>,
    out: &mut OsString,
) -> Result<(), Error> {
    let bytes = value.as_encoded_bytes();
    if bytes.contains(&0) {
        let text = format!(
            "the value of job {} holds a NUL byte, which no argument can (-0 splits there)",
            job.number
        );
        return Err(Error::new(ErrorKind::Nul, text));
    }
    match transform {
        Transform::Identity => out.push(value),
        transform => out.push(os_str_from_encoded(&transform.apply(bytes))),
    }
    Ok(())
}

fn is_plain_number(value: &[u8]) -> bool {
    const DIGITS_MAX: usize = 18;
    let digits = match value {
        [b'-' | b'+', digits @ ..] => digits,
        digits => digits,
    };
    let has_leading_zero = digits.len() > 1 && digits[0] == b'0';
    (1..=DIGITS_MAX).contains(&digits.len()) && !has_leading_zero && digits.iter().all(u8::is_ascii_digit)
}

fn digits(number: u64) -> usize {
    number.max(1).ilog10() as usize + 1
}

fn nth_column(n: u32) -> String {
    const ORDINALS: [&str; 12] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
        "eleventh", "twelfth",
    ];
    let article = if n == 8 || n == 11 { "an" } else { "a" };
    match ORDINALS.get(n as usize - 1) {
        Some(ordinal) => format!("{article} {ordinal} column"),
        None => format!("column {n}"),
    }
}
