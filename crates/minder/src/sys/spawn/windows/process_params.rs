//! The parameters of `CreateProcessW`: program, command line, environment, directory. A batch file
//! becomes a command line of `cmd.exe`.

use std::ffi::OsStr;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::search;
use super::working_dir::short;
use crate::command::{Command, Env};
use crate::environment::Environment;
use crate::sys::spawn::cmd_quote::{self, NotRepresentable};
use crate::sys::spawn::quote::{self, Unquotable};
use crate::sys::spawn::{SpawnError, SpawnStep};

/// Number of characters of an argument that a message shows.
const SHOWN_MAX: usize = 40;

/// The parameters of `CreateProcessW` in its encoding: UTF-16, each with a zero at its end.
pub(super) struct ProcessParams {
    pub(super) program: Vec<u16>,
    pub(super) line: Vec<u16>,
    pub(super) environment: Option<Vec<u16>>,
    pub(super) dir: Option<Vec<u16>>,
}

impl ProcessParams {
    pub(super) fn new(command: &Command, program: &Path, dir: Option<&Path>) -> Result<Self, SpawnError> {
        let (program, line) = Self::line(command, program, dir)?;
        Ok(Self {
            program: wide(program.as_os_str())?,
            line,
            environment: environment(&command.env)?,
            dir: dir.map(|dir| wide(dir.as_os_str())).transpose()?,
        })
    }

    /// Returns the program to start, and its command line with a zero at its end.
    pub(super) fn line(
        command: &Command,
        program: &Path,
        dir: Option<&Path>,
    ) -> Result<(PathBuf, Vec<u16>), SpawnError> {
        let args = command.args.iter().map(|arg| arg.encode_wide().collect()).collect::<Vec<Vec<u16>>>();
        let tail = command.tail.as_ref().map(|tail| tail.encode_wide().collect::<Vec<_>>());
        if args.iter().chain(&tail).any(|text| text.contains(&0)) {
            return Err(SpawnStep::Arguments.failed(io::ErrorKind::InvalidInput));
        }
        let args = args.iter().map(Vec::as_slice);
        if search::is_batch(program) {
            return Ok((minder_os::system_paths::system_shell(), batch_line(command, program, dir, args)?));
        }
        let name = command.program.encode_wide().collect::<Vec<_>>();
        let line = quote::command_line(&name, args).and_then(|line| quote::with_tail(line, tail.as_deref()));
        let line = line.map_err(|error| match error {
            // The name of the program contains a quotation mark, as no file name does.
            Unquotable::Invalid => SpawnStep::Exec.failed(io::ErrorKind::NotFound),
            Unquotable::TooLong => too_long("32,766 characters that the system takes"),
        })?;
        Ok((program.to_owned(), line))
    }
}

/// Returns the command line by which `cmd.exe` runs this batch file.
fn batch_line<'a>(
    command: &Command,
    file: &Path,
    dir: Option<&Path>,
    args: impl Iterator<Item = &'a [u16]>,
) -> Result<Vec<u16>, SpawnError> {
    let unsupported = |text| refused(io::ErrorKind::Unsupported, text);
    if command.tail.is_some() {
        return Err(unsupported("a batch file accepts no raw command line: start cmd.exe with one"));
    }
    // `cmd.exe` would print to the child's output that the file is missing.
    if !search::is_file(file) {
        return Err(SpawnStep::Exec.failed(io::ErrorKind::NotFound));
    }
    let file = short(file.to_owned());
    if matches!(file.components().next(), Some(Component::Prefix(prefix)) if prefix.kind().is_verbatim()) {
        return Err(unsupported("cmd.exe, which runs batch files, accepts no path of this form"));
    }
    let is_network = |dir: &Path| dir.as_os_str().encode_wide().take(2).eq([u16::from(b'\\'); 2]);
    if dir.map_or_else(|| std::env::current_dir().is_ok_and(|dir| is_network(&dir)), is_network) {
        return Err(unsupported(
            "cmd.exe, which runs batch files, cannot start in a network directory: choose another directory",
        ));
    }
    let file = file.as_os_str().encode_wide().collect::<Vec<_>>();
    cmd_quote::command_line(&file, args).map_err(|error| match error {
        NotRepresentable::Name(what) => {
            let text =
                format!("its path holds {what}, which cannot be passed to cmd.exe, which runs batch files");
            refused(io::ErrorKind::InvalidInput, &text)
        }
        NotRepresentable::Arg(place, what) => {
            let text = format!(
                "argument {}, `{}`, holds {what}, which cannot be passed to cmd.exe, which runs batch files: \
                 pass it through a file or a variable",
                place + 1,
                shown(&command.args[place])
            );
            refused(io::ErrorKind::InvalidInput, &text)
        }
        NotRepresentable::TooLong => too_long("8,191 characters that cmd.exe, which runs batch files, takes"),
    })
}

fn refused(kind: io::ErrorKind, text: &str) -> SpawnError {
    SpawnStep::Exec.failed(io::Error::new(kind, text))
}

fn too_long(limit: &str) -> SpawnError {
    let text = format!(
        "with its arguments it is longer than the {limit}: pass them through a file or standard input"
    );
    refused(io::ErrorKind::ArgumentListTooLong, &text)
}

/// Returns the argument, or its beginning.
fn shown(arg: &OsStr) -> String {
    let text = arg.to_string_lossy();
    // A path stays readable, and no quotation mark gets a backslash that is not there.
    let plain = |c| matches!(c, '\\' | '\'' | '"');
    let escape = |c: char| if plain(c) { c.to_string() } else { c.escape_debug().to_string() };
    let mut shown = text.chars().take(SHOWN_MAX).map(escape).collect::<String>();
    if text.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns the block for a changed environment, or `None` if the child inherits the environment
/// unchanged.
fn environment(env: &Env) -> Result<Option<Vec<u16>>, SpawnError> {
    if env.base.is_none() && env.changes.is_empty() {
        return Ok(None);
    }
    let wide = |text: &OsStr| text.encode_wide().collect::<Vec<_>>();
    let base = env.base.clone().unwrap_or_else(Environment::inherited);
    let inherited = base.variables.iter().map(|(key, value)| (wide(key), Some(wide(value))));
    let changes = env.changes.iter().map(|(key, value)| (wide(key), value.as_deref().map(wide)));
    match quote::environment(inherited.chain(changes)) {
        Some(block) => Ok(Some(block)),
        None => {
            let nul = |text: &OsStr| text.encode_wide().any(|unit| unit == 0);
            let changed =
                env.changes.iter().any(|(key, value)| nul(key) || value.as_deref().is_some_and(nul));
            let holds = changed || base.variables.iter().any(|(key, value)| nul(key) || nul(value));
            let step = if holds { SpawnStep::Arguments } else { SpawnStep::Variable };
            Err(step.failed(io::ErrorKind::InvalidInput))
        }
    }
}

fn wide(text: &OsStr) -> Result<Vec<u16>, SpawnError> {
    let wide = text.encode_wide().chain([0]).collect::<Vec<_>>();
    match wide.iter().position(|&unit| unit == 0) {
        Some(end) if end + 1 == wide.len() => Ok(wide),
        _ => Err(SpawnStep::Arguments.failed(io::ErrorKind::InvalidInput)),
    }
}
