//! The kinds of processes that are compared.

use crate::samples::Contestant;

/// By Emacs with its default settings.
pub(super) const STOCK: Contestant = Contestant { name: "stock", title: "Emacs, default" };
/// By Emacs with `process-adaptive-read-buffering` nil.
pub(super) const STOCK_NIL: Contestant = Contestant { name: "stock-nil", title: "Emacs, adaptive nil" };
pub(super) const NATIVE: Contestant = Contestant { name: "native", title: "minder, native" };
pub(super) const LIGHT: Contestant = Contestant { name: "light", title: "minder, light" };
/// By Emacs, with `minder relay` as the program.
pub(super) const RELAY: Contestant = Contestant { name: "relay", title: "minder relay" };

/// All, in the order of a round.
pub(super) const ALL: [Contestant; 5] = [STOCK, STOCK_NIL, NATIVE, LIGHT, RELAY];
/// Those that libraries of Emacs can use.
pub(super) const OBJECTS: [Contestant; 4] = [STOCK, STOCK_NIL, NATIVE, RELAY];
/// Those of the package.
pub(super) const OURS: [Contestant; 3] = [NATIVE, LIGHT, RELAY];
