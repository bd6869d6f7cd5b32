//! Output that is handed over as it arrives, of a child whose output was kept until now; and output
//! that is forwarded to a file.

use std::fs::File;
use std::sync::Arc;

use super::child_set::{ChildSet, child_gone};
use super::config::{OutputMode, OverflowPolicy};
use super::event::QueuedEvent;
use crate::child_pipes::resize_failed;
use crate::command::Size;
use crate::event::{ChildId, Event, Stream};
use crate::{Error, ErrorKind, Operation, Result};

impl ChildSet {
    /// Hands a child's output over as it arrives from now on, after the output that is kept.
    ///
    /// The child blocks while there is no room in memory. Without effect on a child that is done
    /// except for its last events.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, OutputMode, OverflowPolicy};
    /// use minder::{SpawnOptions, Stdio};
    ///
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo text; read line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    /// let options = SpawnOptions::new().output_mode(OutputMode::AtExit).overflow(OverflowPolicy::Spill);
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(&command, options)?;
    /// set.start_streaming(child)?; // its turn to be shown has come
    /// while let Some(event) = set.next_event(None)?.into_event() {
    ///     if let Event::Output { chunk, .. } = event {
    ///         assert_eq!(*chunk, *b"text\n", "it arrives while the child waits for its input");
    ///         set.close_stdin(child)?;
    ///     }
    /// }
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    pub fn start_streaming(&mut self, id: ChildId) -> Result<()> {
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        if child.is_draining() || child.is_streaming() {
            return Ok(());
        }
        child.options.output_mode = OutputMode::Stream;
        child.options.overflow = OverflowPolicy::Block;
        self.leave_turns(id)?;
        for stream in [Stream::Stdout, Stream::Stderr] {
            self.queue_output(id, stream);
            let Some(child) = self.children.get_mut(id) else { break };
            let spill_as_file = child.options.spill_as_file;
            let state = child.stream(stream);
            if state.is_spilled() {
                state.spill_queued = spill_as_file;
                if spill_as_file {
                    self.events.push_back(QueuedEvent::Spilled(id, stream));
                }
                self.add_memory_waiter(id);
            }
            self.queue_eof(id, stream);
        }
        // An error of a spill file, of this child or another, is not lost: the next call of `next_event`
        // tries again and reports it.
        let _ = self.retry_paused();
        self.update_poll_handle()
    }

    /// Forwards the bytes of an output to `file` as they arrive, after the output that is kept was
    /// handed over. [`Event::Forwarded`] counts them.
    ///
    /// On Linux the bytes move from pipe to pipe by splice(2), without a copy through our memory; both
    /// pipes are enlarged to 1 MiB. If the kernel or the file refuses, now or later, the output
    /// arrives as [`Event::Output`] again, so the caller must be ready to write it.
    ///
    /// If the file accepts no bytes, the set waits for it, at most 100 ms in each call of
    /// [`next_event`](Self::next_event).
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, SpawnOptions, Stdio, Stream};
    /// use std::io::Write;
    /// use std::sync::Arc;
    ///
    /// let mut command = Command::new("echo");
    /// command.arg("text").stdout(Stdio::piped());
    /// let (reader, writer) = std::io::pipe()?; // in place of our standard output
    /// let writer = Arc::new(std::fs::File::from(std::os::fd::OwnedFd::from(writer)));
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(&command, SpawnOptions::new())?;
    /// set.forward(child, Stream::Stdout, &writer)?;
    /// let mut forwarded = 0;
    /// while let Some(event) = set.next_event(None)?.into_event() {
    ///     match event {
    ///         Event::Forwarded { count, .. } => forwarded += count,
    ///         // The kernel refused: the bytes come here.
    ///         Event::Output { chunk, .. } => (&*writer).write_all(&chunk)?,
    ///         _ => (),
    ///     }
    /// }
    /// assert!(forwarded == 5 || forwarded == 0);
    /// drop((set, writer));
    /// assert_eq!(std::io::read_to_string(reader)?, "text\n");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    /// - `InvalidInput`: the child's output is not handed over as it arrives.
    pub fn forward(&mut self, id: ChildId, stream: Stream, file: &Arc<File>) -> Result<()> {
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        if !child.is_streaming() {
            let reason = "its output is kept until its end: `start_streaming` comes first";
            let error = Error::of_kind(ErrorKind::InvalidInput, "forward the output of a child", reason);
            return Err(error.during(Operation::Forward));
        }
        let state = child.stream(stream);
        if let Some(reader) = state.reader()
            && reader.can_forward(file)
        {
            reader.enlarge(Some(file));
            state.forward = Some(Arc::clone(file));
        }
        Ok(())
    }

    /// Sets the size of the child's terminal: see [`Group::Terminal`](crate::Group::Terminal). Its
    /// foreground processes get `SIGWINCH`. A child that is started again gets the size that its command
    /// names.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Group, Size, SpawnOptions, Termination};
    ///
    /// let mut command = Command::new("cat");
    /// command.group(Group::Terminal(Size::default()));
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(&command, SpawnOptions::new())?;
    /// set.resize_terminal(child, Size::new(50, 132))?;
    /// set.kill(child, Termination::IMMEDIATE)?;
    /// assert!(set.wait_all(None, drop)?);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done, or its terminal was closed.
    /// - `InvalidInput`: the child has no terminal.
    /// - `Unsupported`: on Windows.
    pub fn resize_terminal(&mut self, id: ChildId, size: Size) -> Result<()> {
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        let result = match (child.streams[Stream::Stdout as usize].reader(), &child.stdin) {
            (Some(reader), _) => reader.resize_terminal(size),
            (None, Some(writer)) => writer.resize_terminal(size),
            (None, None) => return Err(child_gone()),
        };
        result.map_err(resize_failed)
    }

    /// Takes the spill file of a stream. `None` if there is none: the bytes that it refused are then
    /// next in the queue.
    pub(super) fn take_spill_file(&mut self, id: ChildId, stream: Stream) -> Option<Event> {
        let child = self.children.get_mut(id)?;
        let taken = child.take_spill_file(stream);
        let is_draining = child.is_draining();
        if taken.rest_buffered {
            self.events.push_front(QueuedEvent::Output(id, stream));
        }
        if !is_draining {
            // The next poll resumes the stream, which was paused while bytes waited.
            self.retry_due = true;
            self.queue_eof(id, stream);
        }
        taken.file.map(|file| Event::Spilled { child: id, stream, file })
    }

    /// Takes the number of bytes that were forwarded. `None` if there are none.
    pub(super) fn take_forwarded(&mut self, id: ChildId, stream: Stream) -> Option<Event> {
        let state = self.children.get_mut(id)?.stream(stream);
        let count = std::mem::take(&mut state.forwarded);
        (count > 0).then_some(Event::Forwarded { child: id, stream, count })
    }
}
