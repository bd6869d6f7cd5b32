//! The characters beyond ASCII in what people read, and what takes their place in a locale without them.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The substitutes of characters in a locale without UTF-8.
const REPLACEMENTS: [(&str, &str); 7] =
    [(" · ", ", "), ("·", ","), ("…", "..."), ("→", "->"), ("×", "x"), ("±", "+-"), ("µs", "us")];

/// The characters that the locale has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbols {
    /// All of them.
    Unicode,
    /// The 95 printable ones of ASCII.
    Ascii,
}

impl Symbols {
    /// Returns those of the locale. A Windows console has all characters, whatever its code page is: text
    /// is written to it as UTF-16. So on Windows only a variable that names another locale takes them away.
    pub fn of_locale() -> Self {
        Self::of(variable, if std::env::consts::FAMILY == "windows" { Self::Unicode } else { Self::Ascii })
    }

    /// Returns those that GNU programs have: without a variable, the locale is `C`, also on Windows.
    pub fn of_gnu_locale() -> Self {
        Self::of(variable, Self::Ascii)
    }

    /// The first of the three variables that is not empty decides, as in setlocale(3).
    fn of(variable: impl Fn(&str) -> Option<String>, without: Self) -> Self {
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|value| !value.is_empty());
        match locale {
            Some(locale) if locale.to_ascii_lowercase().replace('-', "").contains("utf8") => Self::Unicode,
            Some(_) => Self::Ascii,
            None => without,
        }
    }

    /// Returns `unicode` or `ascii`.
    pub fn pick<T>(self, unicode: T, ascii: T) -> T {
        match self {
            Self::Unicode => unicode,
            Self::Ascii => ascii,
        }
    }

    /// Replaces the characters of minder's own texts that the locale lacks. A name that contains one of
    /// them is changed as well.
    pub fn convert(self, text: &str) -> Cow<'_, str> {
        if self == Self::Unicode || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let replace = |text: String, (symbol, ascii): &(&str, &str)| text.replace(symbol, ascii);
        Cow::Owned(REPLACEMENTS.iter().fold(text.to_owned(), replace))
    }

    /// Truncates a text to this width. An ellipsis replaces the rest.
    pub fn shorten(self, text: &str, width: usize) -> String {
        if text.width() <= width {
            return text.to_owned();
        }
        let ellipsis = self.pick("…", &"..."[..width.clamp(1, 3)]);
        let mut left = width.saturating_sub(ellipsis.width());
        let fits = |c: &char| {
            let wide = c.width().unwrap_or(0);
            let fits = wide <= left;
            left = left.saturating_sub(wide);
            fits
        };
        text.chars().take_while(fits).chain(ellipsis.chars()).collect()
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: Option<&str>, ctype: Option<&str>, lang: Option<&str>) -> Symbols {
        let value = |name: &str| match name {
            "LC_ALL" => all,
            "LC_CTYPE" => ctype,
            _ => lang,
        };
        Symbols::of(|name| value(name).map(str::to_owned), Symbols::Ascii)
    }

    #[test]
    fn first_variable_that_is_set_decides() {
        assert_eq!(of(None, None, Some("de_DE.UTF-8")), Symbols::Unicode);
        assert_eq!(of(Some(""), Some("C.utf8"), Some("C")), Symbols::Unicode);
        assert_eq!(of(Some("C"), Some("C.utf8"), Some("en_US.UTF-8")), Symbols::Ascii);
        assert_eq!(of(None, None, Some("de_DE@euro")), Symbols::Ascii);
        assert_eq!(of(None, None, None), Symbols::Ascii);
        assert_eq!(Symbols::of(|_| None, Symbols::Unicode), Symbols::Unicode);
        assert_eq!(Symbols::of(|_| Some("C".to_owned()), Symbols::Unicode), Symbols::Ascii);
    }

    #[test]
    fn messages_are_ascii_without_utf8() {
        let text = "2 jobs · 0 failed · `a…` → 1.9 × ±5 % 2 µs";
        assert_eq!(Symbols::Ascii.convert(text), "2 jobs, 0 failed, `a...` -> 1.9 x +-5 % 2 us");
        assert_eq!(Symbols::Unicode.convert(text), text);
    }

    #[test]
    fn shortened_text_has_the_width() {
        assert_eq!(Symbols::Unicode.shorten("日本語", 4), "日…");
        for (width, text) in [(6, "abc..."), (4, "a..."), (3, "..."), (2, ".."), (1, "."), (7, "abcdefg")] {
            assert_eq!(Symbols::Ascii.shorten("abcdefg", width), text);
        }
        assert_eq!(Symbols::Unicode.shorten("abcdefg", 1), "…");
    }
}
