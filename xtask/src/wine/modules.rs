//! The black-box tests that run under Wine in `cargo xtask test`: those of code that differs on
//! Windows.
//!
//! `cargo xtask wine` and `cargo xtask test --full` run all of them. Tidy checks that every module
//! of `tests/it` and `tests/it/cli` that is compiled for Windows is in exactly one of the two
//! lists.

/// Modules that run each time, and why.
pub(crate) const DIFFERING: &[(&str, &str)] = &[
    ("spawn", "CreateProcessW, its command line and job objects"),
    ("child", "process handles, pipes and exit codes"),
    ("one_child", "process handles that several threads wait for, and pipes of the caller"),
    ("capture", "overlapped pipes, and one pipe for both outputs"),
    ("pipeline", "anonymous pipes between children"),
    ("poller", "completion ports, registered waits and threads that wait"),
    ("clock", "clocks, waitable timers, and requests of a tick"),
    ("set", "overlapped pipes: output arrives as completions"),
    ("regression", "a test for each bug, some of them of Windows"),
    ("reports", "ends of pipes and of children"),
    ("background", "its waker and its end use a completion port"),
    ("handle_sources", "Windows only"),
    ("jobs", "suspends and kills children through job objects"),
    ("cmd_lines", "Windows only"),
    ("windows", "Windows only"),
    ("console", "Windows only"),
    ("windows_paths", "Windows only"),
    ("doctor", "the mechanisms of Windows"),
    ("examples", "the examples start programs of the system"),
    ("cli::run", "shell lines for cmd.exe and PowerShell"),
    ("cli::commands", "shell lines for cmd.exe"),
    ("cli::output", "standard streams that are consoles, pipes and files"),
    ("cli::resource_limits", "limits and failures of the system"),
    ("cli::messages", "error texts of Windows"),
    ("cli::daemons", "what jobs leave behind is in a job object"),
    ("cli::shutdown", "Ctrl-C and Ctrl-Break are console events"),
    ("cli::suspend_interrupt", "Ctrl-C is a console event"),
    ("cli::descriptors", "inherited handles"),
    ("cli::resume", "locks by LockFileEx, and processes that end by force"),
    ("cli::attempts", "processes that end by force, and locks by LockFileEx"),
    ("cli::record", "private files and locks"),
    ("cli::record_faults", "errors of files, and which of them may be repeated"),
    ("cli::clock", "requests of a tick, and processes that a killed command leaves"),
    ("cli::xargs_compat", "jobs that inherit standard streams, and long command lines"),
    ("cli::windows", "Windows only"),
];

/// Modules of code that is the same on every system, and what covers it on Windows.
pub(crate) const PORTABLE: &[(&str, &str)] = &[
    ("bench", "baselines of `minder bench`; `poller` tests the backends"),
    ("cli::views", "the order and form of output; `cli::output` has the streams"),
    ("cli::input", "sources of arguments: text only"),
    ("cli::advise", "arithmetic with records; `cli::record` has their files"),
    ("cli::log", "reads records; `cli::record` has their files"),
    ("cli::bench", "rounds and tables of measurements"),
    ("cli::bench_exit", "rounds and tables of measurements"),
    ("cli::bench_sweep", "heaps in memory, rounds and tables of measurements"),
    ("cli::bench_turnaround", "plans, rows and tables of measurements"),
    ("cli::help", "texts of help"),
    ("cli::config", "reads settings: text only; owners and modes are of Unix"),
    ("cli::help_man_completions", "manual pages and completions: text only"),
    ("cli::parallel_compat", "translates arguments: text only"),
];
