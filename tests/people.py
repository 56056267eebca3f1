"""What the tests of data share: a small table of people, datasets declared for one test, a cache that starts empty.

A pytest plugin, named in `conftest.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from llpbench.core.registry import register_dataset
from llpbench.core.tables import Table
from llpbench.data import loading
from llpbench.data.frames import table_from_frame

SHARED = Path(__file__).parents[2] / "shared" / "data"


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


@pytest.fixture
def people() -> pd.DataFrame:
    """60 rows: two numeric and two categorical features with gaps, and a target that is yes in 20 of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "job": rng.choice(["clerk", "baker", "smith"], 60),
            "age": rng.integers(20, 60, 60).astype(float),
            "town": rng.choice(["Ulm", "Bonn"], 60),
            "wage": rng.normal(1000.0, 300.0, 60).round(2),
            "rich": ["no", "no", "yes"] * 20,
        }
    )
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
