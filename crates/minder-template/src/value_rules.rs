//! Rules that values must satisfy: `--only`, `--no-dash-values`.

use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};

use crate::display;
use crate::error::{Error, ErrorKind};
use crate::job::Job;
use crate::placeholder::expression::Placeholder;

/// Rules that values must satisfy before they are used. The default accepts every value.
#[derive(Debug, Clone, Default)]
pub struct ValueRules {
    only: Option<Arc<Regex>>,
    /// The text of the regular expression.
    pattern: String,
    no_dash: bool,
}

impl ValueRules {
    /// Returns rules that accept values that match the regular expression `only` as a whole. With
    /// `no_dash`, a value, and any part of it that a placeholder extracts, must not begin with `-`.
    ///
    /// The user vouches for values that match `only`: they may stand where they are code.
    ///
    /// # Errors
    ///
    /// If `only` is an invalid regular expression.
    pub fn new(only: Option<&str>, no_dash: bool) -> Result<ValueRules, Error> {
        let compile = |text: &str| {
            // First without parentheses: `a)(b` is invalid, and would be valid inside of them.
            RegexBuilder::new(text)
                .build()
                .and_then(|_| RegexBuilder::new(&format!(r"\A(?:{text})\z")).build())
        };
        let only = only.map(|text| compile(text).map(|regex| (regex, text.to_owned()))).transpose();
        match only {
            Ok(None) => Ok(ValueRules { no_dash, ..ValueRules::default() }),
            Ok(Some((regex, pattern))) => Ok(ValueRules { only: Some(Arc::new(regex)), pattern, no_dash }),
            Err(error) => {
                let why = error.to_string();
                let why =
                    why.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned();
                Err(Error::new(ErrorKind::Syntax, format!("invalid value for --only: {why}")))
            }
        }
    }

    /// Returns whether the user vouches for the values, so that they may stand where they are code.
    pub(crate) fn trusts_values(&self) -> bool {
        self.only.is_some()
    }

    /// Refuses a job with a value that breaks a rule.
    pub(crate) fn check(
        &self,
        job: &Job<'_>,
        placeholders: &mut dyn Iterator<Item = Placeholder>,
        lenient: bool,
    ) -> Result<(), Error> {
        if let Some(only) = &self.only {
            for column in job.columns {
                if !only.is_match(column.as_encoded_bytes()) {
                    return Err(fail(column, &format!("does not match `--only {}`", self.pattern)));
                }
            }
        }
        if !self.no_dash {
            return Ok(());
        }
        if let Some(column) = job.columns.iter().find(|column| begins_with_dash(column)) {
            return Err(fail(column, DASH));
        }
        // A part may begin with `-` even if the value does not: `{/}` of `a/-x`.
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

    /// Returns whether the rules accept every value.
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
