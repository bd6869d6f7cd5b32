//! The options of GNU parallel: read, completed from profiles and `$PARALLEL`, and translated into
//! the arguments of `minder run`.

mod options;
mod getopt;
mod profile;
mod logins;
mod args;
mod machines;
mod info;
mod translate;
mod on_all;
mod shell_quote;
mod env_setup;

pub(super) use self::{
    args::ParallelArgs,
    env_setup::{print_env_names, print_env_setup},
    options::OptionKey,
};
pub(super) use self::{
    info::{HELP, print_info},
    on_all::run_arguments,
    shell_quote::print_quoted,
};
