//! The command `minder`: flags → configuration → subcommand.
//!
//! Flags are parsed and checked one by one. A configuration combines them with the properties of this
//! machine; it leaves nothing undecided. A subcommand does the work. The library never prints: this
//! crate prints messages on stderr and data on stdout.

mod likeness;
mod flags;
mod escapes;
mod ui;
mod advise;
mod config;
mod settings;
mod export;
mod installation;
mod recorded;
mod running;
mod run_agents;
mod commands;
mod compat;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Parser;
use clap::error::ErrorKind;
use minder::guard::Guardian;
use minder_runner::config::ResumeMode;
use minder_ui::exit;

use crate::compat::Translation;
use crate::config::CompatMode;
use crate::flags::{
    Flags, RunFlags, Verb, asks_for_version, clap_error_hint, clap_error_line, resume_error_line,
};
use crate::settings::Applied;

/// The smallest stack of the main thread, in bytes. Parsing the flags needs 64 KiB of it, and six
/// times as much without optimisation.
const STACK_MIN: u64 = if cfg!(debug_assertions) { 512 << 10 } else { 96 << 10 };

/// The output of `minder --version`.
const VERSION: &str = concat!("minder ", env!("CARGO_PKG_VERSION"), "\n");

/// Runs the command with these arguments. The first is the name by which it was started.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    if let Some(bytes) = minder_os::limits::stack_limit().filter(|bytes| *bytes < STACK_MIN) {
        let limit = bytes >> 10;
        let required = STACK_MIN >> 10;
        return exit_code(Err(anyhow!(
            "the stack limit is {limit} KiB, but minder needs {required} KiB (`ulimit -s {required}`)"
        )));
    }
    let mut args: Vec<OsString> = args.into_iter().collect();
    if commands::relay::is_guardian(&args) {
        return Guardian::run_program();
    }
    if let Some(kind) = commands::candidates::asked(&args) {
        return commands::candidates::print(kind);
    }
    let mut compat_mode = CompatMode::Own;
    if let Some((invoked_as, skipped)) = compat::detect(&args) {
        match compat::translate(invoked_as, &args[skipped..]) {
            Ok(Translation::Run(run_args)) => {
                compat_mode = CompatMode::Parallel;
                args = ["minder", "run"].into_iter().map(OsString::from).chain(run_args).collect();
            }
            Ok(Translation::Subcommand(rest)) => {
                args = std::iter::once("minder".into()).chain(rest).collect();
            }
            Ok(Translation::Xargs(plan)) => return exit_code(commands::xargs::run(*plan)),
            Ok(Translation::Sem(sem)) => return exit_code(commands::sem::run(sem)),
            Ok(Translation::Done(code)) => return code,
            Err(error) => return exit_code(Err(error)),
        }
    }
    if let Some(text) = version_asked(args.get(1..).unwrap_or_default()) {
        return exit_code(print_line(&text));
    }
    if cfg!(not(feature = "lab"))
        && let Some(name) = args.get(1).filter(|name| *name == "bench" || *name == "clock")
    {
        return exit_code(Err(anyhow!(
            "`minder {}` belongs to the feature `lab`: this minder was built without it (cargo \
             install minder-cli --features lab)",
            name.display()
        )));
    }
    let flags = match Flags::try_parse_from(&args) {
        Ok(flags) => flags,
        Err(error) => return report_clap_error(&error, args.get(1..).unwrap_or_default()),
    };
    exit_code(perform(flags.verb, args, compat_mode))
}

/// Runs a subcommand.
fn perform(verb: Verb, args: Vec<OsString>, compat_mode: CompatMode) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Run(flags) => run(flags, args, compat_mode),
        Verb::Resume(flags) => {
            let mode = if flags.failed { ResumeMode::RestAndFailed } else { ResumeMode::Rest };
            commands::run::resume(flags.attempt, mode)
        }
        Verb::Retry(flags) => commands::run::resume(flags.attempt, ResumeMode::Failed),
        Verb::Attach(flags) => commands::run::attach(&flags),
        Verb::Cancel(flags) => commands::cancel::run(&flags),
        Verb::Agent(flags) => commands::run::agent(&flags),
        Verb::Relay(flags) => commands::relay::run(&flags),
        Verb::Log(flags) => ui::with_stdout(|out| commands::log::run(out, &flags)),
        Verb::Status(flags) => ui::with_stdout(|out| commands::status::run(out, &flags)),
        Verb::Advise(flags) => ui::with_stdout(|out| commands::advise::run(out, &flags)),
        Verb::Config(flags) => ui::with_stdout(|out| commands::config::run(out, &flags)),
        Verb::Doctor(flags) => ui::with_stdout(|out| commands::doctor::run(out, flags.json)),
        #[cfg(feature = "lab")]
        Verb::Bench(flags) => minder_lab::bench(&flags),
        #[cfg(feature = "lab")]
        Verb::Clock(flags) => minder_lab::clock(&flags),
        Verb::Help(flags) => ui::with_stdout(|out| commands::help::run(out, &flags)),
        Verb::Man(flags) => ui::with_stdout(|out| commands::man::run(out, &flags, &compat::HELP)),
        Verb::Uninstall => ui::with_stdout(commands::uninstall::run),
        Verb::Completions(flags) => ui::with_stdout(|out| commands::completions::run(out, &flags)),
    }
}

/// Runs `minder run`. Other command lines than its own have no settings.
fn run(flags: Box<RunFlags>, args: Vec<OsString>, compat: CompatMode) -> anyhow::Result<ExitCode> {
    if compat != CompatMode::Own {
        return commands::run::run(*flags, &args, compat, &[]);
    }
    let Applied { flags, args, in_force } = settings::apply(flags, args)?;
    commands::run::run(*flags, &args, compat, &in_force)
}

/// Prints an error, and returns the exit status.
fn exit_code(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) => {
            ui::message(&ui::format_error(&error));
            ExitCode::from(exit::OTHER)
        }
    }
}

/// Prints help and version on stdout. Prints an error in the flags as one line on stderr, with a
/// hint where to find help.
fn report_clap_error(error: &clap::Error, args: &[OsString]) -> ExitCode {
    let help = || Flags::help(std::iter::once("minder".into()).chain(args.iter().cloned()));
    if !error.use_stderr() {
        return exit_code(print_help(help().as_ref().unwrap_or(error)));
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = ui::print_help(help().as_ref().unwrap_or(error));
        return ExitCode::from(exit::OTHER);
    }
    if asks_for_version(error) {
        return exit_code(print_line(VERSION));
    }
    let minder = Flags::interface();
    let line = match args.first().and_then(|name| name.to_str()) {
        Some("resume" | "retry") => resume_error_line(error, &minder, args),
        _ => clap_error_line(error, &minder, args),
    };
    let hint = clap_error_hint(error, &minder, args);
    ui::message(&format!("{line} ({hint})"));
    ExitCode::from(exit::OTHER)
}

/// Returns what is printed if these arguments ask for the version alone. clap would create its flags first.
fn version_asked(args: &[OsString]) -> Option<String> {
    match args.iter().map(|arg| arg.to_str()).collect::<Option<Vec<_>>>()?[..] {
        ["--version" | "-V"] => Some(VERSION.to_owned()),
        ["--version" | "-V", "--json"] | ["--json", "--version" | "-V"] => {
            Some(format!("{}\n", installation::build()))
        }
        _ => None,
    }
}

/// Prints a line, which needs no separate descriptor.
fn print_line(line: &str) -> anyhow::Result<ExitCode> {
    print(|| minder_runner::blocking_io::write_all(&std::io::stdout(), line.as_bytes()))
}

fn print_help(error: &clap::Error) -> anyhow::Result<ExitCode> {
    print(|| ui::print_help(error))
}

/// Prints a text on standard output.
fn print(text: impl FnOnce() -> std::io::Result<()>) -> anyhow::Result<ExitCode> {
    ui::check_stdout()?;
    match text() {
        // The reader has seen enough, such as `head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(anyhow::Error::from(error).context("cannot write to standard output")),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn version_is_that_of_clap() {
        assert_eq!(Flags::command().render_version(), VERSION);
    }

    #[test]
    fn descriptions_do_not_change_when_flags_are_created() {
        let about = |minder: &clap::Command| -> Vec<Option<String>> {
            minder.get_subcommands().map(|it| it.get_about().map(ToString::to_string)).collect()
        };
        let listed = about(&Flags::command());
        assert!(listed.iter().all(Option::is_some), "{listed:?}");
        assert_eq!(listed, about(&Flags::interface()));
    }

    #[test]
    fn clap_accepts_the_flags() {
        Flags::command().debug_assert();
    }
}
