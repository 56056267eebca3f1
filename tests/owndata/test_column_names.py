"""Names of columns, as people write them."""

from __future__ import annotations

import pytest

from llpbench.core.errors import LLPBenchError
from llpbench.owndata.column_names import matching_column, nearest_columns, split_names

VOTES = ["district", "Doe, Jane", "Roe, Richard", "other"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["Doe, Jane,Roe, Richard"], VOTES[1:3]),
        (["Doe, Jane", "Roe, Richard"], VOTES[1:3]),
        (['"Doe, Jane","Roe, Richard",other'], VOTES[1:]),
        (["other, Doe, Jane"], ["other", "Doe, Jane"]),
        (["other,nobody"], ["other", "nobody"]),
        ([], []),
    ],
)
def test_columns_with_commas_can_be_named(given: list[str], found: list[str]) -> None:
    assert split_names(given, VOTES) == found


def test_a_plus_sign_may_be_part_of_a_name() -> None:
    assert split_names(["state+county+day"], ["state+county", "day"], "+") == ["state+county", "day"]
    assert split_names(["state+county"], ["state", "county"], "+") == ["state", "county"]


def test_what_can_be_split_in_two_ways_is_refused_and_quotes_help() -> None:
    known = ["a", "b", "a,b"]
    with pytest.raises(LLPBenchError, match="could name the columns"):
        split_names(["a,b"], known)
    assert split_names(['"a,b"'], known) == ["a,b"]
    assert split_names(["a", "b"], known) == ["a", "b"]


def test_outer_spaces_and_forms_of_unicode_do_not_count() -> None:
    assert matching_column("district", [" district", "no "]) == " district"
    assert matching_column(" no", ["no "]) == "no "
    assert matching_column("Z\u00fcrich", ["Zu\u0308rich"]) == "Zu\u0308rich"
    assert matching_column("no", ["no", "no "]) == "no"
    assert matching_column("nobody", ["no"]) is None
    with pytest.raises(LLPBenchError, match=r"' no' must name one column, got 2: 'no', 'no '"):
        matching_column(" no", ["no", "no "])


def test_hints_never_repeat_what_was_refused() -> None:
    assert nearest_columns("distrikt", ["district"]) == "Did you mean district? "
    assert nearest_columns("district ", ["district"]) == ""
    assert nearest_columns("branch", ["balance", "age"]) == ""
