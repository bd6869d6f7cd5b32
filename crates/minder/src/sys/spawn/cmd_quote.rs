//! The command line by which `cmd.exe` runs a batch file. Pure functions.
//!
//! `cmd.exe` parses the whole line before the batch file sees its part, and by its own rules.
//! Documented (`cmd`, `set`, "Command prompt line string limitation"): between quotation marks
//! every character stands for itself, except `%`, which begins a variable, and the quotation mark.
//! `/s` removes one quotation mark from each end of the line and leaves the rest unchanged. The two
//! exceptions cannot be written, so they are refused, as is every character that ends or changes a
//! line. All other arguments arrive unchanged: as `%1` in the batch file, and in a program to which
//! the batch file passes them.

/// The longest line that `cmd.exe` accepts, in UTF-16 units.
pub(super) const LINE_MAX: usize = 8_191;

/// The start of the line: no AutoRun commands, command extensions, no delayed expansion by `!`, and
/// the quotation mark that `/s` removes.
const START: &str = "cmd.exe /d /e:on /v:off /s /c \"";

/// Why no line for `cmd.exe` can represent these arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotRepresentable {
    /// The file name contains this.
    Name(&'static str),
    /// The argument with this index contains this.
    Arg(usize, &'static str),
    /// The line is longer than `cmd.exe` accepts.
    TooLong,
}

/// Builds the command line, ended by a zero.
pub(super) fn command_line<'a>(
    file: &[u16],
    args: impl Iterator<Item = &'a [u16]>,
) -> Result<Vec<u16>, NotRepresentable> {
    if let Some(what) = unrepresentable_char(file) {
        return Err(NotRepresentable::Name(what));
    }
    let mut line = START.encode_utf16().collect::<Vec<_>>();
    push(&mut line, file, true);
    for (place, arg) in args.enumerate() {
        if let Some(what) = unrepresentable_char(arg) {
            return Err(NotRepresentable::Arg(place, what));
        }
        let quoted = arg.is_empty() || !arg.iter().all(|&unit| is_plain(unit));
        // `cmd.exe` reads this as a backslash. A program to which the batch file passes it reads an
        // escaped quotation mark, and would split the following arguments differently.
        if quoted && arg.ends_with(&[b'\\'.into()]) {
            return Err(NotRepresentable::Arg(place, "a space or special character, and `\\` at its end"));
        }
        line.push(b' '.into());
        push(&mut line, arg, quoted);
        if line.len() >= LINE_MAX {
            return Err(NotRepresentable::TooLong);
        }
    }
    line.extend([b'"'.into(), 0]);
    if line.len() > LINE_MAX + 1 { Err(NotRepresentable::TooLong) } else { Ok(line) }
}

fn push(line: &mut Vec<u16>, word: &[u16], quoted: bool) {
    let mark = quoted.then_some(u16::from(b'"'));
    line.extend(mark);
    line.extend_from_slice(word);
    line.extend(mark);
}

/// Returns what the argument contains that cannot be written.
fn unrepresentable_char(word: &[u16]) -> Option<&'static str> {
    word.iter().find_map(|&unit| match u8::try_from(unit) {
        Ok(b'%') => Some("`%`"),
        Ok(b'"') => Some("`\"`"),
        Ok(b'\r' | b'\n') => Some("a line end"),
        Ok(b'\t') => None,
        Ok(byte) if byte.is_ascii_control() => Some("a control character"),
        _ => None,
    })
}

/// Returns whether neither `cmd.exe` nor a C runtime treats the character specially. Batch files
/// treat `,`, `;` and `=` as spaces.
fn is_plain(unit: u16) -> bool {
    u8::try_from(unit).is_ok_and(|byte| byte.is_ascii_alphanumeric() || b"_-+./\\:".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(file: &str, args: &[&str]) -> Result<String, NotRepresentable> {
        let wide = |text: &str| text.encode_utf16().collect::<Vec<_>>();
        let args = args.iter().map(|arg| wide(arg)).collect::<Vec<_>>();
        let line = command_line(&wide(file), args.iter().map(Vec::as_slice))?;
        assert_eq!(line.last(), Some(&0));
        Ok(String::from_utf16(&line[..line.len() - 1]).unwrap())
    }

    #[test]
    fn arguments_are_quoted_unless_plain() {
        let said = line(r"C:\a & b\x.cmd", &["a", "", "a b", "&|<>^()!", "a,b", "a=b", r"C:\x\", "*", "ü"]);
        let expected = concat!(
            r#"cmd.exe /d /e:on /v:off /s /c ""C:\a & b\x.cmd" a "" "a b" "&|<>^()!" "a,b" "a=b" C:\x\ "*" "#,
            r#""ü"""#
        );
        assert_eq!(said.unwrap(), expected);
        assert_eq!(line("x.bat", &[]).unwrap(), r#"cmd.exe /d /e:on /v:off /s /c ""x.bat"""#);
    }

    #[test]
    fn arguments_special_to_cmd_are_refused() {
        for (arg, what) in [
            ("100%", "`%`"),
            ("%PATH%", "`%`"),
            ("a\"b", "`\"`"),
            ("\"&calc.exe", "`\"`"),
            ("a\nb", "a line end"),
            ("a\rb", "a line end"),
            ("a\u{1a}", "a control character"),
            ("\u{7f}", "a control character"),
            ("a b\\", "a space or special character, and `\\` at its end"),
        ] {
            assert_eq!(line("x.bat", &["a", arg]), Err(NotRepresentable::Arg(1, what)), "{arg:?}");
        }
        assert_eq!(line("100%.bat", &[]), Err(NotRepresentable::Name("`%`")));
        assert!(line("x.bat", &["a\tb", r"a\b", r"a\"]).is_ok());
    }

    #[test]
    fn longest_line_is_the_documented_limit() {
        let rest = line("x.bat", &["x"]).unwrap().len() - 1;
        let longest = "x".repeat(LINE_MAX - rest);
        assert_eq!(line("x.bat", &[&longest]).unwrap().len(), LINE_MAX);
        assert_eq!(line("x.bat", &[&(longest + "x")]), Err(NotRepresentable::TooLong));
    }

    proptest::proptest! {
        /// `cmd.exe` finds no special character outside quotation marks, and splits the line into
        /// the same arguments.
        #[test]
        fn quoted_line_leaves_nothing_special_to_cmd(
            args in proptest::collection::vec("[a \\\\&|<>^(),;=!*🦀-]{0,8}", 0..6),
        ) {
            let args = args.iter().map(String::as_str).collect::<Vec<_>>();
            if let Ok(line) = line("x.bat", &args) {
                let inner = line.strip_prefix(START).and_then(|rest| rest.strip_suffix('"')).unwrap();
                let mut quoted = false;
                let mut found = Vec::new();
                let mut arg: Option<String> = None;
                for c in inner.chars() {
                    match c {
                        '"' => {
                            quoted = !quoted;
                            arg.get_or_insert_default();
                        }
                        ' ' if !quoted => found.extend(arg.take()),
                        c => {
                            proptest::prop_assert!(quoted || !"&|<>^(),;=!*".contains(c), "{line}");
                            arg.get_or_insert_default().push(c);
                        }
                    }
                }
                found.extend(arg);
                proptest::prop_assert!(!quoted);
                proptest::prop_assert_eq!(&found[1..], &args[..]);
            }
        }
    }
}
