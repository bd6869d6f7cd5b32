//! The cgroups of version 2, as the kernel documents them in "Control Group v2": each is a directory, and
//! is known by a descriptor here.
//!
//! - Linux only; elsewhere this process has no cgroup, and every other function fails with `Unsupported`.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as system;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use other as system;

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// One cgroup.
#[derive(Clone, Debug)]
pub struct Cgroup {
    dir: Arc<File>,
}

/// The place of this process in the hierarchy.
#[derive(Clone, Debug)]
pub struct Place {
    /// The root of the hierarchy, as far as it is mounted here.
    pub root: Cgroup,
    /// The cgroup of this process, or the root if that is not visible here.
    pub own: Cgroup,
}

impl Place {
    /// Returns the place of this process, or `None` if the hierarchy of version 2 is not mounted.
    ///
    /// # Errors
    /// Any error of the file system. `Unsupported` if another file system is at the place of the hierarchy.
    pub fn find() -> io::Result<Option<Self>> {
        let cgroup = |dir| Cgroup { dir: Arc::new(dir) };
        Ok(system::find()?.map(|(root, own)| Self { root: cgroup(root), own: cgroup(own) }))
    }
}

impl Cgroup {
    /// Returns the open directory.
    #[must_use]
    pub fn dir(&self) -> Arc<File> {
        Arc::clone(&self.dir)
    }

    /// Reads one of its files. A link is not followed.
    ///
    /// # Errors
    /// Any error of the file system. `NotFound` if the controller of the file is not enabled here.
    pub fn read(&self, file: &str) -> io::Result<String> {
        system::read(&self.dir, file)
    }

    /// Writes to one of its files, by one call. A link is not followed.
    ///
    /// # Errors
    /// Any error of the file system: `NotFound` if the controller of the file is not enabled here,
    /// `ResourceBusy` if processes are in a cgroup that is to pass controllers on.
    pub fn write(&self, file: &str, text: &str) -> io::Result<()> {
        system::write(&self.dir, file, text)
    }

    /// Makes a cgroup in this one. It must not exist.
    ///
    /// # Errors
    /// `AlreadyExists`, and any other error of the file system.
    pub fn create(&self, name: &str) -> io::Result<Self> {
        system::create(&self.dir, name).and_then(|()| self.open(name))
    }

    /// Opens a cgroup in this one. A link is not followed.
    ///
    /// # Errors
    /// `NotFound`, and any other error of the file system.
    pub fn open(&self, name: &str) -> io::Result<Self> {
        system::open(&self.dir, name).map(|dir| Self { dir: Arc::new(dir) })
    }

    /// Removes a cgroup in this one.
    ///
    /// # Errors
    /// `ResourceBusy` if a process or another cgroup is in it, and any other error of the file system.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        system::remove(&self.dir, name)
    }

    /// Returns the names of the cgroups in this one.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn names(&self) -> io::Result<Vec<String>> {
        system::names(&self.dir)
    }

    /// Waits until no process is in this cgroup and in those below it, and returns whether that is so.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn wait_empty(&self, timeout: Duration) -> io::Result<bool> {
        system::wait_empty(&self.dir, timeout)
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    #[test]
    fn directories_are_made_listed_and_removed_by_descriptor() {
        let root = tempfile::tempdir().expect("create directory");
        let root = Cgroup { dir: Arc::new(File::open(root.path()).expect("open directory")) };
        let child = root.create("a").expect("create directory");
        assert_eq!(root.create("a").expect_err("exists").kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(root.names().expect("list"), ["a"]);
        child.create("b").expect("create directory");
        assert!(root.remove("a").is_err());
        child.remove("b").expect("remove directory");
        assert_eq!(child.read("memory.max").expect_err("no file").kind(), io::ErrorKind::NotFound);
        assert_eq!(child.write("memory.max", "1").expect_err("no file").kind(), io::ErrorKind::NotFound);
        root.remove("a").expect("remove directory");
        assert!(root.open("a").is_err());
    }

    #[test]
    fn links_are_not_followed() {
        let root = tempfile::tempdir().expect("create directory");
        std::fs::create_dir(root.path().join("target")).expect("create directory");
        std::fs::write(root.path().join("target/file"), "text").expect("write file");
        std::os::unix::fs::symlink("target", root.path().join("link")).expect("create link");
        std::os::unix::fs::symlink("target/file", root.path().join("text")).expect("create link");
        let root = Cgroup { dir: Arc::new(File::open(root.path()).expect("open directory")) };
        assert!(root.open("link").is_err() && root.read("text").is_err() && root.write("text", "x").is_err());
        assert_eq!(root.open("target").and_then(|dir| dir.read("file")).expect("read file"), "text");
        assert_eq!(root.names().expect("list"), ["target"]);
    }

    #[test]
    fn place_of_this_process_is_a_cgroup_if_there_is_one() {
        // A sandbox may hide the hierarchy.
        if let Ok(Some(place)) = Place::find() {
            assert!(place.own.read("cgroup.procs").is_ok() && place.root.read("cgroup.controllers").is_ok());
        }
    }
}
