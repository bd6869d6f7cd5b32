//! `--onall` and `--nonall` with other machines: a run whose jobs are the machines. Each job is this command
//! line again, for its machine alone, with one job at a time.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::args::{ParallelArgs, flag_with_value};
use super::machines::is_on_all;
use super::options::OptionKey;
use super::translate::{job_arguments, reads_stdin_blocks};

/// Returns the arguments of `minder run`, flags first.
///
/// # Errors
/// GNU parallel refuses the combination of options as well, or minder does not support it.
pub(in crate::compat) fn run_arguments(args: &ParallelArgs) -> Result<Vec<OsString>> {
    let is_outer = is_on_all(args) && !args.hosts().is_empty() && !args.has(OptionKey::OnlyOn);
    if !is_outer {
        return job_arguments(args);
    }
    // What is refused is refused once, and before anything runs.
    job_arguments(args)?;
    refuse(args)?;
    let mut out: Vec<OsString> = ["--parallel-env", "--quote", "--link"].map(OsString::from).into();
    out.push(flag_with_value("--jobs", args.value(OptionKey::Jobs).map_or(OsStr::new("0"), |jobs| jobs)));
    if args.has(OptionKey::KeepOrder) && !args.has(OptionKey::NoKeepOrder) {
        out.push("--keep-order".into());
    } else if args.has(OptionKey::LineBuffer) {
        out.push("--line-buffer".into());
    }
    if let Some(delay) = args.value(OptionKey::SshDelay) {
        out.push(flag_with_value("--delay", delay));
    }
    if reads_stdin(args) {
        // Each machine gets all of it.
        out.extend(["--pipe".into(), "--tee".into()]);
    }
    let mut words: Vec<&OsStr> = args.typed().iter().map(OsString::as_os_str).collect();
    words.insert(0, OsStr::new("parallel"));
    let separator = separator(&words);
    out.push(flag_with_value("--arg-sep", &separator));
    let mut file_separator = separator.clone();
    file_separator.push("-file");
    out.push(flag_with_value("--arg-file-sep", &file_separator));
    // The words are values, so that no placeholder is found in them: one source for each word, with one value
    // that is used for each machine, and one source for the machines.
    out.push("--".into());
    out.push(program()?);
    out.extend((1..=words.len() + 1).map(|number| OsString::from(format!("{{{number}}}"))));
    let mut add = |values: &mut dyn Iterator<Item = OsString>| {
        out.push(separator.clone());
        out.extend(values);
    };
    add(&mut std::iter::once(words[0].to_owned()));
    add(&mut machines(args).into_iter().map(|machine| format!("--only-on={machine}").into()));
    words[1..].iter().for_each(|word| add(&mut std::iter::once((*word).to_owned())));
    Ok(out)
}

/// # Errors
/// An option does not work with several machines.
fn refuse(args: &ParallelArgs) -> Result<()> {
    let name = if args.has(OptionKey::NonAll) { "--nonall" } else { "--onall" };
    if args.has(OptionKey::Joblog) {
        bail!("`--joblog` is not supported with `{name}` on other machines: `minder log` shows their jobs");
    }
    if args.has(OptionKey::Results) {
        bail!("`--results` is not supported with `{name}` on other machines");
    }
    if reads_stdin_blocks(args) {
        bail!("`{name}` gives standard input to each machine as arguments, so there is no `--pipe`");
    }
    for file in files(args).filter(|file| **file != *"-") {
        // It could be read by one machine only.
        if std::fs::metadata(Path::new(&file)).is_ok_and(|metadata| !metadata.is_file()) {
            bail!("`{}` is not a file: with `{name}`, give it as standard input", file.display());
        }
    }
    Ok(())
}

/// Returns the files of arguments.
fn files(args: &ParallelArgs) -> impl Iterator<Item = Cow<'_, OsStr>> {
    let [of_files, of_values] = [OptionKey::ArgFileSep, OptionKey::ArgSep].map(|key| args.separator(key));
    let is = |word: &OsStr, separator: &OsStr| {
        let rest = word.as_encoded_bytes().strip_prefix(separator.as_encoded_bytes());
        rest.is_some_and(|rest| matches!(rest, b"" | b"+"))
    };
    let mut is_file = false;
    let sources = args.sources().iter().filter(move |word| {
        let is_separator = is(word, of_files) || is(word, of_values);
        if is_separator {
            is_file = is(word, of_files);
        }
        is_file && !is_separator
    });
    let flags = args.run_flags().iter().filter_map(|flag| {
        let bytes = flag.as_encoded_bytes().strip_prefix(b"--arg-file=")?;
        Some(minder_os::encoding::os_str_from_encoded(bytes))
    });
    sources.map(|file| Cow::Borrowed(file.as_os_str())).chain(flags)
}

/// Returns whether standard input has arguments.
fn reads_stdin(args: &ParallelArgs) -> bool {
    let has_sources = !args.sources().is_empty() || args.has_run_flag("--arg-file");
    let reads = !has_sources || files(args).any(|file| *file == *"-");
    reads && !args.has(OptionKey::NonAll)
}

/// Returns the machines, each once, sorted as GNU parallel does. Their numbers of jobs do not count.
fn machines(args: &ParallelArgs) -> Vec<&str> {
    let logins = args.hosts().iter().map(|host| host.split_once('/').map_or(host.as_str(), |host| host.1));
    let mut machines: Vec<&str> = logins.collect();
    machines.sort_unstable();
    machines.dedup();
    machines
}

/// Returns a word that none of the words begins with.
fn separator(words: &[&OsStr]) -> OsString {
    let is_free = |candidate: &String| {
        !words.iter().any(|word| word.as_encoded_bytes().starts_with(candidate.as_bytes()))
    };
    let mut candidates = (0..=words.len()).map(|number| format!(":::{number}:"));
    candidates.find(is_free).unwrap_or_default().into()
}

/// Returns this program, not a link to it that has the name of another one.
fn program() -> Result<OsString> {
    let path = std::env::current_exe().and_then(std::fs::canonicalize);
    Ok(path.context("cannot find this program")?.into_os_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::InvokedAs;

    /// Returns the translation of a line, or why it is refused. `PROGRAM` stands for this program.
    fn translated(line: &str) -> String {
        let words: Vec<OsString> =
            std::iter::once("--plain").chain(line.split(' ')).map(OsString::from).collect();
        match ParallelArgs::read(InvokedAs::Parallel, &words).and_then(|args| run_arguments(&args)) {
            Ok(words) => {
                let program = program().expect("find this program");
                let name = |word: OsString| if word == program { "PROGRAM".into() } else { word };
                let words: Vec<OsString> = words.into_iter().map(name).collect();
                words.join(OsStr::new(" ")).display().to_string()
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn machines_are_jobs_and_words_are_values() {
        let flags = "--parallel-env --quote --link --jobs=0";
        let separators = "--arg-sep=:::0: --arg-file-sep=:::0:-file";
        assert_eq!(
            translated("--nonall -S 4/b,a,b {}"),
            format!(
                "{flags} {separators} -- PROGRAM {{1}} {{2}} {{3}} {{4}} {{5}} {{6}} {{7}} :::0: parallel \
                 :::0: --only-on=a --only-on=b :::0: --plain :::0: --nonall :::0: -S :::0: 4/b,a,b :::0: {{}}"
            )
        );
        let stdin = translated("--onall -k -j2 -S a echo");
        let flags = "--parallel-env --quote --link --jobs=2 --keep-order --pipe --tee";
        assert!(stdin.starts_with(&format!("{flags} {separators}")), "{stdin}");
        let taken = translated("--onall -S a echo :::0: ::: x");
        assert!(taken.contains("--arg-sep=:::1: --arg-file-sep=:::1:-file"), "{taken}");
        assert!(!taken.contains("--tee"), "{taken}");
    }

    #[test]
    fn files_are_found() {
        let read = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let args = ParallelArgs::read(InvokedAs::Parallel, &words).expect("read line");
            let files: Vec<_> = files(&args).map(|file| file.display().to_string()).collect();
            format!("{} {}", files.join(","), reads_stdin(&args))
        };
        assert_eq!(read("--plain --onall -S a -a x echo ::: y :::: z w ::::+ v :::+ u"), "z,w,v,x false");
        assert_eq!(read("--plain --onall -S a echo :::: - ::: y"), "- true");
        assert_eq!(read("--plain --onall -S a echo"), " true");
        assert_eq!(read("--plain --nonall -S a echo"), " false");
    }

    #[test]
    fn what_needs_one_machine_is_refused() {
        for (line, expected) in [
            ("--onall -S a --joblog x echo ::: a", "`--joblog` is not supported with `--onall`"),
            ("--nonall -S a --results x echo", "`--results` is not supported with `--nonall`"),
            ("--onall -S a --pipe cat", "no `--pipe`"),
            ("--onall -S a echo :::: /dev/null", "`/dev/null` is not a file"),
            ("--nonall -S a", "`--nonall` requires a command"),
        ] {
            let error = translated(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
