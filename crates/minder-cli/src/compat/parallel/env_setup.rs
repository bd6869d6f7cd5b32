//! `--env-setup`: prints the shell functions `env_parallel` and `parset`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use super::args::ParallelArgs;
use super::options::OptionKey;
use super::shell_quote::quote;
use crate::ui;

const COMMON: &[u8] = include_bytes!("shell_functions/env_setup.sh");
const BASH: &[u8] = include_bytes!("shell_functions/env_setup.bash");
const ZSH: &[u8] = include_bytes!("shell_functions/env_setup.zsh");

const BASH_START: &[u8] = br#"_minder_text=$(\builtin shopt -p expand_aliases || \builtin true)
\builtin shopt -u expand_aliases
_minder_program="#;
const BASH_END: &[u8] = b"\\builtin eval \"$_minder_text\"\n\\builtin unset -v _minder_text\n";
/// The functions have the default options of zsh when they run, too.
const ZSH_START: &[u8] = br"\builtin emulate zsh -o no_aliases -c ";

/// Prints the functions for the named shell or, without a name, for the shell of the jobs.
///
/// # Errors
/// There are no functions for this shell, or standard output cannot be written.
pub(in crate::compat) fn print_env_setup(args: &ParallelArgs) -> Result<ExitCode> {
    let named = args.value(OptionKey::EnvSetup).filter(|name| !name.is_empty()).cloned();
    let shell = named.map_or_else(|| args.shell(), Ok)?;
    let name = Path::new(&shell).file_stem().unwrap_or_default();
    let program = std::env::current_exe().context("cannot find the path of minder")?;
    let program = quote(program.as_os_str().as_encoded_bytes());
    // The aliases of the shell do not change the functions.
    let code = match name.to_str() {
        Some("bash") => [BASH_START, &program, b"\n", BASH, COMMON, BASH_END].concat(),
        Some("zsh") => {
            let functions = [b"_minder_program=", program.as_slice(), b"\n", ZSH, COMMON].concat();
            [ZSH_START, &quote(&functions), b"\n"].concat()
        }
        _ => bail!("there is no env_parallel for `{}`: expected bash or zsh", shell.display()),
    };
    ui::with_stdout(|out| Ok(out.write_all(&code)?))
}

/// Prints the values of `--env`, one a line and `_` once: the names of what jobs get from env_parallel.
///
/// # Errors
/// Standard output cannot be written.
pub(in crate::compat) fn print_env_names(args: &ParallelArgs) -> Result<ExitCode> {
    let values = args.run_flags().iter().filter_map(|flag| flag.as_encoded_bytes().strip_prefix(b"--env="));
    let names: BTreeSet<&[u8]> = values
        .filter(|value| !value.contains(&b'='))
        .flat_map(|value| value.split(|byte| *byte == b','))
        .filter(|name| !name.is_empty())
        .collect();
    ui::with_stdout(|out| {
        for name in names {
            out.write_all(name)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}
