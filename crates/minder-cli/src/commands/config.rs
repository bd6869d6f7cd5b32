//! `minder config`: the settings of `minder run` that are in force, and where each comes from.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use crate::flags::ConfigFlags;
use crate::settings::{FileKind, Gathered, LookedAt, Setting, Source, gather};
use minder_ui::table::{Column, Table, escape};

/// Prints the settings as text or as JSON.
pub(crate) fn run(out: &mut dyn Write, flags: &ConfigFlags) -> Result<()> {
    let gathered = gather(flags.profile.as_deref(), &[])?;
    if flags.json { Ok(writeln!(out, "{:#}", document(&gathered))?) } else { print(out, &gathered) }
}

fn print(out: &mut dyn Write, gathered: &Gathered) -> Result<()> {
    let Gathered { files, profile, merged, .. } = gathered;
    if !merged.in_force.is_empty() {
        let mut table = Table::new(out, ["setting", "value", "source"].map(Column::left).to_vec());
        for Setting { name, value, source, .. } in &merged.in_force {
            table.row(&[name.as_str(), value, &source.to_string()])?;
        }
        table.finish()?;
        writeln!(out)?;
    }
    if !merged.ignored.is_empty() {
        let mut table = Table::new(out, ["ignored", "value", "source", "why"].map(Column::left).to_vec());
        for (Setting { name, value, source, .. }, why) in &merged.ignored {
            table.row(&[name.as_str(), value, &source.to_string(), why])?;
        }
        table.finish()?;
        writeln!(out)?;
    }
    for LookedAt { kind, path, unused } in files {
        let unused = unused.map(|why| format!(" ({why})")).unwrap_or_default();
        let path = escape(path.display().to_string().as_bytes());
        writeln!(out, "{} file: {path}{unused}", kind_name(*kind))?;
    }
    if !files.iter().any(|file| file.kind == FileKind::Project) {
        writeln!(out, "project file: none in this directory and those above it")?;
    }
    if let Some((name, variable)) = profile {
        let by = variable.map(|variable| format!(" ({variable})")).unwrap_or_default();
        writeln!(out, "profile: {}{by}", escape(name.as_bytes()))?;
    }
    Ok(())
}

fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Project => "project",
        FileKind::User => "user",
    }
}

fn document(gathered: &Gathered) -> Value {
    let Gathered { files, profile, merged, .. } = gathered;
    let file = |file: &LookedAt| {
        let path = file.path.to_string_lossy();
        json!({ "kind": kind_name(file.kind), "path": path, "unused": file.unused })
    };
    let in_force: Vec<Value> = merged.in_force.iter().map(|it| object(it, None)).collect();
    let ignored: Vec<Value> = merged.ignored.iter().map(|(it, why)| object(it, Some(why))).collect();
    json!({
        "profile": profile.as_ref().map(|(name, _)| name),
        "files": files.iter().map(file).collect::<Vec<_>>(),
        "settings": in_force,
        "ignored": ignored,
    })
}

fn object(setting: &Setting, why: Option<&str>) -> Value {
    let (file, line, variable) = match &setting.source {
        Source::File { path, line } => (Some(path.to_string_lossy()), Some(line), None),
        Source::Variable(name) => (None, None, Some(name)),
    };
    let mut object = json!({
        "setting": setting.name, "value": setting.value, "file": file, "line": line, "variable": variable,
    });
    if let Some(why) = why {
        object["why"] = why.into();
    }
    object
}
