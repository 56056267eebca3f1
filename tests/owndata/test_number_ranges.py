"""Numbers: sentinels, constant columns, and how they are scaled."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people, warned
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from llpbench.core.bags import FloatArray
from llpbench.core.errors import LLPBenchError
from llpbench.core.numbers import NormalScores, _RobustScores
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.columns import FeatureColumns, _number_range

ROWS = 1000


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"age": rng.normal(50, 12, ROWS), "height": rng.normal(size=ROWS), "town": rng.choice(["a", "b"], ROWS)}
    )


@pytest.fixture
def labels(frame: pd.DataFrame) -> Any:
    return (np.random.default_rng(1).random(ROWS) < expit((frame["age"] - 50) / 4)).astype(int)


def fitted(frame: pd.DataFrame, labels: Any, method: str = "bag-mean-linear", **settings: Any) -> LLPClassifier:
    bags = np.arange(ROWS) // 20
    return LLPClassifier(method, **settings).fit(frame, bags, counts=pd.Series(labels).groupby(bags).sum())


def auc(frame: pd.DataFrame, labels: Any, method: str = "bag-mean-linear") -> float:
    return float(roc_auc_score(labels, fitted(frame, labels, method).predict_proba(frame)[:, 1]))


@pytest.mark.parametrize("method", ["bag-mean-linear", "bag-gp"])
@pytest.mark.parametrize(("rows", "value"), [(1, 1e20), (1, -1e300), (10, -9999.0)])
def test_sentinel_value_is_named(rows: int, value: float, method: str, frame: pd.DataFrame, labels: Any) -> None:
    clean = auc(frame, labels, method)
    frame.loc[: rows - 1, "age"] = value
    with warned("extreme values", match=rf"^column 'age' .*{re.escape(f'{value:.15g}')} in {rows} of 1,000 rows"):
        found = auc(frame, labels, method)
    assert found > clean - 0.03


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=500),
        np.random.default_rng(0).lognormal(0, 3, 500),
        np.random.default_rng(0).pareto(1.0, 500),
        np.where(np.arange(500) < 495, 0.0, 1000.0 + np.arange(500)),  # most are zero
        np.where(np.arange(500) < 400, 0.0, 1e6),  # a group of their own
        np.repeat([0.0, 1.0], [499, 1]),
        np.full(500, 7.0),
        np.array([1.0, 2.0, 1e9]),  # too few rows to judge
        np.array([np.nan] * 30 + [1.0] * 30),
    ],
)
def test_other_columns_are_unchanged(values: FloatArray) -> None:
    found = _number_range(values)
    assert found.far == 0
    assert np.array_equal(found(values), values, equal_nan=True)


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_extreme_magnitudes_stay_finite(factor: float, frame: pd.DataFrame, labels: Any) -> None:
    scaled = frame.assign(age=frame["age"] * factor)
    assert np.isfinite(fitted(scaled, labels).predict_proba(scaled)).all()


def test_unlike_new_rows_are_warned_of(frame: pd.DataFrame) -> None:
    columns = FeatureColumns(frame)
    often = frame.assign(age=frame["age"].where(np.arange(ROWS) % 2 == 0))
    towns = FeatureColumns(pd.DataFrame({"town": ["a", "b"] * 50}))

    def strange(number: int, of: int) -> pd.DataFrame:
        return pd.DataFrame({"town": ["new"] * number + ["a"] * (of - number)})

    with warned("extreme values", match="1,000 of 1,000 values of column 'age'.*outside those of fit"):
        columns(frame.assign(age=1000 * frame["age"]))
    with warned("missing values", match="100% .*'town' .* 0% "):
        columns(frame.assign(town=None))
    with warned("unknown categories", match="90% of the values of column 'town', such as 'new'"):
        towns(strange(90, 100))
    with warned("unknown categories"):
        towns(strange(5, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        columns(frame.assign(age=frame["age"] + 5))
        columns(frame.head(10).assign(town=None))
        FeatureColumns(often)(often.head(200))
        towns(strange(40, 100))
        towns(strange(4, 4))


def test_far_new_rows_are_clipped(frame: pd.DataFrame, labels: Any) -> None:
    model = fitted(frame, labels)
    new = frame.head(2).assign(age=[frame["age"].max(), 1e30])
    with warned("extreme values", match=r"^X: 1 of 2 values of column 'age', such as 1e\+30, are far"):
        high, far = model.predict_proba(new.assign(height=0.0, town="a"))[:, 1]
    assert high < far < high + 0.2


def test_single_far_value_counts_as_missing(frame: pd.DataFrame, labels: Any) -> None:
    clean = auc(frame, labels)
    frame.loc[::5, "age"] = -9999
    with warned("extreme values", match="-9999 in 200 of 1,000 rows"):
        assert auc(frame, labels) > clean - 0.1
    values = np.concatenate([[-1e6, -1e6], np.linspace(0, 10, 200), [1e30, np.nan]])  # far away at both ends
    found = _number_range(values)
    assert (found.low, found.high, found.far) == (0.0, 10.0, 3)
    assert np.isnan(found(values)[[0, 1, -2, -1]]).all()
    assert np.array_equal(found(values)[2:-2], values[2:-2])
    assert _number_range(frame["age"].to_numpy()).far == 200
    assert _number_range(np.where(np.arange(ROWS) % 5 < 3, -9999.0, frame["height"])).far == 0, "most rows"
    assert _number_range(np.where(np.arange(ROWS) % 5 == 0, 1000.0, np.arange(ROWS) % 3)).far == 0, "few values"


@pytest.mark.parametrize("method", ["dllp", "bag-mean-linear"])
def test_constant_columns_change_nothing(method: str, frame: pd.DataFrame, labels: Any) -> None:
    settings = {"epochs": 3} if method == "dllp" else {}
    plain = fitted(frame, labels, method, **settings).predict_proba(frame)
    wider = frame.assign(country="x", year=2020, zero=0.0)
    model = fitted(wider, labels, method, **settings)
    assert np.array_equal(model.predict_proba(wider), plain)
    assert model.n_features_in_ == 6
    assert np.array_equal(model.predict_proba(wider.assign(country="y", year=1999)), plain)


@pytest.mark.parametrize("method", ["count-gbdt", "bag-gp"])
def test_column_order_changes_nothing(method: str, frame: pd.DataFrame, labels: Any) -> None:
    params = {"trees": 100} if method == "count-gbdt" else {}
    turned = frame[["town", "height", "age"]]
    one, other = (fitted(each, labels, method, params=params) for each in (frame, turned))
    assert np.allclose(one.predict_proba(frame), other.predict_proba(turned), atol=1e-6)  # sums in another order
    if method == "bag-gp":
        assert [each.name for each in one.effects()] == ["age", "height", "town"]
        assert [each.name for each in other.effects()] == ["height", "age", "town"]


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
    rows, bags, votes = people(200, 10)
    model = LLPClassifier(method, epochs=1, **settings)
    if issubclass(kind, LLPBenchError):
        with pytest.raises(kind, match=settings["numbers"]):
            model.fit(rows, bags, counts=counted(bags, votes))
    else:
        model.fit(rows, bags, counts=counted(bags, votes))
        assert type(model._model.columns.scaler.transform) is kind
