"""The errors of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from ._result import Result


class MinderError(Exception):
    """The base of all errors of this package."""


class ProgramNotFoundError(MinderError):
    """The program ``minder`` is not where `find_program` looks for it."""


class RunError(MinderError):
    """The run did not come to its end: a wrong flag, a command that does not exist, a full disk, or
    the program was killed. Jobs that fail are no such error.

    Its text is what the program said.
    """

    status: Optional[int]
    """The exit status of the program; if a signal ended it, the negative number of the signal. `None`
    if the status is lost, such as in a process that ignores SIGCHLD."""

    messages: str
    """Everything that the program wrote to its standard error, or the last 64 KiB of it."""

    def __init__(self, text: str, status: Optional[int], messages: str) -> None:
        super().__init__(text)
        self.status = status
        self.messages = messages

    def __reduce__(self) -> Any:
        # A worker of a process pool may raise it.
        return type(self), (str(self), self.status, self.messages)


class JobError(MinderError):
    """A job failed: `Result.check` raises this."""

    result: Result[Any]
    """The result of the job."""

    def __init__(self, text: str, result: Result[Any]) -> None:
        super().__init__(text)
        self.result = result

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.result)
