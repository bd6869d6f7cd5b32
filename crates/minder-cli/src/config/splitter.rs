//! Flags that split the input into parts: `--pipe`, `--pipe-part` and those that require them.

use std::ffi::OsString;
use std::num::NonZeroU64;

use anyhow::{Result, bail};
use minder_runner::config::{InputDelivery, PipeConfig, PipeInput};
use minder_runner::splitter::{BLOCK, BlockSize, Column, Distribution, Header, SplitterConfig};

use crate::escapes::{EscapeSet, unescape};
use crate::flags::{PipeFlags, RunFlags};
use minder_ui::units;

/// Returns how the input is split, if jobs read parts of it.
///
/// - `inputs`: the files of `-a` and `::::`, or standard input.
/// - `has_values`: whether jobs also have arguments, of `:::`.
/// - `runs_values`: whether the argument is the command.
/// - `is_resumed`: whether an earlier run is resumed.
pub(super) fn pipe_config(
    flags: &RunFlags,
    inputs: Vec<PipeInput>,
    has_values: bool,
    runs_values: bool,
    is_resumed: bool,
) -> Result<Option<PipeConfig>> {
    let pipe = &flags.pipe;
    if !pipe.is_wanted() {
        if let Some(flag) = pipe.block_flag() {
            bail!("{flag} requires --pipe or --pipe-part");
        }
        return Ok(None);
    }
    if pipe.pipe_part && inputs.contains(&PipeInput::Stdin) {
        bail!("--pipe-part requires regular files: name them with -a FILE or :::: FILE");
    }
    let delivery = match pipe {
        PipeFlags { cat: true, .. } => InputDelivery::File,
        PipeFlags { fifo: true, .. } => InputDelivery::Fifo,
        _ => InputDelivery::Stdin,
    };
    check_streams(flags)?;
    if delivery == InputDelivery::File
        && let Some(stream_flag) = pipe.stream_flag()
    {
        bail!("--cat needs a complete part, but `{stream_flag}` writes parts gradually (use --fifo)");
    }
    let config = PipeConfig {
        splitter: splitter_config(flags, has_values, colsep(flags))?,
        inputs,
        ranges: pipe.pipe_part,
        delivery,
        has_values,
        runs_values,
        print_blocks: pipe.print_parts,
    };
    if is_resumed && let Some(flag) = config.unrepeatable() {
        bail!("cannot resume a run with `{flag}`: the input is distributed differently each time");
    }
    Ok(Some(config))
}

/// Refuses a flag that would cut the input in another way than `first`, the flags of the first
/// attempt, did: the blocks of finished jobs are skipped by their numbers.
///
/// # Errors
/// There is such a flag, or a flag has an invalid value.
pub(crate) fn check_same_blocks(first: &RunFlags, now: &RunFlags) -> Result<()> {
    let changed = match (first.pipe.is_wanted(), now.pipe.is_wanted()) {
        (false, false) => None,
        (true, true) => changed_flag(first, now)?,
        _ => Some("--pipe"),
    };
    if let Some(flag) = changed {
        bail!(
            "cannot resume a run with another `{flag}`: its input was cut into blocks already (omit `{flag}`)"
        );
    }
    Ok(())
}

/// Returns a flag that decides how the input is cut and that has another value.
fn changed_flag(first: &RunFlags, now: &RunFlags) -> Result<Option<&'static str>> {
    let config = |flags| splitter_config(flags, false, colsep(flags));
    let old = config(first)?;
    let new = config(now)?;
    let records = if first.arity.lines == now.arity.lines { "-N" } else { "-L" };
    let flags = [
        (first.pipe.pipe_part != now.pipe.pipe_part, "--pipe-part"),
        (old.spread != new.spread, new.spread.flag().unwrap_or("--pipe")),
        (old.block != new.block, "--block"),
        (old.records != new.records, records),
        (old.start != new.start, "--recstart"),
        (old.end != new.end, "--recend"),
        (old.regexp != new.regexp, "--regexp"),
        (old.remove_separator != new.remove_separator, "--remove-rec-sep"),
        (old.skip_blank != new.skip_blank, "--no-run-if-empty"),
        (old.header != new.header, "--header"),
        (old.group_by != new.group_by, "--group-by"),
        (old.colsep != new.colsep, "--colsep"),
        (old.skip_first != new.skip_first, "--skip-first-line"),
    ];
    Ok(flags.into_iter().find_map(|(is_changed, flag)| is_changed.then_some(flag)))
}

/// Returns the regular expression between the columns of a line.
fn colsep(flags: &RunFlags) -> Option<String> {
    flags.input.colsep.clone().or_else(|| flags.input.csv.then(|| ",".to_owned()))
}

fn splitter_config(flags: &RunFlags, has_values: bool, colsep: Option<String>) -> Result<SplitterConfig> {
    let pipe = &flags.pipe;
    let number = |count: Option<u64>| count.and_then(NonZeroU64::new);
    // Here `-N` and `-L` count records.
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
        // As in GNU parallel: if the jobs have arguments, the first of those is skipped instead.
        skip_first: flags.input.skip_first_line && !has_values,
        all_streams: has_values,
        header: flags.input.header.as_deref().map(header),
        group_by: pipe.group_by.as_deref().map(column),
        colsep,
        block_timeout: pipe.block_timeout,
        has_checksums: false,
        share_slots: None,
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
    // A negative number is a number of blocks for each job slot.
    let number = text.strip_prefix('-');
    let count = units::positive(number.unwrap_or(text)).map_err(|why| anyhow::anyhow!("--block: {why}"))?;
    match NonZeroU64::new(count) {
        Some(count) if number.is_some() => Ok(BlockSize::Shares(count)),
        Some(count) => Ok(BlockSize::Bytes(count.get())),
        None => bail!("--block: `{text}` is too small: the minimum is 1"),
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

/// Refuses flags that would lose input, or block for ever, if jobs read their parts gradually.
fn check_streams(flags: &RunFlags) -> Result<()> {
    let RunFlags { pipe, control, .. } = flags;
    if control.interactive {
        bail!("`--interactive` confirms arguments: it cannot be used with parts of the input");
    }
    let Some(stream_flag) = pipe.stream_flag() else { return Ok(()) };
    let retrying = [
        (control.retries.is_some_and(|times| times != 1), "--retries"),
        (control.memfree.is_some_and(|size| size > 0), "--memfree"),
        (control.limit.is_some(), "--limit"),
    ];
    if let Some((_, flag)) = retrying.iter().find(|(given, _)| *given) {
        bail!("`{flag}` may run a job again, but its part of `{stream_flag}` can be read only once");
    }
    let delaying = [
        (control.load.is_some(), "--load"),
        (control.memsuspend.is_some_and(|size| size > 0), "--memsuspend"),
        (control.noswap, "--noswap"),
    ];
    if let Some((_, flag)) = delaying.iter().find(|(given, _)| *given) {
        bail!("`{flag}` cannot delay some of the jobs of `{stream_flag}`, because all of them run at once");
    }
    Ok(())
}
