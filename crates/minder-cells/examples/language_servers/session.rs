//! The set of all servers: its events, and what follows from each.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use minder::{
    ChildId, ChildSet, ChildSetOptions, Command, Event, NextEvent, Outcome, SpawnOptions, Stdio, Termination,
};
use minder_cells::RegionPool;

use crate::Failure;
use crate::documents::{Documents, Language};
use crate::figures::Figures;
use crate::messages::{COMPLETION, Completion, Message};
use crate::results::Results;
use crate::server::Server;

/// The time that killed servers may take to exit.
const KILL_TIME: Duration = Duration::from_secs(10);

/// A program, and the language that it understands.
pub(crate) struct Program {
    pub(crate) language: Language,
    pub(crate) words: Vec<String>,
}

/// The servers, what they have said, and where it goes.
pub(crate) struct Session {
    set: ChildSet,
    servers: BTreeMap<ChildId, Server>,
    documents: Documents,
    pool: RegionPool,
    results: Results,
    figures: Figures,
    rounds: usize,
    start: Instant,
    deadline: Instant,
    /// The time at which this thread last looked for events.
    looked: Instant,
    /// A time before which the present event had not happened.
    arrived_after: Instant,
}

impl Session {
    pub(crate) fn new(rounds: usize, deadline: Instant) -> Result<Self, Failure> {
        let now = Instant::now();
        Ok(Self {
            set: ChildSet::new(ChildSetOptions::new())?,
            servers: BTreeMap::new(),
            documents: Documents::create()?,
            pool: RegionPool::new(),
            results: Results::new()?,
            figures: Figures::default(),
            rounds,
            start: now,
            deadline,
            looked: now,
            arrived_after: now,
        })
    }

    /// Starts servers, the programs by turns.
    pub(crate) fn start(&mut self, programs: &[Program], count: usize) -> Result<(), Failure> {
        for (number, program) in (1..=count).zip(programs.iter().cycle()) {
            let [name, args @ ..] = &program.words[..] else { return Err("a command is empty".into()) };
            let mut command = Command::new(name);
            command.args(args).current_dir(self.documents.path());
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let child = self.set.spawn(&command, SpawnOptions::new())?;
            let name = format!("{name} {number}");
            let mut server = Server::new(name, program.language, self.rounds, &self.documents);
            server.initialize(&self.documents)?;
            self.servers.insert(child, server);
            self.send(child)?;
        }
        self.figures.servers = count;
        Ok(())
    }

    /// Handles events until every server has exited.
    pub(crate) fn run(&mut self) -> Result<(), Failure> {
        while !self.set.is_empty() {
            match self.next_event()? {
                Some(Event::Output { child, chunk, .. }) => self.read(child, &chunk)?,
                Some(Event::Writable { child, .. }) => self.send(child)?,
                Some(Event::Eof { child, .. }) => self.server(child)?.end_output()?,
                Some(Event::Done { child, outcome, .. }) => self.check_exit(child, &outcome)?,
                _ => {}
            }
            if Instant::now() >= self.deadline {
                return Err(self.unanswered().into());
            }
        }
        Ok(())
    }

    /// Kills the servers that are left.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        self.set.kill_all(Termination::IMMEDIATE)?;
        self.set.wait_all(Some(KILL_TIME), drop)?;
        Ok(())
    }

    pub(crate) fn figures(mut self) -> Figures {
        self.figures.heap = self.results.stats();
        self.figures.elapsed = self.start.elapsed();
        self.figures
    }

    /// Returns the next event. The heap works while there is none: that may return `None`, as may the
    /// deadline.
    fn next_event(&mut self) -> Result<Option<Event>, Failure> {
        if !self.set.has_pending_events() {
            // What had not arrived at the last look arrived after it.
            self.arrived_after = std::mem::replace(&mut self.looked, Instant::now());
        }
        if let NextEvent::Event(event) = self.set.next_event(Some(Duration::ZERO))? {
            return Ok(Some(event));
        }
        if self.results.collect_some()? {
            return Ok(None);
        }
        let event = self.set.next_event_deadline(Some(self.deadline))?.into_event();
        self.looked = Instant::now();
        self.arrived_after = self.looked;
        Ok(event)
    }

    fn server(&mut self, child: ChildId) -> Result<&mut Server, Failure> {
        self.servers.get_mut(&child).ok_or_else(|| format!("an event of child {child}, which is done").into())
    }

    /// Takes the messages from a chunk.
    fn read(&mut self, child: ChildId, chunk: &[u8]) -> Result<(), Failure> {
        self.server(child)?.receive(chunk);
        let mut rest = chunk;
        while self.read_message(child, chunk, &mut rest)? {
            self.figures.longest_wait = self.figures.longest_wait.max(self.arrived_after.elapsed());
        }
        self.send(child)
    }

    /// Takes the next message from a chunk. Returns `false` if the chunk has no other.
    fn read_message(&mut self, child: ChildId, chunk: &[u8], rest: &mut &[u8]) -> Result<bool, Failure> {
        let Self { servers, pool, documents, results, figures, .. } = self;
        let Some(server) = servers.get_mut(&child) else { return Ok(false) };
        let Some(frame) = server.decoder.next_frame(rest)? else { return Ok(false) };
        // The bytes of a message that lies whole in the chunk are read there, and become cells.
        let region = figures.parse(|| pool.parse_json(&frame));
        figures.messages += 1;
        figures.bytes += frame.len();
        figures.direct += usize::from(chunk.as_ptr_range().contains(&frame.as_ptr()));
        let offset = frame.offset();
        let bytes = frame.len();
        server.account(offset, bytes)?;
        let region =
            region.map_err(|error| format!("{}: the message at byte {offset}: {error}", server.name()))?;
        match figures.parse(|| Message::read(region.view()))? {
            Message::Notification { method } => {
                *figures.notifications.entry(method.to_owned()).or_default() += 1;
            }
            Message::Request { id, method, params } => {
                *figures.server_requests.entry(method.to_owned()).or_default() += 1;
                server.answer(id, method, params, documents)?;
            }
            Message::Response { id, result } => {
                let (method, time) = server.take_request(id)?;
                let result =
                    result.map_err(|error| format!("{} cannot answer `{method}`: {error}", server.name()))?;
                figures.responses += 1;
                if time > figures.slowest.0 {
                    figures.slowest = (time, format!("{method} of {}", server.name()));
                }
                if method == COMPLETION {
                    let completions = figures.parse(|| Completion::read_all(result))?;
                    figures.count(&completions);
                    results.keep(result, region.bytes(), &mut server.kept)?;
                }
                server.advance(method)?;
            }
        }
        Ok(true)
    }

    /// Writes what a server has room for.
    fn send(&mut self, child: ChildId) -> Result<(), Failure> {
        let Self { set, servers, .. } = self;
        let Some(server) = servers.get_mut(&child) else { return Ok(()) };
        if server.unsent.is_empty() {
            return Ok(());
        }
        match set.write(child, &server.unsent) {
            Ok(written) => drop(server.unsent.drain(..written)),
            // Its exit is an event, and says more.
            Err(error) if error.io_error().kind() == std::io::ErrorKind::BrokenPipe => server.unsent.clear(),
            Err(error) => return Err(format!("{}: {error}", server.name()).into()),
        }
        if server.is_leaving() && server.unsent.is_empty() {
            set.close_stdin(child)?;
        }
        Ok(())
    }

    fn check_exit(&mut self, child: ChildId, outcome: &Outcome) -> Result<(), Failure> {
        let server = self.servers.remove(&child).ok_or("a server has ended twice")?;
        let status = outcome.exit.status;
        if !server.is_leaving() {
            return Err(format!("{} ended too early ({status})", server.name()).into());
        }
        if !status.success() {
            return Err(format!("{} failed at its end ({status})", server.name()).into());
        }
        Ok(())
    }

    /// Returns what each server has not answered.
    fn unanswered(&self) -> String {
        let seconds = self.start.elapsed().as_secs();
        let parts: Vec<String> = self.servers.values().map(Server::missing).collect();
        format!("after {seconds} s {}", parts.join(", "))
    }
}
