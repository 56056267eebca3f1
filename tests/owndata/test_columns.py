"""Columns: their names, those that name the bags, and numbers written as text."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import silent, warned

from llpbench import LLPClassifier, as_numbers, choose
from llpbench.core.errors import DataError, LLPBenchError
from llpbench.tables.column_names import matching_column, split_names
from llpbench.tables.number_text import NumberText, numbers_as_text_warning, require_no_texts_among_numbers

COLUMNS = ["district", "Doe, Jane", "Roe, Richard", "other"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["Doe, Jane,Roe, Richard"], COLUMNS[1:3]),
        (["Doe, Jane", "Roe, Richard"], COLUMNS[1:3]),
        (['"Doe, Jane","Roe, Richard",other'], COLUMNS[1:]),
        (["other, Doe, Jane"], ["other", "Doe, Jane"]),
        (["other,nobody"], ["other", "nobody"]),
        ([], []),
    ],
)
def test_column_names_may_have_commas(given: list[str], found: list[str]) -> None:
    assert split_names(given, COLUMNS) == found


def test_ambiguous_column_list_is_refused() -> None:
    known = ["a", "b", "a,b"]
    with pytest.raises(LLPBenchError, match="could name the columns"):
        split_names(["a,b"], known)
    assert split_names(['"a,b"'], known) == ["a,b"]
    assert split_names(["a", "b"], known) == ["a", "b"]


def test_names_match_without_spaces_and_unicode_forms() -> None:
    assert matching_column("district", [" district", "no "]) == " district"
    assert matching_column(" no", ["no "]) == "no "
    assert matching_column("Z\u00fcrich", ["Zu\u0308rich"]) == "Zu\u0308rich"
    assert matching_column("no", ["no", "no "]) == "no"
    assert matching_column("nobody", ["no"]) is None
    with pytest.raises(LLPBenchError, match=r"' no' must name one column, got 2: 'no', 'no '"):
        matching_column(" no", ["no", "no "])


ROWS, BAGS = 600, 20
RNG = np.random.default_rng(0)
OF_ROW = RNG.permutation(ROWS) % BAGS
VOTES = (RNG.random(ROWS) < 0.2 + 0.03 * OF_ROW).astype(int)
YES = np.bincount(OF_ROW, VOTES, BAGS)
SIZE = np.bincount(OF_ROW, minlength=BAGS)
INCOME = RNG.normal(size=BAGS).round(3)


def fit(column: Any, **given: Any) -> LLPClassifier:
    rows = pd.DataFrame({"age": np.random.default_rng(1).normal(size=ROWS), "found": column})
    counts = pd.DataFrame({"no": SIZE - YES, "yes": YES})
    return LLPClassifier("bag-share").fit(rows, OF_ROW, **{"counts": counts} | given)


@pytest.mark.parametrize(
    ("column", "what"),
    [
        ([f"district {bag}" for bag in OF_ROW], "different values"),
        ([f"day {max(bag, 1)}" for bag in OF_ROW], "different values"),
        (100 + OF_ROW, "different values"),
        (20240101 + OF_ROW + 90 * (OF_ROW > 9), "different values"),
        (YES[OF_ROW], "counts or shares"),
        ((SIZE - YES)[OF_ROW], "counts or shares"),
        ((YES / SIZE)[OF_ROW].round(2), "counts or shares"),
        ((100 * YES / SIZE)[OF_ROW].round(1), "counts or shares"),
    ],
)
def test_column_of_bags_is_named_in_error(column: Any, what: str) -> None:
    with warned("bag column", match=f"{what}.*'found'.*drop"):
        fit(column)


@pytest.mark.parametrize(
    "column",
    [
        INCOME[OF_ROW],
        SIZE[OF_ROW],
        1000 + OF_ROW**2,
        [f"county {bag // 2}" for bag in OF_ROW],
        [f"district {(row == 0) + bag}" for row, bag in enumerate(OF_ROW)],
    ],
)
def test_bag_column_may_be_feature(column: Any) -> None:
    with silent("bag column"):
        fit(column)


def test_kept_key_raises_no_warning() -> None:
    named = pd.Series([f"district {bag}" for bag in OF_ROW], name="found")
    counts = pd.Series(YES, index=[f"district {bag}" for bag in range(BAGS)])
    with silent("bag column"):
        rows = pd.DataFrame({"age": np.arange(ROWS) % 7, "found": named})
        assert LLPClassifier("bag-share").fit(rows, named, counts=counts, keep_key=True).n_features_in_ == 2


NAN = float("nan")


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["41,132", "1,000", "5"], [41132, 1000, 5]),
        (["$41,132", "-$5", "($1,234.50)"], [41132, -5, -1234.5]),
        (["1,23,456", "10,000", "7"], [123456, 10000, 7]),
        (["41.1%", "3 %", None], [41.1, 3, NAN]),
        (["\u22125", "\u2013", "7"], [-5, NAN, 7]),
        (["5-", "1e5", "+3"], [-5, 1e5, 3]),
        (["(1,234)", "(5)", "."], [-1234, -5, NAN]),
        (["41,5", "1.234,5", "3"], [41.5, 1234.5, 3]),
        (["1.234.567", "12.000", "3"], [1234567, 12000, 3]),
        (["0,125", "1,250", "0"], [0.125, 1.25, 0]),
        (["41 132", "41\u00a0132", "41'132"], [41132, 41132, 41132]),
        (["\u20ac 5", "5 \u20ac", "EUR 5"], [5, 5, 5]),
        (["1.5", "1,234", "*"], [1.5, 1234, NAN]),
        (["N/A", "12", "#N/A"], [NAN, 12, NAN]),
        (["1_200", "~2"], [1200, 2]),
    ],
)
def test_number_spellings_are_parsed(texts: list[str | None], numbers: list[float]) -> None:
    assert np.array_equal(as_numbers(pd.Series(texts)), numbers, equal_nan=True)


def test_decimal_mark_and_missing_marks_can_be_given() -> None:
    texts = pd.Series(["1.234", "12", "1,000+"], index=[7, 8, 9], name="income")
    found = as_numbers(texts, decimal=",", missing=["1,000+"])
    assert found.to_dict() == pytest.approx({7: 1234.0, 8: 12.0, 9: NAN}, nan_ok=True)
    assert as_numbers(texts[:2]).tolist() == [1.234, 12]
    with pytest.raises(DataError, match=r"column 'income' must be numbers, got '1,000\+'"):
        as_numbers(texts)


def test_percents_and_numbers_are_not_mixed() -> None:
    found = NumberText.read(pd.Series(["41%", "3%", "0.03"]))
    assert (found.percent, found.broken.tolist()) == (True, ["0.03"])


@pytest.mark.parametrize("text", ["12 kg", "10-20", "2020-01-01", "inf", "1,2,3", "12,34.5", "1.2.3", "0x10", "$", "%"])
def test_invalid_numbers_are_missing(text: str) -> None:
    assert NumberText.read(pd.Series(["1", "2", text])).broken.tolist() == [text]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([f"{place} kg" for place in range(100)], "'0 kg'"),
        ([f">= {place}" if place % 12 == 0 else f"{place}" for place in range(100)], "'>= 0' and '>= 12' and 7 other"),
        (["refused" if place % 3 == 0 else f"{place}" for place in range(100)], "--missing refused"),
        (["<30" if place < 30 else f"{place}" for place in range(100)], "--missing '<30'"),
        ([f"D{place}" for place in range(100)], ""),
        ([f"0{place % 50}" for place in range(100)], ""),
        (pd.Categorical(["1,000", "2", "3", "4"] * 25), ""),
        ([f"{place}{'ABCDEF'[place % 6]}" for place in range(100)], ""),
        ([f"{place}-{place + 9}" for place in range(100)], ""),
        (["1", "2", "3", "K", "PK"] * 20, ""),
    ],
)
def test_mostly_numeric_columns_are_named(texts: Any, told: str) -> None:
    found = numbers_as_text_warning(pd.DataFrame({"a": texts, "b": [f"{place + 1000:,}" for place in range(100)]}))
    assert told in found
    assert ("column 'a'" in found) == bool(told)
    alone = numbers_as_text_warning(pd.DataFrame({"a": texts}))
    assert (told in alone) if told else alone == ""


def written(numbers: int, *texts: str) -> pd.DataFrame:
    """A column of different numbers, with texts from the eighth row on."""
    column = [str(1000 + 7 * place) for place in range(numbers)]
    return pd.DataFrame({"balance": [*column[:7], *texts, *column[7:]]}, index=range(100, 100 + numbers + len(texts)))


@pytest.mark.parametrize(
    ("numbers", "texts", "error"),
    [
        (199, ["abc"], True),
        (198, ["abc", "abc"], False),  # 99 %
        (198, ["abc"], False),  # 199 values
        (299, ["-"], True),
        (300, [], False),
        (990, list("abefghij"), True),
    ],
)
def test_few_texts_are_less_than_one_in_a_hundred_of_many_values(numbers: int, texts: list[str], error: bool) -> None:
    with pytest.raises(DataError) if error else contextlib.nullcontext():
        require_no_texts_among_numbers(written(numbers, *texts))


def test_folds_do_not_repeat_checks() -> None:
    """98.5 % of all values are numbers, but more than 99 % in folds without the first bag."""
    frame = written(400)
    frame.iloc[[0, 1, 2, 3, 20, 100], 0] = "abc"
    bag = np.arange(400) // 20
    counts = {number: 5 + number % 7 for number in range(20)}
    methods = ["bag-mean-linear", "bag-soft-label-linear"]
    with warned("numbers as text"):
        choice = choose(frame, bag, counts=counts, methods=methods, folds=4, repeats=1, progress=False)
    assert not choice.board["failure"].any()
    with pytest.raises(DataError, match="'abc'"):
        choose(written(399, "abc"), bag, counts=counts, methods=methods, progress=False)
