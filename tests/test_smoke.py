"""Two well-separated Gaussians in mixed random bags of 16: proportions alone suffice."""

from __future__ import annotations

import numpy as np
import pytest

from llpbench.core.cell import Protocol
from llpbench.core.ranges import read_params
from llpbench.core.registry import METHODS
from llpbench.core.tables import Assignment, Split, Table
from llpbench.data.tasks import build_task
from llpbench.training.cell_runs import _train_population
from llpbench.training.device import Machine
from llpbench.training.specification import make_cell


def mixed_bags() -> tuple[Table, Assignment]:
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(960) % 2)
    numeric = rng.normal(size=(960, 2)) + 3.0 * np.eye(2)[labels]
    nothing = np.zeros((960, 0), np.int64)
    table = Table("mixed", numeric, nothing, labels, ("a", "b"), (), (), ("no", "yes"))
    parts = np.split(np.arange(960).reshape(-1, 16), [40, 50])
    return table, Assignment(Split(*(part.ravel() for part in parts)), *parts)


@pytest.mark.parametrize(("name", "epochs"), [("dllp", 6), ("tabllp-bdc", 12)])
def test_methods_with_a_proportion_loss_learn_mixed_bags(name: str, epochs: int) -> None:
    protocol = Protocol(epochs=epochs)
    cell = make_cell(name, "mixed", bag_size=16, encoder="mlp", protocol=protocol, params={"learning_rate": 3e-3})
    declared = METHODS.get(name)
    method = declared(read_params(declared.Params, cell.params, name))
    (result,) = _train_population(cell, method, {0: build_task(*mixed_bags())}, Machine(), None)
    auc = result.results["l1"]["test"]["auc"]
    assert auc is not None
    assert auc >= 0.9
