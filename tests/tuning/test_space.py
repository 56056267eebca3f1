"""Search spaces: what methods declare, what a configuration overrides, and what a trial is given of them."""

from __future__ import annotations

import math
from typing import Any

import optuna
import pytest

from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.ranges import read_params
from llpbench.core.registry import METHODS
from llpbench.training.specification import make_cell
from llpbench.tuning.space import Space, architecture, fixed, require_start, search_space
from llpbench.tuning.trials import _Halving

BDC = make_cell("tabllp-bdc", "adult", bag_size=256, encoder="mlp").params


def proposals(method: str, number: int = 60) -> list[dict[str, Any]]:
    params = make_cell(method, "adult", bag_size=256, encoder="mlp").params
    space = Space(search_space(method), params)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [space.suggest(study.ask()) for _ in range(number)]


@pytest.mark.parametrize("method", METHODS.names())
def test_every_method_accepts_its_proposed_hyperparameters(method: str) -> None:
    declared = METHODS.get(method).Params
    for chosen in proposals(method, 20):
        read = read_params(declared, chosen, owner=method)
        assert {name: getattr(read, name) for name in chosen} == chosen


def test_irrelevant_hyperparameters_are_not_searched() -> None:
    every = proposals("tabllp-bdc")
    for chosen in every:
        objective = chosen["objective"]
        assert ("margin" in chosen) is (objective == "cosine-embedding")
        assert ("temperature" in chosen) is (objective == "sup-info-nce")
        assert ("self_temperature" in chosen) is (objective == "self-contrastive")
        assert ("generator" in chosen) is (objective != "self-contrastive")
    assert {chosen["objective"] for chosen in every} == {*search_space("tabllp-bdc")["objective"]["choices"]}


def test_population_members_differ_in_numbers_only() -> None:
    space = search_space("llp-vat")
    params = make_cell("llp-vat", "adult", bag_size=256, encoder="mlp").params
    assert set(architecture("llp-vat", space, params)) == {"dropout", "hidden", "power_iterations", "ramp"}
    trees = search_space("bag-soft-label-gbdt")
    assert set(architecture("bag-soft-label-gbdt", trees, {"trees": 50, "leaves": 4, "learning_rate": 0.1})) == {*trees}


def test_search_ranges_are_overridden() -> None:
    space = search_space("dllp", {"learning_rate": [1e-5, 1e-2], "dropout": [0.0, 0.3], "weight_decay": 0.1})
    assert space["learning_rate"] == {"low": 1e-5, "high": 1e-2, "log": True}
    assert space["dropout"] == {"choices": [0.0, 0.3]}
    assert "weight_decay" not in space
    assert Space(space, {**BDC, "dropout": 0.2}).ranges["dropout"] == {"choices": [0.0, 0.3, 0.2]}
    require_start("dllp", search_space("dllp"), BDC)
    with pytest.raises(LLPBenchError, match=r"dllp.weight_decay must be above 0.*got 0"):
        require_start("dllp", search_space("dllp"), {**BDC, "weight_decay": 0.0})
    assert fixed("dllp", {"learning_rate": [1e-5, 1e-2], "weight_decay": "0.1"}) == {"weight_decay": 0.1}


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ({"learning_rat": [1e-5, 1e-2]}, "Did you mean learning_rate"),
        ({"learning_rate": [1e-2, 1e-5]}, r"learning_rate.*\[0.01, 1e-05\]"),
        ({"learning_rate": [1e-5]}, "two numbers"),
        ({"learning_rate": [1e-5, "x"]}, "two numbers"),
        ({"learning_rate": [0.0, 1e-2]}, "must be above 0"),
        ({"learning_rate": -1}, "must be above 0"),
        ({"dropout": [0.5]}, "must be one of 0.0, 0.1"),
        ({"dropout": []}, "a list of choices"),
        ({"weight_decay": [0.0, 0.1]}, r"weight_decay.*\[0.0, 0.1\]"),
        ({"learning_rate": [1, 10**400]}, "two numbers"),
    ],
)
def test_impossible_range_is_refused(overrides: dict[str, Any], told: str) -> None:
    with pytest.raises(LLPBenchError, match=told) as error:
        search_space("dllp", overrides)
    assert "\n" not in str(error.value)


AUC, KL = CRITERIA["auc"], CRITERIA["kl"]


def test_halving_keeps_best_third_and_records_rungs() -> None:
    halving = _Halving(AUC, (3, 9), eta=3)
    values = {number: number / 10 for number in range(6)}
    assert halving.leaving(2, values) == set()
    assert halving.leaving(3, values) == {0, 1, 2, 3}
    assert halving.leaving(9, {4: 0.7, 5: 0.6}) == {5}
    assert halving.reached[4] == [(3, 0.4), (9, 0.7)]
    assert halving.reached[0] == [(3, 0.0)]


def test_halving_compares_with_earlier_trials() -> None:
    halving = _Halving(AUC, (1,), eta=2)
    for value in (0.8, 0.9, None):
        halving.remember([(1, value)])
    assert halving.leaving(1, {7: 0.7, 8: 0.85}) == {7}


def test_halving_respects_direction_and_protected_trials() -> None:
    values = {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}
    assert _Halving(KL, (1,), eta=2).leaving(1, values) == {2, 3}
    assert _Halving(AUC, (1,), eta=2, protected=(0,)).leaving(1, values) == {1}


def test_tied_trials_continue_and_nan_trials_stop() -> None:
    assert _Halving(AUC, (1,), eta=3).leaving(1, {0: 0.5, 1: 0.5, 2: 0.5}) == set()
    assert _Halving(AUC, (1,), eta=2).leaving(1, {0: math.nan, 1: 0.2}) == {0}
    assert _Halving(AUC, (1,), eta=2, protected=(0,)).leaving(1, {0: math.nan, 1: math.nan}) == {1}
