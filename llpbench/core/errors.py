"""Errors that a user can fix: one clear line (what happened, the value, what to do next)."""

import inspect
import sys
from pathlib import Path


class LLPBenchError(Exception):
    """Bad input or a bad environment. The command line prints the message and exits with 2, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class DataError(LLPBenchError):
    """A dataset that cannot be had, or is not what its specification says."""


class UnknownColumnError(LLPBenchError):
    """A table has no column of some name."""


class HookError(ValueError):
    """What a hook of a method gave cannot be used; the message begins with the hook and where it is defined."""


def hook_error(method: object, hook: str, complaint: str) -> HookError:
    """`loss (mine.py:12) must return a single number, ...`, from `method`, the name of its `hook` and the rest."""
    code = getattr(inspect.unwrap(getattr(type(method), hook, None)), "__code__", None)  # type: ignore[arg-type]
    if code is not None:
        return HookError(f"{hook} ({Path(code.co_filename).name}:{code.co_firstlineno}) {complaint}")
    file = getattr(sys.modules.get(type(method).__module__), "__file__", None)
    return HookError(f"{hook} ({Path(file).name}) {complaint}" if file else f"{hook} {complaint}")
