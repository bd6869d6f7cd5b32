"""The result of a job."""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass, field
from typing import BinaryIO, Generic, Optional, TypeVar

from ._errors import JobError
from ._output import Output
from ._values import Value

V = TypeVar("V", bound=Value)


@dataclass(frozen=True)
class Result(Generic[V]):
    """How a job ended, and what it wrote."""

    job: int
    """The number of the job, from 1, in the order of the values."""

    value: V
    """The value that the job got: the object that the iterable gave."""

    command: str
    """The command with its value, as a line for a shell. Bytes that are not UTF-8 are quoted."""

    exit_code: Optional[int]
    """The exit code; 127 if the command could not be started, and `None` if a signal or the
    time-out ended the job."""

    signal: Optional[int]
    """The number of the signal that ended the job."""

    timed_out: bool
    """Whether the job took longer than ``timeout``."""

    start: float
    """When the job was started, in seconds since 1970, exact to a millisecond."""

    duration: float
    """How long the job ran, in seconds, exact to a millisecond. Of several attempts, the last
    one."""

    _stdout: Output = field(repr=False, compare=False)
    _stderr: Output = field(repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether the job succeeded: it exited with 0, in time."""
        return self.exit_code == 0

    @property
    def stdout(self) -> bytes:
        """Everything that the job wrote to its standard output. More than 8 MiB are read from a
        temporary file each time: see `open_stdout`."""
        return self._stdout.read()

    @property
    def stderr(self) -> bytes:
        """Everything that the job wrote to its standard error."""
        return self._stderr.read()

    @property
    def stdout_text(self) -> str:
        """The standard output as UTF-8. Other bytes become U+FFFD."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def stderr_text(self) -> str:
        """The standard error as UTF-8. Other bytes become U+FFFD."""
        return self.stderr.decode("utf-8", "replace")

    def open_stdout(self) -> BinaryIO:
        """Returns a file object that reads the standard output from its beginning. A large output
        is then never in memory as a whole."""
        return self._stdout.open()

    def open_stderr(self) -> BinaryIO:
        """Returns a file object that reads the standard error from its beginning."""
        return self._stderr.open()

    @property
    def how(self) -> str:
        """How the job ended, in words: ``exit 2``, ``killed by SIGKILL``, ``timed out``."""
        if self.timed_out:
            return "timed out"
        if self.signal is not None:
            return f"killed by {signal_name(self.signal)}"
        return f"exit {self.exit_code}"

    def check(self) -> Result[V]:
        """Returns this result.

        Raises:
            JobError: The job failed. The text names the command, how it ended, and the last line of
                its standard error.
        """
        if self.ok:
            return self
        text = f"job {self.job} failed ({self.how}): {self.command}"
        last = self._stderr.tail(2048).decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise JobError(f"{text}: {last}" if last else text, self)


def signal_name(number: int) -> str:
    """Returns the name of a signal, such as ``SIGKILL``."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
