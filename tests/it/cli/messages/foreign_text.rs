//! Values, names and paths in messages, tables and status lines: nothing of them is interpreted by a
//! terminal, and nothing of them is invisible.

use minder::Stdio;

use super::super::{Run, minder, temp_dir};

/// An escape sequence that sets the clipboard, one byte that begins another, a bidirectional override, an
/// isolate, and a space without width.
const HOSTILE: &str = "\x1b]52;c;ZXZpbA==\x07\u{9b}31m\u{202e}\u{2066}\u{200b}x";

/// The command lines, with `V` for the value.
const LINES: &[&str] = &[
    "run --wd /proc/{} true ::: V",
    "run --template /etc/hostname=/proc/{} true ::: V",
    "run --results /proc/{} true ::: V",
    "run --results /proc/V.csv true ::: 1",
    "run --joblog /proc/V true ::: 1",
    "run --tmpdir /proc/V true ::: 1",
    "run --stdin /proc/V true ::: 1",
    "run --only V true ::: 1",
    "run --env V true ::: 1",
    "run --timeout V true ::: 1",
    "run --halt V true ::: 1",
    "run --rpl V true ::: 1",
    "run --load V true ::: 1",
    "run --limit V true ::: 1",
    "run --profile V true ::: 1",
    "run --resume V true",
    "run --shell V false{} ::: 1",
    "run --V true",
    "run -j V true ::: 1",
    "run -a V true",
    "run true :::: V",
    "run V ::: 1",
    "run false ::: V",
    "run false;{} ::: V",
    "run -t true ::: V",
    "run --dry-run true ::: V",
    "run --dry-run echo;{} ::: V",
    "run --tag true ::: V",
    "run --status-level all true ::: V",
    "run --failure-output final false ::: V",
    "run --header : x{y} ::: V",
    "resume V",
    "retry V",
    "log",
    "log V",
    "log -1",
    "log --jobs",
    "log --failed",
    "log --sql V",
    "log --sql select`*`from`jobs",
    "advise V",
    "advise",
    "config V",
    "config",
    "doctor V",
    "help V",
    "bench V",
    "clock V",
    "completions V",
    "relay V",
    "relay /etc/V",
    "relay --buffer V true",
    "sem --id VVVVVVVVVV --fg true",
    "sem -j V true",
    "sem --fg -q V",
    "parallel -j V true ::: 1",
    "parallel false ::: V",
    "parallel --halt now,fail=1 false ::: V",
    "parallel --env V true ::: 1",
    "parallel --V",
    "xargs V",
    "xargs -a V",
    "xargs -n V true",
    "xargs --V",
    "V",
];

/// Returns whether a terminal interprets a character, or shows nothing for it.
fn is_hostile(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[test]
fn foreign_text_is_escaped_in_everything_that_is_shown() {
    let dir = temp_dir();
    for line in LINES {
        let mut command = minder("");
        let words = line.split(' ').map(|word| word.replace(['`', ';'], " "));
        let words = words.map(|word| word.replace('V', HOSTILE));
        command.args(words).env("MINDER_STATE_DIR", dir.path()).env("LC_ALL", "C.UTF-8");
        command.stdin(Stdio::null());
        let ended = Run::start(&command).wait();
        for shown in [ended.text(), ended.err] {
            assert!(!shown.contains(is_hostile), "{line}: {shown:?}");
        }
    }
}
