//! The colors of `--color` and `--color-failed`, as GNU parallel writes them.

use memchr::memchr2;

/// Starts a line of a failed job.
const FAILED: &[u8] = b"\x1b[48;5;196;38;5;231m\x1b[K";
/// Ends a line of a job.
const END: &[u8] = b"\x1b[m";

/// Returns what each line of a job starts and ends with under `--color`. The colors repeat.
pub(crate) fn job_style(number: u64) -> (Vec<u8>, &'static [u8]) {
    let place = number.saturating_sub(1) % PALETTE.len() as u64;
    let color = PALETTE[usize::try_from(place).unwrap_or(0)];
    let text = if color < 0 { "000" } else { "231" };
    (format!("\x1b[48;5;{:03};38;5;{text}m\x1b[K", color.unsigned_abs()).into_bytes(), END)
}

/// Returns what each line of a failed job starts and ends with under `--color-failed`. GNU parallel
/// does not color a job that was killed by a signal.
pub(crate) fn failed_style() -> (Vec<u8>, &'static [u8]) {
    (FAILED.to_vec(), END)
}

/// Puts a style around each line of one stream, as GNU parallel does. A carriage return also ends a
/// line: the style and the tag are repeated after it. A last line without a line break gets one.
#[derive(Debug, Default)]
pub(crate) struct LineColorizer {
    /// `true` if the next byte continues a line.
    in_line: bool,
}

impl LineColorizer {
    /// Appends `bytes` to `into`. `prefix` is the start of the style, followed by the tag.
    pub(crate) fn push(&mut self, (prefix, suffix): (&[u8], &[u8]), bytes: &[u8], into: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if !self.in_line {
                into.extend_from_slice(prefix);
            }
            let end = memchr2(b'\n', b'\r', rest);
            into.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            self.in_line = true;
            let Some(end) = end else { break };
            into.extend_from_slice(suffix);
            into.push(rest[end]);
            self.in_line = rest[end] == b'\r';
            if self.in_line {
                into.extend_from_slice(prefix);
            }
            rest = &rest[end + 1..];
        }
    }

    /// Returns `true` if the last line has no end yet.
    pub(crate) fn is_within(&self) -> bool {
        self.in_line
    }

    /// Ends an open line at the end of the stream.
    pub(crate) fn finish(&mut self, suffix: &[u8], into: &mut Vec<u8>) {
        if std::mem::take(&mut self.in_line) {
            into.extend_from_slice(suffix);
            into.push(b'\n');
        }
    }
}

/// The colors of jobs 1, 2, …, as observed from GNU parallel 20221122: the background as an index
/// into the 256 colors. The text is black where the number is negative, and white elsewhere.
#[rustfmt::skip]
const PALETTE: [i16; 307] = [
    134, 21, 243, -149, 102, -231, 203, -78, 73, -208, 167, -6, 44, 22, 244, -150, 103, -249, 204, -79,
    74, -209, 168, -7, 45, -186, 135, -151, 104, -250, 205, -80, 75, -210, 169, -9, 52, -187, 136, 23,
    245, -251, 206, -81, 76, -211, 170, -10, 53, -188, 137, 24, 246, -152, 105, -82, 77, -212, 171, -11,
    54, -189, 138, 25, 247, -153, 106, -252, 207, -213, 172, -13, 55, -190, 139, 26, 248, -154, 107,
    -253, 208, -83, 78, -14, 56, -191, 140, 27, 249, -155, 108, -254, 209, -84, 79, -214, 173, -192,
    141, 28, 250, -156, 109, 1, 210, -85, 80, -215, 174, -15, 57, 29, -157, 110, 2, 211, -86, 81, -216,
    175, -40, 58, -193, 142, -158, 111, 3, 212, -87, 88, -217, 176, -41, 59, -194, 143, 30, 4, 213,
    -113, 89, -218, 177, -42, 60, -195, 144, 31, -159, 112, -114, 90, -219, 178, -43, 61, -196, 145, 32,
    -171, 113, 5, 214, -220, 180, -44, 62, -197, 146, 33, -172, 114, 6, 232, -115, 91, -45, 63, -198,
    147, 34, -173, 124, 7, 233, -116, 92, -221, 182, -199, 148, 35, -174, 125, 8, 234, -117, 93, -222,
    183, -46, 64, 36, -175, 126, 9, 235, -118, 94, -223, 184, -47, 65, -200, 149, -176, 127, 12, 236,
    -119, 95, -224, 196, -48, 66, -201, 160, 37, 13, 237, -120, 96, -225, 197, -49, 67, -202, 161, 38,
    -177, 128, -121, 97, -226, 198, -50, 68, -203, 162, 39, -178, 129, 16, 238, -227, 199, -51, 69,
    -204, 163, 40, -179, 130, 17, 239, -122, 98, -75, 70, -205, 164, 41, -180, 131, 18, 240, -123, 99,
    -228, 200, -206, 165, 42, -181, 132, 19, 241, -147, 100, -229, 201, -76, 71, 43, -182, 133, 20, 242,
    -148, 101, -230, 202, -77, 72, -207, 166, -185,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_style_matches_gnu_parallel() {
        let of = |number| String::from_utf8(job_style(number).0).expect("text");
        assert_eq!(of(1), "\x1b[48;5;134;38;5;231m\x1b[K");
        assert_eq!(of(2), "\x1b[48;5;021;38;5;231m\x1b[K");
        assert_eq!(of(4), "\x1b[48;5;149;38;5;000m\x1b[K");
        assert_eq!(of(307), "\x1b[48;5;185;38;5;000m\x1b[K");
        assert_eq!((of(308), of(700), of(0)), (of(1), of(86), of(1)));
        let all: std::collections::BTreeSet<String> = (1..=307).map(of).collect();
        assert_eq!(all.len(), 307, "two of these jobs look the same");
        assert_eq!(of(u64::MAX), of((u64::MAX - 1) % 307 + 1));
    }

    /// Returns the styled form of output that arrives in these chunks.
    fn painted(chunks: &[&str], tag: &str) -> String {
        let mut colorizer = LineColorizer::default();
        let mut into = Vec::new();
        let prefix = format!("<{tag}");
        chunks
            .iter()
            .for_each(|chunk| colorizer.push((prefix.as_bytes(), b">"), chunk.as_bytes(), &mut into));
        colorizer.finish(b">", &mut into);
        String::from_utf8(into).expect("text")
    }

    #[test]
    fn colorizer_matches_gnu_parallel() {
        assert_eq!(painted(&["a\n\nb1"], ""), "<a>\n<>\n<b1>\n");
        assert_eq!(painted(&["0\nsecond\n"], "0\t"), "<0\t0>\n<0\tsecond>\n");
        assert_eq!(painted(&["a\r\nb\rc\n"], "1\t"), "<1\ta>\r<1\t>\n<1\tb>\r<1\tc>\n");
        assert_eq!(painted(&["a\r"], ""), "<a>\r<>\n");
        assert_eq!(painted(&["\n"], ""), "<>\n");
        assert_eq!(painted(&[""], ""), "");
        assert_eq!(painted(&["a", "b\r", "\n", "c", "\nd"], ""), painted(&["ab\r\nc\nd"], ""));
    }
}
