//! The form of what is shown.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use minder_ui::rows::Format;

use super::file_name::file_name;

// Rows in place of tables, and a chart.
#[derive(Debug, Args)]
pub(crate) struct OutputFlags {
    /// Print CSV, the names of the columns first (RFC 4180).
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,

    /// Print JSON, one object per line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Also write a chart, as SVG.
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().try_map(file_name))]
    pub(crate) svg: Option<PathBuf>,
}

/// The help of `--csv` and `--json` where each measurement is a row.
pub(super) const EACH_CSV: &str = "Print each measurement as CSV, the names of the columns first (RFC 4180)";
pub(super) const EACH_JSON: &str = "Print each measurement as JSON, one object per line";

impl OutputFlags {
    /// Returns the format of rows; `None` for tables.
    pub(crate) fn format(&self) -> Option<Format> {
        Format::of_flags(self.csv, self.json)
    }
}
