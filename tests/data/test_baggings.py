"""Baggings and the text that names them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import BAGGINGS, register_bagging
from llpbench.core.tables import Table
from llpbench.data.baggings import format_bagging, parse_bagging
from llpbench.data.frames import table_from_frame
from llpbench.data.splits import assign_bags

pytestmark = pytest.mark.usefixtures("empty_cache")


def bag(table: Table, name: str = "ordered", size: int = 1, seed: int = 0, **options: Any) -> Any:
    rng = np.random.default_rng(seed)
    return BAGGINGS.get(name)(table, np.arange(len(table)), size, rng, **options)


def test_ordered_sorts_raw_values_like_python(people: pd.DataFrame, table: Table) -> None:
    """Categorical columns first, then numeric ones, missing last: by Python's own sort of tuples."""
    found = bag(table)[:, 0]

    def key(row: int) -> list[tuple[bool, Any]]:
        values = people.loc[row, ["job", "town", "age", "wage"]]
        return [(bool(pd.isna(value)), "" if pd.isna(value) else value) for value in values]

    expected = sorted(range(len(people)), key=key)
    assert [key(row) for row in found] == [key(row) for row in expected]


def test_categories_are_sorted_by_string_and_numbers_by_size() -> None:
    frame = pd.DataFrame({"c": ["10", "9", "100", "1"], "n": [10, 9, 100, 1], "y": [0, 1, 0, 1]})
    table = table_from_frame(frame, name="toy", target="y")
    assert bag(table, columns=("c",))[:, 0].tolist() == [3, 0, 2, 1]
    assert bag(table, columns=("n",))[:, 0].tolist() == [3, 1, 0, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ordered", ("ordered", {})),
        (" random ", ("random", {})),
        ("ordered:columns=age+workclass", ("ordered", {"columns": ("age", "workclass")})),
        ("ordered: columns = education-num", ("ordered", {"columns": ("education-num",)})),
        ("column:rest=drop:by=a:least=1:split=rows", ("column", {"by": ("a",)})),
    ],
)
def test_parsed_bagging_omits_defaults_and_round_trips(text: str, expected: tuple[str, dict[str, Any]]) -> None:
    """Options at their defaults are left out."""
    assert parse_bagging(text) == expected
    assert parse_bagging(format_bagging(*expected)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("orderd", "unknown bagging 'orderd'. Did you mean ordered"),
        ("ordered:column=age", "'ordered' has no option 'column'.* It has: columns"),
        ("ordered:", "'ordered' has no option ''"),
        ("random:columns=age", "'random' has no option 'columns'.* It has none"),
        ("ordered:columns", "option 'columns' in 'ordered:columns' has no value"),
        ("ordered:columns=", "has no value"),
        ("ordered:columns=a:columns=b", "given twice"),
        ("kmeans:clusters=1", "'clusters' in 'kmeans:clusters=1' must be a finite number above 1, got 1."),
        ("dirichlet:alpha=0", "'alpha' in 'dirichlet:alpha=0' must be a finite number above 0, got 0.0."),
        ("dirichlet:alpha=inf", "must be a finite number above 0, got inf."),
        ("column:by=a:split=days", "'split'.*must be rows or bags, got 'days'"),
        ("column:by=a:rest=keep", "'rest'.*must be drop or pool"),
        ("column:by=a:least=0", "least=0 and most=any number"),
        ("column:by=a:least=9:most=5", "least=9 and most=5"),
        ("column:by=a:most=x", "of type int"),
        ("ordered:split=bags", "no option 'split'"),
    ],
)
def test_invalid_bagging_text_raises_one_line(text: str, message: str) -> None:
    with pytest.raises(LLPBenchError, match=message) as caught:
        parse_bagging(text)
    assert "\n" not in str(caught.value)


def test_options_take_the_type_of_their_default(table: Table) -> None:
    seen: dict[str, Any] = {}

    @register_bagging("optional")
    def optional(
        _table: Table,
        rows: Any,
        size: int,
        _rng: Any,
        *,
        k: int = 1,
        rate: float = 0.5,
        how: str = "a",
        fast: bool = False,
    ) -> Any:
        seen.update(k=k, rate=rate, how=how, fast=fast)
        return rows.reshape(-1, size)

    text = "optional:rate=2:k=3:how=b:fast=true"
    assign_bags(table, text, 2, 0)
    assert seen == {"k": 3, "rate": 2.0, "how": "b", "fast": True}
    name, options = parse_bagging(text)
    assert format_bagging(name, options) == "optional:fast=True:how=b:k=3:rate=2.0"
    assert parse_bagging(format_bagging(name, options)) == (name, options)
    for wrong, message in (
        ("k=x", "of type int, got 'x'"),
        ("rate=x", "of type float"),
        ("fast=no", "true or false"),
        ("rate=nan", "must be a finite number, got nan"),
    ):
        with pytest.raises(LLPBenchError, match=message):
            parse_bagging(f"optional:{wrong}")
