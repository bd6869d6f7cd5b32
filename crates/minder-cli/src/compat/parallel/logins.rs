//! The machines that `--sshlogin` and `--sshloginfile` name: this one, or the line is refused.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use minder_os::encoding::os_string_from_encoded;

use super::profile;
use crate::ui::os_error_text;

/// The file of machines of all users.
const SYSTEM_FILE: &str = "/etc/parallel/sshloginfile";

/// Reads the values of `--sshlogin` and the files of `--sshloginfile`. Returns the number of jobs that
/// the last of them with a number sets for this machine (`N/:`).
///
/// # Errors
/// Another machine is named, or a file cannot be read.
pub(super) fn local_jobs(logins: &[OsString], files: &[OsString]) -> Result<Option<OsString>> {
    let mut jobs = None;
    for list in logins {
        for login in parts(list.as_encoded_bytes()) {
            match login {
                b".." => add_file(OsStr::new(".."), &mut jobs)?,
                login => add_login(login, &mut jobs)?,
            }
        }
    }
    for name in files {
        add_file(name, &mut jobs)?;
    }
    Ok(jobs)
}

/// Returns the machines of a list, `N/:,:`.
fn parts(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b',' | b'\n')).map(<[u8]>::trim_ascii_end)
}

/// Reads one machine, `[@GROUP/][N/]:`.
fn add_login(login: &[u8], jobs: &mut Option<OsString>) -> Result<()> {
    let parts: Vec<&[u8]> = login.split(|byte| *byte == b'/').collect();
    let parts = match parts.as_slice() {
        [[b'@', _, ..], rest @ ..] => rest,
        all => all,
    };
    match parts {
        [b":"] => Ok(()),
        [number, b":"] if !number.is_empty() && number.iter().all(u8::is_ascii_digit) => {
            *jobs = Some(os_string_from_encoded(number.to_vec()));
            Ok(())
        }
        _ => bail!(
            "`--sshlogin {}` is not supported: jobs run only on this machine (start minder on the other one, \
             as in ssh HOST minder parallel …)",
            String::from_utf8_lossy(login)
        ),
    }
}

/// Reads a file with a list of machines on each line.
fn add_file(name: &OsStr, jobs: &mut Option<OsString>) -> Result<()> {
    let path = find_file(name)?;
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) => bail!("cannot read `{}`: {}", path.display(), os_error_text(&error)),
    };
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
        for login in parts(line) {
            add_login(login, jobs).with_context(|| format!("`{}`", path.display()))?;
        }
    }
    Ok(())
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
    fn local_jobs_accepts_this_machine_only() {
        let read = |login: &str| {
            local_jobs(&[login.into()], &[])
                .map(|jobs| jobs.unwrap_or_default().display().to_string())
                .map_err(|error| error.to_string())
        };
        for (login, jobs) in [(":", ""), (":,:", ""), ("3/:", "3"), ("@a+b/:", ""), ("@a/2/:,:", "2")] {
            assert_eq!(read(login).as_deref(), Ok(jobs), "{login}");
        }
        for login in ["host", "", ":,host", "2/host", "@a", "x/:", "/:", "user@:", "-"] {
            let error = read(login).expect_err(login);
            assert!(error.contains("jobs run only on this machine"), "{login}: {error}");
        }
    }

    #[test]
    fn files_name_this_machine_too() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let read = |text: &str| {
            let path = dir.path().join("machines");
            std::fs::write(&path, text).expect("write file");
            local_jobs(&[], &[path.into()]).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(read("# none\n\n  :\n"), Ok(None));
        assert_eq!(read("4/:\n"), Ok(Some("4".into())));
        assert!(read(":\nhost\n").is_err_and(|error| error.contains("`--sshlogin host`")));
        assert!(read("..\n").is_err(), "a file does not include another one");
        assert!(local_jobs(&[], &["-".into()]).is_err());
        assert!(local_jobs(&[], &["/no/such/file".into()]).is_err());
    }
}
