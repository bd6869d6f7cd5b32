//! The agents of a run: processes on other machines that work on it, each with a directory and a journal.
//!
//! `docs/design/cluster.md` describes how agents share the jobs of a run.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The directory of a run with the directories of its agents.
pub const AGENTS: &str = "agents";
/// The directory of a run with its rounds: the jobs of each, and who has claimed them.
pub const ROUNDS: &str = "rounds";
/// The directory of a run with its holders: the coordinators that work on it.
pub const HOLDERS: &str = "holder";
/// The directory of a run with the arguments of its jobs.
pub const SPOOL: &str = "spool";
/// The journal in the directory of an agent.
pub const JOURNAL: &str = "journal.jsonl";
/// The length of a key in hexadecimal digits.
const KEY_LEN: usize = 32;

/// The name of an agent: 128 random bits, written as 32 hexadecimal digits. No two processes have the same.
///
/// ```
/// use minder_record::agents::AgentKey;
///
/// let key = AgentKey::random();
/// assert_ne!(key, AgentKey::random());
/// assert_eq!(key.to_string().parse(), Ok(key));
/// assert!("../x".parse::<AgentKey>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentKey(u128);

impl AgentKey {
    /// Returns a new key. The bits are those of a keyed hash whose key comes from the operating system.
    pub fn random() -> Self {
        let random = RandomState::new();
        let half = |number: u32| {
            let mut hasher = random.build_hasher();
            hasher.write_u32(number);
            u128::from(hasher.finish())
        };
        Self(half(0) << 64 | half(1))
    }

    /// Returns the directory of the agent, in that of a run.
    pub fn dir(self, run: &Path) -> PathBuf {
        run.join(AGENTS).join(self.to_string())
    }
}

impl fmt::Display for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAKey;

impl fmt::Display for NotAKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the key of an agent has {KEY_LEN} hexadecimal digits")
    }
}

impl std::error::Error for NotAKey {}

impl FromStr for AgentKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != KEY_LEN || !text.bytes().all(is_digit) {
            return Err(NotAKey);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| NotAKey)
    }
}

impl Serialize for AgentKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AgentKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Returns the keys of the agents of a run, in ascending order. Links, and entries whose names are not keys,
/// are left out.
///
/// ```
/// let keys = minder_record::agents::keys("no/such/run".as_ref()).expect("no agents are no error");
/// assert!(keys.is_empty());
/// ```
///
/// # Errors
///
/// If the directory exists and cannot be read.
pub fn keys(run: &Path) -> io::Result<Vec<AgentKey>> {
    let entries = match fs::read_dir(run.join(AGENTS)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut keys = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            keys.extend(entry.file_name().to_str().and_then(|name| name.parse::<AgentKey>().ok()));
        }
    }
    keys.sort_unstable();
    Ok(keys)
}
