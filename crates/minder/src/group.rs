//! The process group, session or terminal of a child: plain data, without system calls.

/// The process group, session or terminal in which a child starts.
///
/// A child that is to be killed with everything that it started needs a separate group.
///
/// - Windows has no process groups. Every child has a separate job object, which its descendants
///   cannot leave. `New` and `Session` also create a console process group, so that Ctrl-Break can be
///   sent to it. `Terminal` is not supported yet. If the job of this process allows no nested jobs
///   (before Windows 8), a start fails with `Unsupported`, except with `Inherit`: then only the child
///   itself is killed.
/// - NetBSD and OpenBSD: `Terminal` is not supported. Unix other than Linux and macOS: `Session` is not
///   supported either.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Command, Group};
///
/// // Ctrl-C at the terminal reaches this child directly, as it does with `std::process`.
/// let mut editor = Command::new("true");
/// editor.group(Group::Inherit);
/// assert_eq!(editor.get_group(), Group::Inherit);
/// assert!(editor.status()?.success());
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Group {
    /// The group of the parent. Ctrl-C at the terminal reaches the child directly. Its tree cannot be
    /// killed as a whole.
    Inherit,
    /// A new process group, in the session of the parent.
    #[default]
    New,
    /// A new session, without a controlling terminal.
    Session,
    /// A new session on a new pseudo-terminal of this size. The three streams are that terminal,
    /// whatever the command sets, except an input that is [`Stdio::null`](crate::Stdio::null). The
    /// output of the child is one merged stream, [`Stream::Stdout`](crate::Stream::Stdout). The size
    /// can be changed later: [`ChildSet::resize_terminal`](crate::ChildSet::resize_terminal),
    /// [`Child::resize_terminal`](crate::Child::resize_terminal).
    Terminal(Size),
}

/// The size of a terminal, in characters, and in pixels where they are known.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use minder::{Command, Group, Size};
///
/// let mut command = Command::new("stty");
/// command.arg("size").group(Group::Terminal(Size::new(40, 120)));
/// let mut child = command.spawn()?;
/// let mut answer = [0; 64];
/// let count = std::io::Read::read(child.stdout.as_mut().expect("a terminal has an output"), &mut answer)?;
/// assert_eq!(answer[..count].trim_ascii(), b"40 120");
/// child.resize_terminal(Size::new(50, 132))?;
/// child.wait()?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// The number of lines.
    pub rows: u16,
    /// The number of characters in a line.
    pub columns: u16,
    /// The width in pixels, or 0 if it is not known.
    pub pixel_width: u16,
    /// The height in pixels, or 0 if it is not known.
    pub pixel_height: u16,
}

impl Size {
    /// Returns a size in characters.
    pub const fn new(rows: u16, columns: u16) -> Self {
        Self { rows, columns, pixel_width: 0, pixel_height: 0 }
    }

    /// Sets the size in pixels, which programs need that show images.
    ///
    /// ```
    /// let size = minder::Size::new(24, 80).pixels(640, 480);
    /// assert_eq!((size.columns, size.pixel_width), (80, 640));
    /// ```
    #[must_use]
    pub const fn pixels(mut self, width: u16, height: u16) -> Self {
        (self.pixel_width, self.pixel_height) = (width, height);
        self
    }
}

impl Default for Size {
    fn default() -> Self {
        Self::new(24, 80)
    }
}
