//! The parts of `cargo xtask test`.

/// Which of the checks are made.
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

    /// Returns whether a check of `self` is made if `asked` is asked for.
    pub(crate) fn is_in(self, asked: Self) -> bool {
        (self.has_quick() && asked.has_quick()) || (self.has_rest() && asked.has_rest())
    }
}

#[cfg(test)]
mod tests {
    use super::Part::{All, Quick, Rest};

    #[test]
    fn quick_part_and_rest_are_separate() {
        assert!(Quick.is_in(Quick) && Rest.is_in(Rest) && !Quick.is_in(Rest) && !Rest.is_in(Quick));
        assert!([Quick, Rest, All].iter().all(|part| part.is_in(All) && All.is_in(*part)));
    }
}
