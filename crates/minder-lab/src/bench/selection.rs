//! The mechanisms and the command that the flags ask for.

use anyhow::{Result, bail};
use minder::Command;

use crate::flags::{ChildLine, MeasureFlags};

/// Returns the mechanisms that the flags ask for; all by default.
///
/// # Errors
/// For a name that is not in `all`.
pub(super) fn select_mechanisms(all: &[&'static str], flags: &MeasureFlags) -> Result<Vec<&'static str>> {
    if all.is_empty() {
        bail!("there is nothing to measure on this system yet");
    }
    if let Some(name) = flags.mechanism.iter().find(|name| !all.contains(&name.as_str())) {
        bail!("there is no mechanism `{name}` to measure here: there are {}", all.join(", "));
    }
    if flags.mechanism.is_empty() {
        return Ok(all.to_vec());
    }
    Ok(all.iter().copied().filter(|name| flags.mechanism.iter().any(|wanted| wanted == name)).collect())
}

/// Returns the command that children run.
pub(super) fn child_command(line: &ChildLine) -> Command {
    let mut command = Command::new(line.0.first().map_or("", String::as_str));
    command.args(line.0.iter().skip(1));
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::OutputFlags;

    fn flags(names: &[&str]) -> MeasureFlags {
        let mechanism = names.iter().map(|name| (*name).to_owned()).collect();
        MeasureFlags { mechanism, rounds: 1, output: OutputFlags { csv: false, json: false, svg: None } }
    }

    #[test]
    fn mechanisms_are_selected_by_name_in_their_order() {
        let all = ["epoll", "poll", "select"];
        assert_eq!(select_mechanisms(&all, &flags(&[])).expect("select all"), all);
        let two = select_mechanisms(&all, &flags(&["select", "epoll"])).expect("select two");
        assert_eq!(two, ["epoll", "select"]);
        let error = select_mechanisms(&all, &flags(&["magic"])).expect_err("select unknown").to_string();
        assert!(error.contains("`magic`") && error.ends_with("epoll, poll, select"), "{error}");
        assert!(select_mechanisms(&[], &flags(&[])).is_err());
    }
}
