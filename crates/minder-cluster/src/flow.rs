//! How much may be on its way to the other end of a connection: what arrives there in about a second.
//!
//! Beats wait behind what was sent before them: in both processes of ssh, and in the network. Without a limit
//! that takes longer than [`AGENT_SILENCE_MAX`](crate::protocol::AGENT_SILENCE_MAX) on a slow connection, and
//! a host that works counts as lost, again and again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The limits of what is on its way, in bytes.
const FIRST: usize = 128 << 10;
const MIN: usize = 32 << 10;
const MAX: usize = 16 << 20;
/// More is sent if it arrives in this time.
const QUICK: Duration = Duration::from_secs(1);
/// Less is sent if it takes longer than this.
const SLOW: Duration = Duration::from_secs(2);

/// What one end has sent, and the other one has not taken yet.
///
/// ```
/// use std::time::{Duration, Instant};
/// use minder_cluster::flow::Flow;
///
/// let (mut flow, now) = (Flow::new(), Instant::now());
/// flow.sent(1 << 20, now);
/// assert!(!flow.may_send());
/// flow.taken(now + Duration::from_millis(10));
/// assert!(flow.may_send());
/// ```
#[derive(Debug)]
pub struct Flow {
    most: usize,
    on_way: usize,
    parts: VecDeque<(usize, Instant)>,
    /// When less was allowed. What was sent before that is late, too.
    lowered: Option<Instant>,
}

impl Flow {
    /// Creates one for a new connection.
    #[allow(clippy::new_without_default)] // A default of a connection says nothing.
    pub fn new() -> Self {
        Self { most: FIRST, on_way: 0, parts: VecDeque::new(), lowered: None }
    }

    /// Returns whether the next part may be sent.
    pub fn may_send(&self) -> bool {
        self.on_way < self.most
    }

    /// Notes that a part is sent.
    pub fn sent(&mut self, bytes: usize, now: Instant) {
        self.on_way += bytes;
        self.parts.push_back((bytes, now));
    }

    /// Notes that the other end has taken the oldest part.
    pub fn taken(&mut self, now: Instant) {
        let Some((bytes, sent)) = self.parts.pop_front() else { return };
        let took = now.saturating_duration_since(sent);
        // If little was on its way, its time says nothing about more.
        if took <= QUICK && self.on_way >= self.most / 2 {
            self.most = (self.most + bytes).min(MAX);
        } else if took > SLOW && self.lowered.is_none_or(|lowered| sent >= lowered) {
            self.most = (self.most / 2).max(MIN);
            self.lowered = Some(now);
        }
        self.on_way -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: usize = 64 << 10;

    /// Sends parts as fast as it may for a minute to an end that takes `rate` bytes a second. Returns the
    /// longest time of a part, and how many bytes have arrived.
    fn send(rate: usize) -> (Duration, usize) {
        let mut flow = Flow::new();
        let start = Instant::now();
        let per_part = Duration::from_secs_f64(PART as f64 / rate as f64);
        let mut longest = Duration::ZERO;
        let mut arrived = 0;
        let mut now = start;
        while now < start + Duration::from_secs(60) {
            while flow.may_send() {
                flow.sent(PART, now);
            }
            now += per_part;
            longest = longest.max(now - flow.parts[0].1);
            flow.taken(now);
            arrived += PART;
        }
        (longest, arrived)
    }

    #[test]
    fn parts_arrive_soon_on_a_slow_connection() {
        for rate in [20 << 10, 200 << 10, 2 << 20, 200 << 20] {
            let (longest, arrived) = send(rate);
            assert!(longest <= Duration::from_secs(8), "{rate} bytes a second: {longest:?}");
            assert!(arrived >= 59 * rate, "{rate} bytes a second: {arrived}");
        }
    }

    #[test]
    fn more_is_sent_while_parts_arrive_at_once() {
        let mut flow = Flow::new();
        let now = Instant::now();
        let mut sent = 0;
        for _ in 0..10 {
            while flow.may_send() {
                flow.sent(PART, now);
                sent += 1;
            }
            while !flow.parts.is_empty() {
                flow.taken(now);
            }
        }
        assert!(sent * PART > 8 * FIRST, "{sent} parts");
        // Parts that come one at a time change nothing.
        let most = flow.most;
        flow.sent(PART, now);
        flow.taken(now);
        assert_eq!(flow.most, most);
    }
}
