//! What commands that measure share: signals, a progress line, standard output, and files of charts.

mod output_file;
mod session;
mod stdout;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

pub(crate) use self::{
    output_file::OutputFile,
    session::Session,
    stdout::{BufferedStdout, QuietEnd},
};

/// Opens the file of a chart, if there is one to write. That may block: the file may be a named pipe.
///
/// # Errors
/// The file cannot be opened; [`QuietEnd`] if a signal ends the command meanwhile.
pub(crate) fn open_file(
    session: &mut Session,
    what: &'static str,
    path: Option<&Path>,
) -> Result<Option<OutputFile>> {
    let Some(path) = path.map(Path::to_owned) else { return Ok(None) };
    match session.run_interruptibly(move || OutputFile::open(what, &path))? {
        Some(opened) => opened.map(Some),
        None => Err(QuietEnd(session.exit_code()).into()),
    }
}

/// Returns the exit status of a command that measures: an error that is a [`QuietEnd`] has one.
///
/// # Errors
/// All others.
pub(crate) fn exit_code(measured: Result<ExitCode>) -> Result<ExitCode> {
    measured.or_else(|error| error.downcast::<QuietEnd>().map(|QuietEnd(code)| code))
}
