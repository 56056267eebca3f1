"""Downloads from a local server that answers like OpenML and GroupLens, and fails like them."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import socket
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from downloads import DESCRIPTION, Reply, Server, serve

from llpbench.core.errors import DataError
from llpbench.data import sources
from llpbench.data.loading import _cache_path, load_table
from llpbench.data.sources import GroupLens, OpenML
from llpbench.data.specs import Facts, dataset_spec

pytestmark = pytest.mark.usefixtures("empty_cache")

Declare = Callable[..., None]
FACTS = {"target": "rich", "positive": "yes"}

UNKNOWN = """<oml:error xmlns:oml="http://openml.org/openml">
  <oml:code>111</oml:code><oml:message>Unknown dataset</oml:message>
</oml:error>
"""
API = "/api/v1/xml/data/7"
ARFF = "/data/v1/download/7/people.arff"


def refused(message: str, name: str = "people") -> str:
    """Loading fails in one line that holds `message`, and leaves nothing in the cache."""
    with pytest.raises(DataError, match=message) as caught:
        load_table(name)
    assert "\n" not in str(caught.value)
    folder = _cache_path(name).parent
    assert not [path for path in folder.rglob("*") if path.suffix != ".lock"]
    return str(caught.value)


def test_openml_download_prints_nothing_and_restores_settings(
    openml: Server,
    people: pd.DataFrame,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import openml as package

    def surroundings() -> tuple[Any, ...]:
        return (
            package.config.get_config_as_dict(),
            dict(os.environ),
            list(logging.root.handlers),
            logging.root.manager.disable,
        )

    serve(openml, 7, people)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr(logging.root, "handlers", [])  # as in a plain process; pytest adds its own
    before = surroundings()
    assert len(OpenML(7).download()) == 60
    openml.replies.clear()
    with pytest.raises(DataError):
        OpenML(7).download()
    assert surroundings() == before
    assert capfd.readouterr() == ("", "")
    assert not list(temporary.glob("*/*"))
    assert not list(Path(package.config.get_cache_directory()).rglob("dataset*"))


def test_refused_connection_raises_one_line(openml: Server, declare: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    import openml as package

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setattr(package.config, "server", f"{nobody}/api/v1/xml")
    declare("people", source=OpenML(7), **FACTS)
    refused("OpenML 7 cannot be downloaded .*refused.* put people.parquet into a folder .* --data-dir DIR")
    assert openml.requests == []
    declare("tiny", source=GroupLens("ml-1m.zip", nobody), target="liked")
    refused("GroupLens ml-1m.zip cannot be downloaded .*refused", "tiny")


def test_server_without_answer_times_out(openml: Server, declare: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a firewall that drops packets, or if looking up a name takes long."""
    released = threading.Event()
    monkeypatch.setattr(sources, "PATIENCE", 0.05)

    def create_connection(*_address: object) -> socket.socket:
        released.wait(60)
        raise OSError

    monkeypatch.setattr(socket, "create_connection", create_connection)
    declare("people", source=OpenML(7), **FACTS)
    began = time.monotonic()
    refused("OpenML 7 cannot be downloaded .*no connection to 127.0.0.1: no answer within")
    assert time.monotonic() - began < 10
    released.set()
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"http": "http://proxy:1"})
    monkeypatch.setattr("urllib.request.proxy_bypass", lambda _: False)
    sources._require_connection(openml.url)  # the proxy connects
    assert openml.requests == []


PAGE = b"<html><p>Internal error\n<p>Sorry</html>"


@pytest.mark.parametrize(
    ("path", "reply", "told"),
    [
        (ARFF, Reply(PAGE, 404), "404"),
        (API, Reply(PAGE, 503), "503"),
        (API, Reply(UNKNOWN.encode(), 412), "Unknown dataset"),
        (API, Reply(b"<html>Down for maintenance"), "OpenML 7"),
        (API, Reply(DESCRIPTION.replace("{md5}", hashlib.md5(PAGE).hexdigest()).encode()), "OpenML 7"),
    ],
)
def test_unexpected_answer_of_openml_raises_one_line(
    openml: Server, people: pd.DataFrame, declare: Declare, path: str, reply: Reply, told: str
) -> None:
    declare("people", source=OpenML(7), **FACTS)
    serve(openml, 7, people)
    if b"{server}" in reply.body:  # a file that is no ARFF, though its checksum is right
        reply = Reply(reply.body.replace(b"{server}", openml.url.encode()))
        openml.replies[ARFF] = Reply(PAGE)
    openml.replies[path] = reply
    assert told in refused("OpenML 7 cannot be downloaded")


def test_truncated_openml_download_is_refused(openml: Server, people: pd.DataFrame, declare: Declare) -> None:
    declare("people", source=OpenML(7), **FACTS)
    serve(openml, 7, people)
    body = openml.replies[ARFF].body
    openml.replies[ARFF] = Reply(body[: len(body) // 2], promised=len(body))
    refused("OpenML 7 cannot be downloaded")
    openml.replies[ARFF] = Reply(body[: len(body) // 2])  # nothing announces it, but the checksum tells
    refused("OpenML 7 cannot be downloaded .*[Cc]hecksum")
    openml.replies[ARFF] = Reply(body)
    assert len(load_table("people")) == 60


RATINGS = [(1, 10, 5, 978300760), (1, 20, 3, 978302109), (2, 10, 1, 978298413), (2, 20, 4, 978220179)]
MOVIES = "10::One Flew Over the Cuckoo's Nest (1975)::Drama\n20::Misérables, Les (1995)::Drama|Musical\n"
USERS = "1::F::1::10::48067\n2::M::56::16::06010-2117\n"


def movielens(ratings: Sequence[tuple[int, ...]] = RATINGS, leave_out: str = "") -> bytes:
    lines = "\n".join("::".join(map(str, row)) for row in ratings)
    members = {"ratings.dat": lines, "users.dat": USERS, "movies.dat": MOVIES}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in members.items():
            if name != leave_out:
                archive.writestr(f"ml-1m/{name}", text.encode("latin-1"))
    return content.getvalue()


@pytest.fixture
def grouplens(server: Server, declare: Declare, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A tiny MovieLens, prepared as the real one is, on the server."""
    monkeypatch.setenv("NO_PROXY", "*")
    spec = dataset_spec("movielens_1m")
    facts = Facts(3, ("timestamp", "age", "year"), ("gender", "occupation", "zip", "genres"), {"0": 1, "1": 2})
    declare("tiny", spec.prepare, source=GroupLens("ml-1m.zip", server.url), target="liked", facts=facts)
    server.replies["/ml-1m.zip"] = Reply(movielens())
    return server


def test_grouplens_archive_gives_seven_features(grouplens: Server) -> None:
    table = load_table("tiny")
    assert table.numeric_names == ("timestamp", "age", "year")
    assert table.categorical_names == ("gender", "occupation", "zip", "genres")
    assert table.numeric.tolist() == [[978300760, 1, 1975], [978298413, 56, 1975], [978220179, 56, 1995]]
    assert table.categories == (("F", "M"), ("10", "16"), ("06010-2117", "48067"), ("Drama", "Drama|Musical"))
    assert table.row_labels.tolist() == [1, 0, 1]
    assert load_table("tiny", download=False).fingerprint == table.fingerprint
    assert grouplens.requests == ["/ml-1m.zip"]
