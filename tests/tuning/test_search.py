"""Searches: their spaces, their trials, and the same result however often they are interrupted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Annotated, Any
from unittest.mock import Mock

import numpy as np
import optuna
import pytest
import torch
from small import toy_task

from llpbench.core import files
from llpbench.core.bags import Task
from llpbench.core.cell import Protocol, Tuning
from llpbench.core.criteria import CRITERIA, Regime
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import MethodParams, Stage
from llpbench.core.ranges import LogUniform, Uniform, ranges, read_params
from llpbench.core.registry import METHODS
from llpbench.core.tables import Table
from llpbench.data.tasks import build_task
from llpbench.data.toy import permuted_within, toy_assignment, toy_table
from llpbench.methods.dllp import DLLP
from llpbench.training.cohort import _fixed
from llpbench.training.device import Machine
from llpbench.training.population import Population
from llpbench.training.specification import make_cell
from llpbench.tuning import search as search_module
from llpbench.tuning.search import Search, Trial
from llpbench.tuning.space import Space, architecture, require_start, search_space
from llpbench.tuning.trials import Bench, _Halving
from llpbench.tuning.tuning_runs import choices

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


def test_search_starts_at_any_default_that_is_a_number() -> None:
    start = make_cell("dllp", "adult", bag_size=256, encoder="realmlp").params
    part = Space(search_space("dllp"), start).ranges["learning_rate"]
    assert part["low"] < part["high"] == start["learning_rate"]
    with pytest.raises(LLPBenchError, match="learning_rate"):
        require_start("dllp", search_space("dllp"), {**start, "learning_rate": None})


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


def test_search_needs_start_within_logarithmic_scale() -> None:
    assert Space(search_space("dllp"), {**BDC, "dropout": 0.35}).ranges["dropout"]["choices"][-1] == 0.35
    require_start("dllp", search_space("dllp"), BDC)
    with pytest.raises(LLPBenchError, match=r"dllp.weight_decay must be above 0.*got 0"):
        require_start("dllp", search_space("dllp"), {**BDC, "weight_decay": 0.0})


AUC, KL = CRITERIA["auc"], CRITERIA["kl"]


def test_halving_keeps_best_third_and_records_rungs() -> None:
    halving = _Halving(AUC, (3, 9), eta=3)
    values = {number: number / 10 for number in range(6)}
    assert halving.leaving(2, values) == set()
    assert halving.leaving(3, values) == {0, 1, 2, 3}
    assert halving.leaving(9, {4: 0.7, 5: 0.6}) == {5}
    assert halving.reached[4] == [(3, 0.4), (9, 0.7)]
    assert halving.reached[0] == [(3, 0.0)]


def test_halving_respects_direction_ties_nan_protected_and_earlier_trials() -> None:
    values, nan = {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}, math.nan
    assert _Halving(KL, (1,), eta=2).leaving(1, values) == {2, 3}
    assert _Halving(AUC, (1,), eta=2, protected=(0,)).leaving(1, values) == {1}
    assert _Halving(AUC, (1,), eta=3).leaving(1, {0: 0.5, 1: 0.5, 2: 0.5}) == set()
    assert _Halving(AUC, (1,), eta=2).leaving(1, {0: nan, 1: 0.2}) == {0}
    assert _Halving(AUC, (1,), eta=2, protected=(0,)).leaving(1, {0: nan, 1: nan}) == {1}
    halving = _Halving(AUC, (1,), eta=2)
    for value in (0.8, 0.9, None):
        halving.remember([(1, value)])
    assert halving.leaving(1, {7: 0.7, 8: 0.85}) == {7}


CELL = make_cell("tabllp-bdc", "adult", bag_size=256, encoder="mlp")
TUNING = Tuning(CELL, "fine", 24, search_space("tabllp-bdc"), together=4)


class Killed(BaseException):
    """As SIGKILL would: nothing that stands behind is run."""


def made(trials: Sequence[Trial]) -> list[Trial]:
    """What became of trials, as a function of their configurations alone."""
    told = []
    for trial in trials:
        value = 1 / (1 + abs(trial.params["learning_rate"] - 0.0007) * 1e3) - 0.1 * trial.params["dropout"]
        kind = trial.number % 4
        if kind == 1 and trial.number:
            told.append(replace(trial, status="stopped", values={"auc": value}, rungs=((3, value / 2), (9, value))))
        elif trial.number == 6:
            told.append(replace(trial, status="failed", reason="the loss was not finite in epoch 0"))
        else:
            told.append(replace(trial, status="ok", values={"auc": value}, epochs=30, rungs=((3, value / 2),)))
    return told


def finish(search: Search) -> list[Trial]:
    while asked := search.ask():
        search.tell(made(asked))
    return search.made


@pytest.fixture(scope="module")
def undisturbed() -> list[Trial]:
    return finish(Search(TUNING))


def test_first_trial_is_default(undisturbed: list[Trial]) -> None:
    odd = replace(CELL, params={**CELL.params, "learning_rate": 0.000123456})
    assert Search(replace(TUNING, cell=odd)).ask()[0].params["learning_rate"] == 0.000123456, "it is not rounded"
    assert [trial.number for trial in undisturbed] == list(range(24))
    assert all(CELL.params[name] == value for name, value in undisturbed[0].params.items())
    assert len({str(trial.params) for trial in undisturbed}) == 24
    for start in range(0, 24, 4):  # trials of a round have one architecture
        round_ = [trial.params for trial in undisturbed[start : start + 4]]
        assert len({(params["objective"], params["dropout"], params["hidden"]) for params in round_}) == 1
        assert len({params["learning_rate"] for params in round_}) == 4


@pytest.mark.parametrize(
    ("method", "fixed"), [("tabllp-bdc", {"objective": "self-contrastive"}), ("selfclr-llp", {"mode": "dot"})]
)
def test_fixed_condition_makes_parameter_unconditional(method: str, fixed: dict[str, str]) -> None:
    cell = make_cell(method, "adult", bag_size=256, encoder="mlp", params=fixed)
    space = {name: each for name, each in search_space(method).items() if name not in fixed}
    asked = finish(Search(Tuning(cell, "fine", 24, space, together=4)))
    rounds = [[architecture(method, space, trial.params) for trial in asked[start : start + 4]] for start in (4, 8, 12)]
    assert all(one == each[0] for each in rounds for one in each)
    assert any(name in rounds[0][0] for name, each in space.items() if "when" in each)


def test_killed_search_gives_same_result(tmp_path: Path, monkeypatch: Any, undisturbed: list[Trial]) -> None:
    """Killed in every round: before its results are stored, or after it."""
    attempts = itertools.count()

    def replace_file(path: Path, content: str) -> None:
        attempt = next(attempts)
        if attempt % 3 > 0:
            files.replace_file(path, content)
        if attempt % 3 < 2:
            raise Killed

    monkeypatch.setattr(search_module, "replace_file", replace_file)
    found = None
    while found is None:
        with suppress(Killed):
            found = finish(Search(TUNING, tmp_path))
    assert found == undisturbed
    assert next(attempts) == 9, "six rounds, three of them made twice"


def test_search_of_other_code_starts_over(tmp_path: Path) -> None:
    steps = (("a", "", 0), ("a", "", 12), ("b", "", 0), ("b", "noon", 0), ("b", "noon", 12), ("b", "", 12))
    for code, instead, known in steps:
        search = Search(replace(TUNING, trials=12), tmp_path, code, instead)
        assert len(search.made) == known
        finish(search)


def test_damaged_search_file_is_named(tmp_path: Path) -> None:
    search = Search(TUNING, tmp_path)
    search.tell(made(search.ask()))
    path = tmp_path / f"{TUNING.search_id}.json"
    whole = path.read_text()
    for content in (whole[:-9], whole.replace('"status"', '"state"'), "{}", "[]", "\0"):
        path.write_text(content)
        with pytest.raises(LLPBenchError, match=r"\.json' is damaged"):
            Search(TUNING, tmp_path)


def test_search_that_cannot_be_stored_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LLPBenchError, match="cannot be saved"):
        Search(TUNING, tmp_path / "file")
    monkeypatch.setattr(search_module, "replace_file", Mock(side_effect=OSError(28, "No space left on device")))
    search = Search(TUNING, tmp_path)
    with pytest.raises(LLPBenchError, match="No space left"):
        search.tell(made(search.ask()))


def tuning(method: str = "dllp", regime: Regime = "fine", eta: int = 0, epochs: int = 6, patience: int = 3) -> Tuning:
    cell = make_cell(method, "adult", bag_size=16, encoder="mlp", protocol=Protocol(epochs=epochs, patience=patience))
    return Tuning(cell, regime, 4, search_space(method), eta=eta)


def bench(asked: Tuning, task: Task | None = None) -> Bench:
    supervision = METHODS.get(asked.cell.method).supervision
    return Bench(asked, task or toy_task(0, supervision=supervision), Machine())


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
            assert _fixed(one, torch.nn.Module()) == _fixed(other, torch.nn.Module()), searched


class Derived(DLLP):
    """Numbers that are searched, elsewhere than in the loss of a network, and a rate in the loss."""

    @dataclass(frozen=True)
    class Params(MethodParams):
        dropout: Annotated[float, Uniform(0.0, 0.6)] = 0.1
        factor: Annotated[float, Uniform(0.0, 10.0)] = 1.0
        second_rate: Annotated[float, LogUniform(0.01, 10.0)] = 1.0

    params: Params
    keep: Any = float

    def __init__(self, params: Params | None = None) -> None:
        super().__init__(params)
        self.stages = (Stage("first"), Stage("second", rate=self.params.second_rate))
        self.weight = torch.tensor([self.params.second_rate])

    def build(self, *given: Any) -> Any:
        network: Any = super().build(*given)
        network.factor, network.same = self.keep(self.params.factor), [torch.tensor([math.nan]), network.head]
        return network

    def loss(self, model: Any, *given: Any) -> Any:
        own = sum(weight.square().sum() for weight in model.network.head.parameters())
        factor = model.network.factor
        factor = factor() if callable(factor) else factor["kept"] if isinstance(factor, dict) else factor
        return super().loss(model, *given) * factor + 10 * self.params.weight_decay * own


KEPT: dict[str, Any] = {
    "dict": lambda factor: {"kept": factor},
    "numpy": np.float32,
    "function": lambda factor: lambda: factor,
    "default": lambda factor: lambda *, factor=factor: factor,
    "code": lambda factor: {0.1: lambda: 0.1, 0.01: lambda: 0.01}.get(factor, lambda: 0.9),
    "module": lambda factor: {"lock": Lock(), "of": math, "kept": factor},
    "local": lambda factor: {"of": type("Local", (), {})(), "kept": factor},
}


@pytest.mark.parametrize("name", ["second_rate", "factor", "dropout", "weight_decay", *KEPT])
def test_derived_hyperparameters_are_per_trial(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(METHODS.entry("dllp"), "target", Derived)
    if name in KEPT:
        monkeypatch.setattr(Derived, "keep", staticmethod(KEPT[name]))
        name = "factor"
    rates = [trial(n, **{name: rate}) for n, rate in enumerate((0.1, 0.01, 0.9, 0.1))]
    asked = tuning(regime="coarse")
    together = bench(asked).make(rates)
    alone = [made for one in rates for made in bench(asked).make([one])]
    for one, other in zip(together, alone, strict=True):
        assert one.values == pytest.approx(other.values, abs=1e-4)
    assert len({round(made.values["kl"], 4) for made in together}) == 3


def test_trials_do_not_see_changes_of_their_task(monkeypatch: pytest.MonkeyPatch) -> None:
    def smoothed(_: Any, train: Any, *__: Any) -> Any:
        train.counts[...] += 5

        def predict(rows: Any) -> Any:
            rows.numeric[...] /= 2
            return np.c_[rows.numeric[:, :1] > 0.1, rows.numeric[:, :1] <= 0.1].astype(float)

        return predict

    monkeypatch.setattr(METHODS.get("bag-mean-linear"), "fit", smoothed)
    one, other = bench(tuning("bag-mean-linear")).make([trial(0), trial(1)])
    assert one.values == other.values


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
    search = Search(asked)
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


@pytest.mark.parametrize(("method", "regime"), [*product(FINE, ["fine"]), *product(COARSE, ["coarse"])])
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
        seen = bench(tuning(regime=regime), task).task
        assert seen.train_labels is None
        assert seen.test is seen.validation
        assert len(seen.validation.rows.numeric) == len(task.validation.rows.numeric)
        assert (seen.validation.labels is None) is (regime == "coarse")


SEARCHED = ("dllp", "mixbag", "bag-gp", "supervised", "supervised-gbdt")
"""one method of each kind: a search looks at the engine more than at a method"""


@pytest.mark.parametrize("method", SEARCHED)
def test_search_result_does_not_depend_on_labels_within_bags(method: str) -> None:
    """Labels of training bags reach neither regime, those of validation bags no coarse-grained search."""
    sees = METHODS.get(method).supervision == "instances"
    table, assignment = toy_table(240), toy_assignment(240)
    assignment = replace(assignment, train=assignment.train[:3])
    hidden = table if sees else permuted_within(table, assignment.train)

    def found(regime: Regime, table: Table) -> tuple[list[Trial], Any]:
        asked = tuning(method, regime, eta=2, epochs=3)
        made = bench(asked, build_task(table, assignment, supervision="instances" if sees else "bags")).finish(
            Search(asked)
        )
        return [replace(trial, seconds=0.0) for trial in made], choices(asked, made)

    assert found("fine", table) == found("fine", hidden)
    coarse = found("coarse", table)
    assert coarse[1]
    assert found("coarse", permuted_within(hidden, assignment.validation)) == coarse


def test_later_trials_are_compared_with_earlier() -> None:
    asked = bench(tuning(epochs=9, eta=2))
    asked.earlier = [Trial(9, {}, "ok", rungs=((3, 1.0), (5, 1.0))) for _ in range(9)]
    assert [made.status for made in asked.make(RATES)] == ["ok", "stopped", "stopped", "stopped"]
