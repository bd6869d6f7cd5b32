//! The parts of a path, as bytes: what is cut at its separators and at its dots.

/// How paths are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// With slashes; a backslash is a character like any other.
    Unix,
    /// With backslashes or slashes, after a drive (`C:`), or a server and what it shares
    /// (`\\server\share`).
    Windows,
}

impl Form {
    /// The form of this system.
    pub(crate) const HERE: Self = if std::path::MAIN_SEPARATOR == '\\' { Self::Windows } else { Self::Unix };

    fn separates(self, byte: u8) -> bool {
        byte == b'/' || (self == Self::Windows && byte == b'\\')
    }

    /// Where the last separator stands.
    pub(crate) fn last_separator(self, path: &[u8]) -> Option<usize> {
        path.iter().rposition(|&byte| self.separates(byte))
    }

    /// Where the last `count` extensions of the last path component begin, if it has so many. They
    /// may be empty.
    pub(crate) fn extensions(self, path: &[u8], count: usize) -> Option<usize> {
        let (start, mut end) = (self.root(path), path.len());
        for _ in 0..count {
            let dot =
                path[start..end].iter().rposition(|&byte| byte == b'.' || self.separates(byte))? + start;
            if path[dot] != b'.' {
                return None;
            }
            end = dot;
        }
        Some(end)
    }

    /// A path without its last `count` extensions, if it has so many.
    pub(crate) fn stem(self, path: &[u8], count: usize) -> &[u8] {
        &path[..self.extensions(path, count).unwrap_or(path.len())]
    }

    /// The last component; nothing where a separator ends the path.
    pub(crate) fn name(self, path: &[u8]) -> &[u8] {
        let after = self.last_separator(path).map_or(0, |at| at + 1);
        &path[after.max(self.root(path))..]
    }

    /// `dirname`: `.` without a separator; those at the end do not count.
    pub(crate) fn folder(self, path: &[u8]) -> &[u8] {
        let (root, rest) = path.split_at(self.root(path));
        let end = |part: &[u8]| part.iter().rposition(|&byte| !self.separates(byte)).map(|at| at + 1);
        let top: &[u8] = match (self, root) {
            (_, b"") => b".",
            (Self::Unix, _) => b"/",
            // What lies in the current folder of a drive: `C:.` and a name behind a slash is that name again.
            (Self::Windows, [letter, b':']) => current(*letter),
            (Self::Windows, root) => root,
        };
        let Some(trimmed) = end(rest) else { return top };
        let above = self.last_separator(&rest[..trimmed]).and_then(|slash| end(&rest[..slash]));
        above.map_or(top, |length| &path[..root.len() + length])
    }

    /// How long the part is that names no folder: drive or share, and the separators behind it.
    fn root(self, path: &[u8]) -> usize {
        let separators = |at: usize| path[at..].iter().take_while(|&&byte| self.separates(byte)).count();
        let component = |at: usize| path[at..].iter().take_while(|&&byte| !self.separates(byte)).count();
        match path {
            [letter, b':', ..] if self == Self::Windows && letter.is_ascii_alphabetic() => 2 + separators(2),
            [one, other, ..] if self == Self::Windows && self.separates(*one) && self.separates(*other) => {
                let mut at = 2;
                // `\\?\UNC\server\share` has two more.
                let long = path.get(2..8).is_some_and(|start| start.eq_ignore_ascii_case(br"?\UNC\"));
                for _ in 0..if long { 4 } else { 2 } {
                    at += component(at);
                    at += separators(at).min(1);
                }
                at
            }
            _ => separators(0),
        }
    }
}

/// `C:.`
fn current(letter: u8) -> &'static [u8] {
    const ALL: [[u8; 3]; 128] = {
        let (mut all, mut letter) = ([[0, b':', b'.']; 128], 0);
        while letter < 128 {
            all[letter][0] = letter as u8;
            letter += 1;
        }
        all
    };
    &ALL[usize::from(letter & 0x7f)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value, {.}, {/}, {//}, {/.}.
    type Cuts = (&'static str, &'static str, &'static str, &'static str, &'static str);

    fn check(form: Form, cuts: &[Cuts]) {
        for (value, no_extension, base, dir, base_no_extension) in cuts {
            let v = value.as_bytes();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(text(form.stem(v, 1)), *no_extension, "{{.}} of {value}");
            assert_eq!(text(form.name(v)), *base, "{{/}} of {value}");
            assert_eq!(text(form.folder(v)), *dir, "{{//}} of {value}");
            assert_eq!(text(form.stem(form.name(v), 1)), *base_no_extension, "{{/.}} of {value}");
        }
    }

    /// What GNU parallel 20221122 gives.
    const BOTH: [Cuts; 10] = [
        ("foo.jpg", "foo", "foo.jpg", ".", "foo"),
        ("sub.dir/foo.jpg", "sub.dir/foo", "foo.jpg", "sub.dir", "foo"),
        ("sub.dir/bar", "sub.dir/bar", "bar", "sub.dir", "bar"),
        ("a.tar.gz", "a.tar", "a.tar.gz", ".", "a.tar"),
        (".bashrc", "", ".bashrc", ".", ""),
        ("x.", "x", "x.", ".", "x"),
        ("..", ".", "..", ".", "."),
        ("a/b/", "a/b/", "", "a", ""),
        ("a//b", "a//b", "b", "a", "b"),
        ("", "", "", ".", ""),
    ];

    #[test]
    fn cuts_paths_as_parallel_does() {
        check(Form::Unix, &BOTH);
        check(
            Form::Unix,
            &[
                ("a..b", "a.", "a..b", ".", "a."),
                ("/a", "/a", "a", "/", "a"),
                ("//a/b", "//a/b", "b", "//a", "b"),
                ("/", "/", "", "/", ""),
                ("//", "//", "", "/", ""),
                (r"a\b.c", r"a\b", r"a\b.c", ".", r"a\b"),
                ("C:x.y", "C:x", "C:x.y", ".", "C:x"),
            ],
        );
    }

    #[test]
    fn cuts_paths_of_windows() {
        check(Form::Windows, &BOTH);
        check(
            Form::Windows,
            &[
                (r"sub.dir\bar.c", r"sub.dir\bar", "bar.c", "sub.dir", "bar"),
                (r"sub.dir\bar", r"sub.dir\bar", "bar", "sub.dir", "bar"),
                (r"a/b\c.x", r"a/b\c", "c.x", "a/b", "c"),
                (r"a\b/", r"a\b/", "", "a", ""),
                (r"\a", r"\a", "a", r"\", "a"),
                (r"C:\a.b", r"C:\a", "a.b", r"C:\", "a"),
                (r"C:\a\b.c", r"C:\a\b", "b.c", r"C:\a", "b"),
                (r"C:/a", r"C:/a", "a", "C:/", "a"),
                (r"C:\", r"C:\", "", r"C:\", ""),
                ("C:", "C:", "", "C:.", ""),
                ("c:x.y", "c:x", "x.y", "c:.", "x"),
                (r"c:x\y.z", r"c:x\y", "y.z", "c:x", "y"),
                (r"\\server\share.d\a.b", r"\\server\share.d\a", "a.b", r"\\server\share.d\", "a"),
                (r"\\server\share.d", r"\\server\share.d", "", r"\\server\share.d", ""),
                (r"\\server\share\a\b", r"\\server\share\a\b", "b", r"\\server\share\a", "b"),
                (r"\\?\C:\a.b", r"\\?\C:\a", "a.b", r"\\?\C:\", "a"),
                (
                    r"\\?\UNC\server\share\a.b",
                    r"\\?\UNC\server\share\a",
                    "a.b",
                    r"\\?\UNC\server\share\",
                    "a",
                ),
                (r"\\", r"\\", "", r"\\", ""),
                ("1:2", "1:2", "1:2", ".", "1:2"),
            ],
        );
    }
}
