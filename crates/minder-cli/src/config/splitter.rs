//! The flags about blocks of the input.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;

use anyhow::{Result, bail};
use minder_runner::config::{InputDelivery, PipeConfig};
use minder_runner::splitter::{BLOCK, BlockSize, Column, Distribution, Header, SplitterConfig};

use crate::flags::{PipeFlags, RunFlags};
use crate::escapes::{EscapeSet, unescape};
use crate::units;

/// The plan, if jobs read parts. `files`: what `-a` and `::::` name; `has_values`: whether
/// there are others, behind `:::`. `runs_values`: whether one is the command. `goes_on`: a
/// run that was begun before.
pub(super) fn pipe_config(
    flags: &RunFlags,
    files: Vec<PathBuf>,
    has_values: bool,
    runs_values: bool,
    goes_on: bool,
) -> Result<Option<PipeConfig>> {
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
    let colsep = flags.input.colsep.clone().or_else(|| flags.input.csv.then(|| ",".to_owned()));
    Ok(Some(PipeConfig {
        splitter: splitter_config(flags, has_values, colsep)?,
        files,
        delivery: way,
        has_values,
        runs_values,
        print_blocks: pipe.print_parts,
    }))
}

fn splitter_config(flags: &RunFlags, has_values: bool, colsep: Option<String>) -> Result<SplitterConfig> {
    let pipe = &flags.pipe;
    let number = |count: Option<u64>| count.and_then(NonZeroU64::new);
    // `-N` and `-L` are about records here.
    let records = number(flags.arity.max_replace_args.or(flags.arity.max_args));
    let records = match (records, number(flags.arity.lines)) {
        (Some(records), Some(lines)) => Some(records.saturating_mul(lines)),
        (records, lines) => records.or(lines),
    };
    let text = |text: &Option<OsString>| {
        let bytes = text.as_ref()?.as_encoded_bytes();
        Some(if pipe.regexp { bytes.to_vec() } else { unescape(bytes, EscapeSet::Separator) })
    };
    Ok(SplitterConfig {
        spread: distribution(pipe),
        block: block(pipe.block.as_deref())?,
        records,
        start: text(&pipe.recstart),
        end: text(&pipe.recend),
        regexp: pipe.regexp,
        remove_separator: pipe.remove_rec_sep,
        skip_blank: flags.input.no_run_if_empty,
        // As with GNU parallel: if there are values, the first of them is skipped instead.
        skip_first: flags.input.skip_first_line && !has_values,
        all_streams: has_values,
        header: flags.input.header.as_deref().map(header),
        group_by: pipe.group_by.as_deref().map(column),
        colsep,
        block_timeout: pipe.block_timeout,
    })
}

fn distribution(flags: &PipeFlags) -> Distribution {
    match (&flags.shard, &flags.bin) {
        _ if flags.tee => Distribution::Tee,
        (Some(text), _) => Distribution::Shard(column(text)),
        (None, Some(text)) => Distribution::Bin(column(text)),
        _ if flags.round_robin => Distribution::RoundRobin,
        _ => Distribution::Blocks,
    }
}

fn block(text: Option<&str>) -> Result<BlockSize> {
    let Some(text) = text else { return Ok(BlockSize::Bytes(BLOCK)) };
    let (shares, number) = match text.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, text),
    };
    let count = units::positive(number).map_err(|why| anyhow::anyhow!("--block: {why}"))?;
    match NonZeroU64::new(count) {
        Some(count) if shares => Ok(BlockSize::Shares(count)),
        Some(count) => Ok(BlockSize::Bytes(count.get())),
        None => bail!("--block: `{text}` is too little: at least 1"),
    }
}

fn header(text: &str) -> Header {
    match text.parse() {
        _ if text == ":" => Header::Lines(1),
        Ok(lines) => Header::Lines(lines),
        Err(_) => Header::Pattern(text.as_bytes().to_vec()),
    }
}

fn column(text: &str) -> Column {
    match text.parse() {
        Ok(number) => Column::Number(number),
        Err(_) => Column::Name(text.to_owned()),
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
