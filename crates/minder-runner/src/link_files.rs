//! The files that jobs on a host need, and those that they make.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use minder_cluster::protocol::ToAgent;
use minder_cluster::transfer::{Part, Receiver, Sender, place};
use minder_record::event::OsBytes;
use minder_template::{Job, Template};

use crate::text::os_error_text;

/// Which files go to a host and come back.
#[derive(Clone, Debug, Default)]
pub struct TransferConfig {
    /// The directory of the run, to which names are relative.
    pub dir: PathBuf,
    /// The files that each job needs.
    pub sent: Vec<Template>,
    /// The files that each job makes.
    pub returned: Vec<Template>,
    /// The files that all jobs need.
    pub shared: Vec<PathBuf>,
    /// `true` if they are removed from the host afterwards.
    pub removes: bool,
}

impl TransferConfig {
    /// Returns the files that are removed after the last job.
    ///
    /// # Errors
    /// A file would not be below the directory of the jobs.
    pub fn removed_at_end(&self) -> Result<Vec<OsBytes>> {
        if !self.removes {
            return Ok(Vec::new());
        }
        let places = self.shared.iter().map(|path| place(path).map_err(anyhow::Error::msg));
        places.map(|place| Ok(OsBytes::from(place?.as_os_str()))).collect()
    }
}

/// What is to be sent to a host, in this order, and what may come back.
#[derive(Debug)]
pub(crate) struct LinkFiles {
    config: TransferConfig,
    sender: Sender,
    /// `true` while the files of all jobs are sent.
    is_shared: bool,
    /// The job that follows the files of `sender`.
    job: Option<ToAgent>,
    receiver: Receiver,
    /// What the jobs that run may send.
    expected: HashMap<u64, Vec<PathBuf>>,
}

impl LinkFiles {
    pub(crate) fn new(config: &TransferConfig) -> Result<Self> {
        let mut sender = Sender::default();
        for path in &config.shared {
            let to = place(path).map_err(anyhow::Error::msg)?;
            sender.push(config.dir.join(path), to);
        }
        Ok(Self {
            is_shared: !sender.is_done(),
            sender,
            job: None,
            receiver: Receiver::new(config.dir.clone()),
            expected: HashMap::new(),
            config: config.clone(),
        })
    }

    /// Adds a job and the files that it needs.
    pub(crate) fn push(&mut self, number: u64, columns: &[OsString]) {
        self.job = Some(self.prepare(number, columns).unwrap_or_else(|why| {
            self.sender.clear();
            unfit(number, why, columns)
        }));
    }

    fn prepare(&mut self, number: u64, columns: &[OsString]) -> Result<ToAgent, String> {
        let job = Job { columns, number, slot: 1, ..Job::default() };
        let names = |templates: &[Template]| -> Result<Vec<PathBuf>, String> {
            let expand = |template: &Template| {
                let words = template.argv(&job).map_err(|error| error.to_string())?;
                Ok(words.into_iter().next().map(PathBuf::from).unwrap_or_default())
            };
            templates.iter().map(expand).collect()
        };
        let mut removed = Vec::new();
        for path in names(&self.config.sent)? {
            let to = place(&path)?;
            removed.push(to.clone());
            self.sender.push(self.config.dir.join(path), to);
        }
        let returned = names(&self.config.returned)?;
        let places: Vec<PathBuf> = returned.iter().map(|path| place(path)).collect::<Result<_, _>>()?;
        removed.extend(returned.iter().cloned());
        if !places.is_empty() {
            self.expected.insert(number, places);
        }
        let bytes = |paths: &[PathBuf]| paths.iter().map(|path| OsBytes::from(path.as_os_str())).collect();
        Ok(ToAgent::Job {
            number,
            columns: to_bytes(columns),
            returned: bytes(&returned),
            removed: if self.config.removes { bytes(&removed) } else { Vec::new() },
        })
    }

    /// Returns the next message.
    ///
    /// # Errors
    /// A file that all jobs need cannot be read. A job whose file cannot be read is one that cannot run.
    pub(crate) fn next(&mut self) -> Result<Option<ToAgent>> {
        match self.sender.next_part() {
            Ok(Some(part)) if self.is_shared => return Ok(Some(ToAgent::Shared(part))),
            Ok(Some(part)) => return Ok(Some(ToAgent::File(part))),
            Ok(None) => self.is_shared = false,
            Err(error) if self.is_shared => anyhow::bail!("--basefile: {}", os_error_text(&error)),
            Err(error) => {
                self.sender.clear();
                if let Some(ToAgent::Job { number, columns, .. }) = self.job.take() {
                    self.job = Some(ToAgent::Unfit { number, why: os_error_text(&error), columns });
                }
            }
        }
        Ok(self.job.take())
    }

    /// Writes a part of a file that a job has made.
    ///
    /// # Errors
    /// The job was not to make it, or it cannot be written.
    pub(crate) fn take(&mut self, job: u64, part: &Part) -> io::Result<()> {
        let name = PathBuf::from(part.name.to_os());
        let is_below = |place: &PathBuf| name == *place || is_inside(&name, place);
        if !self.expected.get(&job).is_some_and(|places| places.iter().any(is_below)) {
            let text = format!("`{}` is not a file that job {job} returns", name.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        self.receiver.take(part).map(drop)
    }

    /// Notes that jobs have ended.
    pub(crate) fn forget(&mut self, jobs: &VecDeque<u64>) {
        for job in jobs {
            self.expected.remove(job);
        }
    }
}

/// Returns a job that cannot run.
pub(crate) fn unfit(number: u64, why: String, columns: &[OsString]) -> ToAgent {
    ToAgent::Unfit { number, why, columns: to_bytes(columns) }
}

fn to_bytes(columns: &[OsString]) -> Vec<OsBytes> {
    columns.iter().map(|column| OsBytes::from(column.as_os_str())).collect()
}

/// Returns whether a path is below a directory, and stays there.
fn is_inside(path: &Path, dir: &Path) -> bool {
    let plain = |component| matches!(component, std::path::Component::Normal(_));
    path.strip_prefix(dir).is_ok_and(|rest| rest.components().all(plain))
}
