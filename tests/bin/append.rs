//! Files that many processes add to at once.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Far beyond what the slowest machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens a file to add to its end, for one write at a time.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    // Appended bytes follow the existing ones, also with other writers. This holds on Unix (open(2),
    // `O_APPEND`) and on Windows, but not under Wine, which looks for the end and then writes
    // there. So no other process may write meanwhile.
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        use windows_sys::Win32::Storage::FileSystem::{FILE_SHARE_DELETE, FILE_SHARE_READ};

        options.share_mode(FILE_SHARE_READ | FILE_SHARE_DELETE);
    }
    when_free(&options, path)
}

/// Opens a file that others may have for themselves for a moment.
pub(crate) fn when_free(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let until = Instant::now() + PATIENCE;
    loop {
        match options.open(path) {
            Err(error) if is_taken(&error) && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            opened => return opened,
        }
    }
}

fn is_taken(error: &io::Error) -> bool {
    const SHARING_VIOLATION: i32 = 32;
    cfg!(windows) && error.raw_os_error() == Some(SHARING_VIOLATION)
}
