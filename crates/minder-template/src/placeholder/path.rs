//! The parts of a path as bytes: directory, last component, extensions.

/// The syntax of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathStyle {
    /// Slashes separate. A backslash is an ordinary character.
    Unix,
    /// Backslashes and slashes separate. A path may begin with a drive (`C:`), or with a server and
    /// a share (`\\server\share`).
    Windows,
}

impl PathStyle {
    /// The syntax of the operating system that this program was built for.
    pub(crate) const NATIVE: Self =
        if std::path::MAIN_SEPARATOR == '\\' { Self::Windows } else { Self::Unix };

    fn separates(self, byte: u8) -> bool {
        byte == b'/' || (self == Self::Windows && byte == b'\\')
    }

    /// Returns the index of the last separator.
    pub(crate) fn last_separator(self, path: &[u8]) -> Option<usize> {
        path.iter().rposition(|&byte| self.separates(byte))
    }

    /// Returns where the last `count` extensions of the last component begin, if it has that many.
    /// They may be empty.
    pub(crate) fn extensions(self, path: &[u8], count: usize) -> Option<usize> {
        let start = self.root(path);
        let mut end = path.len();
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

    /// Returns the path without its last `count` extensions, or the path if it has fewer.
    pub(crate) fn stem(self, path: &[u8], count: usize) -> &[u8] {
        &path[..self.extensions(path, count).unwrap_or(path.len())]
    }

    /// Returns the last component. It is empty if the path ends in a separator.
    pub(crate) fn base_name(self, path: &[u8]) -> &[u8] {
        let after = self.last_separator(path).map_or(0, |at| at + 1);
        &path[after.max(self.root(path))..]
    }

    /// Returns the directory as dirname(1) does: `.` for a path without separators. Separators at
    /// the end do not count.
    pub(crate) fn dir_name(self, path: &[u8]) -> &[u8] {
        let (root, rest) = path.split_at(self.root(path));
        let end = |part: &[u8]| part.iter().rposition(|&byte| !self.separates(byte)).map(|at| at + 1);
        let top: &[u8] = match (self, root) {
            (_, b"") => b".",
            (Self::Unix, _) => b"/",
            // The directory of `C:x` is `C:.`: joined with a separator they give the same path again.
            (Self::Windows, [letter, b':']) => current_dir(*letter),
            (Self::Windows, root) => root,
        };
        let Some(trimmed) = end(rest) else { return top };
        let above = self.last_separator(&rest[..trimmed]).and_then(|slash| end(&rest[..slash]));
        above.map_or(top, |length| &path[..root.len() + length])
    }

    /// Returns the length of the root: drive or share, and the separators after it.
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

/// Returns `C:.` for the drive `C`.
fn current_dir(letter: u8) -> &'static [u8] {
    const ALL: [[u8; 3]; 128] = {
        let mut all = [[0, b':', b'.']; 128];
        let mut letter = 0;
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
    type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);

    fn check(style: PathStyle, rows: &[Row]) {
        for (value, no_extension, base, dir, base_no_extension) in rows {
            let v = value.as_bytes();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(text(style.stem(v, 1)), *no_extension, "{{.}} of {value}");
            assert_eq!(text(style.base_name(v)), *base, "{{/}} of {value}");
            assert_eq!(text(style.dir_name(v)), *dir, "{{//}} of {value}");
            assert_eq!(text(style.stem(style.base_name(v), 1)), *base_no_extension, "{{/.}} of {value}");
        }
    }

    /// The results of GNU parallel 20221122.
    const BOTH: [Row; 10] = [
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
    fn unix_paths_give_the_results_of_parallel() {
        check(PathStyle::Unix, &BOTH);
        check(
            PathStyle::Unix,
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
    fn windows_paths_have_drives_and_shares() {
        check(PathStyle::Windows, &BOTH);
        check(
            PathStyle::Windows,
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
