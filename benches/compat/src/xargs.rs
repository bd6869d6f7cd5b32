//! What scripts for xargs are made of.

mod options;
mod pieces;

pub(super) use options::RECIPES;
pub(super) use pieces::{COMMANDS, LINES, QUOTED};
