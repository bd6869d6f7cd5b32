//! Names that no other file has.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

/// The number of names that are tried. Each has 64 random bits: a second one is needed only if
/// something else makes the same names.
const ATTEMPTS_MAX: u32 = 100;

/// Creates a file with a new name in `dir`, by `create`, which fails with `AlreadyExists` if the
/// name is taken.
pub(super) fn create(dir: &Path, create: impl Fn(&Path) -> io::Result<File>) -> io::Result<(File, PathBuf)> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let path = dir.join(format!("minder-{:016x}", RandomState::new().hash_one(attempt)));
        match create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS_MAX => {}
            result => return result.map(|file| (file, path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_name_that_is_taken_is_followed_by_another() {
        let names = RefCell::new(HashSet::new());
        let taken = |path: &Path| {
            assert!(names.borrow_mut().insert(path.to_owned()), "{} again", path.display());
            Err(io::ErrorKind::AlreadyExists.into())
        };
        let error = create(Path::new("dir"), taken).expect_err("all names are taken");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(names.borrow().len(), ATTEMPTS_MAX as usize);
        assert!(names.borrow().iter().all(|path| path.parent() == Some(Path::new("dir"))));
    }

    #[test]
    fn another_error_ends_the_search() {
        let dir = tempfile::tempdir().expect("create a directory");
        let error =
            create(&dir.path().join("missing"), |path| File::create_new(path)).expect_err("no directory");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
