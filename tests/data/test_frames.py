"""Frames become tables or are refused with one line; declarations of datasets compared with tables; suites."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench import LLPBench
from pandas import DataFrame
from repository import ROOT

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.registry import DATASETS, load_plugin, register_dataset, register_suite
from llpbench.core.tables import Table
from llpbench.data.baggings import column_keys
from llpbench.data.frames import read_parquet, table_from_bags, table_from_frame
from llpbench.data.loading import EMBEDDED, load_table, locate, select_datasets, suite_datasets
from llpbench.data.specs import Facts, built_in_facts, dataset_spec
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task
from llpbench.datasets import synthetic

pytestmark = pytest.mark.usefixtures("empty_cache")


def make(target: str = "y", positive: str | None = None, **columns: object) -> Table:
    return table_from_frame(pd.DataFrame(columns), name="toy", target=target, positive=positive)


def test_columns_keep_order_of_frame_and_get_kind_from_dtype() -> None:
    table = make(b=["x", "y", "x"], n=[1, 2, 3], y=[0, 1, 1], a=[True, False, True], m=[0.5, None, 1.5])
    assert table.numeric_names == ("n", "m")
    assert table.categorical_names == ("b", "a")
    assert table.categories == (("x", "y"), ("False", "True"))
    np.testing.assert_array_equal(table.numeric, [[1, 0.5], [2, np.nan], [3, 1.5]])
    np.testing.assert_array_equal(table.categorical, [[0, 1], [1, 0], [0, 1]])
    arrays = (table.numeric, table.categorical, table.row_labels)
    assert [array.dtype.name for array in arrays] == ["float64", "int64", "int64"]


TEXTS = ["b", None, "a", "b"]


@pytest.mark.parametrize(
    ("column", "categories", "codes"),
    [
        *((pd.Series(TEXTS, dtype=dtype), ("a", "b"), [1, -1, 0, 1]) for dtype in (object, "string", "str")),
        (pd.Series(pd.Categorical(TEXTS, categories=["c", "b", "a"])), ("a", "b"), [1, -1, 0, 1]),
        (pd.Series(pd.Categorical(TEXTS, categories=["b", "a"], ordered=True)), ("a", "b"), [1, -1, 0, 1]),
        (pd.Series(["b", np.nan, "a", "b"], dtype=object), ("a", "b"), [1, -1, 0, 1]),
        (pd.Series([10, 2, 1, 10], dtype="category"), ("1", "10", "2"), [1, 2, 0, 1]),
        (pd.Series([1, "1", 1.0, "2"], dtype=object), ("1", "2"), [0, 0, 0, 1]),
        (pd.Series([True, None, False, True], dtype="boolean"), ("False", "True"), [1, -1, 0, 1]),
    ],
)
def test_categories_of_every_dtype_are_sorted_as_text(
    column: pd.Series, categories: tuple[str, ...], codes: list[int]
) -> None:
    table = make(c=column, y=["0", "1", "0", "1"])
    assert table.categories == (categories,)
    assert table.categorical[:, 0].tolist() == codes


def test_positive_class_is_1_and_must_be_one_of_two() -> None:
    positive, plain = (make(x=[1, 2, 3], y=["a", "b", "a"], positive=each) for each in ("a", None))
    assert (positive.classes, positive.row_labels.tolist()) == (("b", "a"), [1, 0, 1])
    assert (plain.classes, plain.row_labels.tolist()) == (("a", "b"), [0, 1, 0])
    assert make(x=[1, 2, 3], y=[1.0, 0.0, 2.0]).classes == ("0", "1", "2")
    for target, unknown in ((["a", "b", "a"], "c"), (["a", "b", "c"], "a")):
        classes = ", ".join(sorted({*target}))
        with pytest.raises(DataError, match=f"'{unknown}' is not one of two classes of 'y', which are: {classes}"):
            make(x=[1, 2, 3], y=target, positive=unknown)


def test_fingerprint_is_the_documented_digest() -> None:
    """The bytes are written here by hand, so that no library or version can change them."""
    negative_nan = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)[0]
    for gap in (None, np.nan, negative_nan):
        table = make(n=[1.5, gap, -0.0], c=["b", None, "\u00e9"], y=["no", "yes", "no"])
        content = (
            *(b"<f8(3, 1)", struct.pack("<d", 1.5), bytes.fromhex("000000000000f87f"), struct.pack("<d", -0.0)),
            *(b"<i8(3, 1)", struct.pack("<3q", 0, -1, 1), b"<i8(3,)", struct.pack("<3q", 0, 1, 0)),
            rb"(('n',), ('c',), (('b', '\xe9'),), ('no', 'yes'))",
        )
        expected = hashlib.sha256(b"".join(content)).hexdigest()
        assert table.fingerprint == expected == "6cba30e1abef41ae436637e32e0a471362c185a9ee70248940d663bc401b2923"


def test_fingerprint_ignores_file_layout_and_follows_values_and_order(tmp_path: Path, people: pd.DataFrame) -> None:
    layouts: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
        "plain": (people, {}),
        "row groups": (people, {"row_group_size": 7, "compression": "gzip", "use_dictionary": False}),
        "categories": (people.astype({"job": "category", "rich": "category"}), {}),
        "narrow": (people.astype({"age": "int16", "town": "string"}), {"version": "1.0"}),
    }
    found = set()
    for name, (frame, options) in layouts.items():
        frame.to_parquet(tmp_path / name, **options)
        found.add(table_from_frame(read_parquet(tmp_path / name), name=name, target="rich").fingerprint)
    assert len(found) == 1
    changed = (
        people.iloc[::-1],
        people[[*people.columns[::-1]]],
        people.assign(age=1.0),
        people.rename(columns=str.upper),
    )
    for frame in changed:
        found.add(table_from_frame(frame, name="x", target="RICH" if "RICH" in frame else "rich").fingerprint)
    assert len(found) == 5


TWICE = pd.DataFrame([[1, 2, 0], [3, 4, 1]], columns=["a", "a", "y"])


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (TWICE, "two columns called 'a'"),
        (pd.DataFrame({"x": [1.0, 2.0]}), "no target column 'y'. Its columns are: x"),
        (pd.DataFrame({"x": [], "y": []}), "no rows"),
        (pd.DataFrame({"y": [0, 1]}), "no features, only its target 'y'"),
        (pd.DataFrame({"x": [1, 2, 3, 4], "y": ["a", None, "b", None]}), "2 of 4 targets .'y'. are null"),
        (pd.DataFrame({"x": [1, 2], "y": ["a", "a"]}), "every target .'y'. is 'a'"),
        (pd.DataFrame({"x": [1, 2], "y": [0.5, 1.0]}), "must contain classes, got 0.5"),
        (pd.DataFrame({"x": [1, 2], "y": [np.inf, 1.0]}), "must contain classes, got inf"),
        (
            pd.DataFrame({"x": [1.0, 2.0, np.inf, -np.inf], "y": [0, 1, 0, 1]}),
            "'x' contains an infinite value, .* row 3",
        ),
        (pd.DataFrame({"x": [None, None], "y": [0, 1]}), "'x' contains only missing"),
        (
            pd.DataFrame({"x": pd.to_datetime(["2020", "2021"]), "y": [0, 1]}),
            "'x' is of type datetime64.*not supported",
        ),
        (pd.DataFrame({"x": [[1], [2]], "y": [0, 1]}), "'x' is of type list"),
        (pd.DataFrame({"x": [{"a": 1}, {"a": 2}], "y": [0, 1]}), "'x' is of type dict"),
        (pd.DataFrame({"x": [b"a", b"b"], "y": [0, 1]}), "'x' is of type bytes"),
        (pd.DataFrame({"x": [1j, 2j], "y": [0, 1]}), "'x' is of type complex128"),
        (pd.DataFrame({"x": [1, 2], "y": pd.to_datetime(["2020", "2021"])}), "'y' is of type datetime64"),
        (pd.DataFrame({"x": [1, 2], "y": [[1], [2]]}), "'y' is of type list"),
    ],
)
def test_invalid_frame_raises_one_line(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        table_from_frame(frame, name="toy", target="y")
    assert str(caught.value).startswith("dataset 'toy'")
    assert "\n" not in str(caught.value)


def test_damaged_parquet_files_are_refused_with_path(tmp_path: Path, people: pd.DataFrame) -> None:
    good = tmp_path / "good.parquet"
    people.set_index(people["age"] + 7).to_parquet(good)
    assert [*read_parquet(good).columns] == [*people.columns], "the index is no feature"
    columns = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4]), pa.array([0, 1])], names=["x", "x", "y"])
    pq.write_table(columns, tmp_path / "twice.parquet")
    with pytest.raises(DataError, match="two columns called 'x'"):
        read_parquet(tmp_path / "twice.parquet")
    cut = good.read_bytes()
    contents = {
        "truncated": cut[: len(cut) // 2],
        "headless": cut[len(cut) // 2 :],
        "damaged inside": cut[:4] + bytes(396) + cut[400:],
        "empty": b"",
        "foreign": b"age,rich\n1,yes\n" * 20,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    for name in (*contents, "folder", "absent"):
        with pytest.raises(DataError, match="cannot be read as parquet") as caught:
            read_parquet(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
        assert "\n" not in str(caught.value)


ROWS = 400
DAYS = ["mon", "tue", "wed"]


def rows() -> DataFrame:
    """Two features, a key of text and one of numbers, each with a gap."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=ROWS), "sex": rng.choice(["f", "m"], ROWS)})
    frame["day"] = [None, *rng.choice(DAYS, ROWS - 1)]
    frame["shop"] = [np.nan, *rng.integers(0, 4, ROWS - 1)]
    return frame.assign(bought=rng.integers(0, 2, ROWS))


def table(frame: DataFrame, *key_only: str) -> Table:
    return table_from_frame(frame, name="shop", target="bought", key_only=key_only)


def test_key_only_column_makes_bags_and_is_no_feature() -> None:
    frame = rows()
    made = table(frame, "day", "shop")
    assert (made.numeric_names, made.categorical_names) == (("age",), ("sex",))
    everything = np.arange(ROWS)
    assert column_keys(made, everything, "day").tolist() == [3, *map(DAYS.index, frame["day"][1:])]
    np.testing.assert_array_equal(column_keys(made, everything, "shop"), frame["shop"])
    assignment = assign_bags(made, "column:by=day+shop", None, seed=0)
    for bag in assignment.train:
        inside = frame.iloc[bag[bag >= 0]]
        assert len(inside[["day", "shop"]].drop_duplicates()) == 1


@pytest.mark.parametrize("kind", ["int64", "uint64", "Int64"])
def test_identifiers_too_large_for_floats_make_bags(kind: str) -> None:
    ids = pd.Series([2**60 + 3, 2**60 + 1, 2**60 + 2] * (ROWS // 3) + [7] * (ROWS % 3), dtype=kind)
    keys = column_keys(table(rows().assign(shop=ids), "shop"), np.arange(ROWS), "shop")
    assert (np.argsort(keys, kind="stable") == ids.argsort(kind="stable")).all()
    assert len(np.unique(keys)) == ids.nunique()


def test_values_of_key_only_column_do_not_change_task() -> None:
    frame = rows()
    shuffled = frame.assign(day=frame["day"].sample(frac=1, random_state=1).to_numpy())
    tables = (table(each, "day", "shop") for each in (frame, shuffled))
    first, second = (build_task(each, assign_bags(each, "ordered", 16, seed=0)) for each in tables)
    assert (first.schema.numeric, len(first.schema.cardinalities)) == (1, 1)
    assert first.manifest == second.manifest
    np.testing.assert_array_equal(first.train.rows.numeric, second.train.rows.numeric)
    np.testing.assert_array_equal(first.train.rows.categorical, second.train.rows.categorical)
    assert first.fingerprint != second.fingerprint  # bags by day differ, so these are not the same data


def test_invalid_key_columns_are_refused() -> None:
    with pytest.raises(DataError, match="no key column 'week'"):
        table(rows(), "week")
    with pytest.raises(DataError, match="no features, only its target"):
        table(rows()[["day", "bought"]], "day")
    with pytest.raises(LLPBenchError, match=r"no column 'week'.*It has: day, sex, age"):
        column_keys(table(rows().drop(columns="shop"), "day"), np.arange(3), "week")

    @register_dataset("both", bags=object(), by=("day",), key_only=("day",))
    def both(frame: DataFrame) -> DataFrame:
        """Both."""
        return frame

    with pytest.raises(LLPBenchError, match="declares 'bags' and 'key_only'"):
        dataset_spec("both")


SMALL = replace(synthetic.B, rows=6_000)


def voters() -> pd.DataFrame:
    return pd.DataFrame({"district": [2, 1, 1, 3, 2, 3], "year": ["a", "a", "a", "b", "a", "b"], "age": range(6)})


def bags() -> pd.DataFrame:
    return pd.DataFrame({"no": [1, None, 1], "district": ["1", "3", "2"], "year": ["a", "b", "a"], "yes": [1, None, 1]})


def made(frame: pd.DataFrame, table: pd.DataFrame, noise: float = 0.0) -> Table:
    return table_from_bags(frame, table, name="votes", by=("district", "year"), noise=noise)


def test_rows_and_bags_are_matched_by_keys() -> None:
    table = made(voters(), bags())
    assert (table.labels, table.classes) == (None, ("no", "yes"))
    assert (table.numeric_names, table.categorical_names) == (("age",), ())
    assert table.published is not None
    assert table.published.of_row.tolist() == [1, 0, 0, 2, 1, 2]
    np.testing.assert_array_equal(table.published.counts, [[1, 1], [1, 1], [np.nan, np.nan]])
    assert table.fingerprint != made(voters(), bags().replace({"1": "2", "2": "1"}).fillna(0), noise=1.0).fingerprint
    frame, counts = voters().rename(columns={"district": 0, "age": 1}), bags().rename(columns={"district": 0})
    assert table_from_bags(frame, counts, name="votes", by=("0", "year"), noise=0.0).numeric_names == ("1",)


@pytest.mark.parametrize(
    ("frame", "table", "told"),
    [
        (voters().drop(columns="year"), bags(), "dataset 'votes' has no column 'year'. It has: district, age."),
        (voters(), bags().drop(columns="district"), "the bags of dataset 'votes' has no column 'district'"),
        (voters(), bags().iloc[:2], r"1 of 3 bags .* no counts.* NaN\.$"),
        (voters().iloc[:3], bags(), r"1 of 3 bags .* no rows\..*\.$"),
        (voters(), bags().assign(yes=5), r"2 rows, but its counts \(1, 5\) add up to 6"),
        (voters(), bags().assign(yes="many"), "counts must be numbers"),
        (voters(), bags().assign(yes="<5"), "counts as ranges"),
        (voters(), bags().drop(columns="yes"), "counts of one class"),
        (voters().assign(age=np.inf), bags(), "infinite"),
    ],
)
def test_mismatching_table_of_bags_raises_one_line(frame: pd.DataFrame, table: pd.DataFrame, told: str) -> None:
    with pytest.raises(LLPBenchError, match=told) as error:
        made(frame, table)
    assert "\n" not in str(error.value)


def small() -> Table:
    frame, table = synthetic._tables(SMALL)
    return table_from_bags(frame, table, name="small", by=("bag",), noise=0.0)


def test_tasks_have_the_published_counts_and_no_label() -> None:
    """Against the labels that the generator keeps to itself."""
    table, drawn = small(), synthetic._draw(SMALL)
    assignment = assign_bags(table, "given", None, seed=1)
    task = build_task(table, assignment)
    assert task.train_labels is None
    assert task.test.labels is None
    for bagged, found in ((assignment.train, task.train), (assignment.test, task.test)):
        expected = [np.bincount(drawn.labels[bag[bag >= 0]], minlength=3) for bag in bagged]
        np.testing.assert_array_equal(found.counts, expected)
        assert (found.sizes >= synthetic.LEAST).all()
    assert table.published is not None
    train, validation = (
        {*table.published.of_row[part[part >= 0]]} for part in (assignment.train, assignment.validation)
    )
    assert not train & validation
    with pytest.raises(LLPBenchError, match="no labels of rows"):
        build_task(table, assignment, supervision="instances")


@pytest.mark.parametrize("bagging", ["random", "kmeans:clusters=5", "given:most=300"])
def test_other_baggings_of_published_counts_are_refused(bagging: str) -> None:
    size = 64 if bagging == "random" else None
    with pytest.raises(LLPBenchError, match=r"no labels of rows|published counts"):
        assign_bags(small(), bagging, size, seed=0)


LABELLED = {spec.name: spec for spec in map(dataset_spec, DATASETS.names()) if spec.bags is None}
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
    assert bool(spec.code) == (name in suite_datasets("paper"))
    assert spec.summary.endswith("?")
    assert spec.reference
    assert spec.licence != "not stated"


def test_facts_cover_the_built_in_datasets_in_order() -> None:
    built_in = [
        spec.name
        for spec in map(dataset_spec, DATASETS.names())
        if spec.prepare.__module__.startswith("llpbench.datasets.")
    ]
    assert list(built_in_facts()) == sorted(built_in)


@pytest.mark.parametrize("name", sorted({*LABELLED} - {"road_safety"}))
def test_table_has_declared_sha256_and_facts(request: pytest.FixtureRequest, name: str) -> None:
    folder = None if locate(dataset_spec(name)) else request.getfixturevalue("shared")
    table = load_table(name, folder)
    assert table.fingerprint == dataset_spec(name).sha256
    assert Facts.of(table) == built_in_facts()[name], "run python docs/generate.py"


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
    kept = {spec.name for spec in map(dataset_spec, DATASETS.names()) if not spec.redistributable}
    assert {"california", "credit", "credit_raw", "heloc", "movielens_1m"} <= kept
    assert len(kept) == 15


@pytest.mark.parametrize("name", [*LOCAL, *CHANGED])
def test_prepared_data_stay_unchanged_when_prepared_again(request: pytest.FixtureRequest, name: str) -> None:
    spec = dataset_spec(name)
    location = locate(spec)
    path = location.path if location else request.getfixturevalue("shared") / f"{name}.parquet"
    once = spec.frame(read_parquet(path), "here")
    pd.testing.assert_frame_equal(spec.frame(once, "here"), once)


def test_only_copy_of_source_may_have_other_values(tmp_path: Path) -> None:
    def put(name: str, frame: pd.DataFrame) -> None:
        frame.to_parquet(tmp_path / f"{name}.parquet")

    put("adult", read_parquet(EMBEDDED / "adult.parquet").iloc[::-1])
    with pytest.raises(DataError, match=r"other values or another order of rows, sha256 \w{64} instead"):
        load_table("adult", tmp_path)
    frame = read_parquet(EMBEDDED / "bank_marketing.parquet")
    put("bank_marketing", frame.iloc[::-1])
    assert load_table("bank_marketing", tmp_path).fingerprint != dataset_spec("bank_marketing").sha256
    put("bank_marketing", frame.iloc[1:])
    with pytest.raises(DataError, match="another table: rows 45210 instead of 45211, classes"):
        load_table("bank_marketing", tmp_path)


def test_fetch_prints_sha256_to_declare(tmp_path: Path, llpbench: LLPBench) -> None:
    read_parquet(EMBEDDED / "nursery.parquet").to_parquet(tmp_path / "clicks.parquet")
    plugin = tmp_path / "clicks.py"
    plugin.write_text(
        "from llpbench import Parquet, register_dataset\n"
        "@register_dataset('clicks', source=Parquet('clicks.parquet'), target='class')\n"
        "def clicks(frame):\n"
        "    return frame[frame['class'] != 'recommend']\n"
    )
    told = llpbench("data", "fetch", "adult,clicks", "--plugin", str(plugin))
    assert told.code == 0
    same = dataset_spec("nursery").sha256
    assert told.out.splitlines()[-1] == f'clicks: file, {tmp_path / "clicks.parquet"}, sha256="{same}"'


def test_suites_follow_from_files_and_declarations() -> None:
    facts = built_in_facts()
    located = {name: locate(spec) for name, spec in LABELLED.items() if 5_000 <= facts[name].rows <= 150_000}
    embedded = {name for name, place in located.items() if place is not None and place.path.parent == EMBEDDED}
    assert set(suite_datasets("embedded")) == embedded
    assert len(embedded) >= 30
    core = """adult ai4i2020 bank_marketing bike_sharing covid_testing default_credit eeg_eye_state htru2 kc_house
        lending_club magic nass_cds online_shoppers oulad polish_bankruptcy telco_churn wine_quality diabetes130
        flights_2013_sample hotel_bookings"""
    assert suite_datasets("core") == tuple(core.split())  # published boards: a new dataset must not change them
    rare = "ai4i2020 covid_testing credit_raw lending_club mammography nass_cds polish_bankruptcy vehicle_fraud"
    assert suite_datasets("rare") == tuple(rare.split())
    assert {"fars", "letter"} == set(suite_datasets("multiclass")) & {"adult", "fars", "letter"}
    assert {"compas", "fars"} == set(suite_datasets("natural")) & {"adult", "compas", "fars", "letter"}


def test_pattern_selects_suites_names_and_globs_once_each() -> None:
    rare = suite_datasets("rare")
    assert select_datasets("adult, suite:rare,ai4i2020,AD,letter") == ["adult", *rare, "letter"]
    assert select_datasets("suite:rare,syn*") == [*rare, "synthetic_a", "synthetic_b"]
    assert set(suite_datasets("core")) < set(select_datasets("all"))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("suite:cor", "unknown suite 'cor'. Did you mean core"),
        ("adult,suite:", "unknown suite ''"),
        ("suites:core", "unknown dataset 'suites:core'"),
        ("suite:odd", "suite 'odd' .* unknown dataset 'adlut'. Did you mean adult"),
        ("suite:empty", "suite 'empty' .* must return names of datasets"),
        ("suite:text", "suite 'text' .* must return names of datasets"),
    ],
)
def test_invalid_suite_pattern_is_refused(pattern: str, message: str) -> None:
    register_suite("odd")(lambda: ("adult", "adlut"))
    register_suite("empty")(lambda: ())
    register_suite("text")(lambda: "adult")
    with pytest.raises(LLPBenchError, match=message):
        select_datasets(pattern)


def test_suite_of_plugin_is_selected_and_listed(tmp_path: Path, llpbench: LLPBench) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from llpbench import register_suite\n"
        "@register_suite('mine')\n"
        "def mine():\n"
        '    """My two."""\n'
        "    return 'letter', 'cces_2016', 'letter'\n"
    )
    load_plugin(plugin)
    assert select_datasets("suite:mine") == ["letter", "cces_2016"]
    listed = llpbench("list", "suites")
    assert re.search(r"^mine +2 datasets\n +My two\.$", listed.out, re.MULTILINE)
