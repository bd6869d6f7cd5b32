"""The bytes that a job wrote, in memory or in a file."""

from __future__ import annotations

import io
import tempfile
import threading
from typing import IO, Any, BinaryIO, List, Optional, cast

IN_MEMORY = 8 << 20
"""The longest output in memory, in bytes. A longer one is in a temporary file without a name, which
the operating system removes with the process."""


class Output:
    """One output of a job. First it is gathered by `add`, then it is only read."""

    __slots__ = ("_parts", "_size", "_file", "_lock")

    def __init__(self) -> None:
        self._parts: List[bytes] = []
        self._size = 0
        self._file: Optional[IO[bytes]] = None
        self._lock = threading.Lock()

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def __reduce__(self) -> Any:
        # A result can go to another process, which has its own file for a long output.
        return _copy, (self.read(),)

    def add(self, part: bytes) -> None:
        """Appends bytes."""
        self._size += len(part)
        if self._file is None:
            self._parts.append(part)
            if self._size <= IN_MEMORY:
                return
            self._file = tempfile.TemporaryFile(buffering=0)
            gathered, self._parts = self._parts, []
        else:
            gathered = [part]
        for part in gathered:
            _write(self._file, part)

    def read(self) -> bytes:
        """Returns all bytes. Those of a file are read again each time."""
        if self._file is not None:
            return self.read_at(0, self._size)
        if len(self._parts) != 1:
            self._parts = [b"".join(self._parts)]
        return self._parts[0]

    def read_at(self, position: int, size: int) -> bytes:
        """Returns up to `size` bytes of the file."""
        assert self._file is not None
        with self._lock:
            self._file.seek(position)
            return self._file.read(size)

    def tail(self, size: int) -> bytes:
        """Returns the last bytes, at most `size`."""
        if self._file is not None:
            return self.read_at(max(0, self._size - size), size)
        return self.read()[-size:]

    def open(self) -> BinaryIO:
        """Returns a file object that reads these bytes from their beginning."""
        if self._file is None:
            return io.BytesIO(self.read())
        return cast(BinaryIO, io.BufferedReader(_Reader(self)))


class _Reader(io.RawIOBase):
    """Reads an output in a file. Each reader has its own position."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self._output.read_at(self._position, len(buffer))
        buffer[: len(part)] = part
        self._position += len(part)
        return len(part)


def _copy(written: bytes) -> Output:
    output = Output()
    output.add(written)
    return output


def _write(file: IO[bytes], part: bytes) -> None:
    rest = memoryview(part)
    while rest:
        rest = rest[file.write(rest) :]
