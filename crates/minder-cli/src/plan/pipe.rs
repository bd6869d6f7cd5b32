//! The flags about parts of the input.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::flags::{PipeFlags, RunFlags};

/// How the input is given out in parts, as it was asked for.
#[derive(Clone, Debug)]
pub(crate) struct PipeConfig {
    pub(crate) flags: PipeFlags,
    /// Records a part: `-N`, `-L`, `-n`.
    pub(crate) records: Option<u64>,
    pub(crate) lines: Option<u64>,
    pub(crate) skip_blank: bool,
    pub(crate) header: Option<String>,
    /// Whether the first line of the input is passed over.
    pub(crate) skip_first: bool,
    /// Whether jobs have values beside their parts, and whether a value is the command.
    pub(crate) has_values: bool,
    pub(crate) runs_values: bool,
    pub(crate) colsep: Option<String>,
    /// The files whose parts are given out; none for standard input.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) way: InputDelivery,
}

/// How a job gets its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputDelivery {
    Stdin,
    /// As a file, by its name.
    File,
    /// As a named pipe, by its name.
    Fifo,
}

impl PipeConfig {
    /// The plan, if jobs read parts. `files`: what `-a` and `::::` name; `has_values`: whether
    /// there are others, behind `:::`. `runs_values`: whether one is the command. `goes_on`: a
    /// run that was begun before.
    pub(super) fn new(
        flags: &RunFlags,
        files: Vec<PathBuf>,
        has_values: bool,
        runs_values: bool,
        goes_on: bool,
    ) -> Result<Option<Self>> {
        let pipe = &flags.pipe;
        if !pipe.is_wanted() {
            if let Some(flag) = pipe.lone() {
                bail!("{flag} is about parts of the input: it goes with --pipe or --pipe-part");
            }
            return Ok(None);
        }
        if pipe.pipe_part && files.is_empty() {
            bail!("--pipe-part cuts regular files: name them with -a FILE or :::: FILE");
        }
        let way = match pipe {
            PipeFlags { cat: true, .. } => InputDelivery::File,
            PipeFlags { fifo: true, .. } => InputDelivery::Fifo,
            _ => InputDelivery::Stdin,
        };
        check_streams(flags)?;
        if goes_on && pipe.round_robin {
            bail!(
                "which job gets what of `--round-robin` is another matter each time: such a run is not gone on with"
            );
        }
        if way == InputDelivery::File && pipe.stream().is_some() {
            bail!(
                "--cat makes a file of a whole part: it does not go with jobs that get theirs bit by bit (--fifo does)"
            );
        }
        Ok(Some(Self {
            flags: pipe.clone(),
            records: flags.arity.max_replace_args.or(flags.arity.max_args),
            lines: flags.arity.lines,
            skip_blank: flags.input.no_run_if_empty,
            header: flags.input.header.clone(),
            // As GNU parallel has it: where there are values, the first of them is passed over instead.
            skip_first: flags.input.skip_first_line && !has_values,
            has_values,
            runs_values,
            colsep: flags.input.colsep.clone().or_else(|| flags.input.csv.then(|| ",".to_owned())),
            files,
            way,
        }))
    }
}

/// Refuses what would lose input, or wait for ever, where jobs get theirs bit by bit.
fn check_streams(flags: &RunFlags) -> Result<()> {
    let RunFlags { pipe, control, .. } = flags;
    if control.interactive {
        bail!("`--interactive` asks for arguments: it does not go with jobs that read parts of the input");
    }
    let Some(stream) = pipe.stream() else { return Ok(()) };
    let again = [
        (control.retries.is_some_and(|times| times != 1), "--retries"),
        (control.memfree.is_some_and(|size| size > 0), "--memfree"),
        (control.limit.is_some(), "--limit"),
    ];
    if let Some((_, flag)) = again.iter().find(|(given, _)| *given) {
        bail!("`{flag}` runs a job again, and what it got of `{stream}` is gone then");
    }
    let held = [
        (control.load.is_some(), "--load"),
        (control.memsuspend.is_some_and(|size| size > 0), "--memsuspend"),
        (control.noswap, "--noswap"),
    ];
    if let Some((_, flag)) = held.iter().find(|(given, _)| *given) {
        bail!("the jobs of `{stream}` wait for each other: `{flag}` cannot hold some of them back");
    }
    Ok(())
}
