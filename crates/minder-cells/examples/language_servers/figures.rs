//! The figures that are counted and measured, and their printed form.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use minder_cells::HeapStats;

use crate::messages::Completion;

/// The figures of all servers together.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) servers: usize,
    pub(crate) messages: usize,
    /// The messages that were parsed from the chunk, without a copy.
    pub(crate) direct: usize,
    /// The bytes of messages, without their headers.
    pub(crate) bytes: usize,
    pub(crate) responses: usize,
    pub(crate) items: usize,
    pub(crate) functions: usize,
    /// The completion with the longest name.
    pub(crate) longest_label: String,
    /// The number of notifications of each method.
    pub(crate) notifications: BTreeMap<String, usize>,
    pub(crate) server_requests: BTreeMap<String, usize>,
    /// From bytes to typed values.
    pub(crate) parsing: Duration,
    pub(crate) longest_wait: Duration,
    /// The longest time from a request to its response, and of which server.
    pub(crate) slowest: (Duration, String),
    pub(crate) heap: HeapStats,
    pub(crate) elapsed: Duration,
}

impl Figures {
    /// Adds the time of a call to the time of parsing.
    pub(crate) fn parse<T>(&mut self, parse: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let value = parse();
        self.parsing += begin.elapsed();
        value
    }

    /// Counts the completions of a response.
    pub(crate) fn count(&mut self, completions: &[Completion<'_>]) {
        self.items += completions.len();
        self.functions += completions.iter().filter(|completion| completion.is_function()).count();
        if let Some(longest) = completions.iter().max_by_key(|completion| completion.label.len())
            && longest.label.len() > self.longest_label.len()
        {
            self.longest_label = longest.label.trim().to_owned();
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let notified: usize = self.notifications.values().sum();
        let asked: usize = self.server_requests.values().sum();
        writeln!(f, "messages   {} in {} bytes", self.messages, self.bytes)?;
        writeln!(f, "           {} were parsed where they arrived, the others spanned chunks", self.direct)?;
        writeln!(
            f,
            "           {} responses, the slowest after {:.1?} ({})",
            self.responses, self.slowest.0, self.slowest.1
        )?;
        writeln!(f, "           {} notifications ({})", notified, list(&self.notifications))?;
        writeln!(f, "           {} requests of servers ({})", asked, list(&self.server_requests))?;
        writeln!(f, "results    {} completions, {} of them functions", self.items, self.functions)?;
        writeln!(f, "           the longest is {}", self.longest_label)?;
        writeln!(f, "time       {:.1?} in all, {:.1?} of it for parsing", self.elapsed, self.parsing)?;
        writeln!(
            f,
            "           no message waited longer than {:.1?} until it was handled",
            self.longest_wait
        )?;
        let heap = &self.heap;
        writeln!(
            f,
            "heap       {} collections, {} bytes, the longest pause {:.1?}",
            heap.collections, heap.used_bytes, heap.longest_pause
        )?;
        write!(
            f,
            "language servers: {} servers answered {} requests, and each exited with 0",
            self.servers, self.responses
        )
    }
}

fn list(counts: &BTreeMap<String, usize>) -> String {
    if counts.is_empty() {
        return "none".to_owned();
    }
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}
