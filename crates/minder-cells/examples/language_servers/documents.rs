//! The files that the servers look at, and the places in them where completions are asked for.

use std::path::Path;

use tempfile::TempDir;

use crate::Failure;

/// A caret is a place where completions are asked for. It is not part of the file.
const CPP: &str = "\
#include <map>
#include <string>
#include <vector>

int main() {
    std::vector<std::string> names = {\"Ada\"};
    std::map<std::string, int> ages;
    names.^size();
    ages.^size();
    std::^string text;
    ^return 0;
}
";

const PYTHON: &str = "\
import collections
import os

names = [\"Ada\"]
ages = collections.^OrderedDict()
names.^append(os.^name)
ages.^clear()
";

/// The language of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Cpp,
    Python,
}

impl Language {
    /// Returns the language of this name, which is that of the protocol.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Cpp, Self::Python].into_iter().find(|language| language.id() == name)
    }

    /// Returns the name of the language in the protocol.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Cpp => "cpp",
            Self::Python => "python",
        }
    }

    fn file_name(self) -> &'static str {
        match self {
            Self::Cpp => "main.cpp",
            Self::Python => "main.py",
        }
    }

    fn marked_text(self) -> &'static str {
        match self {
            Self::Cpp => CPP,
            Self::Python => PYTHON,
        }
    }

    /// Returns the text of the file.
    pub(crate) fn text(self) -> String {
        self.marked_text().replace('^', "")
    }

    /// Returns the lines and columns where completions are asked for, both from zero.
    pub(crate) fn positions(self) -> Vec<(usize, usize)> {
        let lines = self.marked_text().lines().enumerate();
        let positions = lines.flat_map(|(number, line)| {
            line.match_indices('^').enumerate().map(move |(carets, (at, _))| (number, at - carets))
        });
        positions.collect()
    }
}

/// A directory with a file of each language, which is removed at the end.
#[derive(Debug)]
pub(crate) struct Documents {
    directory: TempDir,
}

impl Documents {
    pub(crate) fn create() -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("language-servers").tempdir()?;
        for language in [Language::Cpp, Language::Python] {
            std::fs::write(directory.path().join(language.file_name()), language.text())?;
        }
        // With it `clangd --background-index` has an index, and asks whether it may report progress.
        let compile = serde_json::json!([{
            "directory": directory.path(), "arguments": ["c++", "-c", "main.cpp"], "file": "main.cpp",
        }]);
        std::fs::write(directory.path().join("compile_commands.json"), compile.to_string())?;
        Ok(Self { directory })
    }

    /// Returns the directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the URI of the directory.
    pub(crate) fn root_uri(&self) -> String {
        uri(self.path())
    }

    /// Returns the URI of the file of a language.
    pub(crate) fn uri(&self, language: Language) -> String {
        uri(&self.path().join(language.file_name()))
    }
}

/// Returns the URI of a path (RFC 8089).
fn uri(path: &Path) -> String {
    let path = path.to_string_lossy().replace('\\', "/");
    let root = if path.starts_with('/') { "" } else { "/" };
    let encoded = path.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    });
    format!("file://{root}{}", encoded.collect::<String>())
}
