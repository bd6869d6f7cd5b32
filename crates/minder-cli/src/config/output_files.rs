//! Flags about files other than standard output: results, files in place of output, and copies of
//! templates.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::{Result, bail};
use minder_runner::config::{OutputFiles, ResultKeys, Results, TableForm, TemplateCopy};
use minder_template::{Options, Template};

use super::input::CompatMode;
use super::seed::new_seed;
use crate::flags::RunFlags;

/// Returns which files a run writes, and where.
pub(super) fn output_files(
    flags: &RunFlags,
    options: &Options,
    compat: CompatMode,
    width: Option<usize>,
    names: &[OsString],
    copies: Vec<TemplateCopy>,
) -> Result<OutputFiles> {
    let output = &flags.output;
    let keys = || ResultKeys { names: names.to_vec(), width };
    let results = output.results.as_deref().map(|name| results(name, options, keys())).transpose()?;
    let like_gnu = compat == CompatMode::Parallel;
    if output.files && matches!(results, Some(Results::Table { .. })) {
        bail!("--files cannot be used with a table of --results, which contains the output itself");
    }
    Ok(OutputFiles {
        shown: !like_gnu,
        names: output.files,
        results,
        directory: output.tmpdir.clone().unwrap_or_else(std::env::temp_dir),
        gnu_names: like_gnu,
        copies,
        cleanup: output.cleanup,
        token: format!("{:016x}", new_seed()),
    })
}

/// Returns what `--results` means: a table, named files, or a tree of directories.
fn results(name: &OsStr, options: &Options, keys: ResultKeys) -> Result<Results> {
    let bytes = name.as_encoded_bytes();
    let forms = [
        (&b".csv"[..], TableForm::Separated(b',')),
        (b".tsv", TableForm::Separated(b'\t')),
        (b".json", TableForm::Json),
    ];
    for (end, form) in forms {
        if let Some(before) = bytes.strip_suffix(end) {
            let path = (before != b"-").then(|| PathBuf::from(name));
            return Ok(Results::Table { form, path, names: keys.names });
        }
    }
    if bytes.is_empty() {
        bail!("--results has no name");
    }
    let template = Template::text(&name.to_owned(), options);
    if template.has_placeholders() {
        Ok(Results::Named(template))
    } else {
        Ok(Results::Tree { root: PathBuf::from(name), keys })
    }
}

/// Splits the value of `--template` into the file and the name of its copy.
///
/// # Errors
/// The value has no `=`, or no name after it.
pub(crate) fn template_flag(flag: &OsStr) -> Result<(PathBuf, OsString)> {
    let bytes = flag.as_encoded_bytes();
    let Some(at) = bytes.iter().position(|byte| *byte == b'=').filter(|at| *at + 1 < bytes.len()) else {
        bail!(
            "--template `{}`: expected a file, `=` and the name of its copy: my.conf={{#}}.conf",
            flag.display()
        );
    };
    let part = |bytes: &[u8]| minder_os::encoding::os_string_from_encoded(bytes.to_vec());
    Ok((PathBuf::from(part(&bytes[..at])), part(&bytes[at + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_keys_name_columns_by_number_or_header() {
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
    fn results_selects_the_form_by_name() {
        let read = |name: &str| {
            let keys = ResultKeys { names: Vec::new(), width: None };
            results(OsStr::new(name), &Options::default(), keys)
        };
        let comma = TableForm::Separated(b',');
        let parsed = |name: &str| read(name).expect(name);
        assert!(matches!(parsed("out"), Results::Tree { .. }));
        assert!(matches!(parsed("out/"), Results::Tree { .. }));
        assert!(matches!(parsed("out.csv/"), Results::Tree { .. }));
        assert!(matches!(parsed("-"), Results::Tree { .. }));
        assert!(matches!(parsed("my_{}"), Results::Named(_)));
        assert!(matches!(parsed("{#}/"), Results::Named(_)));
        assert!(matches!(parsed("x{}.csv"), Results::Table { form, path: Some(_), .. } if form == comma));
        assert!(matches!(parsed("-.csv"), Results::Table { form, path: None, .. } if form == comma));
        assert!(matches!(parsed("./-.tsv"), Results::Table { path: Some(_), .. }));
        assert!(matches!(parsed("-.json"), Results::Table { form: TableForm::Json, path: None, .. }));
        assert!(read("").is_err());
    }
}
