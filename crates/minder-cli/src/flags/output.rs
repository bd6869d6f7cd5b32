//! Flags of `minder run` for output: how it is shown, and where it is stored.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

// See `crate::commands::run`.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFlags {
    /// Show each job when it has finished (default).
    #[arg(long)]
    pub(crate) group: bool,

    /// Show jobs in the order in which they finish (default).
    #[arg(long)]
    pub(crate) no_keep_order: bool,

    /// Show jobs in the order of the input.
    ///
    /// The first unfinished job is shown live. The output of the others waits. When 10,000 finished
    /// jobs wait, no further job starts until some of them are shown.
    #[arg(short, long)]
    pub(crate) keep_order: bool,

    /// Show lines of all jobs as they arrive.
    ///
    /// Lines are never mixed. While a line over 1 MiB is shown, other jobs wait until it ends. The
    /// limit is lower with many jobs: --buffer divided by four times --jobs.
    #[arg(long, visible_alias = "lb", conflicts_with_all = ["keep_order", "ungroup"])]
    pub(crate) line_buffer: bool,

    /// Let jobs write to minder's output directly; it may mix.
    ///
    /// minder does not see this output: the record has no output sizes and no last lines of stderr,
    /// and --resume cannot show the output again.
    #[arg(
        short,
        long,
        conflicts_with_all = ["keep_order", "tag", "tagstring", "names", "results", "spool", "pty"]
    )]
    pub(crate) ungroup: bool,

    /// Output of good jobs: immediate, final or never.
    ///
    /// `immediate`, the default, shows it when the job has finished. `final` shows it after the last job, in
    /// the order of the input; `never` drops it.
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    pub(crate) success_output: Option<OutputTimeFlag>,

    /// The same for failed jobs: immediate, immediate-final, final, never.
    ///
    /// `immediate-final` shows it when the job has finished and again at the end, where it is found
    /// easily. With any other value than `immediate`, no job is shown live.
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    pub(crate) failure_output: Option<OutputTimeFlag>,

    /// The same for jobs that the end of the run cut off [default: as for failed jobs]
    ///
    /// They neither succeeded nor failed, and run again with `minder resume`. With `--failure-output final`
    /// the default is `never`, with `immediate-final` it is `immediate`.
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    pub(crate) cancelled_output: Option<OutputTimeFlag>,

    /// Begin each line with the job's argument and a tab.
    #[arg(long)]
    pub(crate) tag: bool,

    /// Begin each line with this text and a tab; placeholders are replaced.
    #[arg(long, value_name = "TEXT")]
    pub(crate) tagstring: Option<OsString>,

    /// Name the jobs, in their order: NAME,NAME …
    ///
    /// Each line of output begins with the job's name and a tab, and messages name jobs so. For
    /// commands that run side by side: `--lb --names api,web ::: ./api ./web`. There are as many
    /// names as jobs. The record has the commands.
    #[arg(long, value_name = "NAMES", conflicts_with_all = ["tag", "tagstring"])]
    pub(crate) names: Option<String>,

    /// Also write output to NAME/1/ARGUMENT/stdout …
    ///
    /// The files are stdout, stderr and seq, as for GNU parallel. With placeholders, NAME is the file
    /// for stdout, next to NAME.err and NAME.seq; if NAME ends in a slash, it is the directory of the
    /// three. NAME.csv, .tsv or .json is one table of all jobs, which contains their output instead
    /// of showing it; -.csv, -.tsv or -.json is written to stdout. On Windows, characters that are
    /// not allowed in file names are written as `%` and two hexadecimal digits. If several jobs have
    /// the same file name, the files of the last one remain. On Windows, names that differ only in
    /// case, or in dots and spaces at the end, are the same.
    #[arg(long, visible_alias = "res", value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) results: Option<OsString>,

    /// Print file names instead of output.
    ///
    /// The stdout of each job is written to a file in --tmpdir (else TMPDIR, else /tmp), whose name is
    /// printed instead. Only their owner can read the files. minder does not remove them. With
    /// --results, the names of its files are printed.
    #[arg(long, visible_aliases = ["output-as-files", "outputasfiles"])]
    pub(crate) files: bool,

    /// Remove a job's temporary files when it has finished.
    ///
    /// The copies of --template, and the new directory of `--wd ...`.
    #[arg(long)]
    pub(crate) cleanup: bool,

    /// Give each job a pseudo-terminal, so that it colors and flushes.
    ///
    /// stdout and stderr become one stream, with lines that end in CR LF. Its input stays empty: a job
    /// that prompts on its terminal hangs.
    #[arg(long, conflicts_with = "spool")]
    pub(crate) pty: bool,

    /// Redirect jobs to files, not pipes: cheapest for large output.
    ///
    /// Output is shown only when the job has finished. --buffer does not apply: a job that never ends
    /// fills the disk. A job that seeks in its output or truncates it changes what is shown. Processes
    /// that it leaves running write to a deleted file.
    #[arg(long, conflicts_with = "line_buffer")]
    pub(crate) spool: bool,

    /// Memory for the waiting output of all jobs.
    ///
    /// In bytes, or with k, M, G. Output that does not fit is stored in files.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = minder_ui::units::buffer)]
    pub(crate) buffer: usize,

    /// Directory for waiting output [default: that of the record]
    ///
    /// Without a record, the default is the directory for temporary files. With a record, minder
    /// creates a directory for the run in it. Without one, the files have no name and disappear
    /// when minder exits.
    #[arg(long, value_name = "DIR")]
    pub(crate) tmpdir: Option<PathBuf>,
}

/// The time at which the output of a finished job is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputTimeFlag {
    /// When the job has finished.
    Immediate,
    /// When the job has finished, and again after the last job.
    ImmediateFinal,
    /// After the last job.
    Final,
    /// Not at all.
    Never,
}

// Flags of `minder run` for its record.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Record and resuming")]
pub(crate) struct RecordFlags {
    /// Do not record this run.
    #[arg(long, conflicts_with_all = ["sync", "redact_args"])]
    pub(crate) no_record: bool,

    /// Sync the record to disk, so that it survives a power failure.
    ///
    /// After each write. If the record cannot be written, the run does not start.
    #[arg(long)]
    pub(crate) sync: bool,

    /// Keep the output of all jobs in the record.
    ///
    /// `minder log RUN JOB --stdout` shows it later, and with --attempt that of each try. A run stores
    /// at most 512 MiB, which count in the limits of age and size of all records. Otherwise the record
    /// has only the last lines of failed jobs.
    #[arg(long, conflicts_with_all = ["no_record", "redact_args", "ungroup", "tty"])]
    pub(crate) keep_output: bool,

    /// Keep arguments out of the record: they may be secrets.
    ///
    /// To resume such a run, provide its input again. The last lines of stderr are not recorded
    /// either. Arguments can still appear in the command before `:::`, in waiting output, in names
    /// below --results, and in messages on stderr.
    #[arg(long)]
    pub(crate) redact_args: bool,

    /// Write a joblog in the format of GNU parallel to this file.
    ///
    /// It has one line for each finished job. An existing file is overwritten, except with --resume,
    /// --resume-failed and --retry-failed, which read it and append to it.
    #[arg(long, visible_alias = "jl", value_name = "FILE")]
    pub(crate) joblog: Option<PathBuf>,

    /// Append to an existing joblog.
    #[arg(long, hide = true)]
    pub(crate) joblog_append: bool,

    /// Run the unfinished jobs of a run, or those not in --joblog FILE.
    ///
    /// `--resume RUN` does what `minder resume RUN` does. RUN is a run id or `last`; without it, the
    /// last run of this directory is resumed. Its flags, command, directory and input are used again.
    /// Flags that are given now are applied after the recorded ones. With `--resume --joblog FILE
    /// COMMAND… ::: ARGUMENT…`, the whole command line is given again, and jobs are identified by their
    /// numbers.
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["resume_failed", "retry_failed"]
    )]
    pub(crate) resume: Option<OsString>,

    /// Like --resume, and also run failed jobs again.
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with = "retry_failed"
    )]
    pub(crate) resume_failed: Option<OsString>,

    /// Run only failed jobs again, as `minder retry` does.
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) retry_failed: Option<OsString>,

    /// When resuming, treat jobs whose stored output is lost as done.
    ///
    /// Output that was not shown yet may be lost, for example after a power failure. By default, its
    /// jobs run again.
    #[arg(long)]
    pub(crate) skip_lost: bool,

    /// Print the commands instead of running them.
    #[arg(long, help_heading = "Running jobs")]
    pub(crate) dry_run: bool,
}
