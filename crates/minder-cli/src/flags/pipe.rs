//! Flags of `minder run` about jobs that read a part of the input each.

use std::ffi::OsString;

use clap::Args;

/// See [`crate::verbs::run`].
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Parts of the input as standard input")]
pub(crate) struct PipeFlags {
    /// Cut standard input into blocks, one a job.
    ///
    /// A block is whole records, and the standard input of its job.
    #[arg(long, visible_alias = "spreadstdin")]
    pub(crate) pipe: bool,

    /// The same with regular files, not read beforehand.
    ///
    /// Those of -a and ::::.
    #[arg(long, visible_alias = "pipepart")]
    pub(crate) pipe_part: bool,

    /// The size of a block [default: 1M]
    ///
    /// With --pipe-part, -N: as many blocks a slot.
    #[arg(long, visible_alias = "block-size", value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) block: Option<String>,

    /// Give on what there is after this time.
    #[arg(long, visible_alias = "bt", value_name = "TIME", value_parser = crate::units::time)]
    pub(crate) block_timeout: Option<std::time::Duration>,

    /// Records begin with this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) recstart: Option<OsString>,

    /// Records end in this text [default: a newline].
    #[arg(long, value_name = "TEXT")]
    pub(crate) recend: Option<OsString>,

    /// --recstart and --recend are regular expressions.
    #[arg(long)]
    pub(crate) regexp: bool,

    /// Take separators of records away.
    #[arg(long, visible_aliases = ["rrs", "removerecsep"])]
    pub(crate) remove_rec_sep: bool,

    /// One job a slot; blocks to whichever takes them.
    #[arg(long, visible_alias = "round")]
    pub(crate) round_robin: bool,

    /// One job a slot; all of them get all of the input.
    #[arg(long)]
    pub(crate) tee: bool,

    /// One job a slot; lines with the same value here go to the same.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) shard: Option<String>,

    /// One job a slot; this column is the slot's number.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) bin: Option<String>,

    /// One job a run of lines with the same value here.
    #[arg(long, visible_alias = "groupby", value_name = "COLUMN")]
    pub(crate) group_by: Option<String>,

    /// With --dry-run and --pipe-part: print how each part is read, too, as lines for a shell.
    #[arg(long, hide = true)]
    pub(crate) print_parts: bool,

    /// The block is a file, whose name {} stands for.
    #[arg(long, conflicts_with = "fifo")]
    pub(crate) cat: bool,

    /// The block is a named pipe, whose name {} stands for.
    #[arg(long)]
    pub(crate) fifo: bool,
}

impl PipeFlags {
    /// Whether jobs read parts of the input, instead of having arguments.
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

    /// The flag by which jobs get their input bit by bit, side by side: none gets on before all of
    /// them run.
    pub(crate) fn stream(&self) -> Option<&'static str> {
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

    /// A flag that says nothing without one that asks for parts.
    pub(crate) fn lone(&self) -> Option<&'static str> {
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
