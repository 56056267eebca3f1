"""Bags of people by district, of whose votes a learner is told the counts alone; files of them, and fitted models.

For the tests of data also a small table of people, datasets declared for one test, and a cache that starts empty.

A pytest plugin, named in `conftest.py`.
"""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import llpbench
from llpbench.core.errors import LLPBenchWarning
from llpbench.core.registry import register_dataset
from llpbench.core.tables import Table
from llpbench.data import loading
from llpbench.data.frames import table_from_frame

PACKAGE = Path(llpbench.__file__).parent
SHARED = Path(__file__).parents[2] / "shared" / "data"


def people(rows: int = 600, bags: int = 40, seed: int = 0, classes: int = 2) -> tuple[pd.DataFrame, Any, Any]:
    """Features of every kind, with gaps; a district each; and what they voted, which no learner is told."""
    rng = np.random.default_rng(seed)
    district = rng.integers(0, bags, rows)
    age = rng.normal(50 + 0.8 * (district - bags / 2), 12)
    owns = rng.random(rows) < 0.5
    votes = np.digitize((age - 50) / 12 + 1.0 * owns + rng.logistic(0, 0.4, rows), [0.4, 1.4][: classes - 1])
    frame = pd.DataFrame({"age": np.where(rng.random(rows) < 0.05, np.nan, age), "owns": owns})
    frame["town"] = pd.Categorical(np.where(votes > 0, "A", "B")).set_categories(["A", "B", "unused"])
    frame["job"] = pd.Series(rng.choice(["x", "y"], rows), dtype=object).mask(rng.random(rows) < 0.1)
    frame.loc[rng.random(rows) < 0.4, "town"] = None
    return frame, np.array([f"d{number:02}" for number in district]), votes


def counted(bags: Any, votes: Any) -> pd.DataFrame:
    """The published counts: a frame by bag, with a column for each class."""
    return pd.crosstab(bags, votes)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows and bags as CSV and parquet, rows with zones, models of these rows by three methods, and one of an array."""
    tmp_path = tmp_path_factory.mktemp("own")
    features, bags, votes = people(300, 12)
    rows = features.assign(district=[int(bag[1:]) for bag in bags], id=np.arange(300))
    counts = counted(rows["district"], np.array(["no", "yes"])[votes])
    table = counts.reset_index()
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.set_index("id").to_parquet(tmp_path / "rows.parquet")
    table.to_csv(tmp_path / "bags.csv", index=False)
    table.to_parquet(tmp_path / "bags.parquet")
    rows.assign(zone=["z1", "z2", "z3"] * 100).to_csv(tmp_path / "zones.csv", index=False)
    features = pd.read_csv(tmp_path / "rows.csv")[[*features]]
    for name, method, params in (
        ("fitted", "count-gbdt", {"trees": 100}),
        ("process", "bag-gp", {"most_pairs": 0, "draws": 0}),
        ("linear", "bag-mean-linear", None),
    ):
        model = llpbench.LLPClassifier(method, params=params)
        model.fit(features, rows["district"].astype(str), counts=counts.set_axis(counts.index.astype(str)))
        model.save(tmp_path / name)
    model.fit([[0.0], [1.0]], [0, 1], counts=[0, 1]).save(tmp_path / "of-an-array")
    return tmp_path


@pytest.fixture
def folder(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with copies of these files."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rewritten(name: str | Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """Change a table in its file, and return the table."""
    table = change(pd.read_csv(name))
    table.to_csv(name, index=False)
    return table


def reloaded(model: llpbench.LLPClassifier, folder: Path) -> llpbench.LLPClassifier:
    """Return a model after saving and loading."""
    model.save(folder)
    return llpbench.LLPClassifier.load(folder)


@contextmanager
def warned(about: str, match: str = "", times: int | None = None) -> Iterator[list[str]]:
    """Require a warning of a kind, and yield the messages of this kind."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    messages = [each.message for each in caught]
    assert not [each for each in caught if each.filename.startswith(str(PACKAGE))], "warnings are of the user's line"
    found += [str(each) for each in messages if isinstance(each, LLPBenchWarning) and each.about == about]
    assert any(re.search(match, each) for each in found), f"no warning about {about}, but {[*map(str, messages)]}"
    assert times in (None, len(found))


@contextmanager
def silent(about: str = "") -> Iterator[None]:
    """Fail for a warning of a kind (default: of any)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert [str(each.message) for each in caught if not about or getattr(each.message, "about", "") == about] == []


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is at hand but the embedded one, neither in the user's cache nor in memory."""
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LLPBENCH_DATA", raising=False)
    monkeypatch.setattr(loading, "_tables", {})


@pytest.fixture
def shared() -> Path:
    """The folder of real data beside the repository; the test is skipped where there is none."""
    if not SHARED.is_dir():
        pytest.skip("no real data beside the repository")
    return SHARED


@pytest.fixture(name="people")
def small_table_of_people() -> pd.DataFrame:
    """60 rows: two numeric and two categorical features with gaps, and a target that is yes in 20 of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"job": rng.choice(["clerk", "baker", "smith"], 60)})
    frame["age"] = rng.integers(20, 60, 60).astype(float)
    frame["town"] = rng.choice(["Ulm", "Bonn"], 60)
    frame["wage"] = rng.normal(1000.0, 300.0, 60).round(2)
    frame["rich"] = ["no", "no", "yes"] * 20
    frame.loc[[3, 50], "job"] = None
    frame.loc[[7, 30, 31], "wage"] = None
    return frame


@pytest.fixture
def table(people: pd.DataFrame) -> Table:
    return table_from_frame(people, name="people", target="rich", positive="yes")


@pytest.fixture
def declare() -> Callable[..., Any]:
    """Register a dataset for this test: `declare(name, target="rich", ...)`."""
    return lambda name, prepare=lambda frame: frame, **facts: register_dataset(name, **facts)(prepare)
