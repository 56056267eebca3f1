"""Errors that a user can fix. The message is one line: what happened, the value, what to do next."""

import inspect
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Self

_PART = re.compile("\x1f([^\x1f\x1e]*)(?:\x1e([^\x1f]*))?\x1f")


def argument(name: str) -> str:
    """Return an argument of Python, such as `noise=`, for a message. The command line shows its flag instead."""
    return f"\x1f{name}\x1f"


def either(python: str, shell: str) -> str:
    """Return a part of a message that differs between Python and the command line."""
    return f"\x1f{python}\x1e{shell}\x1f"


class _Message(Exception):  # noqa: N818 (a base of errors and warnings)
    """A message about arguments, for users of Python or of the command line."""

    def __init__(self, message: str = "") -> None:
        """`message` may have parts made by `argument` and `either`."""
        super().__init__(_PART.sub(r"\1", str(message)))
        self.message = message
        names = (part[1].partition("=")[0] for part in _PART.finditer(message) if part[2] is None)
        self.argument = next(names, None)
        """name of the first argument in the message"""

    def in_shell(self, flag: Callable[[str], str]) -> str:
        """Return the message for the command line. `flag` returns the flag of an argument."""
        return _PART.sub(lambda part: flag(part[1]) if part[2] is None else part[2], self.message)


class LLPBenchError(_Message, ValueError):
    """Bad input or a bad environment. The command line prints the message and exits with 2, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class DataError(LLPBenchError):
    """A dataset that cannot be obtained, or does not match its specification."""

    @classmethod
    def of(cls, path: object, complaint: str) -> Self:
        """Return an error about a file. `complaint` follows its name."""
        return cls(f"file {str(path)!r} {complaint}")


class LLPBenchWarning(_Message, UserWarning):
    """A warning about a user's data. The command line prints it as a line."""

    def __init__(self, message: str = "", about: str = "") -> None:
        super().__init__(message)
        self.about = about
        """kind of the warning, such as "unknown bags\""""


def warn(about: str, message: str) -> None:
    """Warn of a message, unless it is empty, at the line that called this package. `about` is its kind."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("llpbench."):
        level, frame = level + 1, frame.f_back
    if message:
        warnings.warn(LLPBenchWarning(message, about), stacklevel=level)


class HookError(ValueError):
    """An invalid return value of a method's hook. The message begins with the hook and its location."""

    @classmethod
    def of(cls, method: object, hook: str, complaint: str) -> Self:
        """Return an error such as `loss (mine.py:12) must return a single number, ...`; `complaint` is its end."""
        code = getattr(inspect.unwrap(getattr(type(method), hook, None)), "__code__", None)  # type: ignore[arg-type]
        if code is not None:
            return cls(f"{hook} ({Path(code.co_filename).name}:{code.co_firstlineno}) {complaint}")
        file = getattr(sys.modules.get(type(method).__module__), "__file__", None)
        return cls(f"{hook} ({Path(file).name}) {complaint}" if file else f"{hook} {complaint}")
