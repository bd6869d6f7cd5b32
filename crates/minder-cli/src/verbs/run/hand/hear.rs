//! What running jobs write: to the screen, to files, or into the batch.

use minder::exec::{Outputs, Start};
use minder::{Spilled, Stream, Token};

use super::super::job::Running;
use super::super::lines::Pen;
use super::super::output::Own;
use super::super::results::cannot_write;
use super::super::shared::Shared;
use super::Hand;
use super::conclude::last_of;
use crate::plan::View;

/// From this size on the output of a job that is seen as it writes passes without us.
const FORWARD_FROM: u64 = 1 << 20;

impl Hand<'_> {
    /// Shows as it comes the job that has the stage, if it runs here.
    pub(super) fn promote(&mut self, outputs: &mut Outputs<'_>) {
        let shared = self.shared;
        if !matches!(shared.plan.view, View::Grouped | View::Ordered) || !shared.plan.may_be_live() {
            return;
        }
        // Pieces of what is being killed are not shown.
        if shared.crew.is_cancelled() {
            return;
        }
        let stage = shared.stage;
        let sole =
            (stage.is_free() && shared.input.is_over()).then(|| shared.crew.counts()).filter(|counts| {
                counts.running == 1 && counts.offered == 1 + counts.succeeded + counts.failed + counts.skipped
            });
        // The one before it had an end that was held back when this one started.
        let alone = sole.is_some() || (shared.degree == 1 && stage.is_free());
        let slot = match alone {
            // If it runs here it is the only one.
            true => self.here.values().next().copied(),
            false => self.here.get(&stage.owner()).copied(),
        };
        let waiting = slot
            .and_then(|slot| self.running.get_mut(slot)?.as_mut())
            .filter(|running| !running.live && running.may_live);
        // Without a token it was put back, and is another loop's by now.
        let waiting = waiting.and_then(|running| running.token.map(|token| (running, token)));
        let is_here = waiting.is_some();
        if let Some((running, token)) = waiting
            && (stage.has(running.number) || (alone && stage.claim(running.number)))
        {
            running.live = true;
            show_head(shared, running);
            // It fails only for a child that is over, which is shown then anyway.
            let _ = outputs.go_live(token);
        }
        // The other loop has it, and may sleep. Rung once, since it may hang in a write.
        if let Some(counts) = sole.filter(|_| !is_here)
            && std::mem::replace(&mut self.rung, counts.offered) != counts.offered
        {
            shared.crew.wake();
        }
    }

    /// Goes on with lines that had to wait.
    pub(super) fn go_on(&mut self) {
        let shared = self.shared;
        let mut released = false;
        for slot in std::mem::take(&mut self.lined_up) {
            let Some(running) = self.running.get_mut(slot).and_then(Option::as_mut) else { continue };
            let Running { number, lines, marks, markers, .. } = running;
            let (stage, marks) = (shared.stage, marks.as_ref());
            released |=
                lines.go_on(&mut Pen { stage, job: *number, line_max: self.line_max, marks, markers });
            if lines.waits() {
                self.lined_up.insert(slot);
            }
        }
        if released {
            shared.crew.wake();
        }
    }

    /// Prints what stands before a job's output.
    pub(super) fn begin(&mut self, start: Start) {
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if running.live {
            return show_head(self.shared, running);
        }
        let head = std::mem::take(&mut running.head);
        if self.shared.plan.view == View::Lines {
            let Running { number, lines, marks, markers, .. } = running;
            let (stage, marks) = (&self.shared.stage, marks.as_ref());
            lines.begin(head, &mut Pen { stage, job: *number, line_max: self.line_max, marks, markers });
        } else {
            self.batch.push(Stream::Stdout, &head);
        }
    }

    /// Takes bytes of a running job.
    pub(super) fn heard(&mut self, start: Start, stream: Stream, chunk: minder::Chunk) {
        let (shared, line_max) = (self.shared, self.line_max);
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if running.torn {
            return;
        }
        if !running.head.is_empty() {
            self.begin(start);
        }
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        running.count(stream, chunk.len() as u64);
        if let Some(results) = &mut running.results {
            if let Err(error) = results.push(stream, &chunk) {
                return shared.fail(cannot_write(results.place(), &error));
            }
            if !results.shows(stream) {
                return running.tails[stream as usize].push(&chunk);
            }
        }
        let lines = shared.plan.view == View::Lines;
        if running.live || lines {
            running.tails[stream as usize].push(&chunk);
        }
        if lines {
            let Running { number, lines: pen_lines, marks, markers, .. } = running;
            let (stage, marks) = (shared.stage, marks.as_ref());
            let pen = &mut Pen { stage, job: *number, line_max, marks, markers };
            if pen_lines.push(stream, chunk, pen) {
                shared.crew.wake();
            }
            if pen_lines.waits() {
                self.lined_up.insert(start.slot as usize);
            }
        } else if running.live {
            shared.stage.show(stream, &chunk, running.marking(stream));
        } else {
            self.batch.push(stream, &chunk);
        }
    }

    /// Takes a file with output of a running job.
    pub(super) fn heard_file(&mut self, start: Start, stream: Stream, spilled: Spilled) {
        let shared = self.shared;
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if running.torn {
            return Own::from(spilled).remove();
        }
        if !running.head.is_empty() {
            self.begin(start);
        }
        let Some(running) = self.running.get_mut(start.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        running.count(stream, spilled.len);
        if let Some(results) = &mut running.results {
            let end = spilled.start + spilled.len;
            if let Err(error) = results.push_file(stream, &spilled.file, spilled.start, end) {
                return shared.fail(cannot_write(results.place(), &error));
            }
            if !results.shows(stream) {
                running.tails[stream as usize].push(&last_of(&spilled.file, end));
                return Own::from(spilled).remove();
            }
        }
        if running.live {
            running.tails[stream as usize].push(&last_of(&spilled.file, spilled.start + spilled.len));
            shared.stage.show_file(stream, spilled, running.marking(stream));
        } else {
            self.batch.push_file(stream, Own::from(spilled));
        }
    }
}

/// Shows what stands before the output of a job that is seen as it writes.
pub(super) fn show_head(shared: &Shared<'_>, running: &mut Running) {
    let head = std::mem::take(&mut running.head);
    shared.stage.show(Stream::Stdout, &head, running.marking(Stream::Stdout));
}

/// Ends the coloured lines of such a job, which is over.
pub(super) fn end_lines(shared: &Shared<'_>, running: &mut Running) {
    for stream in [Stream::Stdout, Stream::Stderr] {
        if let Some(marking) = running.marking(stream) {
            shared.stage.end_line(stream, marking);
        }
    }
}

/// Lets the bytes of a job that has the stage pass without us, where nothing is to be done to them
/// and there are many: the last of what a job wrote is known only of bytes that come to us.
pub(super) fn forward(shared: &Shared<'_>, running: &mut Running, token: Token, outputs: &mut Outputs<'_>) {
    if !running.live || running.forwards || running.wrote[Stream::Stdout as usize] < FORWARD_FROM {
        return;
    }
    running.forwards = true;
    if running.marks.is_some() || running.results.is_some() || shared.plan.pty {
        return;
    }
    if let Some(file) = shared.stage.open_to_forward() {
        // Where it is refused, the bytes come to us.
        let _ = outputs.forward(token, Stream::Stdout, &file);
    }
}
