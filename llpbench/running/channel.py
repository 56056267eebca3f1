"""Two processes of ours that exchange pickled values: the one that starts the other, and the other.

The child works for its parent alone: it hears no Ctrl-C, and ends, with what it has started, as soon as the parent is
gone, however that ended.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

_SECONDS_TO_END = 15.0
"""that a child asked to end may take before it is killed"""
_SECONDS_TO_EXIT = 5.0
"""that a child may take which has closed its end of the channel"""


class Died(Exception):  # noqa: N818  (an end, no error of ours)
    """The child has ended."""

    def __init__(self, code: int, told: str = "") -> None:
        """`code`: its exit code; negative: the signal that killed it. `told`: what is known of it."""
        super().__init__(told or f"exit code {code}")
        self.code = code


class Child:
    """A Python process that runs a function of ours, which finds this one through `Parent`."""

    def __init__(
        self,
        module: str,
        folder: Path | None = None,
        *,
        quiet: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start `main` of a module, in a folder. It imports from where this process does, wherever it is started.

        `quiet`: what it writes to standard error is not shown. `variables`: added to its environment.
        """
        places = (os.path.abspath(place or os.curdir) for place in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {module} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            cwd=folder,
            env={**os.environ, **(variables or {}), "PYTHONPATH": os.pathsep.join(dict.fromkeys(places))},
            start_new_session=True,
        )
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, value: Any) -> None:
        """Raises `Died`."""
        assert self._process.stdin is not None
        try:
            pickle.dump(value, self._process.stdin)
            self._process.stdin.flush()
        except OSError:
            raise Died(self._exit_code()) from None

    def receive(self, seconds: float | None = None) -> Any:
        """The next value that it sends; raises `Died`, and `TimeoutError` if there is none in so many seconds."""
        try:
            value = self._inbox.get(timeout=None if seconds is None else min(seconds, threading.TIMEOUT_MAX))
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(value, Died):
            self._inbox.put(value)
            raise value
        return value

    def end(self, *, gently: bool = False) -> None:
        """End it, with what it has started; `gently`: it is asked to first, by SIGTERM."""
        if gently:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS_TO_END)
        _kill_group(self._process.pid)
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):  # what could not be sent any more
                stream.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            for value in _values(self._process.stdout):
                self._inbox.put(value)
        finally:
            self._inbox.put(Died(self._exit_code()))

    def _exit_code(self) -> int:
        """Exit code of a child that has closed the channel; it is killed if it does not end."""
        try:
            return self._process.wait(_SECONDS_TO_EXIT)
        except subprocess.TimeoutExpired:
            _kill_group(self._process.pid)
            return 1


class Parent:
    """The process that has started this one with `Child`."""

    def __init__(self) -> None:
        """Takes the standard streams: what is printed from now on goes to standard error."""
        self._from, self._to = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
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
        """The next value that it sends."""
        return self._inbox.get()

    def _listen(self) -> None:
        try:
            for value in _values(self._from):
                self._inbox.put(value)
        finally:
            _kill_group(os.getpid())
            os._exit(1)


def _values(stream: IO[bytes]) -> Any:
    """Every value that comes, until the other end is closed."""
    with contextlib.suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):  # of a torn one
        while True:
            yield pickle.load(stream)


def _kill_group(process: int) -> None:
    """End a process that leads a group, and all of the group, where there are groups."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)
