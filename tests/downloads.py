"""A server on this machine that answers as OpenML does, and what it answers.

A pytest plugin, named in `conftest.py`.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

DESCRIPTION = """<oml:data_set_description xmlns:oml="http://openml.org/openml">
  <oml:id>7</oml:id>
  <oml:name>people</oml:name>
  <oml:version>1</oml:version>
  <oml:description>Who is rich?</oml:description>
  <oml:format>ARFF</oml:format>
  <oml:upload_date>2014-04-06T23:23:50</oml:upload_date>
  <oml:licence>Public</oml:licence>
  <oml:url>{server}/data/v1/download/7/people.arff</oml:url>
  <oml:parquet_url>{server}/dataset7/dataset_7.pq</oml:parquet_url>
  <oml:file_id>7</oml:file_id>
  <oml:default_target_attribute>rich</oml:default_target_attribute>
  <oml:visibility>public</oml:visibility>
  <oml:status>active</oml:status>
  <oml:md5_checksum>{md5}</oml:md5_checksum>
</oml:data_set_description>
"""


@dataclass
class Reply:
    body: bytes = b""
    status: int = 200
    promised: int | None = None
    """bytes announced, where they are not those sent"""


@dataclass
class Server:
    url: str
    replies: dict[str, Reply] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append(self.path)
            reply = state.replies.get(self.path, Reply(b"<html>not found</html>", 404))
            self.send_response(reply.status)
            self.send_header("Content-Length", str(reply.promised or len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def do_HEAD(self) -> None:
            state.requests.append(self.path)
            self.send_error(404)

        def log_message(self, *args: Any) -> None:
            """Not to the terminal."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = Server(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def openml(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server as the `openml` package's, which tries once."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "*")
    package = pytest.importorskip("openml")
    monkeypatch.setattr(package.config, "server", f"{server.url}/api/v1/xml")
    monkeypatch.setattr(package.config, "connection_n_retries", 1)
    return server


def arff(frame: pd.DataFrame) -> bytes:
    lines = ["@RELATION people", ""]
    for name, column in frame.items():
        if pd.api.types.is_numeric_dtype(column):
            lines.append(f"@ATTRIBUTE '{name}' NUMERIC")
        else:
            lines.append(f"@ATTRIBUTE '{name}' {{{','.join(sorted(column.dropna().unique(), reverse=True))}}}")
    rows = frame.astype(object).where(frame.notna(), "?")
    lines += ["", "@DATA", *(",".join(map(str, row)) for row in rows.itertuples(index=False)), ""]
    return "\n".join(lines).encode()


def serve(server: Server, ident: int, frame: pd.DataFrame, **changes: str) -> None:
    """Let the server have a dataset; `changes` replace texts of its description."""
    body, path = arff(frame), f"/data/v1/download/{ident}/people.arff"
    text = DESCRIPTION.format(server=server.url, md5=hashlib.md5(body).hexdigest())
    text = text.replace("/7/people", f"/{ident}/people").replace("<oml:id>7<", f"<oml:id>{ident}<")
    for before, after in changes.items():
        assert f"<oml:{before}>" in text
        start, rest = text.split(f"<oml:{before}>")
        text = start + after + rest.split(f"</oml:{before}>")[1]
    server.replies |= {f"/api/v1/xml/data/{ident}": Reply(text.encode()), path: Reply(body)}
