//! Measures how alike two words are, to suggest a word in place of one that is not known.

use std::cmp::Reverse;

use strsim::osa_distance;

/// The maximum number of typing errors between a word and its suggestion. There is at most one error
/// for each three letters.
const ERRORS_MAX: usize = 2;

/// Returns the word that was meant by `typed`: the nearest one, if it is near. Of several equally near
/// words, the one with the longest common beginning counts.
pub(crate) fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().filter_map(|word| {
        let letters = typed.chars().count().max(word.chars().count());
        let errors = osa_distance(typed, word);
        let common = typed.chars().zip(word.chars()).take_while(|(one, other)| one == other).count();
        (errors <= ERRORS_MAX.min(letters / 3)).then_some((errors, Reverse(common), word))
    });
    near.min_by_key(|(errors, common, _)| (*errors, *common)).map(|(.., word)| word)
}

/// Returns whether a long flag, without its dashes, is a kind of another one: the other one is its last
/// part, as `load` is of `max-load`. `no-tag` is not a kind of `tag`.
pub(crate) fn is_kind_of(flag: &str, other: &str) -> bool {
    !flag.starts_with("no-") && flag.strip_suffix(other).is_some_and(|rest| rest.ends_with('-'))
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
