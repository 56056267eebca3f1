"""From cells to records: ids, what records hold, failures, pinned numbers. Every method: `test_conformance.py`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from small import toy_task

from llpbench.core.bags import BaggedRows, FloatArray, Task
from llpbench.core.cell import Cell, Environment, Protocol
from llpbench.core.criteria import BOARD_CRITERIA, CRITERIA, METRICS
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Method
from llpbench.core.metrics import test_metrics as judge_predictions
from llpbench.core.provenance import NUMERICS
from llpbench.core.ranges import Choice, read_params, read_value
from llpbench.core.record import PROPORTION_BINS, Record, SomeDone
from llpbench.core.registry import METHODS
from llpbench.data.tasks import build_task
from llpbench.data.toy import toy_assignment, toy_table
from llpbench.results.lines import read_line, to_line
from llpbench.training import cell_runs as compute
from llpbench.training import judging
from llpbench.training.cell_runs import _train_population, _train_together, fit_direct, make_task, run_cell
from llpbench.training.cohort import Trainee, encoder_factory
from llpbench.training.device import Machine, is_out_of_memory
from llpbench.training.population import Population
from llpbench.training.selection import Selection
from llpbench.training.specification import make_cell


def cell_of(method: str = "dllp", **changes: Any) -> Cell:
    settings: dict[str, Any] = {"bag_size": 256, "encoder": "mlp", **changes}
    return make_cell(method, "adult", **settings)


def test_cell_id_is_hash_of_specification() -> None:
    cell = cell_of()
    assert replace(cell, params=dict(reversed([*cell.params.items()]))).id == cell.id
    assert len(cell.id) == 16
    assert json.loads(json.dumps(cell.spec)) == cell.spec
    changes: dict[str, Any] = {"bag_size": 64, "bagging": "random", "encoder": "saint", "protocol": Protocol(epochs=5)}
    for name, value in {**changes, "params": {"dropout": 0.2}}.items():
        assert cell_of(**{name: value}).id != cell.id
    pinned = Cell("m", "d", "ordered", 256, "saint", {"a": 1.0}, {"dim": 32}, "none", {}, Protocol())
    assert pinned.id == "664b798daa06de5b", "a change here orphans published results: it must be meant"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"precision": "bfloat16"}, "dllp mlp bfloat16 on adult ordered 256"),
        ({"ensemble": 5}, "dllp mlp x 5 on adult ordered 256"),
        ({"numbers": "scores"}, "dllp mlp numbers=scores on adult ordered 256"),
        ({"average": "half:30"}, "dllp mlp average=half:30 on adult ordered 256"),
    ],
)
def test_specification_omits_default_later_options(change: dict[str, Any], text: str) -> None:
    cell = cell_of()
    other = replace(cell, **change)
    assert not change.keys() & cell.spec.keys()
    assert other.spec == {**cell.spec, **change}
    assert other.id != cell.id
    assert str(other) == text
    assert Cell.of(other.spec) == other
    assert Cell.of(cell.spec) == cell


def test_specification_has_every_hyperparameter() -> None:
    saint = cell_of(encoder="saint")
    assert saint.params == {"learning_rate": 1e-4, "weight_decay": 0.01, "dropout": 0.1, "hidden": 256}
    assert saint.encoder_params["depth"] == 6
    mlp = cell_of(params={"hidden": "128"})
    assert mlp.params == {"learning_rate": 1e-3, "weight_decay": 0.01, "dropout": 0.1, "hidden": 128}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("dropout", "0.10", 0.1), ("ramp", "none", None), ("ramp", "100", 100), ("generator", "greedy", "greedy")],
)
def test_hyperparameters_are_read_from_text(name: str, text: str, value: object) -> None:
    cell = cell_of("tabllp-bdc", params={name: text})
    assert (cell.params[name], type(cell.params[name])) == (value, type(value))
    for switch in ("true", True):
        cell = cell_of(pretraining="bag", pretraining_params={"projection": switch})
        assert cell.pretraining_params["projection"] is True
    layers = (64, (2, 1))
    assert read_value("layers", json.loads(json.dumps(layers)), Annotated[tuple, Choice((64,), layers)]) == layers


SHORT = Protocol(epochs=3, patience=3)


def build(name: str, protocol: Protocol = SHORT) -> tuple[Cell, Method]:
    declared = METHODS.get(name)
    cell = make_cell(name, "toy", bag_size=16, encoder="mlp", protocol=protocol)
    return cell, declared(read_params(declared.Params, cell.params, name))


def trained(cell: Cell, method: Method, tasks: dict[int, Task]) -> list[Any]:
    """Results of a network on some tasks."""
    return _train_population(
        cell, Machine(), partial(_train_together, cell, method, Machine(), None, None, False), tasks
    )


def run(name: str, *seeds: int) -> list[Any]:
    """Results of a method on toy tasks."""
    return trained(*build(name), {seed: toy_task(seed) for seed in seeds})


pytestmark = pytest.mark.usefixtures("tiny_bench")  # the dataset of `tiny_records`


@cache
def tiny_records(method: str, **environment: Any) -> list[Record]:
    cell = make_cell(method, "tiny", bag_size=16, encoder="mlp", protocol=Protocol(epochs=1))
    return run_cell(cell, [0, 1], Environment(device="cpu", **environment))


@pytest.mark.parametrize("method", ["dllp", "bag-mean-linear"])
def test_record_is_complete_and_survives_json(method: str) -> None:
    records = tiny_records(method)
    assert [record["seed"] for record in records] == [0, 1]
    for record in records:
        assert json.loads(json.dumps(record)) == record
        assert record["status"] == "ok"
        assert set(record) == Record.__required_keys__
        assert set(record["results"]) == set(CRITERIA)
        always = {name for name in METRICS if not name.endswith("-bags")}
        assert all(set(chosen["test"]) == always for chosen in record["results"].values())
        assert record["spec"]["method"] == method
        assert record["run"] == f"{record['cell']}-{record['seed']}"
    assert records[0]["data"]["fingerprint"] == records[1]["data"]["fingerprint"]
    manifests = {record["data"]["manifest"] for record in records + tiny_records("bag-mean-linear")}
    assert len(manifests) == 2, "one a seed: methods share splits and bags"


def test_ensemble_is_mean_of_single_members() -> None:
    cell, method = build("dllp")
    (result,) = trained(replace(cell, ensemble=3), method, {0: toy_task(0)})
    task, said = toy_task(0), []
    for copy in range(3):
        members = [Trainee(0, method, task, copy=copy)]
        population = Population(members, encoder_factory(cell, method.params.dropout), SHORT, Machine())
        (outcome,) = population.train()
        said.append(population.predict(0, outcome.selected["auc"].weights[None], task.test.rows)[0])
    assert np.abs(said[0] - said[1]).max() > 0.01
    expected = judge_predictions(np.mean(said, axis=0), task.test)
    assert result.results["auc"]["test"] == pytest.approx(expected, abs=1e-5)
    (single,) = trained(cell, method, {0: task})
    assert single.results["auc"]["test"] == pytest.approx(judge_predictions(said[0], task.test), abs=1e-5)


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception, fails: Callable[[list[int]], bool]) -> list[int]:
    """Populations of some seeds raise `error`; the sizes tried."""
    tried: list[int] = []
    original = Population.train

    def train(self, on_epoch=None):  # type: ignore[no-untyped-def]
        tried.append(len(self.members))
        if fails([member.seed for member in self.members]):
            raise error
        return original(self, on_epoch)

    monkeypatch.setattr(Population, "train", train)
    return tried


def test_out_of_memory_is_retried_with_fewer_members(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = failing(monkeypatch, torch.OutOfMemoryError("CUDA out of memory"), lambda seeds: len(seeds) > 1)
    results = run("dllp", 0, 1, 2)
    assert tried == [3, 2, 1, 1, 1]
    assert [(result.seed, result.status, result.members) for result in results] == [(s, "ok", 1) for s in range(3)]
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55)
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
    failing(monkeypatch, caught.value, lambda _: True)
    (result,) = run("dllp", 0)
    assert result.status == "out-of-memory"
    assert "one member alone" in result.reason


def looks_at_a_value(_self, model, bags, _now):  # type: ignore[no-untyped-def]
    log_proba = model.log_proba(bags)
    return log_proba.sum() if log_proba.mean().item() < 0 else log_proba.mean()


def writes_in_place(_self, model, bags, _now):  # type: ignore[no-untyped-def]
    losses = torch.zeros(2)
    losses[0] = model.log_proba(bags)[0].mean()
    return losses.sum()


@pytest.mark.parametrize(
    ("hook", "given", "told"),
    [
        ("loss", lambda _, model, bags, __: model.log_proba(bags).flatten() @ bags.counts, Path(__file__).name),
        (
            "loss",
            lambda _, model, bags, now: model.log_proba(bags).sum() * torch.where(now.epoch > 0, math.nan, 1.0),
            "the loss was not finite in epoch 1 of stage 'train'",
        ),
        ("loss", lambda _, model, bags, __: model.log_proba(bags).sum() * torch.rand(()), "model.random"),
        ("loss", lambda *_: None, f"loss ({Path(__file__).name}:"),
        ("loss", lambda *_: None, "must give a tensor of a single number, got NoneType"),
        ("log_proba", lambda _, __, bags: bags.proportions, "must give [bags, size, classes], here [1, 80] and one"),
        ("log_proba", lambda _, model, bags: model.log_proba(bags).exp(), "do not sum to 1"),
        ("log_proba", lambda _, model, bags: model.log_proba(bags) * torch.nan, "predictions must be numbers"),
        ("prepare", lambda *_: np.zeros((3, 2)), "must give [rows, classes] targets, here [240, 2], got (3, 2)"),
        ("loss", lambda _, model, bags, __: model.log_proba(bags)[bags.mask].mean(), "declare stackable = False"),
        ("loss", looks_at_a_value, "declare stackable = False"),
        ("loss", writes_in_place, "declare stackable = False"),
    ],
)
def test_failing_hook_is_failed_record(monkeypatch: pytest.MonkeyPatch, hook: str, given: Any, told: str) -> None:
    monkeypatch.setattr(METHODS.get("dllp"), hook, given)
    (result,) = run("dllp", 0)
    assert result.status == "failed"
    assert told in result.reason
    assert "\n" not in result.reason
    if "stackable" in told:
        monkeypatch.setattr(METHODS.get("dllp"), "stackable", False)
        assert [(result.status, result.reason) for result in run("dllp", 0)] == [("ok", "")]


@pytest.mark.parametrize(
    ("fit", "told"),
    [
        (None, "must return a predictor, a function of rows, got NoneType"),
        (lambda rows: rows.numeric.tolist(), "must return a numpy array of shape (80, 2), got list"),
        (lambda rows: rows.numeric[:, :1], "predictions must be of shape (80, 2), got shape (80, 1)"),
        (lambda rows: np.full((len(rows.numeric), 2), np.nan), "finite"),
        (Mock(side_effect=LLPBenchError("no bags")), "no bags"),
        (lambda rows: np.full((len(rows.numeric), 2), 1.1), "in [0, 1]"),
        (lambda rows: np.full((len(rows.numeric), 2), -0.1), "in [0, 1]"),
    ],
)
def test_wrong_result_of_fit_is_failed_record(monkeypatch: pytest.MonkeyPatch, fit: Any, told: str) -> None:
    declared = METHODS.get("bag-mean-linear")
    monkeypatch.setattr(declared, "fit", lambda *_: fit)
    result = fit_direct(declared(), 0, toy_task(0))
    assert result.status == "failed"
    assert told in result.reason
    assert ("test_cell_runs.py:" in result.reason) == (told != "no bags"), "the method's file, not the engine's"


@pytest.mark.parametrize("kind", [ValueError, LLPBenchError])
def test_seed_without_task_spares_others(monkeypatch: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    cell = make_cell("bag-mean-linear", "tiny", bag_size=16)
    task = make_task(cell, 0, "bags", None)
    monkeypatch.setattr(compute, "make_task", Mock(side_effect=[task, kind("too few bags"), task]))
    records = run_cell(cell, [0, 1, 2], Environment(device="cpu"))
    assert [record["status"] for record in sorted(records, key=itemgetter("seed"))] == ["ok", "failed", "ok"]
    assert [record["seed"] for record in records if "too few bags" in record["reason"]] == [1]


@pytest.mark.parametrize("kind", [ValueError, LLPBenchError])
def test_error_of_one_seed_spares_others(monkeypatch: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    failing(monkeypatch, kind("similarities of rows are not finite"), lambda seeds: 1 in seeds)
    results = run("dllp", 0, 1, 2)
    assert [(result.seed, result.status) for result in results] == [(0, "ok"), (1, "failed"), (2, "ok")]
    assert "not finite" in results[1].reason


def test_each_criterion_is_judged_with_its_own_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    cell, method = build("tabllp-pse", Protocol(epochs=2, patience=2))
    task, kept, judge = toy_task(0), list[Population](), judging.judge

    def watched(population: Population, numbers: Sequence[int], *, keep: bool) -> Any:
        kept.append(population)
        return judge(population, numbers, keep=keep)

    monkeypatch.setattr(compute, "judge", watched)
    (result,) = trained(cell, method, {0: task})
    selected = kept[0].outcomes[0].selected
    moments = {(choice.training, choice.epoch) for choice in selected.values()}
    assert len({epoch for _, epoch in moments}) < len(moments)  # else this test shows nothing
    for name, choice in selected.items():
        proba = kept[0].predict(0, choice.weights[None], task.test.rows)
        # all choices were judged together, which may round differently
        assert result.results[name]["test"] == pytest.approx(judge_predictions(proba[0], task.test), abs=1e-5)


def test_nan_test_predictions_are_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    predict = Population.predict

    def broken(self: Population, number: int, *given: Any) -> FloatArray:
        return predict(self, number, *given) * np.nan

    monkeypatch.setattr(Population, "predict", broken)
    (result,) = run("dllp", 0)
    assert result.status == "failed"
    assert "NaN for test rows" in result.reason
    nothing, observe = dict.fromkeys(CRITERIA, np.full(1, np.nan)), Selection.observe
    monkeypatch.setattr(Selection, "observe", lambda self, epoch, _, theta: observe(self, epoch, nothing, theta))
    (result,) = run("dllp", 0)
    assert result.status == "failed"
    assert result.reason.startswith("no criterion could select an epoch")


def test_each_seed_has_its_own_direct_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that train one seed are test rows of another: what an object keeps of the first goes no further."""
    declared, fitted = METHODS.get("bag-mean-linear"), []
    fit = declared.fit

    def remembering(self: Any, *given: Any) -> Any:
        fitted.append(id(self))
        self.model = getattr(self, "model", None) or fit(self, *given)
        return self.model

    monkeypatch.setattr(declared, "fit", remembering)
    cell = make_cell("bag-mean-linear", "tiny", bag_size=16)
    said: list[Any] = []
    both = run_cell(cell, [0, 1], Environment(device="cpu"), said.append)
    (alone,) = run_cell(cell, [1], Environment(device="cpu"))
    assert len(fitted) == 3
    assert said == [SomeDone(both[:1])]
    assert both[1]["results"] == alone["results"]


def test_changes_of_training_rows_stay_in_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def smoothed(_: Any, train: BaggedRows, *__: Any) -> Any:
        train.counts[...] += 5
        return lambda rows: np.tile(train.prior, (len(rows.numeric), 1))

    declared, task = METHODS.get("bag-mean-linear"), toy_task(0)
    before = task.train.counts.copy()
    monkeypatch.setattr(declared, "fit", smoothed)
    assert fit_direct(declared(), 0, task).status == "ok"
    np.testing.assert_array_equal(task.train.counts, before)


def test_direct_methods_see_only_bags_with_known_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    task = toy_task(0)
    counts = np.where(np.arange(len(task.train.sizes))[:, None] == 2, np.nan, task.train.counts)
    declared, seen = METHODS.get("bag-mean-linear"), list[BaggedRows]()
    fit = declared.fit

    def remembering(self: Any, train: BaggedRows, *given: Any) -> Any:
        seen.append(train)
        return fit(self, train, *given)

    monkeypatch.setattr(declared, "fit", remembering)
    assert fit_direct(declared(), 0, replace(task, train=replace(task.train, counts=counts))).status == "ok"
    np.testing.assert_array_equal(seen[0].counts, np.delete(task.train.counts, 2, axis=0))
    assert len(seen[0].bag_of_row) == seen[0].sizes.sum() == task.train.sizes.sum() - task.train.sizes[2]


@pytest.mark.parametrize("name", ["dllp", "tabllp-pse"])
def test_undefined_criterion_has_no_result_and_spares_others(name: str) -> None:
    """AUC of validation rows of one class alone: it chooses nothing, and later stages start from trained weights."""
    table, usual = toy_table(), toy_assignment()
    of_one_class = usual.split.validation[table.row_labels[usual.split.validation] == 0]
    kept = of_one_class[: len(of_one_class) // 8 * 8]
    assignment = replace(usual, split=replace(usual.split, validation=kept), validation=kept.reshape(-1, 8))
    cell, method = build(name, Protocol(epochs=12, patience=12))
    (result,) = trained(cell, method, {0: build_task(table, assignment)})
    assert result.status == "ok"
    assert "auc" not in {**result.results, **result.curves}
    for each in result.results.values():
        assert each["validation"] is not None
        assert math.isfinite(each["validation"])


def test_record_has_curves_and_proportion_histogram() -> None:
    cell = make_cell("dllp", "tiny", bag_size=16, encoder="mlp", protocol=Protocol(epochs=4, patience=4))
    (record,) = run_cell(cell, [0], Environment(device="cpu"))
    assert set(record["curves"]) == set(BOARD_CRITERIA)
    for name, curve in record["curves"].items():
        chosen = record["results"][name]
        assert len(curve) == 4
        assert curve[chosen["epoch"] or 0] == round(chosen["validation"] or 0.0, 4)
        best = max if CRITERIA[name].maximise else min
        assert curve[chosen["epoch"] or 0] == best(value for value in curve if value is not None)
    number, histograms = record["bags"]["number"], np.array(record["bags"]["histograms"])
    assert number == 320 // 16
    assert histograms.shape == (2, PROPORTION_BINS)
    assert histograms.sum(axis=1).tolist() == [number, number]
    assert read_line(to_line(record)) == record
    ceiling = make_cell("supervised-gbdt", "tiny", bag_size=16)
    assert run_cell(ceiling, [0], Environment(device="cpu"))[0]["bags"] == record["bags"]
    spent = record["times"]
    assert 0 < spent["warm-up"] < spent["train"] < spent["total"]
    assert 0 < spent["cpu train"] < spent["cpu total"]


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
    """If results are meant to change, raise `core.provenance.NUMERICS` and replace the numbers."""
    cell = make_cell(method, "telco_churn", bag_size=256, encoder=encoder, protocol=Protocol(epochs=2))
    (record,) = run_cell(cell, [0], Environment(device="cpu", threads=1))
    result = record["results"]["likelihood"]
    assert (NUMERICS, record["data"]["manifest"][: len(BAGS)]) == (1, BAGS)
    found = result["validation"], result["test"]["log-loss"]
    assert found == pytest.approx((validation, log_loss), rel=2e-3)  # CPUs round differently
