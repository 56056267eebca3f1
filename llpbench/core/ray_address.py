"""Addresses of Ray clusters."""

from __future__ import annotations

import socket

from llpbench.core.errors import LLPBenchError
from llpbench.core.text import one_line

_SECONDS_TO_ANSWER = 8.0


def require_answer(address: str) -> None:
    """Raise `LLPBenchError` if nobody answers at an address HOST:PORT. Ray itself would try for minutes."""
    host, colon, port = address.rpartition("//")[2].rpartition(":")
    if colon:
        try:
            socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER).close()
        except (OSError, ValueError, OverflowError) as error:
            raise no_cluster(address, one_line(error)) from error


def no_cluster(address: str, reason: str) -> LLPBenchError:
    """Return the error of a cluster that cannot be joined."""
    return LLPBenchError(
        f"no Ray cluster can be joined at {address!r} ({reason}). Start one with ray start --head and run this command "
        "on one of its machines."
    )
