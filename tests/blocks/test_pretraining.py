"""Pretraining: its losses with known answers, its components, its cache, and what methods start from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import SCHEMA, moment, select, small_encoder, some_bags, stream, toy_task

from llpbench.blocks.pretraining import Decoder, Pretraining, PretrainingParams, _bag_contrast, _WeightedSum
from llpbench.core.bags import Bags, Task
from llpbench.core.cell import Cell, Environment, Protocol
from llpbench.core.model import Encoding, Model
from llpbench.core.ranges import ranges
from llpbench.core.registry import Entry
from llpbench.data.tasks import build_task
from llpbench.data.toy import toy_assignment, toy_table
from llpbench.running.settings import PRETRAININGS
from llpbench.training import pretrained
from llpbench.training.cell_runs import run_cell
from llpbench.training.cohort import Trainee
from llpbench.training.device import Machine
from llpbench.training.population import Population
from llpbench.training.pretrained import Pretrained, Pretrainer, _key, _read
from llpbench.training.specification import make_cell

NOW = moment()
SHORT = PretrainingParams(epochs=2, hidden=16, learning_rate=1e-3)


def test_weighted_sum_matches_loop() -> None:
    torch.manual_seed(0)
    z, aggregator = torch.randn(7, 4), _WeightedSum(4)
    unit = torch.nn.functional.normalize(z[:5], dim=1)
    weights = sum((unit @ unit[i] * 10).softmax(0) for i in range(5)) / 5  # W = I, s = 10; the last two are padding
    assert torch.allclose(aggregator(z, torch.arange(7) < 5), weights @ z[:5], atol=1e-5)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("cosine", "similarity", "margin", "expected"), [(1.0, 0.0, 0.0, 1.0), (-1.0, 1.0, 0.0, 2.0), (0.5, 0.5, 0.2, 0.4)]
)
def test_bag_contrast_matches_hand_computation(
    cosine: float, similarity: float, margin: float, expected: float
) -> None:
    loss = _bag_contrast(torch.tensor(cosine), torch.tensor(similarity), margin)
    assert float(loss) == pytest.approx(expected, abs=1e-6)


def made(tasks: Any, **params: Any) -> tuple[Pretraining, Any]:
    torch.manual_seed(0)
    method = Pretraining(tasks, replace(SHORT, **params))
    return method, method.build(small_encoder("saint"), SCHEMA)


def with_proportions(bags: Bags, first: list[float], second: list[float]) -> Bags:
    return bags._replace(proportions=torch.tensor([first, second]))


@pytest.mark.parametrize(("similarity", "likeness"), [("mpiou", 7 / 12), ("l1", 0.75)])
def test_bag_loss_of_equal_bags_has_known_value(similarity: str, likeness: float) -> None:
    """Their vectors are equal (cosine 1), so the loss is 1 less the likeness of proportions."""
    method, network = made("bag", similarity=similarity)
    twice, model = select(some_bags(), 0, 0), Model(network)
    for first, second, expected in ((1.0, 0.0, 1.0), (0.5, 0.5, 0.0), (0.5, 0.25, 1 - likeness)):
        given = with_proportions(twice, [first, 1 - first], [second, 1 - second])
        assert float(method.bag_loss(model, model.encode(given), given).detach()) == pytest.approx(expected, abs=1e-5)


def test_bag_loss_skips_pairs_with_suppressed_bag() -> None:
    """Four pairs of bags; the mean is over pairs with two known bags."""
    method, network = made("bag")
    bags, model = select(some_bags(unequal=True), *[0, 1] * 4), Model(network)
    proportions = torch.tensor([[p, 1 - p] for p in (0.1, 0.9, 0.4, 0.5, 1.0, 1.0, 0.0, 0.6)])
    given = bags._replace(proportions=proportions)
    known = torch.tensor([True, True, True, False, False, True, True, True])

    def loss(bags: Bags) -> float:
        return float(method.bag_loss(model, model.encode(bags), bags).detach())

    each = [loss(select(given, first, first + 1)) for first in (0, 2, 4, 6)]
    assert loss(given) == pytest.approx(sum(each) / 4, abs=1e-6)
    assert loss(given._replace(known=known)) == pytest.approx((each[0] + each[3]) / 2, abs=1e-6)
    assert loss(given._replace(known=torch.zeros(8, dtype=torch.bool))) == 0


def test_perfect_reconstruction_has_zero_loss_and_missing_are_ignored() -> None:
    bags = some_bags(unequal=True)
    decoder = Decoder(small_encoder("saint"), SCHEMA)
    encoding = Encoding(torch.zeros(2, 16, 8), torch.zeros(2, 16, SCHEMA.features, 8))
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.zero_()
    uniform = sum(torch.tensor(float(c)).log() for c in SCHEMA.cardinalities)
    known = bags.mask[..., None] & ~bags.rows.missing
    squares = (bags.rows.numeric**2)[known].mean()
    assert bags.rows.missing.any()
    loss = decoder(encoding, bags.rows, bags.mask, 10.0)
    assert float(loss.detach()) == pytest.approx(float(uniform + 10 * squares), rel=1e-5)
    with torch.no_grad():
        decoder.number_bias.fill_(2.0)
    rows = bags.rows._replace(numeric=torch.where(bags.rows.missing, 0.0, 2.0))
    assert float(decoder(encoding, rows, bags.mask, 10.0).detach()) == pytest.approx(float(uniform), rel=1e-5)


COMPONENTS = [
    {name: value} for name, search in ranges(PretrainingParams).items() if hasattr(search, "values")
    for value in search.values if name not in ("dropout", "hidden")
]  # fmt: skip


@pytest.mark.parametrize("changes", COMPONENTS, ids=str)
def test_every_pretraining_component_trains_and_ignores_padding(changes: dict[str, Any]) -> None:
    method, network = made("self+bag", **changes)
    bags = some_bags(unequal=True)
    garbage = bags._replace(rows=bags.rows._replace(numeric=torch.where(bags.mask[..., None], bags.rows.numeric, 30.0)))
    first, second = (method.loss(Model(network, stream()), each, NOW) for each in (bags, garbage))
    assert torch.isfinite(first)
    assert torch.allclose(first, second, rtol=1e-5)
    gradients = torch.autograd.grad(first, list(network.encoder.parameters()))
    assert any(bool((gradient != 0).any()) for gradient in gradients)


pytestmark = pytest.mark.usefixtures("tiny_bench")  # the dataset of `cell`


def cell(pretraining: str = "self+bag", method: str = "dllp", **params: Any) -> Cell:
    protocol = Protocol(epochs=2, patience=2)
    given = {"epochs": 2, **params}
    return make_cell(
        method, "tiny", bag_size=16, encoder="mlp", protocol=protocol, pretraining=pretraining, pretraining_params=given
    )


def weights_of(task: Task, seeds: list[int], tasks: Any = "self+bag") -> list[torch.Tensor]:
    members = [Trainee(seed, Pretraining(tasks, replace(SHORT, learning_rate=0.01)), task) for seed in seeds]
    population = Population(members, lambda _: small_encoder("mlp"), Protocol(), Machine(), "pretraining")
    assert not any(outcome.failure for outcome in population.train())
    return list(population.state.weights)


@pytest.mark.parametrize("tasks", [name for name in PRETRAININGS if name != "none"])
def test_pretraining_never_sees_labels(tasks: str) -> None:
    table, assignment = toy_table(), toy_assignment()
    labels = table.row_labels.copy()
    for bag in assignment.train:
        labels[bag] = labels[bag[::-1]]
    assert not np.array_equal(labels, table.row_labels)
    before, after = (build_task(each, assignment) for each in (table, replace(table, labels=labels)))
    assert torch.equal(weights_of(before, [0], tasks)[0], weights_of(after, [0], tasks)[0])


@pytest.mark.parametrize("method", ["dllp", "supervised"])  # stages of bags and of rows
def test_method_starts_from_pretrained_encoder(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    original = Population.train

    def train(self, on_epoch=None):  # type: ignore[no-untyped-def]
        if "head.0.weight" in self.stack.names:
            start = self.stack.write_out(self.state.weights[0], self.state.buffers, 0).state_dict()
            started.append(start["encoder.first.weight"].clone())
        return original(self, on_epoch)

    monkeypatch.setattr(Population, "train", train)
    kept: dict[int, Pretrained] = {}
    compute = Pretrainer.compute
    monkeypatch.setattr(Pretrainer, "compute", lambda self, tasks: kept.update(compute(self, tasks)) or kept)
    (record,) = run_cell(cell(method=method), [0], Environment(device="cpu"))
    assert record["status"] == "ok", record["reason"]
    assert record["times"]["pretraining"] > 0
    assert torch.equal(started[0], kept[0].weights["encoder.first.weight"])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The seeds of every computation."""
    calls: list[list[int]] = []
    compute = Pretrainer.compute

    def counting(self: Pretrainer, tasks: dict[int, Task]) -> dict[int, Pretrained]:
        calls.append(list(tasks))
        return compute(self, tasks)

    monkeypatch.setattr(Pretrainer, "compute", counting)
    return calls


def test_pretraining_is_shared_and_only_missing_seeds_computed(tmp_path: Path, counted: list[list[int]]) -> None:
    environment = Environment(device="cpu", pretrained=str(tmp_path))
    first = run_cell(cell(), [0], environment)
    run_cell(cell(method="supervised"), [0], environment)
    assert counted == [[0]]
    run_cell(cell(method="bag-soft-label"), [0, 1], environment)
    assert counted == [[0], [1]]
    run_cell(cell("bag"), [0], environment)
    assert counted == [[0], [1], [0]]
    without = run_cell(cell(), [0], Environment(device="cpu"))
    for one, other in ((first, without), (first, run_cell(cell(), [0], environment))):
        assert one[0]["results"] == other[0]["results"]


def test_pretraining_key_has_everything_but_method() -> None:
    task = toy_task(0)
    base = cell()
    assert _key(base, 0, task) == _key(cell(method="supervised"), 0, task)
    different = [
        _key(base, 1, task),
        _key(cell("self"), 0, task),
        _key(cell(margin=0.3), 0, task),
        _key(cell(dropout=0.0), 0, task),
        _key(replace(base, encoder_params={**base.encoder_params, "dim": 32}), 0, task),
        _key(base, 0, replace(task, manifest="other bags")),
        _key(base, 0, replace(task, fingerprint="other data")),
        _key(replace(base, precision="bfloat16"), 0, task),
    ]
    for owner, name, value in ((pretrained, "NUMERICS", 99), (Entry, "version", "another encoder")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, value)
            different.append(_key(base, 0, task))
    assert len({_key(base, 0, task), *different}) == len(different) + 1


def test_damaged_pretraining_file_is_recomputed(tmp_path: Path, counted: list[list[int]]) -> None:
    environment = Environment(device="cpu", pretrained=str(tmp_path))
    first = run_cell(cell(), [0], environment)
    (file,) = tmp_path.glob("*.pt")
    content = file.read_bytes()
    flipped = content[:5000] + bytes([content[5000] ^ 1]) + content[5001:]
    for broken in (content[: len(content) // 2], flipped, b"", b"not a file of ours"):
        file.write_bytes(broken)
        assert _read(file) is None
    second = run_cell(cell(), [0], environment)
    assert counted == [[0], [0]]
    assert file.read_bytes()[32:36] == content[32:36]
    assert first[0]["results"] == second[0]["results"]
    assert _read(file) is not None
