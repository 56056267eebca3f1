"""Addresses of Ray clusters."""

from __future__ import annotations

import os
import socket

from llpbench.core.errors import LLPBenchError
from llpbench.core.text import one_line

_SECONDS_TO_ANSWER = 8.0
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""Start of a connection of HTTP/2, which gRPC and so Ray speak: the preface and empty settings (RFC 9113, 3.4)."""
_SETTINGS = 4
"""Type of the frame with which HTTP/2 answers; it is the fourth byte."""


def require_answer(address: str | None) -> None:
    """Raise `LLPBenchError` if no server of gRPC answers at HOST:PORT. Ray itself would try for minutes."""
    host, colon, port = (address or "").rpartition("//")[2].rpartition(":")
    if not (address and colon):
        return
    try:
        with socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER) as connection:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            connection.sendall(_GREETING)
            if connection.recv(4, socket.MSG_WAITALL)[3:] != bytes([_SETTINGS]):
                raise OSError("the server there is not Ray")
    except (OSError, ValueError, OverflowError) as error:
        raise no_cluster(address, one_line(error)) from error


def no_cluster(address: str, reason: str) -> LLPBenchError:
    """Return the error of a cluster that cannot be joined."""
    return LLPBenchError(
        f"no Ray cluster can be joined at {address!r} ({reason}). Start one with ray start --head, and run this "
        "command on one of its machines, with the token of the cluster if it has one (RAY_AUTH_MODE)."
    )
