"""Runs a command for each value of an iterable, several at once.

>>> import minder
>>> for result in minder.run(["printf", "%s"], ["a b"]):
...     print(result.value, result.exit_code, result.stdout)
a b 0 b'a b'

The program ``minder`` does the work, and this module reads its results. The values go to it as they
are needed, and the results come as the jobs end. `run` describes everything.
"""

from ._errors import JobError, MinderError, ProgramNotFoundError, RunError
from ._program import find_program
from ._result import Result
from ._run import Run, run
from ._values import Scalar, Value

__all__ = [
    "JobError",
    "MinderError",
    "ProgramNotFoundError",
    "Result",
    "Run",
    "RunError",
    "Scalar",
    "Value",
    "find_program",
    "run",
]

for _item in (JobError, MinderError, ProgramNotFoundError, Result, Run, RunError):
    # The name in messages is the one to import.
    _item.__module__ = __name__
