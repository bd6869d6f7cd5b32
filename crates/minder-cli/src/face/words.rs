//! The words of `minder run` for what GNU parallel was asked.

use std::ffi::{OsStr, OsString};

use anyhow::{Result, bail};
use minder_os::encoding::os_string_from_encoded;

use super::{OptionKey, ParallelArgs, note, without_perl};

/// The words of the run, flags first.
///
/// # Errors
/// What GNU parallel refuses, too, and what only Perl could do.
pub(super) fn run(wishes: &ParallelArgs) -> Result<Vec<OsString>> {
    let mut out = wishes.passed.clone();
    view(wishes, &mut out)?;
    record(wishes, &mut out)?;
    for (wish, flag) in [
        (OptionKey::Jobs, "--jobs"),
        (OptionKey::ArgSep, "--arg-sep"),
        (OptionKey::ArgFileSep, "--arg-file-sep"),
    ] {
        if let Some(value) = wishes.value(wish) {
            out.push(with(flag, value));
        }
    }
    out.extend(wishes.values(OptionKey::Placeholder).iter().map(|text| with("--rpl", text)));
    match (wishes.has(OptionKey::Cat), wishes.has(OptionKey::Fifo)) {
        (true, true) => bail!("`--cat` and `--fifo` do not go together"),
        (false, true) => out.push("--fifo".into()),
        (true, false) => out.push("--cat".into()),
        _ => (),
    }
    // Jobs know their numbers by GNU parallel's variables.
    out.push("--parallel-env".into());
    out.push(with("--shell", &wishes.shell()));
    command(wishes, &mut out)?;
    Ok(out)
}

/// How output is seen. Where GNU parallel takes several of these, the one that it follows.
fn view(wishes: &ParallelArgs, out: &mut Vec<OsString>) -> Result<()> {
    let has = |wish| wishes.has(wish);
    for (one, other) in [
        (OptionKey::Ungroup, OptionKey::LineBuffer),
        (OptionKey::Group, OptionKey::Ungroup),
        (OptionKey::Group, OptionKey::LineBuffer),
    ] {
        if has(one) && has(other) {
            bail!("`{}` and `{}` do not go together", name(one), name(other));
        }
    }
    let ordered = has(OptionKey::KeepOrder) && !has(OptionKey::NoKeepOrder);
    let tty = has(OptionKey::Tty);
    let files = has(OptionKey::Results);
    let straight = has(OptionKey::Ungroup)
        || tty && !(ordered || has(OptionKey::LineBuffer) || has(OptionKey::Group) || files);
    match (straight, files) {
        (true, true) => note("--ungroup is left out: with --results, output goes through minder"),
        (true, false) => out.push("--ungroup".into()),
        _ => (),
    }
    if !straight || files {
        match (ordered, has(OptionKey::LineBuffer)) {
            // In the order of the input, the first that is not over is seen as it writes, which is what both
            // ask for.
            (true, _) => out.push("--keep-order".into()),
            (false, true) => out.push("--line-buffer".into()),
            _ => (),
        }
        tags(wishes, out);
        colours(wishes, ordered && has(OptionKey::LineBuffer), out);
    }
    if let Some(results) = wishes.value(OptionKey::Results) {
        out.push(with("--results", results));
    }
    if has(OptionKey::Print) && !has(OptionKey::Silent) {
        out.push("-v".into());
        if wishes.values(OptionKey::Print).len() > 1 {
            out.push("--print-parts".into());
        }
    }
    if tty {
        out.push("--tty".into());
        if !has(OptionKey::Jobs) {
            out.push("--jobs=1".into());
        }
    }
    Ok(())
}

/// What lines begin with. Nothing is put before what jobs write for themselves.
fn tags(wishes: &ParallelArgs, out: &mut Vec<OsString>) {
    let text = wishes.value(OptionKey::TagString).or(wishes.value(OptionKey::ColourTagString));
    // An empty text is none, as if it had not been given.
    match text.filter(|text| !text.is_empty()) {
        Some(text) => out.push(with("--tagstring", &unescape(text))),
        None if wishes.has(OptionKey::Tag) || wishes.has(OptionKey::ColourTag) => out.push("--tag".into()),
        None => (),
    }
}

/// The text of a tag, in which some bytes may be written as escapes. A backslash before a backslash
/// is none of them.
fn unescape(text: &OsStr) -> OsString {
    let (mut out, mut rest) = (Vec::new(), text.as_encoded_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let (meant, used) = match (byte, after) {
            (b'\\', [b't', ..]) => (b'\t', 1),
            (b'\\', [b'n', ..]) => (b'\n', 1),
            (b'\\', [b'r', ..]) => (b'\r', 1),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                ((a & 7) << 6 | (b & 7) << 3 | (c & 7), 3)
            }
            (b'\\', [digit @ b'0'..=b'7', ..]) => (digit & 7, 1),
            _ => (byte, 0),
        };
        out.push(meant);
        rest = &after[used..];
    }
    os_string_from_encoded(out)
}

/// The colours of jobs. `lines`: whole lines are shown as they come, in the order of the input.
fn colours(wishes: &ParallelArgs, lines: bool, out: &mut Vec<OsString>) {
    let of_jobs = [OptionKey::Colour, OptionKey::ColourTag, OptionKey::ColourTagString]
        .iter()
        .any(|wish| wishes.has(*wish));
    if of_jobs {
        out.push("--color".into());
    }
    if wishes.has(OptionKey::ColourFailed) && !lines {
        out.push("--color-failed".into());
    }
    if of_jobs && lines {
        out.push("--color-lines".into());
    }
}

fn name(wish: OptionKey) -> &'static str {
    match wish {
        OptionKey::Ungroup => "--ungroup",
        OptionKey::LineBuffer => "--line-buffer",
        _ => "--group",
    }
}

/// What was run before.
fn record(wishes: &ParallelArgs, out: &mut Vec<OsString>) -> Result<()> {
    let joblog = wishes.value(OptionKey::Joblog);
    if let Some(joblog) = joblog {
        // `+FILE` goes on with the file.
        match joblog.as_encoded_bytes().strip_prefix(b"+") {
            Some(file) => {
                out.push(with("--joblog", &minder_os::encoding::os_string_from_encoded(file.to_vec())));
                out.push("--joblog-append".into());
            }
            None => out.push(with("--joblog", joblog)),
        }
    }
    let modes = [
        (OptionKey::RetryFailed, "--retry-failed"),
        (OptionKey::ResumeFailed, "--resume-failed"),
        (OptionKey::Resume, "--resume"),
    ];
    let Some((_, flag)) = modes.into_iter().find(|(wish, _)| wishes.has(*wish)) else { return Ok(()) };
    if joblog.is_none() {
        bail!(
            "`{flag}` wants `--joblog FILE` (a run of minder's own is taken up by `minder run {flag} RUN`)"
        );
    }
    if flag == "--retry-failed" && wishes.words.is_empty() {
        bail!("`--retry-failed` wants the command and its arguments again: a joblog is not run");
    }
    out.push(flag.into());
    Ok(())
}

/// The command as one line for the shell; each line of the input is one where there is no command.
fn command(wishes: &ParallelArgs, out: &mut Vec<OsString>) -> Result<()> {
    let separators = [(OptionKey::ArgFileSep, "::::"), (OptionKey::ArgSep, ":::")].map(|(wish, default)| {
        wishes.value(wish).map_or(default.as_bytes(), |text| text.as_encoded_bytes()).to_vec()
    });
    let marks = |word: &OsString| {
        let word = word.as_encoded_bytes();
        separators
            .iter()
            .any(|mark| word.strip_prefix(mark.as_slice()).is_some_and(|rest| matches!(rest, b"" | b"+")))
    };
    let end = wishes.words.iter().position(marks).unwrap_or(wishes.words.len());
    let (words, behind) = wishes.words.split_at(end);
    if words.is_empty() && wishes.reads_parts() && behind.is_empty() {
        bail!("`--pipe` wants a command to pipe into, such as cat");
    }
    let words = match words {
        [] => {
            out.push("--script".into());
            vec![OsString::from("{}")]
        }
        [word] if wishes.is_argument(word) => {
            out.push("--script".into());
            words.to_vec()
        }
        words if wishes.has(OptionKey::Quote) => {
            out.push("--quote".into());
            words.to_vec()
        }
        words => {
            let line = line(words);
            without_perl(&line)?;
            vec![line]
        }
    };
    out.push("--".into());
    out.extend(words);
    out.extend_from_slice(behind);
    Ok(())
}

/// The words as one line for the shell.
fn line(words: &[OsString]) -> OsString {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_encoded_bytes()).collect();
    os_string_from_encoded(words.join(&b' '))
}

/// A flag with its value in one word, so that the value may look like a flag.
fn with(flag: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(flag);
    word.push("=");
    word.push(value);
    word
}

impl ParallelArgs {
    /// Whether jobs read parts of the input.
    fn reads_parts(&self) -> bool {
        const PARTS: [&str; 7] =
            ["--pipe", "--pipe-part", "--round-robin", "--tee", "--shard", "--bin", "--group-by"];
        PARTS.iter().any(|flag| self.has_passed(flag))
            || self.has(OptionKey::Cat)
            || self.has(OptionKey::Fifo)
    }

    /// Whether the word is the argument and nothing else: then the argument is the command.
    fn is_argument(&self, word: &OsString) -> bool {
        let replaced = |passed: &OsString| {
            passed
                .as_encoded_bytes()
                .strip_prefix(b"--replace=")
                .is_some_and(|text| text == word.as_encoded_bytes())
        };
        let column = |inner: &str| !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_digit());
        let braces = word.to_str().and_then(|word| word.strip_prefix('{')?.strip_suffix('}'));
        braces.is_some_and(|inner| inner.is_empty() || column(inner)) || self.passed.iter().any(replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InvokedAs, Translation, take};
    use super::*;

    /// What a line becomes, without what is always there.
    fn said(line: &str) -> String {
        let mut words = vec![OsString::from("--plain"), OsString::from("--shell=/bin/sh")];
        words.extend(line.split(' ').map(|word| OsString::from(word.replace('~', " "))));
        match take(InvokedAs::Parallel, &words) {
            Ok(Translation::Run(words)) => {
                let words: Vec<String> = words.iter().map(|word| word.display().to_string()).collect();
                words.join(" ").replace("--parallel-env --shell=/bin/sh ", "")
            }
            Ok(face) => format!("{face:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn lines_of_gnu_parallel_are_translated() {
        for (line, run) in [
            ("-k -j4 gzip -9 {} ::: a b", "--keep-order --jobs=4 -- gzip -9 {} ::: a b"),
            ("-n1 -0 myfunc", "--max-args=1 --null -- myfunc"),
            ("echo {} > {.}.x :::: list", "-- echo {} > {.}.x :::: list"),
            ("::: echo~a echo~b", "--script -- {} ::: echo~a echo~b"),
            ("{} ::: echo~a", "--script -- {} ::: echo~a"),
            ("-I@ @ ::: echo~a", "--replace=@ --script -- @ ::: echo~a"),
            ("{1} :::+ echo~a", "--script -- {1} :::+ echo~a"),
            ("-j2 --gnu --will-cite", "--jobs=2 --script -- {}"),
            ("-q perl -e x~y ::: a", "--quote -- perl -e x~y ::: a"),
            ("--arg-sep ,, echo ::: ,, a", "--arg-sep=,, -- echo ::: ,, a"),
            ("--pipe --block 1M wc -l", "--pipe --block=1M -- wc -l"),
            ("--pipe --tee ::: cat wc", "--pipe --tee --script -- {} ::: cat wc"),
            ("-l -X -e --xapply echo", "--lines=1 -X --link -- echo"),
            ("-j-1 --halt -1 echo", "--halt=-1 --jobs=-1 -- echo"),
            ("--compress --compress-program gzip -D all --cleanup -S : echo", "--cleanup -- echo"),
            ("--tagstring -x- echo", "--tagstring=-x- -- echo"),
            ("--no-record --pty echo", "--no-record --pty -- echo"),
        ] {
            assert_eq!(said(line), run.replace('~', " "), "{line}");
        }
    }

    #[test]
    fn of_several_views_one_is_followed() {
        for (flags, run) in [
            ("-k --lb", "--keep-order"),
            ("--lb", "--line-buffer"),
            ("-k -u", "--ungroup"),
            ("-u --tag", "--ungroup"),
            ("--tag --tagstring x", "--tagstring=x"),
            ("--tag --tagstring ", "--tag"),
            ("--ctag", "--tag --color"),
            ("--colour --ctagstring x --tag", "--tagstring=x --color"),
            ("--tag --color-failed", "--tag --color-failed"),
            (r"--tagstring a\tb\q\\101\0603", "--tagstring=a\tb\\q\\A03"),
            ("-k --lb --ctag --cf", "--keep-order --tag --color --color-lines"),
            ("-u --color --cf", "--ungroup"),
            ("-k --no-keep-order", ""),
            ("--no-keep-order -k --lb", "--line-buffer"),
            ("-v -vv", "-v --print-parts"),
            ("--silent -v", ""),
            ("-vt", "--verbose -v"),
            ("-u --results r", "--results=r"),
            ("--tty", "--ungroup --tty --jobs=1"),
            ("--tty -k -j3", "--keep-order --tty --jobs=3"),
            ("--jl l --resume --resume-failed", "--joblog=l --resume-failed"),
        ] {
            let run = if run.is_empty() { String::new() } else { format!("{run} ") };
            assert_eq!(said(&format!("{flags} echo")), format!("{run}-- echo"), "{flags}");
        }
        for (flags, error) in [
            ("-u --lb", "`--ungroup` and `--line-buffer` do not go together"),
            ("--group -u", "`--group` and `--ungroup` do not go together"),
            ("--lb --group", "`--group` and `--line-buffer` do not go together"),
        ] {
            assert_eq!(said(&format!("{flags} echo")), error);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (line, named) in [
            ("-S host echo", "`--sshlogin host` is not supported: jobs run on this machine only"),
            ("--slf .. echo", "`--sshloginfile`"),
            ("--trc {}.x echo", "`--trc`"),
            ("-M echo", "`--controlmaster`"),
            ("--sql-master x echo", "`--sql-master`"),
            ("--parens ,, echo", "`--parens`"),
            ("--tmux echo", "`--tmux`"),
            ("--embed", "`--embed`"),
            ("--rpl {x}~s/a/b/ echo {x}", "Perl"),
            ("--rpl {..}~s:\\.[^.]+$::;s:\\.[^.]+$::; echo", "Perl"),
            ("--rpl {x}~$_=1 echo", "Perl"),
            ("echo {=~s/a/b/~=} ::: a", "Perl"),
            ("--tagstring {=1~$_++=} echo", "Perl"),
            ("--resume echo", "--joblog FILE"),
            ("--retry-failed --joblog x", "the command"),
            ("--pipe", "`--pipe` wants a command"),
        ] {
            let said = said(line);
            assert!(said.contains(named), "{line}: {said}");
        }
        assert_eq!(said("--rpl {t}~{/.}-t.png echo {t}"), "--rpl={t} {/.}-t.png -- echo {t}");
    }
}
