//! The source of the jobs of a run: arguments as they are read, all arguments in another order, or
//! blocks of the input.

use std::num::NonZeroU64;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use minder::jobs::Threshold;
use minder_os::stdio::{StdStream, std_file};

use crate::block_source::{BlockSource, Values};
use crate::claimed_jobs::ClaimedJobs;
use crate::config::{InputDelivery, OrderConfig, PipeConfig, PipeInput, RunConfig};
use crate::history::{self, History};
use crate::input::{ArgumentReader, Durations, Order};
use crate::notice::Notice;
use crate::observer::Observer;
use crate::queue::JobSource;
use crate::recorder::RunRecorder;
use crate::splitter::{BlockSize, InputReader, SplitterSource, StreamSource};

/// Opens the source of jobs. All of the input is read first for another order than that of the input, and
/// where the number of jobs is needed: by a placeholder, or by a percentage of `--halt`, as in GNU
/// parallel.
pub(crate) fn job_source(
    config: &RunConfig,
    arguments: ArgumentReader,
    slots: usize,
    recorder: Option<&RunRecorder>,
    observer: &dyn Observer,
) -> Result<JobSource> {
    if let Some(agent) = recorder.and_then(RunRecorder::agent) {
        if let Some(served) = &agent.served {
            served.begin(slots as u64);
            return Ok(JobSource::Served(Arc::clone(served)));
        }
        return Ok(JobSource::Claimed(Box::new(ClaimedJobs::open(Arc::clone(agent), slots)?)));
    }
    if let Some(pipe) = &config.pipe {
        return block_source(config, pipe, arguments, slots, recorder);
    }
    let has_percentage =
        config.control.halt.is_some_and(|halt| matches!(halt.threshold(), Threshold::Percent(_)));
    let needs_total = config.template.needs_total() || has_percentage;
    let order = match config.order {
        OrderConfig::Given if needs_total && arguments.total().is_none() => Order::Given,
        OrderConfig::Given => return Ok(JobSource::Lazy(Box::new(arguments))),
        OrderConfig::Random(seed) => Order::Random(seed),
        OrderConfig::Shortest => Order::Shortest(durations(config, observer)),
        OrderConfig::Longest => Order::Longest(durations(config, observer)),
    };
    if arguments.may_block {
        observer.notice(&Notice::ReadingAllInput);
    }
    Ok(JobSource::Unread(Box::new(arguments), order))
}

/// Returns how long the jobs are expected to take, by earlier runs of the command.
fn durations(config: &RunConfig, observer: &dyn Observer) -> Durations {
    let history = History::of_command(&config.record.command, history::ORDER_BYTES_MAX);
    if history.is_empty() {
        observer.notice(&Notice::NoHistory);
    }
    history.durations()
}

fn block_source(
    config: &RunConfig,
    pipe: &PipeConfig,
    arguments: ArgumentReader,
    slots: usize,
    recorder: Option<&RunRecorder>,
) -> Result<JobSource> {
    // With --tee, each set of values is a job that reads all of the input, and all run at once. The
    // values are arguments, so that they can be counted.
    let jobs = arguments.total().filter(|jobs| pipe.is_tee() && *jobs > 0);
    let mut splitter_config = pipe.splitter.clone();
    splitter_config.has_checksums = config.record.keep;
    if config.record.mode.is_some() && jobs.is_none() {
        splitter_config.share_slots = slots_of_first_attempt(config, pipe, slots)?;
    }
    let slots = jobs.and_then(|jobs| usize::try_from(jobs).ok()).unwrap_or(slots);
    let file_prefix = match (pipe.delivery, recorder) {
        (InputDelivery::Stdin, _) => None,
        // After the id of the run, so that no two runs share a file.
        (_, Some(recorder)) => {
            let name = recorder.file_prefix("part", 0).unwrap_or_else(unrecorded_name);
            Some(recorder.dir().join(format!("{name}-")))
        }
        (_, None) => Some("part-".into()),
    };
    let reader = InputReader::open(splitter_config, splitter_source(pipe)?, slots)?;
    Ok(JobSource::Blocks(Box::new(BlockSource {
        queue: Arc::clone(reader.queue()),
        reader: Some(reader),
        values: if pipe.has_values { Values::Here(Box::new(arguments)) } else { Values::None },
        runs_values: pipe.runs_values,
        file_prefix,
        pending: None,
    })))
}

/// Returns the number of slots of the first attempt, if the input depends on it.
///
/// # Errors
/// It is not recorded, or the input of each job depends on it and this attempt has another number.
fn slots_of_first_attempt(config: &RunConfig, pipe: &PipeConfig, slots: usize) -> Result<Option<NonZeroU64>> {
    let stream = pipe.stream_flag();
    let flag = match (stream, pipe.splitter.block) {
        (Some(flag), _) => flag,
        (None, BlockSize::Shares(_)) => "--block",
        (None, BlockSize::Bytes(_)) => return Ok(None),
    };
    let Some(first) = config.record.first_slots.and_then(NonZeroU64::new) else {
        bail!(
            "cannot resume a run with `{flag}`: its jobs depend on the number of slots, and no record has \
             that of its first attempt"
        );
    };
    if stream.is_some() && first.get() != slots as u64 {
        bail!(
            "the jobs of `{flag}` depend on the number of slots, which was {first} and is {slots}: resume \
             the run with -j{first}"
        );
    }
    Ok(Some(first))
}

/// Opens standard input, if it is read. Files are opened when they are read.
fn splitter_source(pipe: &PipeConfig) -> Result<SplitterSource> {
    let paths = pipe.inputs.iter().filter_map(|input| match input {
        PipeInput::Stdin => None,
        PipeInput::File(path) => Some(path.clone()),
    });
    if pipe.ranges {
        return Ok(SplitterSource::Files(paths.collect()));
    }
    let open = |input: &PipeInput| match input {
        PipeInput::Stdin => {
            std_file(StdStream::Input).map(StreamSource::Open).context("cannot read standard input")
        }
        PipeInput::File(path) => Ok(StreamSource::Path(path.clone())),
    };
    pipe.inputs.iter().map(open).collect::<Result<_>>().map(SplitterSource::Streams)
}

/// The beginning of file names of a run without a record.
fn unrecorded_name() -> String {
    format!("minder-part-{}", std::process::id())
}
