//! The tables of `ARCHITECTURE.md` name files that exist, and items that these files define.

use super::{Finding, Tree};
use std::path::{Path, PathBuf};

/// The document with the tables. A row is: question, crate, files below its `src`, names. In place of
/// the crate there may be a directory of `bindings`, and then the files are below it.
const DOCUMENT: &str = "ARCHITECTURE.md";

/// The keywords that define an item with a name.
const DEFINING: [&str; 7] = ["fn", "struct", "enum", "trait", "const", "static", "type"];

/// Checks every row of the tables.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let text = tree.texts.get(Path::new(DOCUMENT)).map(String::as_str).unwrap_or_default();
    let rows = text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, row(line)?)));
    let errors = rows.flat_map(|(line, row)| row.errors(tree).into_iter().map(move |e| (line, e)));
    errors.map(|(line, error)| Finding::new(Path::new(DOCUMENT), line, error)).collect()
}

/// A row that leads to code.
struct Row {
    files: Vec<PathBuf>,
    names: Vec<String>,
}

/// Reads a row. Rows of other tables do not have a crate in the second cell.
fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let [_, package, files, names] = cells[..] else { return None };
    let src = match package {
        _ if package.starts_with("minder") => Path::new("crates").join(package).join("src"),
        _ if package.starts_with("bindings/") => PathBuf::from(package),
        _ => return None,
    };
    Some(Row {
        files: in_backticks(files).map(|file| src.join(file)).collect(),
        names: in_backticks(names).map(str::to_owned).collect(),
    })
}

/// Returns the texts between backticks.
fn in_backticks(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

impl Row {
    fn errors(&self, tree: &Tree) -> Vec<String> {
        let mut errors = Vec::new();
        for file in self.files.iter().filter(|file| !tree.texts.contains_key(*file)) {
            errors.push(format!("no file `{}`; hint: name the file of today", file.display()));
        }
        let found: Vec<&Path> =
            self.files.iter().filter(|file| tree.texts.contains_key(*file)).map(PathBuf::as_path).collect();
        let is_defined = |name: &str| {
            found.iter().any(|file| match tree.sources.get(*file) {
                Some(source) => defines(&source.code, name),
                None => foreign_defines(&tree.texts[*file], name),
            })
        };
        for name in &self.names {
            if !found.is_empty() && !name.split("::").all(is_defined) {
                errors.push(format!("its file does not define `{name}`; hint: name the item of today"));
            }
        }
        errors
    }
}

/// Returns whether code defines an item, or has an `impl` of it.
fn defines(code: &str, name: &str) -> bool {
    let words: Vec<&str> =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let is_item = words.windows(2).any(|pair| DEFINING.contains(&pair[0]) && pair[1] == name);
    is_item || code.lines().any(|line| line.starts_with("impl") && line.contains(name))
}

/// Returns whether a file of C, Ruby or Lisp defines a function, or a Ruby class.
fn foreign_defines(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let Some((before, after)) = line.split_once(name) else { return false };
        let is_whole = !after.starts_with(|c: char| c.is_alphanumeric() || "_-".contains(c));
        let is_c = before.ends_with([' ', '*']) && !line.starts_with(' ') && line.ends_with('{');
        is_whole && (["def", "class", "(defun"].contains(&before.trim()) || is_c && after.starts_with('('))
    })
}

#[cfg(test)]
mod tests {
    use super::super::code;
    use super::*;
    use std::collections::BTreeMap;

    fn errors(line: &str) -> Vec<String> {
        let files = [
            ("crates/minder/src/set.rs", "impl Set {\n    fn next(&self) {}\n}\nconst TABLE: u8 = 0;\n"),
            ("bindings/ruby/lib/set.rb", "  class Set\n    def next(id)\n      last\n"),
            ("bindings/ruby/ext/set.c", "static int set_next(int id) {\n    set_last(id);\n"),
            ("bindings/emacs/set.el", "(defun set--next (id)\n  (set--last id))\n"),
        ];
        let of = |(path, text): (&str, &str)| (PathBuf::from(path), text.to_owned());
        let texts = files.map(of).into_iter().collect();
        let sources = BTreeMap::from([(PathBuf::from(files[0].0), code::split(files[0].1))]);
        let tree = Tree { files: Vec::new(), texts, sources };
        row(line).map(|row| row.errors(&tree)).unwrap_or_default()
    }

    #[test]
    fn row_about_a_binding_is_checked_like_one_about_a_crate() {
        for (line, count) in [
            ("| a question | bindings/ruby | `lib/set.rb` | `Set`, `next` |", 0),
            ("| a question | bindings/ruby | `lib/set.rb` | `last` |", 1),
            ("| a question | bindings/ruby | `lib/sets.rb` | `next` |", 1),
            ("| a question | bindings/ruby | `ext/set.c` | `set_next` |", 0),
            ("| a question | bindings/ruby | `ext/set.c` | `set_last` |", 1),
            ("| a question | bindings/emacs | `set.el` | `set--next` |", 0),
            ("| a question | bindings/emacs | `set.el` | `set--last` |", 1),
        ] {
            assert_eq!(errors(line).len(), count, "{line}");
        }
    }

    #[test]
    fn row_is_accepted_when_file_and_names_exist() {
        assert!(errors("| a question | minder | `set.rs` | `Set::next`, `TABLE` |").is_empty());
        assert!(errors("| a term | its meaning |").is_empty());
    }

    #[test]
    fn row_is_reported_when_file_or_name_is_missing() {
        assert_eq!(errors("| a question | minder | `sets.rs` | `next` |").len(), 1);
        assert_eq!(errors("| a question | minder | `set.rs` | `Set::last` |").len(), 1);
    }
}
