//! Reads a command line of xargs.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use minder_runner::input::Separation;

use super::delimiter;
use super::getopt::Getopt;
use super::info::{self, HELP, JOBS_MAX, VERSION};
use super::limits::Limits;
use super::options::OptionKey;
use crate::commands::xargs::{Packing, XargsPlan, print_line};

/// The request of a command line of xargs.
#[derive(Debug)]
pub(in crate::compat) enum Request {
    /// To run commands.
    Run(Box<XargsPlan>),
    /// To print this text.
    Print(&'static str),
    /// Nothing, because of an error that was printed.
    Failed,
}

/// An error in the options.
enum UsageError {
    /// One that the help explains.
    Help(String),
    Plain(String),
}

impl From<String> for UsageError {
    fn from(line: String) -> Self {
        Self::Help(line)
    }
}

/// Reads the arguments after the program's name. Prints warnings and errors, as xargs does while it
/// reads its options.
pub(in crate::compat) fn read(args: &[OsString]) -> Request {
    match parse(args) {
        Ok(request) => request,
        Err(UsageError::Plain(line)) => {
            print_line(line.as_bytes());
            Request::Failed
        }
        Err(UsageError::Help(line)) => {
            print_line(format!("{line}\nTry 'xargs --help' for more information.").as_bytes());
            Request::Failed
        }
    }
}

fn parse(args: &[OsString]) -> Result<Request, UsageError> {
    let limits = Limits::of_system().map_err(UsageError::Plain)?;
    let mut getopt = Getopt::new(args);
    let mut options = Options::new(&limits);
    while let Some((key, value)) = getopt.next()? {
        match key {
            OptionKey::Help => return Ok(Request::Print(HELP)),
            OptionKey::Version => return Ok(Request::Print(VERSION)),
            _ => options.set(key, value, &limits)?,
        }
    }
    let has_limits = options.show_limits;
    let plan = options.plan(getopt.rest());
    if has_limits {
        info::show_limits(&limits, &plan);
    }
    Ok(Request::Run(Box::new(plan)))
}

/// The options so far.
struct Options {
    plan: XargsPlan,
    show_limits: bool,
}

impl Options {
    fn new(limits: &Limits) -> Self {
        let plan = XargsPlan {
            program: "echo".into(),
            initial: Vec::new(),
            file: None,
            separation: Separation::Blanks,
            eof: None,
            packing: Packing::Full,
            size_max: limits.default_size(),
            count_max: limits.count_max(),
            exit_if_full: false,
            run_if_empty: true,
            jobs_max: 1,
            verbose: false,
            interactive: false,
            open_tty: false,
            slot_var: None,
        };
        Self { plan, show_limits: false }
    }

    fn set(&mut self, key: OptionKey, value: Option<OsString>, limits: &Limits) -> Result<(), UsageError> {
        let plan = &mut self.plan;
        let bytes = value.as_deref().unwrap_or_default().as_encoded_bytes();
        match key {
            OptionKey::Null => plan.separation = Separation::Byte(0),
            OptionKey::ArgFile => {
                plan.file = value.filter(|name| name != "-").map(PathBuf::from);
            }
            OptionKey::Delimiter => {
                plan.separation = Separation::Byte(delimiter::parse(bytes).map_err(UsageError::Plain)?);
            }
            OptionKey::Eof => plan.eof = (!bytes.is_empty()).then(|| bytes.to_vec()),
            OptionKey::Replace => {
                let text = value.as_deref().map_or(&b"{}"[..], OsStr::as_encoded_bytes);
                self.set_packing(Packing::Replace(text.to_vec()), "--replace/-I/-i");
            }
            OptionKey::Lines => self.set_packing(Packing::Lines(at_least_one(bytes, 'L')?), "-L"),
            OptionKey::MaxLines => {
                let lines = if value.is_some() { at_least_one(bytes, 'l')? } else { 1 };
                self.set_packing(Packing::Lines(lines), "--max-lines/-l");
            }
            OptionKey::MaxArgs => {
                let count = at_least_one(bytes, 'n')?;
                // A command with a replaced text has one argument of the input in any case.
                if count != 1 || !matches!(plan.packing, Packing::Replace(_)) {
                    self.set_packing(Packing::Arguments(count), "--max-args/-n");
                }
            }
            OptionKey::OpenTty => plan.open_tty = true,
            OptionKey::Interactive => (plan.interactive, plan.verbose) = (true, true),
            OptionKey::NoRunIfEmpty => plan.run_if_empty = false,
            OptionKey::MaxChars => plan.size_max = size(bytes, limits)?,
            OptionKey::Verbose => plan.verbose = true,
            OptionKey::ShowLimits => self.show_limits = true,
            OptionKey::Exit => plan.exit_if_full = true,
            OptionKey::MaxProcs => plan.jobs_max = jobs(bytes)?,
            OptionKey::ProcessSlotVar => plan.slot_var = Some(slot_var(value.unwrap_or_default())?),
            OptionKey::Help | OptionKey::Version => (),
        }
        Ok(())
    }

    /// Sets how arguments are put into a command. Of several such options the last one counts.
    fn set_packing(&mut self, packing: Packing, name: &str) {
        let previous = match (&self.plan.packing, &packing) {
            (Packing::Arguments(_), Packing::Lines(_) | Packing::Replace(_)) => Some("--max-args"),
            (Packing::Lines(_), Packing::Arguments(_) | Packing::Replace(_)) => Some("--max-lines"),
            (Packing::Replace(_), Packing::Arguments(_) | Packing::Lines(_)) => Some("--replace"),
            _ => None,
        };
        if let Some(previous) = previous {
            let line = format!(
                "warning: options {previous} and {name} are mutually exclusive, ignoring previous {previous} \
                 value"
            );
            print_line(line.as_bytes());
        }
        self.plan.packing = packing;
    }

    fn plan(self, command: &[OsString]) -> XargsPlan {
        let mut plan = self.plan;
        if let Some((program, initial)) = command.split_first() {
            plan.program = program.clone();
            plan.initial = initial.to_vec();
        }
        if plan.eof.is_some() && matches!(plan.separation, Separation::Byte(_)) {
            plan.eof = None;
            print_line(b"warning: the -E option has no effect if -0 or -d is used.\n");
        }
        match plan.packing {
            Packing::Replace(_) => {
                plan.exit_if_full = true;
                if plan.separation == Separation::Blanks {
                    plan.separation = Separation::Lines;
                }
            }
            Packing::Lines(_) => plan.exit_if_full = true,
            Packing::Full | Packing::Arguments(_) => (),
        }
        plan
    }
}

/// Parses a number as strtol(3) does.
fn number(text: &[u8], option: char) -> Result<i64, UsageError> {
    let shown = String::from_utf8_lossy(text);
    let signed = shown.trim_start();
    let digits = signed.strip_prefix(['+', '-']).unwrap_or(signed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(UsageError::Help(format!("invalid number \"{shown}\" for -{option} option")));
    }
    let limit = if signed.starts_with('-') { i64::MIN } else { i64::MAX };
    Ok(signed.parse().unwrap_or(limit))
}

fn at_least_one(text: &[u8], option: char) -> Result<u64, UsageError> {
    let value = number(text, option)?;
    if value < 1 {
        return Err(UsageError::Help(too_small(text, option, 1)));
    }
    Ok(value.unsigned_abs())
}

fn too_small(text: &[u8], option: char, least: i64) -> String {
    format!("value {} for -{option} option should be >= {least}", String::from_utf8_lossy(text))
}

fn too_large(text: &[u8], option: char, most: impl std::fmt::Display) -> String {
    format!("value {} for -{option} option should be <= {most}", String::from_utf8_lossy(text))
}

/// Parses the value of `-P`; 0 is as many as possible.
fn jobs(text: &[u8]) -> Result<usize, UsageError> {
    match number(text, 'P')? {
        value if value < 0 => Err(UsageError::Help(too_small(text, 'P', 0))),
        value if value > JOBS_MAX => Err(UsageError::Help(too_large(text, 'P', JOBS_MAX))),
        0 => Ok(usize::MAX),
        value => Ok(usize::try_from(value).unwrap_or(usize::MAX)),
    }
}

/// Parses the value of `-s`. One that is out of range is replaced, with a warning.
fn size(text: &[u8], limits: &Limits) -> Result<usize, UsageError> {
    let value = number(text, 's')?;
    if value < 1 {
        print_line(too_small(text, 's', 1).as_bytes());
        return Ok(1);
    }
    let value = usize::try_from(value).unwrap_or(usize::MAX);
    if value > limits.most {
        print_line(too_large(text, 's', limits.most).as_bytes());
    }
    Ok(value.min(limits.most))
}

fn slot_var(name: OsString) -> Result<OsString, UsageError> {
    if name.as_encoded_bytes().contains(&b'=') {
        let line = "option --process-slot-var may not be set to a value which includes `='";
        return Err(UsageError::Plain(line.to_owned()));
    }
    if name.is_empty() {
        let line = "failed to unset environment variable : Invalid argument";
        return Err(UsageError::Plain(line.to_owned()));
    }
    Ok(name)
}
