//! The first words of doc comments. "The longest wait" describes an item. "How long to wait" leaves
//! the reader to complete the sentence.

use super::{Finding, Tree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The words with which few doc comments may begin.
const QUESTION_WORDS: [&str; 7] = ["What", "Where", "Whether", "How", "Who", "Which", "When"];

/// The highest share of such doc comments in the whole tree, in percent.
const SHARE_MAX: f64 = 6.0;

/// The doc comments of a crate, or of all crates.
#[derive(Clone, Copy, Default)]
struct Tally {
    comments: usize,
    questions: usize,
}

impl Tally {
    /// Counts the doc comments of a Rust file.
    fn of(text: &str) -> Self {
        let mut tally = Self::default();
        let mut is_inside = false;
        for line in text.lines().map(str::trim_start) {
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            if let Some(first) = comment.filter(|text| !is_inside && !text.trim().is_empty()) {
                let word = first.trim_start().split(|c: char| !c.is_alphanumeric()).next();
                tally.comments += 1;
                tally.questions += usize::from(word.is_some_and(|word| QUESTION_WORDS.contains(&word)));
            }
            is_inside = comment.is_some();
        }
        tally
    }

    fn add(&mut self, other: Self) {
        self.comments += other.comments;
        self.questions += other.questions;
    }

    /// Returns the share of doc comments that begin with a question word, in percent.
    fn share(self) -> f64 {
        100.0 * self.questions as f64 / self.comments.max(1) as f64
    }
}

/// Checks the Rust files of the tree.
pub(crate) fn check(tree: &Tree) -> Option<Finding> {
    let files = tree.sources.keys().map(|file| (file.as_path(), tree.texts[file].as_str()));
    finding(files)
}

fn finding<'a>(files: impl IntoIterator<Item = (&'a Path, &'a str)>) -> Option<Finding> {
    let mut crates: BTreeMap<PathBuf, Tally> = BTreeMap::new();
    let mut all = Tally::default();
    for (file, text) in files {
        let tally = Tally::of(text);
        crates.entry(file.components().take(2).collect()).or_default().add(tally);
        all.add(tally);
    }
    if all.share() <= SHARE_MAX {
        return None;
    }
    let mut above: Vec<_> = crates.iter().filter(|(_, tally)| tally.share() > SHARE_MAX).collect();
    above.sort_by(|(_, one), (_, other)| other.share().total_cmp(&one.share()));
    let shares: Vec<_> =
        above.iter().map(|(name, tally)| format!("{} {:.1} %", name.display(), tally.share())).collect();
    let what = format!(
        "{:.1} % begin with {}, {SHARE_MAX} % allowed: {}; hint: describe the item, see *Writing* in \
         CONTRIBUTING.md",
        all.share(),
        QUESTION_WORDS.join(", "),
        shares.join(", ")
    );
    Some(Finding::new(Path::new("doc comments"), 1, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doc_comments_are_counted_by_their_first_words() {
        let text = "//! What it does.\n//! Where it is.\n\n/// Whatever is left.\n/// How.\nfn f() {}\n\
                    struct S {\n    /// How many.\n    a: u8, // What.\n    ///\n    b: u8,\n}\n";
        let Tally { comments, questions } = Tally::of(text);
        assert_eq!((comments, questions), (3, 2));
    }

    #[test]
    fn share_above_the_limit_is_reported_with_its_crates() {
        let clauses = "/// The size.\na\n".repeat(94);
        let questions = "/// How large.\na\n".repeat(6);
        let one = Path::new("crates/one/src/lib.rs");
        let two = Path::new("crates/two/src/lib.rs");
        assert_eq!(finding([(one, clauses.as_str()), (two, questions.as_str())]), None);
        let more = format!("{questions}/// Which.\n");
        let found = finding([(one, clauses.as_str()), (two, more.as_str())]).unwrap();
        assert!(found.what.starts_with("6.9 % begin with "), "{}", found.what);
        assert!(found.what.contains(" allowed: crates/two 100.0 %; "), "{}", found.what);
    }
}
