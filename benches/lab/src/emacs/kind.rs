//! The kinds of processes that are compared.

/// How a process is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// By Emacs with its default settings.
    Stock,
    /// By Emacs with `process-adaptive-read-buffering` nil.
    StockNil,
    Native,
    Light,
    /// By Emacs, with `minder relay` as the program.
    Relay,
}

impl Kind {
    /// All, in the order of a round.
    pub(super) const ALL: [Self; 5] = [Self::Stock, Self::StockNil, Self::Native, Self::Light, Self::Relay];
    /// Those that libraries of Emacs can use.
    pub(super) const OBJECTS: [Self; 4] = [Self::Stock, Self::StockNil, Self::Native, Self::Relay];
    /// Those of the package.
    pub(super) const OURS: [Self; 3] = [Self::Native, Self::Light, Self::Relay];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::StockNil => "stock-nil",
            Self::Native => "native",
            Self::Light => "light",
            Self::Relay => "relay",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns its name in tables.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Stock => "Emacs, default",
            Self::StockNil => "Emacs, adaptive nil",
            Self::Native => "minder, native",
            Self::Light => "minder, light",
            Self::Relay => "minder relay",
        }
    }
}

/// Returns its name in tables, for a table of samples.
pub(super) fn title(kind: &Kind) -> String {
    kind.title().into()
}

impl AsRef<str> for Kind {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
        assert_eq!(Kind::named("heavy"), None);
    }
}
