//! Measures how alike two words are, to suggest a word in place of one that is not known.

use std::cmp::Reverse;

use strsim::osa_distance;

/// The maximum number of typing errors between a word and its suggestion. There is at most one error
/// for each three letters, without those of the first parts that both have: `max-files` is not `max-lines`.
const ERRORS_MAX: usize = 2;

/// Returns the word that was meant by `typed`: the nearest one, if it is near. Of several equally near
/// words, the one with the longest common beginning counts.
pub(crate) fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().filter_map(|word| {
        let letters = typed.chars().count().max(word.chars().count());
        let errors = osa_distance(typed, word);
        let common = typed.chars().zip(word.chars()).take_while(|(one, other)| one == other).count();
        let shared = typed.chars().take(common).collect::<Vec<_>>();
        let shared = shared.iter().rposition(|letter| *letter == '-').map_or(0, |dash| dash + 1);
        let is_near = errors <= ERRORS_MAX.min((letters - shared) / 3);
        // A word with two errors that begins with another letter is another word: `old-file` is not
        // `log-file`.
        let begins = errors < 2 || common > 0;
        (is_near && begins).then_some((errors, Reverse(common), word))
    });
    near.min_by_key(|(errors, common, _)| (*errors, *common)).map(|(.., word)| word)
}

/// Returns whether two words have the same letters, perhaps in another order.
pub(crate) fn have_same_letters(one: &str, other: &str) -> bool {
    let sorted = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    sorted(one) == sorted(other)
}

/// Returns what a long flag asks the number of, both without dashes: `load` for `max-load`. Most other
/// first parts change the meaning: an `idle-timeout` is not the `timeout` of a job.
pub(crate) fn counted(flag: &str) -> Option<&str> {
    ["max-", "num-", "number-of-"].into_iter().find_map(|first| flag.strip_prefix(first))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("max-porcs", Some("max-procs")),
            ("max-pages", None),
            ("line", Some("lines")),
            ("rm", None),
            ("rum", Some("run")),
            ("lgo", Some("log")),
            ("piles", Some("files")),
            ("tilex", None),
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
