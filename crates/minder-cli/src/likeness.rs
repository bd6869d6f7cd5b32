//! Measures how alike two words are, to suggest a word in place of one that is not known.

use std::cmp::Reverse;

/// The maximum number of typing errors between a word and its suggestion. There is at most one error
/// for each three letters.
const ERRORS_MAX: usize = 2;

/// Returns the word that was meant by `typed`: the nearest one, if it is near. Of several equally near
/// words, the one with the longest common beginning counts.
pub(crate) fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().filter_map(|word| {
        let letters = typed.chars().count().max(word.chars().count());
        let errors = distance(typed, word);
        let common = typed.chars().zip(word.chars()).take_while(|(one, other)| one == other).count();
        (errors <= ERRORS_MAX.min(letters / 3)).then_some((errors, Reverse(common), word))
    });
    near.min_by_key(|(errors, common, _)| (*errors, *common)).map(|(.., word)| word)
}

/// Returns the number of letters that were inserted, removed, replaced or swapped with a neighbour to
/// get from one word to the other: the Damerau-Levenshtein distance, in which no letter changes twice.
pub(crate) fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replaced = last[j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut errors = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                errors = errors.min(before_last[j - 2] + 1);
            }
            row.push(errors);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_typing_errors() {
        for (from, to, errors) in [
            ("", "", 0),
            ("", "ab", 2),
            ("jobs", "jobs", 0),
            ("jbos", "jobs", 1),
            ("rum", "run", 1),
            ("retires", "retries", 1),
            ("joblg", "joblog", 1),
            ("tagg", "tag", 1),
            ("kitten", "sitting", 3),
            ("ca", "abc", 3),
        ] {
            assert_eq!((distance(from, to), distance(to, from)), (errors, errors), "{from} {to}");
        }
    }

    #[test]
    fn nearest_suggests_near_words_only() {
        let words = [
            "run",
            "log",
            "jobs",
            "keep-order",
            "line-buffer",
            "quiet",
            "max-procs",
            "files",
            "er",
            "link",
            "lines",
        ];
        for (typed, meant) in [
            ("rnu", Some("run")),
            ("rn", Some("run")),
            ("jbos", Some("jobs")),
            ("keep_ordr", Some("keep-order")),
            ("linebuffer", Some("line-buffer")),
            ("max-proc", Some("max-procs")),
            ("line", Some("lines")),
            ("rm", None),
            ("ls", None),
            ("junit", None),
            ("version", None),
            ("fail-fast", None),
            ("keep-going", None),
            ("max-parallel", None),
        ] {
            assert_eq!(nearest(typed, words), meant, "{typed}");
        }
    }
}
