//! Reports the exit of a child to a task.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use crate::sys::ExitDescriptor;

/// The first pause between two looks at a child without a descriptor. It doubles.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(10);

/// Wakes a task when its child may have exited.
#[derive(Debug)]
pub(crate) enum ExitWatch {
    Descriptor(ExitDescriptor),
    Pauses(Pin<Box<Sleep>>, Duration),
}

impl ExitWatch {
    pub(crate) fn new(child: &minder::Child) -> Self {
        match ExitDescriptor::of(child) {
            Some(descriptor) => Self::Descriptor(descriptor),
            None => Self::Pauses(Box::pin(sleep(PAUSE_MIN)), PAUSE_MIN),
        }
    }

    /// Waits until the caller is to look at the child. The next call waits for the next time.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Descriptor(descriptor) => {
                if ready!(descriptor.poll(cx)).is_err() {
                    // The child has outlived the runtime that watched it, and belongs to this one now.
                    *self = Self::Pauses(Box::pin(sleep(PAUSE_MIN)), PAUSE_MIN);
                    return self.poll(cx);
                }
                Poll::Ready(())
            }
            Self::Pauses(sleep, pause) => {
                ready!(sleep.as_mut().poll(cx));
                *pause = (*pause * 2).min(PAUSE_MAX);
                sleep.as_mut().reset(Instant::now() + *pause);
                Poll::Ready(())
            }
        }
    }

    /// Does the same.
    pub(crate) async fn changed(&mut self) {
        std::future::poll_fn(|cx| self.poll(cx)).await;
    }
}
