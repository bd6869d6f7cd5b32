//! The plan of a run: flags joined with what this machine is. Nothing is left to guess after this.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::flags::{Leak, RunFlags};
use crate::template::Template;

/// The word between command and arguments.
const SEPARATOR: &str = ":::";

/// Words that other runners know between command and arguments. Taken for an argument they would do harm.
const OTHERS: [&str; 3] = ["::::", ":::+", "::::+"];

/// Everything that `minder run` has to know.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) template: Template,
    /// The arguments, or none: then they are the lines of standard input.
    pub(crate) arguments: Option<Vec<OsString>>,
    /// How many jobs at once; `None` for as many as there are descriptors for.
    pub(crate) degree: Option<usize>,
    pub(crate) leak_after: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) backend: Option<&'static str>,
    pub(crate) guardians: bool,
    pub(crate) bar: bool,
    pub(crate) quiet: bool,
}

impl Plan {
    pub(crate) fn new(flags: RunFlags) -> Result<Self> {
        let RunFlags { jobs, bar, quiet, shell, leak, grace, backend, no_guard, mut words } = flags;
        let arguments = words.iter().position(|word| word == SEPARATOR).map(|place| {
            let arguments = words.split_off(place + 1);
            words.pop();
            arguments
        });
        if arguments.iter().flatten().any(|word| word == SEPARATOR) {
            bail!("`:::` stands twice: arguments come from one list so far");
        }
        let all = words.iter().chain(arguments.iter().flatten());
        if let Some(other) =
            all.map(OsString::as_os_str).find(|word| OTHERS.iter().any(|other| word == other))
        {
            bail!(
                "`{}` is not known yet: give arguments behind one `:::`, or lines on standard input",
                other.display()
            );
        }
        if words.is_empty() {
            bail!("there is no command before `:::`");
        }
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(Self {
            template: Template::parse(&words, shell.as_deref())?,
            arguments,
            degree: match jobs {
                Some(0) => None,
                Some(jobs) => Some(jobs),
                None => Some(processors()),
            },
            leak_after: (leak == Leak::Close).then_some(Duration::from_millis(100)),
            grace: Duration::from_secs(grace),
            backend: backend.map(known_backend).transpose()?,
            guardians: !no_guard,
            bar,
            quiet,
        })
    }
}

fn known_backend(name: String) -> Result<&'static str> {
    match minder::backends().find(|known| *known == name) {
        Some(known) => Ok(known),
        None => {
            let all: Vec<_> = minder::backends().collect();
            bail!("there is no wait mechanism `{name}` on this system: it has {}", all.join(", "))
        }
    }
}
