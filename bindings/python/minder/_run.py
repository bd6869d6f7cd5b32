"""A run: the jobs of one call of `run`."""

from __future__ import annotations

import os
import re
import uuid
import weakref
from types import TracebackType
from typing import (
    Any,
    AsyncIterator,
    Generic,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Type,
    TypeVar,
    Union,
)

from . import _rows
from ._child import Child
from ._errors import RunError
from ._feed import Feed
from ._program import find_program
from ._result import Result, signal_name
from ._values import Scalar, Value

V = TypeVar("V", bound=Value)

# Up to 100 jobs are counted, and 101 stands for more.
_FAILED_MAX = 101
# The exit value of a job that ran too long.
_TIMED_OUT = -1
# The exit value of a job whose command could not be started.
_NOT_STARTED = 127


def run(
    command: Union[str, Sequence[Scalar]],
    values: Iterable[V],
    *,
    jobs: Union[int, str, None] = None,
    timeout: Union[float, str, None] = None,
    retries: Optional[int] = None,
    retry_delay: Union[float, str, None] = None,
    halt: Optional[str] = None,
    keep_order: bool = False,
    cwd: Union[str, os.PathLike[str], None] = None,
    env: Optional[Mapping[str, str]] = None,
    record: bool = False,
    grace: int = 2,
    flags: Sequence[str] = (),
) -> Run[V]:
    """Runs a command for each value, several at once, and returns an iterator of their results.

    A result comes when its job has ended. Leaving a ``for`` loop early, by ``break`` or an
    exception, ends the jobs and everything that they started, and so does the exit of Python. In a
    ``with`` statement that also holds when something else refers to the iterator.

    Args:
        command: A list of words is run as it is, without a shell. A text with spaces or shell
            characters is a line for a shell, and a value in it never becomes shell code. ``{}``
            stands for the value; without it, the value comes last. ``{.}`` is the value without
            its extension, ``{/}`` its file name, ``{//}`` its directory, ``{#}`` the number of the
            job, ``{%}`` that of its slot.
        values: Texts, bytes, paths or numbers. A tuple or list of them gives a job several
            arguments, ``{1}``, ``{2}`` …, as many as in the first one. This call takes the first
            value. A thread takes the others as they are needed: some thousands before their jobs
            start, as many as fit into a pipe. An exception of the iterable ends the run, and is
            raised to the reader.
        jobs: How many jobs run at once: a number, ``"50%"`` of the processors, ``"+1"``, ``"-1"``.
            By default one for each processor.
        timeout: The time in seconds after which a job is ended, or a text such as ``"1h30m"``, or
            ``"300%"`` of the median.
        retries: How often a job that fails is started at most; 0 for no limit.
        retry_delay: The time in seconds before a failed job is started again; it doubles each time.
        halt: When the run ends early, such as ``"now,fail=1"`` or ``"soon,fail=10%"``.
        keep_order: Gives results in the order of the values.
        cwd: The working directory of the jobs, by default that of Python.
        env: The whole environment of the jobs, as for `subprocess`: ``{**os.environ, "A": "b"}``.
        record: Leaves a record of the run, which ``minder log`` shows. It has the values.
        grace: The whole seconds in which jobs may exit when the run is ended, before they are
            killed. On Windows they are killed at once.
        flags: Further flags of ``minder run``, one text for each word, such as
            ``["--memfree", "1G"]``. Not those that change the input or the output.

    Raises:
        ProgramNotFoundError: There is no program ``minder``.
        TypeError, ValueError: An argument, or the first value, has no meaning.
        OSError: The program cannot be started, such as in a ``cwd`` that does not exist.
    """
    if not isinstance(grace, int) or isinstance(grace, bool):  # pyright: ignore
        raise TypeError(f"invalid grace {grace!r}: expected a whole number of seconds")
    if not 0 <= grace < 1e9:
        raise ValueError(f"invalid grace {grace!r}: expected 0 or more seconds")
    if isinstance(flags, (str, bytes)):
        raise TypeError(f"invalid flags {flags!r}: expected a list of words")
    feed = Feed(values)
    words = [find_program(), "run", "--no-config", "--quiet", "--heartbeat", "0"]
    words += ["--null", "--results", "-.csv", "--grace", str(grace)]
    if feed.width:
        words += ["-N", str(feed.width)]
    for name, setting in (
        ("--jobs", jobs),
        ("--timeout", _seconds("timeout", timeout)),
        ("--retries", retries),
        ("--retry-delay", _seconds("retry_delay", retry_delay)),
        ("--halt", halt),
    ):
        if setting is not None:
            words.append(f"{name}={setting}")
    if keep_order:
        words.append("--keep-order")
    if not record:
        words.append("--no-record")
    words += flags
    words += _command(command)
    child = Child(words, os.fspath(cwd) if cwd is not None else None, env, grace)
    feed.start(child.values, child.terminate)
    return Run(child, feed)


def _command(command: Union[str, Sequence[Scalar]]) -> List[str]:
    flags: List[str] = []
    if isinstance(command, (bytes, bytearray)):  # pyright: ignore
        raise TypeError(f"invalid command {command!r}: expected a text or a list of words")
    if isinstance(command, str):
        words = [command] if command.strip() else []
    else:
        flags.append("--quote")
        words = [_word(word) for word in command]
    if not words:
        raise ValueError(f"invalid command {command!r}: expected a program")
    if any(word.startswith(":::") for word in words):
        # It is an ordinary word here, and not where the values begin.
        separator = uuid.uuid4().hex
        flags += ["--arg-sep", f"{separator}:", "--arg-file-sep", f"{separator}::"]
    return [*flags, "--", *words]


def _word(word: Scalar) -> str:
    if isinstance(word, (int, float)):
        return str(word)
    return os.fsdecode(word)


def _seconds(name: str, time: Union[float, str, None]) -> Optional[str]:
    if time is None or isinstance(time, str):
        return time
    if not 0 < time < 1e10:
        raise ValueError(f"invalid {name} {time!r}: expected more than 0 seconds")
    # Zero would be no limit.
    return f"{max(time, 1e-6):.6f}"


class Run(Generic[V], Iterator[Result[V]], AsyncIterator[Result[V]]):
    """The results of a run, as an iterator. `run` makes it.

    Several threads may take results from it. With ``async for``, a thread of asyncio's default
    executor waits for each result; cancelling that ends the run.
    """

    def __init__(self, child: Child, feed: Feed[V]) -> None:
        self._child = child
        self._feed = feed
        self._rows = _rows.rows(child.read)
        self._is_over = False
        # Also when Python exits. It does not refer to this object.
        self._finalizer = weakref.finalize(self, _end, child, feed)

    def __iter__(self) -> Run[V]:
        return self

    def __next__(self) -> Result[V]:
        """Waits for the next job that ends.

        Raises:
            RunError: The run did not come to its end.
            Exception: That of the iterable of values.
        """
        try:
            with self._child.reading():
                row = None if self._is_over or self._child.is_ended else next(self._rows, None)
                if row is not None:
                    return self._result(row)
            return self._finish()
        except _rows.Truncated:
            return self._finish(is_truncated=True)
        except _rows.NoTable:
            self._close(interrupted=False)
            reason = "the program printed no table of results (do flags change the output?)"
            raise RunError(reason, 0, self.messages) from None
        except BaseException as error:
            self._is_over = True
            if not isinstance(error, StopIteration):
                self._close(isinstance(error, KeyboardInterrupt))
            raise

    def close(self) -> None:
        """Ends the jobs and everything that they started. Waits at most ``grace`` and a few
        seconds. Does nothing at the end of the results."""
        self._close(interrupted=False)

    @property
    def messages(self) -> str:
        """What the program has said so far, at most the last 64 KiB: why a command could not be
        started, and which jobs left their output open."""
        return self._child.messages()

    def __enter__(self) -> Run[V]:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._close(isinstance(error, KeyboardInterrupt))

    def __aiter__(self) -> Run[V]:
        return self

    async def __anext__(self) -> Result[V]:
        import asyncio

        try:
            result = await asyncio.to_thread(self._next)
        except asyncio.CancelledError:
            # The thread still waits, and ends with the run.
            self._child.terminate()
            raise
        if result is None:
            raise StopAsyncIteration
        return result

    def _next(self) -> Optional[Result[V]]:
        return next(self, None)

    async def __aenter__(self) -> Run[V]:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    def _result(self, row: _rows.Row) -> Result[V]:
        # The table leaves out a value that is too long for an argument.
        is_started = row.exit_value != _NOT_STARTED or any(row.values)
        try:
            value = self._feed.take(row.job, row.values if is_started else None)
        except LookupError:
            raise RunError(
                f"job {row.job} got other arguments than its value (do flags change the input?)",
                0,
                self.messages,
            ) from None
        timed_out = row.exit_value == _TIMED_OUT
        return Result(
            job=row.job,
            value=value,
            command=os.fsdecode(row.command),
            exit_code=None if timed_out or row.signal else row.exit_value,
            signal=row.signal or None,
            timed_out=timed_out,
            start=row.start,
            duration=row.duration,
            _stdout=row.stdout,
            _stderr=row.stderr,
        )

    def _finish(self, is_truncated: bool = False) -> Result[V]:
        """Raises what ended the results."""
        if self._is_over or self._child.is_ended:
            raise StopIteration
        self._is_over = True
        status = self._child.wait()
        if self._child.is_ended:
            # Another thread or a signal handler has closed the run meanwhile.
            raise StopIteration
        messages = self.messages
        self._close(interrupted=False)
        if self._feed.error is not None:
            raise self._feed.error
        if is_truncated or self._is_cut(status):
            raise RunError(_reason(status, messages), status, messages)
        if self._feed.has_values and not self._child.has_written:
            reason = f"{self._child.program} printed no table of results (is it minder?)"
            raise RunError(reason, status, messages)
        raise StopIteration

    def _is_cut(self, status: Optional[int]) -> bool:
        """Whether the run did not come to its end, by the exit status of the program. Without one, a
        value without a result tells it."""
        if status is None:
            return not self._feed.is_answered
        return not 0 <= status <= _FAILED_MAX

    def _close(self, interrupted: bool) -> None:
        self._is_over = True
        if self._finalizer.detach() is not None:
            _end(self._child, self._feed, interrupted)


def _end(child: Child, feed: Feed[Any], interrupted: bool = False) -> None:
    feed.stop()
    child.end(interrupted)


def _reason(status: Optional[int], messages: str) -> str:
    said = re.sub(r"^minder: ", "", messages.strip(), flags=re.MULTILINE)
    if status is None:
        how = "the run ended before its last job, and its exit status is lost (SIGCHLD is ignored?)"
    elif status < 0:
        how = f"the run was ended by {signal_name(-status)} before its last job"
    else:
        how = f"the run ended with exit status {status} before its last job"
    if status == 255 and said:
        return said
    return f"{how}: {said}" if said else how
