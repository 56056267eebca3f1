"""Hamiltonian Monte Carlo for posteriors of a handful of numbers (Duane et al. 1987; Neal 2011).

It is implemented here because maintained samplers need a compiler or a framework (Stan, PyMC, BlackJAX), or do not use
gradients (emcee) and take thousands of evaluations instead of a hundred trajectories.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from llpbench.core.bags import FloatArray


def hmc(
    minus_log: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    rng: np.random.Generator,
    *,
    draws: int,
    burn_in: int,
    steps: int = 8,
    size: float = 0.25,
    acceptance: float = 0.75,
) -> FloatArray:
    """Return draws [draws, numbers] from exp(-minus_log); `minus_log` returns value and gradient.

    The scale of every number should be about one. During burn-in the leapfrog step adapts to the target `acceptance`.
    It varies randomly between trajectories, which prevents periodic ones.
    """
    place = start
    value, slope = minus_log(place)
    kept = np.empty((draws, len(start)))
    for draw in range(-burn_in, draws):
        step = size * rng.uniform(0.6, 1.2)
        momentum = rng.standard_normal(len(place))
        energy = value + 0.5 * float(momentum @ momentum)
        there, there_value, there_slope = place, value, slope
        momentum = momentum - 0.5 * step * there_slope
        for leap in range(steps):
            there = there + step * momentum
            there_value, there_slope = minus_log(there)
            if not np.isfinite(there_value):
                break
            momentum = momentum - (step if leap < steps - 1 else 0.5 * step) * there_slope
        lost = there_value + 0.5 * float(momentum @ momentum) - energy
        chance = np.exp(-max(lost, 0.0)) if np.isfinite(lost) else 0.0
        if draw < 0:
            size *= np.exp(0.1 * (chance - acceptance))
        if rng.uniform() < chance:
            place, value, slope = there, there_value, there_slope
        if draw >= 0:
            kept[draw] = place
    return kept
