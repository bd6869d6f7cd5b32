//! The command, the arguments after it, and the flags about input: which sources a run has, and how
//! they are read.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use regex::bytes::RegexBuilder;

use crate::escapes::{EscapeSet, unescape};
use crate::flags::ArityFlags;
use crate::flags::InputFlags;
use crate::flags::OrderFlag;
use crate::flags::PlaceholderFlags;
use crate::flags::RunFlags;
use crate::flags::Trim as TrimFlag;
use minder_runner::config::OrderConfig;
use minder_runner::config::PipeInput;
use minder_runner::input::ArgsPerJob;
use minder_runner::input::Columns;
use minder_runner::input::Fill;
use minder_runner::input::Header;
use minder_runner::input::InputPlan;
use minder_runner::input::Kind;
use minder_runner::input::Source;
use minder_runner::input::Trim;
use minder_runner::input::WordUnit;
use minder_template::{Form, Options, PlaceholderKind, PlaceholderSet, Repeat, Template, ValueRules};

/// The message for two inputs of which each is standard input.
const STDIN_TWICE: &str = "standard input is read twice: name it as `-` once";

/// The program whose rules apply where minder and GNU parallel differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompatMode {
    /// Those of `minder run`: a command of several arguments runs without a shell, and doubtful
    /// input is an error.
    Own,
    /// Those of GNU parallel: the command is one line for the shell.
    Parallel,
}

/// Returns the order of the jobs. `seed` generates the seed of a random order.
pub(super) fn order(flags: &InputFlags, seed: impl FnOnce() -> u64) -> OrderConfig {
    match flags.order {
        _ if flags.shuf => OrderConfig::Random(flags.seed.unwrap_or_else(seed)),
        Some(OrderFlag::Random) => OrderConfig::Random(flags.seed.unwrap_or_else(seed)),
        Some(OrderFlag::Shortest) => OrderConfig::Shortest,
        Some(OrderFlag::Longest) => OrderConfig::Longest,
        Some(OrderFlag::Given) | None => OrderConfig::Given,
    }
}

/// Returns how the command is parsed. `words` is the command, `names` the names of the columns, and
/// `width` the number of columns of each argument if that is the same for all.
pub(super) fn options(
    flags: &RunFlags,
    compat: CompatMode,
    names: &[OsString],
    words: &[OsString],
    width: Option<usize>,
) -> Result<Options> {
    let PlaceholderFlags { plus, rpl, quote, .. } = &flags.placeholders;
    let context = flags.arity.context
        || (!flags.arity.multiple
            && !flags.arity.xargs
            && (flags.arity.max_replace_args.is_some() || flags.arity.lines.is_some()));
    let parallel = compat == CompatMode::Parallel;
    let placeholders = placeholders(&flags.placeholders, *plus, rpl, names)?;
    let texts =
        words.iter().chain(&flags.output.tagstring).chain(&flags.output.results).chain(&flags.control.wd);
    if let Some(name) = texts.into_iter().find_map(|text| placeholders.unsupported_in(text)) {
        bail!(
            "`{name}` is a placeholder of GNU parallel's --plus that minder does not support (without --plus \
             it is text)"
        );
    }
    let options = Options { placeholders, ..Options::default() };
    let takers = || value_uses(flags).filter(|(_, text)| Template::text(text, &options).has_values());
    if let Some((flag, _)) = takers().find(|(flag, _)| flags.control.set_by_settings.contains(flag)) {
        bail!("`--{flag}` with a placeholder for the argument would take it from the command: type the flag");
    }
    // A job that takes its value in a variable or as its directory does not also want it as an argument.
    let takes_value = !parallel && takers().next().is_some();
    Ok(Options {
        placeholders: options.placeholders,
        // bash has the option wherever it is, and the shell of the system often has not.
        shell: flags.shell.clone().or_else(|| flags.pipefail.then(|| "bash".into())),
        pipefail: flags.pipefail,
        form: if parallel { Form::Line } else { Form::Auto },
        repeat: if context { Repeat::Context } else { Repeat::Joined },
        quote: *quote,
        plain_values_in_program_texts: parallel,
        missing_is_omitted: parallel,
        missing_is_empty: parallel
            || flags.arity.max_replace_args.is_some()
            || (!flags.pipe.is_wanted() && (width.is_none() || takes_several(&arity_of(&flags.arity)))),
        value_rules: ValueRules::new(flags.placeholders.only.as_deref(), flags.placeholders.no_dash_values)?,
        // The values of a job that reads a part of the input appear only at placeholders. Without a
        // command, the value itself is the command.
        append: words.is_empty()
            || (!takes_value && (!flags.pipe.is_wanted() || flags.pipe.cat || flags.pipe.fifo)),
    })
}

/// Returns the values of `--env` and `--wd`, each with the name of its flag.
fn value_uses(flags: &RunFlags) -> impl Iterator<Item = (&'static str, OsString)> {
    let value = |text: &OsString| {
        let bytes = text.as_encoded_bytes();
        let at = bytes.iter().position(|&byte| byte == b'=')?;
        Some(("env", minder_os::encoding::os_string_from_encoded(bytes[at + 1..].to_vec())))
    };
    flags.control.env.iter().filter_map(value).chain(flags.control.wd.clone().map(|dir| ("wd", dir)))
}

/// Returns the placeholders, including those that flags rename and define.
fn placeholders(
    flags: &PlaceholderFlags,
    plus: bool,
    own: &[OsString],
    names: &[OsString],
) -> Result<PlaceholderSet> {
    let mut placeholders = PlaceholderSet::default().plus(plus).column_names(names);
    let replaced = [
        (PlaceholderKind::Value, &flags.replace),
        (PlaceholderKind::NoExtension, &flags.extensionreplace),
        (PlaceholderKind::BaseName, &flags.basenamereplace),
        (PlaceholderKind::DirName, &flags.dirnamereplace),
        (PlaceholderKind::BaseNameNoExtension, &flags.basenameextensionreplace),
        (PlaceholderKind::Number, &flags.seqreplace),
        (PlaceholderKind::Slot, &flags.slotreplace),
    ];
    for (builtin, text) in replaced {
        if let Some(text) = text {
            placeholders = placeholders.replace(builtin, text)?;
        }
    }
    for definition in own {
        let bytes = definition.as_encoded_bytes();
        let Some(at) = bytes.iter().position(u8::is_ascii_whitespace) else {
            bail!(
                "--rpl `{}`: expected a placeholder, a space and its text: '{{thumb}} {{/.}}-thumb.png'",
                definition.display()
            );
        };
        let part = |bytes: &[u8]| minder_os::encoding::os_string_from_encoded(bytes.to_vec());
        placeholders = placeholders.define(part(&bytes[..at]), part(bytes[at..].trim_ascii()))?;
    }
    Ok(placeholders)
}

/// The command and the sources of its arguments.
#[derive(Debug)]
pub(crate) struct ParsedCommandLine {
    pub(crate) plan: InputPlan,
    /// The command; empty if each argument is one, except with GNU parallel's command line.
    pub(crate) words: Vec<OsString>,
    /// The separators and arguments after the command.
    pub(crate) behind: Vec<OsString>,
    /// The number of columns of each argument; `None` if it varies.
    pub(crate) width: Option<usize>,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) stdin: bool,
    /// The inputs that are cut into blocks for jobs.
    pub(crate) blocks: Vec<PipeInput>,
}

impl ParsedCommandLine {
    /// Parses the command line. `stdin` is the file that is read in place of standard input.
    pub(super) fn new(flags: &RunFlags, compat: CompatMode, stdin: Option<PathBuf>) -> Result<Self> {
        let RunFlags { input, arity, .. } = flags;
        let (words, behind) = split(&flags.words, input);
        let mut sources = sources(input, &behind)?;
        let mut files = Vec::new();
        let mut reads_stdin = false;
        let mut blocks = Vec::new();
        if flags.pipe.is_wanted() {
            blocks = take_block_inputs(flags, compat, &mut sources)?;
            files.extend(blocks.iter().filter_map(|input| match input {
                PipeInput::Stdin => None,
                PipeInput::File(path) => Some(path.clone()),
            }));
            reads_stdin = replace_stdin(&mut blocks, stdin.as_ref())?;
        } else if sources.is_empty() {
            sources.push(Source { kind: Kind::Stdin, linked: false });
        }
        for source in &mut sources {
            match &source.kind {
                Kind::Stdin if reads_stdin => bail!("{STDIN_TWICE}"),
                Kind::Stdin => {
                    reads_stdin = true;
                    if let Some(path) = &stdin {
                        source.kind = Kind::File(path.clone());
                    }
                }
                Kind::File(path) => files.push(std::path::absolute(path)?),
                Kind::Arguments(_) => (),
            }
        }
        let columns = columns(input)?;
        let has_one_value = columns.is_none() && word_unit(flags) != Some(WordUnit::Line);
        let width = has_one_value.then_some(sources.len());
        let plan = InputPlan {
            sources,
            separator: separator(input)?,
            words: word_unit(flags),
            // With an explicit separator, every other byte belongs to the argument.
            windows_text: std::env::consts::FAMILY == "windows" && !input.null && input.delimiter.is_none(),
            header: header(input, flags.pipe.is_wanted())?,
            findings: std::sync::Arc::default(),
            skip_comments: input.skip_comments,
            trim: match (input.trim, &columns) {
                (Some(trim), _) => Trim {
                    left: matches!(trim, TrimFlag::L | TrimFlag::Lr),
                    right: matches!(trim, TrimFlag::R | TrimFlag::Lr),
                },
                (None, Some(_)) if input.colsep.is_some() => Trim { left: true, right: true },
                _ => Trim::default(),
            },
            columns,
            eof: input.eof.as_ref().map(|text| text.as_encoded_bytes().to_vec()),
            skip_blank: input.no_run_if_empty,
            skip_first: input.skip_first_line,
            empty_counts: compat == CompatMode::Parallel,
            link: input.link,
            arity: if !flags.pipe.is_wanted() {
                // Lines of words have no end that is left to find.
                let arity = arity_of(arity);
                ArgsPerJob { lines: arity.lines && !input.split_words, ..arity }
            } else if flags.pipe.tee {
                ArgsPerJob::default()
            } else {
                // `-N` applies to records and to values.
                ArgsPerJob { most: arity.max_replace_args.or(arity.max_args), ..ArgsPerJob::default() }
            },
        };
        Ok(Self { plan, words, behind, width, files, stdin: reads_stdin, blocks })
    }
}

/// Returns what a record is with `--words`.
fn word_unit(flags: &RunFlags) -> Option<WordUnit> {
    let unit = if flags.arity.lines.is_some() { WordUnit::Line } else { WordUnit::Word };
    flags.input.split_words.then_some(unit)
}

/// Removes the sources that are cut into blocks, and leaves those of arguments. Returns the removed
/// ones: standard input if there is none.
fn take_block_inputs(
    flags: &RunFlags,
    compat: CompatMode,
    sources: &mut Vec<Source>,
) -> Result<Vec<PipeInput>> {
    // GNU parallel splits only the files of --pipe-part. With --pipe, a file contains arguments.
    let has_arguments = compat == CompatMode::Parallel && !flags.pipe.pipe_part;
    let mut inputs = Vec::new();
    let mut arguments = Vec::new();
    for source in sources.drain(..) {
        match source.kind {
            Kind::Stdin => inputs.push(PipeInput::Stdin),
            Kind::File(path) if !has_arguments => inputs.push(PipeInput::File(path)),
            _ => arguments.push(source),
        }
    }
    *sources = arguments;
    if flags.pipe.tee && sources.iter().any(|source| matches!(source.kind, Kind::File(_))) {
        bail!("--tee runs all of its jobs at once, and takes their arguments behind `:::` only");
    }
    if !sources.is_empty() && !flags.pipe.tee && compat == CompatMode::Own {
        bail!(
            "jobs that read parts of the input take no arguments: `:::` requires --tee, with which each job \
             reads all of the input"
        );
    }
    if inputs.is_empty() {
        inputs.push(PipeInput::Stdin);
    }
    Ok(inputs)
}

/// Replaces standard input by `file`, if there is one. Returns `true` if standard input is one of the
/// inputs.
fn replace_stdin(inputs: &mut [PipeInput], file: Option<&PathBuf>) -> Result<bool> {
    let mut is_read = false;
    for input in inputs.iter_mut().filter(|input| **input == PipeInput::Stdin) {
        if is_read {
            bail!("{STDIN_TWICE}");
        }
        is_read = true;
        if let Some(path) = file {
            *input = PipeInput::File(path.clone());
        }
    }
    Ok(is_read)
}

/// Splits the words into the command, and the separators and arguments after it.
fn split(words: &[OsString], flags: &InputFlags) -> (Vec<OsString>, Vec<OsString>) {
    let end = words.iter().position(|word| mark(word, flags).is_some()).unwrap_or(words.len());
    (words[..end].to_vec(), words[end..].to_vec())
}

/// A separator that starts a list: `:::`, `:::+`, `::::` or `::::+`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// `true` if the list contains names of files.
    files: bool,
    /// `true` if the list is linked with the one before it.
    linked: bool,
}

/// Returns the separator that this word is, if it is one.
fn mark(word: &OsStr, flags: &InputFlags) -> Option<Mark> {
    let bytes = word.as_encoded_bytes();
    let is = |separator: &OsStr, plus: &[u8]| {
        bytes.strip_prefix(separator.as_encoded_bytes()).is_some_and(|rest| rest == plus)
    };
    // The longer separator first: `::::` begins with `:::`.
    [(&flags.arg_file_sep, true), (&flags.arg_sep, false)]
        .into_iter()
        .flat_map(|(separator, files)| [(separator, files, false), (separator, files, true)])
        .find(|(separator, _, linked)| is(separator, if *linked { b"+" } else { b"" }))
        .map(|(_, files, linked)| Mark { files, linked })
}

fn sources(flags: &InputFlags, behind: &[OsString]) -> Result<Vec<Source>> {
    let file = |name: &OsString| match name.as_encoded_bytes() {
        b"-" => Kind::Stdin,
        _ => Kind::File(PathBuf::from(name)),
    };
    let mut sources: Vec<Source> =
        flags.arg_file.iter().map(|name| Source { kind: file(name), linked: false }).collect();
    let mut now = None;
    for word in behind {
        if let Some(mark) = mark(word, flags) {
            if !mark.files {
                sources.push(Source { kind: Kind::Arguments(Vec::new()), linked: mark.linked });
            }
            now = Some(mark);
            continue;
        }
        match (now, sources.last_mut()) {
            (Some(Mark { files: false, .. }), Some(Source { kind: Kind::Arguments(values), .. })) => {
                values.push(word.clone());
            }
            (Some(Mark { linked, .. }), _) => sources.push(Source { kind: file(word), linked }),
            (None, _) => bail!("`{}` stands before the first list of arguments", word.display()),
        }
    }
    let is_nameless =
        |source: &Source| matches!(&source.kind, Kind::File(path) if path.as_os_str().is_empty());
    if sources.iter().any(is_nameless) {
        bail!("a file of arguments has an empty name (-a, ::::)");
    }
    Ok(sources)
}

fn columns(flags: &InputFlags) -> Result<Option<Columns>> {
    let names_columns = flags.header.as_deref().is_some_and(|header| header != "0");
    match (&flags.colsep, flags.csv) {
        (colsep, true) => {
            let between = colsep.as_deref().unwrap_or(",");
            let &[between] = between.as_bytes() else {
                bail!("--colsep `{between}`: with --csv it is one character");
            };
            Ok(Some(Columns::Csv(between)))
        }
        (Some(colsep), false) => {
            let regexp = RegexBuilder::new(colsep).unicode(colsep.is_ascii()).build();
            let regexp = regexp.map_err(|error| {
                // The other lines of the text point at the position of the error.
                let text = error.to_string();
                let why = text.lines().last().unwrap_or_default();
                let why = why.strip_prefix("error: ").unwrap_or(why);
                anyhow!("--colsep: invalid regular expression `{colsep}`: {why}")
            })?;
            Ok(Some(Columns::Regexp(regexp)))
        }
        (None, false) => Ok(names_columns.then_some(Columns::Byte(b'\t'))),
    }
}

fn header(flags: &InputFlags, pipe: bool) -> Result<Header> {
    match flags.header.as_deref() {
        None => Ok(Header::None),
        // With --pipe, the header is part of the blocks.
        Some(_) if pipe => Ok(Header::None),
        Some(":" | ".*\n" | ".*\\n") => Ok(Header::Lines(1)),
        Some("0") => Ok(Header::FileNames),
        Some(text) => match text.parse() {
            Ok(lines) => Ok(Header::Lines(lines)),
            Err(_) => bail!(
                "--header `{text}`: `:` for the first line, a number of lines, or 0 for the names of files"
            ),
        },
    }
}

fn separator(flags: &InputFlags) -> Result<Vec<u8>> {
    match &flags.delimiter {
        _ if flags.null => Ok(vec![0]),
        None => Ok(vec![b'\n']),
        Some(text) => {
            let bytes = unescape(text.as_encoded_bytes(), EscapeSet::Delimiter);
            if bytes.is_empty() {
                bail!("-d: the delimiter is empty (-0 is for NUL bytes)");
            }
            Ok(bytes)
        }
    }
}

/// Returns the most columns that a job can have; `None` if that is not known, or if GNU parallel's
/// command line or `-N` makes every missing column empty.
pub(super) fn max_columns(flags: &RunFlags, compat: CompatMode, width: Option<usize>) -> Option<usize> {
    let arity = arity_of(&flags.arity);
    if compat == CompatMode::Parallel
        || flags.pipe.is_wanted()
        || flags.arity.max_replace_args.is_some()
        || arity.none
    {
        return None;
    }
    let records = match (arity.most, arity.fill) {
        (Some(most), _) => usize::try_from(most).ok()?,
        (None, Fill::One) => 1,
        (None, _) => return None,
    };
    width?.checked_mul(records)
}

/// Returns `true` if jobs take several records, so that the last job may have fewer than the others.
fn takes_several(arity: &ArgsPerJob) -> bool {
    arity.fill != Fill::One || arity.most.is_some_and(|most| most > 1)
}

/// Returns how many arguments each job gets.
fn arity_of(flags: &ArityFlags) -> ArgsPerJob {
    let most = flags.max_replace_args.or(flags.max_args).or(flags.lines);
    let fill = match flags {
        ArityFlags { xargs: true, .. } => Fill::All,
        ArityFlags { context: true, .. } | ArityFlags { multiple: true, .. } => Fill::Shared,
        _ => Fill::One,
    };
    ArgsPerJob {
        most: most.filter(|most| *most > 0),
        none: most == Some(0),
        lines: flags.lines.is_some() && flags.max_replace_args.or(flags.max_args).is_none(),
        fill,
        bytes_max: flags.max_chars.unwrap_or(minder_runner::input::BYTES_MAX),
        strict: flags.exit,
        bounded: flags.max_chars.is_some(),
    }
}
