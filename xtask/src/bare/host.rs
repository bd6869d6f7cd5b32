//! The parts of this machine that a bare machine uses: the release of Debian, the mirror, the
//! settings of the network, and the packages that apt has downloaded.

use crate::run;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The origin of a Debian.
#[derive(Debug, PartialEq)]
pub(super) struct Source {
    /// The release, as `bookworm`.
    pub(super) suite: String,
    pub(super) mirror: String,
    /// The file of the keys that sign it, if the machine names one.
    pub(super) keyring: Option<String>,
}

/// Returns the release that this machine runs, with the first of its mirrors that has it.
pub(super) fn source() -> Result<Source> {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |name: &str| release.lines().find_map(|line| line.strip_prefix(name));
    if field("ID=") != Some("debian") {
        bail!("this system is not Debian");
    }
    let suite = field("VERSION_CODENAME=").context("/etc/os-release has no VERSION_CODENAME")?;
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    let more = std::fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    files.extend(more.map(|entry| entry.path()));
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let found = match file.extension().and_then(|e| e.to_str()) {
            Some("list") => of_lines(&text, suite),
            Some("sources") => of_stanzas(&text, suite),
            _ => None,
        };
        if let Some(source) = found {
            return Ok(source);
        }
    }
    bail!("no file of apt names a mirror for {suite} (looked into /etc/apt/sources.list and sources.list.d)")
}

/// Reads `deb [options] MIRROR SUITE COMPONENTS`, sources.list(5).
fn of_lines(text: &str, suite: &str) -> Option<Source> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("deb ")?.trim();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => ("", rest),
        };
        let mut words = rest.split_whitespace();
        let mirror = words.next()?;
        let named = words.next()?;
        let keyring = options.split_whitespace().find_map(|word| word.strip_prefix("signed-by="));
        (named == suite).then(|| Source::new(suite, mirror, keyring))
    })
}

/// Reads the stanzas of deb822, sources.list(5).
fn of_stanzas(text: &str, suite: &str) -> Option<Source> {
    text.split("\n\n").find_map(|stanza| {
        let field = |name: &str| {
            let value = stanza.lines().find_map(|line| line.split_once(':').filter(|(key, _)| *key == name));
            value.map(|(_, value)| value.trim())
        };
        let suites = field("Suites")?.split_whitespace().any(|named| named == suite);
        let binary = field("Types")?.split_whitespace().any(|kind| kind == "deb");
        let on = field("Enabled") != Some("no");
        let mirror = field("URIs")?.split_whitespace().next()?;
        (suites && binary && on).then(|| Source::new(suite, mirror, field("Signed-By")))
    })
}

impl Source {
    fn new(suite: &str, mirror: &str, keyring: Option<&str>) -> Self {
        let keyring = keyring.filter(|path| path.starts_with('/'));
        Self { suite: suite.into(), mirror: mirror.into(), keyring: keyring.map(str::to_owned) }
    }
}

/// Files that are copied unchanged: mirrors, keys, host names, certificates.
const COPIED: [&str; 9] = [
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d",
    "/etc/apt/keyrings",
    "/etc/apt/trusted.gpg",
    "/etc/apt/trusted.gpg.d",
    "/usr/share/keyrings",
    "/usr/local/share/ca-certificates",
    "/etc/hosts",
    "/etc/resolv.conf",
];

/// Copies this machine's settings of the network to the new machine.
pub(super) fn copy_settings(root: &Path) -> Result<()> {
    for name in COPIED.map(Path::new).into_iter().filter(|name| name.exists()) {
        copy(name, root)?;
    }
    // All certificates in one file, those of a proxy included.
    copy(Path::new("/etc/ssl/certs/ca-certificates.crt"), root)?;
    // How apt fetches files. Its hooks are left out: they start programs that a bare machine lacks.
    let output = run::read(run::command("apt-config").args(["dump", "Acquire"]))?;
    let kept = output.lines().filter(|line| !line.starts_with("Acquire::IndexTargets"));
    let text: String = kept.map(|line| format!("{line}\n")).collect();
    std::fs::write(root.join("etc/apt/apt.conf.d/90acquire"), text)?;
    Ok(())
}

/// Copies a file or a directory to the same path below `root`, and follows links.
fn copy(name: &Path, root: &Path) -> Result<()> {
    let parent = name.parent().and_then(|parent| parent.strip_prefix("/").ok()).context("a whole path")?;
    let to = root.join(parent);
    std::fs::create_dir_all(&to)?;
    run::read(run::command("cp").args(["-r", "-L", "--remove-destination"]).arg(name).arg(to)).map(drop)
}

/// The directory in which apt keeps packages.
const PACKAGES: &str = "var/cache/apt/archives";

/// Copies the packages of this machine that apt has kept. debootstrap and apt download the others, and
/// those that have changed.
pub(super) fn copy_packages(root: &Path) -> Result<()> {
    let to = root.join(PACKAGES);
    std::fs::create_dir_all(&to)?;
    for entry in std::fs::read_dir(Path::new("/").join(PACKAGES)).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "deb") {
            // apt may remove it at this moment.
            let _ = std::fs::copy(entry.path(), to.join(entry.file_name()));
        }
    }
    Ok(())
}

/// Returns the variables that cargo, git and apt need for the network, as `NAME=VALUE`.
pub(crate) fn variables() -> Vec<String> {
    let mut found: Vec<String> = std::env::vars()
        .filter(|(name, _)| is_for_network(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    found.sort();
    found
}

fn is_for_network(name: &str) -> bool {
    const CERTIFICATES: [&str; 4] = ["SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"];
    const CARGO: [&str; 3] = ["CARGO_HTTP_", "CARGO_NET_", "CARGO_SOURCE_"];
    name.to_ascii_lowercase().ends_with("_proxy")
        || CERTIFICATES.contains(&name)
        || CARGO.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_sources_are_read() {
        let source = |mirror: &str, keyring: Option<&str>| Some(Source::new("sid", mirror, keyring));
        let lines =
            "# deb x sid main\ndeb-src s sid main\ndeb [arch=amd64 signed-by=/k.gpg] m://a sid main\n";
        assert_eq!(of_lines(lines, "sid"), source("m://a", Some("/k.gpg")));
        assert_eq!(
            of_lines("deb m://b  sid-security main\ndeb m://c sid main", "sid"),
            source("m://c", None)
        );
        let stanzas = "Types: deb\nURIs: m://s\nSuites: sid-security\n\n\
                       Types: deb deb-src\n# a remark\nURIs: m://d m://e\n\
                       Suites: sid sid-updates\nSigned-By: /k\n";
        assert_eq!(of_stanzas(stanzas, "sid"), source("m://d", Some("/k")));
        assert_eq!(of_stanzas(&format!("Enabled: no\n{stanzas}"), "sid-security"), None);
    }

    #[test]
    fn what_leads_to_the_network_is_handed_over_and_no_secret() {
        for name in ["http_proxy", "HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE", "CARGO_HTTP_CAINFO"] {
            assert!(is_for_network(name), "{name}");
        }
        for name in ["CARGO_REGISTRY_TOKEN", "CARGO_HOME", "HOME", "PATH", "PROXY"] {
            assert!(!is_for_network(name), "{name}");
        }
    }
}
