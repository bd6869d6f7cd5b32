//! Flags of `minder run` for jobs that read blocks of the input.

use std::ffi::OsString;

use clap::Args;

// See `crate::commands::run`.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Standard input in blocks")]
pub(crate) struct PipeFlags {
    /// Split standard input into blocks, one for each job.
    ///
    /// A block consists of whole records. Its job reads it on standard input.
    #[arg(long, visible_alias = "spreadstdin")]
    pub(crate) pipe: bool,

    /// Like --pipe, for regular files; jobs read them directly.
    ///
    /// The files are those of -a and ::::.
    #[arg(long, visible_alias = "pipepart")]
    pub(crate) pipe_part: bool,

    /// The size of a block [default: 1M]
    ///
    /// With --pipe-part, -N means N blocks per slot.
    #[arg(long, visible_alias = "block-size", value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) block: Option<String>,

    /// Start a job with an incomplete block after this time.
    #[arg(long, visible_alias = "bt", value_name = "TIME", value_parser = minder_ui::units::time)]
    pub(crate) block_timeout: Option<std::time::Duration>,

    /// Records begin with this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) recstart: Option<OsString>,

    /// Records end with this text [default: a newline]
    #[arg(long, value_name = "TEXT")]
    pub(crate) recend: Option<OsString>,

    /// --recstart and --recend are regular expressions.
    #[arg(long)]
    pub(crate) regexp: bool,

    /// Remove the record separators.
    #[arg(long, visible_aliases = ["rrs", "removerecsep"])]
    pub(crate) remove_rec_sep: bool,

    /// One job per slot; blocks go to any job that is ready.
    #[arg(long, visible_alias = "round")]
    pub(crate) round_robin: bool,

    /// One job per slot; each reads the whole input.
    #[arg(long)]
    pub(crate) tee: bool,

    /// One job per slot; lines with equal values go to the same job.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) shard: Option<String>,

    /// One job per slot; this column is the slot's number.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) bin: Option<String>,

    /// No block splits adjacent lines with equal values. -N1: one job for each such group.
    #[arg(long, visible_alias = "groupby", value_name = "COLUMN")]
    pub(crate) group_by: Option<String>,

    /// With --dry-run and --pipe-part, also print a shell command that reads each block.
    #[arg(long, hide = true)]
    pub(crate) print_parts: bool,

    /// Write each block to a file; {} is its name.
    #[arg(long, conflicts_with = "fifo")]
    pub(crate) cat: bool,

    /// Write each block to a named pipe; {} is its name.
    #[arg(long)]
    pub(crate) fifo: bool,
}

impl PipeFlags {
    /// Returns `true` if jobs read blocks of the input instead of having arguments.
    pub(crate) fn is_wanted(&self) -> bool {
        self.pipe
            || self.pipe_part
            || self.round_robin
            || self.tee
            || self.cat
            || self.fifo
            || self.shard.is_some()
            || self.bin.is_some()
            || self.group_by.is_some()
    }

    /// Returns the flag with which all jobs read their input concurrently: no job can make progress
    /// until all of them run.
    pub(crate) fn stream_flag(&self) -> Option<&'static str> {
        let Self { round_robin, tee, shard, bin, .. } = self;
        [
            (*round_robin, "--round-robin"),
            (*tee, "--tee"),
            (shard.is_some(), "--shard"),
            (bin.is_some(), "--bin"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }

    /// Returns `true` if the same input is distributed differently each time, so that a run cannot be
    /// resumed.
    pub(crate) fn is_unrepeatable(&self) -> bool {
        self.round_robin || self.block_timeout.is_some()
    }

    /// Returns a flag that has no effect unless jobs read blocks.
    pub(crate) fn block_flag(&self) -> Option<&'static str> {
        let Self { block_timeout, recstart, recend, remove_rec_sep, .. } = self;
        [
            (block_timeout.is_some(), "--block-timeout"),
            (recstart.is_some(), "--recstart"),
            (recend.is_some(), "--recend"),
            (*remove_rec_sep, "--remove-rec-sep"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}
