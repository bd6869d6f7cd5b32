//! A case and its comparison.

use std::fmt;

/// One command, and how its results are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// The words after `parallel`, or a script for `sh` that calls `parallel` or `sem`.
    pub(super) line: &'static str,
    pub(super) is_script: bool,
    pub(super) input: &'static str,
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) env: &'static [(&'static str, &'static str)],
    pub(super) see: See,
    /// `true` if standard error is compared, too.
    pub(super) errors: bool,
    /// `true` if the files that are there afterwards are compared, too.
    pub(super) tree: bool,
    /// A module of Perl that GNU parallel needs for it, and may not have.
    pub(super) needs: Option<&'static str>,
    /// Why the result differs, as `docs/from-parallel.md` explains it.
    pub(super) differs: Option<&'static str>,
}

/// The part of a stream that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum See {
    /// Every byte.
    All,
    /// The lines, in any order.
    Sorted,
    /// The number of lines.
    Count,
    /// Nothing.
    Nothing,
}

/// `parallel` with these arguments.
pub(super) const fn case(line: &'static str) -> Case {
    Case {
        line,
        is_script: false,
        input: "",
        files: &[],
        env: &[],
        see: See::All,
        errors: false,
        tree: false,
        needs: None,
        differs: None,
    }
}

/// A script for `sh`, which finds `parallel` and `sem` in its `PATH`.
pub(super) const fn script(line: &'static str) -> Case {
    Case { is_script: true, ..case(line) }
}

impl Case {
    /// Sets the standard input; it is empty otherwise.
    pub(super) const fn input(self, input: &'static str) -> Self {
        Self { input, ..self }
    }

    /// Files that are there beforehand.
    pub(super) const fn files(self, files: &'static [(&'static str, &'static str)]) -> Self {
        Self { files, ..self }
    }

    pub(super) const fn env(self, env: &'static [(&'static str, &'static str)]) -> Self {
        Self { env, ..self }
    }

    /// The lines of the output may come in any order.
    pub(super) const fn sorted(self) -> Self {
        Self { see: See::Sorted, ..self }
    }

    /// Only the number of lines of the output is compared.
    pub(super) const fn count(self) -> Self {
        Self { see: See::Count, ..self }
    }

    /// Only the exit status is compared, and what else is asked for.
    pub(super) const fn status(self) -> Self {
        Self { see: See::Nothing, ..self }
    }

    pub(super) const fn errors(self) -> Self {
        Self { errors: true, ..self }
    }

    pub(super) const fn tree(self) -> Self {
        Self { tree: true, ..self }
    }

    pub(super) const fn needs(self, module: &'static str) -> Self {
        Self { needs: Some(module), ..self }
    }

    pub(super) const fn differs(self, why: &'static str) -> Self {
        Self { differs: Some(why), ..self }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", if self.is_script { "sh: " } else { "parallel " }, self.line)?;
        if !self.input.is_empty() {
            let shown: String = self.input.chars().take(120).collect();
            write!(out, "  <<< {shown:?}")?;
        }
        for (name, content) in self.files {
            write!(out, "  [{name}: {content:?}]")?;
        }
        for (name, value) in self.env {
            write!(out, "  [${name}={value:?}]")?;
        }
        Ok(())
    }
}
