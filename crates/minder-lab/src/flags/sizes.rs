//! Lists of numbers and of ranges.

/// Sizes in ascending order, without duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<u64>);

/// The largest size: no machine has the descriptors or the memory for more.
const SIZE_MAX: u64 = 1 << 20;

/// Parses a list of numbers and of ranges: `2,64,2048`, `2..16384`.
///
/// # Errors
/// One line that quotes the text.
pub(super) fn sizes(text: &str) -> Result<Sizes, String> {
    sizes_up_to(text, SIZE_MAX)
}

/// Parses a list as [`sizes`], with numbers up to `max`.
///
/// # Errors
/// One line that quotes the text.
pub(super) fn sizes_up_to(text: &str, max: u64) -> Result<Sizes, String> {
    let invalid = || format!("invalid list `{text}`: expected numbers and ranges (2,64,2048 or 2..16384)");
    let number = |text: &str| {
        // `parse` accepts a sign, which is invalid here.
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        text.parse::<u64>().map_err(|_| invalid())
    };
    let mut sizes = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once("..") {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first == 0 || last > max {
            return Err(format!("`{part}` is out of range: expected 1 to {max}"));
        }
        if first > last {
            return Err(format!("`{part}` ends before it begins"));
        }
        sizes.extend(
            std::iter::successors(Some(first), |size| Some(size * 2)).take_while(|size| *size < last),
        );
        sizes.push(last);
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(Sizes(sizes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_accept_lists_and_ranges() {
        let read = |text| sizes(text).map(|sizes| sizes.0);
        assert_eq!(read("2,64,2048"), Ok(vec![2, 64, 2048]));
        assert_eq!(read("64,2,64"), Ok(vec![2, 64]));
        assert_eq!(read("2..16"), Ok(vec![2, 4, 8, 16]));
        assert_eq!(read("3..20,1"), Ok(vec![1, 3, 6, 12, 20]));
        assert_eq!(read("5..5"), Ok(vec![5]));
        for invalid in
            ["", ",", "2,", "x", "-1", "+1", "2..", "..2", "2...4", "0", "0..4", "4..2", "9999999", "2 4"]
        {
            assert!(read(invalid).is_err(), "{invalid}");
        }
    }
}
