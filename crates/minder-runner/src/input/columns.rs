//! Splits a record into columns.

use std::ffi::OsString;

use minder_os::encoding::os_string_from_encoded;
use regex::bytes::Regex;

/// The way in which a record is split into columns.
#[derive(Clone, Debug)]
pub enum Columns {
    /// At each match of a regular expression.
    Regexp(Regex),
    /// At each occurrence of a byte.
    Byte(u8),
    /// As CSV (RFC 4180), with this byte between fields.
    Csv(u8),
}

impl Columns {
    /// Returns the byte between fields if a record may contain its separator, in quotes.
    pub(super) fn quoted_fields(&self) -> Option<u8> {
        match self {
            Self::Csv(between) => Some(*between),
            Self::Regexp(_) | Self::Byte(_) => None,
        }
    }

    /// Splits a record.
    pub(super) fn cut(&self, record: OsString) -> Vec<OsString> {
        let bytes = record.as_encoded_bytes();
        match self {
            Self::Regexp(regexp) => {
                // As in GNU parallel, an empty match at the start does not split.
                let begins = || !bytes.is_empty() && regexp.find(bytes).is_some_and(|found| found.end() == 0);
                let mut parts = regexp.split(bytes).peekable();
                if parts.peek().is_some_and(|first| first.is_empty()) && begins() {
                    parts.next();
                }
                parts.map(|part| os_string_from_encoded(part.to_vec())).collect()
            }
            Self::Byte(between) => bytes
                .split(|byte| byte == between)
                .map(|part| os_string_from_encoded(part.to_vec()))
                .collect(),
            Self::Csv(between) => fields(bytes, *between),
        }
    }
}

fn fields(bytes: &[u8], between: u8) -> Vec<OsString> {
    let mut reader = csv_core::ReaderBuilder::new().delimiter(between).build();
    let mut input = bytes;
    let mut fields = Vec::new();
    let mut field = Vec::new();
    let mut buffer = vec![0; bytes.len() + 1];
    loop {
        let (result, read, wrote) = reader.read_field(input, &mut buffer);
        input = &input[read..];
        field.extend_from_slice(&buffer[..wrote]);
        match result {
            csv_core::ReadFieldResult::Field { record_end } => {
                fields.push(os_string_from_encoded(std::mem::take(&mut field)));
                if record_end {
                    return fields;
                }
            }
            csv_core::ReadFieldResult::End => {
                if fields.is_empty() {
                    fields.push(os_string_from_encoded(field));
                }
                return fields;
            }
            // The CSV reader expects an empty buffer at the end of the input.
            csv_core::ReadFieldResult::InputEmpty | csv_core::ReadFieldResult::OutputFull => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(columns: &Columns, record: &str) -> Vec<String> {
        columns.cut(record.into()).iter().map(|value| value.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn columns_split_by_each_rule() {
        let blanks = Columns::Regexp(Regex::new(r"\s+").expect("compile expression"));
        assert_eq!(cut(&blanks, "a  b\tc"), ["a", "b", "c"]);
        assert_eq!(cut(&blanks, ""), [""]);
        assert_eq!(cut(&blanks, " a"), ["", "a"]);
        let nothing = Columns::Regexp(Regex::new("").expect("compile expression"));
        assert_eq!(cut(&nothing, "ab"), ["a", "b", ""]);
        let csv = Columns::Csv(b',');
        assert_eq!(cut(&csv, r#"a,"b,c","d ""e""",f g"#), ["a", "b,c", r#"d "e""#, "f g"]);
        assert_eq!(cut(&csv, "a,,"), ["a", "", ""]);
        assert_eq!(cut(&csv, ""), [""]);
        assert_eq!(cut(&csv, "\"two\nlines\",x"), ["two\nlines", "x"]);
    }
}
