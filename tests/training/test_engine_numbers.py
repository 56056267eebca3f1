"""Results of the engine's version: short runs of networks, trees and a Gaussian process.

If these tests fail, results have changed. If that is intended, raise `core.provenance.NUMERICS` and
replace the numbers.
"""

from __future__ import annotations

import pytest

from llpbench.core.cell import Environment, Protocol
from llpbench.core.provenance import NUMERICS
from llpbench.training.cell_runs import run_cell
from llpbench.training.specification import make_cell

VERSION = 1
"""version of the engine with these numbers"""

BAGS = "3327fcabba546db9"
"""beginning of the hash of splits and bags, the same for all methods"""


@pytest.mark.parametrize(
    ("method", "encoder", "validation", "log_loss"),
    [
        ("dllp", "mlp", -2.90246, 0.53513),
        ("count-loss", "mlp", -2.94002, 0.53099),
        ("dllp", "ft-transformer-small", -8.38594, 0.61104),
        ("em-gbdt", "mlp", -2.90216, 0.51258),
        ("bag-gp", "mlp", -2.86248, 0.51855),
    ],
)
def test_engine_numbers_match_its_version(method: str, encoder: str, validation: float, log_loss: float) -> None:
    cell = make_cell(method, "telco_churn", bag_size=256, encoder=encoder, protocol=Protocol(epochs=2))
    (record,) = run_cell(cell, [0], Environment(device="cpu", threads=1))
    result = record["results"]["likelihood"]
    assert (NUMERICS, record["data"]["manifest"][: len(BAGS)]) == (VERSION, BAGS)
    found = result["validation"], result["test"]["log-loss"]
    assert found == pytest.approx((validation, log_loss), rel=2e-3)  # CPUs round differently
