"""A channel between two processes, parent and child, that exchange pickled values.

`multiprocessing` is not used: its children import the user's main module again.

The child ignores Ctrl-C. It ends, with all processes that it has started, as soon as the parent is gone. Its heartbeats
show the parent that it is not frozen.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from llpbench.core.text import duration

_SECONDS_TO_END = 15.0
"""Time for a child to end after SIGTERM, before it is killed."""
_SECONDS_TO_EXIT = 5.0
"""Time for a child to exit after it has closed the channel, before it is killed."""
_SECONDS_BETWEEN_HEARTBEATS = 1.0


class Alive(NamedTuple):
    """A heartbeat."""


class ChildDied(Exception):  # noqa: N818  (not an error of ours)
    """The child process has ended or is frozen."""

    def __init__(self, code: int | None, reason: str = "") -> None:
        """`code`: exit code, minus the number of the signal that killed the child, or None if it is frozen."""
        super().__init__(reason or f"exit code {code}")
        self.code = code


class Child:
    """A child process, as seen by its parent."""

    def __init__(
        self,
        module: str,
        folder: Path | None = None,
        *,
        quiet: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start a Python process that calls `main` of a module. It has the import path of this process.

        - `folder`: working directory; None for this one
        - `quiet`: whether to discard its standard error
        - `variables`: further environment variables
        """
        path = (os.path.abspath(entry or os.curdir) for entry in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {module} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            cwd=folder,
            env={**os.environ, **(variables or {}), "PYTHONPATH": os.pathsep.join(dict.fromkeys(path))},
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, value: Any) -> None:
        """Send a value. Raises `ChildDied`."""
        try:
            pickle.dump(value, self._to)
            self._to.flush()
        except OSError:
            raise ChildDied(self._exit_code()) from None

    def receive(self, seconds: float = math.inf, silence: float = math.inf) -> Any:
        """Return the next value. Raises `TimeoutError` after `seconds`, and `ChildDied`, also after `silence` seconds.

        Silence is counted in short waits, so a suspended machine adds one of them.
        """
        end, silent = time.monotonic() + seconds, 0.0
        while True:
            wait = min(max(end - time.monotonic(), 0.0), silence, _SECONDS_BETWEEN_HEARTBEATS)
            try:
                value = self._inbox.get(timeout=wait)
                break
            except queue.Empty:
                silent += wait
            if time.monotonic() >= end:
                raise TimeoutError
            if silent >= silence:
                raise ChildDied(None, f"no sign of life for {duration(silence)}")
        if isinstance(value, ChildDied):
            self._inbox.put(value)  # for later calls
            raise value
        return value

    def end(self, *, gently: bool = False) -> None:
        """End the child and all processes that it has started. `gently`: send SIGTERM first."""
        if gently:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS_TO_END)
        _kill_group(self._process.pid)
        self._process.kill()
        self._process.wait()
        for stream in (self._to, self._from):
            with contextlib.suppress(OSError):  # unsent values
                stream.close()

    def _listen(self) -> None:
        try:
            for value in _values(self._from):
                self._inbox.put(value)
        finally:
            self._inbox.put(ChildDied(self._exit_code()))

    def _exit_code(self) -> int:
        """Return the exit code of a child that has closed the channel. Kills the child if it does not exit."""
        try:
            return self._process.wait(_SECONDS_TO_EXIT)
        except subprocess.TimeoutExpired:
            _kill_group(self._process.pid)
            return 1


class Parent:
    """The parent process, as seen by its child."""

    def __init__(self) -> None:
        """Take over the standard streams. Printed text goes to standard error from now on."""
        self._from, self._to = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._sending = threading.Lock()
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, value: Any) -> None:
        """Send a value, from any thread."""
        with self._sending:
            pickle.dump(value, self._to)
            self._to.flush()

    def receive(self) -> Any:
        """Return the next value."""
        return self._inbox.get()

    @contextlib.contextmanager
    def beating(self, is_alive: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Send heartbeats during the block, as long as `is_alive` answers True."""
        ended = threading.Event()

        def beat() -> None:
            with contextlib.suppress(Exception):
                while not ended.wait(_SECONDS_BETWEEN_HEARTBEATS):
                    if is_alive():
                        self.send(Alive())

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(_SECONDS_BETWEEN_HEARTBEATS)

    def _listen(self) -> None:
        try:
            for value in _values(self._from):
                self._inbox.put(value)
        finally:
            _kill_group(os.getpid())
            os._exit(1)


def _values(stream: IO[bytes]) -> Iterator[Any]:
    """Yield the values of a stream until the other end is closed."""
    with contextlib.suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):  # also for an incomplete value
        while True:
            yield pickle.load(stream)


def _kill_group(process: int) -> None:
    """Kill the process group of a leader, on systems with process groups."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)
