//! The machines that `--sshlogin` and `--sshloginfile` name.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use minder_cluster::ssh::Host;

use super::profile;
use crate::ui::os_error_text;

/// The file of machines of all users.
const SYSTEM_FILE: &str = "/etc/parallel/sshloginfile";

/// The machines of a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Logins {
    /// The number of jobs that the last `N/:` sets for this machine.
    pub(super) local_jobs: Option<OsString>,
    /// All machines, as `minder run --on` knows them, if one of them is not this one.
    pub(super) hosts: Vec<String>,
    /// `true` if one of them is not this one.
    is_remote: bool,
}

/// Reads the values of `--sshlogin` and the files of `--sshloginfile`.
///
/// # Errors
/// A machine is written in a way that minder does not know, or a file cannot be read.
pub(super) fn logins(values: &[OsString], files: &[OsString]) -> Result<Logins> {
    let mut logins = Logins::default();
    for list in values {
        for login in parts(list.as_encoded_bytes()) {
            match login {
                b".." => logins.add_file(OsStr::new(".."))?,
                login => logins.add(login)?,
            }
        }
    }
    for name in files {
        logins.add_file(name)?;
    }
    if !logins.is_remote {
        logins.hosts.clear();
    }
    Ok(logins)
}

/// Returns the machines of a list, `N/:,:`.
fn parts(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b',' | b'\n')).map(<[u8]>::trim_ascii_end)
}

impl Logins {
    /// Reads one machine, `[@GROUP/][N/]LOGIN`.
    fn add(&mut self, login: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(login);
        let plain = match text.strip_prefix('@').and_then(|rest| rest.split_once('/')) {
            Some((group, rest)) if !group.is_empty() => rest,
            _ => &text,
        };
        if plain.contains([' ', '\t']) {
            bail!(
                "`--sshlogin {text}` is not supported: give ssh and its options by --ssh, and the host \
                 alone here"
            );
        }
        if plain.starts_with('@') {
            bail!("`--sshlogin {text}` is not supported: name the machines of the group");
        }
        if plain == ".." {
            bail!("`--sshlogin ..` is not supported in a file of machines");
        }
        let host: Host = plain.parse().map_err(|error| anyhow::anyhow!("`--sshlogin {text}`: {error}"))?;
        if host.login == Host::HERE {
            self.local_jobs = host.jobs.map(OsString::from).or(self.local_jobs.take());
        } else {
            self.is_remote = true;
        }
        self.hosts.push(plain.to_owned());
        Ok(())
    }

    /// Reads a file with a list of machines on each line.
    fn add_file(&mut self, name: &OsStr) -> Result<()> {
        let path = find_file(name)?;
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) => bail!("cannot read `{}`: {}", path.display(), os_error_text(&error)),
        };
        let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
            for login in parts(line) {
                self.add(login).with_context(|| format!("`{}`", path.display()))?;
            }
        }
        Ok(())
    }
}

/// Returns the path of a file of machines: `.` and `..` name those of the system and of the user, and a
/// file that is not there is looked for among the user's.
fn find_file(name: &OsStr) -> Result<PathBuf> {
    let own = |name: &OsStr| profile::parallel_dir().map(|dir| dir.join(name));
    let found = match name.as_encoded_bytes() {
        b"-" => bail!("`--sshloginfile -` is not supported: standard input has the arguments of jobs"),
        b"." => Some(PathBuf::from(SYSTEM_FILE)),
        b".." => own(OsStr::new("sshloginfile")),
        _ if Path::new(name).exists() => None,
        _ => own(name).filter(|path| path.exists()),
    };
    Ok(found.unwrap_or_else(|| name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_read() {
        let read = |login: &str| {
            let logins = logins(&[login.into()], &[]).map_err(|error| error.to_string())?;
            let jobs = logins.local_jobs.unwrap_or_default();
            Ok::<_, String>(format!("{} {}", jobs.display(), logins.hosts.join(",")))
        };
        let cases = [
            (":", " "),
            (":,:", " "),
            ("3/:", "3 "),
            ("@a+b/:", " "),
            ("@a/2/:,:", "2 "),
            ("host", " host"),
            ("2/user@host,:", " 2/user@host,:"),
            ("@a/4/host,2/:", "2 4/host,2/:"),
        ];
        for (login, expected) in cases {
            assert_eq!(read(login).as_deref(), Ok(expected), "{login}");
        }
        for login in ["", "@a", "x/:", "/:", "-", "-oProxyCommand=x", "ssh -p 22 host", "0/host"] {
            assert!(read(login).is_err(), "{login}");
        }
    }

    #[test]
    fn files_name_this_machine_too() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let read = |text: &str| {
            let path = dir.path().join("machines");
            std::fs::write(&path, text).expect("write file");
            logins(&[], &[path.into()]).map(|logins| logins.local_jobs).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(read("# none\n\n  :\n"), Ok(None));
        assert_eq!(read("4/:\n"), Ok(Some("4".into())));
        assert!(read(":\n-x\n").is_err_and(|error| error.contains("`--sshlogin -x`")));
        assert!(read("..\n").is_err(), "a file does not include another one");
        assert!(logins(&[], &["-".into()]).is_err());
        assert!(logins(&[], &["/no/such/file".into()]).is_err());
    }
}
