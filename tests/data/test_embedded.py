"""The datasets that the package holds: whole, the files that they are said to be, and passed on by right."""

from __future__ import annotations

import re

import numpy as np
import pytest

from llpbench.core.errors import DataError
from llpbench.core.tables import Table
from llpbench.data.baggings import column_keys, grouped
from llpbench.data.catalogue import verify
from llpbench.data.frames import read_parquet
from llpbench.data.loading import EMBEDDED, load_table
from llpbench.data.specs import DatasetSpec, dataset_spec
from llpbench.data.splits import PARTS, assign_bags
from llpbench.data.tasks import build_task

pytestmark = pytest.mark.usefixtures("empty_cache")

SHIPPED = sorted(path.stem for path in EMBEDDED.glob("*.parquet"))
ATTRIBUTION = (EMBEDDED / "ATTRIBUTION.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def flights() -> Table:
    """Read once: it is large, and read-only."""
    spec = dataset_spec("flights_2013")
    return spec.table(read_parquet(EMBEDDED / "flights_2013.parquet"), "here")


def missing(table: Table) -> dict[str, int]:
    """Number of missing values of each column that has any."""
    numeric, categorical = np.isnan(table.numeric).sum(axis=0), (table.categorical < 0).sum(axis=0)
    names = (*table.numeric_names, *table.categorical_names)
    return {name: int(count) for name, count in zip(names, [*numeric, *categorical], strict=True) if count}


def test_what_is_shipped_is_small_and_nothing_else() -> None:
    files = list(EMBEDDED.iterdir())
    assert {path.name for path in files if path.suffix != ".parquet"} == {"ATTRIBUTION.md"}
    assert sum(path.stat().st_size for path in files) < 14_000_000
    assert len(SHIPPED) == 31


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_is_what_it_declares_and_may_be_passed_on(name: str) -> None:
    spec = dataset_spec(name)
    findings = verify(name)
    assert findings.problem == ""  # rows, features and rows of each class are as declared
    assert findings.found == "embedded"
    assert None not in (spec.rows, spec.numeric, spec.categorical)
    assert spec.columns
    assert spec.balance
    assert spec.redistributable
    _, _, own = ATTRIBUTION.partition(f"\n# {name}.parquet\n")
    own = own.partition("\n# ")[0]
    assert f"({spec.licence})" in own
    assert f"SHA-256: `{findings.sha256}`" in own
    assert spec.licence != "MIT" or "The above copyright notice and this permission notice shall be included" in own


def test_every_attribution_has_its_file() -> None:
    assert sorted(re.findall(r"^# (\w+)\.parquet$", ATTRIBUTION, flags=re.MULTILINE)) == SHIPPED


def test_every_class_of_diamonds_is_in_every_part_and_in_the_counts() -> None:
    table = load_table("diamonds", download=False)
    assignment = assign_bags(table, "ordered", 256, seed=0)
    for part in PARTS:
        shares = np.bincount(table.row_labels[getattr(assignment.split, part)], minlength=5) / len(table)
        np.testing.assert_allclose(shares / shares.sum(), np.bincount(table.row_labels) / len(table), atol=1e-3)
    task = build_task(table, assignment)
    assert task.schema.classes == 5
    assert task.train.counts.shape == (168, 5)
    assert (task.train.counts.sum(axis=1) == 256).all()


def test_flights(flights: Table) -> None:
    assert (len(flights), len(flights.numeric_names), len(flights.categorical_names)) == (327_346, 13, 5)
    assert flights.classes == ("on time", "late")
    assert flights.row_labels.sum() == 77_630
    assert flights.categorical_names == ("date", "weekday", "carrier", "origin", "dest")
    assert missing(flights) == {
        **dict.fromkeys(("temp", "dewp", "humid"), 1_544),
        "wind_dir": 9_574,
        "wind_speed": 1_605,
        "wind_gust": 249_912,
        "precip": 1_527,
        "pressure": 36_142,
        "visib": 1_527,
    }


def test_letters() -> None:
    table = load_table("letter", download=False)
    assert (len(table), len(table.numeric_names), len(table.categorical_names)) == (20_000, 16, 0)
    assert "".join(table.classes) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert (table.numeric.min(), table.numeric.max()) == (0, 15)
    assert missing(table) == {}
    # the first two rows of the file at UCI, a T and an I
    assert [table.classes[label] for label in table.row_labels[:2]] == ["T", "I"]
    assert table.numeric[0].tolist() == [2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8]


def test_flights_know_nothing_of_the_time_after_departure(flights: Table) -> None:
    afterwards = {"dep_time", "arr_time", "dep_delay", "arr_delay", "air_time"}
    assert not afterwards & {*flights.numeric_names, *flights.categorical_names}


@pytest.mark.parametrize(
    ("key", "number", "least", "most"), [("date", 365, 291, 998), ("carrier+dest", 312, 1, 10_452)]
)
def test_natural_bags_of_flights(flights: Table, key: str, number: int, least: int, most: int) -> None:
    assert key in dataset_spec("flights_2013").natural_keys
    rows = np.arange(len(flights))
    bags = grouped(rows, np.column_stack([column_keys(flights, rows, name) for name in key.split("+")]))
    sizes = (bags >= 0).sum(axis=1)
    assert (len(sizes), sizes.min(), sizes.max(), sizes.sum()) == (number, least, most, len(flights))

    assignment = assign_bags(flights, f"column:by={key}", None, seed=0)
    for part in PARTS:
        bags, rows = getattr(assignment, part), getattr(assignment.split, part)
        sizes = (bags >= 0).sum(axis=1)
        assert sizes.sum() == len(rows)  # every row is in a bag: none is a remainder
        assert len(sizes) <= number
        assert sizes.max() <= most
    assert (assignment.train >= 0).sum(axis=1).max() > 0.7 * most  # training rows are 80 % of all


def test_days_of_flights_differ_in_their_share_of_late_ones(flights: Table) -> None:
    rows = np.arange(len(flights))
    days = column_keys(flights, rows, "date")
    late = np.bincount(days, flights.labels) / np.bincount(days)
    assert (late.min().round(2), late.max().round(2)) == (0.04, 0.79)


def test_a_natural_key_that_is_no_feature_is_refused() -> None:
    spec = dataset_spec("diamonds")
    wrong = DatasetSpec(**{**vars(spec), "natural_keys": ("color+day",)})
    with pytest.raises(DataError, match=r"'diamonds' declares the natural key 'color.day', but has no column 'day'"):
        wrong.table(read_parquet(EMBEDDED / "diamonds.parquet"), "here")
