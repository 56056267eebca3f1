"""Errors that a user can fix. The message is one line: what happened, the value, what to do next."""

import inspect
import sys
from pathlib import Path


class LLPBenchError(ValueError):
    """Bad input or a bad environment. The command line prints the message and exits with 2, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class DataError(LLPBenchError):
    """A dataset that cannot be obtained, or does not match its specification."""


class UnknownColumnError(LLPBenchError):
    """A column that a table does not have."""


class LLPBenchWarning(UserWarning):
    """A warning about a user's data. The command line prints it as a line."""


class HookError(ValueError):
    """An invalid return value of a method's hook. The message begins with the hook and its location."""


def hook_error(method: object, hook: str, complaint: str) -> HookError:
    """Return an error such as `loss (mine.py:12) must return a single number, ...`; `complaint` is its end."""
    code = getattr(inspect.unwrap(getattr(type(method), hook, None)), "__code__", None)  # type: ignore[arg-type]
    if code is not None:
        return HookError(f"{hook} ({Path(code.co_filename).name}:{code.co_firstlineno}) {complaint}")
    file = getattr(sys.modules.get(type(method).__module__), "__file__", None)
    return HookError(f"{hook} ({Path(file).name}) {complaint}" if file else f"{hook} {complaint}")
