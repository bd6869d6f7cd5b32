//! The parts of `cargo xtask test`.

use anyhow::{Result, ensure};
use std::path::PathBuf;

/// The selection of checks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Part {
    /// The checks of the product on this system, for a newcomer: at most ten minutes on two cores.
    #[default]
    Quick,
    /// The checks that `Quick` leaves out.
    Rest,
    /// Both.
    All,
}

impl Part {
    pub(crate) fn has_quick(self) -> bool {
        self != Self::Rest
    }

    pub(crate) fn has_rest(self) -> bool {
        self != Self::Quick
    }

    /// Returns whether a check of `self` is made if `wanted` is requested.
    pub(crate) fn is_in(self, wanted: Self) -> bool {
        (self.has_quick() && wanted.has_quick()) || (self.has_rest() && wanted.has_rest())
    }

    /// Returns the test files of this part, of which the quick part has those with the names `quick`.
    ///
    /// # Errors
    /// A file that `quick` names is not among them.
    pub(crate) fn of(self, mut files: Vec<PathBuf>, quick: &[&str]) -> Result<Vec<PathBuf>> {
        let is_quick = |file: &PathBuf| quick.iter().any(|name| file.ends_with(name));
        for name in quick {
            ensure!(files.iter().any(|file| file.ends_with(name)), "no test file has the name {name}");
        }
        files.retain(|file| if is_quick(file) { Self::Quick } else { Self::Rest }.is_in(self));
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::Part::{All, Quick, Rest};
    use std::path::PathBuf;

    #[test]
    fn quick_part_and_rest_are_separate() {
        assert!(Quick.is_in(Quick) && Rest.is_in(Rest) && !Quick.is_in(Rest) && !Rest.is_in(Quick));
        assert!([Quick, Rest, All].iter().all(|part| part.is_in(All) && All.is_in(*part)));
    }

    #[test]
    fn both_parts_have_each_test_file_once() {
        let files = || ["test/a.rb", "test/b.rb", "test/c.rb"].map(PathBuf::from).to_vec();
        let of = |part: super::Part| part.of(files(), &["b.rb"]).unwrap();
        assert_eq!(of(Quick), [PathBuf::from("test/b.rb")]);
        assert_eq!(of(Rest), ["test/a.rb", "test/c.rb"].map(PathBuf::from));
        assert_eq!(of(All), files());
        assert!(Rest.of(files(), &["d.rb"]).is_err());
    }
}
