//! Files of one job in addition to standard output: `--results` in GNU parallel's layout
//! (`DIR/1/ARGUMENT/stdout`, `stderr` and `seq`, or files that the user names), `--files`,
//! `--template`, and tables.

mod refusal;
pub(crate) mod table;
mod path_escape;
mod files;
mod template_files;

pub(crate) use self::{
    files::{JobResults, cannot_write, create_output_file},
    refusal::Refusal,
    template_files::TemplateFiles,
};
