//! `minder help --FLAG`: one flag, its group, and where it is described.

use std::fmt::Write as _;

use anyhow::{Result, anyhow, bail};
use clap::builder::Resettable;
use clap::{Arg, Command, Parser};

use crate::flags::{Flags, clap_error_line, flag_named};

/// The command whose flags come first: most are typed there.
const FIRST: &str = "run";

/// The commands that take some of their flags from `minder run`.
const ATTEMPTS: [&str; 2] = ["resume", "retry"];

/// A flag, and the command that has it, such as `bench wait`.
type Owned<'a> = (String, &'a Arg);

/// Explains a flag: `--retries`, `--retries=3`, `-j`, or the name without dashes. `topics` are the texts of
/// the topics, which begin with their names. Returns `None` for a name without dashes that is not a
/// flag.
///
/// # Errors
/// The flag does not exist, or several commands have it with different meanings.
pub(super) fn explain(minder: &Command, typed: &str, topics: &[&str]) -> Result<Option<String>> {
    let name = typed.split('=').next().unwrap_or(typed);
    let is_typed_as_flag = name.starts_with('-');
    let flag = match name {
        name if is_typed_as_flag => name.to_owned(),
        name => format!("--{name}"),
    };
    let owners = owners(minder, &flag);
    let is_of = |(command, _): &&Owned| command == FIRST;
    match (owners.iter().find(is_of), owners.as_slice()) {
        (Some(owned), _) | (None, [owned]) => Ok(Some(text(minder, owned, &owners, topics))),
        (None, []) if is_typed_as_flag => Err(anyhow!(unknown(minder, &flag))),
        (None, []) => Ok(None),
        (None, several) => {
            let commands: Vec<String> =
                several.iter().map(|(command, _)| format!("`minder {command} --help`")).collect();
            bail!("several commands have `{flag}`: see {}", commands.join(", "))
        }
    }
}

/// Returns the message about a flag that does not exist.
fn unknown(minder: &Command, flag: &str) -> String {
    let args = [FIRST.into(), flag.into()];
    match Flags::try_parse_from(["minder".into()].iter().chain(&args)) {
        Err(error) => clap_error_line(&error, minder, &args),
        Ok(_) => format!("unknown flag `{flag}`"),
    }
}

/// Returns the commands that have a flag. Those of `minder run` in other commands count once.
fn owners<'a>(minder: &'a Command, flag: &str) -> Vec<Owned<'a>> {
    let visible = |command: &&Command| !command.is_hide_set();
    let inner = minder.get_subcommands().filter(visible).flat_map(|command| {
        let own = [(command.get_name().to_owned(), command)];
        let inner = command.get_subcommands().filter(visible);
        own.into_iter()
            .chain(inner.map(move |inner| (format!("{} {}", command.get_name(), inner.get_name()), inner)))
    });
    let find = |command| flag_named(command, flag).filter(|arg| !arg.is_hide_set());
    inner.filter_map(|(path, command)| Some((path, find(command)?))).collect()
}

/// Returns the help text of a flag, and where it is described.
fn text(minder: &Command, (command, flag): &Owned, owners: &[Owned], topics: &[&str]) -> String {
    let name = match (flag.get_long(), flag.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, short) => format!("-{}", short.unwrap_or_default()),
    };
    // The flags that it excludes are absent here.
    let arg = (*flag).clone().conflicts_with(Resettable::<clap::Id>::Reset);
    let help = Command::new("minder")
        .styles(minder.get_styles().clone())
        .max_term_width(100)
        .disable_help_flag(true)
        .arg(arg.hide_short_help(false).help_heading(None::<&str>))
        .help_template("{options}")
        .render_long_help();
    let mut text = format!("{}\n\n", help.to_string().trim_end());
    let group = flag.get_help_heading().map(|group| format!(", *{group}*")).unwrap_or_default();
    push(&mut text, "Flag of", &format!("minder {command}{group}"));
    let short = flag.get_short().map(|short| format!("-{short}"));
    let mentions =
        |text: &&&str| text_has(text, &name) || short.as_ref().is_some_and(|short| text_has(text, short));
    let is_of_attempt =
        |attempt: &&&str| command == FIRST && owners.iter().any(|(owner, _)| owner == **attempt);
    let attempts = ATTEMPTS.iter().filter(is_of_attempt).map(|attempt| format!("minder {attempt}"));
    let attempts: Vec<String> = attempts.collect();
    if !attempts.is_empty() {
        push(&mut text, "Also of", &attempts.join(", "));
    }
    let topics = if command == FIRST { topics } else { &[] };
    let topics = topics.iter().filter(mentions);
    let topics = topics.filter_map(|text| text.split(':').next()).map(|name| format!("minder help {name}"));
    let places: Vec<String> = std::iter::once(format!("minder {command} --help")).chain(topics).collect();
    push(&mut text, "See", &places.join(", "));
    text
}

fn push(text: &mut String, title: &str, places: &str) {
    let _ = writeln!(text, "  {title:<7}  {places}");
}

/// Returns whether a text has a flag, perhaps with a number attached.
fn text_has(text: &str, flag: &str) -> bool {
    text.match_indices(flag).any(|(at, _)| {
        let is_start = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
        is_start && !text[at + flag.len()..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(typed: &str) -> Result<Option<String>> {
        explain(&Flags::interface(), typed, &["control: stop\n\n    $ minder run --retries 3", "other: none"])
    }

    #[test]
    fn a_flag_of_run_is_explained_by_each_of_its_names() {
        for typed in ["--retries", "--retries=3", "retries"] {
            let text = explained(typed).expect(typed).expect(typed);
            for part in ["--retries <N>", "Start a failing job", "*Failures and time limits*"] {
                assert!(text.contains(part), "{typed}: {text}");
            }
            assert!(text.ends_with("See      minder run --help, minder help control\n"), "{text}");
            assert!(text.contains("Also of  minder resume, minder retry"), "{text}");
        }
        for typed in ["-j", "-j8", "-P", "--max-procs", "jobs"] {
            assert!(explained(typed).expect(typed).expect(typed).contains("-j, --jobs <N>"), "{typed}");
        }
    }

    #[test]
    fn every_flag_of_run_is_explained() {
        let minder = Flags::interface();
        let run = minder.find_subcommand(FIRST).expect("find run");
        for long in run.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long) {
            assert!(explained(&format!("--{long}")).expect(long).is_some_and(|text| text.contains(long)));
        }
    }

    #[test]
    fn a_flag_of_one_other_command_is_explained_and_of_several_is_refused() {
        let text = explained("--sqlite").expect("find flag").expect("find flag");
        assert!(text.contains("minder log") && !text.contains("Also of"), "{text}");
        let message = |typed: &str| explained(typed).expect_err(typed).to_string();
        assert!(message("--failed").contains("`minder resume --help`, `minder log --help`"));
        assert_eq!(message("--fail-fast"), "unknown flag `--fail-fast`: use `--halt now,fail=1`");
        assert_eq!(message("--jbos"), "unknown flag `--jbos`; did you mean `--jobs`?");
        assert!(explained("nothing").expect("look for a name").is_none());
    }
}
