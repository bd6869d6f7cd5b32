//! `Command::uid`, `limit` and the others that a child applies to itself.

use crate::command::Command;
use crate::process_attributes::{ProcessAttributes, Resource, ResourceLimit};

impl Command {
    /// Sets the user of the child: its real, effective and saved user id. With the privilege of root, the
    /// child has no supplementary groups then, unless [`groups`](Self::groups) sets them. Default: the user
    /// of this process.
    ///
    /// The order is that of the standard library: limits, groups, group, user, then the working directory.
    /// The environment stays as it is, with `HOME` and `USER`. The program is searched for with the rights of
    /// this process. A kill of a child that runs as another user needs the privilege, too (`CAP_KILL`).
    ///
    /// A start fails with `PermissionDenied` if this process may not set the id, and the error names it.
    ///
    /// - Linux: while the child starts, this process writes no core dump.
    /// - Other systems: a start fails with `Unsupported`.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{Command, ErrorKind};
    ///
    /// let mut command = Command::new("id");
    /// command.arg("-u").uid(65534).gid(65534);
    /// match command.output() {
    ///     Ok(output) => assert_eq!(output.stdout, b"65534\n"),
    ///     // This process is not that of root.
    ///     Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
    /// }
    /// # }
    /// ```
    pub fn uid(&mut self, uid: u32) -> &mut Self {
        self.attributes().uid = Some(uid);
        self
    }

    /// Sets the group of the child: its real, effective and saved group id. Default: the group of this
    /// process. Errors and systems: see [`uid`](Self::uid).
    pub fn gid(&mut self, gid: u32) -> &mut Self {
        self.attributes().gid = Some(gid);
        self
    }

    /// Sets the supplementary groups of the child. Default: those of this process, or none for another
    /// [user](Self::uid). Errors and systems: see there.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{Command, ErrorKind};
    ///
    /// let mut command = Command::new("id");
    /// command.arg("-G").gid(7).groups([8, 9]);
    /// match command.output() {
    ///     Ok(output) => assert_eq!(output.stdout, b"7 8 9\n"),
    ///     Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
    /// }
    /// # }
    /// ```
    pub fn groups(&mut self, groups: impl IntoIterator<Item = u32>) -> &mut Self {
        self.attributes().groups = Some(groups.into_iter().collect());
        self
    }

    /// Sets the soft and the hard limit of a resource for the child and its descendants: setrlimit(2). `None`
    /// means unlimited. Default: the limits of this process; for descriptors, the soft limit that it was
    /// started with. They are set before the [user](Self::uid), so root may raise a hard limit for another
    /// user.
    ///
    /// A start fails with `PermissionDenied` if the hard limit is above that of this process, without the
    /// privilege (`CAP_SYS_RESOURCE`), and with `InvalidInput` if the soft limit is above the hard one.
    ///
    /// - Systems other than Linux: a start fails with `Unsupported`.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{Command, Resource};
    ///
    /// // It is stopped after a second of processor time, at the latest.
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "while :; do :; done"]).limit(Resource::CpuTime, Some(1), Some(1));
    /// assert!(command.status()?.signal().is_some());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn limit(&mut self, resource: Resource, soft: Option<u64>, hard: Option<u64>) -> &mut Self {
        let limits = &mut self.attributes().limits;
        limits.retain(|limit| limit.resource != resource);
        limits.push(ResourceLimit { resource, soft, hard });
        self
    }

    /// Sets the umask of the child: the permissions that new files do not get. Default: that of this process.
    ///
    /// - Systems other than Linux: a start fails with `Unsupported`.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// let mut command = minder::Command::new("sh");
    /// command.args(["-c", "umask"]).umask(0o077);
    /// assert_eq!(command.output()?.stdout, b"0077\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn umask(&mut self, mask: u32) -> &mut Self {
        self.attributes().umask = Some(mask);
        self
    }

    fn attributes(&mut self) -> &mut ProcessAttributes {
        self.attributes.get_or_insert_default()
    }
}
