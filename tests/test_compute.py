"""From cells to records: every registered method, leaks, failures, memory."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info
from toy import toy_assignment, toy_table, toy_task

from llpbench import compute
from llpbench.bags import Assignment, Split, Table, Task, build_task, count_labels
from llpbench.cell import Environment, Protocol, make_cell
from llpbench.compute import fit_direct, is_out_of_memory, pick_device, pick_precision, run_cell, train_population
from llpbench.criteria import CRITERIA, METRICS
from llpbench.errors import LLPBenchError
from llpbench.method import DirectMethod
from llpbench.population import Machine, Population
from llpbench.ranges import read_params
from llpbench.record import Record
from llpbench.registry import METHODS
from llpbench.seeding import generator

SHORT = Protocol(epochs=3, patience=3)


@pytest.fixture(params=METHODS.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def build(name: str, **params):  # type: ignore[no-untyped-def]
    declared = METHODS.get(name)
    cell = make_cell(name, "toy", bag_size=16, encoder="mlp", protocol=SHORT, params=params)
    return cell, declared(read_params(declared.Params, cell.params, name))


def what_it_learned(name: str, task: Task) -> dict[str, np.ndarray]:
    """By criterion: a neural method's weights, a direct method's predictions for the test rows."""
    cell, method = build(name)
    if isinstance(method, DirectMethod):
        proba = method.fit(task.train, task.schema, generator(0, "training"))(task.test.rows)
        return dict.fromkeys(CRITERIA, proba)
    kept: list[Population] = []
    original = compute.Population

    class Watched(original):  # type: ignore[misc, valid-type]
        def __init__(self, *args, **kwargs) -> None:  # type: ignore[no-untyped-def]
            super().__init__(*args, **kwargs)
            kept.append(self)

    compute.Population = Watched  # type: ignore[misc]
    try:
        (result,) = train_population(cell, method, {0: task}, Machine(), None)
    finally:
        compute.Population = original  # type: ignore[misc]
    assert result.status == "ok", result.reason
    return {criterion: choice.weights.numpy() for criterion, choice in kept[0].outcomes[0].selected.items()}


def permuted_within(table: Table, bags: np.ndarray) -> Table:
    """The table with the labels of each bag's rows shuffled among them."""
    labels, rng = table.labels.copy(), np.random.default_rng(1)
    for bag in bags:
        rows = bag[bag >= 0]
        labels[rows] = rng.permutation(labels[rows])
    assert (labels != table.labels).any()
    return replace(table, labels=labels)


@pytest.mark.parametrize(("classes", "unequal"), [(2, False), (3, True)])
def test_labels_permuted_within_training_bags_change_nothing(name: str, classes: int, unequal: bool) -> None:
    """The proof of idea 1. The supervised ceilings declare that they see labels, and for them it must not hold."""
    table, assignment = toy_table(classes=classes), toy_assignment(unequal=unequal)
    supervision = METHODS.get(name).supervision
    before = build_task(table, assignment, supervision=supervision)
    after = build_task(permuted_within(table, assignment.train), assignment, supervision=supervision)
    first, second = what_it_learned(name, before), what_it_learned(name, after)
    same = all(np.array_equal(first[criterion], second[criterion]) for criterion in CRITERIA)
    assert same == (supervision == "bags")


def test_labels_permuted_within_validation_bags_change_no_coarse_selection(name: str) -> None:
    table, whole = toy_table(), toy_assignment()
    split = whole.split
    # coarse criteria know the labels of bagged rows only through counts: leave no row outside a bag
    inside = type(split)(split.train, whole.validation.ravel(), split.test)
    assignment = Assignment(inside, whole.train, whole.validation, whole.test)
    supervision = METHODS.get(name).supervision
    before = build_task(table, assignment, supervision=supervision)
    after = build_task(permuted_within(table, assignment.validation), assignment, supervision=supervision)
    first, second = what_it_learned(name, before), what_it_learned(name, after)
    for criterion in CRITERIA.values():
        if criterion.regime == "coarse":
            assert np.array_equal(first[criterion.name], second[criterion.name])


@pytest.mark.parametrize("classes", [2, 3])
def test_every_method_learns_pure_bags(name: str, classes: int) -> None:
    """Spec G10: two well-separated Gaussians in pure bags."""
    rng = np.random.default_rng(0)
    rows, size = 960, 8
    labels = np.sort(np.arange(rows) % classes)
    table = Table(
        name="pure",
        numeric=rng.normal(size=(rows, 3)) + 4.0 * np.eye(classes, 3)[labels],
        categorical=np.zeros((rows, 0), np.int64),
        labels=labels,
        numeric_names=("a", "b", "c"),
        categorical_names=(),
        categories=(),
        classes=tuple("xyz"[:classes]),
    )
    bags = rng.permutation(np.arange(rows).reshape(-1, size))
    assert (count_labels(labels, bags, classes).max(axis=1) == size).all()
    parts = np.split(bags, [80, 100])
    assignment = Assignment(Split(*(part.ravel() for part in parts)), *parts)
    cell, method = build(name)
    task = build_task(table, assignment, supervision=method.supervision)
    if isinstance(method, DirectMethod):
        result = fit_direct(method, 0, task)
    else:
        longer = replace(cell, protocol=Protocol(epochs=20))
        (result,) = train_population(longer, method, {0: task}, Machine(), None)
    assert result.results["l1"]["test"]["auc"] > 0.95


def test_a_ten_thousand_category_column_and_unseen_categories(name: str) -> None:
    base, rng = toy_table(), np.random.default_rng(0)
    wide = replace(
        base,
        categorical=np.column_stack([base.categorical[:, 0], rng.integers(0, 10_000, len(base))]),
        categories=(base.categories[0], tuple(map(str, range(10_000)))),
    )
    _, method = build(name)
    task = build_task(wide, toy_assignment(), supervision=method.supervision)
    assert (task.test.rows.categorical[:, 1] == 0).mean() > 0.9  # almost all of them unseen in training
    learned = what_it_learned(name, task)
    assert np.isfinite(learned["l1"]).all()


def test_constant_proportions_give_about_chance_and_no_crash(name: str) -> None:
    table = toy_table(missing=0.0)
    by_class = [np.random.default_rng(0).permutation(np.flatnonzero(table.labels == c)) for c in (0, 1)]
    bags = np.column_stack([rows[:192].reshape(24, 8) for rows in by_class])
    split = Split(bags[:12].ravel(), bags[12:18].ravel(), bags[18:].ravel())
    assignment = Assignment(split, bags[:12], bags[12:18], bags[18:])
    cell, method = build(name)
    task = build_task(table, assignment, supervision=method.supervision)
    result = (
        fit_direct(method, 0, task)
        if isinstance(method, DirectMethod)
        else train_population(cell, method, {0: task}, Machine(), None)[0]
    )
    assert result.status == "ok"
    auc = result.results["l1"]["test"]["auc"]
    assert auc is not None
    if isinstance(method, DirectMethod) and method.supervision == "bags":
        assert abs(auc - 0.5) < 0.15


# -- records -----------------------------------------------------------------------------------------------------------


def adult_records(method: str, **environment) -> list[Record]:  # type: ignore[no-untyped-def]
    cell = make_cell(method, "adult", bag_size=1024, encoder="mlp", protocol=Protocol(epochs=1))
    return run_cell(cell, [0, 1], Environment(device="cpu", **environment))


@pytest.mark.parametrize("method", ["dllp", "bag-mean-linear"])
def test_a_record_holds_everything_that_counts_and_survives_json(method: str) -> None:
    records = adult_records(method)
    assert [record["seed"] for record in records] == [0, 1]
    for record in records:
        assert json.loads(json.dumps(record)) == record
        assert record["status"] == "ok"
        assert set(record) == set(Record.__annotations__)
        assert set(record["results"]) == set(CRITERIA)
        assert all(set(chosen["test"]) == set(METRICS) for chosen in record["results"].values())
        assert record["spec"]["method"] == method
        assert record["run"] == f"{record['cell']}-{record['seed']}"
    assert records[0]["data"]["manifest"] != records[1]["data"]["manifest"]
    assert records[0]["data"]["fingerprint"] == records[1]["data"]["fingerprint"]


def test_methods_share_splits_and_bags() -> None:
    manifests = {record["data"]["manifest"] for name in ("dllp", "bag-mean-linear") for record in adult_records(name)}
    assert len(manifests) == 2  # one a seed


def test_fewer_members_at_once_give_the_same_results() -> None:
    together, apart = adult_records("dllp"), adult_records("dllp", members=1)
    assert [record["members"] for record in together + apart] == [2, 2, 1, 1]
    for one, other in zip(together, apart, strict=True):
        first, second = one["results"]["auc"]["test"]["auc"], other["results"]["auc"]["test"]["auc"]
        assert first == pytest.approx(second, abs=1e-4)


def test_torch_and_libraries_keep_to_the_threads_of_the_environment() -> None:
    for threads in (2, 1):
        with compute._threads(threads):
            assert torch.get_num_threads() == threads
            assert {pool["num_threads"] for pool in threadpool_info()} == {threads}


# -- failures ----------------------------------------------------------------------------------------------------------


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception, most: int) -> list[int]:
    """Populations of more than `most` members raise `error`; the sizes tried."""
    tried: list[int] = []
    original = Population.train

    def train(self, on_epoch=None):  # type: ignore[no-untyped-def]
        tried.append(len(self.members))
        if len(self.members) > most:
            raise error
        return original(self, on_epoch)

    monkeypatch.setattr(Population, "train", train)
    return tried


def test_out_of_memory_is_retried_with_fewer_members(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = failing(monkeypatch, torch.OutOfMemoryError("CUDA out of memory"), most=1)
    cell, method = build("dllp")
    results = train_population(cell, method, {seed: toy_task(seed) for seed in range(3)}, Machine(), None)
    assert tried == [3, 2, 1, 1, 1]
    assert [(result.seed, result.status, result.members) for result in results] == [(s, "ok", 1) for s in range(3)]


def test_out_of_memory_alone_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate"), most=0)
    cell, method = build("dllp")
    (result,) = train_population(cell, method, {0: toy_task(0)}, Machine(), None)
    assert result.status == "out-of-memory"
    assert "one member alone" in result.reason


def test_a_real_allocation_that_cannot_be_had_is_recognised() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55)
    assert is_out_of_memory(caught.value)
    assert not is_out_of_memory(RuntimeError("shapes do not match"))


def test_a_bug_in_a_method_is_a_record_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(_self, model, bags, _progress):  # type: ignore[no-untyped-def]
        return model.log_proba(bags) @ bags.counts

    monkeypatch.setattr(METHODS.get("dllp"), "loss", loss)
    (result,) = train_population(*build("dllp"), {0: toy_task(0)}, Machine(), None)
    assert result.status == "failed"
    assert "test_compute.py" in result.reason
    assert "\n" not in result.reason


def test_nan_is_a_failed_record_with_the_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(_self, model, bags, progress):  # type: ignore[no-untyped-def]
        return model.log_proba(bags).sum() * torch.where(progress.epoch > 0, math.nan, 1.0)

    monkeypatch.setattr(METHODS.get("dllp"), "loss", loss)
    (result,) = train_population(*build("dllp"), {0: toy_task(0)}, Machine(), None)
    assert (result.status, result.reason) == ("failed", "the loss was not finite in epoch 1 of stage 'train'")


def test_a_direct_method_that_predicts_nonsense_is_a_failed_record(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = METHODS.get("bag-mean-linear")
    monkeypatch.setattr(declared, "fit", lambda *_: lambda rows: np.full((len(rows.numeric), 2), np.nan))
    result = fit_direct(declared(), 0, toy_task(0))
    assert result.status == "failed"
    assert "finite" in result.reason


@pytest.mark.parametrize("device", ["cuda:99", "tpu", "meta", "nonsense"])
def test_devices_that_are_not_there(device: str) -> None:
    with pytest.raises(LLPBenchError, match="device"):
        pick_device(device)


def test_precision_is_checked() -> None:
    cpu = torch.device("cpu")
    assert pick_precision("float32", cpu) is torch.float32
    assert pick_precision("bfloat16", torch.device("cuda")) is torch.bfloat16
    for precision in ("bfloat16", "float16"):
        with pytest.raises(LLPBenchError, match="precision"):
            pick_precision(precision, cpu)
