"""Trials: together as alone, stopped at rungs, failed without harm; blind for test rows and, if coarse, for labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import torch
from small import toy_task

from llpbench.core.bags import Task
from llpbench.core.cell import Protocol, Tuning
from llpbench.core.criteria import CRITERIA, Regime
from llpbench.core.method import MethodParams, Stage
from llpbench.core.ranges import LogUniform, Uniform, ranges
from llpbench.core.registry import METHODS
from llpbench.methods.dllp import DLLP
from llpbench.training.device import Machine
from llpbench.training.population import Population
from llpbench.training.specification import make_cell
from llpbench.tuning.search import Search, Trial
from llpbench.tuning.space import search_space
from llpbench.tuning.trials import Bench, _alike, _fixed, without_test
from llpbench.tuning.tuning_runs import choices


def tuning(method: str = "dllp", regime: Regime = "fine", eta: int = 0, epochs: int = 6, patience: int = 3) -> Tuning:
    cell = make_cell(method, "adult", bag_size=16, encoder="mlp", protocol=Protocol(epochs=epochs, patience=patience))
    return Tuning(cell, regime, 4, search_space(method), eta=eta)


def bench(asked: Tuning, task: Task | None = None) -> Bench:
    supervision = METHODS.get(asked.cell.method).supervision
    return Bench(asked, without_test(task or toy_task(0, supervision=supervision), asked), Machine())


def trial(number: int, **params: Any) -> Trial:
    return Trial(number, params, "asked")


RATES = [trial(n, learning_rate=rate) for n, rate in enumerate((1e-3, 1e-2, 3e-2, 1e-4))]


def test_joint_trials_equal_single_trials() -> None:
    together = bench(tuning()).make(RATES)
    alone = [made for one in RATES for made in bench(tuning()).make([one])]
    for one, other in zip(together, alone, strict=True):
        assert one.status == other.status == "ok"
        assert one.values == pytest.approx(other.values, abs=1e-3)
    assert len({made.values["auc"] for made in together}) > 1


@pytest.mark.parametrize("name", [entry.name for entry in METHODS.entries() if entry.facts["kind"] == "neural"])
def test_built_in_methods_train_trials_jointly(name: str) -> None:
    declared = METHODS.get(name)
    for searched, search in ranges(declared.Params).items():
        if isinstance(search, Uniform):
            one, other = (declared(declared.Params(**{searched: end})) for end in (search.low, search.high))
            assert _alike(_fixed(one), _fixed(other)), searched


class Derived(DLLP):
    """What `__init__` derives of a number that is searched."""

    @dataclass(frozen=True)
    class Params(MethodParams):
        second_rate: Annotated[float, LogUniform(0.01, 10.0)] = 1.0

    params: Params

    def __init__(self, params: Params | None = None) -> None:
        super().__init__(params)
        self.stages = (Stage("first"), Stage("second", rate=self.params.second_rate))
        self.weight = torch.tensor([self.params.second_rate])


def test_derived_hyperparameters_are_per_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHODS.entry("dllp"), "target", Derived)
    rates = [trial(n, second_rate=rate) for n, rate in enumerate((1.0, 0.01, 10.0, 1.0))]
    asked = tuning(regime="coarse")
    together = bench(asked).make(rates)
    alone = [made for one in rates for made in bench(asked).make([one])]
    assert [made.values for made in together] == [made.values for made in alone]
    assert len({made.values["kl"] for made in together}) == 3


def test_stopped_trial_does_not_change_others() -> None:
    free = bench(tuning(epochs=9)).make(RATES)
    halved = bench(tuning(epochs=9, eta=2)).make(RATES)
    stopped = [made for made in halved if made.status == "stopped"]
    assert stopped
    assert all(made.epochs < 9 and made.rungs[-1][0] == made.epochs for made in stopped)
    assert halved[0].status == "ok", "the default always goes on"
    for one, other in zip(free, halved, strict=True):
        if other.status == "ok":
            assert other.values == pytest.approx(one.values, abs=1e-3)


def test_each_criterion_chooses_best_trial_that_was_not_stopped() -> None:
    values: list[dict[str, float]] = [{"auc": 0.5, "accuracy": 0.7, "kl": 0.3}, {"auc": 0.9, "kl": 0.0}]
    values += [{"auc": 0.8, "accuracy": 0.7, "kl": 0.2}, {"auc": 0.8, "kl": 0.1}]
    states = ("ok", "stopped", "ok", "ok")
    made = [Trial(n, {"dropout": n / 10}, states[n], values=each) for n, each in enumerate(values)]
    found = {**choices(tuning(), made), **choices(tuning(regime="coarse"), made)}
    chosen = {name: (choice["trial"], choice["value"], choice["default"]) for name, choice in found.items()}
    assert chosen == {"auc": (2, 0.8, 0.5), "accuracy": (0, 0.7, 0.7), "kl": (3, 0.1, 0.3)}
    assert found["kl"]["params"]["dropout"] == 0.3
    assert choices(tuning(), made[1:2]) == {}


def test_full_round_gives_no_more_trials_than_asked_for() -> None:
    asked = tuning(epochs=1)
    with Search.opened(asked, None) as search:
        assert len(bench(asked).finish(search)) == asked.trials == 4
        assert len(search.made) == asked.together == 5


def test_diverging_trial_fails_alone() -> None:
    made = bench(tuning()).make([*RATES[:2], trial(2, learning_rate=1e30)])
    assert [one.status for one in made] == ["ok", "ok", "failed"]
    assert "not finite" in made[2].reason


def test_out_of_memory_trials_are_split_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    train, sizes = Population.train, []

    def short(self: Any, *given: Any, **named: Any) -> Any:
        sizes.append(len(self.members))
        if len(self.members) > 1:
            raise MemoryError("out of memory")
        return train(self, *given, **named)

    monkeypatch.setattr(Population, "train", short)
    made = bench(tuning()).make(RATES)
    assert [one.status for one in made] == ["ok"] * 4
    assert sizes == [4, 2, 1, 1, 2, 1, 1]


FINE, COARSE = ("tabllp-pse", "llp-gan", "supervised"), ("tabllp-pse", "bag-soft-label-gbdt")


@pytest.mark.parametrize(
    ("method", "regime"), [*((name, "fine") for name in FINE), *((name, "coarse") for name in COARSE)]
)
def test_every_kind_of_method_is_tuned(method: str, regime: Regime) -> None:
    asked = tuning(method, regime, eta=2, epochs=3, patience=2)
    (made,) = bench(asked).make([trial(0)])
    assert made.status == "ok"
    assert made.values.keys() <= {name for name, criterion in CRITERIA.items() if criterion.regime == regime}
    assert asked.guide.name in made.values
    assert all(map(math.isfinite, made.values.values()))


def test_trials_have_no_test_rows_or_training_labels() -> None:
    task = toy_task(0)
    regimes: tuple[Regime, ...] = ("fine", "coarse")
    for regime in regimes:
        seen = without_test(task, tuning(regime=regime))
        assert seen.train_labels is None
        assert seen.test is seen.validation
        assert len(seen.validation.rows.numeric) == len(task.validation.rows.numeric)
        assert (seen.validation.labels is None) is (regime == "coarse")


def test_later_trials_are_compared_with_earlier() -> None:
    asked = bench(tuning(epochs=9, eta=2))
    asked.earlier = [Trial(9, {}, "ok", rungs=((3, 1.0), (5, 1.0))) for _ in range(9)]
    assert [made.status for made in asked.make(RATES)] == ["ok", "stopped", "stopped", "stopped"]
