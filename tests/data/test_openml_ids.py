"""Datasets of OpenML by number, and suites there: recorded answers from this machine, then nobody answers any more."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from bench import LLPBench
from downloads import Reply, Server, serve

from llpbench.core.errors import DataError
from llpbench.core.tables import Table
from llpbench.data import loading
from llpbench.data.loading import _cache_path, cache_directory, catalogue, load_table, select_datasets, verify
from llpbench.data.specs import Facts, dataset_spec

pytestmark = pytest.mark.usefixtures("empty_cache")

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
    assert verify("openml:31").check == "ok"
    assert openml.requests == []
    shown = [(entry.spec.name, entry.found, entry.spec.facts is None) for entry in catalogue(folder)]
    assert shown[-2:] == [("openml:8", "data-dir", True), ("openml:31", "cache", False)]
    assert "openml:8" not in {entry.spec.name for entry in catalogue()}


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
    with pytest.raises(DataError, match=f"OpenML 31 {message}") as caught:
        load_table("openml:31")
    assert "\n" not in str(caught.value)
    assert not _cache_path("openml:31").exists()


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
