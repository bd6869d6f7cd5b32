//! The options of xargs, of findutils 4.9.0, read into a plan of what to run.

mod options;
mod getopt;
mod delimiter;
mod limits;
mod info;
mod args;

pub(super) use self::{
    args::{Request, read},
    info::HELP,
};
