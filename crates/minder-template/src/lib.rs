//! Command templates: a template with placeholders and the values of a job become the program and
//! the arguments to start.
//!
//! No value becomes shell code. In a line for a POSIX shell, the values are positional parameters
//! of `sh -c LINE`, and LINE depends only on the template and on the number of values. `gzip "{}"`
//! becomes the line `gzip "${1}"`, started with the value as a separate argument. Pasting a quoted
//! value into the line would fail inside double quotes, where quote characters have no effect.
//!
//! cmd.exe and PowerShell have no such parameters. A line for them refers to environment variables,
//! `"%MINDER_V1%"` and `$env:MINDER_V1`. The modules `windows::cmd` and `windows::powershell`
//! explain where that is safe.
//!
//! # Example
//!
//! ```
//! use minder_template::{Job, Options, Template};
//!
//! let options = Options { shell: Some("/bin/sh".into()), ..Options::default() };
//! let template = Template::parse(&["cp {} \"backup/{/}\"".into()], &options)?;
//! let job = Job { columns: &["a/$(reboot).txt".into()], ..Job::default() };
//! let argv = template.argv(&job)?;
//! assert_eq!(argv[..3], ["/bin/sh", "-c", "cp \"$1\" \"backup/${2}\""]);
//! assert_eq!(argv[3..], ["/bin/sh", "a/$(reboot).txt", "$(reboot).txt"]);
//! # Ok::<(), minder_template::Error>(())
//! ```
//!
//! # Where a value may stand
//!
//! **Promised**: the shell that minder starts never evaluates a value. This holds for dash, bash
//! (also as `sh`), busybox, zsh, ksh93, mksh and yash. It holds for cmd and PowerShell, too, which
//! have separate scanners. A scanner accepts only sites that are known to be safe:
//!
//! - `posix::builtins` lists for each shell the builtins that accept any text,
//! - `posix::variables` the variables that may be assigned,
//! - `posix::expansion` the forms of `${…}` that read a variable as text,
//! - `posix::redirection` the operators that all shells read alike,
//! - `posix::flow` follows values through variables.
//!
//! Everything else is refused, and so is every other shell, by name. The rules for `sh` are those
//! of the shell that it links to (`kinds`), or those of all shells. yash replaces an argument that
//! is not valid in its locale by an empty one. So it gets ASCII values only: a value is never
//! changed.
//!
//! **Refused as a courtesy**: arguments that a known program evaluates (`programs`,
//! `eval_commands`). Such a list is never complete.
//!
//! **Checked for each job, with [`Options::plain_values_in_program_texts`]**: values in the program texts
//! of awk, sed, perl, python, ruby, node, SQL clients, `sh -c` and in a format of `printf`
//! (`program_text`, `posix::shell_text`). Promised is that such a value remains the part of that program
//! that it is in the template: text in a string or a pattern, a number, a name of a variable, a word of a
//! command. It consists of letters, digits and `_.,:/@%+=-`, without those that could end the string or
//! pattern, or that the language expands there. Outside of strings it is a number, in awk and SQL also a
//! name that the language does not use itself. A text of `sh -c` is scanned as a line. A text that is not
//! followed is refused, and so is one with words that run text, such as `system` or `eval`: what a program
//! does with its own strings is not seen, so this second part is a courtesy.
//!
//! **Out of reach**: the next section lists what cannot be seen.
//!
//! **Checked for each job**: a value in arithmetic (`posix::arithmetic`, `[[ {} -gt 3 ]]`,
//! `${v:{}:3}`), or in a variable that arithmetic reads, must be a plain decimal number. Where a scan
//! is refused for that reason only, the line is scanned again with that placeholder marked. All its
//! values must then be numbers, wherever it stands. Next to other text, a number counts as a part of
//! any name.
//!
//! With `--only` ([`ValueRules`]), the user states what values look like. They may then stand where
//! they would be refused, except where the scanner cannot parse the line.
//!
//! # Parameters and several values
//!
//! `$1`, `$@`, `$#`, `shift` and `set WORDS` in a line are refused. In a plain `sh -c` they would
//! be empty; here they would read or replace values. Inside a function they belong to the function,
//! so they are allowed, and placeholders are refused instead.
//!
//! A job may have several values. A placeholder without a number stands for all of them: as
//! separate words outside of quotes, `"$1" "$2"`, and separated by spaces inside of them, `"${1}
//! ${2}"`. That moves the words after it, and the argument of an option may become program text or
//! a command: `awk -v x={} f`, `v={} cmd`, `env V={} cmd`. So a template is scanned again for each
//! number of values up to four, and refused for a number with which a value could become code. More
//! than four values are treated as four.
//!
//! The user may choose the spellings of placeholders. A placeholder that begins within a reserved
//! word, a variable's name or another token of the shell is refused, and so is one directly after a
//! `$` or a backslash.
//!
//! # What the scanner cannot see
//!
//! - A program that evaluates its arguments or its input: a script that calls `eval`, a sourced
//!   file that calls `shift`, `printf '%s' {} | sh`, `make X={}`, SQL.
//! - An unknown program that runs its arguments: with several values, `my-env V={} cmd` runs the
//!   second one. `eval_commands` contains the programs that are known to do so.
//! - A value that begins with `-` may be read as an option: write `--` before it, or `./{}`, or use
//!   `--no-dash-values`.
//! - A command name that is an environment variable, `$CC`: it may be `eval`. A variable that the
//!   line sets is refused.
//! - `{2}` in a regular expression such as `[a-z]{2}` is the second column: write `[a-z][a-z]`.
//! - A value that reaches a later evaluation through the environment, a file or a pipe: `eval
//!   "$(cat file)"`.
//! - Output of a program that arithmetic reads: `: {}; n=$(prog); echo $((n))` evaluates the value
//!   if `prog` prints `_`.
//! - Arithmetic that reads an environment variable with the name of a variable of the line: `X=v`,
//!   `echo $((X))`. This is refused if the line stores a value.
//! - A batch file that removes the quotes of its arguments (`%~1`), or a user's variable with the
//!   name of a shell, in a line for cmd.
//! - Delayed expansion, if the registry enables it for every cmd: next to a pipe, `!x!` in a value
//!   is then a variable.
//! - Aliases and shell options that the user's environment sets before the line (`BASH_ENV`,
//!   `.zshenv`).

mod display;
mod error;
mod word_list;
mod program_text;
mod checks;
mod kinds;
mod programs;
mod job;
mod placeholder;
mod size;
mod shell;
mod value_rules;
mod options;
mod template_line;
mod word;
mod eval_commands;
mod posix;
mod direct;
mod windows;
mod template;

#[cfg(test)]
mod tests;

pub use display::{line as shell_line, one_line as shell_word};
pub use error::{Error, ErrorKind};
pub use job::{Invocation, Job};
pub use options::{Form, Options, Repeat};
pub use placeholder::set::{PlaceholderKind, PlaceholderSet};
pub use shell::{is_posix as is_posix_shell, is_refused as is_refused_shell};
pub use size::{CommandLength, Size};
pub use template::Template;
pub use value_rules::ValueRules;

/// The README, whose example runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
