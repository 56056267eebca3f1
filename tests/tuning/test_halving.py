"""Successive halving: who goes on at a rung."""

from __future__ import annotations

import math

from llpbench.core.criteria import CRITERIA
from llpbench.tuning.halving import Halving

AUC, KL = CRITERIA["auc"], CRITERIA["kl"]


def test_the_best_third_goes_on_and_rungs_are_written_down() -> None:
    halving = Halving(AUC, (3, 9), eta=3)
    values = {number: number / 10 for number in range(6)}
    assert halving.leaving(2, values) == set()
    assert halving.leaving(3, values) == {0, 1, 2, 3}
    assert halving.leaving(9, {4: 0.7, 5: 0.6}) == {5}
    assert halving.reached[4] == [(3, 0.4), (9, 0.7)]
    assert halving.reached[0] == [(3, 0.0)]


def test_the_lower_the_better_where_the_criterion_says_so() -> None:
    assert Halving(KL, (1,), eta=2).leaving(1, {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}) == {2, 3}


def test_trials_made_before_are_compared_with() -> None:
    halving = Halving(AUC, (1,), eta=2)
    for value in (0.8, 0.9, None):
        halving.remember([(1, value)])
    assert halving.leaving(1, {7: 0.7, 8: 0.85}) == {7}


def test_who_is_protected_stays_and_counts() -> None:
    assert Halving(AUC, (1,), eta=2, protected=(0,)).leaving(1, {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}) == {1}


def test_equal_trials_continue_together_and_trials_without_a_number_stop() -> None:
    assert Halving(AUC, (1,), eta=3).leaving(1, {0: 0.5, 1: 0.5, 2: 0.5}) == set()
    assert Halving(AUC, (1,), eta=2).leaving(1, {0: math.nan, 1: 0.2}) == {0}
    assert Halving(AUC, (1,), eta=2, protected=(0,)).leaving(1, {0: math.nan, 1: math.nan}) == {1}
