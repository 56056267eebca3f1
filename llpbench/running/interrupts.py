"""Orderly early end of a run: a signal becomes `KeyboardInterrupt`, once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SECONDS_TO_END = 30.0
"""in which further signals change nothing: what the first one ends is being ended"""

_heeded = -_SECONDS_TO_END
"""when the last signal came that was heeded, as `time.monotonic` counts"""
_depth = 0
"""of the blocks that are entered"""


@contextmanager
def interruptible(*, to_the_end: bool = False) -> Iterator[None]:
    """Turn SIGTERM, too, into `KeyboardInterrupt`, and hear SIGINT even where a shell has it ignored.

    A terminal that is closed (SIGHUP) is the same, unless somebody has it ignored, as nohup does. What comes soon after
    is not heard, for a terminal, a batch system and somebody impatient send a signal more than once; with `to_the_end`
    not even after the block: what remains then of an interrupted process is Python's own tidying.
    """
    global _heeded, _depth
    if threading.current_thread() is not threading.main_thread():  # where Python cannot set handlers
        yield
        return
    heard = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heard.append(signal.SIGHUP)
    if _depth == 0:
        _heeded = -_SECONDS_TO_END
    _depth += 1
    previous = {number: signal.signal(number, _interrupt) for number in heard}
    try:
        yield
    finally:
        _depth -= 1
        ending = to_the_end and _in_the_end()
        for number, handler in previous.items():
            signal.signal(number, signal.SIG_IGN if ending else handler)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    global _heeded
    if not _in_the_end():
        _heeded = time.monotonic()
        raise KeyboardInterrupt


def _in_the_end() -> bool:
    return time.monotonic() - _heeded < _SECONDS_TO_END
