"""Declarations of datasets, compared with the real data if they are available."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llpbench.core.errors import DataError
from llpbench.data.catalogue import catalogue, verify
from llpbench.data.frames import read_parquet
from llpbench.data.loading import EMBEDDED, load_table, locate
from llpbench.data.sources import GroupLens, OpenML
from llpbench.data.specs import dataset_spec, dataset_specs

pytestmark = pytest.mark.usefixtures("empty_cache")

PAPER = {
    "adult": ("AD", 6, 8, OpenML(1590)),
    "bank_marketing": ("BA", 7, 9, OpenML(1461)),
    "california": ("CA", 8, 0, OpenML(44090)),
    "credit": ("CR", 10, 0, OpenML(44089)),
    "electricity": ("EL", 7, 1, OpenML(44156)),
    "road_safety": ("RO", 29, 3, OpenML(44161)),
    "movielens_1m": ("ML", 3, 4, GroupLens("ml-1m.zip")),
}
"""code, features and source; the paper's own counts of categorical features include the target"""
LABELLED = [spec.name for spec in dataset_specs() if spec.bags is None]
SHIPPED = {path.stem for path in EMBEDDED.glob("*.parquet")}
LOCAL = [name for name in LABELLED if name not in {*SHIPPED - {"adult"}, "flights_2013_sample", "road_safety"}]
"""what stands beside the repository and not in it, and one that stands in both"""
CHANGED = ["adult", "diabetes130", "fars", "flights_2013_sample", "nursery", "optdigits"]
"""embedded, and all but the first lose rows or columns"""


def test_the_paper_s_seven_datasets_are_there() -> None:
    for name, facts in PAPER.items():
        spec = dataset_spec(name)
        assert (spec.code, spec.numeric, spec.categorical, spec.source) == facts


@pytest.mark.parametrize("name", LABELLED)
def test_a_declaration_agrees_with_itself(name: str) -> None:
    spec = dataset_spec(name)
    assert spec.rows == sum(spec.balance.values())
    assert len(set(spec.columns)) == len(spec.columns) == (spec.numeric or 0) + (spec.categorical or 0)
    assert not {*spec.columns} & {*spec.key_only, spec.target}
    keys = {column for key in spec.natural_keys for column in key.split("+")}
    assert keys <= {*spec.columns, *spec.key_only}
    assert spec.positive in spec.balance if spec.classes == 2 else spec.positive is None
    assert min(spec.balance.values()) >= 10  # else a class is missing from a part of a split
    assert spec.code
    assert spec.summary.endswith("?")
    assert spec.reference
    assert spec.licence != "not stated"


@pytest.mark.parametrize("name", LOCAL)
def test_real_data_agree_with_the_declaration(shared: Path, name: str) -> None:
    findings = verify(name, shared)
    assert (findings.problem, findings.ok) == ("", True)
    assert load_table(name, shared).fingerprint == findings.fingerprint


@pytest.mark.parametrize("name", sorted({*LOCAL, *CHANGED}))
def test_preparing_twice_changes_nothing(request: pytest.FixtureRequest, name: str) -> None:
    """What is cached has been prepared; reading it prepares it again."""
    spec = dataset_spec(name)
    place = locate(spec)
    path = place.path if place else request.getfixturevalue("shared") / f"{name}.parquet"
    once = spec.frame(read_parquet(path), "here")
    pd.testing.assert_frame_equal(spec.frame(once, "here"), once)


def test_movielens_uses_estimated_times_only_where_real_ones_are_lost(shared: Path) -> None:
    raw = read_parquet(shared / "movielens_1m.parquet")
    raw = raw[raw["rating"] != 3]
    times = load_table("movielens_1m", shared).numeric[:, 0]
    known = raw["timestamp"].notna().to_numpy()
    assert 0 < known.sum() < len(known)
    np.testing.assert_array_equal(times[known], raw["timestamp"][known])
    np.testing.assert_array_equal(times[~known], raw["timestamp_est"][~known])


def test_road_safety_s_nominal_features_are_categorical_whatever_their_type() -> None:
    spec = dataset_spec("road_safety")
    frame = pd.DataFrame({column: [0.0, 1.0, 1.0] for column in spec.columns}).assign(SexofDriver=[0, 1, 0])
    prepared = spec.frame(frame, "here")
    text = [column for column in prepared.columns if prepared[column].dtype == object]
    assert text == ["Was_Vehicle_Left_Hand_Drive?", "Urban_or_Rural_Area", "Sex_of_Casualty"]
    assert prepared["Sex_of_Casualty"].tolist() == ["0", "1", "1"]
    with pytest.raises(DataError, match="wrong rows: expected 111,762, found 3"):
        spec.table(frame, "here")


def test_bank_marketing_in_openml_s_spelling() -> None:
    spec = dataset_spec("bank_marketing")
    frame = pd.DataFrame({f"V{number}": [number, number] for number in range(1, 17)}).assign(Class=["2", "1"])
    prepared = spec.frame(frame, "here")
    assert prepared.columns.tolist() == [*spec.columns, "y"]
    assert prepared.loc[0, ["age", "job", "poutcome"]].tolist() == [1, 2, 16]
    assert prepared["y"].tolist() == ["yes", "no"]
    pd.testing.assert_frame_equal(spec.frame(prepared, "here"), prepared)


@pytest.mark.parametrize("days", [[0, 6], [0.0, 6.0], ["0", "6"], ["1", "7"]])
def test_electricity_counts_days_from_one(days: list[object]) -> None:
    spec = dataset_spec("electricity")
    frame = pd.DataFrame({column: [0.5, 0.5] for column in spec.columns}).assign(**{"class": ["UP", "DOWN"]})
    assert spec.frame(frame.assign(day=days), "here")["day"].tolist() == ["1", "7"]


@pytest.mark.parametrize("labels", [["-1", "1"], [-1, 1], ["0", "1"], [0.0, 1.0]])
def test_mammography_s_negative_class_is_0(labels: list[object]) -> None:
    spec = dataset_spec("mammography")
    frame = pd.DataFrame({column: [0.5, 0.5] for column in spec.columns}).assign(**{"class": labels})
    assert spec.frame(frame, "here")["class"].tolist() == ["0", "1"]


def test_catalogue_says_where_each_dataset_is(tmp_path: Path) -> None:
    found = {entry.name: entry.found for entry in catalogue()}
    assert {name for name in found if found[name] == "generated"} == {"synthetic_a", "synthetic_b"}
    assert {name for name in found if found[name] == "embedded"} == SHIPPED
    assert {name for name in found if found[name] == "file"} == {"flights_2013_sample"}
    assert (found["credit"], found["kin8nm"], found["cces_2016"]) == ("to download", "to download", "missing")
    (tmp_path / "credit.parquet").touch()
    entries = {entry.name: entry for entry in catalogue(tmp_path)}
    assert (entries["credit"].found, entries["credit"].path) == ("data-dir", tmp_path / "credit.parquet")
    assert entries["credit"].features == 10
    assert entries["credit"].redistributable is False
    assert entries["road_safety"].source == "OpenML 44161"
    with pytest.raises(DataError, match="does not exist"):
        catalogue(tmp_path / "absent")


def test_verify_reports_what_is_wrong(tmp_path: Path) -> None:
    good = verify("adult")
    assert good.sha256 == "bc8ff7d0d9719de52b664ccf202dd2937fe290fea85f51a113a35932a1001ee4"
    assert good.balance == {"<=50K": 37_155, ">50K": 11_687}
    assert (good.rows, good.numeric, good.categorical, good.found) == (48_842, 6, 8, "embedded")
    (tmp_path / "adult.parquet").write_bytes(b"nothing")
    broken = verify("adult", tmp_path)
    assert not broken.ok
    assert "cannot be read as parquet" in broken.problem
    assert len(broken.sha256) == 64
    absent = verify("road_safety", tmp_path)
    assert "not on this machine" in absent.problem
    assert absent.path is None
