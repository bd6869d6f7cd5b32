//! The check of the values of one placeholder in a program text.

use std::ffi::OsStr;

use super::alphabet::Alphabet;
use crate::display;
use crate::error::{Error, ErrorKind};

/// A placeholder in a program text, and what its values may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueCheck {
    /// The spelling of the placeholder in the template.
    pub(crate) placeholder: &'static [u8],
    pub(crate) alphabet: Alphabet,
    pub(crate) program: String,
    /// The text that tells the user what to write instead.
    pub(crate) hint: String,
}

impl ValueCheck {
    /// Refuses a value that another text around it could turn into code.
    pub(crate) fn check(&self, value: &OsStr) -> Result<(), Error> {
        let value = value.as_encoded_bytes();
        if self.alphabet.contains(value) {
            return Ok(());
        }
        let mut shown = String::new();
        display::text(value, &mut shown);
        let trusts = "check values with `--only REGEXP`";
        let or = if self.hint.contains("--only") { String::new() } else { format!(", or {trusts}") };
        let ValueCheck { program, hint, .. } = self;
        if self.alphabet == Alphabet::PerlFile {
            let text = format!(
                "the value `{shown}` is a command or a mode to `{program} -n`, not a file: {hint}{or}"
            );
            return Err(Error::new(ErrorKind::Value, text));
        }
        Err(Error::new(
            ErrorKind::Value,
            format!(
                "the value `{shown}` stands in the program text of `{program}`, where {} are accepted: \
                 {hint}{or}",
                self.alphabet.describe()
            ),
        ))
    }
}
