"""Declarations of datasets, compared with their tables, published runs and attributions."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from pathlib import Path

import pandas as pd
import pytest
from bench import LLPBench
from repository import ROOT

from llpbench.data.frames import read_parquet
from llpbench.data.loading import EMBEDDED, load_table, locate, verify
from llpbench.data.specs import Facts, built_in_facts, dataset_spec, dataset_specs

pytestmark = pytest.mark.usefixtures("empty_cache")

LABELLED = [spec.name for spec in dataset_specs() if spec.bags is None]
SHIPPED = {path.stem for path in EMBEDDED.glob("*.parquet")}
CHANGED = ["adult", "diabetes130", "fars", "flights_2013_sample", "nursery", "optdigits"]
"""embedded; all but the first lose rows or columns"""
LOCAL = [name for name in LABELLED if name not in {*SHIPPED, *CHANGED, "road_safety"}]
"""datasets beside the repository"""
ATTRIBUTION = (EMBEDDED / "ATTRIBUTION.md").read_text(encoding="utf-8")
JOURNALS = sorted((ROOT / "leaderboards").glob("**/journal/*.jsonl.xz"))


@pytest.mark.parametrize("name", LABELLED)
def test_declaration_is_complete_and_consistent(name: str) -> None:
    spec, facts = dataset_spec(name), built_in_facts()[name]
    assert facts.rows == sum(facts.classes.values())
    assert len({*facts.columns}) == len(facts.columns)
    assert not {*facts.columns} & {*spec.key_only, spec.target}
    assert {column for key in spec.natural_keys for column in key.split("+")} <= {*facts.columns, *spec.key_only}
    assert spec.positive in facts.classes if len(facts.classes) == 2 else spec.positive is None
    assert min(facts.classes.values()) >= 10  # otherwise a class is missing from a part of a split
    assert re.fullmatch("[0-9a-f]{64}", spec.sha256) or name == "road_safety", "no copy of it was available"
    assert spec.code
    assert spec.summary.endswith("?")
    assert spec.reference
    assert spec.licence != "not stated"


def test_facts_cover_the_built_in_datasets_in_order() -> None:
    built_in = [spec.name for spec in dataset_specs() if spec.prepare.__module__.startswith("llpbench.datasets.")]
    assert list(built_in_facts()) == sorted(built_in)


@pytest.mark.parametrize("name", sorted({*LABELLED} - {"road_safety"}))
def test_table_has_declared_sha256_and_facts(request: pytest.FixtureRequest, name: str) -> None:
    folder = None if locate(dataset_spec(name)) else request.getfixturevalue("shared")
    assert verify(name, folder).check == "ok"
    assert Facts.of(load_table(name, folder)) == built_in_facts()[name], "run python docs/generate.py"


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: str(path.relative_to(ROOT / "leaderboards")))
def test_published_runs_used_declared_table(path: Path) -> None:
    with lzma.open(path) as lines:
        record = json.loads(lines.readline())
    assert dataset_spec(record["spec"]["dataset"]).sha256 in ("", record["data"]["fingerprint"])


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_embedded_file_is_attributed(name: str) -> None:
    spec = dataset_spec(name)
    section = ATTRIBUTION.partition(f"\n# {name}.parquet\n")[2].partition("\n# ")[0]
    assert spec.redistributable
    assert f"({spec.licence})" in section
    assert f"SHA-256: `{hashlib.sha256((EMBEDDED / f'{name}.parquet').read_bytes()).hexdigest()}`" in section
    assert spec.licence != "MIT" or "The above copyright notice and this permission notice shall be included" in section


def test_embedded_files_are_small_and_all_attributed() -> None:
    files = list(EMBEDDED.iterdir())
    assert {path.name for path in files if path.suffix != ".parquet"} == {"ATTRIBUTION.md"}
    assert sum(path.stat().st_size for path in files) < 14_000_000
    assert sorted(re.findall(r"^# (\w+)\.parquet$", ATTRIBUTION, flags=re.MULTILINE)) == sorted(SHIPPED)
    assert len(SHIPPED) == 31


def test_only_free_licences_let_data_be_redistributed() -> None:
    kept = {spec.name for spec in dataset_specs() if not spec.redistributable}
    assert {"california", "credit", "credit_raw", "heloc", "movielens_1m"} <= kept
    assert len(kept) == 18


@pytest.mark.parametrize("name", [*LOCAL, *CHANGED])
def test_prepared_data_stay_unchanged_when_prepared_again(request: pytest.FixtureRequest, name: str) -> None:
    spec = dataset_spec(name)
    location = locate(spec)
    path = location.path if location else request.getfixturevalue("shared") / f"{name}.parquet"
    once = spec.frame(read_parquet(path), "here")
    pd.testing.assert_frame_equal(spec.frame(once, "here"), once)


def test_verify_reports_problems(tmp_path: Path) -> None:
    (tmp_path / "adult.parquet").write_bytes(b"nothing")
    broken = verify("adult", tmp_path)
    assert broken.check == "problem"
    assert "cannot be read as parquet" in broken.problem
    read_parquet(EMBEDDED / "adult.parquet").iloc[::-1].to_parquet(tmp_path / "adult.parquet")
    assert re.search(r"other values or another order of rows, sha256 \w{64} instead", verify("adult", tmp_path).problem)
    absent = verify("road_safety", tmp_path)
    assert "not on this machine" in absent.problem
    assert absent.location is None


def test_verify_prints_sha256_to_declare(tmp_path: Path, llpbench: LLPBench) -> None:
    read_parquet(EMBEDDED / "nursery.parquet").to_parquet(tmp_path / "clicks.parquet")
    plugin = tmp_path / "clicks.py"
    plugin.write_text(
        "from llpbench import Parquet, register_dataset\n"
        "@register_dataset('clicks', source=Parquet('clicks.parquet'), target='class')\n"
        "def clicks(frame):\n"
        "    return frame[frame['class'] != 'recommend']\n"
    )
    told = llpbench("data", "verify", "clicks,adult", "--plugin", str(plugin))
    assert told.code == 0
    same = dataset_spec("nursery").sha256
    assert told.out.splitlines()[-1] == f'clicks: to refuse other copies, declare sha256="{same}"'


def test_copy_of_source_with_other_values_is_accepted_and_shown(tmp_path: Path) -> None:
    frame = read_parquet(EMBEDDED / "bank_marketing.parquet")
    frame.iloc[::-1].to_parquet(tmp_path / "bank_marketing.parquet")
    found = verify("bank_marketing", tmp_path)
    assert (found.check, found.problem) == ("other table", "")
    frame.iloc[1:].to_parquet(tmp_path / "bank_marketing.parquet")
    assert "another table: rows 45210 instead of 45211, classes" in verify("bank_marketing", tmp_path).problem
