//! All options of one command line, from every place that GNU parallel reads them from.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use anyhow::{Result, bail};

use super::super::InvokedAs;
use super::getopt::{self, ParsedOption};
use super::logins::logins;
use super::options::{Mapping, OptionKey, ValueKind};
use super::profile;

/// The options and the command, from profiles, `$PARALLEL` and the command line, in this order.
#[derive(Debug, Default)]
pub(in crate::compat) struct ParallelArgs {
    /// Flags of `minder run`, in their order.
    run_flags: Vec<OsString>,
    /// The names of `run_flags`.
    run_flag_names: Vec<&'static str>,
    /// Other flags of `minder run`, as typed.
    own_flags: Vec<OsString>,
    /// Options that are interpreted together, with all values in their order.
    options: BTreeMap<OptionKey, Vec<OsString>>,
    /// The command and everything after it.
    command: Vec<OsString>,
    /// The machines that run the jobs, if one of them is another than this.
    hosts: Vec<String>,
    /// The words of the command line, or of a script.
    typed: Vec<OsString>,
}

impl ParallelArgs {
    /// Reads the options of a command line, of the profiles and of `$PARALLEL`.
    ///
    /// # Errors
    /// A profile cannot be read, or an option is unknown, unsupported or lacks its value.
    pub(in crate::compat) fn read(invoked_as: InvokedAs, args: &[OsString]) -> Result<Self> {
        let script_args = profile::script_args(args);
        let args = script_args.as_deref().unwrap_or(args);
        let mut typed = Self::default();
        typed.add(args)?;
        let mut all = Self::default();
        if invoked_as == InvokedAs::Sem {
            all.options.insert(OptionKey::Semaphore, vec![OsString::new()]);
        }
        if !typed.has(OptionKey::Plain) {
            // What follows the options of a profile comes before the command.
            all.add(&profile::profile_args(typed.values(OptionKey::Profile))?)?;
            all.add(&profile::variable_args()?)?;
        }
        all.add(args)?;
        all.typed = args.to_vec();
        all.read_logins()?;
        all.reject_perl_options()?;
        Ok(all)
    }

    /// Adds options, and the arguments after them to the command.
    fn add(&mut self, args: &[OsString]) -> Result<()> {
        let (options, rest) = getopt::parse(args)?;
        for option in options {
            let (spec, value) = match option {
                ParsedOption::Known(spec, value) => (spec, value),
                ParsedOption::Run(arg) => {
                    self.own_flags.push(arg.clone());
                    self.run_flags.push(arg);
                    continue;
                }
            };
            let value = value.or(match spec.value {
                ValueKind::Optional(default) | ValueKind::OptionalNumber(default) => {
                    default.map(OsString::from)
                }
                ValueKind::None | ValueKind::Required => None,
            });
            match (spec.mapping, value) {
                (Mapping::Ignore, _) => (),
                (Mapping::Unsupported(why), _) => {
                    bail!("`{}` is not supported: {why}", with_dashes(spec.names[0]))
                }
                (Mapping::Interpret(key), value) => {
                    self.options.entry(key).or_default().push(value.unwrap_or_default());
                }
                (Mapping::Pass(flag), Some(value)) => {
                    self.run_flags.push(flag_with_value(flag, &value));
                    self.run_flag_names.push(flag);
                }
                (Mapping::Pass(flag), None) if spec.value == ValueKind::None => {
                    self.run_flags.push(flag.into());
                    self.run_flag_names.push(flag);
                }
                // `--eof` without a value: the input has no end marker.
                (Mapping::Pass(_), None) => (),
            }
        }
        self.command.extend(rest);
        Ok(())
    }

    /// The flags of `minder run` that need no interpretation.
    pub(super) fn run_flags(&self) -> &[OsString] {
        &self.run_flags
    }

    /// Returns flags of `minder run` that GNU parallel does not have, and their values, as typed.
    pub(in crate::compat) fn own_flags(&self) -> &[OsString] {
        &self.own_flags
    }

    /// The names of [`Self::run_flags`].
    pub(in crate::compat) fn run_flag_names(&self) -> &[&'static str] {
        &self.run_flag_names
    }

    /// The command and everything after it.
    pub(in crate::compat) fn command(&self) -> &[OsString] {
        &self.command
    }

    /// The command before the input sources.
    pub(super) fn command_words(&self) -> &[OsString] {
        &self.command[..self.command_len()]
    }

    /// The input sources on the command line, with their separators.
    pub(super) fn sources(&self) -> &[OsString] {
        &self.command[self.command_len()..]
    }

    fn command_len(&self) -> usize {
        let separators = [OptionKey::ArgFileSep, OptionKey::ArgSep].map(|key| self.separator(key));
        let is_separator = |arg: &OsString| {
            separators.iter().any(|separator| {
                let rest = arg.as_encoded_bytes().strip_prefix(separator.as_encoded_bytes());
                rest.is_some_and(|rest| matches!(rest, b"" | b"+"))
            })
        };
        self.command.iter().position(is_separator).unwrap_or(self.command.len())
    }

    /// Returns the separator before values, or the one before files.
    pub(super) fn separator(&self, key: OptionKey) -> &OsStr {
        let default = if key == OptionKey::ArgFileSep { "::::" } else { ":::" };
        self.value(key).map_or(OsStr::new(default), OsString::as_os_str)
    }

    pub(in crate::compat) fn has(&self, key: OptionKey) -> bool {
        self.options.contains_key(&key)
    }

    pub(in crate::compat) fn has_run_flag(&self, flag: &str) -> bool {
        self.run_flag_names.contains(&flag)
    }

    /// Returns the last value of a flag of `minder run`.
    pub(super) fn run_flag_value(&self, flag: &str) -> Option<&str> {
        self.run_flags.iter().rev().find_map(|arg| arg.to_str()?.strip_prefix(flag)?.strip_prefix('='))
    }

    /// Returns every value of an option, in their order.
    pub(super) fn values(&self, key: OptionKey) -> &[OsString] {
        self.options.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns the last value of an option.
    pub(in crate::compat) fn value(&self, key: OptionKey) -> Option<&OsString> {
        self.values(key).last()
    }

    /// Returns the shell that runs the jobs.
    pub(in crate::compat) fn shell(&self) -> Result<OsString> {
        self.value(OptionKey::Shell).cloned().map_or_else(profile::shell, Ok)
    }

    /// Reads the machines. If this is the only one, its number of jobs is that of `-j`.
    ///
    /// # Errors
    /// A machine is written in a way that minder does not know, or a file of machines cannot be read.
    fn read_logins(&mut self) -> Result<()> {
        let logins = logins(self.values(OptionKey::SshLogin), self.values(OptionKey::SshLoginFile))?;
        if let Some(jobs) = logins.local_jobs
            && logins.hosts.is_empty()
        {
            self.options.entry(OptionKey::Jobs).or_insert_with(|| vec![jobs]);
        }
        self.hosts = match self.value(OptionKey::OnlyOn) {
            Some(machine) => vec![machine.display().to_string()],
            None => logins.hosts,
        };
        Ok(())
    }

    /// Returns the words of the command line. With `--shebang`, those for which the script stands.
    pub(super) fn typed(&self) -> &[OsString] {
        &self.typed
    }

    /// Returns the machines that run the jobs, if one of them is another than this.
    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// # Errors
    /// The value of an option contains Perl.
    fn reject_perl_options(&self) -> Result<()> {
        for definition in self.values(OptionKey::Rpl) {
            if is_perl_definition(definition.as_encoded_bytes()) {
                bail!(
                    "`--rpl {}` is not supported: it contains Perl, which minder does not run; define the \
                     placeholder by a text with other placeholders, as in --rpl '{{thumb}} {{/.}}-thumb.png'",
                    definition.display()
                );
            }
        }
        let templates = [OptionKey::TagString, OptionKey::ColorTagString, OptionKey::Results];
        templates.iter().flat_map(|key| self.values(*key)).chain(&self.run_flags).try_for_each(reject_perl)
    }
}

fn with_dashes(name: &str) -> String {
    if name.len() == 1 { format!("-{name}") } else { format!("--{name}") }
}

/// Joins a flag and its value into one argument, so that the value may begin with a dash.
pub(super) fn flag_with_value(flag: &str, value: &OsStr) -> OsString {
    let mut arg = OsString::from(flag);
    arg.push("=");
    arg.push(value);
    arg
}

/// # Errors
/// The text has a placeholder in Perl.
pub(super) fn reject_perl(text: &OsString) -> Result<()> {
    let bytes = text.as_encoded_bytes();
    let start = bytes.windows(2).position(|pair| pair == b"{=");
    if start.is_some_and(|start| bytes[start + 2..].windows(2).any(|pair| pair == b"=}")) {
        bail!(
            "`{}` is not supported: {{= =}} contains Perl, which minder does not run (--plus has more \
             placeholders)",
            text.display()
        );
    }
    Ok(())
}

/// Returns `true` if the definition of a placeholder, a name and a text, is Perl code rather than
/// a text with placeholders.
fn is_perl_definition(definition: &[u8]) -> bool {
    let definition = String::from_utf8_lossy(definition);
    let Some((_, body)) = definition.trim_start().split_once(char::is_whitespace) else { return false };
    let body = body.trim();
    let is_operator = ["s", "tr", "y", "m"].iter().any(|name| {
        let next = body.strip_prefix(name).and_then(|rest| rest.chars().next());
        next.is_some_and(|next| next.is_ascii_punctuation() && !matches!(next, '{' | '.' | '-' | '_'))
    });
    let is_braced_operator =
        ["s{", "tr{", "y{"].iter().any(|start| body.starts_with(start)) && body.contains("}{");
    is_operator || is_braced_operator || body.contains("$_") || body.contains(';') || !body.contains('{')
}
