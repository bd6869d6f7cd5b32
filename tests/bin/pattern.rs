//! The bytes that most outputs of the tests consist of, by tables: a debug build computes slowly.

/// The number of bytes after which they repeat. A prime: a piece that is lost or comes twice shifts
/// what follows, whatever the size of the buffers.
const PERIOD: usize = 8191;

static LETTERS: [u8; PERIOD] = {
    let mut table = [0; PERIOD];
    let mut at = 0;
    while at < PERIOD {
        table[at] = b'a' + ((at ^ (at >> 8)) % 25) as u8;
        at += 1;
    }
    table
};

static VALUES: [u8; PERIOD] = {
    let mut table = [0; PERIOD];
    let mut at = 0;
    while at < PERIOD {
        table[at] = (at ^ (at >> 8)) as u8;
        at += 1;
    }
    table
};

/// Appends `count` letters, from number `first` on.
pub(crate) fn append_pattern(to: &mut Vec<u8>, first: usize, count: usize) {
    append(&LETTERS, to, first, count);
}

/// Returns the bytes of a job, which have all values.
pub(crate) fn job_bytes(id: usize, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    append(&VALUES, &mut bytes, id * 257, len);
    bytes
}

fn append(table: &[u8; PERIOD], to: &mut Vec<u8>, first: usize, count: usize) {
    let mut at = first % PERIOD;
    let end = to.len() + count;
    while to.len() < end {
        let part = (end - to.len()).min(PERIOD - at);
        to.extend_from_slice(&table[at..at + part]);
        at = 0;
    }
}
