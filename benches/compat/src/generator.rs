//! The scripts, from a seed.
//!
//! Each script is written for the option that has the fewest scripts so far, so that every option has
//! about as many. Other options are mixed in. The same seed gives the same scripts on every machine.

use super::random::Random;
use super::recipe::{Family, Recipe, Slot};
use super::{parallel, xargs};
use std::collections::BTreeMap;

/// The seed of the scripts that the published counts are of.
pub(super) const SEED: u64 = 20_221_122;

/// The program that a script calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tool {
    Parallel,
    Xargs,
}

impl Tool {
    pub(super) const ALL: [Self; 2] = [Self::Parallel, Self::Xargs];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Parallel => "parallel",
            Self::Xargs => "xargs",
        }
    }

    /// The number of scripts that are compared.
    pub(super) fn count(self) -> usize {
        match self {
            Self::Parallel => 1000,
            Self::Xargs => 500,
        }
    }

    fn recipes(self) -> Vec<Recipe> {
        match self {
            Self::Parallel => parallel::recipes(),
            Self::Xargs => xargs::RECIPES.to_vec(),
        }
    }
}

/// The environment of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Environment {
    /// That of a user with bash.
    User,
    /// That of cron: few variables, and `/bin/sh` as SHELL.
    Cron,
    /// That of a container: no SHELL.
    NoShell,
    /// That of a user with the C locale.
    CLocale,
    /// That of a user with few descriptors.
    FewFiles,
}

impl Environment {
    pub(super) const ALL: [Self; 5] = [Self::User, Self::Cron, Self::NoShell, Self::CLocale, Self::FewFiles];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Cron => "cron",
            Self::NoShell => "no-shell",
            Self::CLocale => "c-locale",
            Self::FewFiles => "few-files",
        }
    }
}

/// A script of bash.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Script {
    pub(super) tool: Tool,
    /// Counts from 1, over both tools.
    pub(super) number: usize,
    pub(super) environment: Environment,
    /// The options that it uses by design; the first is the one that it was written for.
    pub(super) options: Vec<&'static str>,
    pub(super) text: String,
}

impl Script {
    pub(super) fn uses(&self, names: &[&str]) -> bool {
        self.options.iter().any(|option| names.contains(option))
    }
}

/// Returns the scripts of both tools.
pub(super) fn scripts(seed: u64) -> Vec<Script> {
    let mut all = Vec::new();
    for tool in Tool::ALL {
        let mut generator = Generator::new(tool, seed);
        for _ in 0..tool.count() {
            let script = generator.script(all.len() + 1);
            all.push(script);
        }
    }
    all
}

struct Generator {
    tool: Tool,
    random: Random,
    recipes: Vec<Recipe>,
    /// The number of scripts that were written for each name of an option.
    written: BTreeMap<&'static str, usize>,
}

impl Generator {
    fn new(tool: Tool, seed: u64) -> Self {
        // Each tool has its own numbers: more scripts of one do not change those of the other.
        let random = Random::new(seed ^ tool.count() as u64);
        Self { tool, random, recipes: tool.recipes(), written: BTreeMap::new() }
    }

    fn script(&mut self, number: usize) -> Script {
        let (recipe, name) = self.least_written();
        let times = self.written.entry(name).or_default();
        *times += 1;
        // Names of the same option begin with different forms.
        let form = *times - 1 + recipe.names.iter().position(|other| *other == name).unwrap_or(0);
        let in_one_word = self.random.is_in(30);
        let words = recipe.form(form, name, in_one_word);

        let mut options = vec![name];
        let mut flags = Vec::new();
        if recipe.slot == Slot::Flags {
            flags.push(words.clone());
        }
        self.mix_in(&recipe, &mut flags, &mut options);
        let mut line = if recipe.slot == Slot::Line { words.clone() } else { self.line(&recipe) };
        let command = if recipe.slot == Slot::Command { words } else { self.command(&recipe) };
        if self.tool == Tool::Parallel && recipe.family == Family::Arguments {
            flags.extend(self.order(recipe.is_serial || line.contains("-j")));
        }
        self.random.shuffle(&mut flags);
        line = line.replace("FLAGS", &flags.join(" ")).replace("COMMAND", &command);
        line = self.with_values(line);
        let environment = self.environment();
        Script { tool: self.tool, number, environment, options, text: script_text(&line, environment) }
    }

    /// Returns the option with the fewest scripts, the first of several.
    fn least_written(&self) -> (Recipe, &'static str) {
        let named =
            self.recipes.iter().flat_map(|recipe| recipe.names.iter().map(move |name| (*recipe, *name)));
        let count = |name: &str| self.written.get(name).copied().unwrap_or(0);
        named.min_by_key(|(_, name)| count(name)).expect("each tool has recipes")
    }

    /// Adds other options to a script, sometimes.
    fn mix_in(&mut self, recipe: &Recipe, flags: &mut Vec<String>, options: &mut Vec<&'static str>) {
        let fits =
            |other: &&Recipe| other.mixes && other.family == recipe.family && other.names != recipe.names;
        let others: Vec<Recipe> = self.recipes.iter().filter(fits).copied().collect();
        let takes_flags = recipe.slot != Slot::Line || recipe.forms.iter().all(|form| form.contains("FLAGS"));
        if others.is_empty() || !takes_flags {
            return;
        }
        for percent in [45, 20] {
            if self.random.is_in(percent) {
                let other = *self.random.pick(&others);
                let name = *self.random.pick(other.names);
                if !options.iter().any(|used| other.names.contains(used)) {
                    let form = self.random.below(other.forms.len());
                    let in_one_word = self.random.is_in(30);
                    flags.push(other.form(form, name, in_one_word));
                    options.push(name);
                }
            }
        }
    }

    fn line(&mut self, recipe: &Recipe) -> String {
        let lines = match (self.tool, recipe.family) {
            _ if !recipe.lines.is_empty() => recipe.lines,
            (Tool::Xargs, _) => xargs::LINES,
            (Tool::Parallel, Family::Arguments) => parallel::ARGUMENTS,
            (Tool::Parallel, Family::Blocks) => parallel::BLOCKS,
        };
        (*self.random.pick(lines)).to_string()
    }

    fn command(&mut self, recipe: &Recipe) -> String {
        let commands = match (self.tool, recipe.family) {
            _ if !recipe.commands.is_empty() => recipe.commands,
            (Tool::Xargs, _) => xargs::COMMANDS,
            (Tool::Parallel, Family::Arguments) => parallel::VALUE_COMMANDS,
            (Tool::Parallel, Family::Blocks) => parallel::BLOCK_COMMANDS,
        };
        (*self.random.pick(commands)).to_string()
    }

    /// Returns the flag that gives the output of jobs a fixed order.
    fn order(&mut self, is_serial: bool) -> Option<String> {
        let order = if is_serial { "-j1" } else { *self.random.pick(&["-k", "-k", "-j1"]) };
        Some(order.to_string())
    }

    /// Replaces each `VALUES` and `QUOTED` by one to four words.
    fn with_values(&mut self, mut line: String) -> String {
        for (sign, words) in [("VALUES", parallel::VALUES), ("QUOTED", xargs::QUOTED)] {
            while line.contains(sign) {
                let count = 1 + self.random.below(4);
                let chosen: Vec<&str> = (0..count).map(|_| *self.random.pick(words)).collect();
                line = line.replacen(sign, &chosen.join(" "), 1);
            }
        }
        line
    }

    fn environment(&mut self) -> Environment {
        if self.random.is_in(60) { Environment::User } else { *self.random.pick(&Environment::ALL) }
    }
}

/// Returns the whole script for a line.
fn script_text(line: &str, environment: Environment) -> String {
    let mut text = String::new();
    if environment == Environment::FewFiles {
        text.push_str("ulimit -n 64\n");
    }
    for (name, body) in parallel::FUNCTIONS {
        let calls = |c: char| !(c.is_ascii_alphanumeric() || "-_./{}".contains(c));
        if line.split(calls).any(|word| word == *name) {
            text.push_str(&format!("{body}; export -f {name}\n"));
        }
    }
    text.push_str(line);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
