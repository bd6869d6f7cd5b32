//! The short help: the commands of `minder -h` in groups, and the examples and daily flags of
//! `minder run -h`. `minder run --help` begins with the same text.

use std::fmt::Write as _;

use clap::builder::{Resettable, StyledStr, Styles};
use clap::{Arg, Command};

use super::properties::Flag;

/// The commands that have the flags of `run`.
const WITH_RUN_FLAGS: [&str; 3] = ["run", "resume", "retry"];

/// Hides a flag from the short help unless it is a daily one.
fn hide_rare_flag(flag: Arg) -> Arg {
    let is_daily = Flag::of(&flag).is_some_and(|flag| flag.is_daily);
    flag.hide_short_help(!is_daily)
}

/// The commands by purpose. A command that is in no group is shown in the last one.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Run commands", &["run", "resume", "retry", "attach", "cancel", "relay"]),
    ("Look back", &["log", "status", "advise"]),
    ("Command lines of other tools", &["parallel, sem", "xargs"]),
    ("Measure this machine", &["doctor", "clock", "bench"]),
    ("Help and setup", &["help", "man", "completions", "uninstall"]),
];

/// The commands that clap does not know.
const COMPATIBLE: [(&str, &str); 2] = [
    ("parallel, sem", "GNU parallel's command line, also as a link of that name"),
    ("xargs", "The command line of xargs, also as a link of that name"),
];

/// A list of commands or topics: its title, and the name and description of each.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) items: Vec<(String, String)>,
}

impl Group {
    /// Returns the lines of the list, each with its end.
    pub(crate) fn lines(&self) -> String {
        let mut lines = format!("{}:\n", self.title);
        for (name, about) in &self.items {
            let _ = writeln!(lines, "  {name:<13}  {about}");
        }
        lines
    }
}

/// Returns the subcommands by purpose, in the order in which a reader needs them.
pub(crate) fn command_groups(minder: &Command) -> Vec<Group> {
    let is_listed = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let visible = || minder.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    let about = |name: &str| {
        let compatible = COMPATIBLE.iter().find(|(other, _)| *other == name);
        let about = || visible().find(|it| it.get_name() == name)?.get_about().map(ToString::to_string);
        compatible.map(|(_, about)| (*about).to_owned()).or_else(about)
    };
    let mut groups: Vec<Group> = GROUPS
        .iter()
        .map(|(title, names)| {
            let items = names.iter().filter_map(|name| Some(((*name).to_owned(), about(name)?)));
            Group { title, items: items.collect() }
        })
        .collect();
    if let Some(last) = groups.last_mut() {
        let others = visible().map(Command::get_name).filter(|name| !is_listed(name));
        last.items.extend(others.filter_map(|name| Some((name.to_owned(), about(name)?))));
    }
    groups
}

/// Completes the interface for the display of help: the list of commands, and the short help of `run` at
/// the beginning of its long help. This renders text, which a run does not need.
pub(super) fn complete(minder: Command) -> Command {
    let groups: Vec<String> = command_groups(&minder).iter().map(Group::lines).collect();
    let style = *minder.get_styles().get_header();
    let template = MINDER_TEMPLATE.replace("Options:", &format!("{style}Options:{style:#}"));
    let minder = WITH_RUN_FLAGS
        .iter()
        .fold(minder, |minder, name| minder.mut_subcommand(name, |command| command.mut_args(hide_rare_flag)));
    style_headings(minder.before_help(groups.join("\n")).help_template(template))
        .mut_subcommands(|command| style_headings(command).mut_subcommands(style_headings))
        .mut_subcommand("run", begin_with_short_help)
}

/// Puts the daily flags into the short help, and the short help before the flags of the long one. clap would
/// give each group of flags a heading and columns of another width.
fn begin_with_short_help(run: Command) -> Command {
    let text = |text: Option<&StyledStr>| text.map(|text| text.ansi().to_string()).unwrap_or_default();
    let examples = text(run.get_before_help());
    let pointers = text(run.get_after_help());
    let header = *run.get_styles().get_header();
    let flags = daily_flags(&run);
    let short = format!("{examples}\n\n{header}Flags:{header:#}\n{flags}\n{pointers}");
    let run = run.mut_args(|flag| flag.hide_short_help(true));
    run.before_help(short.clone()).before_long_help(short).after_help(Resettable::Reset)
}

/// Returns a line for each daily flag.
fn daily_flags(run: &Command) -> String {
    let literal = *run.get_styles().get_literal();
    let daily = || {
        let is_daily = |flag: &&Arg| Flag::of(flag).is_some_and(|flag| flag.is_daily);
        run.get_arguments().filter(is_daily).map(|flag| (flag, usage(flag)))
    };
    let widest = daily().map(|(_, (name, value))| name.len() + value.len()).max().unwrap_or_default();
    let mut lines = String::new();
    for (flag, (name, value)) in daily() {
        let pad = " ".repeat(widest - name.len() - value.len());
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.trim_end_matches('.');
        let brief = flag.get_visible_aliases().unwrap_or_default().into_iter().find(|alias| alias.len() == 2);
        let also = brief.map(|alias| format!(" (also --{alias})")).unwrap_or_default();
        let _ = writeln!(lines, "  {literal}{name}{literal:#}{value}{pad}  {help}{also}");
    }
    lines
}

/// Returns the names of a flag, and what follows them: `-j, --jobs` and ` N`.
fn usage(flag: &Arg) -> (String, String) {
    let long = flag.get_long().unwrap_or_default();
    let name = match flag.get_short() {
        Some(short) => format!("-{short}, --{long}"),
        None => format!("    --{long}"),
    };
    let takes_value = flag.get_action().takes_values();
    let names = if takes_value { flag.get_value_names() } else { None };
    let value = names.and_then(|names| names.first());
    (name, value.map(|value| format!(" {value}")).unwrap_or_default())
}

/// Gives the headings of the texts before and after the flags the style of those of the flags.
fn style_headings(mut command: Command) -> Command {
    let styles = command.get_styles().clone();
    let styled = |text: &StyledStr| styled(&text.ansi().to_string(), &styles);
    if let Some(text) = command.get_before_help().map(styled) {
        command = command.before_help(text);
    }
    if let Some(text) = command.get_after_help().map(styled) {
        command = command.after_help(text);
    }
    if let Some(text) = command.get_after_long_help().map(styled) {
        command = command.after_long_help(text);
    }
    command
}

/// Returns a text in which each heading, such as `Examples:` on its own line, has the style of a heading.
fn styled(text: &str, styles: &Styles) -> String {
    let style = styles.get_header();
    let line = |line: &str| match line.strip_suffix(':') {
        Some(_) if line.starts_with(|c: char| c.is_ascii_uppercase()) => format!("{style}{line}{style:#}"),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The help of `minder`: the commands stand in `before-help`.
pub(super) const MINDER_TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}Options:
{options}{after-help}";

/// The end of the help of `minder`.
pub(super) const MINDER_EXAMPLES: &str = "\
Examples:
  minder run gzip -k ::: *.log           a job for each file
  minder run 'sort {} | uniq' ::: *.txt  a shell line for each file
  minder log --failed                    failed jobs of the last run
  minder run -h                          more examples, and the daily flags
  minder help                            topics, with examples";

/// The help of `minder run`: examples first, then flags, then where the rest is.
pub(super) const RUN_TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}{all-args}{after-help}";

/// The text above the daily flags. The tests run the examples.
pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  minder run gzip -k ::: *.log                several words: run without a shell
  minder run 'sort {} | uniq -c' ::: *.txt    one string: a shell line
  find . -name '*.c' -print0 | minder run -0 wc -l    arguments from stdin
  minder run --timeout 60 --retries 3 ./get.sh :::: urls.txt    lines of a file
  minder run -k ./test.sh {1} {2} ::: a b ::: 1 2    all combinations, in order
  minder run ::: 'make docs' 'npm test'       different commands side by side

Placeholders:
  {} argument, or {1} {2} … columns or sources; without one, it comes last
  {.} without extension  {/} base name  {//} directory  {#} job number  {%} slot";

/// The text below the daily flags.
pub(super) const RUN_POINTERS: &str = "\
Next: minder log --failed, minder retry (failed jobs), minder resume (the rest)
More: minder run --help, minder help [TOPIC|FLAG], minder parallel, minder xargs
Exit status: 0, or the number of failed jobs (101: over 100), or 255 (error)";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::Flags;
    use crate::flags::properties::FLAGS;

    /// Returns a subcommand of the complete interface, whose help is as wide as on a terminal of this
    /// width.
    fn rendered(path: &str, columns: usize, is_long: bool) -> String {
        let mut command = Flags::command_of_width(columns);
        command.build();
        let mut command = complete(command);
        for name in path.split_whitespace() {
            command = command.find_subcommand(name).expect(name).clone();
        }
        let help = if is_long { command.render_long_help() } else { command.render_help() };
        help.to_string()
    }

    fn paths() -> Vec<String> {
        let minder = Flags::interface();
        let mut paths = vec![String::new()];
        for command in minder.get_subcommands() {
            paths.push(command.get_name().to_owned());
            let visible = command.get_subcommands().filter(|inner| !inner.is_hide_set());
            paths.extend(visible.map(|inner| format!("{} {}", command.get_name(), inner.get_name())));
        }
        paths
    }

    #[test]
    fn daily_flags_are_shown() {
        let help = rendered("run", 80, false);
        let shown =
            help.lines().filter(|line| line.starts_with("  -") || line.starts_with("      --")).count();
        assert_eq!(shown, FLAGS.iter().filter(|flag| flag.is_daily).count(), "{help}");
    }

    #[test]
    fn short_help_fits_a_terminal() {
        for path in paths() {
            let help = rendered(&path, 80, false);
            let lines_max = if path == "run" { 48 } else { 60 };
            assert!(help.lines().count() <= lines_max, "{path}: {} lines\n{help}", help.lines().count());
            let wide = help.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None, "{path}");
        }
    }

    #[test]
    fn long_help_is_not_broken_on_a_small_terminal() {
        let mut minder = Flags::command_of_width(80);
        minder.build();
        for path in paths() {
            let help = rendered(&path, 80, true);
            let wide = help.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None, "{path}");
            let command = path.split_whitespace().try_fold(&minder, |it, name| it.find_subcommand(name));
            let text = command.and_then(Command::get_after_long_help).map(ToString::to_string);
            let text = text.unwrap_or_default();
            // clap breaks a line that is too long, and leaves a stub.
            let broken = text.lines().find(|line| !help.lines().any(|it| it == *line));
            assert_eq!(broken, None, "{path}");
        }
    }

    #[test]
    fn long_help_of_run_begins_with_the_short_one() {
        for columns in [80, 100] {
            let short = rendered("run", columns, false);
            let long = rendered("run", columns, true);
            assert!(long.starts_with(short.trim_end()), "{short}\n---\n{long}");
            // Every flag is in a group.
            assert!(!long.contains("\nOptions:\n"), "{long}");
        }
    }

    #[test]
    fn long_help_names_the_groups_in_reading_order() {
        let long = rendered("run", 80, true);
        let short = rendered("run", 80, false);
        let rest = &long[short.trim_end().len()..];
        let headings: Vec<&str> = rest
            .lines()
            .filter(|line| line.ends_with(':') && line.starts_with(|c: char| c.is_ascii_uppercase()))
            .take(14)
            .collect();
        assert_eq!(
            headings,
            [
                "Command and arguments:",
                "Running jobs:",
                "Input:",
                "Arguments per job:",
                "Placeholders and values:",
                "Output:",
                "Progress and messages:",
                "Failures and time limits:",
                "Load and memory:",
                "Environment of the jobs:",
                "Standard input in blocks:",
                "Record and resuming:",
                "Other machines:",
                "Other:",
            ]
        );
    }

    /// Returns the words of the last command of a line that begins with `minder`, without redirections.
    fn minder_words(line: &str) -> Option<Vec<String>> {
        let line = &line[line.rfind("minder ").filter(|at| !line[..*at].contains('\''))?..];
        let mut words = Vec::new();
        let mut word = String::new();
        let mut quote = None;
        for c in line.chars() {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                ('\'' | '"', None) => quote = Some(c),
                ('>', None) if word == "2" => {
                    word.clear();
                    break;
                }
                ('|' | '>' | ',' | ';', None) => break,
                (' ', None) => words.push(std::mem::take(&mut word)),
                (c, _) => word.push(c),
            }
        }
        words.push(word);
        words.retain(|word| !word.is_empty());
        Some(words)
    }

    #[test]
    fn examples_in_help_texts_parse() {
        let mut count = 0;
        for path in paths() {
            let help = rendered(&path, 100, true);
            let mut inside = false;
            for line in help.lines() {
                inside = line == "Examples:" || inside && line.starts_with("  ");
                let example = match line.strip_prefix("Try: ") {
                    Some(example) => example,
                    None if inside => line.trim().split("  ").next().unwrap_or_default(),
                    None => continue,
                };
                let Some(words) = minder_words(example) else { continue };
                count += 1;
                if let Err(error) = Flags::try_parse_from(&words) {
                    assert!(!error.use_stderr(), "{path}: {example}: {words:?}: {error}");
                }
            }
        }
        assert!(count > 60, "{count} examples");
    }

    #[test]
    fn every_command_is_in_one_group() {
        let minder = Flags::interface();
        let groups = command_groups(&minder);
        let mut shown: Vec<&str> =
            groups.iter().flat_map(|group| &group.items).map(|(name, _)| name.as_str()).collect();
        shown.sort_unstable();
        let mut names: Vec<&str> = minder
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .chain(COMPATIBLE.map(|(name, _)| name))
            .collect();
        names.sort_unstable();
        assert_eq!(shown, names);
    }
}
