//! A recipe says how scripts use an option: the words that it adds to a command line, and the lines
//! and commands that it fits.

/// The part of a script that a recipe supplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// Words in the place of `FLAGS`.
    Flags,
    /// Words in the place of `COMMAND`.
    Command,
    /// The whole line; it contains `FLAGS` and `COMMAND`, or neither.
    Line,
}

/// What jobs get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Values, as arguments.
    Arguments,
    /// Blocks of the input, as standard input.
    Blocks,
}

/// How scripts use an option.
///
/// In the forms, `OPT` is one of the names. `OPT VALUE` is also written in one word
/// (`--name=VALUE`, `-nVALUE`); `OPT=VALUE` is always one word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    pub(super) names: &'static [&'static str],
    pub(super) slot: Slot,
    pub(super) family: Family,
    pub(super) forms: &'static [&'static str],
    /// The lines that the flags fit; empty: every line of the family.
    pub(super) lines: &'static [&'static str],
    /// The commands that the flags fit; empty: every command of the family.
    pub(super) commands: &'static [&'static str],
    /// Whether jobs have to run one at a time for the same output in every run.
    pub(super) is_serial: bool,
    /// Whether scripts for other options may contain it, too.
    pub(super) mixes: bool,
}

/// Returns a recipe of flags for commands with values.
pub(super) const fn flags(names: &'static [&'static str], forms: &'static [&'static str]) -> Recipe {
    Recipe {
        names,
        slot: Slot::Flags,
        family: Family::Arguments,
        forms,
        lines: &[],
        commands: &[],
        is_serial: false,
        mixes: false,
    }
}

/// Returns a recipe of flags for commands that read blocks.
pub(super) const fn blocks(names: &'static [&'static str], forms: &'static [&'static str]) -> Recipe {
    Recipe { family: Family::Blocks, ..flags(names, forms) }
}

/// Returns a recipe of whole lines.
pub(super) const fn lines(names: &'static [&'static str], forms: &'static [&'static str]) -> Recipe {
    Recipe { slot: Slot::Line, ..flags(names, forms) }
}

/// Returns a recipe of commands.
pub(super) const fn commands(names: &'static [&'static str], forms: &'static [&'static str]) -> Recipe {
    Recipe { slot: Slot::Command, ..flags(names, forms) }
}

impl Recipe {
    pub(super) const fn on(self, lines: &'static [&'static str]) -> Self {
        Self { lines, ..self }
    }

    pub(super) const fn with(self, commands: &'static [&'static str]) -> Self {
        Self { commands, ..self }
    }

    pub(super) const fn serial(self) -> Self {
        Self { is_serial: true, ..self }
    }

    pub(super) const fn mixes(self) -> Self {
        Self { mixes: true, ..self }
    }

    /// Returns a form with the name in it. `in_one_word` joins the name and the value, unless another
    /// option follows in place of a value.
    pub(super) fn form(&self, number: usize, name: &str, in_one_word: bool) -> String {
        let form = self.forms[number % self.forms.len()];
        let is_long = name.starts_with("--");
        let form = if is_long { form.to_string() } else { form.replace("OPT=", "OPT") };
        let may_join = in_one_word && self.slot == Slot::Flags;
        let value = if may_join { form.strip_prefix("OPT ") } else { None };
        let is_option =
            |word: &str| word.starts_with('-') && !word[1..].starts_with(|c: char| c.is_ascii_digit());
        match value.filter(|value| !is_option(value)) {
            Some(value) if is_long => format!("{name}={value}"),
            Some(value) => format!("{name}{value}"),
            None => form.replace("OPT", name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_joins_name_and_value_on_request() {
        let recipe = flags(&["--max-args", "-n"], &["OPT 2", "OPT=3", "OPT", "OPT -k", "OPT -1"]);
        let form = |number, name: &str| [false, true].map(|joined| recipe.form(number, name, joined));
        assert_eq!(form(0, "--max-args"), ["--max-args 2", "--max-args=2"]);
        assert_eq!(form(0, "-n"), ["-n 2", "-n2"]);
        assert_eq!(form(1, "--max-args"), ["--max-args=3", "--max-args=3"]);
        assert_eq!(form(1, "-n"), ["-n3", "-n3"]);
        assert_eq!(form(2, "-n"), ["-n", "-n"]);
        assert_eq!(form(3, "-n"), ["-n -k", "-n -k"]);
        assert_eq!(form(4, "-n"), ["-n -1", "-n-1"]);
        assert_eq!(form(5, "-n"), form(0, "-n"));
    }

    #[test]
    fn form_of_a_line_names_the_option_everywhere() {
        let recipe = lines(&["--version"], &["OPT x; parallel OPT"]);
        assert_eq!(recipe.form(0, "--version", true), "--version x; parallel --version");
    }
}
