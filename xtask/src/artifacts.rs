//! The programs that cargo builds, from its messages in JSON.

use crate::run;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, and the directory of its package, in which cargo runs tests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) dir: PathBuf,
    /// `true` if it contains tests.
    pub(crate) is_test: bool,
}

/// Runs a cargo command, such as `cargo test --no-run`; returns all programs that it names.
pub(crate) fn programs(cargo: &mut Command) -> Result<Vec<Program>> {
    let output = run::read(cargo.args(["--quiet", "--message-format=json-render-diagnostics"]))?;
    Ok(output.lines().filter_map(program).collect())
}

/// Reads one message of cargo. The profile says whether a program contains tests; the target only
/// says whether it may.
fn program(message: &str) -> Option<Program> {
    let text = |key: &str| {
        let (_, rest) = message.split_once(&format!("\"{key}\":\""))?;
        Some(rest.split_once('"')?.0)
    };
    let dir = Path::new(text("manifest_path")?).parent()?.to_owned();
    let profile = message.split_once("\"profile\":{")?.1.split_once('}')?.0;
    Some(Program { path: text("executable")?.into(), dir, is_test: profile.contains("\"test\":true") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_cargo_are_read() {
        let message = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/a b/tests/Cargo.toml","#,
            r#""target":{"test":true},"profile":{"opt_level":"0","test":true},"#,
            r#""executable":"/a b/it-1","fresh":true}"#
        );
        let read = Program { path: "/a b/it-1".into(), dir: "/a b/tests".into(), is_test: true };
        assert_eq!(program(message), Some(read.clone()));
        let other = message.replace("0\",\"test\":true", "0\",\"test\":false");
        assert_eq!(program(&other), Some(Program { is_test: false, ..read }));
        assert_eq!(program(&message.replace("\"/a b/it-1\"", "null")), None);
    }
}
