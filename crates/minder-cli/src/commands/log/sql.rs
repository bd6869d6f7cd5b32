//! `--sql` and `--sqlite`: queries, and a database for other programs.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;

use minder_ui::rows::Format;

/// Answers a query from the records of these runs.
#[cfg(feature = "sql")]
pub(super) fn answer(
    out: &mut dyn Write,
    dirs: &[PathBuf],
    query: &str,
    format: Option<Format>,
) -> Result<()> {
    with_sqlite::answer(out, dirs, query, format)
}

/// Writes the records of these runs into a new database.
#[cfg(feature = "sql")]
pub(super) fn write(dirs: &[PathBuf], path: &Path) -> Result<()> {
    with_sqlite::write(dirs, path)
}

/// Fails: this build has no SQLite.
#[cfg(not(feature = "sql"))]
pub(super) fn answer(_: &mut dyn Write, _: &[PathBuf], _: &str, _: Option<Format>) -> Result<()> {
    anyhow::bail!("`--sql` needs SQLite, which this minder was built without (feature `sql`)")
}

/// Fails: this build has no SQLite.
#[cfg(not(feature = "sql"))]
pub(super) fn write(_: &[PathBuf], _: &Path) -> Result<()> {
    anyhow::bail!("`--sqlite` needs SQLite, which this minder was built without (feature `sql`)")
}

#[cfg(feature = "sql")]
mod with_sqlite {
    use anyhow::Context;

    use super::super::runs;
    use super::super::select::{read_run, run_id};
    use super::*;
    use crate::export::rows::{ATTEMPTS, JOBS, RUNS, TRIES, attempt, job, tried};
    use crate::export::sql::Database;
    use crate::ui::{format_error, message};
    use minder_record::store::RunEntry;
    use minder_ui::rows::{Rows, Value};
    use minder_ui::table::{Column, Table};

    /// Writes the rows of an answer.
    enum RowSink<'a> {
        Table(Table<'a>),
        Rows(Rows<'a>),
    }

    impl<'a> RowSink<'a> {
        fn new(out: &'a mut dyn Write, format: Option<Format>, names: &[String]) -> Result<Self> {
            Ok(match format {
                Some(format) => Self::Rows(Rows::new(out, format, names.to_vec())?),
                None => {
                    Self::Table(Table::new(out, names.iter().map(|name| Column::truncated(name)).collect()))
                }
            })
        }
    }

    pub(super) fn answer(
        out: &mut dyn Write,
        dirs: &[PathBuf],
        query: &str,
        format: Option<Format>,
    ) -> Result<()> {
        let database = Database::in_memory()?;
        fill(&database, dirs)?;
        let sink = database.query(
            query,
            move |names| RowSink::new(out, format, &names),
            |sink, values| {
                match sink {
                    RowSink::Rows(rows) => rows.row(values)?,
                    RowSink::Table(table) => {
                        let cells: Vec<Vec<u8>> = values.iter().map(Value::display_bytes).collect();
                        table.row(&cells)?;
                    }
                }
                Ok(())
            },
        )?;
        if let RowSink::Table(table) = sink {
            table.finish()?;
        }
        Ok(())
    }

    pub(super) fn write(dirs: &[PathBuf], path: &Path) -> Result<()> {
        let context = || format!("cannot write `{}`", path.display());
        let database = Database::create(path).with_context(context)?;
        let written = fill(&database, dirs).and_then(|()| database.close());
        if written.is_err() {
            // This process created the file, and nothing was committed.
            let _ = std::fs::remove_file(path);
        }
        written.with_context(context)
    }

    /// Inserts these runs into a database. A run that cannot be read is skipped with a message.
    fn fill(database: &Database, dirs: &[PathBuf]) -> Result<()> {
        for dir in dirs {
            let run = match read_run(dir) {
                Ok(run) => run,
                Err(error) => {
                    message(&format_error(&error));
                    continue;
                }
            };
            let id = run_id(dir);
            let attempts = run
                .attempts
                .iter()
                .filter_map(|it| Some(attempt(it.started.as_ref()?, it.host.as_ref(), it.finished.as_ref())));
            database.insert(&ATTEMPTS, attempts)?;
            database.insert(&TRIES, run.tries.values().flatten().map(|event| tried(&id, event)))?;
            database
                .insert(&JOBS, run.jobs.values().map(|ended| job(&id, ended, run.place_of(ended.job))))?;
            let at = run.manifest.as_ref().ok().map(|manifest| manifest.at);
            let started_at = run.attempts.iter().find_map(|attempt| Some(attempt.started.as_ref()?.at));
            let at = at.or(started_at).unwrap_or(0.0);
            let entry = RunEntry { id, dir: dir.clone(), at, manifest: run.manifest };
            database.insert(&RUNS, [runs::facts(&entry, &[]).0.values()])?;
        }
        Ok(())
    }
}
