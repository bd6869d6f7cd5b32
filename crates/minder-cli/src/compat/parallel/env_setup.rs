//! `--env-setup`: prints the shell functions `env_parallel` and `parset`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use super::args::ParallelArgs;
use super::options::OptionKey;
use super::shell_quote::quote;
use crate::ui;

const COMMON: &str = include_str!("shell_functions/env_setup.sh");
const BASH: &str = include_str!("shell_functions/env_setup.bash");
const ZSH: &str = include_str!("shell_functions/env_setup.zsh");

/// Prints the functions for the named shell or, without a name, for the shell of the jobs.
///
/// # Errors
/// There are no functions for this shell, or standard output cannot be written.
pub(in crate::compat) fn print_env_setup(args: &ParallelArgs) -> Result<ExitCode> {
    let named = args.value(OptionKey::EnvSetup).filter(|name| !name.is_empty()).cloned();
    let shell = named.map_or_else(|| args.shell(), Ok)?;
    let name = Path::new(&shell).file_stem().unwrap_or_default();
    let functions = match name.to_str() {
        Some("bash") => BASH,
        Some("zsh") => ZSH,
        _ => bail!("there is no env_parallel for `{}`: expected bash or zsh", shell.display()),
    };
    let program = std::env::current_exe().context("cannot find the path of minder")?;
    ui::with_stdout(|out| {
        out.write_all(b"_minder_program=")?;
        out.write_all(&quote(program.as_os_str().as_encoded_bytes()))?;
        out.write_all(b"\n")?;
        out.write_all(functions.as_bytes())?;
        Ok(out.write_all(COMMON.as_bytes())?)
    })
}
