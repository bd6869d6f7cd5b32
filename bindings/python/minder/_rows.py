"""Reads the table of ``minder run --results -.csv`` as it arrives.

The module `csv` reads text, and a job writes bytes. A field in quotes has each of its quotes twice.
The columns are those of GNU parallel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Iterator, List

from ._output import Output

_QUOTE = b'"'
_END = re.compile(rb"[,\n]")


class Truncated(Exception):
    """The table ends within a row."""


class NoTable(Exception):
    """The output is no table of results."""


@dataclass(frozen=True)
class Row:
    """One finished job."""

    job: int
    start: float
    duration: float
    exit_value: int
    signal: int
    command: bytes
    values: List[bytes]
    stdout: Output
    stderr: Output


def rows(read: Callable[[], bytes]) -> Iterator[Row]:
    """Yields each job. `read` returns the next bytes of the table, and none at its end.

    Raises:
        NoTable: The first row has other names.
        Truncated: The table ends within a row.
    """
    lines = _Fields(read)
    names = lines.row()
    if not names:
        return
    # Each value of the first job has a column in front of the outputs.
    columns = [name.read() for name in names]
    if b"Stdout" not in columns:
        raise NoTable
    stdout = columns.index(b"Stdout")
    while True:
        fields = lines.row()
        if not fields:
            return
        # Further values follow the outputs.
        values = fields[9:stdout] + fields[stdout + 2 :]
        yield Row(
            job=int(fields[0].read()),
            start=float(fields[2].read()),
            duration=float(fields[3].read()),
            exit_value=int(fields[6].read()),
            signal=int(fields[7].read()),
            command=fields[8].read(),
            values=[value.read() for value in values],
            stdout=fields[stdout],
            stderr=fields[stdout + 1],
        )


class _Fields:
    """The fields of a table whose bytes arrive in chunks."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read
        self._chunk = b""
        self._at = 0

    def row(self) -> List[Output]:
        """Returns the fields of the next row, or none at the end of the table."""
        if self._at == len(self._chunk) and not self._next():
            return []
        fields: List[Output] = []
        while True:
            fields.append(self._field())
            separator = self._chunk[self._at : self._at + 1]
            self._at += 1
            if separator == b"\n":
                return fields

    def _next(self) -> bool:
        """Replaces a chunk that was used up."""
        self._chunk = self._read()
        self._at = 0
        return bool(self._chunk)

    def _more(self) -> None:
        if not self._next():
            raise Truncated

    def _field(self) -> Output:
        """Reads a field up to its separator, which is then the next byte of the chunk."""
        if self._at == len(self._chunk):
            self._more()
        field = Output()
        if self._chunk.startswith(_QUOTE, self._at):
            self._at += 1
            self._quoted(field)
            return field
        while True:
            end = _END.search(self._chunk, self._at)
            if end is not None:
                field.add(self._chunk[self._at : end.start()])
                self._at = end.start()
                return field
            field.add(self._chunk[self._at :])
            self._more()

    def _quoted(self, field: Output) -> None:
        while True:
            end = self._chunk.find(_QUOTE, self._at)
            while end != -1 and self._chunk.startswith(_QUOTE, end + 1):
                end = self._chunk.find(_QUOTE, end + 2)
            part = self._chunk[self._at : end if end != -1 else len(self._chunk)]
            field.add(part.replace(b'""', _QUOTE))
            if end == -1:
                self._more()
            elif end + 1 < len(self._chunk):
                self._at = end + 1
                return
            else:
                # The next chunk tells whether this quote ends the field.
                self._more()
                self._chunk = _QUOTE + self._chunk
