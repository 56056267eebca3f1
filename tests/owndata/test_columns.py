"""Columns: their names, those that name the bags, numbers written as text, sentinels, and how numbers are scaled."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import refusal
from districts import silent, warned
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from llpbench import LLPClassifier, as_numbers, choose
from llpbench.core.bags import FloatArray
from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.numbers import NormalScores, _RobustScores
from llpbench.owndata.columns import FeatureColumns, _number_range, as_frame
from llpbench.tables.column_names import column_of, matching_column, split_names
from llpbench.tables.number_text import NumberText, numbers_as_text_warning

COLUMNS = ["district", "Doe, Jane", "Roe, Richard", "other"]


def test_column_names_may_have_commas_other_spaces_and_unicode_forms() -> None:
    for given in (COLUMNS[1:], ['"Doe, Jane","Roe, Richard",other']):
        assert split_names(given, COLUMNS) == COLUMNS[1:]
    for words in (["other", "district"], ["other", "nobody"], []):
        assert split_names([", ".join(words)] if words else [], COLUMNS) == words
    with refusal(re.escape("""Quote a name that contains a comma: '"Doe, Jane"'""")):
        column_of(pd.DataFrame(columns=COLUMNS), "Doe", Path("votes.csv"))
    for name, names in ("district", [" district", "x"]), (" no", ["no "]), ("Z\u00fcrich", ["Zu\u0308rich"]):
        assert matching_column(name, names) == names[0]
    assert [matching_column(name, ["no", "no "]) for name in ("no", "nobody")] == ["no", None]
    with refusal(r"' no' must name one column, got 'no', 'no '"):
        matching_column(" no", ["no", "no "])
    for given in (["a,b"], ["a", "b"]):
        assert split_names(given, ["a", "b", "a,b"]) == given


ROWS, RNG, PLACE = 1000, np.random.default_rng(0), np.arange(500)
OF_ROW = RNG.permutation(ROWS) % 20
YES = np.bincount(OF_ROW, RNG.random(ROWS) < 0.2 + 0.03 * OF_ROW)
SIZE, INCOME = np.bincount(OF_ROW), RNG.normal(size=20).round(3)
NAMES = np.array([f"district {bag:02}" for bag in OF_ROW], dtype=object)


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (NAMES, "different values"),
        ([f"day {max(bag, 1)}" for bag in OF_ROW], "different values"),
        (100 + OF_ROW, "different values"),
        (20240101 + OF_ROW + 90 * (OF_ROW > 9), "different values"),
        (YES[OF_ROW], "counts or shares"),
        ((SIZE - YES)[OF_ROW], "counts or shares"),
        ((YES / SIZE)[OF_ROW].round(2), "counts or shares"),
        ((100 * YES / SIZE)[OF_ROW].round(1), "counts or shares"),
        pytest.param(INCOME[OF_ROW], "", id="income of the bag"),
        pytest.param(SIZE[OF_ROW], "", id="size of the bag"),
        pytest.param(1000 + OF_ROW**2, "", id="squares"),
        pytest.param([f"county {bag // 2}" for bag in OF_ROW], "", id="pairs of bags"),
        pytest.param([f"district {(row == 0) + bag}" for row, bag in enumerate(OF_ROW)], "", id="a shared text"),
    ],
)
def test_column_that_names_bags_is_warned_of(column: Any, what: str) -> None:
    rows = pd.DataFrame({"age": np.random.default_rng(1).normal(size=ROWS), "found": column})
    counts = pd.DataFrame({"no": SIZE - YES, "yes": YES})
    with warned("bag column", match=f"{what}.*'found'.*drop") if what else silent("bag column"):
        LLPClassifier("bag-share").fit(rows, OF_ROW, counts=counts)
    rows, counts = rows.assign(found=NAMES), counts.set_axis(np.unique(NAMES))
    with silent("bag column"):  # a key that is kept
        assert LLPClassifier("bag-share").fit(rows, rows["found"], counts=counts, keep_key=True).n_features_in_ == 2


NAN = float("nan")


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        pytest.param(["41,132", "1,000", "5"], [41132, 1000, 5], id="thousands"),
        pytest.param(["$41,132", "-$5", "($1,234.50)"], [41132, -5, -1234.5], id="dollars"),
        pytest.param(["1,23,456", "10,000", "7"], [123456, 10000, 7], id="lakhs"),
        pytest.param(["41.1%", "3 %", None], [41.1, 3, NAN], id="percent"),
        pytest.param(["\u22125", "\u2013", "5-", "1e5", "+3"], [-5, NAN, -5, 1e5, 3], id="signs"),
        pytest.param(["N/A", "#N/A", "12", "1_200", "~2"], [NAN, NAN, 12, 1200, 2], id="gaps and notes"),
        pytest.param(["(1,234)", "(5)", "."], [-1234, -5, NAN], id="brackets"),
        pytest.param(["41,5", "1.234,5", "3"], [41.5, 1234.5, 3], id="decimal commas"),
        pytest.param(["1.234.567", "12.000", "3"], [1234567, 12000, 3], id="points of thousands"),
        pytest.param(["0,125", "1,250", "0"], [0.125, 1.25, 0], id="commas below 1"),
        pytest.param(["41 132", "41\u00a0132", "41'132"], [41132, 41132, 41132], id="spaces of thousands"),
        pytest.param(["\u20ac 5", "5 \u20ac", "EUR 5"], [5, 5, 5], id="euros"),
        pytest.param(["1.5", "1,234", "*"], [1.5, 1234, NAN], id="points and commas"),
    ],
)
def test_number_spellings_are_parsed(texts: list[str | None], numbers: list[float]) -> None:
    assert np.array_equal(as_numbers(pd.Series(texts)), numbers, equal_nan=True)


def test_decimal_mark_and_missing_marks_can_be_given() -> None:
    texts = pd.Series(["1.234", "12", "1,000+"], index=[7, 8, 9], name="income")
    found = as_numbers(texts, decimal=",", missing=["1,000+"]).to_dict()
    assert found == pytest.approx({7: 1234.0, 8: 12.0, 9: NAN}, nan_ok=True)
    assert as_numbers(texts[:2]).tolist() == [1.234, 12]
    assert as_numbers(pd.Series([1.5, 2.0]), decimal=",").tolist() == [1.5, 2.0]
    with refusal(r"column 'income' must be numbers, got '1,000\+'"):
        as_numbers(texts)


@pytest.mark.parametrize(
    "text", ["12 kg", "10-20", "2020-01-01", "inf", "1,2,3", "12,34.5", "1.2.3", "0x10", "$", "%", "\uff11\uff12"]
)
def test_invalid_numbers_are_missing(text: str) -> None:
    assert NumberText.read(pd.Series(["1", "2", text])).broken.tolist() == [text]
    found = NumberText.read(pd.Series(["41%", "3%", "0.03"]))  # percents and numbers are not mixed
    assert (found.percent, found.broken.tolist()) == (True, ["0.03"])


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([f"{place} kg" for place in range(100)], "'0 kg'"),
        ([f">= {place}" if place % 12 == 0 else f"{place}" for place in range(100)], "'>= 0' and '>= 12' and 7 other"),
        (["refused" if place % 3 == 0 else f"{place}" for place in range(100)], "--missing refused"),
        (["<30" if place < 30 else f"{place}" for place in range(100)], "--missing '<30'"),
        pytest.param([f"D{place}" for place in range(100)], "", id="codes with a letter"),
        pytest.param([f"0{place % 50}" for place in range(100)], "", id="codes with a zero"),
        pytest.param(pd.Categorical(["1,000", "2", "3", "4"] * 25), "", id="category"),
        pytest.param([f"{place}{'ABCDEF'[place % 6]}" for place in range(100)], "", id="numbers with letters"),
        pytest.param([f"{place}-{place + 9}" for place in range(100)], "", id="ranges"),
        pytest.param(["1", "2", "3", "K", "PK"] * 20, "", id="grades"),
    ],
)
def test_mostly_numeric_columns_are_named(texts: Any, told: str) -> None:
    frame = pd.DataFrame({"a": texts, "b": [f"{place + 1000:,}" for place in range(100)]})
    for found in (numbers_as_text_warning(frame), numbers_as_text_warning(frame[["a"]])):
        assert (told in found, "column 'a'" in found) == (True, bool(told))


def written(numbers: int, *texts: str) -> pd.DataFrame:
    """A column of different numbers, with texts from the eighth row on."""
    column = [str(1000 + 7 * place) for place in range(numbers)]
    return pd.DataFrame({"balance": [*column[:7], *texts, *column[7:]]}, index=range(100, 100 + numbers + len(texts)))


def test_few_texts_are_less_than_one_in_a_hundred_of_many_values() -> None:
    for numbers, texts in (199, ["abc"]), (299, ["-"]), (990, [*"abefghij"]):
        with pytest.raises(DataError):
            numbers_as_text_warning(written(numbers, *texts))
    for numbers, texts in (198, ["abc", "abc"]), (198, ["abc"]), (300, []):  # 99 %; 199 values; no text
        numbers_as_text_warning(written(numbers, *texts))


def test_blank_texts_among_numbers_have_a_remedy() -> None:
    frame = written(399, " ")
    with refusal(r"' ' means missing.*as_numbers\(X\['balance'\]\)"):
        numbers_as_text_warning(frame)
    assert as_numbers(frame["balance"]).isna().sum() == 1


def test_folds_do_not_repeat_checks() -> None:
    """98.5 % of all values are numbers, but more than 99 % in folds without the first bag."""
    frame = written(400)
    frame.iloc[[0, 1, 2, 3, 20, 100], 0] = "abc"
    given: dict[str, Any] = {"bags": np.arange(400) // 20, "counts": {number: 5 + number % 7 for number in range(20)}}
    given |= {"methods": ["bag-mean-linear", "bag-soft-label-linear"], "folds": 4, "repeats": 1}
    with warned("numbers as text"):
        assert not choose(frame, **given).board["failure"].any()
    with refusal("'abc'"):
        choose(written(399, "abc"), **given)


FRAME = pd.DataFrame({"age": RNG.normal(50, 12, ROWS), "height": RNG.normal(size=ROWS), "town": ["a", "b"] * 500})
LABELS = pd.Series(RNG.random(ROWS) < expit((FRAME["age"].to_numpy() - 50) / 4)).astype(int)


def fitted(frame: pd.DataFrame, method: str = "bag-mean-linear", **settings: Any) -> LLPClassifier:
    bags = np.arange(ROWS) // 20
    return LLPClassifier(method, **settings).fit(frame, bags, counts=LABELS.groupby(bags).sum())


@pytest.mark.parametrize("method", ["bag-mean-linear", "bag-gp"])
@pytest.mark.parametrize(("rows", "value"), [(1, 1e20), (1, -1e300), (10, -9999.0), (200, -9999.0)])
def test_sentinel_value_is_named_and_extreme_magnitudes_stay_finite(rows: int, value: float, method: str) -> None:
    told, auc = rf"^column 'age' .*{re.escape(f'{value:.15g}')} in {rows} of 1,000 rows", []
    strange = FRAME.assign(age=FRAME["age"].where(np.arange(ROWS) >= rows, value))
    for frame, about in (FRAME, silent("extreme values")), (strange, warned("extreme values", match=told)):
        with about:
            auc.append(roc_auc_score(LABELS, fitted(frame, method).predict_proba(frame)[:, 1]))
    assert auc[1] > auc[0] - (0.1 if rows == 200 else 0.03)
    for factor in (1e300, 1e-300):
        scaled = FRAME.assign(age=FRAME["age"] * factor)
        assert np.isfinite(fitted(scaled, method).predict_proba(scaled)).all()


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(RNG.normal(size=500), id="normal"),
        pytest.param(RNG.lognormal(0, 3, 500), id="log-normal"),
        pytest.param(RNG.pareto(1.0, 500), id="heavy tail"),
        pytest.param(np.where(PLACE < 495, 0.0, 1000.0 + PLACE), id="most are zero"),
        pytest.param(np.where(PLACE < 400, 0.0, 1e6), id="a group of their own"),
        pytest.param(np.where(PLACE % 5 < 3, -9999.0, RNG.normal(size=500)), id="most rows"),
        pytest.param(np.where(PLACE % 5 == 0, 1000.0, PLACE % 3), id="few values"),
        pytest.param(np.append(np.zeros(400), RNG.uniform(1, 100, 600)), id="zeros and uniform"),
        pytest.param(np.append(np.zeros(400), RNG.lognormal(3, 1.5, 600)), id="zeros and log-normal"),
        pytest.param(np.repeat([0.0, 1.0], [499, 1]), id="one 1"),
        pytest.param(np.full(500, 7.0), id="constant"),
        pytest.param(np.array([1.0, 2.0, 1e9]), id="too few rows to judge"),
        pytest.param(np.array([np.nan] * 30 + [1.0] * 30), id="gaps"),
    ],
)
def test_other_columns_are_unchanged(values: FloatArray) -> None:
    found = _number_range(values)
    assert (found.far, np.array_equal(found(values), values, equal_nan=True)) == (0, True)


@pytest.mark.parametrize(
    ("a", "b", "times"), [(998, 999, 90), (-6666666, -2222222, 90), (-9999, 9999, 90), (-1e6, 1e30, 1)]
)
def test_far_values_and_missing_codes_count_as_missing(a: float, b: float, times: int) -> None:
    usual = RNG.normal(50, 10, 820)
    values = np.concatenate([np.repeat([a, b], times), usual, [np.nan]])
    found = _number_range(values)
    assert (found.low, found.high, found.far) == (usual.min(), usual.max(), 2 * times)
    assert np.isnan(found(values)[: 2 * times]).all()
    assert np.array_equal(found(values)[2 * times : -1], usual)


def test_missing_marks_of_pandas_are_no_categories_and_truth_has_two_spellings() -> None:
    ages = pd.Series([1, pd.NA, 3, 4.5, None], dtype=object)
    frame = as_frame(pd.DataFrame({"age": ages, "name": ["a", pd.NA, "b", "a", "b"]}))
    columns = FeatureColumns(frame)
    assert (columns.numeric, columns.categories) == (["age"], [["a", "b"]])
    columns = FeatureColumns(pd.DataFrame({"flag": [True, False] * 3}))
    spelt = [columns(pd.DataFrame({"flag": texts})) for texts in (["True", "False", "?"], ["true", "FALSE", "maybe"])]
    assert np.array_equal(spelt[0].categorical, spelt[1].categorical)
    assert len(np.unique(spelt[0].categorical)) == 3


def test_unlike_new_rows_are_warned_of_and_far_ones_clipped() -> None:
    columns, towns = FeatureColumns(FRAME), FeatureColumns(FRAME[["town"]][:100])
    often = FRAME.assign(age=FRAME["age"].where(np.arange(ROWS) % 2 == 0))
    with warned("extreme values", match="1,000 of 1,000 values of column 'age'.*outside those of fit"):
        columns(FRAME.assign(age=1000 * FRAME["age"]))
    with warned("missing values", match="100% .*'town' .* 0% "):
        columns(FRAME.assign(town=None))
    for new, usual, told in (90, 10, "90% of the values of column 'town', such as 'new'"), (5, 0, "'new'"):
        with warned("unknown categories", match=told):
            towns(pd.DataFrame({"town": ["new"] * new + ["a"] * usual}))
    with silent():
        columns(FRAME.assign(age=FRAME["age"] + 5))
        columns(FRAME.head(10).assign(town=None))
        FeatureColumns(often)(often.head(200))
        for new, usual in (40, 60), (4, 0):
            towns(pd.DataFrame({"town": ["new"] * new + ["a"] * usual}))
    new = FRAME.head(2).assign(age=[FRAME["age"].max(), 1e30], height=0.0, town="a")
    with warned("extreme values", match=r"^X: 1 of 2 values of column 'age', such as 1e\+30, are far"):
        high, far = fitted(FRAME).predict_proba(new)[:, 1]
    assert high < far < high + 0.2


@pytest.mark.parametrize("method", ["dllp", "bag-mean-linear"])
def test_constant_columns_change_nothing(method: str) -> None:
    wider, plain = FRAME.assign(country="x", year=2020, zero=0.0), fitted(FRAME, method, epochs=3).predict_proba(FRAME)
    model = fitted(wider, method, epochs=3)
    assert model.n_features_in_ == 6
    assert np.array_equal(model.predict_proba(wider), plain)
    assert np.array_equal(model.predict_proba(wider.assign(country="y", year=1999)), plain)


@pytest.mark.parametrize("method", ["count-gbdt", "bag-gp"])
def test_column_order_changes_nothing(method: str) -> None:
    params, turned = {"trees": 100} if method == "count-gbdt" else {}, FRAME[["town", "height", "age"]]
    one, other = (fitted(each, method, params=params) for each in (FRAME, turned))
    assert np.allclose(one.predict_proba(FRAME), other.predict_proba(turned), atol=1e-6)  # sums in another order
    for model, names in ((one, ["age", "height", "town"]), (other, ["height", "age", "town"])):
        assert method == "count-gbdt" or [each.name for each in model.effects()] == names


@pytest.mark.parametrize(
    ("method", "settings", "kind"),
    [
        ("dllp", {"encoder": "realmlp"}, _RobustScores),
        ("dllp", {"encoder": "realmlp", "numbers": "z"}, type(None)),
        ("dllp", {"numbers": "scores"}, NormalScores),
        ("dllp", {}, type(None)),
        ("bag-mean-linear", {"numbers": "robust"}, _RobustScores),
        ("dllp", {"numbers": "ranks"}, LLPBenchError),
        ("llp-gan", {"numbers": "scores"}, LLPBenchError),
    ],
)
def test_number_scale_is_chosen_or_refused(method: str, settings: dict[str, Any], kind: type) -> None:
    with refusal(settings["numbers"]) if kind is LLPBenchError else contextlib.nullcontext():
        assert type(fitted(FRAME, method, epochs=1, **settings)._model.columns.scaler.transform) is kind
