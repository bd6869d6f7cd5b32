"""Hands the values of an iterable to the program, in a thread."""

from __future__ import annotations

import itertools
import threading
from typing import IO, Callable, Dict, Generic, Iterable, List, Optional, TypeVar

from ._values import Value, encode, width

V = TypeVar("V", bound=Value)


class Feed(Generic[V]):
    """The values that jobs get, each argument with a NUL behind it.

    A thread takes them: a producer that waits does not hold back results, and the pipe holds the
    producer back when the program has read enough. The thread knows nothing of the `Run`, so that
    this can be collected while the producer waits.
    """

    def __init__(self, values: Iterable[V]) -> None:
        """Takes the first value, which decides how many arguments each job gets.

        Raises:
            TypeError, ValueError: It cannot be an argument.
        """
        if isinstance(values, (str, bytes)):
            raise TypeError(
                f"invalid values {values!r}: expected an iterable of them, as in [{values!r}]"
            )
        rest = iter(values)
        first = list(itertools.islice(rest, 1))
        self.width: int = width(first[0]) if first else 0
        self.has_values: bool = bool(first)
        for value in first:
            encode(value, self.width)
        self.error: Optional[BaseException] = None
        self._values = itertools.chain(first, rest)
        # The values of jobs without a result yet: as many as the pipe holds and the program has
        # read.
        self._waiting: Dict[int, V] = {}
        self._stopped = False
        self._all_written = False

    @property
    def is_answered(self) -> bool:
        """Whether the program got all values, and each has its result."""
        return self._all_written and not self._waiting

    def start(self, pipe: IO[bytes], failed: Callable[[], None]) -> None:
        """Writes all values to `pipe` and closes it, in a thread. If the producer fails, stores
        that in `error` and calls `failed`."""
        thread = threading.Thread(
            target=self._write_all, args=(pipe, failed), name="minder-values", daemon=True
        )
        thread.start()

    def stop(self) -> None:
        """Makes the thread end when it gets the next value."""
        self._stopped = True

    def take(self, job: int, arguments: Optional[List[bytes]]) -> V:
        """Returns the value of a job, which is forgotten. `arguments` are those that it got, if it
        was started.

        Raises:
            LookupError: The job got other arguments than those of this value.
        """
        value = self._waiting.pop(job)
        if arguments is not None and encode(value, self.width) != arguments:
            raise LookupError
        return value

    def _write_all(self, pipe: IO[bytes], failed: Callable[[], None]) -> None:
        try:
            for job, value in enumerate(self._values, 1):
                encoded = b"".join(part + b"\0" for part in encode(value, self.width))
                # Before the write: the result may come at once.
                self._waiting[job] = value
                if self._stopped or not _write(pipe, encoded):
                    break
            else:
                self._all_written = True
        except BaseException as error:  # It is raised in the thread that takes the results.
            self.error = error
            failed()
        finally:
            pipe.close()
            # Ends a generator, and lets go of what it holds.
            del self._values


def _write(pipe: IO[bytes], encoded: bytes) -> bool:
    """Returns whether the program took all bytes: it has ended otherwise."""
    rest = memoryview(encoded)
    try:
        while rest:
            rest = rest[pipe.write(rest) :]
    except OSError:
        return False
    return True
