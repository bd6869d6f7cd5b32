//! Scripts without `#!`. The kernel refuses to execute such a file, and a shell runs it: execvp(3)
//! and every shell do the same.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The shell that runs such a script.
pub(super) const SHELL: &str = "/bin/sh";

/// The number of bytes by which a text is distinguished from a program of another system.
const SAMPLE_MAX: u64 = 128;

/// Returns whether the file, which the kernel refused to execute, is a script: its first line
/// contains no NUL byte. bash decides in the same way.
///
/// # Errors
/// The file cannot be read.
pub(super) fn is_script(path: &Path) -> io::Result<bool> {
    let mut sample = Vec::new();
    File::open(path)?.take(SAMPLE_MAX).read_to_end(&mut sample)?;
    Ok(is_text(&sample))
}

fn is_text(sample: &[u8]) -> bool {
    let first_line = sample.split(|&byte| byte == b'\n').next().unwrap_or_default();
    !first_line.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_text_looks_for_nul_bytes_in_the_first_line() {
        for text in ["", "\n", "echo a", "echo a\n\0 data behind the script", "#!\necho a", "é\n"] {
            assert!(is_text(text.as_bytes()), "{text:?}");
        }
        // An ELF file, a PE file, UTF-16.
        for program in [&b"\x7fELF\x02\x01\x01\0\0\n"[..], b"MZ\x90\0\x03", b"\xff\xfee\0c\0h\0o\0\n\0"] {
            assert!(!is_text(program), "{program:?}");
        }
    }
}
