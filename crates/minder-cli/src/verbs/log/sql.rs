//! Records as tables of SQL: a query, or a database for other programs.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::export::rows::Format;

/// Answers a query from the records of these runs.
#[cfg(feature = "sql")]
pub(super) fn answer(
    out: &mut dyn Write,
    folders: &[PathBuf],
    query: &str,
    format: Option<Format>,
) -> Result<()> {
    with::answer(out, folders, query, format)
}

/// Writes the records of these runs into a new database.
#[cfg(feature = "sql")]
pub(super) fn write(folders: &[PathBuf], path: &Path) -> Result<()> {
    with::write(folders, path)
}

/// Says that there is no SQL here.
#[cfg(not(feature = "sql"))]
pub(super) fn answer(_: &mut dyn Write, _: &[PathBuf], _: &str, _: Option<Format>) -> Result<()> {
    anyhow::bail!("`--sql` needs SQLite, which this minder was built without (feature `sql`)")
}

/// Says that there is no SQLite here.
#[cfg(not(feature = "sql"))]
pub(super) fn write(_: &[PathBuf], _: &Path) -> Result<()> {
    anyhow::bail!("`--sqlite` needs SQLite, which this minder was built without (feature `sql`)")
}

#[cfg(feature = "sql")]
mod with {
    use anyhow::Context;

    use super::*;
    use crate::export::rows::{ATTEMPTS, JOBS, RUNS, Rows, Value, attempt, job};
    use crate::export::sql::Database;
    use crate::report::{format_error, message};
    use crate::ui::table::{Column, Table};
    use crate::verbs::log::{id, read, runs};
    use minder_record::store::RunEntry;

    /// What takes the rows of an answer.
    enum RowSink<'a> {
        Table(Table<'a>),
        Rows(Rows<'a>),
    }

    impl<'a> RowSink<'a> {
        fn new(out: &'a mut dyn Write, format: Option<Format>, names: &[String]) -> Result<Self> {
            Ok(match format {
                Some(format) => Self::Rows(Rows::new(out, format, names.to_vec())?),
                None => Self::Table(Table::new(out, names.iter().map(|name| Column::cut(name)).collect())),
            })
        }
    }

    pub(super) fn answer(
        out: &mut dyn Write,
        folders: &[PathBuf],
        query: &str,
        format: Option<Format>,
    ) -> Result<()> {
        let database = Database::in_memory()?;
        fill(&database, folders)?;
        let taker = database.query(
            query,
            move |names| RowSink::new(out, format, &names),
            |taker, values| {
                match taker {
                    RowSink::Rows(rows) => rows.row(values)?,
                    RowSink::Table(table) => {
                        let cells: Vec<Vec<u8>> = values.iter().map(Value::shown).collect();
                        table.row(&cells)?;
                    }
                }
                Ok(())
            },
        )?;
        if let RowSink::Table(table) = taker {
            table.finish()?;
        }
        Ok(())
    }

    pub(super) fn write(folders: &[PathBuf], path: &Path) -> Result<()> {
        let about = || format!("cannot write `{}`", path.display());
        let database = Database::create(path).with_context(about)?;
        let written = fill(&database, folders).and_then(|()| database.close());
        if written.is_err() {
            // It is ours, and nothing is in it.
            let _ = std::fs::remove_file(path);
        }
        written.with_context(about)
    }

    /// Puts all that is known of these runs into a database. One that cannot be read is named and
    /// left out.
    fn fill(database: &Database, folders: &[PathBuf]) -> Result<()> {
        for folder in folders {
            let run = match read(folder) {
                Ok(run) => run,
                Err(error) => {
                    message(&format_error(&error));
                    continue;
                }
            };
            let id = id(folder);
            let begun = run.attempts.iter().filter_map(|it| Some((it.begun.as_ref()?, it.over.as_ref())));
            database.insert(&ATTEMPTS, begun.map(|(begun, over)| attempt(begun, over)))?;
            database.insert(&JOBS, run.jobs.values().map(|ended| job(&id, ended)))?;
            let at = run.manifest.as_ref().ok().map(|manifest| manifest.at);
            let begun = run.attempts.iter().find_map(|attempt| Some(attempt.begun.as_ref()?.at));
            let at = at.or(begun).unwrap_or(0.0);
            let found = RunEntry { id, folder: folder.clone(), at, manifest: run.manifest };
            database.insert(&RUNS, [runs::facts(&found, &[]).0.values()])?;
        }
        Ok(())
    }
}
