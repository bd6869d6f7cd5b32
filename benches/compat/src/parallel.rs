//! What scripts for GNU parallel are made of.

mod control;
mod input;
mod output;
mod pieces;
mod pipe;
mod special;

pub(super) use pieces::{ARGUMENTS, BLOCK_COMMANDS, BLOCKS, FUNCTIONS, VALUE_COMMANDS, VALUES};

use super::recipe::Recipe;

/// Returns the recipes for every option, in a fixed order.
pub(super) fn recipes() -> Vec<Recipe> {
    [input::RECIPES, output::RECIPES, control::RECIPES, pipe::RECIPES, special::RECIPES].concat()
}
