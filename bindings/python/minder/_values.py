"""The values that jobs get, as bytes."""

from __future__ import annotations

import os
from typing import List, Tuple, Union

Scalar = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", int, float]
"""One argument. Numbers are written as `str` writes them."""

Value = Union[Scalar, Tuple[Scalar, ...], List[Scalar]]
"""The arguments of one job: one, for ``{}``, or several, for ``{1}``, ``{2}`` …"""

# The longest argument that the program takes, in bytes.
_ARGUMENT_MAX = (128 << 10) - 1


def width(value: Value) -> int:
    """Returns the number of arguments, or 0 for one that does not stand in a tuple or list.

    Raises:
        ValueError: There are none.
    """
    if not isinstance(value, (tuple, list)):
        return 0
    if not value:
        raise ValueError("invalid value (): expected at least one argument")
    return len(value)


def encode(value: Value, expected: int) -> List[bytes]:
    """Returns the arguments of a job.

    Raises:
        TypeError: An argument has another type than those of `Scalar`.
        ValueError: The value has another width than `expected`, an argument has a NUL byte, or one
            of several arguments is too long.
    """
    if width(value) != expected:
        what = f"{expected} arguments" if expected else "one argument"
        raise ValueError(f"invalid value {value!r}: expected {what}, as in the first value")
    if isinstance(value, (tuple, list)):
        parts = [_encode(part) for part in value]
        longest = max(map(len, parts))
        # The program would leave it out, and give the following arguments to other jobs.
        if longest > _ARGUMENT_MAX:
            raise ValueError(
                f"invalid value with an argument of {longest} bytes: expected at most "
                f"{_ARGUMENT_MAX} in a tuple"
            )
        return parts
    return [_encode(value)]


def _encode(value: Scalar) -> bytes:
    if isinstance(value, (int, float)):
        return str(value).encode()
    if not isinstance(value, (str, bytes, os.PathLike)):  # pyright: ignore
        raise TypeError(f"invalid value {value!r}: expected str, bytes, a path or a number")
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError(f"invalid value {value!r}: no program can get a NUL byte")
    return encoded
