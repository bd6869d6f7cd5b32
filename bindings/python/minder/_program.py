"""Where the program is."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from pathlib import Path
from typing import Iterator

from ._errors import ProgramNotFoundError

_NAME = "minder.exe" if os.name == "nt" else "minder"


def find_program() -> str:
    """Returns the absolute path of the program ``minder``.

    The environment variable ``MINDER_PROGRAM`` names another one. Otherwise it is the program that
    was installed with this package, or else the first one in ``PATH``.

    Raises:
        ProgramNotFoundError: ``MINDER_PROGRAM`` names no file, or there is no program.
    """
    named = os.environ.get("MINDER_PROGRAM")
    if named:
        if not os.path.isfile(named):
            raise ProgramNotFoundError(f"cannot run {named}: no such file (from MINDER_PROGRAM)")
        return os.path.abspath(named)
    for path in _installed():
        if path.is_file():
            return str(path)
    found = shutil.which("minder")
    if found is None:
        raise ProgramNotFoundError(
            "cannot find the program minder: it is neither in this installation of Python nor in "
            "PATH (install the wheel of this system, or set MINDER_PROGRAM)"
        )
    return os.path.abspath(found)


def _installed() -> Iterator[Path]:
    """Yields where an installer may have put the program of the wheel."""
    try:
        files = metadata.files("minder") or []
    except metadata.PackageNotFoundError:
        # The package is imported from its sources.
        return
    for file in files:
        # An installer lists the program by its place below that of the package, as in `../bin`.
        if file.name == _NAME:
            yield Path(os.path.abspath(str(file.locate())))
    # `pip install --target` moves the program afterwards.
    yield Path(__file__).resolve().parent.parent / "bin" / _NAME
