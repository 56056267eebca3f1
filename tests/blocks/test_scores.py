"""Normal scores against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from bagged import rows_of
from scipy.stats import norm

from llpbench.blocks.scores import ScoredRows

NAN = float("nan")


def test_against_the_definition_on_other_rows() -> None:
    rng = np.random.default_rng(0)
    train, other = rng.integers(0, 9, 40).astype(float), rng.uniform(-1, 10, 30).round(1)

    def score(x: float) -> float:
        u = ((train < x).sum() + (train <= x).sum()) / 80
        return float(norm.ppf(min(max(u, 1 / 80), 1 - 1 / 80)))

    reference = np.array([score(x) for x in train])
    expected = (np.array([score(x) for x in other]) - reference.mean()) / reference.std()
    found = ScoredRows(rows_of(train.reshape(-1, 1).tolist()))(rows_of(other.reshape(-1, 1).tolist()))
    assert found[:, 0] == pytest.approx(expected, abs=1e-9)


def test_an_increasing_transform_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 2)).astype(np.float32)
    scores = [ScoredRows(rows_of(v.tolist()))(rows_of(v.tolist())) for v in (x, np.exp(x), x**3)]
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores[0], scores[2])
    assert (np.argsort(scores[0], axis=0) == np.argsort(x, axis=0)).all()


def test_missing_numbers_constant_columns_and_columns_without_a_number_are_zero() -> None:
    train = rows_of([[1, 7, NAN], [NAN, 7, NAN], [3, 7, NAN]])
    found = ScoredRows(train)(rows_of([[NAN, 7, 1], [2, 9, NAN]]))
    assert found == pytest.approx(np.zeros((2, 3)), abs=1e-12)
    # what is missing has no part in ranks
    assert ScoredRows(train)(rows_of([[3, 0, 0]]))[0, 0] == pytest.approx(1.0)
