"""Embedded datasets: complete, unchanged since published runs, and redistributable."""

from __future__ import annotations

import json
import lzma
import re

import pytest
from repository import ROOT

from llpbench.core.errors import DataError
from llpbench.data.catalogue import verify
from llpbench.data.frames import read_parquet
from llpbench.data.loading import EMBEDDED
from llpbench.data.specs import DatasetSpec, dataset_spec

pytestmark = pytest.mark.usefixtures("empty_cache")

SHIPPED = sorted(path.stem for path in EMBEDDED.glob("*.parquet"))
ATTRIBUTION = (EMBEDDED / "ATTRIBUTION.md").read_text(encoding="utf-8")
LEADERBOARDS = ROOT / "leaderboards"
PUBLISHED = {path.name.partition(".")[0] for path in LEADERBOARDS.glob("**/journal/*.jsonl.xz")}


def test_what_is_shipped_is_small_and_nothing_else() -> None:
    files = list(EMBEDDED.iterdir())
    assert {path.name for path in files if path.suffix != ".parquet"} == {"ATTRIBUTION.md"}
    assert sum(path.stat().st_size for path in files) < 14_000_000
    assert sorted(re.findall(r"^# (\w+)\.parquet$", ATTRIBUTION, flags=re.MULTILINE)) == SHIPPED
    assert len(SHIPPED) == 31
    assert {*SHIPPED} - PUBLISHED == {"connect_4", "fars"}, "of all others the next test has a published run"


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_is_what_published_runs_had_and_may_be_passed_on(name: str) -> None:
    spec = dataset_spec(name)
    findings = verify(name)
    assert (findings.problem, findings.found) == ("", "embedded")  # rows, features and classes are as declared
    for path in LEADERBOARDS.glob(f"**/journal/{name}.jsonl.xz"):
        with lzma.open(path) as lines:
            assert json.loads(lines.readline())["data"]["fingerprint"] == findings.fingerprint, path
    assert spec.redistributable
    _, _, own = ATTRIBUTION.partition(f"\n# {name}.parquet\n")
    own = own.partition("\n# ")[0]
    assert f"({spec.licence})" in own
    assert f"SHA-256: `{findings.sha256}`" in own
    assert spec.licence != "MIT" or "The above copyright notice and this permission notice shall be included" in own


def test_flights_know_nothing_of_the_time_after_departure() -> None:
    afterwards = {"dep_time", "arr_time", "dep_delay", "arr_delay", "air_time"}
    assert not afterwards & {*dataset_spec("flights_2013").columns}


def test_a_natural_key_that_is_no_feature_is_refused() -> None:
    spec = dataset_spec("diamonds")
    wrong = DatasetSpec(**{**vars(spec), "natural_keys": ("color+day",)})
    with pytest.raises(DataError, match=r"'diamonds' declares the natural key 'color.day', but has no column 'day'"):
        wrong.table(read_parquet(EMBEDDED / "diamonds.parquet"), "here")
