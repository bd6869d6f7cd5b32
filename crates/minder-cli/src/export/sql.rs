//! Records as tables of SQLite, in memory for a query or in a database file.
//!
//! A query can read only these tables. Statements that write, attach another database or access a
//! file are refused twice: by `query_only` and by the authorizer.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, Statement, ToSql};

use minder_ui::rows::{Schema, Value};
use minder_ui::table::escape;

use super::rows::{ATTEMPTS, JOBS, RUNS, TRIES};

/// A database in an open transaction.
#[derive(Debug)]
pub(crate) struct Database(Connection);

impl Database {
    /// Creates a database in memory.
    pub(crate) fn in_memory() -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Connection::open_with_flags(":memory:", flags).map_err(sql_error)?;
        // Temporary tables of a query stay in memory as well.
        Self::start(database, "pragma temp_store = memory")
    }

    /// Creates a database in a file that must not exist.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        // Arguments may be secrets: only the owner can read the file.
        let file = minder_os::files::create_private_file(path);
        file.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => anyhow!("it exists already"),
            _ => error.into(),
        })?;
        // SQLite must not interpret the name: `:memory:` is a special one.
        let path = if path.is_relative() { Path::new(".").join(path) } else { path.to_owned() };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Connection::open_with_flags(path, flags).map_err(sql_error)?;
        Self::start(database, "pragma journal_mode = memory")
    }

    fn start(database: Connection, pragma: &str) -> Result<Self> {
        let tables: Vec<String> = [RUNS, ATTEMPTS, JOBS, TRIES].iter().map(create_table).collect();
        // One transaction: a file contains all rows or none.
        let script = format!("{pragma}; begin; {}", tables.concat());
        database.execute_batch(&script).map_err(sql_error)?;
        Ok(Self(database))
    }

    /// Adds rows to one of the tables.
    pub(crate) fn insert(&self, schema: &Schema, rows: impl IntoIterator<Item = Vec<Value>>) -> Result<()> {
        let marks = vec!["?"; schema.columns.len() + schema.forms.len()].join(",");
        let text = format!("insert into {} values ({marks})", schema.name);
        let mut statement = self.0.prepare(&text).map_err(sql_error)?;
        for values in rows {
            let plain: Vec<(Value, &str)> = values.iter().map(Value::plain).collect();
            let forms = schema.columns.iter().zip(&plain).filter(|(name, _)| schema.forms.contains(name));
            let forms: Vec<Value> = forms.map(|(_, (_, form))| form_of(form)).collect();
            let all = plain.iter().map(|(value, _)| value).chain(&forms).map(Parameter);
            statement.execute(rusqlite::params_from_iter(all)).map_err(sql_error)?;
        }
        Ok(())
    }

    /// Commits the transaction and closes the file.
    pub(crate) fn close(self) -> Result<()> {
        self.0.execute_batch("commit").map_err(sql_error)?;
        self.0.close().map_err(|(_, error)| sql_error(error))
    }

    /// Runs a query. `begin` gets the names of the columns and returns the sink; `row` adds a row to it.
    pub(crate) fn query<T>(
        mut self,
        text: &str,
        begin: impl FnOnce(Vec<String>) -> Result<T>,
        mut row: impl FnMut(&mut T, &[Value]) -> Result<()>,
    ) -> Result<T> {
        self.0.execute_batch("commit; pragma query_only = true").map_err(sql_error)?;
        self.0.authorizer(Some(authorize)).map_err(sql_error)?;
        let mut statement = self.0.prepare(text).map_err(|error| query_error(error, text))?;
        if statement.column_count() == 0 || !statement.readonly() {
            bail!("the query selects nothing");
        }
        let names = names(&statement);
        let count = names.len();
        let mut sink = begin(names)?;
        let mut rows = statement.query([]).map_err(|error| query_error(error, text))?;
        while let Some(next) = rows.next().map_err(|error| query_error(error, text))? {
            let values: Vec<Value> =
                (0..count).map(|index| next.get_ref(index).map_or(Value::Null, value)).collect();
            row(&mut sink, &values)?;
        }
        Ok(sink)
    }
}

fn names(statement: &Statement<'_>) -> Vec<String> {
    statement.column_names().map(str::to_owned).collect()
}

fn form_of(form: &str) -> Value {
    if form.is_empty() { Value::Null } else { Value::Text(form.to_owned()) }
}

/// Returns the statement that creates a table. Columns have no type, so that values keep theirs.
fn create_table(schema: &Schema) -> String {
    let forms = schema.forms.iter().map(|name| format!("{name}_form"));
    let columns: Vec<String> = schema
        .columns
        .iter()
        .map(|name| (*name).to_owned())
        .chain(forms)
        .map(|name| format!("\"{name}\""))
        .collect();
    format!("create table {} ({});", schema.name, columns.join(", "))
}

/// Authorizes what a query may do: read, compute and recurse. Functions that load code, or that exist
/// only for the tests of SQLite, are refused.
fn authorize(context: AuthContext<'_>) -> Authorization {
    const REFUSED: [&str; 3] = ["load_extension", "fts3_tokenizer", "writefile"];
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name }
            if !REFUSED.iter().any(|name| name.eq_ignore_ascii_case(function_name)) =>
        {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

/// A value as a parameter of a statement.
struct Parameter<'a>(&'a Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => rusqlite::types::Null.into(),
            Value::Flag(flag) => (*flag).into(),
            Value::Integer(number) => (*number).into(),
            Value::Real(number) => (*number).into(),
            Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Value::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Value::List(_) => self.0.plain().0.display_bytes().into(),
        })
    }
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        // After a cast, a text can contain any bytes.
        ValueRef::Text(text) => String::from_utf8(text.to_vec())
            .map_or_else(|error| Value::Bytes(error.into_bytes()), Value::Text),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

/// Converts an error to one line.
fn sql_error(error: rusqlite::Error) -> anyhow::Error {
    let text = match error {
        rusqlite::Error::SqlInputError { msg, .. } | rusqlite::Error::SqliteFailure(_, Some(msg)) => msg,
        rusqlite::Error::MultipleStatement => "more than one statement".to_owned(),
        other => other.to_string(),
    };
    anyhow!("{}", escape(text.as_bytes()))
}

/// Converts an error of a query. A refused query gets a message with what is allowed.
fn query_error(error: rusqlite::Error, query: &str) -> anyhow::Error {
    let denied = error.sqlite_error_code() == Some(rusqlite::ErrorCode::AuthorizationForStatementDenied);
    let error = sql_error(error);
    let query = escape(query.trim().as_bytes());
    if denied {
        return anyhow!("`{query}` is refused: a query may only read runs, attempts, jobs and tries");
    }
    error.context(format!("cannot answer `{query}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::rows::job;
    use minder_record::event::{JobFinished, OsBytes};

    fn database_with_jobs() -> Database {
        let database = Database::in_memory().expect("open database");
        let args: [&[&[u8]]; 3] = [&[b"a"], &[b"\xff"], &[b"b", b"c"]];
        for (number, args) in args.iter().enumerate() {
            let args = args.iter().map(|arg| OsBytes(arg.to_vec())).collect();
            let ended = JobFinished {
                job: number as u64 + 1,
                args,
                wall: 0.5,
                out: u64::MAX,
                ..JobFinished::default()
            };
            database.insert(&JOBS, [job("61c0aa00", &ended, None)]).expect("insert row");
        }
        database
    }

    fn answer(query: &str) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
        database_with_jobs().query(
            query,
            |names| Ok((names, Vec::new())),
            |sink, row| {
                sink.1.push(row.to_vec());
                Ok(())
            },
        )
    }

    #[test]
    fn query_returns_values_with_their_types() {
        let (names, rows) =
            answer("select job, args, args_form, wall, out, leaked, exit from jobs").expect("run query");
        assert_eq!(names, ["job", "args", "args_form", "wall", "out", "leaked", "exit"]);
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(rows[0][..4], [Value::Integer(1), text("a"), text("text"), Value::Real(0.5)]);
        assert_eq!(rows[0][4..], [Value::Integer(i64::MAX), Value::Integer(0), Value::Null]);
        assert_eq!(rows[1][1..3], [Value::Bytes(b"\xff".to_vec()), text("bytes")]);
        assert_eq!(rows[2][1..3], [text(r#"["b","c"]"#), text("json")]);
    }

    #[test]
    fn query_may_compute_and_recurse() {
        for query in [
            "select count(*), sum(wall), max(length(args)) from jobs group by run order by 1",
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < 9) select i from n",
            "select j.value from jobs, json_each(args) j where args_form = 'json'",
            "select name, sql from sqlite_schema;",
            "values (1) -- and no more",
            "select row_number() over (order by wall desc) from jobs",
        ] {
            answer(query).expect(query);
        }
    }

    #[test]
    fn query_is_refused_if_it_does_more_than_read() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let file = dir.path().join("x.db");
        let file = file.display();
        for query in [
            format!("attach '{file}' as x"),
            format!("vacuum into '{file}'"),
            "pragma query_only = false".to_owned(),
            "pragma temp_store_directory = '/'".to_owned(),
            "select * from pragma_database_list".to_owned(),
            "delete from jobs".to_owned(),
            "insert into jobs select * from jobs returning job".to_owned(),
            "create temp table x(y)".to_owned(),
            "create virtual table x using fts3(y)".to_owned(),
            "select load_extension('x')".to_owned(),
            "select 1; delete from jobs".to_owned(),
            "begin".to_owned(),
            "detach main".to_owned(),
            "explain select 1; attach 'x' as y".to_owned(),
            String::new(),
            "select nothing".to_owned(),
            "sel\nect".to_owned(),
        ] {
            let error = format!("{:#}", answer(&query).expect_err(&query));
            assert!(!error.contains('\n'), "{error}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).expect("read temp dir").count(), 0);
        let error = format!("{:#}", answer("delete from jobs").expect_err("run refused query"));
        assert_eq!(
            error,
            "`delete from jobs` is refused: a query may only read runs, attempts, jobs and tries"
        );
    }

    #[test]
    fn create_refuses_an_existing_file() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let path = dir.path().join("jobs.db");
        let database = Database::create(&path).expect("create database file");
        database.insert(&JOBS, [job("61c0aa00", &JobFinished::default(), None)]).expect("insert row");
        database.close().expect("commit");
        let read = Connection::open(&path).expect("open database");
        let count: i64 =
            read.query_row("select count(*) from jobs", [], |row| row.get(0)).expect("count rows");
        assert_eq!(count, 1);
        assert_eq!(
            Database::create(&path).expect_err("create existing file").to_string(),
            "it exists already"
        );
    }
}
