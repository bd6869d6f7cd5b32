//! Long outputs that describe themselves: each line names its job and its number, and any byte may
//! follow.

/// The size of the table from which the bodies of lines are cut. A prime, so that the bytes do not
/// repeat where a buffer ends.
const SIZE: usize = 8191;

static TABLE: [u8; SIZE] = {
    let mut table = [0; SIZE];
    let mut at = 0;
    while at < SIZE {
        table[at] = plain(mix(at) as u8);
        at += 1;
    }
    table
};

/// Returns the lines of one stream of a job, at least `bytes` bytes in total. No line is much
/// longer than `longest`. The last line of a job with an odd number has no newline.
pub(crate) fn lines(id: usize, stream: usize, bytes: usize, longest: usize) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    let mut len = 0;
    while len < bytes {
        let hash = mix((id * 2 + stream) * 1_000_003 + lines.len());
        let most = if hash.is_multiple_of(8) { longest } else { longest.min(120) };
        let body = (hash / 8) % (most + 1);
        let mut line = format!("\u{1}{id} {} ", lines.len()).into_bytes();
        let mut at = (hash / 64) % SIZE;
        let end = line.len() + body;
        while line.len() < end {
            let part = (end - line.len()).min(SIZE - at);
            line.extend_from_slice(&TABLE[at..at + part]);
            at = 0;
        }
        line.push(b'\n');
        len += line.len();
        lines.push(line);
    }
    if id % 2 == 1
        && let Some(last) = lines.last_mut()
    {
        last.pop();
    }
    lines
}

/// Any byte but the end of a line and its mark.
const fn plain(byte: u8) -> u8 {
    if matches!(byte, b'\n' | 1) { 0 } else { byte }
}

const fn mix(number: usize) -> usize {
    let hash = (number as u64).wrapping_add(0x9E37_79B9).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((hash ^ (hash >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 24) as usize
}
