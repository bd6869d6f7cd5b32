//! The flags about files that a run writes beside its screen: results, files in place of output,
//! copies of templates.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{CompatMode, new_seed};
use crate::flags::RunFlags;
use minder_template::{Options, Template};

/// The largest file that is a template: it is kept in memory.
const TEMPLATE_MAX: u64 = 64 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct OutputFiles {
    pub(crate) results: Option<Results>,
    /// Whether outputs are shown that go into files of `results`.
    pub(crate) shown: bool,
    /// Whether names of files are shown in place of output.
    pub(crate) names: bool,
    /// The folder for files that are no results.
    pub(crate) folder: PathBuf,
    /// Whether these are named as GNU parallel does.
    pub(crate) gnu_names: bool,
    pub(crate) copies: Vec<TemplateCopy>,
    /// Whether what was made for a job is removed when it is over.
    pub(crate) cleanup: bool,
    /// What names have that nobody else is to have.
    pub(crate) token: String,
}

/// Where outputs go.
#[derive(Debug)]
pub(crate) enum Results {
    /// Into a tree of folders that are named by the arguments.
    Tree { root: PathBuf, keys: ResultKeys },
    /// Into files that are named by the user.
    Named(Template),
    /// Into one table for all jobs; without a name it is standard output.
    Table { form: TableForm, path: Option<PathBuf>, names: Vec<OsString> },
}

/// What columns are called in a tree.
#[derive(Debug)]
pub(crate) struct ResultKeys {
    names: Vec<OsString>,
    width: Option<usize>,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableForm {
    /// Rows with this byte between columns.
    Separated(u8),
    Json,
}

/// A file that is copied for each job.
#[derive(Debug)]
pub(crate) struct TemplateCopy {
    pub(crate) content: Template,
    pub(crate) name: Template,
    pub(crate) permissions: Permissions,
    /// The file that is copied, under each whole path that leads to it: no copy takes its place.
    pub(crate) originals: [PathBuf; 2],
}

impl OutputFiles {
    pub(super) fn new(
        flags: &RunFlags,
        options: &Options,
        manner: CompatMode,
        width: Option<usize>,
        names: &[OsString],
    ) -> Result<Self> {
        let output = &flags.output;
        let keys = || ResultKeys { names: names.to_vec(), width };
        let results =
            output.results.as_deref().map(|name| Results::new(name, options, keys())).transpose()?;
        let like_gnu = manner == CompatMode::Parallel;
        if output.files && matches!(results, Some(Results::Table { .. })) {
            bail!("--files does not go with a table: it has the outputs themselves");
        }
        Ok(Self {
            shown: !like_gnu,
            names: output.files,
            results,
            folder: output.tmpdir.clone().unwrap_or_else(std::env::temp_dir),
            gnu_names: like_gnu,
            copies: flags
                .placeholders
                .template
                .iter()
                .map(|both| TemplateCopy::read(both, options))
                .collect::<Result<_>>()?,
            cleanup: output.cleanup,
            token: format!("{:016x}", new_seed()),
        })
    }

    /// The table, if there is one: its form, its file, names of columns.
    pub(crate) fn table(&self) -> Option<(TableForm, Option<&Path>, &[OsString])> {
        match &self.results {
            Some(Results::Table { form, path, names }) => Some((*form, path.as_deref(), names)),
            _ => None,
        }
    }

    /// What messages call the table's file.
    pub(crate) fn table_name(&self) -> Option<String> {
        let (_, path, _) = self.table()?;
        path.map(|path| format!("the results in `{}`", path.display()))
    }

    /// Whether what is shown is not what jobs wrote: names of files, lines of a table. Colours are
    /// not for these.
    pub(crate) fn is_shown(&self) -> bool {
        self.names || self.table().is_some()
    }

    /// Whether each job has files of its own.
    pub(crate) fn is_wanted(&self) -> bool {
        self.names || (self.results.is_some() && self.table().is_none())
    }
}

impl Results {
    fn new(name: &OsStr, options: &Options, keys: ResultKeys) -> Result<Self> {
        let bytes = name.as_encoded_bytes();
        let forms = [
            (&b".csv"[..], TableForm::Separated(b',')),
            (b".tsv", TableForm::Separated(b'\t')),
            (b".json", TableForm::Json),
        ];
        for (end, form) in forms {
            if let Some(before) = bytes.strip_suffix(end) {
                let path = (before != b"-").then(|| PathBuf::from(name));
                return Ok(Self::Table { form, path, names: keys.names });
            }
        }
        if bytes.is_empty() {
            bail!("--results has no name");
        }
        let template = Template::text(&name.to_owned(), options);
        Ok(match template.has_placeholders() {
            true => Self::Named(template),
            false => Self::Tree { root: PathBuf::from(name), keys },
        })
    }
}

impl ResultKeys {
    /// The columns of a job, each with what it is called, in the order in which folders lie within
    /// each other: those with names by these.
    pub(crate) fn of<'a>(&'a self, columns: &'a [OsString]) -> Vec<(OsString, &'a OsStr)> {
        let key = |place: usize| {
            let place = self.width.filter(|width| *width > 0).map_or(place, |width| place % width);
            self.names.get(place).cloned().unwrap_or_else(|| (place + 1).to_string().into())
        };
        let mut keys: Vec<_> =
            columns.iter().enumerate().map(|(place, column)| (key(place), column.as_os_str())).collect();
        if !self.names.is_empty() {
            keys.sort_by(|left, right| left.0.cmp(&right.0));
        }
        keys
    }
}

/// The whole path of a name, with its folder's links resolved and without those of the name itself.
pub(crate) fn place(name: &Path) -> io::Result<PathBuf> {
    let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize()?;
    Ok(name.file_name().map_or_else(|| folder.clone(), |file| folder.join(file)))
}

impl TemplateCopy {
    fn read(both: &OsStr, options: &Options) -> Result<Self> {
        let bytes = both.as_encoded_bytes();
        let Some(at) = bytes.iter().position(|byte| *byte == b'=').filter(|at| *at + 1 < bytes.len()) else {
            bail!(
                "--template `{}`: a file, `=`, and the name of its copy: my.conf={{#}}.conf",
                both.display()
            );
        };
        let part = |bytes: &[u8]| minder_os::encoding::os_string_from_encoded(bytes.to_vec());
        let file = PathBuf::from(part(&bytes[..at]));
        let cannot = || format!("cannot read the template `{}`", file.display());
        let opened = std::fs::File::open(&file).with_context(cannot)?;
        let permissions = opened.metadata().with_context(cannot)?.permissions();
        let mut content = Vec::new();
        opened.take(TEMPLATE_MAX + 1).read_to_end(&mut content).with_context(cannot)?;
        if content.len() as u64 > TEMPLATE_MAX {
            bail!("the template `{}` is larger than {} MiB", file.display(), TEMPLATE_MAX >> 20);
        }
        let options = Options { append: false, ..options.clone() };
        Ok(Self {
            content: Template::text(&part(&content), &options),
            name: Template::text(&part(&bytes[at + 1..]), &options),
            permissions,
            originals: [place(&file).with_context(cannot)?, file.canonicalize().with_context(cannot)?],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_called_by_place_or_name() {
        let columns: Vec<OsString> = ["a", "b", "c", "d"].map(OsString::from).to_vec();
        let called = |names: &[&str], width| {
            let keys = ResultKeys { names: names.iter().map(OsString::from).collect(), width };
            let of = keys.of(&columns).into_iter();
            of.map(|(key, value)| format!("{}={}", key.display(), value.display()))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(called(&[], Some(4)), "1=a 2=b 3=c 4=d");
        assert_eq!(called(&[], None), "1=a 2=b 3=c 4=d");
        assert_eq!(called(&[], Some(1)), "1=a 1=b 1=c 1=d");
        assert_eq!(called(&[], Some(2)), "1=a 2=b 1=c 2=d");
        assert_eq!(called(&["z", "x"], Some(2)), "x=b x=d z=a z=c");
        assert_eq!(called(&["z", "x"], None), "3=c 4=d x=b z=a");
    }

    #[test]
    fn a_name_says_what_it_is() {
        let read = |name: &str| {
            let keys = ResultKeys { names: Vec::new(), width: None };
            Results::new(OsStr::new(name), &Options::default(), keys)
        };
        let comma = TableForm::Separated(b',');
        let is = |name: &str| read(name).expect(name);
        assert!(matches!(is("out"), Results::Tree { .. }));
        assert!(matches!(is("out/"), Results::Tree { .. }));
        assert!(matches!(is("out.csv/"), Results::Tree { .. }));
        assert!(matches!(is("-"), Results::Tree { .. }));
        assert!(matches!(is("my_{}"), Results::Named(_)));
        assert!(matches!(is("{#}/"), Results::Named(_)));
        assert!(matches!(is("x{}.csv"), Results::Table { form, path: Some(_), .. } if form == comma));
        assert!(matches!(is("-.csv"), Results::Table { form, path: None, .. } if form == comma));
        assert!(matches!(is("./-.tsv"), Results::Table { path: Some(_), .. }));
        assert!(matches!(is("-.json"), Results::Table { form: TableForm::Json, path: None, .. }));
        assert!(read("").is_err());
    }
}
