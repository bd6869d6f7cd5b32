//! Lines for cmd.exe and PowerShell. The values are environment variables.

pub(crate) mod cmd;
pub(crate) mod env_vars;
pub(crate) mod powershell;
pub(crate) mod scanned_line;
