//! Descriptors that a child gets in addition to its streams.

use std::fs::File;
use std::sync::Arc;

use super::system;
use crate::command::{Descriptors, Kept};

impl Descriptors {
    /// Lists the inherited descriptors: every open descriptor above standard error without the
    /// close-on-exec flag (`FD_CLOEXEC`). A shell leaves a file, a lock or a `<(command)` open for
    /// its children in this way.
    ///
    /// The call opens nothing and owns nothing: a listed descriptor stays open until other code
    /// closes it. A descriptor that is closed when a child starts is missing in the child. If
    /// another file has taken its number meanwhile, that file is passed only if it has no
    /// close-on-exec flag. Call this function before the program opens a file without that flag;
    /// `std` sets the flag on every file.
    ///
    /// - Linux: from `/proc/self/fd`; macOS: from `/dev/fd`. Without these, and on other Unix
    ///   systems: the numbers below the soft limit, and below 65,536.
    /// - Windows: none. Handles have no numbers that a child could know.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Descriptors};
    ///
    /// // At the start of a program that passes on what its shell left open.
    /// let inherited = Descriptors::inherited();
    /// assert!(inherited.numbers().all(|number| number > 2));
    /// inherited.close_on_exec(); // for programs that other libraries start
    /// let mut command = Command::new("true");
    /// command.descriptors(&inherited);
    /// assert!(command.status()?.success());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn inherited() -> Self {
        let numbers = system::inherited_descriptors();
        let kept: Vec<Kept> = numbers.into_iter().map(|number| Kept { number, file: None }).collect();
        Self { list: Some(kept).filter(|kept| !kept.is_empty()).map(Arc::new) }
    }

    /// Adds an open file. It stays open in this process as long as this value, a clone of it, or a
    /// command with it exists.
    ///
    /// A descriptor below 3 changes nothing, since a child has its streams there.
    ///
    /// - Windows: a start with a file fails with [`Unsupported`](crate::ErrorKind::Unsupported).
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use std::os::fd::AsRawFd;
    /// let file = std::fs::File::open("/proc/self/status")?;
    /// let line = format!("read line <&{} && test -n \"$line\"", file.as_raw_fd());
    /// let mut command = minder::Command::new("bash");
    /// command.args(["-c", &line]).descriptors(&minder::Descriptors::default().with(file));
    /// assert!(command.spawn()?.wait()?.status.success());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with(mut self, file: impl Into<Arc<File>>) -> Self {
        let file = file.into();
        let number = system::descriptor_of(&file);
        if (0..3).contains(&number) {
            return self;
        }
        let kept = Arc::make_mut(self.list.get_or_insert_default());
        let one = Kept { number, file: Some(file) };
        match kept.binary_search_by_key(&number, |kept| kept.number) {
            Ok(index) => kept[index] = one,
            Err(index) => kept.insert(index, one),
        }
        self
    }

    /// Returns the numbers, in ascending order.
    pub fn numbers(&self) -> impl ExactSizeIterator<Item = i32> {
        self.kept().iter().map(|kept| kept.number)
    }

    /// Sets the close-on-exec flag of all of them, so that no program inherits them, even if another
    /// library starts it.
    ///
    /// Children that this crate starts inherit only the
    /// [`descriptors`](crate::Command::descriptors) of their command. The exception is a Unix system
    /// without `close_range` (Linux 5.9) or an equivalent: there they also inherit descriptors
    /// without the flag.
    pub fn close_on_exec(&self) {
        self.numbers().for_each(system::close_on_exec);
    }
}
