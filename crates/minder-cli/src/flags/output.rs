//! Flags of `minder run` about output: how it is seen, and where it waits.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// See [`crate::verbs::run`].
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFlags {
    /// Show each job when it ends, as is the default.
    #[arg(long)]
    pub(crate) group: bool,

    /// Show jobs in the order in which they end, as is the default.
    #[arg(long)]
    pub(crate) no_keep_order: bool,

    /// Show jobs in the order of the input.
    ///
    /// The first that is not over yet is seen as it writes. The others wait, at most 10,000
    /// finished ones; then no further job starts until some could be shown.
    #[arg(short, long)]
    pub(crate) keep_order: bool,

    /// Show whole lines of all jobs as they come. No line is torn.
    ///
    /// A line over 1 MiB (less with many jobs: --buffer over four times --jobs) has the screen for
    /// itself until it ends.
    #[arg(long, visible_alias = "lb", conflicts_with_all = ["keep_order", "ungroup"])]
    pub(crate) line_buffer: bool,

    /// Let jobs write to our output themselves, mixed.
    ///
    /// minder then sees nothing of it: the record has no sizes of outputs and no last lines of
    /// stderr, and what was written is not shown again.
    #[arg(short, long, conflicts_with_all = ["keep_order", "tag", "tagstring", "results", "spool", "pty"])]
    pub(crate) ungroup: bool,

    /// Begin each line with the job's argument and a tab.
    #[arg(long)]
    pub(crate) tag: bool,

    /// Begin each line with this text and a tab; placeholders as in the command.
    #[arg(long, value_name = "TEXT")]
    pub(crate) tagstring: Option<OsString>,

    /// Write outputs into files, too: NAME/1/ARGUMENT/stdout …
    ///
    /// stdout, stderr and seq, as GNU parallel does. With placeholders, NAME is the file for
    /// stdout, with NAME.err and NAME.seq beside it; if a slash ends it, it is the folder of
    /// the three. NAME.csv, .tsv or .json is one table for all jobs, their outputs in it
    /// instead of on the screen; -.csv, -.tsv or -.json goes to stdout. On Windows, what no
    /// folder's name may have is written as `%` and two hexadecimal digits. Of jobs whose files
    /// have one name, the last one's stay; on Windows case makes no difference in it, nor do dots
    /// and blanks at its end.
    #[arg(long, visible_alias = "res", value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) results: Option<OsString>,

    /// Print names of files.
    ///
    /// stdout of each job is written into a file in --tmpdir (else TMPDIR, else /tmp), whose name
    /// is printed instead. The files are for their owner alone, and stay. With --results, the
    /// names are those of its files.
    #[arg(long, visible_aliases = ["output-as-files", "outputasfiles"])]
    pub(crate) files: bool,

    /// Remove what was made for a job when it is over.
    ///
    /// Copies of --template, the new folder of `--wd ...`.
    #[arg(long)]
    pub(crate) cleanup: bool,

    /// Give each job a terminal of its own, so that it colours and flushes.
    ///
    /// Its two outputs become one. Lines then end in CR LF. Its input stays empty; a job that asks
    /// on its terminal waits for ever.
    #[arg(long, conflicts_with = "spool")]
    pub(crate) pty: bool,

    /// Give each job files as outputs, not pipes: least work for large ones.
    ///
    /// Nothing is seen before the job ends. An endless job fills the disk, whatever --buffer says;
    /// a job that seeks in its output, or truncates it, changes what is shown; what it leaves
    /// running goes on writing to a file that is gone.
    #[arg(long, conflicts_with = "line_buffer")]
    pub(crate) spool: bool,

    /// The most memory for output that waits, of all jobs.
    ///
    /// In bytes or with k, M, G. What does not fit waits in files.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = crate::units::buffer)]
    pub(crate) buffer: usize,

    /// The folder for output that waits [default: that of the record]
    ///
    /// Without a record, that for temporary files. With a record it gets a folder of the run's own.
    /// Without one files have no name, and go with minder.
    #[arg(long, value_name = "DIR")]
    pub(crate) tmpdir: Option<PathBuf>,
}

/// Flags of `minder run` about its record.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Record")]
pub(crate) struct RecordFlags {
    /// Leave no record of this run.
    #[arg(long, conflicts_with_all = ["sync", "redact_args"])]
    pub(crate) no_record: bool,

    /// Wait for the disk: the record survives the machine, too.
    ///
    /// After each write. Without a record, do not run.
    #[arg(long)]
    pub(crate) sync: bool,

    /// Keep arguments out of the record: they may be secrets.
    ///
    /// To resume such a run, its input is given again. The last lines of stderr are left out, too.
    /// Not kept out: what is typed before `:::`, output while it waits, names below --results,
    /// messages on stderr.
    #[arg(long)]
    pub(crate) redact_args: bool,

    /// Write GNU parallel's table of jobs into this file.
    ///
    /// A row for each job that ended. A file that is there is emptied, but for --resume and its
    /// kin, which read it and go on with it.
    #[arg(long, visible_alias = "jl", value_name = "FILE")]
    pub(crate) joblog: Option<PathBuf>,

    /// Go on with a joblog that is there.
    #[arg(long, hide = true)]
    pub(crate) joblog_append: bool,

    /// Run what had not ended, of a run or by --joblog FILE.
    ///
    /// `--resume RUN`, or `--resume --joblog FILE COMMAND… ::: ARGUMENT…`. By its id, or as `last`,
    /// a run has its own flags, command, folder and input again; flags that are given now stand
    /// before the id and come behind its own. By a joblog all is given again, and jobs are
    /// known by their numbers.
    #[arg(long, conflicts_with_all = ["resume_failed", "retry_failed"])]
    pub(crate) resume: bool,

    /// Run what had not ended, and once more what had failed.
    #[arg(long, conflicts_with = "retry_failed")]
    pub(crate) resume_failed: bool,

    /// Run once more what had failed, and nothing else.
    #[arg(long)]
    pub(crate) retry_failed: bool,

    /// With --resume and its kin: count jobs as done whose kept output is lost.
    ///
    /// Output that waited to be shown may be gone when a run is resumed, for instance since the
    /// machine went down. By default its jobs run again.
    #[arg(long)]
    pub(crate) skip_lost: bool,

    /// Print the commands instead of running them.
    #[arg(long, help_heading = "Running")]
    pub(crate) dry_run: bool,
}
