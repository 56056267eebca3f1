"""What is kept of a neural method's predictions is what its figures were computed from."""

from __future__ import annotations

import numpy as np
import pytest
from small import population

from llpbench.core.bags import FloatArray
from llpbench.core.method import MethodParams
from llpbench.core.metrics import verdict
from llpbench.core.registry import METHODS
from llpbench.training.judging import judge
from llpbench.training.saved_predictions import predicted_by


@pytest.mark.parametrize("members", [1, 2])
def test_saved_predictions_are_those_judged(members: int) -> None:
    trained = population(METHODS.get("dllp")(MethodParams(learning_rate=1e-2, hidden=16)), range(members), epochs=2)
    trained.train()
    numbers = range(members)
    task = trained.members[0].task
    found, results = predicted_by(trained, numbers), judge(trained, numbers)
    assert found.keys() == results.keys()
    for name, parts in found.items():
        assert verdict(parts["test"], task.test)["test"]["auc"] == results[name]["test"]["auc"]
        of_validation: FloatArray = parts["validation"]
        assert of_validation.shape == (len(task.validation.rows.numeric), 2)
        if name == "accuracy" and members == 1:
            right = (of_validation.argmax(axis=1) == task.validation.labels).mean()
            assert right == pytest.approx(results[name]["validation"])
    assert np.allclose(found["l1"]["test"].sum(axis=1), 1, atol=1e-4)
