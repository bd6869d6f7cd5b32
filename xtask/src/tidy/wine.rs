//! The lists of tests that run under Wine name every test module that is compiled for Windows.

use super::code::{self, Family};
use super::{Finding, Tree};
use crate::wine::modules::{DIFFERING, PORTABLE};
use std::collections::BTreeSet;
use std::path::Path;

/// The file of the lists.
const LISTS: &str = "xtask/src/wine/modules.rs";

/// Files that declare test modules, the prefix of those in test names, and a module among them that
/// the lists name by its own modules.
const DECLARING: [(&str, &str, &str); 2] =
    [("tests/it/main.rs", "", "cli"), ("tests/it/cli.rs", "cli::", "")];

/// Checks the lists.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut modules = BTreeSet::new();
    for (file, prefix, parent) in DECLARING {
        let Some(source) = tree.sources.get(Path::new(file)) else { continue };
        for (name, mod_line) in code::scan(&source.code).modules {
            let for_windows = mod_line.family != Some(Family::Unix);
            if for_windows && name != parent && has_tests(tree, file, &name) {
                modules.insert(format!("{prefix}{name}"));
            }
        }
    }
    compare(&modules, &names(DIFFERING), &names(PORTABLE))
}

/// Returns whether a module that a file declares, or one below it, has tests.
fn has_tests(tree: &Tree, declaring: &str, name: &str) -> bool {
    let dir = declaring.trim_end_matches("main.rs").trim_end_matches(".rs");
    let below = Path::new(dir).join(name);
    let is_part = |file: &Path| file == below.with_extension("rs") || file.starts_with(&below);
    tree.texts.iter().any(|(file, text)| is_part(file) && text.contains("#[test]"))
}

fn names(list: &[(&str, &str)]) -> Vec<String> {
    list.iter().map(|(name, _)| (*name).to_string()).collect()
}

fn compare(modules: &BTreeSet<String>, differing: &[String], portable: &[String]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |what: String| found.push(Finding::new(Path::new(LISTS), 1, what));
    for module in modules {
        let places = differing.iter().chain(portable).filter(|name| *name == module).count();
        if places == 0 {
            add(format!("the test module `{module}` is in no list; hint: add it to one of the two"));
        } else if places > 1 {
            add(format!("the test module `{module}` has {places} entries; hint: leave one"));
        }
    }
    for name in differing.iter().chain(portable).filter(|name| !modules.contains(*name)) {
        add(format!("`{name}` is not a test module that is compiled for Windows; hint: remove the entry"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_module_has_one_entry() {
        let names = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let modules: BTreeSet<String> = names(&["a", "b", "c"]).into_iter().collect();
        let findings = |differing: &[&str], portable: &[&str]| {
            let found = compare(&modules, &names(differing), &names(portable));
            found.into_iter().map(|finding| finding.what).collect::<Vec<_>>()
        };
        assert_eq!(findings(&["a"], &["b", "c"]), [""; 0]);
        assert!(findings(&["a"], &["b"])[0].contains("`c` is in no list"));
        assert!(findings(&["a", "b"], &["b", "c"])[0].contains("`b` has 2 entries"));
        assert!(findings(&["a", "b", "c"], &["d"])[0].contains("`d` is not a test module"));
    }
}
