//! Names of files that a command writes in addition to stdout.

use std::ffi::OsString;
use std::path::PathBuf;

/// Parses the name of a file.
///
/// # Errors
/// It is `-`, which means stdout to other programs. Tables and rows are written there.
pub(super) fn file_name(name: OsString) -> Result<PathBuf, String> {
    if name == "-" {
        return Err("`-` does not mean stdout here: expected a file (`./-` for one of this name)".to_owned());
    }
    Ok(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_is_not_stdout() {
        assert_eq!(file_name("./-".into()), Ok(PathBuf::from("./-")));
        assert!(file_name("-".into()).is_err());
    }
}
