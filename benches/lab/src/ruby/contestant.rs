//! What is compared: a server or a scheduler, by its mode and its backend.

use std::path::Path;

/// A mode of the programs in Ruby with a backend, such as `minder:epoll`; or `c`, the server in C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contestant {
    pub(super) name: String,
}

impl Contestant {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    pub(super) fn mode(&self) -> &str {
        self.name.split(':').next().unwrap_or_default()
    }

    pub(super) fn backend(&self) -> Option<&str> {
        self.name.split_once(':').map(|(_, backend)| backend)
    }

    /// Returns whether it is a scheduler of another project.
    pub(super) fn is_peer(&self) -> bool {
        matches!(self.mode(), "async" | "evt")
    }

    /// Returns its name in tables.
    pub(super) fn title(&self) -> String {
        let mode = match self.mode() {
            "c" => "server in C (epoll)",
            "blocking" => "blocking server",
            "reference" => "reference (select)",
            "parked" => "parked without a scheduler",
            "hook" => "parked by a hook",
            other => other,
        };
        self.backend().map_or_else(|| mode.to_string(), |backend| format!("{mode} ({backend})"))
    }

    /// Returns the arguments of the server in Ruby.
    pub(super) fn server_words(&self, server: &Path) -> Vec<String> {
        let mut words = vec![server.display().to_string(), self.mode().to_string()];
        words.extend(self.backend().map(String::from));
        words.push("0".into());
        words
    }
}

impl AsRef<str> for Contestant {
    fn as_ref(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_mode_and_a_backend() {
        let ours = Contestant::new("minder:io_uring");
        assert_eq!((ours.mode(), ours.backend(), ours.is_peer()), ("minder", Some("io_uring"), false));
        assert_eq!(ours.title(), "minder (io_uring)");
        assert_eq!(ours.server_words(Path::new("s.rb")), ["s.rb", "minder", "io_uring", "0"]);
        assert_eq!(Contestant::new("threads").server_words(Path::new("s.rb")), ["s.rb", "threads", "0"]);
        assert!(Contestant::new("evt:epoll").is_peer());
    }
}
