//! `Signal`: the number of a signal, with the names of POSIX.

use std::fmt;

/// A signal of Unix.
///
/// The constants are the signals that programs send to processes and get from them; their numbers are
/// those of this system. [`from_raw`](Self::from_raw) makes any other, such as a real-time signal.
///
/// - Windows: processes get no signals. A [`ProcessGuard`](crate::guard::ProcessGuard) reports requests
///   of the console as [`INT`](Self::INT), [`TERM`](Self::TERM) and [`HUP`](Self::HUP). The numbers are
///   those of Linux.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Command, Signal};
///
/// let mut child = Command::new("sleep").arg("60").spawn()?;
/// child.signal(Signal::TERM)?;
/// assert_eq!(child.wait()?.status.signal(), Some(Signal::TERM.as_raw()));
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
///
/// Some ask, some stop and continue, and one cannot be refused:
///
/// ```
/// use minder::Signal;
///
/// let requests = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2];
/// let others = [Signal::ABRT, Signal::ALRM, Signal::PIPE, Signal::WINCH];
/// let stops = [Signal::STOP, Signal::TSTP, Signal::CONT];
/// for signal in requests.into_iter().chain(others).chain(stops) {
///     assert!(signal != Signal::KILL && signal.to_string().starts_with("SIG"));
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signal(i32);

/// Defines the constants: name, number where there are no signals, and documentation.
macro_rules! signals {
    ($($(#[doc = $text:literal])* $name:ident, $number:ident = $other:literal;)*) => {
        impl Signal {
            $(
                $(#[doc = $text])*
                pub const $name: Self = Self(if_unix!($number, $other));
            )*

            /// Returns the name, such as `TERM`.
            fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

#[cfg(unix)]
macro_rules! if_unix {
    ($number:ident, $other:literal) => {
        libc::$number
    };
}
#[cfg(not(unix))]
macro_rules! if_unix {
    ($number:ident, $other:literal) => {
        $other
    };
}

signals! {
    /// `SIGHUP`: the terminal or the console window was closed. Many servers read their settings again.
    HUP, SIGHUP = 1;
    /// `SIGINT`: Ctrl-C.
    INT, SIGINT = 2;
    /// `SIGQUIT`: Ctrl-\\.
    QUIT, SIGQUIT = 3;
    /// `SIGABRT`: what abort(3) raises.
    ABRT, SIGABRT = 6;
    /// `SIGKILL`: ends the process, which cannot refuse.
    KILL, SIGKILL = 9;
    /// `SIGUSR1`.
    USR1, SIGUSR1 = 10;
    /// `SIGUSR2`.
    USR2, SIGUSR2 = 12;
    /// `SIGPIPE`: a write to a pipe that has no reader.
    PIPE, SIGPIPE = 13;
    /// `SIGALRM`: a timer has expired.
    ALRM, SIGALRM = 14;
    /// `SIGTERM`: a request to exit. On Windows Ctrl-Break.
    TERM, SIGTERM = 15;
    /// `SIGCONT`: continues a stopped process.
    CONT, SIGCONT = 18;
    /// `SIGSTOP`: stops the process, which cannot refuse.
    STOP, SIGSTOP = 19;
    /// `SIGTSTP`: Ctrl-Z.
    TSTP, SIGTSTP = 20;
    /// `SIGWINCH`: the terminal has a new size.
    WINCH, SIGWINCH = 28;
}

impl Signal {
    /// Returns the signal with this number. A call that sends it fails with
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) if this system has no such signal.
    ///
    /// ```
    /// use minder::Signal;
    ///
    /// assert_eq!(Signal::from_raw(15), Signal::TERM);
    /// assert_eq!(Signal::from_raw(40).to_string(), "signal 40");
    /// ```
    pub const fn from_raw(number: i32) -> Self {
        Self(number)
    }

    /// Returns the number.
    ///
    /// ```
    /// assert_eq!(minder::Signal::TERM.as_raw(), 15);
    /// ```
    pub const fn as_raw(self) -> i32 {
        self.0
    }
}

/// Writes the name, such as `SIGTERM`, or `signal` and the number.
impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "SIG{name}"),
            None => write!(f, "signal {}", self.0),
        }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
