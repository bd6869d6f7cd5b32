//! Reads a part of a file in chunks.

use std::fs::File;
use std::io;
use std::ops::Range;

use minder_os::files::read_at;

/// The most bytes of a chunk.
const CHUNK: usize = 64 << 10;

/// Passes a part of a file to `take`, chunk by chunk.
///
/// # Errors
/// The file cannot be read or ends before the part does, or `take` fails.
pub(crate) fn read_range(
    file: &File,
    range: Range<u64>,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut at = range.start;
    let mut buffer = vec![0; CHUNK];
    while at < range.end {
        let most = usize::try_from(range.end - at).unwrap_or(CHUNK).min(CHUNK);
        let read = read_at(file, &mut buffer[..most], at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        take(&buffer[..read])?;
        at += read as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use minder_os::files::{create_unnamed_file, write_all_at};

    use super::*;

    #[test]
    fn range_is_read_to_its_end_or_is_an_error() {
        let file = create_unnamed_file(&std::env::temp_dir()).expect("create a file");
        let bytes: Vec<u8> = (0..CHUNK + 9).map(|at| (at % 251) as u8).collect();
        write_all_at(&file, &bytes, 0).expect("write the file");
        let read = |range: Range<u64>| {
            let mut all = Vec::new();
            let read = read_range(&file, range, |chunk| {
                all.extend_from_slice(chunk);
                Ok(())
            });
            read.map(|()| all).map_err(|error| error.kind())
        };
        let end = bytes.len() as u64;
        assert_eq!(read(3..end).expect("read to the end"), bytes[3..]);
        assert_eq!(read(4..4), Ok(Vec::new()));
        assert_eq!(read(4..end + 1), Err(io::ErrorKind::UnexpectedEof));
    }
}
