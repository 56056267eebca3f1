"""How numbers of your own data are scaled: by the caller's choice, else as the encoder declares, and saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people

from llpbench import LLPClassifier
from llpbench.core.errors import LLPBenchError
from llpbench.core.numbers import NormalScores, RobustScores
from llpbench.owndata.fitting import NetworkPredictor


def fitted(method: str, frame: pd.DataFrame | None = None, **settings: Any) -> LLPClassifier:
    rows, bags, votes = people(200, 10)
    return LLPClassifier(method, epochs=2, **settings).fit(
        rows if frame is None else frame, bags, counts=counted(bags, votes)
    )


@pytest.mark.parametrize(("numbers", "same"), [("z", False), ("scores", True)])
def test_scores_depend_on_the_order_of_numbers_alone(numbers: str, same: bool) -> None:
    rows, _, _ = people(200, 10)
    stretched = rows.assign(age=np.exp(rows["age"] / 10))
    one, other = (fitted("bag-mean-linear", each, numbers=numbers).predict_proba(each) for each in (rows, stretched))
    assert np.allclose(one, other, atol=1e-6) == same


@pytest.mark.parametrize(
    ("method", "settings", "kind"),
    [
        ("dllp", {"encoder": "realmlp"}, RobustScores),
        ("dllp", {"encoder": "realmlp", "numbers": "z"}, type(None)),
        ("dllp", {"encoder": "tabm-small"}, NormalScores),
        ("dllp", {"numbers": "scores"}, NormalScores),
        ("dllp", {}, type(None)),
        ("bag-mean-linear", {"numbers": "robust"}, RobustScores),
    ],
)
def test_the_scale_is_the_callers_else_the_encoders_and_is_saved(
    method: str, settings: dict[str, Any], kind: type, tmp_path: Path
) -> None:
    model = fitted(method, **settings)
    model.save(tmp_path / "model")
    found = LLPClassifier.load(tmp_path / "model")
    for each in (model, found):
        assert type(each._columns.scaler.transform) is kind
    new, _, _ = people(100, 12, seed=1)
    assert np.array_equal(found.predict_proba(new), model.predict_proba(new))
    assert found.get_params() == model.get_params()


def test_the_scale_is_part_of_a_networks_specification() -> None:
    """`load` builds the network from it."""
    for settings, numbers in (({}, "robust"), ({"numbers": "z"}, None)):
        predictor = fitted("dllp", encoder="realmlp", **settings)._predictor
        assert isinstance(predictor, NetworkPredictor)
        assert predictor.spec.get("numbers") == numbers


@pytest.mark.parametrize(("method", "numbers"), [("dllp", "ranks"), ("bag-mean-linear", 3), ("llp-gan", "scores")])
def test_impossible_scales_are_refused(method: str, numbers: Any) -> None:
    with pytest.raises(LLPBenchError, match=str(numbers)):
        fitted(method, numbers=numbers)
