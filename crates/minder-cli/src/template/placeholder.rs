//! The placeholders: how they are written, and the value that each stands for.

use std::ffi::{OsStr, OsString};
use std::fmt;

use super::{Error, ErrorKind, Job, os_str};

/// One placeholder: what it takes, and what is cut away from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placeholder {
    source: Source,
    cut: Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Line,
    /// Counted from 1.
    Column(u32),
    Number,
    Slot,
}

/// The forms after GNU parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Nothing,
    Extension,
    Folder,
    FolderAndExtension,
    Name,
}

/// The longest column number that is read, in digits.
const DIGITS_MAX: usize = 6;

impl Placeholder {
    /// `{}`.
    pub(super) const VALUE: Placeholder = Placeholder { source: Source::Line, cut: Cut::Nothing };

    /// Reads the placeholder at the start of `text`, with its length.
    ///
    /// Every scanner asks here at every byte, whatever the byte is: strings of the user's own choice
    /// would be looked for here too.
    pub(super) fn at(text: &[u8]) -> Option<(Placeholder, usize)> {
        let rest = text.strip_prefix(b"{")?;
        let length = rest.iter().take(DIGITS_MAX + 3).position(|&b| b == b'}')?;
        let inner = &rest[..length];
        let digits = inner.iter().take_while(|b| b.is_ascii_digit()).count();
        let (source, cut) = match (digits, &inner[digits..]) {
            (0, b"#") => (Source::Number, Cut::Nothing),
            (0, b"%") => (Source::Slot, Cut::Nothing),
            (0, cut) => (Source::Line, Cut::read(cut)?),
            (1..=DIGITS_MAX, cut) if inner[0] != b'0' => {
                let column = inner[..digits].iter().fold(0, |n, b| n * 10 + u32::from(b - b'0'));
                (Source::Column(column), Cut::read(cut)?)
            }
            _ => return None,
        };
        Some((Placeholder { source, cut }, length + 2))
    }

    /// Appends the value for `job` to `out`.
    pub(super) fn push(self, job: &Job<'_>, out: &mut OsString) -> Result<(), Error> {
        match self.source {
            Source::Number => out.push(job.number.to_string()),
            Source::Slot => out.push(job.slot.to_string()),
            Source::Column(n) => match job.columns.get(n as usize - 1) {
                Some(column) => self.push_cut(column, job, out)?,
                None => return Err(self.missing(n, job.columns.len())),
            },
            Source::Line => {
                for (i, column) in job.columns.iter().enumerate() {
                    if i > 0 {
                        out.push(" ");
                    }
                    self.push_cut(column, job, out)?;
                }
            }
        }
        Ok(())
    }

    fn push_cut(self, value: &OsStr, job: &Job<'_>, out: &mut OsString) -> Result<(), Error> {
        let bytes = value.as_encoded_bytes();
        if bytes.contains(&0) {
            let text = format!("the value of job {} holds a NUL byte, which no argument can", job.number);
            return Err(Error::new(ErrorKind::Nul, text));
        }
        match self.cut {
            Cut::Nothing => out.push(value),
            cut => out.push(os_str(cut.apply(bytes))),
        }
        Ok(())
    }

    fn missing(self, column: u32, columns: usize) -> Error {
        let text = format!("`{self}` asks for {}, the input has {columns}", nth_column(column));
        Error::new(ErrorKind::Column, text)
    }
}

impl Cut {
    fn read(text: &[u8]) -> Option<Cut> {
        Some(match text {
            b"" => Cut::Nothing,
            b"." => Cut::Extension,
            b"/" => Cut::Folder,
            b"/." => Cut::FolderAndExtension,
            b"//" => Cut::Name,
            _ => return None,
        })
    }

    fn apply(self, value: &[u8]) -> &[u8] {
        match self {
            Cut::Nothing => value,
            Cut::Extension => stem(value),
            Cut::Folder => name(value),
            Cut::FolderAndExtension => stem(name(value)),
            Cut::Name => folder(value),
        }
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = match self.cut {
            Cut::Nothing => "",
            Cut::Extension => ".",
            Cut::Folder => "/",
            Cut::FolderAndExtension => "/.",
            Cut::Name => "//",
        };
        match self.source {
            Source::Line => write!(f, "{{{cut}}}"),
            Source::Column(n) => write!(f, "{{{n}{cut}}}"),
            Source::Number => f.write_str("{#}"),
            Source::Slot => f.write_str("{%}"),
        }
    }
}

/// Removes the last dot of the last path component with what follows it; a dot at the very end stays.
fn stem(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&b| b == b'.' || b == b'/') {
        Some(i) if path[i] == b'.' && i + 1 < path.len() => &path[..i],
        _ => path,
    }
}

fn name(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&b| b == b'/').map_or(path, |i| &path[i + 1..])
}

/// `dirname`: `.` without a slash, trailing slashes do not count.
fn folder(path: &[u8]) -> &[u8] {
    let end = |part: &[u8]| part.iter().rposition(|&b| b != b'/').map(|i| i + 1);
    let Some(trimmed) = end(path) else {
        return if path.is_empty() { b"." } else { b"/" };
    };
    match path[..trimmed].iter().rposition(|&b| b == b'/') {
        None => b".",
        Some(slash) => end(&path[..slash]).map_or(b"/", |length| &path[..length]),
    }
}

fn nth_column(n: u32) -> String {
    const WORDS: [&str; 12] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
        "eleventh", "twelfth",
    ];
    let article = if n == 8 || n == 11 { "an" } else { "a" };
    match WORDS.get(n as usize - 1) {
        Some(word) => format!("{article} {word} column"),
        None => format!("column {n}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lexes_what_parallel_knows_and_nothing_else() {
        for text in ["{}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{%}", "{1}", "{12}", "{3.}", "{2//}"] {
            let (placeholder, length) = Placeholder::at(text.as_bytes()).expect(text);
            assert_eq!(length, text.len());
            assert_eq!(placeholder.to_string(), text);
        }
        for text in
            ["", "{", "}", "{ }", "{a}", "{a,b}", "{0}", "{01}", "{1,2}", "{##}", "{..}", "{1234567}", "x{}"]
        {
            assert_eq!(Placeholder::at(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn cuts_paths_as_parallel_does() {
        // Value, {.}, {/}, {//}, {/.}: what perl's `s:\.[^/.]+$::`, `s:.*/::` and `dirname` give.
        for (value, no_extension, base, dir, base_no_extension) in [
            ("foo.jpg", "foo", "foo.jpg", ".", "foo"),
            ("sub.dir/foo.jpg", "sub.dir/foo", "foo.jpg", "sub.dir", "foo"),
            ("sub.dir/bar", "sub.dir/bar", "bar", "sub.dir", "bar"),
            ("a.tar.gz", "a.tar", "a.tar.gz", ".", "a.tar"),
            (".bashrc", "", ".bashrc", ".", ""),
            ("x.", "x.", "x.", ".", "x."),
            ("a/b/", "a/b/", "", "a", ""),
            ("/a", "/a", "a", "/", "a"),
            ("a//b", "a//b", "b", "a", "b"),
            ("/", "/", "", "/", ""),
            ("//", "//", "", "/", ""),
            ("", "", "", ".", ""),
        ] {
            let v = value.as_bytes();
            assert_eq!(stem(v), no_extension.as_bytes(), "{{.}} of {value}");
            assert_eq!(name(v), base.as_bytes(), "{{/}} of {value}");
            assert_eq!(folder(v), dir.as_bytes(), "{{//}} of {value}");
            assert_eq!(stem(name(v)), base_no_extension.as_bytes(), "{{/.}} of {value}");
        }
    }
}
