//! The options of GNU parallel: read, completed from profiles and `$PARALLEL`, and translated into
//! the arguments of `minder run`.

mod args;
mod env_setup;
mod getopt;
mod info;
mod logins;
mod machines;
mod options;
mod profile;
mod shell_quote;
mod translate;

pub(super) use self::{
    args::ParallelArgs,
    env_setup::{print_env_names, print_env_setup},
    options::OptionKey,
};
pub(super) use self::{info::print_info, shell_quote::print_quoted, translate::run_arguments};
