//! Arguments and environment in the form of `CreateProcessW`: one command line, one block. Pure.
//!
//! A program gets one line and parses it by itself. Nearly all use the rules of the MSVC runtime,
//! and those are followed here: backslashes are themselves, but before a quotation mark, where two
//! stand for one and an odd one makes the mark a character.

/// The longest command line that the operating system takes, with its end mark, in UTF-16 units
/// (documented with `CreateProcessW`).
pub(super) const LINE_MAX: usize = 32_767;

const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;

/// Why there is no command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unquotable {
    /// A NUL byte, or a quotation mark in the name of the program, for which no rule exists.
    Invalid,
    /// Longer than the operating system takes.
    TooLong,
}

/// Builds the command line, ended by a zero.
pub(super) fn command_line<'a>(
    program: &[u16],
    args: impl Iterator<Item = &'a [u16]>,
) -> Result<Vec<u16>, Unquotable> {
    if program.contains(&QUOTE) || program.contains(&0) {
        return Err(Unquotable::Invalid);
    }
    // The program name has its own rule: between its quotation marks no character is special.
    let mut line = vec![QUOTE];
    line.extend_from_slice(program);
    line.push(QUOTE);
    for arg in args {
        if arg.contains(&0) {
            return Err(Unquotable::Invalid);
        }
        line.push(b' '.into());
        push(&mut line, arg);
        if line.len() >= LINE_MAX {
            return Err(Unquotable::TooLong);
        }
    }
    line.push(0);
    if line.len() > LINE_MAX { Err(Unquotable::TooLong) } else { Ok(line) }
}

/// Appends a text to a command line, after a space and unquoted: the program that reads it has its
/// own rules.
pub(super) fn with_tail(mut line: Vec<u16>, tail: Option<&[u16]>) -> Result<Vec<u16>, Unquotable> {
    let Some(tail) = tail else { return Ok(line) };
    if tail.contains(&0) {
        return Err(Unquotable::Invalid);
    }
    // The end mark moves.
    line.pop();
    line.push(b' '.into());
    line.extend_from_slice(tail);
    line.push(0);
    if line.len() > LINE_MAX { Err(Unquotable::TooLong) } else { Ok(line) }
}

/// Appends one argument.
fn push(line: &mut Vec<u16>, arg: &[u16]) {
    if !arg.is_empty() && arg.iter().all(|&unit| is_plain(unit)) {
        line.extend_from_slice(arg);
        return;
    }
    line.push(QUOTE);
    let mut backslashes = 0;
    for &unit in arg {
        if unit == QUOTE {
            // Those before are doubled, and one more takes the meaning of the mark.
            line.extend(std::iter::repeat_n(BACKSLASH, backslashes + 1));
        }
        backslashes = if unit == BACKSLASH { backslashes + 1 } else { 0 };
        line.push(unit);
    }
    line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
    line.push(QUOTE);
}

/// Returns whether no C runtime treats the character specially. The runtime of MSVC needs quotes
/// only for white space and quotation marks; those of MinGW and Cygwin also expand `*`, `?`, `[`,
/// `~` and `@` in unquoted arguments.
fn is_plain(unit: u16) -> bool {
    u8::try_from(unit).is_ok_and(|byte| byte.is_ascii_alphanumeric() || b"_-+=./\\:,".contains(&byte))
}

/// Builds the block of the environment: `key=value` each ended by a zero, in the order that the
/// operating system wants, and a zero. Of keys that differ in case alone the last one counts.
/// `None` for a NUL byte, an empty key, or a `=` in one.
pub(super) fn environment(variables: impl Iterator<Item = (Vec<u16>, Option<Vec<u16>>)>) -> Option<Vec<u16>> {
    let mut sorted = std::collections::BTreeMap::new();
    for (key, value) in variables {
        // The current directories of drives have names that begin with `=`.
        let bad = key.is_empty() || key[1..].contains(&b'='.into()) || key.contains(&0);
        if bad || value.as_ref().is_some_and(|value| value.contains(&0)) {
            return None;
        }
        let folded = key.iter().map(|&unit| fold(unit)).collect::<Vec<_>>();
        match value {
            Some(value) => drop(sorted.insert(folded, (key, value))),
            None => drop(sorted.remove(&folded)),
        }
    }
    let mut block = Vec::new();
    for (key, value) in sorted.into_values() {
        block.extend(key.into_iter().chain([b'='.into()]).chain(value).chain([0]));
    }
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    Some(block)
}

/// Converts one unit to upper case, one unit for one, as Windows compares names. No letter of
/// another alphabet becomes an ASCII letter: `ſ` is not a spelling of `S`.
fn fold(unit: u16) -> u16 {
    let Some(letter) = char::from_u32(unit.into()) else { return unit };
    let mut upper = letter.to_uppercase();
    match (upper.next().map(u32::from).map(u16::try_from), upper.next()) {
        (Some(Ok(upper)), None) if upper > 0x7f || unit <= 0x7f => upper,
        _ => unit,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wide(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    fn line(args: &[&str]) -> Result<String, Unquotable> {
        let args = args.iter().map(|arg| wide(arg)).collect::<Vec<_>>();
        let line = command_line(&wide("prog ram"), args.iter().map(Vec::as_slice))?;
        Ok(String::from_utf16(&line[..line.len() - 1]).unwrap())
    }

    /// Splits a command line as the MSVC runtime (2008 and later) does, from its documentation.
    fn parse(line: &str) -> Vec<String> {
        let rest = line.strip_prefix('"').unwrap();
        let (program, rest) = rest.split_once('"').unwrap();
        let mut args = vec![program.to_owned()];
        let mut chars = rest.chars().peekable();
        loop {
            while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
            if chars.peek().is_none() {
                return args;
            }
            let mut arg = String::new();
            let mut quoted = false;
            while let Some(c) = chars.next_if(|c| quoted || !matches!(c, ' ' | '\t')) {
                match c {
                    '\\' => {
                        let mut count = 1;
                        while chars.next_if_eq(&'\\').is_some() {
                            count += 1;
                        }
                        let mark = chars.peek() == Some(&'"');
                        arg.extend(std::iter::repeat_n('\\', if mark { count / 2 } else { count }));
                        if mark && count % 2 == 1 {
                            arg.extend(chars.next());
                        }
                    }
                    '"' if quoted && chars.next_if_eq(&'"').is_some() => arg.push('"'),
                    '"' => quoted = !quoted,
                    c => arg.push(c),
                }
            }
            args.push(arg);
        }
    }

    #[test]
    fn plain_arguments_stay_unquoted() {
        assert_eq!(line(&["a", r"C:\x\", "-D=1"]).unwrap(), r#""prog ram" a C:\x\ -D=1"#);
        assert_eq!(line(&["", "a b", "*.c"]).unwrap(), r#""prog ram" "" "a b" "*.c""#);
        assert_eq!(line(&[r#"a"b"#, r"c d\", r#"\""#]).unwrap(), r#""prog ram" "a\"b" "c d\\" "\\\"""#);
    }

    #[test]
    fn difficult_arguments_round_trip() {
        #[rustfmt::skip]
        let words = [
            "", " ", "\t", "\"", "\\", "\\\\", "\\\"", "\\\\\"", "\"\"", "a\"\"b", "a b\\", "a b\\\\",
            "\\ \\", "%PATH%",
            "^&|<>()!", "*?[~@", "a\nb", "grün", "🦀 🦀", "'", "`", "-", "--", "/", "\\\\server\\share\\",
            "c:\\a b\\\"x\" y\\\\",
        ];
        let line = line(&words).unwrap();
        assert_eq!(parse(&line)[1..], words);
    }

    proptest! {
        #[test]
        fn random_arguments_round_trip(words in proptest::collection::vec("[ab\\\\\" \t*🦀]{0,8}", 0..6)) {
            let words = words.iter().map(String::as_str).collect::<Vec<_>>();
            let line = line(&words).unwrap();
            prop_assert_eq!(&parse(&line)[1..], &words[..]);
        }
    }

    #[test]
    fn unrepresentable_arguments_are_refused() {
        assert_eq!(line(&["a\0b"]), Err(Unquotable::Invalid));
        assert_eq!(command_line(&wide("a\"b"), std::iter::empty()), Err(Unquotable::Invalid));
        // The program with its quotation marks, a space and the final zero take 12.
        let longest = "x".repeat(LINE_MAX - 12);
        assert_eq!(line(&[&longest]).unwrap().len() + 1, LINE_MAX);
        assert_eq!(line(&[&(longest + "x")]), Err(Unquotable::TooLong));
    }

    #[test]
    fn raw_tail_stays_unchanged() {
        let line = || command_line(&wide("cmd"), [wide("/c")].iter().map(Vec::as_slice)).unwrap();
        let with = |tail: &str| with_tail(line(), Some(&wide(tail)));
        let shown = |line: &[u16]| String::from_utf16(line).unwrap();
        assert_eq!(shown(&with(r#""a \" b"^"#).unwrap()), "\"cmd\" /c \"a \\\" b\"^\0");
        assert_eq!(with_tail(line(), None), Ok(line()));
        assert_eq!(with("a\0b"), Err(Unquotable::Invalid));
        let lone = [0xd800, b'x'.into()];
        assert!(with_tail(line(), Some(&lone)).unwrap().ends_with(&[0xd800, b'x'.into(), 0]));
        // The line begins with the program in quotation marks, a space, `/c` and a space. It ends
        // with a zero.
        let longest = "x".repeat(LINE_MAX - 10);
        assert_eq!(with(&longest).unwrap().len(), LINE_MAX);
        assert_eq!(with(&(longest + "x")), Err(Unquotable::TooLong));
    }

    #[test]
    fn environment_is_sorted_and_case_insensitive() {
        let set = |key: &str, value: &str| (wide(key), Some(wide(value)));
        let block = |variables: Vec<_>| {
            environment(variables.into_iter()).map(|block| String::from_utf16(&block).unwrap())
        };
        let variables = vec![
            set("Path", "1"),
            set("b", "2"),
            set("A", "3"),
            set("PATH", "4"),
            set("=C:", "C:\\"),
            set("é", "5"),
            set("É", "6"),
            set("ſ", "7"),
            set("S", "8"),
            set("a_", "9"),
        ];
        // An underscore comes behind the capitals, since those are what is compared.
        assert_eq!(block(variables).unwrap(), "=C:=C:\\\0A=3\0a_=9\0b=2\0PATH=4\0S=8\0É=6\0ſ=7\0\0");
        assert_eq!(block(vec![set("a", "1"), (wide("A"), None)]).unwrap(), "\0\0");
        assert_eq!(block(vec![set("a=b", "1")]), None);
        assert_eq!(block(vec![set("", "1")]), None);
        assert_eq!(block(vec![set("a", "\0")]), None);
    }
}
