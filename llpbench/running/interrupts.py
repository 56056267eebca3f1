"""Orderly early end of a run: a signal becomes `KeyboardInterrupt`, once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SECONDS_TO_END = 30.0
"""Time after a signal in which further signals are ignored, while the run ends."""

_last_signal = -_SECONDS_TO_END
"""Moment of the last signal that was not ignored, as `time.monotonic` counts."""
_depth = 0
"""Number of nested blocks."""


@contextmanager
def interruptible(*, to_the_end: bool = False) -> Iterator[None]:
    """Raise `KeyboardInterrupt` for SIGTERM as for SIGINT, even if a shell has SIGINT ignored.

    SIGHUP, from a closed terminal, does the same unless it is ignored, as by nohup. Signals that follow soon are
    ignored, because terminals, batch systems and impatient users send several. With `to_the_end` they are ignored after
    the block, too, while Python exits.
    """
    global _last_signal, _depth
    if threading.current_thread() is not threading.main_thread():  # only the main thread can set handlers
        yield
        return
    signals = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    if _depth == 0:
        _last_signal = -_SECONDS_TO_END
    _depth += 1
    previous = {number: signal.signal(number, _interrupt) for number in signals}
    try:
        yield
    finally:
        _depth -= 1
        ignored = to_the_end and _is_ending()
        for number, handler in previous.items():
            signal.signal(number, signal.SIG_IGN if ignored else handler)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    global _last_signal
    if not _is_ending():
        _last_signal = time.monotonic()
        raise KeyboardInterrupt


def _is_ending() -> bool:
    return time.monotonic() - _last_signal < _SECONDS_TO_END
