//! A child that is run to its end by a task: what the steps of a [`Capture`] wait for, in tokio's terms.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use minder::{Capture, CaptureStep, Error, Operation, Output, Result, Stream};
use tokio::time::{Sleep, sleep_until};

use crate::exit::ExitWatch;
use crate::feed::Feed;
use crate::kill::kill_dropped;
use crate::sys::Reader;

/// The most bytes that are read of an output before the others are looked at.
const READ_MAX: usize = 256 << 10;

/// The run of a child to its end. Dropping it kills the child with everything that it started.
#[derive(Debug)]
pub(crate) struct Running {
    feed: Option<Feed>,
    /// Indexed by `Stream`.
    outputs: [Option<Reader>; 2],
    watch: Option<ExitWatch>,
    timer: Option<Pin<Box<Sleep>>>,
    /// `None` at the end.
    capture: Option<Capture>,
}

impl Running {
    /// Takes a child that was started just now.
    pub(crate) fn new(mut capture: Capture) -> Result<Self> {
        let stdin = capture.child.stdin.take();
        let stdout = capture.child.stdout.take();
        let stderr = capture.child.stderr.take();
        let input = capture.input.take();
        // From here on an error kills the child.
        let mut running = Self::of_outputs(capture, [None, None]);
        let Some(capture) = &running.capture else { return Ok(running) };
        let subject = capture.subject();
        let unwatched = |error| Error::from_io(Operation::Watch, subject, error);
        running.outputs = [
            stdout.map(Reader::new).transpose().map_err(unwatched)?,
            stderr.map(Reader::new).transpose().map_err(unwatched)?,
        ];
        if let (Some(stdin), Some(input)) = (stdin, input) {
            running.feed = Some(Feed::start(stdin, input, subject)?);
        }
        Ok(running)
    }

    /// Takes a child with these outputs.
    pub(crate) fn of_outputs(capture: Capture, outputs: [Option<Reader>; 2]) -> Self {
        Self { feed: None, outputs, watch: None, timer: None, capture: Some(capture) }
    }

    fn poll_feed(&mut self, cx: &mut Context<'_>) {
        let (Some(feed), Some(capture)) = (&mut self.feed, &mut self.capture) else { return };
        if let Poll::Ready(result) = feed.poll(cx) {
            if let Err(error) = result {
                capture.fail_input(error);
            }
            self.feed = None;
        }
    }

    /// Reads what is there. Returns whether there may be more.
    fn poll_outputs(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        let Some(capture) = &mut self.capture else { return Ok(false) };
        let mut has_more = false;
        for (output, stream) in self.outputs.iter_mut().zip([Stream::Stdout, Stream::Stderr]) {
            let Some(reader) = output else { continue };
            match reader.poll_fill(cx, capture.buffer(stream), READ_MAX) {
                Poll::Pending => (),
                Poll::Ready(Ok(true)) => has_more = true,
                Poll::Ready(Ok(false)) => {
                    capture.end(stream);
                    *output = None;
                }
                Poll::Ready(Err(error)) => {
                    return Err(Error::from_io(Operation::Read, capture.subject(), error));
                }
            }
        }
        Ok(has_more)
    }

    /// Waits for the exit and for the time. Returns whether one of them has come.
    fn poll_events(&mut self, cx: &mut Context<'_>, for_exit: bool, until: Option<Instant>) -> bool {
        let Some(capture) = &self.capture else { return false };
        let mut has_come = false;
        if for_exit {
            let watch = self.watch.get_or_insert_with(|| ExitWatch::new(&capture.child));
            has_come |= watch.poll(cx).is_ready();
        }
        if let Some(until) = until.map(tokio::time::Instant::from_std) {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
            if timer.deadline() != until {
                timer.as_mut().reset(until);
            }
            has_come |= timer.as_mut().poll(cx).is_ready();
        }
        has_come
    }
}

impl Future for Running {
    type Output = Result<Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            this.poll_feed(cx);
            let has_more = this.poll_outputs(cx)?;
            let Some(capture) = &mut this.capture else { return Poll::Pending };
            match capture.advance()? {
                CaptureStep::Done(output) => {
                    this.capture = None;
                    return Poll::Ready(Ok(*output));
                }
                CaptureStep::Wait { for_exit, until, .. } => {
                    if !this.poll_events(cx, for_exit, until) && !has_more {
                        return Poll::Pending;
                    }
                }
                _ => return Poll::Pending,
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(capture) = self.capture.take() {
            kill_dropped(capture.child);
        }
    }
}
