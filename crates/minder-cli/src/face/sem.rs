//! What `sem` is asked to do.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::{OptionKey, ParallelArgs};

/// A command that waits for its turn.
#[derive(Debug)]
pub(crate) struct Sem {
    /// The semaphore's name, if it is not the terminal's.
    pub(crate) name: Option<OsString>,
    /// How many may run at once, as it was typed.
    pub(crate) jobs: Option<OsString>,
    /// How long to wait for a turn, as it was typed.
    pub(crate) patience: Option<OsString>,
    pub(crate) foreground: bool,
    /// Only wait until no command holds a turn.
    pub(crate) wait: bool,
    /// Print the command before its output.
    pub(crate) print: bool,
    /// Say the command on stderr.
    pub(crate) say: bool,
    /// Run the words as they are, without a shell.
    pub(crate) quote: bool,
    pub(crate) shell: OsString,
    /// A file to remove when the turn has come: that of the process that waits to hear so.
    pub(crate) started: Option<PathBuf>,
    pub(crate) words: Vec<OsString>,
}

/// A semaphore is meant wherever one of these is.
const OF_SEM: [OptionKey; 6] = [
    OptionKey::Semaphore,
    OptionKey::Background,
    OptionKey::Foreground,
    OptionKey::Wait,
    OptionKey::Name,
    OptionKey::Patience,
];

impl ParallelArgs {
    pub(super) fn is_sem(&self) -> bool {
        OF_SEM.iter().any(|wish| self.has(*wish))
    }

    /// The semaphore that is wanted.
    pub(super) fn sem(&self) -> Result<Sem> {
        const WITHOUT_EFFECT: [&str; 3] = ["--bar", "--eta", "--progress"];
        // How the output of several jobs is seen: here is one, with our own.
        if let Some(flag) = self
            .names
            .iter()
            .find(|flag| !WITHOUT_EFFECT.contains(flag) && **flag != "--pipe" && **flag != "--verbose")
        {
            bail!("`{flag}` does not go with sem, which runs the command as it is");
        }
        if let Some(mark) = self.words.iter().find(|word| *word == ":::" || *word == "::::") {
            bail!("`{}`: sem reads no arguments; the command is run as it is", mark.display());
        }
        if self.has(OptionKey::Foreground) && self.has(OptionKey::Background) {
            bail!("`--fg` and `--bg` do not go together");
        }
        let words = match self.has(OptionKey::Started) {
            // They were looked at when they were typed.
            true => self.words.clone(),
            false => self.words.iter().map(|word| without_placeholder(word)).collect(),
        };
        Ok(Sem {
            name: self.value(OptionKey::Name).cloned(),
            jobs: self.value(OptionKey::Jobs).cloned(),
            patience: self.value(OptionKey::Patience).cloned(),
            foreground: self.has(OptionKey::Foreground),
            wait: self.has(OptionKey::Wait),
            print: self.has(OptionKey::Print) && !self.has(OptionKey::Silent),
            say: self.has_passed("--verbose"),
            quote: self.has(OptionKey::Quote),
            shell: self.shell(),
            started: self.value(OptionKey::Started).map(Into::into),
            words,
        })
    }
}

/// There is no argument that `{}` could stand for: as for GNU parallel, it stands for nothing.
fn without_placeholder(word: &OsStr) -> OsString {
    let (mut out, mut rest) = (Vec::new(), word.as_encoded_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        rest = match rest.strip_prefix(b"{}") {
            Some(after) => after,
            None => {
                out.push(byte);
                after
            }
        };
    }
    minder_os::encoding::os_string_from_encoded(out)
}
