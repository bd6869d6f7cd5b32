//! Finds the file that a program name means.
//!
//! The search of `CreateProcessW` begins with the directory of this program and the current one. It
//! is not used: a start always gets an absolute path. The current directory is never searched, even
//! if PATH names it. Relative parts of PATH (empty, `.`, `bin`, `\bin`, `C:bin`) are skipped,
//! because their meaning changes with the current directory.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use windows_sys::Win32::Storage::FileSystem::FILE_ATTRIBUTE_DIRECTORY;

use crate::sys::spawn::{SpawnError, SpawnStep};

/// The extensions of programs. Files with the other extensions of PATHEXT are documents, which
/// another program opens.
const PROGRAMS: [&str; 4] = [".COM", ".EXE", ".BAT", ".CMD"];

/// The directories and extensions to search, from the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SearchDirs {
    path: OsString,
    extensions: OsString,
}

/// Why the search found no program.
#[derive(Debug, PartialEq, Eq)]
enum LookupError {
    Nowhere,
    Document(PathBuf),
}

impl SearchDirs {
    pub(super) fn now() -> Self {
        let variable = |name| std::env::var_os(name).unwrap_or_default();
        Self { path: variable("PATH"), extensions: variable("PATHEXT") }
    }

    /// Searches the directories of PATH for a program of this name. A document counts only if no
    /// program follows.
    pub(super) fn search(&self, program: &OsStr) -> Result<PathBuf, SpawnError> {
        let extensions = Extensions::new(&self.extensions);
        let mut document = None;
        for dir in std::env::split_paths(&self.path).filter(|dir| dir.is_absolute()) {
            let Ok(path) = std::path::absolute(dir.join(program)) else { continue };
            match extensions.complete(&path, false) {
                Ok(path) => return Ok(path),
                Err(LookupError::Document(path)) => drop(document.get_or_insert(path)),
                Err(LookupError::Nowhere) => (),
            }
        }
        Err(match document {
            Some(path) => is_document(&path),
            None => SpawnStep::Lookup.failed(io::ErrorKind::NotFound),
        })
    }
}

/// Returns whether the name is a path.
pub(super) fn is_path(program: &OsStr) -> bool {
    program.encode_wide().any(|unit| [b'/', b'\\', b':'].map(u16::from).contains(&unit))
}

/// Returns the program at this path, which may lack its extension. A path that begins with neither
/// a drive nor a slash is relative to the child's directory, as on Unix.
pub(super) fn at(program: &OsStr, dir: Option<&Path>) -> Result<PathBuf, SpawnError> {
    let path = Path::new(program);
    let has_prefix_or_root = path
        .components()
        .next()
        .is_some_and(|first| matches!(first, Component::Prefix(_) | Component::RootDir));
    let path = match dir {
        Some(dir) if !has_prefix_or_root => dir.join(path),
        _ => path.to_owned(),
    };
    let path = std::path::absolute(path).map_err(|error| SpawnStep::Exec.failed(error))?;
    if path.extension().is_some_and(|own| own.eq_ignore_ascii_case("exe")) {
        // `CreateProcessW` reports whether it exists.
        return Ok(path);
    }
    let listed = std::env::var_os("PATHEXT").unwrap_or_default();
    match Extensions::new(&listed).complete(&path, true) {
        Ok(path) => Ok(path),
        Err(LookupError::Document(path)) => Err(is_document(&path)),
        Err(LookupError::Nowhere) => Err(SpawnStep::Exec.failed(io::ErrorKind::NotFound)),
    }
}

fn is_document(path: &Path) -> SpawnError {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = format!("`{name}` is a document, not a program: start the program that reads it");
    SpawnStep::Exec.failed(io::Error::new(io::ErrorKind::Unsupported, text))
}

/// Returns whether Windows would pass the file to `cmd.exe`. The check ignores dots and spaces at
/// the end of the name.
pub(super) fn is_batch(path: &Path) -> bool {
    let name = path.as_os_str().to_string_lossy().to_ascii_lowercase();
    let name = name.trim_end_matches(['.', ' ']);
    name.ends_with(".bat") || name.ends_with(".cmd")
}

/// Returns whether it is a file, as far as can be seen.
pub(super) fn is_file(path: &Path) -> bool {
    match path.metadata() {
        Ok(found) => !found.is_dir(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        // A program of the Microsoft Store is a link that only `CreateProcessW` can follow.
        Err(_) => {
            path.symlink_metadata().is_ok_and(|found| found.file_attributes() & FILE_ATTRIBUTE_DIRECTORY == 0)
        }
    }
}

/// The extensions of PATHEXT, in upper case.
struct Extensions {
    programs: Vec<String>,
    documents: Vec<String>,
}

impl Extensions {
    /// Skips parts that are not extensions. If no extension of a program is left, uses the default
    /// ones.
    fn new(listed: &OsStr) -> Self {
        let listed = listed.to_string_lossy().to_ascii_uppercase();
        let listed = listed.split(';').map(str::trim);
        let listed =
            listed.filter(|part| part.starts_with('.') && part.len() > 1 && !part.contains(['\\', '/', ':']));
        let (mut programs, documents) =
            listed.map(str::to_owned).partition::<Vec<_>, _>(|part| PROGRAMS.contains(&part.as_str()));
        if programs.is_empty() {
            programs = PROGRAMS.map(str::to_owned).to_vec();
        }
        Self { programs, documents }
    }

    /// Returns the file with this name, or with one of the extensions. `bare` allows a file without
    /// an extension.
    fn complete(&self, path: &Path, bare: bool) -> Result<PathBuf, LookupError> {
        let own = path.extension().map(|own| format!(".{}", own.to_string_lossy().to_ascii_uppercase()));
        let is_document = own.as_ref().is_some_and(|own| self.documents.contains(own));
        if own.is_some() && !is_document && is_file(path) {
            return Ok(path.to_owned());
        }
        let with = |extension: &String| {
            let mut name = path.as_os_str().to_owned();
            name.push(extension.to_ascii_lowercase());
            PathBuf::from(name)
        };
        if let Some(found) = self.programs.iter().map(with).find(|path| is_file(path)) {
            return Ok(found);
        }
        if is_document && is_file(path) {
            return Err(LookupError::Document(path.to_owned()));
        }
        if bare && own.is_none() && is_file(path) {
            return Ok(path.to_owned());
        }
        let document = self.documents.iter().map(with).find(|path| is_file(path));
        Err(document.map_or(LookupError::Nowhere, LookupError::Document))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        dir
    }

    fn found(places: &SearchDirs, program: &str) -> Result<String, String> {
        let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        places.search(OsStr::new(program)).map(name).map_err(|failure| failure.error.to_string())
    }

    fn places(path: &[&Path], extensions: &str) -> SearchDirs {
        SearchDirs { path: std::env::join_paths(path).unwrap(), extensions: extensions.into() }
    }

    #[test]
    fn search_tries_extensions_in_order_and_skips_invalid_ones() {
        let dir = dir(&["a.exe", "a.com", "a.cmd", "b.bat", "c.1", "c.1.exe", "d", "e.2.exe"]);
        std::fs::create_dir(dir.path().join("b.exe")).unwrap();
        std::fs::create_dir(dir.path().join("f.exe")).unwrap();
        let odd = places(&[dir.path()], "; .cmd;exe;.;.EXE ;;C:\\.com;.Bat");
        for (program, file) in
            [("a", "a.cmd"), ("A.EXE", "A.EXE"), ("b", "b.bat"), ("c.1", "c.1"), ("e.2", "e.2.exe")]
        {
            assert_eq!(found(&odd, program).as_deref(), Ok(file), "{program}");
        }
        for program in ["d", "f", "f.exe", "", ".", "..", "a.e"] {
            assert!(found(&odd, program).is_err(), "{program}");
        }
        for usual in ["", ".VBS", "exe"] {
            assert_eq!(found(&places(&[dir.path()], usual), "a").as_deref(), Ok("a.com"), "{usual:?}");
        }
    }

    #[test]
    fn search_names_document_and_does_not_start_it() {
        let first = dir(&["a.js", "b.vbs", "c.js"]);
        let second = dir(&["b.exe", "c.js.exe"]);
        let places = places(&[first.path(), second.path()], ".EXE;.JS;.VBS");
        let message = "`a.js` is a document, not a program: start the program that reads it";
        assert_eq!(found(&places, "a"), Err(message.to_owned()));
        assert_eq!(found(&places, "a.js"), Err(message.to_owned()));
        assert_eq!(found(&places, "b").as_deref(), Ok("b.exe"), "a later directory holds a program");
        assert_eq!(found(&places, "c.js").as_deref(), Ok("c.js.exe"));
    }

    #[test]
    fn search_skips_relative_parts_of_path() {
        let here = std::env::current_dir().unwrap();
        let dir = tempfile::tempdir_in(&here).unwrap();
        std::fs::write(dir.path().join("a.exe"), "").unwrap();
        let name = dir.path().file_name().unwrap();
        let rooted = dir.path().to_string_lossy().split_once(':').unwrap().1.to_owned();
        for part in [Path::new(name), &Path::new(".").join(name), Path::new(&rooted), Path::new("")] {
            assert!(found(&places(&[part], ""), "a").is_err(), "{}", part.display());
        }
        assert_eq!(found(&places(&[Path::new(name), dir.path()], ""), "a").as_deref(), Ok("a.exe"));
    }

    #[test]
    fn relative_path_is_resolved_in_working_dir_of_child() {
        let dir = dir(&["a.exe", "plain"]);
        let found = |program: &str| at(OsStr::new(program), Some(dir.path())).map_err(|failure| failure.step);
        for program in [".\\a", "./a.exe", "./sub/../a"] {
            assert_eq!(found(program).unwrap(), dir.path().join("a.exe"), "{program}");
        }
        assert_eq!(found("./plain").unwrap(), dir.path().join("plain"));
        assert_eq!(found("./b"), Err(SpawnStep::Exec));
    }

    #[test]
    fn is_batch_ignores_trailing_dots_and_spaces() {
        for name in ["a.bat", "A.CMD", "a.bat.", "a.cmd . .", "a.b.BaT "] {
            assert!(is_batch(Path::new(name)), "{name}");
        }
        assert!(!is_batch(Path::new("bat")) && !is_batch(Path::new("a.bat.exe")));
    }
}
