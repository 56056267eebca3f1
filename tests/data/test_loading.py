"""Where datasets are searched, which facts are checked, which files are cached; downloads that fail or succeed."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bench import LLPBench
from downloads import DESCRIPTION, Reply, Server, serve

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.registry import DATASETS, load_plugin
from llpbench.core.tables import Table
from llpbench.data import loading, sources
from llpbench.data.loading import _cache_path, cache_directory, load_table, local_names, locate, select_datasets
from llpbench.data.sources import GroupLens, OpenML, Parquet
from llpbench.data.specs import Facts, dataset_spec

pytestmark = pytest.mark.usefixtures("empty_cache")

Declare = Callable[..., None]
FACTS = {"target": "rich", "positive": "yes"}


@dataclass
class Shop:
    """A source that returns a frame and counts how often."""

    frame: pd.DataFrame
    visits: list[int] = field(default_factory=list)

    def describe(self) -> str:
        return "the shop"

    def download(self) -> pd.DataFrame:
        self.visits.append(1)
        return self.frame


def put(frame: pd.DataFrame, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path, index=False)
    return path


def located(name: str, data_dir: Path | None = None) -> Path | None:
    place = locate(dataset_spec(name), data_dir)
    return None if place is None else place.path


def test_data_dir_comes_before_environment_and_cache(
    people: pd.DataFrame, declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(people)
    declare("people", source=shop, **FACTS)
    assert located("people") is None
    load_table("people")
    assert located("people") == _cache_path("people")
    named, given = put(people, tmp_path / "env" / "people.parquet"), put(people, tmp_path / "arg" / "people.parquet")
    monkeypatch.setenv("LLPBENCH_DATA", str(named.parent))
    assert located("people") == named
    assert located("people", given.parent) == given
    given.unlink()
    assert located("people", given.parent) == _cache_path("people")  # the argument takes the place of LLPBENCH_DATA
    assert len(shop.visits) == 1


def refused(message: str, name: str = "people", place: Path | None = None, download: bool = True) -> str:
    """Loading fails in one line that holds `message`, and leaves nothing in the cache."""
    with pytest.raises(LLPBenchError, match=message) as caught:
        load_table(name, place, download=download)
    assert "\n" not in str(caught.value)
    assert not [path for path in _cache_path(name).parent.rglob("*") if path.suffix != ".lock"]
    return str(caught.value)


def test_data_directory_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for name in ("absent", "file"):
        refused(f"{name}' .--data-dir. does not exist", "adult", tmp_path / name)
    monkeypatch.setenv("LLPBENCH_DATA", str(tmp_path / "absent"))
    refused(r"absent' .LLPBENCH_DATA. does not exist", "adult")


def test_without_download_absence_says_what_to_do(people: pd.DataFrame, declare: Declare) -> None:
    declare("people", source=Shop(people), **FACTS)
    refused(r"the shop .llpbench data fetch people.*--data-dir.* people.parquet", download=False)
    declare("private", **FACTS)
    refused(r"'private' is not on this machine.*private.parquet.$", "private")


def test_table_is_reloaded_only_after_file_changes(people: pd.DataFrame, declare: Declare, tmp_path: Path) -> None:
    declare("people", target="rich")
    path = put(people, tmp_path / "people.parquet")
    first = load_table("people", tmp_path)
    assert load_table("people", tmp_path) is first
    put(people.assign(age=1.0), path)
    os.utime(path, ns=(1, 1))
    assert (load_table("people", tmp_path).numeric[:, 0] == 1).all()
    counts = people["town"].value_counts().reset_index(name="yes").assign(no=0)
    declare("given", source=Parquet(path), bags=Parquet(tmp_path / "bags.parquet"), by=("town",))
    for edited in (counts, counts.rename(columns={"yes": "no", "no": "yes"})):
        put(edited, tmp_path / "bags.parquet")
        known: Any = load_table("given").published
        assert known.counts.sum(axis=0).tolist() == edited[["no", "yes"]].sum().tolist()


SIZE = Facts(60, ("age", "wage"), ("job", "town"), {"no": 40, "yes": 20})


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"sha256": "0" * 64}, r"other values or another order of rows, sha256 \w{64} instead of 0{64}\. Point"),
        ({"sha256": "0" * 64, "facts": None}, r"is another table: sha256 \w{64} instead of 0{64}\. Point"),
        ({"facts": replace(SIZE, rows=61)}, "another table: rows 60 instead of 61"),
        ({"facts": replace(SIZE, numeric=("age", "pay"))}, r"numeric .*wage.* instead of .*pay"),
        ({"facts": replace(SIZE, categorical=("job",))}, r"categorical .*town.* instead of "),
        ({"facts": replace(SIZE, classes={"no": 39, "yes": 21})}, r"classes .*40.* instead of .*39"),
        ({"target": "poor"}, "no target column 'poor'"),
        ({"positive": "maybe"}, "'maybe' is not one of two classes of 'rich'"),
    ],
)
def test_copy_that_differs_from_declaration_is_refused(
    people: pd.DataFrame, declare: Declare, tmp_path: Path, facts: dict[str, object], message: str
) -> None:
    shop = Shop(people)
    declare("people", source=shop, **{**FACTS, "facts": SIZE, **facts})
    refused(message)
    put(people, tmp_path / "people.parquet")
    refused(message, "people", tmp_path)
    assert len(shop.visits) == 1


def test_download_is_cached_and_read_offline(
    people: pd.DataFrame, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cached table has been prepared, and is prepared again when it is read."""
    shop = Shop(people.rename(columns={"rich": "V5"}))
    declare("people", lambda frame: frame.rename(columns={"V5": "rich"}), source=shop, **FACTS)
    first, path = load_table("people"), _cache_path("people")
    assert "rich" in pd.read_parquet(path).columns
    assert [each for each in path.parent.iterdir() if each.suffix != ".lock"] == [path]
    monkeypatch.setattr(loading, "_tables", {})
    assert load_table("people", download=False).fingerprint == first.fingerprint
    assert len(shop.visits) == 1


def test_failing_prepare_function_names_dataset(people: pd.DataFrame, declare: Declare, tmp_path: Path) -> None:
    declare("people", lambda frame: frame.drop(columns="salary"), target="rich")
    put(people, tmp_path / "people.parquet")
    refused(r"'people' cannot be made from '.*people.parquet' \(KeyError: .*salary", "people", tmp_path)
    declare("forgetful", lambda _: None, target="rich")
    put(people, tmp_path / "forgetful.parquet")
    refused("function of dataset 'forgetful' returned NoneType, not a data frame", "forgetful", tmp_path)


def test_unreadable_or_unwritable_cache_is_refused_with_remedy(
    people: pd.DataFrame, declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare("people", source=Shop(people), **FACTS)
    path = put(people, _cache_path("people"))
    path.write_bytes(b"PAR1 cut off")
    with pytest.raises(DataError, match=r"cannot be read as parquet .*delete '.*people.parquet' to download it"):
        load_table("people")
    path.unlink()
    assert len(load_table("people")) == 60
    (tmp_path / "file").touch()
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"cache '.*file/datasets' cannot be written .*Set LLPBENCH_CACHE"):
        load_table("people")


def test_cache_directory_follows_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == tmp_path / "cache"
    monkeypatch.delenv("LLPBENCH_CACHE")
    assert cache_directory() == tmp_path / "xdg" / "llpbench"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory() == tmp_path / "home" / ".cache" / "llpbench"


@pytest.mark.parametrize(
    "declaration",
    ["register_dataset('people', {})(lambda frame: frame)", "add_dataset('people', 'People: who is rich?', {})"],
)
def test_relative_path_is_resolved_from_plugin_file(
    people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declaration: str
) -> None:
    """A worker process has another working directory than the shell the plugin was named in."""
    put(people, tmp_path / "plugin" / "data" / "people.parquet")
    plugin = tmp_path / "plugin" / "mine.py"
    plugin.write_text(
        "from llpbench import Parquet, register_dataset\n"
        "from llpbench.core.registry import add_dataset\n"
        + declaration.format("source=Parquet('data/people.parquet'), target='rich'")
    )
    monkeypatch.chdir(tmp_path)
    load_plugin(plugin)
    assert DATASETS.entry("people").where == f"{plugin}:3"
    assert len(load_table("people")) == 60


def test_misspelt_or_missing_fact_is_refused(people: pd.DataFrame, declare: Declare) -> None:
    declare("people", source=Shop(people), target="rich", license="none")
    refused(r"'people' .*districts\.py.* declares the unknown argument 'license'. Did you mean licence")
    declare("others", source=Shop(people))
    refused(r"'others' .* does not declare its 'target'", "others")


def test_two_processes_download_once(people: pd.DataFrame, tmp_path: Path) -> None:
    put(people, tmp_path / "source.parquet")
    code = f"""
import os, pathlib, time
import pandas as pd
from llpbench.core.registry import register_dataset
from llpbench.data.loading import load_table

class Slow:
    def describe(self): return "a slow source"
    def download(self):
        pathlib.Path({str(tmp_path)!r}, f"visit-{{os.getpid()}}").touch()
        time.sleep(1.0)
        return pd.read_parquet({str(tmp_path / "source.parquet")!r})

@register_dataset("people", source=Slow(), target="rich")
def people(frame): return frame

pathlib.Path({str(tmp_path)!r}, f"ready-{{os.getpid()}}").touch()
while len(list(pathlib.Path({str(tmp_path)!r}).glob("ready-*"))) < 2:
    time.sleep(0.01)
assert len(load_table("people")) == 60
"""
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    assert len(list(tmp_path.glob("visit-*"))) == 1


UNKNOWN = """<oml:error xmlns:oml="http://openml.org/openml">
  <oml:code>111</oml:code><oml:message>Unknown dataset</oml:message>
</oml:error>
"""
API = "/api/v1/xml/data/7"
ARFF = "/data/v1/download/7/people.arff"


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


@pytest.mark.parametrize("body", [movielens()[:-50], movielens(leave_out="users.dat"), b"<html>"])
def test_truncated_or_other_grouplens_archive_is_refused(grouplens: Server, body: bytes) -> None:
    grouplens.replies["/ml-1m.zip"] = Reply(body)
    refused("GroupLens ml-1m.zip cannot be downloaded", "tiny")


SUITE = """<oml:study xmlns:oml="http://openml.org/openml">
  <oml:id>99</oml:id>
  <oml:main_entity_type>task</oml:main_entity_type>
  <oml:name>Two toys</oml:name>
  <oml:description>Toys.</oml:description>
  <oml:status>active</oml:status>
  <oml:creation_date>2019-02-21 18:47:13</oml:creation_date>
  <oml:creator>1</oml:creator>
  <oml:data><oml:data_id>31</oml:data_id><oml:data_id>7</oml:data_id></oml:data>
  <oml:tasks><oml:task_id>11</oml:task_id><oml:task_id>12</oml:task_id></oml:tasks>
</oml:study>
"""


def offline(server: Server) -> None:
    """Nobody answers any more, and nothing is left in memory."""
    server.replies.clear()
    server.requests.clear()
    loading._tables.clear()


def test_table_and_facts_match_openml(openml: Server, people: pd.DataFrame, table: Table) -> None:
    first, *others = people.columns[::-1]
    serve(openml, 31, people[[first, *others[::-1]]])  # the target may stand anywhere
    found = load_table("openml:31")
    assert found.fingerprint == table.fingerprint
    spec = dataset_spec("openml:31")
    assert spec.facts == Facts(60, ("age", "wage"), ("job", "town"), {"no": 40, "yes": 20})
    assert spec.licence == "Public"
    assert "people, version 1" in spec.summary


def test_copies_in_data_directory_and_cache_are_read_offline(
    openml: Server, people: pd.DataFrame, tmp_path: Path
) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    people.to_parquet(folder / "openml-8.parquet")  # made by hand: its last column is the target
    table = load_table("openml:8", folder, download=False)
    assert (table.classes, len(table)) == (("no", "yes"), 60)
    serve(openml, 31, people)
    first = load_table("openml:031")
    assert _cache_path("openml:31").name == "openml-31.parquet"
    offline(openml)
    assert load_table("openml:31").fingerprint == first.fingerprint
    assert openml.requests == []
    assert local_names(folder) == ["openml:8", "openml:31"]
    assert local_names() == ["openml:31"]


SPARSE = b"@RELATION s\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE rich {no,yes}\n@DATA\n{0 1,1 yes}\n{0 2}\n"


@pytest.mark.parametrize(
    ("element", "text", "message"),
    [
        ("default_target_attribute", None, "has no default target"),
        ("default_target_attribute", "wage", "has the default target 'wage', which is numeric"),
        ("default_target_attribute", "poor", "has the default target 'poor', but the columns job, age"),
        ("default_target_attribute", "rich,town", "has the default target 'rich,town', but the columns job, age"),
        ("format", "Sparse_ARFF", "is a sparse matrix"),
    ],
)
def test_openml_dataset_without_class_table_raises_one_line(
    openml: Server, people: pd.DataFrame, element: str, text: str | None, message: str
) -> None:
    changes = {element: f"<oml:{element}>{text}</oml:{element}>" if text else ""}
    if text == "Sparse_ARFF":
        serve(openml, 31, people, **changes, md5_checksum="")
        openml.replies["/data/v1/download/31/people.arff"] = Reply(SPARSE)
    else:
        serve(openml, 31, people, **changes)
    refused(f"OpenML 31 {message}", "openml:31")


def test_failed_download_is_one_line_with_the_file_that_helps(openml: Server, llpbench: LLPBench) -> None:
    offline(openml)
    fetched = llpbench("data", "fetch", "openml:31")
    assert (fetched.code, len(fetched.err.splitlines())) == (1, 1)
    file = r"openml-31\.parquet \(the target as its last column\) into a folder and name it: --data-dir DIR"
    assert re.search(rf"OpenML 31 cannot be downloaded .* or put {file}", fetched.err)
    with pytest.raises(DataError, match="OpenML suite 99 cannot be read") as caught:
        select_datasets("openml-suite:99")
    assert "\n" not in str(caught.value)


def test_openml_suite_is_downloaded_once(openml: Server) -> None:
    openml.replies["/api/v1/xml/study/99"] = Reply(SUITE.encode())
    assert select_datasets("openml-suite:99,openml:7,letter") == ["openml:7", "openml:31", "letter"]
    offline(openml)
    assert select_datasets("openml-suite:99") == ["openml:7", "openml:31"]
    assert openml.requests == []
    (cache_directory() / "suites" / "openml-99.json").write_text("[7, ")
    with pytest.raises(DataError, match="OpenML suite 99 cannot be read"):
        select_datasets("openml-suite:99")
