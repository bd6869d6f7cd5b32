//! Options about other machines. On a command line that names none, most have no effect.

use std::ffi::OsString;

use anyhow::{Result, bail};

use super::super::warning::warn;
use super::args::{ParallelArgs, flag_with_value};
use super::options::OptionKey;

/// Options about files for other machines, in the order in which GNU parallel looks for one to warn of.
const FILE_OPTIONS: [(OptionKey, &str); 5] = [
    (OptionKey::TransferReturnCleanup, "--trc"),
    (OptionKey::Transfer, "--transfer"),
    (OptionKey::TransferFile, "--transferfile"),
    (OptionKey::Return, "--return"),
    (OptionKey::BaseFile, "--basefile"),
];

/// Pushes the flags of options about machines. Those about files have no effect on this machine, and print a
/// warning.
///
/// # Errors
/// A value names a group of machines, or `--nonall` has arguments.
pub(super) fn push_machine_flags(args: &ParallelArgs, out: &mut Vec<OsString>) -> Result<()> {
    if !args.hosts().is_empty() {
        push_hosts(args, out)?;
    } else if let Some((_, flag)) = FILE_OPTIONS.into_iter().find(|(key, _)| args.has(*key)) {
        warn(&format!("`{flag}` is ignored: no other machine is named"));
        if args.has(OptionKey::TransferReturnCleanup) && !args.has_run_flag("--cleanup") {
            out.push("--cleanup".into());
        }
    }
    if let Some(delay) = args.value(OptionKey::SshDelay)
        && !args.has_run_flag("--delay")
    {
        out.push(flag_with_value("--delay", delay));
    }
    if args.has(OptionKey::HostGroups) && !args.hosts().is_empty() {
        bail!("`--hostgroups` is not supported with other machines: each machine runs any job");
    }
    if args.has(OptionKey::HostGroups)
        && let Some(value) = args.sources().iter().find(|arg| arg.as_encoded_bytes().contains(&b'@'))
    {
        bail!(
            "`--hostgroups` is not supported with `{}`: each machine runs any job, and the group after `@` \
             names some of them",
            value.display()
        );
    }
    if args.has(OptionKey::NonAll) {
        if !args.sources().is_empty() || args.has_run_flag("--arg-file") {
            bail!("`--nonall` runs a command without arguments (--onall runs it with each of them)");
        }
        out.push("--max-args=0".into());
    }
    Ok(())
}

/// Pushes the machines, and what goes there.
fn push_hosts(args: &ParallelArgs, out: &mut Vec<OsString>) -> Result<()> {
    out.push(format!("--on=ssh:{}", args.hosts().join(",")).into());
    let ssh = args.value(OptionKey::Ssh).cloned().or_else(|| std::env::var_os("PARALLEL_SSH"));
    if let Some(ssh) = ssh.filter(|ssh| !ssh.is_empty()) {
        out.push(flag_with_value("--ssh", &ssh));
    }
    if args.has(OptionKey::Transfer) {
        out.push("--transfer".into());
    }
    for (key, flag) in [
        (OptionKey::TransferFile, "--transferfile"),
        (OptionKey::Return, "--return"),
        (OptionKey::TransferReturnCleanup, "--trc"),
        (OptionKey::BaseFile, "--basefile"),
    ] {
        out.extend(args.values(key).iter().map(|value| flag_with_value(flag, value)));
    }
    Ok(())
}

/// Returns the shell line with `{host}` and `{sshlogin}` of `--plus` as the variables that have these names
/// on other machines. That is what GNU parallel replaces them by. A column or `--rpl` may have these names.
pub(super) fn with_names(args: &ParallelArgs, line: OsString) -> OsString {
    let may_be_others = args.has_run_flag("--header") || !args.values(OptionKey::Rpl).is_empty();
    if args.hosts().is_empty() || !args.has_run_flag("--plus") || may_be_others {
        return line;
    }
    let Some(text) = line.to_str() else { return line };
    let text = text.replace("{host}", "${PARALLEL_SSHHOST}").replace("{sshlogin}", "${PARALLEL_SSHLOGIN}");
    text.into()
}

/// Returns whether the command runs on each machine with all sets of arguments, one after the other.
pub(super) fn is_on_all(args: &ParallelArgs) -> bool {
    args.has(OptionKey::OnAll) || args.has(OptionKey::NonAll)
}
