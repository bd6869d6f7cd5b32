//! Translates the options of GNU parallel into the arguments of `minder run`.

use std::ffi::{OsStr, OsString};

use anyhow::{Result, bail};
use minder_os::encoding::os_string_from_encoded;

use super::super::warning::warn;
use super::args::{ParallelArgs, flag_with_value, reject_perl};
use super::machines::{is_on_all, push_machine_flags, with_names};
use super::options::OptionKey;
use super::profile;
use crate::escapes::{EscapeSet, unescape};

/// Returns the arguments of `minder run`, flags first.
///
/// # Errors
/// GNU parallel refuses the combination of options as well, or only Perl could do it.
pub(super) fn job_arguments(args: &ParallelArgs) -> Result<Vec<OsString>> {
    let mut out = args.run_flags().to_vec();
    warn_of_cleanup(args);
    check_recorded_environment(args)?;
    if args.has_run_flag("--pipe-part") && !BLOCK_SIZES.iter().any(|flag| args.has_run_flag(flag)) {
        // As in GNU parallel, each slot gets ten blocks, so that the jobs of a small file run at once.
        let blocks = if args.has_run_flag("--round-robin") { "--block=-1" } else { "--block=-10" };
        out.push(blocks.into());
    }
    push_output_flags(args, &mut out)?;
    push_record_flags(args, &mut out)?;
    push_machine_flags(args, &mut out)?;
    for (key, flag) in [(OptionKey::ArgSep, "--arg-sep"), (OptionKey::ArgFileSep, "--arg-file-sep")] {
        if let Some(value) = args.value(key) {
            out.push(flag_with_value(flag, value));
        }
    }
    if is_on_all(args) {
        // `-j` is the number of machines that work at once.
        out.push("--jobs=1".into());
    } else if let Some(jobs) = args.value(OptionKey::Jobs) {
        out.push(flag_with_value("--jobs", jobs));
    }
    out.extend(args.values(OptionKey::Rpl).iter().map(|text| flag_with_value("--rpl", text)));
    match (args.has(OptionKey::Cat), args.has(OptionKey::Fifo)) {
        (true, true) => bail!("`--cat` cannot be used with `--fifo`"),
        (false, true) => out.push("--fifo".into()),
        (true, false) => out.push("--cat".into()),
        (false, false) => (),
    }
    if args.has_run_flag("--wd")
        && let Ok(cwd) = std::env::current_dir()
    {
        // GNU parallel changes the directory by `cd`, which sets this variable.
        let mut variable = OsString::from("--env=OLDPWD=");
        variable.push(cwd);
        out.push(variable);
    }
    // Jobs expect the variables of GNU parallel.
    out.push("--parallel-env".into());
    out.push(flag_with_value("--shell", &args.shell()?));
    push_command(args, &mut out)?;
    Ok(out)
}

/// The flags of `minder run` with which a file is not cut into ten blocks for each slot.
const BLOCK_SIZES: [&str; 5] = ["--block", "--tee", "--shard", "--bin", "--group-by"];

/// Warns of `--cleanup` where it has nothing to remove.
fn warn_of_cleanup(args: &ParallelArgs) {
    if args.hosts().is_empty()
        && args.has_run_flag("--cleanup")
        && !["--template", "--wd"].iter().any(|flag| args.has_run_flag(flag))
    {
        warn("--cleanup is ignored: jobs run on this machine, so no files were transferred");
    }
}

/// # Errors
/// `--env _` is given, and `--record-env` was not used before, which lists what it leaves out.
fn check_recorded_environment(args: &ParallelArgs) -> Result<()> {
    let names_all = |flag: &OsString| {
        let names = flag.as_encoded_bytes().strip_prefix(b"--env=");
        names.is_some_and(|names| names.split(|byte| *byte == b',').any(|name| name == b"_"))
    };
    let names_all = args.run_flags().iter().any(names_all);
    if names_all && !args.hosts().is_empty() {
        bail!("`--env _` is not supported with other machines: name the variables");
    }
    if names_all && !profile::has_recorded_environment() {
        bail!("`--env _` requires `parallel --record-env` first, in a clean environment");
    }
    Ok(())
}

/// Pushes the flags that select how output is shown. Where GNU parallel accepts several of these,
/// the one that takes effect there is passed.
fn push_output_flags(args: &ParallelArgs, out: &mut Vec<OsString>) -> Result<()> {
    let has = |key| args.has(key);
    for (one, other) in [
        (OptionKey::Ungroup, OptionKey::LineBuffer),
        (OptionKey::Group, OptionKey::Ungroup),
        (OptionKey::Group, OptionKey::LineBuffer),
    ] {
        if has(one) && has(other) {
            bail!("`{}` cannot be used with `{}`", view_flag(one), view_flag(other));
        }
    }
    let keep_order = has(OptionKey::KeepOrder) && !has(OptionKey::NoKeepOrder);
    // Jobs get the terminal itself, so there is nothing more to open for them.
    let tty = has(OptionKey::Tty) || has(OptionKey::OpenTty) && minder_os::terminal::open_terminal().is_ok();
    let results = has(OptionKey::Results);
    let ungroup = has(OptionKey::Ungroup)
        || tty && !(keep_order || has(OptionKey::LineBuffer) || has(OptionKey::Group) || results);
    let is_ungrouped = ungroup && args.hosts().is_empty();
    if ungroup && !is_ungrouped && !tty {
        warn("--ungroup is ignored: output of other machines is shown when a job has ended");
    }
    match (is_ungrouped, results) {
        (true, true) => {
            warn("--ungroup is ignored: with --results, minder reads the output to write it into files");
        }
        (true, false) => out.push("--ungroup".into()),
        (false, _) => (),
    }
    if !is_ungrouped || results {
        // `--keep-order` streams the first unfinished job, so it covers `--line-buffer` as well.
        if keep_order {
            out.push("--keep-order".into());
        } else if has(OptionKey::LineBuffer) {
            out.push("--line-buffer".into());
        }
        push_tag_flags(args, out);
        push_color_flags(args, keep_order && has(OptionKey::LineBuffer), out);
    }
    if let Some(results) = args.value(OptionKey::Results) {
        out.push(flag_with_value("--results", results));
    }
    if has(OptionKey::Print) && !has(OptionKey::Silent) {
        out.push("-v".into());
        if args.values(OptionKey::Print).len() > 1 {
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

/// Pushes the flags for the start of each line. Jobs that write to the terminal themselves get
/// none.
fn push_tag_flags(args: &ParallelArgs, out: &mut Vec<OsString>) {
    let tag = args.value(OptionKey::TagString).or(args.value(OptionKey::ColorTagString));
    let has_tag = args.has(OptionKey::Tag) || args.has(OptionKey::ColorTag);
    match tag {
        // The tag is the name of the machine.
        _ if has_tag && is_on_all(args) => {
            let machine = args.hosts().first().map_or(":", String::as_str);
            out.push(format!("--tagstring={machine}").into());
        }
        // An empty tag counts as absent.
        Some(tag) if !tag.is_empty() => {
            let tag = unescape(tag.as_encoded_bytes(), EscapeSet::Tag);
            out.push(flag_with_value("--tagstring", &os_string_from_encoded(tag)));
        }
        _ if has_tag => out.push("--tag".into()),
        _ => (),
    }
}

/// Pushes the flags for the colors of jobs. With `by_line`, output is shown line by line in the
/// order of the input.
fn push_color_flags(args: &ParallelArgs, by_line: bool, out: &mut Vec<OsString>) {
    let color_jobs =
        [OptionKey::Color, OptionKey::ColorTag, OptionKey::ColorTagString].iter().any(|key| args.has(*key));
    if color_jobs {
        out.push("--color".into());
    }
    if args.has(OptionKey::ColorFailed) && !by_line {
        out.push("--color-failed".into());
    }
    if color_jobs && by_line {
        out.push("--color-lines".into());
    }
}

fn view_flag(key: OptionKey) -> &'static str {
    match key {
        OptionKey::Ungroup => "--ungroup",
        OptionKey::LineBuffer => "--line-buffer",
        _ => "--group",
    }
}

/// Pushes the flags for the joblog and for resuming.
fn push_record_flags(args: &ParallelArgs, out: &mut Vec<OsString>) -> Result<()> {
    let joblog = args.value(OptionKey::Joblog);
    if let Some(joblog) = joblog {
        // `+FILE` appends to the file.
        match joblog.as_encoded_bytes().strip_prefix(b"+") {
            Some(file) => {
                out.push(flag_with_value("--joblog", &os_string_from_encoded(file.to_vec())));
                out.push("--joblog-append".into());
            }
            None => out.push(flag_with_value("--joblog", joblog)),
        }
    }
    let modes = [
        (OptionKey::RetryFailed, "--retry-failed"),
        (OptionKey::ResumeFailed, "--resume-failed"),
        (OptionKey::Resume, "--resume"),
    ];
    let Some((_, flag)) = modes.into_iter().find(|(key, _)| args.has(*key)) else { return Ok(()) };
    if joblog.is_none() {
        bail!("`{flag}` requires `--joblog FILE` (to resume from minder's record: `minder run {flag} RUN`)");
    }
    if flag == "--retry-failed" && args.command().is_empty() {
        bail!(
            "`--retry-failed` requires the command and its arguments: minder does not run those in a joblog"
        );
    }
    out.push(flag.into());
    Ok(())
}

/// Pushes the command as one shell line. Without a command, each line of the input is one.
fn push_command(args: &ParallelArgs, out: &mut Vec<OsString>) -> Result<()> {
    let command = args.command_words();
    let sources = args.sources();
    if command.is_empty() && args.has(OptionKey::NonAll) {
        bail!("`--nonall` requires a command");
    }
    if command.is_empty() && reads_stdin_blocks(args) && sources.is_empty() {
        bail!("`--pipe` requires a command that reads the blocks, such as cat");
    }
    let command = match command {
        [] => {
            out.push("--commands".into());
            vec![OsString::from("{}")]
        }
        [arg] if is_placeholder(args, arg) => {
            out.push("--commands".into());
            vec![arg.clone()]
        }
        command if args.has(OptionKey::Quote) => {
            out.push("--quote".into());
            command.to_vec()
        }
        command => {
            let line = command.join(OsStr::new(" "));
            reject_perl(&line)?;
            vec![with_names(args, line)]
        }
    };
    out.push("--".into());
    out.extend(command);
    out.extend_from_slice(sources);
    if args.has(OptionKey::NonAll) {
        // One job, whose argument is not used.
        out.extend([args.separator(OptionKey::ArgSep).to_owned(), OsString::new()]);
    }
    Ok(())
}

/// Returns `true` if jobs read blocks of the input on stdin.
pub(super) fn reads_stdin_blocks(args: &ParallelArgs) -> bool {
    const BLOCK_FLAGS: [&str; 7] =
        ["--pipe", "--pipe-part", "--round-robin", "--tee", "--shard", "--bin", "--group-by"];
    BLOCK_FLAGS.iter().any(|flag| args.has_run_flag(flag))
        || args.has(OptionKey::Cat)
        || args.has(OptionKey::Fifo)
}

/// Returns `true` if the command is nothing but a placeholder: then the argument is the command.
fn is_placeholder(args: &ParallelArgs, arg: &OsString) -> bool {
    let arg_bytes = arg.as_encoded_bytes();
    let is_replacement =
        |flag: &OsString| flag.as_encoded_bytes().strip_prefix(b"--replace=") == Some(arg_bytes);
    let in_braces = arg.to_str().and_then(|arg| arg.strip_prefix('{')?.strip_suffix('}'));
    // `{}` or `{1}`.
    in_braces.is_some_and(|inner| inner.bytes().all(|byte| byte.is_ascii_digit()))
        || args.run_flags().iter().any(is_replacement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::InvokedAs;

    /// Returns the translation of a line without the arguments that every translation has. `~`
    /// stands for a space within an argument.
    fn translated(line: &str) -> String {
        let mut args = vec![OsString::from("--plain"), OsString::from("--shell=/bin/sh")];
        args.extend(line.split(' ').map(|arg| OsString::from(arg.replace('~', " "))));
        match ParallelArgs::read(InvokedAs::Parallel, &args).and_then(|args| job_arguments(&args)) {
            Ok(args) => {
                let args: Vec<String> = args.iter().map(|arg| arg.display().to_string()).collect();
                args.join(" ").replace("--parallel-env --shell=/bin/sh ", "")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn translate_maps_command_lines() {
        for (line, run) in [
            ("-k -j4 gzip -9 {} ::: a b", "--keep-order --jobs=4 -- gzip -9 {} ::: a b"),
            ("-n1 -0 myfunc", "--max-args=1 --null -- myfunc"),
            ("echo {} > {.}.x :::: list", "-- echo {} > {.}.x :::: list"),
            ("::: echo~a echo~b", "--commands -- {} ::: echo~a echo~b"),
            ("{} ::: echo~a", "--commands -- {} ::: echo~a"),
            ("-I@ @ ::: echo~a", "--replace=@ --commands -- @ ::: echo~a"),
            ("{1} :::+ echo~a", "--commands -- {1} :::+ echo~a"),
            ("-j2 --gnu --will-cite", "--jobs=2 --commands -- {}"),
            ("-q perl -e x~y ::: a", "--quote -- perl -e x~y ::: a"),
            ("--arg-sep ,, echo ::: ,, a", "--arg-sep=,, -- echo ::: ,, a"),
            ("--pipe --block 1M wc -l", "--pipe --block=1M -- wc -l"),
            ("--pipe-part -a x wc", "--pipe-part --arg-file=x --block=-10 -- wc"),
            ("--pipe-part --round -a x wc", "--pipe-part --round-robin --arg-file=x --block=-1 -- wc"),
            ("--pipe-part --block 1k -a x wc", "--pipe-part --block=1k --arg-file=x -- wc"),
            ("--pipe --tee ::: cat wc", "--pipe --tee --commands -- {} ::: cat wc"),
            ("-l -X -e --xapply echo", "--lines=1 -X --link -- echo"),
            ("-j-1 --halt -1 echo", "--halt=-1 --jobs=-1 -- echo"),
            ("--compress --compress-program gzip -D all --cleanup -S : echo", "--cleanup -- echo"),
            ("--tagstring -x- echo", "--tagstring=-x- -- echo"),
            ("--no-record --pty echo", "--no-record --pty -- echo"),
            (
                "-M --ssh x --filter-hosts --rsync-opts x --hgrp -S @g/3/: echo ::: a",
                "--jobs=3 -- echo ::: a",
            ),
            ("--transfer --return x --basefile x -S : echo", "-- echo"),
            ("--trc x echo", "--cleanup -- echo"),
            ("--ssh-delay 0.1 echo", "--delay=0.1 -- echo"),
            ("--ssh-delay 0.1 --delay 1 echo", "--delay=1 -- echo"),
            ("--nonall --tag -j9 echo", "--tagstring=: --max-args=0 --jobs=1 -- echo ::: "),
            ("--onall --tag echo ::: a", "--tagstring=: --jobs=1 -- echo ::: a"),
            ("-S 2/a,: --ssh x --trc y echo", "--on=ssh:2/a,: --ssh=x --trc=y -- echo"),
            (
                "--only-on=a --onall --tag -j9 -S a,b echo ::: x",
                "--tagstring=a --on=ssh:a --jobs=1 -- echo ::: x",
            ),
        ] {
            assert_eq!(translated(line), run.replace('~', " "), "{line}");
        }
    }

    #[test]
    fn translate_passes_the_view_that_takes_effect() {
        for (flags, run) in [
            ("-k --lb", "--keep-order"),
            ("--lb", "--line-buffer"),
            ("-k -u", "--ungroup"),
            ("-u --tag", "--ungroup"),
            ("--tag --tagstring x", "--tagstring=x"),
            ("--tag --tagstring ", "--tag"),
            ("--ctag", "--tag --color"),
            ("--color --ctagstring x --tag", "--tagstring=x --color"),
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
            assert_eq!(translated(&format!("{flags} echo")), format!("{run}-- echo"), "{flags}");
        }
        for (flags, error) in [
            ("-u --lb", "`--ungroup` cannot be used with `--line-buffer`"),
            ("--group -u", "`--group` cannot be used with `--ungroup`"),
            ("--lb --group", "`--group` cannot be used with `--line-buffer`"),
        ] {
            assert_eq!(translated(&format!("{flags} echo")), error);
        }
    }

    #[test]
    fn translate_refuses_unsupported_options_by_name() {
        for (line, expected) in [
            ("-S ssh~-v~host echo", "`--sshlogin ssh -v host` is not supported: give ssh and its options"),
            ("--slf - echo", "`--sshloginfile -`"),
            ("--hgrp echo ::: a@b", "`a@b`"),
            ("--env _ -S host echo", "`--env _` is not supported with other machines"),
            ("--hgrp -S @g/host,: echo", "`--hostgroups` is not supported with other machines"),
            ("--nonall echo ::: a", "(--onall runs"),
            ("--nonall", "`--nonall` requires a command"),
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
            ("--pipe", "`--pipe` requires a command"),
        ] {
            let error = translated(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
        assert_eq!(translated("--rpl {t}~{/.}-t.png echo {t}"), "--rpl={t} {/.}-t.png -- echo {t}");
    }

    #[test]
    fn names_of_machines_are_variables_unless_columns_may_have_them() {
        let named = "--plus --on=ssh:a -- echo ${PARALLEL_SSHHOST} ${PARALLEL_SSHLOGIN}";
        assert_eq!(translated("--plus -S a echo {host} {sshlogin}"), named);
        for line in ["--plus echo {host}", "-S a echo {host}", "--plus --header : -S a echo {host}"] {
            assert!(translated(line).ends_with("-- echo {host}"), "{line}: {}", translated(line));
        }
    }
}
