"""Predictions a chunk at a time, also by compiled code, which wants chunks of one size."""

from __future__ import annotations

import pytest
import torch
from small import population, small_encoder

from llpbench.core.method import Stage
from llpbench.methods.dllp import DLLP
from llpbench.training.cohort import Prediction
from llpbench.training.device import Machine, compiler_exists
from llpbench.training.objective import log_proba
from llpbench.training.stage import StageRun, _MemberView
from llpbench.training.training_data import stacked_rows

SLOTS = torch.arange(1)
METHOD = DLLP(DLLP.Params(hidden=16, learning_rate=0.01, dropout=0.0))


@pytest.mark.parametrize("at_once", [1000, 64, 7])
def test_prediction_is_independent_of_batch_size(at_once: int) -> None:
    members = population(METHOD, range(2))
    rows = stacked_rows([member.task.validation.rows for member in members.members], members.machine.device)
    slots = torch.arange(2)
    weights = members.weights(members.state.weights, slots, members.state.buffers)
    expected = members.prediction(log_proba, weights, slots, rows, slots)
    assert expected.shape[:2] == rows.numeric.shape[:2]
    for filled in (False, True):
        predict = Prediction(members.map, members.data.prior, at_once, filled)
        torch.testing.assert_close(predict(log_proba, weights, slots, rows, slots), expected, atol=1e-6, rtol=0)


def test_cpu_compiled_predictions_are_unchanged() -> None:
    """Of the validation rows, and of the training rows where a method asks for them."""
    if not compiler_exists():  # asked here alone: the answer takes seconds, in each process that collects tests
        pytest.skip("no C++ compiler")
    members, alone = (
        population(METHOD, [0], encoder=lambda _: small_encoder("saint"), machine=Machine(compiled=compiled))
        for compiled in (True, False)
    )
    criteria, expected = (
        each.validation.criteria(each.judging, each.weights(each.state.weights, SLOTS, each.state.buffers), SLOTS)
        for each in (members, alone)
    )
    assert criteria.keys() == expected.keys()
    for name, values in criteria.items():
        assert values == pytest.approx(expected[name], abs=1e-5), name
    views = [_MemberView(StageRun(each, Stage(), each.state), 0, 0) for each in (members, alone)]
    before = views[0].proba()
    for view in views:  # as methods do
        with torch.no_grad():
            for weight in view.network.head.parameters():
                weight.mul_(2.0)
    of_training, eager = (view.proba() for view in views)
    assert of_training == pytest.approx(eager, abs=1e-5)
    assert of_training != pytest.approx(before, abs=1e-2)
