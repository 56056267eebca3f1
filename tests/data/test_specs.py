"""The declarations of the datasets, against the real data where they are at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llpbench.core.errors import DataError
from llpbench.data.catalogue import catalogue, verify
from llpbench.data.frames import read_parquet
from llpbench.data.loading import EMBEDDED, load_table, locate
from llpbench.data.sources import OpenML
from llpbench.data.specs import dataset_spec, dataset_specs

pytestmark = pytest.mark.usefixtures("empty_cache")

PAPER = {
    "adult": "AD",
    "bank_marketing": "BA",
    "california": "CA",
    "credit": "CR",
    "electricity": "EL",
    "road_safety": "RO",
    "movielens_1m": "ML",
}
LABELLED = [spec.name for spec in dataset_specs() if spec.bags is None]
SHIPPED = {path.stem for path in EMBEDDED.glob("*.parquet")}
LOCAL = [name for name in LABELLED if name not in {*SHIPPED - {"adult"}, "flights_2013_sample", "road_safety"}]
"""what stands beside the repository and not in it, and one that stands in both"""
CHANGED = ["adult", "diabetes130", "fars", "flights_2013_sample", "nursery", "optdigits"]
"""embedded, and all but the first lose rows or columns"""


def test_the_paper_s_seven_datasets_are_there() -> None:
    assert {spec.name: spec.code for spec in dataset_specs() if spec.name in PAPER} == PAPER
    features = {spec.code: (spec.numeric, spec.categorical) for spec in dataset_specs() if spec.name in PAPER}
    # the paper's own counts of categorical features include the target
    assert features == {
        "AD": (6, 8),
        "BA": (7, 9),
        "CA": (8, 0),
        "CR": (10, 0),
        "EL": (7, 1),
        "RO": (29, 3),
        "ML": (3, 4),
    }


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
    assert findings.problem == ""
    assert findings.ok
    spec = dataset_spec(name)
    table = load_table(name, shared)
    names = [column for column in spec.columns if column in table.numeric_names]
    assert table.numeric_names == tuple(names)
    assert table.fingerprint == findings.fingerprint


@pytest.mark.parametrize("name", LOCAL)
def test_preparing_twice_changes_nothing(shared: Path, name: str) -> None:
    """What is cached has been prepared; reading it prepares it again."""
    spec = dataset_spec(name)
    once = spec.frame(read_parquet(shared / f"{name}.parquet"), "here")
    pd.testing.assert_frame_equal(spec.frame(once, "here"), once)


@pytest.mark.parametrize("name", CHANGED)
def test_preparing_what_is_shipped_twice_changes_nothing(name: str) -> None:
    spec = dataset_spec(name)
    place = locate(spec)
    assert place is not None
    once = spec.frame(read_parquet(place.path), "here")
    pd.testing.assert_frame_equal(spec.frame(once, "here"), once)


@pytest.mark.parametrize("name", sorted(SHIPPED - {"letter"}))
def test_what_is_shipped_has_the_values_of_the_real_data(shared: Path, name: str) -> None:
    spec = dataset_spec(name)
    shipped = spec.table(read_parquet(EMBEDDED / f"{name}.parquet"), "here")
    assert shipped.fingerprint == spec.table(read_parquet(shared / f"{name}.parquet"), "there").fingerprint


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
    made = dict.fromkeys(("synthetic_a", "synthetic_b"), "generated")
    assert found.items() >= made.items()
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


def test_openml_numbers_are_the_paper_s() -> None:
    sources = {spec.code: spec.source for spec in dataset_specs() if isinstance(spec.source, OpenML)}
    numbers = {"AD": 1590, "BA": 1461, "CA": 44090, "CR": 44089, "EL": 44156, "RO": 44161}
    assert {code: sources[code] for code in numbers} == {code: OpenML(number) for code, number in numbers.items()}
