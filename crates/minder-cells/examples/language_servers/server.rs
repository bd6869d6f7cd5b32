//! One server: what it was asked, what it has answered, and what happens next.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use minder::frame::{FrameDecoder, FrameFormat};
use minder_cells::{Root, View};
use serde_json::{Value as Json, json};

use crate::Failure;
use crate::documents::{Documents, Language};
use crate::messages::{self, COMPLETION, INITIALIZE, SHUTDOWN};

/// The most bytes of the header of a message.
const HEADER_BYTES_MAX: u64 = 128;

/// A request that is not answered yet.
struct Pending {
    method: &'static str,
    sent: Instant,
}

/// The state of one server.
pub(crate) struct Server {
    /// Its program and its number.
    name: String,
    language: Language,
    uri: String,
    pub(crate) decoder: FrameDecoder,
    /// The bytes for which the pipe had no room.
    pub(crate) unsent: Vec<u8>,
    pending: BTreeMap<u64, Pending>,
    requests: u64,
    rounds_left: usize,
    /// `true` once the notification `exit` was sent.
    is_leaving: bool,
    /// The bytes of output so far.
    received: u64,
    /// The position at which the last message begins, header included, and its bytes without the
    /// header.
    last: Option<(u64, u64)>,
    /// The results that are kept, the oldest first.
    pub(crate) kept: VecDeque<Root>,
}

impl Server {
    pub(crate) fn new(name: String, language: Language, rounds: usize, documents: &Documents) -> Self {
        Self {
            decoder: FrameDecoder::new(FrameFormat::ContentLength).label(&name),
            name,
            language,
            uri: documents.uri(language),
            unsent: Vec::new(),
            pending: BTreeMap::new(),
            requests: 0,
            rounds_left: rounds,
            is_leaving: false,
            received: 0,
            last: None,
            kept: VecDeque::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Returns what the server has not done.
    pub(crate) fn missing(&self) -> String {
        let mut methods: BTreeMap<&str, usize> = BTreeMap::new();
        for pending in self.pending.values() {
            *methods.entry(pending.method).or_default() += 1;
        }
        let methods: Vec<String> =
            methods.iter().map(|(method, count)| format!("`{method}` ({count})")).collect();
        if methods.is_empty() {
            return format!("{} has not exited", self.name);
        }
        format!("{} has not answered {}", self.name, methods.join(" and "))
    }

    fn request(&mut self, method: &'static str, params: Json) -> Result<(), Failure> {
        self.requests += 1;
        self.pending.insert(self.requests, Pending { method, sent: Instant::now() });
        messages::encode(&messages::request(self.requests, method, params), &mut self.unsent)
    }

    fn notify(&mut self, method: &str, params: Json) -> Result<(), Failure> {
        messages::encode(&messages::notification(method, params), &mut self.unsent)
    }

    /// Begins the conversation.
    pub(crate) fn initialize(&mut self, documents: &Documents) -> Result<(), Failure> {
        self.request(INITIALIZE, messages::initialize(documents))
    }

    /// Counts a chunk of output.
    pub(crate) fn receive(&mut self, chunk: &[u8]) {
        self.received += chunk.len() as u64;
    }

    /// Checks that nothing but a header lies between the last message and the one that begins here.
    pub(crate) fn account(&mut self, offset: u64, bytes: usize) -> Result<(), Failure> {
        self.end_last(offset)?;
        self.last = Some((offset, bytes as u64));
        Ok(())
    }

    /// Checks the end of the output.
    pub(crate) fn end_output(&mut self) -> Result<(), Failure> {
        self.decoder.finish()?;
        self.end_last(self.received)
    }

    /// Checks that the last message, whose frame ends here, has a header of a usual length.
    fn end_last(&self, end: u64) -> Result<(), Failure> {
        let Some((offset, bytes)) = self.last else { return Ok(()) };
        let header = end.checked_sub(offset + bytes);
        if header.is_some_and(|header| (1..=HEADER_BYTES_MAX).contains(&header)) {
            return Ok(());
        }
        Err(format!("{}: the message at byte {offset} of its output does not end at byte {end}", self.name)
            .into())
    }

    /// Answers a request of the server.
    pub(crate) fn answer(
        &mut self,
        id: View<'_>,
        method: &str,
        params: Option<View<'_>>,
        documents: &Documents,
    ) -> Result<(), Failure> {
        let response = messages::response(id, method, params, &documents.root_uri())?;
        messages::encode(&response, &mut self.unsent)
    }

    /// Returns the method of a request that is now answered, and how long that took.
    pub(crate) fn take_request(&mut self, id: u64) -> Result<(&'static str, Duration), Failure> {
        let pending = self.pending.remove(&id);
        let pending = pending.ok_or_else(|| {
            let what = if id <= self.requests { " for the second time" } else { ", which was never sent" };
            format!("{} answers request {id}{what}", self.name)
        })?;
        Ok((pending.method, pending.sent.elapsed()))
    }

    /// Continues after a response.
    pub(crate) fn advance(&mut self, answered: &str) -> Result<(), Failure> {
        match answered {
            INITIALIZE => {
                self.notify("initialized", json!({}))?;
                messages::encode(&messages::did_open(&self.uri, self.language), &mut self.unsent)?;
                self.ask()
            }
            COMPLETION if self.pending.is_empty() => self.ask(),
            SHUTDOWN => {
                self.is_leaving = true;
                self.notify("exit", Json::Null)
            }
            _ => Ok(()),
        }
    }

    /// Asks for completions at every place at once, or ends the conversation.
    fn ask(&mut self) -> Result<(), Failure> {
        if self.rounds_left == 0 {
            return self.request(SHUTDOWN, Json::Null);
        }
        self.rounds_left -= 1;
        for position in self.language.positions() {
            self.request(COMPLETION, messages::completion(&self.uri, position))?;
        }
        Ok(())
    }
}
