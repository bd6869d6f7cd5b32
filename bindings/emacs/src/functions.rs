//! The functions of the module, for `minder.el` alone: they check less than a user would need.

use std::time::Duration;

use minder::Size;
use minder::frame::FrameFormat;

use crate::env::{Env, Failure, Function, Result, Value};
use crate::host::{self, Start};
use crate::output::{ChildEvent, Item};
use crate::system::os_string;

/// The numbers of an item in the vector of `minder--take`: child, kind and data.
const SLOTS: usize = 3;
/// The most bytes that one call takes.
const TAKE_MAX: u64 = 1 << 30;
/// The longest time for a child to exit, in milliseconds.
const GRACE_MAX: u64 = 3_600_000;

macro_rules! function {
    ($name:literal, $arguments:expr, $body:path, $doc:literal) => {
        Function { name: $name, arguments: $arguments, doc: $doc, body: $body }
    };
}

/// All functions that the module defines.
pub(crate) static ALL: &[Function] = &[
    function!(c"minder--version", (0, 0), version, c"Return the version of the module.\n\n(fn)"),
    function!(
        c"minder--start",
        (2, 2),
        start,
        c"Start the set of children; PIPE gets a byte for events.\n\
          GUARDIAN is the program that ends children, or nil.\n\
          \n\
          (fn PIPE GUARDIAN)"
    ),
    function!(
        c"minder--attach",
        (1, 1),
        attach,
        c"Let PIPE get a byte for events, in place of the last one.\n\n(fn PIPE)"
    ),
    function!(c"minder--stop", (0, 0), stop, c"Kill all children, and stop the set.\n\n(fn)"),
    function!(c"minder--started-p", (0, 0), is_started, c"Return whether the set is started.\n\n(fn)"),
    function!(
        c"minder--spawn",
        (6, 6),
        spawn,
        c"Start a child; return a cons of its number and its pid.\n\
          COMMAND and ENVIRONMENT are vectors of unibyte strings.\n\
          TERMINAL is nil or [ROWS COLUMNS].  Non-nil STDERR separates the standard error.\n\
          FRAMING is nil or the name of a format.\n\
          \n\
          (fn COMMAND DIRECTORY ENVIRONMENT TERMINAL STDERR FRAMING)"
    ),
    function!(
        c"minder--write",
        (2, 2),
        write,
        c"Queue BYTES for the input of child ID; return how many were queued.\n\
          Return nil if it has no input any more.\n\
          \n\
          (fn ID BYTES)"
    ),
    function!(
        c"minder--close-stdin",
        (1, 1),
        close_stdin,
        c"Close the input of child ID after what is queued.\n\n(fn ID)"
    ),
    function!(
        c"minder--kill",
        (2, 2),
        kill,
        c"Kill child ID with everything that it started.\n\
          Ask it by SIGTERM before, GRACE milliseconds if that is not 0.\n\
          \n\
          (fn ID GRACE)"
    ),
    function!(
        c"minder--signal",
        (2, 2),
        signal,
        c"Send SIGNAL to the process group of child ID; return whether it is there.\n\
          The signal 0 only asks.\n\
          \n\
          (fn ID SIGNAL)"
    ),
    function!(
        c"minder--suspend",
        (1, 1),
        suspend,
        c"Suspend child ID with everything that it started.\n\n(fn ID)"
    ),
    function!(c"minder--resume", (1, 1), resume, c"Resume child ID.\n\n(fn ID)"),
    function!(
        c"minder--pause",
        (2, 2),
        pause,
        c"Keep the events of child ID in the module if PAUSEP, or let them come.\n\n(fn ID PAUSEP)"
    ),
    function!(
        c"minder--resize",
        (3, 3),
        resize,
        c"Set the size of the terminal of child ID.\n\n(fn ID ROWS COLUMNS)"
    ),
    function!(
        c"minder--take",
        (2, 2),
        take,
        c"Put events into VECTOR, at most BYTES of output; return how many.\n\
          Each one has three elements: child, kind, data.\n\
          \n\
          (fn VECTOR BYTES)"
    ),
    function!(
        c"minder--statistics",
        (0, 0),
        statistics,
        c"Return (CHILDREN QUEUED-BYTES GUARDIAN-PID ERROR).\n\n(fn)"
    ),
];

fn version<'e>(env: Env<'e>, _: &[Value<'e>]) -> Result<Value<'e>> {
    env.string(env!("CARGO_PKG_VERSION").as_bytes())
}

fn start<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    if host::is_started() {
        return Err(Failure::text("the set of children was started before"));
    }
    let program = if env.is_set(args[1])? { Some(os_string(env.copy(args[1])?)) } else { None };
    let channel = env.open_channel(args[0])?;
    host::start(channel, program)?;
    env.nil()
}

fn attach<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    let channel = env.open_channel(args[0])?;
    host::current()?.attach(channel);
    env.nil()
}

fn stop<'e>(env: Env<'e>, _: &[Value<'e>]) -> Result<Value<'e>> {
    host::stop()?;
    env.nil()
}

fn is_started<'e>(env: Env<'e>, _: &[Value<'e>]) -> Result<Value<'e>> {
    env.boolean(host::is_started())
}

fn spawn<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    let terminal = if env.is_set(args[3])? {
        let [rows, columns] = [env.element(args[3], 0)?, env.element(args[3], 1)?];
        Some(size(env, rows, columns)?)
    } else {
        None
    };
    let start = Start {
        command: env.copy_all(args[0])?,
        directory: env.copy(args[1])?,
        environment: env.copy_all(args[2])?,
        terminal,
        separate_stderr: env.is_set(args[4])?,
        framing: if env.is_set(args[5])? { Some(format(&env.copy(args[5])?)?) } else { None },
    };
    let (id, pid) = host::current()?.spawn(start)?;
    let pair = [number(env, id)?, env.integer(pid.into())?];
    env.call(c"cons", &pair)
}

fn write<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    let id = child(env, args[0])?;
    let bytes = env.copy(args[1])?;
    match host::current()?.write(id, &bytes) {
        Some(count) => env.integer(count as i64),
        None => env.nil(),
    }
}

fn close_stdin<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    host::current()?.close_stdin(child(env, args[0])?)?;
    env.nil()
}

fn kill<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    let grace = Duration::from_millis(env.number_up_to(args[1], GRACE_MAX)?);
    host::current()?.kill(child(env, args[0])?, grace)?;
    env.nil()
}

fn signal<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    let signal = env.number_up_to(args[1], i32::MAX as u64)?;
    let is_there = host::current()?.signal(child(env, args[0])?, signal as i32)?;
    env.boolean(is_there)
}

fn suspend<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    host::current()?.suspend(child(env, args[0])?)?;
    env.nil()
}

fn resume<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    host::current()?.resume(child(env, args[0])?)?;
    env.nil()
}

fn pause<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    host::current()?.pause(child(env, args[0])?, env.is_set(args[1])?)?;
    env.nil()
}

fn resize<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    let size = size(env, args[1], args[2])?;
    host::current()?.resize(child(env, args[0])?, size)?;
    env.nil()
}

fn take<'e>(env: Env<'e>, args: &[Value<'e>]) -> Result<Value<'e>> {
    let room = env.length(args[0])? / SLOTS;
    let max_bytes = env.number_up_to(args[1], TAKE_MAX)? as usize;
    let host = host::current()?;
    let mut count = 0;
    let mut taken_bytes = 0;
    while count < room {
        let item = if count == 0 { host.next(max_bytes) } else { host.next_taken() };
        let Some(item) = item else { break };
        if let Err(failure) = put(env, args[0], count * SLOTS, &item) {
            // Emacs has no memory. Items that are in the vector must be handled, so the call succeeds if
            // there are any.
            host.put_back(item);
            host.request_notification(taken_bytes);
            if count == 0 {
                return Err(failure);
            }
            env.clear();
            return env.integer(count as i64);
        }
        count += 1;
        taken_bytes += item.event.bytes();
    }
    host.request_notification(taken_bytes);
    env.integer(count as i64)
}

/// Puts one item into the vector.
fn put<'e>(env: Env<'e>, vector: Value<'e>, at: usize, item: &Item) -> Result<()> {
    let data = match &item.event {
        ChildEvent::Output(bytes) | ChildEvent::ErrorOutput(bytes) | ChildEvent::Message(bytes) => {
            env.bytes(bytes)?
        }
        ChildEvent::MessageError(text) => env.string(text.as_bytes())?,
        ChildEvent::Writable => env.nil()?,
        ChildEvent::Exited(code) | ChildEvent::Signaled(code) | ChildEvent::DumpedCore(code) => {
            env.integer((*code).into())?
        }
    };
    env.set(vector, at, number(env, item.child)?)?;
    env.set(vector, at + 1, env.integer(item.event.kind())?)?;
    env.set(vector, at + 2, data)
}

fn statistics<'e>(env: Env<'e>, _: &[Value<'e>]) -> Result<Value<'e>> {
    let numbers = host::current()?.statistics();
    let guardian = match numbers.guardian {
        Some(pid) => env.integer(pid.into())?,
        None => env.nil()?,
    };
    let error = match numbers.error {
        Some(text) => env.string(text.as_bytes())?,
        None => env.nil()?,
    };
    let children = env.integer(numbers.children as i64)?;
    let queued = env.integer(numbers.queued_bytes as i64)?;
    env.call(c"list", &[children, queued, guardian, error])
}

/// Returns the value for the number of a child, which Lisp passes back as it is.
fn number(env: Env<'_>, child: u64) -> Result<Value<'_>> {
    env.integer(child.cast_signed())
}

/// Returns the number of a child.
fn child<'e>(env: Env<'e>, value: Value<'e>) -> Result<u64> {
    Ok(env.number(value)?.cast_unsigned())
}

fn size<'e>(env: Env<'e>, rows: Value<'e>, columns: Value<'e>) -> Result<Size> {
    let side = |value| env.number_up_to(value, u16::MAX.into()).map(|number| number as u16);
    Ok(Size::new(side(rows)?, side(columns)?))
}

fn format(name: &[u8]) -> Result<FrameFormat> {
    match name {
        b"content-length" => Ok(FrameFormat::ContentLength),
        b"lines" => Ok(FrameFormat::Lines),
        b"nul" => Ok(FrameFormat::NulTerminated),
        _ => Err(Failure::text("invalid :framing: expected `content-length', `lines' or `nul'")),
    }
}
