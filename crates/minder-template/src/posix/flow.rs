//! Finds the variables of a line that may hold a value, and those that the shell reads as code.
//!
//! A value in a variable is as dangerous as the value itself if the shell evaluates the variable.
//! So the scanner records each store, each copy and each evaluation by the variable's name, and
//! [`Flow::is_safe`] decides at the end of the line. The order within the line matters for numbers
//! only: a variable counts as a number only after its assignment.

use std::collections::BTreeSet;

use crate::kinds::ShellSet;
use crate::placeholder::expression::Placeholder;
use crate::posix::variables::Use;
use crate::posix::{builtins, variables};
use crate::word::Word;

/// A set of variables.
#[derive(Debug, Clone, Default)]
struct VariableSet {
    /// The set may also contain a variable whose name is unknown.
    any: bool,
    names: BTreeSet<Vec<u8>>,
}

/// A command whose arguments are composed of values or expansions. If a function runs its
/// arguments, one of them may be `eval`.
#[derive(Debug, Clone)]
struct ComposedCall {
    /// The literal words of the command.
    words: BTreeSet<Vec<u8>>,
    /// The name of the command is not literal.
    has_unknown_name: bool,
    /// An argument is composed of a value and other text, or the shell alters it.
    has_composed_argument: bool,
    /// The variables in the arguments.
    variables: Vec<Vec<u8>>,
}

/// The uses of variables in a line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flow {
    kinds: ShellSet,
    /// Variables that may hold a value.
    stores: VariableSet,
    /// Variables that the shell reads as code.
    evaluates: VariableSet,
    /// Variables, and the variables whose text each of them gets.
    copies: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    /// The placeholders that are assigned to variables.
    assigned_values: Vec<(Vec<u8>, Placeholder)>,
    /// Variables whose text is composed, and may be the name of any variable: `v=a$x`.
    composed: BTreeSet<Vec<u8>>,
    /// Variables in `evaluates` that the shell reads as numbers only: `[[ $v -gt 3 ]]`.
    compared: BTreeSet<Vec<u8>>,
    /// Variables that hold a number at the current point of the line.
    numbers: BTreeSet<Vec<u8>>,
    /// Variables that arithmetic reads, and that hold numbers there.
    arithmetic_numbers: BTreeSet<Vec<u8>>,
    /// Variables that arithmetic reads, and that may hold other text there.
    arithmetic_unknown: BTreeSet<Vec<u8>>,
    /// Variables that get text other than a number.
    text_variables: BTreeSet<Vec<u8>>,
    /// Variables that name a command, with whether its arguments contain values.
    commands: Vec<(Vec<u8>, bool)>,
    /// Variables that get text other than the name of a program.
    maybe_builtin_names: BTreeSet<Vec<u8>>,
    /// The line names a variable that shells fill with arguments, or composes names of variables.
    pub(crate) names_filled: bool,
    /// A prompt such as `PS4` gets text with expansions, or unknown text. The shell expands it when
    /// it prints the prompt, and `$1` is then a value.
    pub(crate) expands_prompt: bool,
    /// The functions that the line defines.
    functions: BTreeSet<Vec<u8>>,
    /// The commands that may call them.
    calls: Vec<ComposedCall>,
    /// A function runs its parameters as a command.
    pub(crate) runs_parameters: bool,
    /// An argument of a command is the name of a builtin that evaluates.
    pub(crate) builtin_as_argument: bool,
    /// Arrays, and variables that builtins assign. In a variable that is both, bash reads
    /// `([…]=…)` in a value.
    arrays: BTreeSet<Vec<u8>>,
    declared: BTreeSet<Vec<u8>>,
}

/// The name under which [`Flow`] records all positional parameters of functions.
pub(crate) const PARAMETERS: &[u8] = b"1";

impl Flow {
    pub(crate) fn new(kinds: ShellSet) -> Flow {
        Flow { kinds, ..Flow::default() }
    }

    /// Records that a variable gets a value.
    pub(crate) fn store(&mut self, name: &[u8]) {
        self.stores.names.insert(name.to_vec());
        self.assign_text(name);
        self.maybe_builtin_names.insert(name.to_vec());
    }

    /// Records that a variable gets the value of a placeholder.
    pub(crate) fn assign_value(&mut self, name: &[u8], placeholder: Placeholder) {
        self.assigned_values.push((name.to_vec(), placeholder));
    }

    /// Records that a variable gets text that may be the name of any variable.
    pub(crate) fn compose(&mut self, name: &[u8]) {
        self.composed.insert(name.to_vec());
    }

    /// Records that the shell itself puts a value into a variable. It does not evaluate the value
    /// there.
    pub(crate) fn fill(&mut self, name: &[u8]) {
        self.stores.names.insert(name.to_vec());
        self.text_variables.insert(name.to_vec());
        self.maybe_builtin_names.insert(name.to_vec());
    }

    /// Records that a variable gets the text of others, or text of the line if `from` is empty.
    pub(crate) fn copy(&mut self, name: &[u8], from: &[Vec<u8>]) {
        self.copies.push((name.to_vec(), from.to_vec()));
        self.assign_text(name);
        self.expands_prompt |= variables::is_prompt(name);
        self.maybe_builtin_names.insert(name.to_vec());
    }

    /// Records that a variable gets literal text of the line, which may name the variables `from`.
    pub(crate) fn copy_literal(&mut self, name: &[u8], text: &[u8], from: &[Vec<u8>]) {
        self.copies.push((name.to_vec(), from.to_vec()));
        self.assign_text(name);
        self.expands_prompt |= variables::is_prompt(name) && text.iter().any(|byte| b"$`".contains(byte));
        let first = text.split(|byte| b" \t\n".contains(byte)).next().unwrap_or_default();
        if builtins::can_evaluate(first, self.kinds) || builtins::is_prefix(first) {
            self.maybe_builtin_names.insert(name.to_vec());
        }
    }

    /// Records that a variable gets text other than a number. The shell evaluates some variables
    /// itself.
    fn assign_text(&mut self, name: &[u8]) {
        self.text_variables.insert(name.to_vec());
        if variables::assigned(name, self.kinds) != Use::Text {
            self.evaluates.names.insert(name.to_vec());
        }
    }

    /// Records that a variable with an unknown name gets a value.
    pub(crate) fn store_any(&mut self) {
        self.stores.any = true;
    }

    /// Records that a variable gets a number, if the assignment certainly runs.
    pub(crate) fn number(&mut self, name: &[u8], certain: bool) {
        if certain {
            self.numbers.insert(name.to_vec());
        }
    }

    /// Returns whether a variable holds a number at this point of the line.
    pub(crate) fn holds_number(&self, name: &[u8]) -> bool {
        self.numbers.contains(name)
    }

    /// Records that the shell reads the text of these variables as code.
    pub(crate) fn evaluate(&mut self, names: &[Vec<u8>]) {
        self.evaluates.names.extend(names.iter().cloned());
    }

    /// Records that the shell reads the text of these variables as numbers.
    pub(crate) fn compare(&mut self, names: &[Vec<u8>]) {
        self.evaluate(names);
        self.compared.extend(names.iter().cloned());
    }

    /// Records that the shell may read the text of any variable as code.
    pub(crate) fn evaluate_any(&mut self) {
        self.evaluates.any = true;
    }

    /// Records a variable in arithmetic. If its text is not a number, it may name another variable,
    /// and that one the next.
    pub(crate) fn read_in_arithmetic(&mut self, name: &[u8]) {
        if self.numbers.contains(name) {
            self.arithmetic_numbers.insert(name.to_vec());
        } else {
            self.arithmetic_unknown.insert(name.to_vec());
        }
    }

    /// Records variables that name a command. `has_values`: its arguments contain placeholders.
    pub(crate) fn command(&mut self, names: &[Vec<u8>], has_values: bool) {
        self.commands.extend(names.iter().map(|name| (name.clone(), has_values)));
    }

    pub(crate) fn function(&mut self, name: &[u8]) {
        self.functions.insert(name.to_vec());
    }

    /// Records a command that may be a function. `may_be_builtin` returns whether a word can become
    /// the name of a builtin.
    pub(crate) fn call(&mut self, first: &Word, rest: &[Word], may_be_builtin: impl Fn(&Word) -> bool) {
        let mut has_composed_argument = false;
        let mut variables = Vec::new();
        for word in rest.iter().filter(|word| word.first_expansion.is_some()) {
            let is_harmless_text = !word.splits && !word.special && !may_be_builtin(word);
            let is_parameter = word.is_plain_variable() && word.variables == [PARAMETERS];
            if is_harmless_text || is_parameter || (word.is_single_value() && !word.special) {
                continue;
            }
            let is_composed = word.placeholder.is_some() || word.substituted || word.altered;
            has_composed_argument |= !word.is_plain_variable() && is_composed;
            has_composed_argument |= !word.alternatives.is_empty();
            variables.extend(word.variables.iter().cloned());
        }
        if has_composed_argument || !variables.is_empty() {
            let is_literal = |word: &&Word| word.first_expansion.is_none() && !word.special;
            let words = std::iter::once(first).chain(rest).filter(is_literal);
            self.calls.push(ComposedCall {
                words: words.map(|word| word.text.clone()).collect(),
                has_unknown_name: !is_literal(&first),
                has_composed_argument,
                variables,
            });
        }
    }

    /// Returns whether a function of the line may get a composed argument.
    pub(crate) fn passes_composed_argument(&self) -> bool {
        let holders = self.value_holders(&[]);
        let may_name_builtin = |name: &Vec<u8>| {
            name == PARAMETERS || holders.contains(name) || self.maybe_builtin_names.contains(name)
        };
        self.calls.iter().any(|call| {
            let may_call_function = call.has_unknown_name || !call.words.is_disjoint(&self.functions);
            let is_composed = call.has_composed_argument || self.stores.any;
            may_call_function && (is_composed || call.variables.iter().any(may_name_builtin))
        })
    }

    pub(crate) fn array(&mut self, name: &[u8]) {
        self.arrays.insert(name.to_vec());
    }

    pub(crate) fn declare(&mut self, name: &[u8]) {
        self.declared.insert(name.to_vec());
    }

    /// Returns whether the shell reads no variable as code that may hold a value. The line contains
    /// values.
    pub(crate) fn is_safe(&self) -> bool {
        let holders = self.value_holders(&[]);
        let stores_values = self.stores.any || !holders.is_empty();
        // Text that the line assigns may name any variable, also those that shells fill with
        // arguments themselves.
        let is_assigned = |names: &BTreeSet<Vec<u8>>| !names.is_disjoint(&self.text_variables);
        let reads_assigned = self.evaluates.any
            || is_assigned(&self.arithmetic_numbers)
            || is_assigned(&self.arithmetic_unknown);
        let reads_any = reads_assigned || !self.arithmetic_unknown.is_empty();
        let evaluates = reads_any || !self.evaluates.names.is_empty();
        let filled = self.value_holders(&variables::filled());
        !(reads_any && stores_values || reads_assigned && self.names_filled || self.stores.any && evaluates)
            && filled.is_disjoint(&self.evaluates.names)
            && (!stores_values || self.arrays.is_disjoint(&self.declared))
    }

    /// Returns a variable that the line sets and that names a command whose arguments contain
    /// values.
    pub(crate) fn command_set_by_line(&self) -> Option<&[u8]> {
        let holders = self.value_holders(&[]);
        let is_set = |name: &Vec<u8>| self.maybe_builtin_names.contains(name) || name == PARAMETERS;
        let found = self
            .commands
            .iter()
            .find(|(name, has_values)| is_set(name) && (*has_values || !holders.is_empty()));
        found.map(|(name, _)| name.as_slice())
    }

    /// Returns the placeholders that are assigned to variables, if the line is not safe because it
    /// reads variables as numbers. Those whose values are read so come first.
    pub(crate) fn values_read_as_numbers(&self) -> Vec<Placeholder> {
        if self.stores.any || self.evaluates.any || !self.evaluates.names.is_subset(&self.compared) {
            return Vec::new();
        }
        let mut read = self.compared.clone();
        read.extend(self.arithmetic_numbers.iter().chain(&self.arithmetic_unknown).cloned());
        loop {
            let before = read.len();
            for (name, from) in &self.copies {
                if read.contains(name) {
                    read.extend(from.iter().cloned());
                }
            }
            if read.len() == before {
                break;
            }
        }
        let (first, rest): (Vec<_>, Vec<_>) =
            self.assigned_values.iter().partition(|(name, _)| read.contains(name));
        first.into_iter().chain(rest).map(|(_, placeholder)| *placeholder).collect()
    }

    /// Returns the variables that may hold a value, directly or through copies. `more` are further
    /// variables that hold one.
    fn value_holders(&self, more: &[Vec<u8>]) -> BTreeSet<Vec<u8>> {
        let mut holders = self.stores.names.clone();
        holders.extend(more.iter().cloned());
        loop {
            let before = holders.len();
            for (name, from) in &self.copies {
                if from.iter().any(|source| holders.contains(source)) {
                    holders.insert(name.clone());
                }
            }
            // Composed text may name a variable to which the line assigns a value.
            if !self.stores.names.is_empty() {
                holders.extend(self.composed.iter().cloned());
            }
            if holders.len() == before {
                return holders;
            }
        }
    }
}
