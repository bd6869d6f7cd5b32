//! A command without a shell. Each argument of the template is one argument of the command, or one
//! for each value.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use crate::checks::{CheckCache, CheckResult};
use crate::error::{Error, ErrorKind};
use crate::eval_commands::Trust;
use crate::job::Job;
use crate::options::{Options, Repeat};
use crate::placeholder::expression::{DefinitionPart, Placeholder, Source};
use crate::placeholder::set::PlaceholderSet;
use crate::posix::shell_text;
use crate::program_text::ValueCheck;
use crate::size::{CommandLength, Size};
use crate::word::Word;
use crate::{display, eval_commands};

/// The arguments of a command that runs without a shell, or a text such as a tag.
#[derive(Debug, Clone)]
pub(crate) struct DirectCommand {
    /// The arguments of the template, the program first.
    arguments: Vec<Vec<DefinitionPart>>,
    repeat: Repeat,
    lenient: bool,
    /// This is a text, not a command. It expands to one argument, whatever its values are.
    is_text: bool,
    trust: Trust,
    /// The placeholders that the template may contain.
    placeholders: Arc<PlaceholderSet>,
    checks: CheckCache,
}

impl DirectCommand {
    pub(crate) fn parse(arguments: &[OsString], options: &Options) -> Result<DirectCommand, Error> {
        if arguments[0].is_empty() {
            return Err(Error::syntax("the command is empty"));
        }
        let split = |argument: &OsString| options.placeholders.split(argument.as_encoded_bytes());
        let mut arguments: Vec<_> = arguments.iter().map(split).collect();
        let is_value = |part: &DefinitionPart| matches!(part, DefinitionPart::Value(_));
        if options.append && !arguments.iter().flatten().any(is_value) {
            arguments.push(vec![DefinitionPart::Value(options.placeholders.value().0)]);
        }
        let command = DirectCommand {
            arguments,
            repeat: options.repeat,
            lenient: options.missing_is_empty,
            is_text: false,
            trust: match options {
                _ if options.value_rules.trusts_values() => Trust::Everything,
                Options { plain_values_in_program_texts: true, .. } => Trust::PlainValues,
                _ => Trust::Nothing,
            },
            placeholders: Arc::new(options.placeholders.clone()),
            checks: CheckCache::default(),
        };
        command.checks.of(1, |count| command.check(count))?;
        Ok(command)
    }

    /// Parses a text. No value is appended to it.
    pub(crate) fn text(text: &OsString, options: &Options) -> DirectCommand {
        DirectCommand {
            arguments: vec![options.placeholders.split(text.as_encoded_bytes())],
            repeat: Repeat::Joined,
            lenient: options.missing_is_empty,
            is_text: true,
            trust: Trust::Everything,
            placeholders: Arc::default(),
            checks: CheckCache::default(),
        }
    }

    pub(crate) fn has_fixed_program(&self) -> bool {
        self.arguments[0].iter().all(|part| matches!(part, DefinitionPart::Text(_)))
    }

    pub(crate) fn program(&self) -> Option<OsString> {
        let text = |part: &DefinitionPart| match part {
            DefinitionPart::Text(text) => Some(text.clone()),
            DefinitionPart::Value(_) => None,
        };
        self.arguments[0].iter().map(text).collect()
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.arguments.iter().flatten().filter_map(|part| match part {
            DefinitionPart::Value(placeholder) => Some(*placeholder),
            DefinitionPart::Text(_) => None,
        })
    }

    /// See [`crate::template::Template::lengths`].
    pub(crate) fn lengths(&self) -> CommandLength {
        let mut lengths = CommandLength::default();
        for argument in &self.arguments {
            let text = argument.iter().map(|part| match part {
                DefinitionPart::Text(text) => text.len(),
                DefinitionPart::Value(_) => 0,
            });
            // Includes the space after the argument. The last one counts as the terminating byte.
            let text = text.sum::<usize>() + 1;
            let mut each = 0;
            for part in argument {
                if let DefinitionPart::Value(placeholder) = part
                    && placeholder.repeats()
                {
                    lengths.add_value(*placeholder);
                    each += 1;
                }
            }
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
        let mut argv = Vec::with_capacity(self.arguments.len());
        if !self.is_text {
            let checks = self.checks.of(job.columns.len(), |count| self.check(count))?;
            self.check_values(&checks, job)?;
        }
        for argument in &self.arguments {
            self.expand(argument, job, &mut argv)?;
        }
        if argv.is_empty() {
            return Err(Error::new(ErrorKind::Column, "the command is a value, and the input has none"));
        }
        Ok(argv)
    }

    /// Expands an argument of the template for a job. It becomes several arguments if it stands for
    /// several values.
    fn expand(&self, parts: &[DefinitionPart], job: &Job<'_>, out: &mut Vec<OsString>) -> Result<(), Error> {
        let count = job.columns.len();
        let mut current = OsString::new();
        if self.is_text {
            for part in parts {
                match part {
                    DefinitionPart::Text(text) => current.push(text),
                    DefinitionPart::Value(placeholder) => {
                        placeholder.push_all(job, self.lenient, &mut current)?
                    }
                }
            }
        } else if count == 1 || !parts.iter().any(DefinitionPart::repeats) {
            for part in parts {
                part.push(job, 0, self.lenient, &mut current)?;
            }
        } else if self.repeat == Repeat::Context && count > 0 {
            for nth in 0..count {
                let mut repeated = OsString::new();
                for part in parts {
                    part.push(job, nth, self.lenient, &mut repeated)?;
                }
                out.push(repeated);
            }
            return Ok(());
        } else {
            for part in parts {
                for nth in 0..if part.repeats() { count } else { 1 } {
                    if nth > 0 {
                        out.push(std::mem::take(&mut current));
                    }
                    part.push(job, nth, self.lenient, &mut current)?;
                }
            }
            if count == 0 && parts.iter().all(DefinitionPart::repeats) {
                return Ok(());
            }
        }
        out.push(current);
        Ok(())
    }

    /// Refuses values that would be program text in a job with `count` arguments.
    fn check(&self, count: usize) -> CheckResult {
        let mut words = Vec::new();
        for argument in &self.arguments {
            self.describe(argument, count, &mut words);
        }
        let mut found = eval_commands::check_programs(&words, self.trust, false)?;
        for text in &found.shell_texts {
            found.checks.extend(shell_text::check(text, &self.placeholders)?);
        }
        Ok(found.checks.into())
    }

    /// Refuses values that are not plain in a program text.
    fn check_values(&self, checks: &[ValueCheck], job: &Job<'_>) -> Result<(), Error> {
        for check in checks {
            let is_checked = |placeholder: &Placeholder| placeholder.text() == check.placeholder;
            for placeholder in self.placeholders().filter(is_checked) {
                for nth in 0..if placeholder.repeats() { job.columns.len() } else { 1 } {
                    let mut value = OsString::new();
                    placeholder.push(job, nth, self.lenient, &mut value)?;
                    check.check(&value)?;
                }
            }
        }
        Ok(())
    }

    /// Appends the words that an argument of the template becomes.
    fn describe(&self, parts: &[DefinitionPart], count: usize, out: &mut Vec<Word>) {
        let mut word = Word::default();
        let is_several = count != 1 && parts.iter().any(DefinitionPart::repeats);
        let is_repeated = is_several && self.repeat == Repeat::Context && count > 0;
        for part in parts {
            match part {
                DefinitionPart::Text(text) => word.text.extend_from_slice(text.as_encoded_bytes()),
                DefinitionPart::Value(placeholder) if placeholder.repeats() && !is_repeated => {
                    word.add_values(*placeholder, count, out);
                }
                DefinitionPart::Value(placeholder) => word.add_value(*placeholder),
            }
        }
        if is_repeated {
            out.extend(std::iter::repeat_n(word.into_one_of_several(), count));
        } else if !(is_several && count == 0 && parts.iter().all(DefinitionPart::repeats)) {
            out.push(word);
        }
    }

    pub(crate) fn display(&self, job: &Job<'_>) -> String {
        let mut shown = Vec::new();
        for (at, parts) in self.arguments.iter().enumerate() {
            let mut expanded = Vec::new();
            if self.expand(parts, job, &mut expanded).is_err() {
                shown.push(parts.iter().map(|part| self.display_part(part, job)).collect());
                continue;
            }
            for (nth, argument) in expanded.iter().enumerate() {
                // A text such as a tag has no command.
                let is_command = at == 0 && nth == 0 && !self.is_text;
                shown.push(if is_command { display::command(argument) } else { display::bare(argument) });
            }
        }
        shown.join(" ")
    }

    /// Formats a part of an argument with a placeholder that has no value. The others are replaced, unless
    /// they would make several arguments.
    fn display_part(&self, part: &DefinitionPart, job: &Job<'_>) -> String {
        let mut value = OsString::new();
        match part {
            DefinitionPart::Text(text) => display::bare(text),
            DefinitionPart::Value(placeholder)
                if (part.repeats() && job.columns.len() != 1)
                    || placeholder.push(job, 0, self.lenient, &mut value).is_err() =>
            {
                placeholder.to_string()
            }
            DefinitionPart::Value(_) => display::bare(&value),
        }
    }

    /// See [`crate::size::Size`].
    pub(crate) fn measure(&self, argument: Option<(usize, &OsStr)>, size: &mut Size) {
        for parts in &self.arguments {
            let repeated = self.repeat == Repeat::Context && parts.iter().any(DefinitionPart::repeats);
            for part in parts {
                part.measure(argument, repeated, Source::Each, size);
            }
            if argument.is_none() {
                size.once += 1;
                size.each += usize::from(repeated);
            }
        }
    }
}
