//! Lines for cmd.exe and PowerShell. The values are environment variables.

pub(crate) mod scanned_line;
pub(crate) mod cmd;
pub(crate) mod powershell;
pub(crate) mod env_vars;
