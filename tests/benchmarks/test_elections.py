"""Error of `cross_table` on New Zealand's elections, whose true cells are known."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.elections import District, districts, error
from llpbench import cross_table

ELECTIONS = Path(__file__).parents[3] / "shared" / "data" / "elections"


def test_new_zealand_districts_reach_stated_error() -> None:
    if not ELECTIONS.is_dir():
        pytest.skip("no elections beside the repository")
    errors = []
    for district in islice(districts(ELECTIONS), 0, 60, 6):
        assert isinstance(district, District)
        table = cross_table(
            pd.DataFrame(district.parties).add_prefix("p"), pd.DataFrame(district.candidates).add_prefix("c")
        )
        found = table.cells["count"].to_numpy().reshape(district.truth.shape)
        errors.append(error(found, district.truth))
    assert np.mean(errors) < 9.5  # 8.3 in these districts of 2002
