"""``python -m minder``: the program with the arguments that follow."""

import os
import subprocess
import sys

from ._errors import ProgramNotFoundError
from ._program import find_program


def main() -> None:
    """Becomes the program. On Windows, runs it and exits with its status."""
    try:
        words = [find_program(), *sys.argv[1:]]
    except ProgramNotFoundError as error:
        sys.exit(f"minder: {error}")
    if os.name == "posix":
        os.execv(words[0], words)
    sys.exit(subprocess.run(words).returncode)


if __name__ == "__main__":
    main()
