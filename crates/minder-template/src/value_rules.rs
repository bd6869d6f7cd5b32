//! What the user asks of values before they are used: `--only`, `--no-dash-values`.

use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};

use crate::display;
use crate::error::{Error, ErrorKind};
use crate::job::Job;
use crate::placeholder::expression::Placeholder;

/// See the module. By default every value is taken.
#[derive(Debug, Clone, Default)]
pub struct ValueRules {
    only: Option<Arc<Regex>>,
    /// The expression as it was written.
    written: String,
    no_dash: bool,
}

impl ValueRules {
    /// Takes the values that match `only` from their start to their end, and, with `no_dash`, that
    /// do not begin with `-`.
    ///
    /// # Errors
    ///
    /// When `only` is no regular expression.
    pub fn new(only: Option<&str>, no_dash: bool) -> Result<ValueRules, Error> {
        let compile = |text: &str| {
            // On its own first: `a)(b` is none, and would be one in parentheses.
            RegexBuilder::new(text)
                .build()
                .and_then(|_| RegexBuilder::new(&format!(r"\A(?:{text})\z")).build())
        };
        let only = only.map(|text| compile(text).map(|regex| (regex, text.to_owned()))).transpose();
        match only {
            Ok(None) => Ok(ValueRules { no_dash, ..ValueRules::default() }),
            Ok(Some((regex, written))) => Ok(ValueRules { only: Some(Arc::new(regex)), written, no_dash }),
            Err(error) => {
                let why = error.to_string();
                let why =
                    why.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned();
                Err(Error::new(ErrorKind::Syntax, format!("invalid value for --only: {why}")))
            }
        }
    }

    /// Says whether the user answers for what values are, so that they may stand where they are
    /// code.
    pub(crate) fn is_harmless(&self) -> bool {
        self.only.is_some()
    }

    /// Refuses a job whose values are not as they must be.
    pub(crate) fn check(
        &self,
        job: &Job<'_>,
        placeholders: &mut dyn Iterator<Item = Placeholder>,
        lenient: bool,
    ) -> Result<(), Error> {
        if let Some(only) = &self.only {
            for column in job.columns {
                if !only.is_match(column.as_encoded_bytes()) {
                    return Err(fail(column, &format!("does not match `--only {}`", self.written)));
                }
            }
        }
        if !self.no_dash {
            return Ok(());
        }
        if let Some(column) = job.columns.iter().find(|column| begins_with_dash(column)) {
            return Err(fail(column, DASH));
        }
        // A part may begin so where the whole does not: `{/}` of `a/-x`.
        for placeholder in placeholders {
            for nth in 0..if placeholder.repeats() { job.columns.len() } else { 1 } {
                let mut part = std::ffi::OsString::new();
                placeholder.push(job, nth, lenient, &mut part)?;
                if begins_with_dash(&part) {
                    return Err(fail(&part, DASH));
                }
            }
        }
        Ok(())
    }

    /// Says whether there is nothing to look at.
    pub(crate) fn is_empty(&self) -> bool {
        self.only.is_none() && !self.no_dash
    }
}

const DASH: &str = "begins with `-`, which programs read as an option (--no-dash-values)";

fn begins_with_dash(value: &std::ffi::OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"-")
}

fn fail(value: &std::ffi::OsStr, why: &str) -> Error {
    let mut shown = String::new();
    display::text(value.as_encoded_bytes(), &mut shown);
    Error::new(ErrorKind::Value, format!("the value `{shown}` {why}"))
}
