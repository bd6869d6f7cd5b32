//! Environment variables that many commands share: plain data.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// A list of environment variables that many commands share.
///
/// By default each start, also of a restart, uses the environment that this process has at that moment. On
/// Unix it is copied, so that another thread may call [`std::env::set_var`] meanwhile. With 30 variables
/// that takes about 6 us. A command with [`environment`](crate::Command::environment) uses the list made
/// here instead, so that a start copies only the variables that [`env`](crate::Command::env) changes. A
/// clone shares the list.
///
/// The list is a copy: later changes of the environment of this process have no effect on it.
///
/// Code that changes the environment without [`mod@std::env`], such as a call of C's `setenv`, must not run
/// while a child starts or a list is made.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Command, Environment};
///
/// let shared = Environment::inherited().with("LANG", "C").without("TMPDIR");
/// let nothing = Environment::empty(); // for a child without variables
/// # let _ = nothing;
/// for number in ["1", "2"] {
///     let mut command = Command::new("/bin/sh");
///     command.args(["-c", "echo $LANG $NUMBER"]).environment(&shared).env("NUMBER", number);
///     assert_eq!(command.output()?.stdout, format!("C {number}\n").as_bytes());
/// }
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Environment {
    pub(crate) variables: Arc<Vec<(OsString, OsString)>>,
}

impl Environment {
    /// Copies the variables of this process.
    pub fn inherited() -> Self {
        Self { variables: Arc::new(std::env::vars_os().collect()) }
    }

    /// Returns a list without variables.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Sets a variable, in place of one with the same name.
    ///
    /// A name that is empty or contains `=`, and a name or value with a zero byte, fails each start.
    pub fn with(self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let mut changed = self.without(&name);
        Arc::make_mut(&mut changed.variables).push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        changed
    }

    /// Sets several variables, in place of those with the same names. Of several values for one name, the
    /// last counts. The effort grows with the length of both lists, and not with their product.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Environment};
    ///
    /// let variables = Environment::empty().with("A", "0").with_all([("A", "1"), ("B", "2"), ("A", "3")]);
    /// let mut command = Command::new("/bin/sh");
    /// command.args(["-c", "echo $A $B"]).environment(&variables);
    /// assert_eq!(command.output()?.stdout, b"3 2\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn with_all<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let owned = |(name, value): (K, V)| (name.as_ref().to_owned(), value.as_ref().to_owned());
        let mut added: Vec<(OsString, OsString)> = variables.into_iter().map(owned).collect();
        let mut names = HashSet::with_capacity(added.len());
        // From the end: the last value of a name is the first that is seen.
        added.reverse();
        added.retain(|(name, _)| names.insert(name.clone()));
        let list = Arc::make_mut(&mut self.variables);
        list.retain(|(known, _)| !names.contains(known));
        list.extend(added.into_iter().rev());
        self
    }

    /// Removes a variable.
    ///
    /// - Windows: only one that is spelt in the same case. A start with two variables that differ in
    ///   case only uses the later one.
    pub fn without(mut self, name: impl AsRef<OsStr>) -> Self {
        Arc::make_mut(&mut self.variables).retain(|(known, _)| known != name.as_ref());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_all_is_with_for_each() {
        let base = || Environment::empty().with("A", "0").with("B", "0").with("C", "0");
        let pairs = [("B", "1"), ("D", "1"), ("B", "2"), ("A", "1")];
        let one_by_one = pairs.iter().fold(base(), |all, (name, value)| all.with(name, value));
        assert_eq!(base().with_all(pairs).variables, one_by_one.variables);
    }
}
