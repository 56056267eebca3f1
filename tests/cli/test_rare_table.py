"""The table of rare classes that `llpbench choose` shows."""

from __future__ import annotations

import pandas as pd

from llpbench.cli.choice_files import rare_table
from llpbench.owndata.choosing import MethodChoice


def test_rare_classes_have_a_table_of_their_own() -> None:
    bags = pd.DataFrame(
        {
            "method": "one",
            "place": [0, 1] * 2,
            "bag": ["a", "b"] * 2,
            "class": ["no", "no", "yes", "yes"],
            "rows": 50,
            "known": [0.98, 0.96, 0.02, 0.04],
            "predicted": [0.9, 0.9, 0.1, 0.1],
        }
    )
    found = MethodChoice(pd.DataFrame(), pd.DataFrame(), bags, "one", "one", "", None)
    table = rare_table(found)
    assert table is not None
    assert [field.lines[0] for field in table.rows[0][:4]] == ["one", "yes", "3", "10.0"]
    assert table.rows[0][-1].lines == ("–",)  # every bag has such a row
    even = MethodChoice(pd.DataFrame(), pd.DataFrame(), bags.assign(known=0.5), "one", "one", "", None)
    assert rare_table(even) is None
