"""The count likelihood of tables of groups by outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from known_cells import simulated
from scipy.optimize import check_grad

from llpbench.blocks.cross_shares import CrossLikelihood


@pytest.mark.parametrize("covariates", [0, 2])
def test_gradient_matches_finite_differences(covariates: int) -> None:
    people, votes, _ = simulated(20)
    rng = np.random.default_rng(0)
    margins = people.to_numpy(np.float64), votes.to_numpy(np.float64)
    likelihood = CrossLikelihood(*margins, np.linspace(0.5, 2, 20), rng.standard_normal((20, covariates)))
    at = rng.normal(-1, 1, 10 + 3 * covariates)
    value = likelihood.value(at)[0]
    assert check_grad(lambda x: likelihood.value(x)[0], lambda x: likelihood.value(x)[1], at) < 1e-4 * abs(value)
