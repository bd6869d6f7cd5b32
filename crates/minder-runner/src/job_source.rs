//! Where the jobs of a run come from: arguments as they are read, all arguments in another order,
//! or blocks of the input.

use anyhow::{Context, Result};
use minder_os::stdio::{StdStream, std_file};

use crate::block_source::{BlockSource, Values};
use crate::config::{InputDelivery, OrderConfig, PipeConfig, RunConfig};
use crate::input::{ArgumentReader, Order};
use crate::notice::Notice;
use crate::observer::Observer;
use crate::queue::JobSource;
use crate::recorder::RunRecorder;
use crate::resume;
use crate::splitter::{InputSplitter, SplitterSource};

/// Opens the source of jobs. In another order than that of the input, all of it is read first.
pub(crate) fn job_source(
    config: &RunConfig,
    arguments: ArgumentReader,
    slots: usize,
    recorder: Option<&RunRecorder>,
    observer: &dyn Observer,
) -> Result<JobSource> {
    if let Some(pipe) = &config.pipe {
        return block_source(pipe, arguments, slots, recorder);
    }
    let order = match config.order {
        OrderConfig::Given if config.template.needs_total() && arguments.total().is_none() => Order::Given,
        OrderConfig::Given => return Ok(JobSource::Lazy(Box::new(arguments))),
        OrderConfig::Random(seed) => Order::Random(seed),
        OrderConfig::Shortest => Order::Shortest(resume::costs(config)),
        OrderConfig::Longest => Order::Longest(resume::costs(config)),
    };
    if arguments.may_block {
        observer.notice(&Notice::ReadingAllInput);
    }
    Ok(JobSource::Unread(Box::new(arguments), order))
}

fn block_source(
    pipe: &PipeConfig,
    arguments: ArgumentReader,
    slots: usize,
    recorder: Option<&RunRecorder>,
) -> Result<JobSource> {
    // With --tee, each set of values is a job that reads all of the input, and all run at once. The
    // values are arguments, so that they can be counted.
    let jobs = arguments.total().filter(|jobs| pipe.is_tee() && *jobs > 0);
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
    let source = match pipe.files.as_slice() {
        [] => SplitterSource::Reader(std_file(StdStream::Input).context("cannot read standard input")?),
        files => SplitterSource::Files(files.to_vec()),
    };
    Ok(JobSource::Blocks(Box::new(BlockSource {
        splitter: InputSplitter::open(pipe.splitter.clone(), source, slots)?,
        values: if pipe.has_values { Values::Here(Box::new(arguments)) } else { Values::None },
        runs_values: pipe.runs_values,
        file_prefix,
        pending: None,
    })))
}

/// The beginning of file names of a run without a record.
fn unrecorded_name() -> String {
    format!("minder-part-{}", std::process::id())
}
