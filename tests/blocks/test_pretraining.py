"""Pretraining: losses with known answers, components, cache, what methods start from; views and samples of rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import SCHEMA, moment, select, small_encoder, some_bags, stream, toy_task

from llpbench.blocks.pretraining import Decoder, Pretraining, PretrainingParams, _bag_contrast, _WeightedSum
from llpbench.blocks.views import _cut_mix, at, mixed_view, random_partner, some_rows
from llpbench.core.bags import Bags, Rows, Task
from llpbench.core.cell import Cell, Environment, Protocol
from llpbench.core.model import MLP, Encoding, Model, Network
from llpbench.core.ranges import ranges
from llpbench.core.registry import Entry
from llpbench.data.tasks import build_task
from llpbench.data.toy import permuted_within, toy_assignment, toy_table
from llpbench.running.settings import PRETRAININGS
from llpbench.training import pretrained
from llpbench.training.cell_runs import run_cell
from llpbench.training.cohort import Trainee
from llpbench.training.device import Machine
from llpbench.training.population import Population
from llpbench.training.pretrained import Pretrained, Pretrainer, _key, _read
from llpbench.training.specification import make_cell


def test_partners_are_permutation_without_padding() -> None:
    mask = torch.tensor([True, False, True, True, False, True])
    seen = set()
    for key in range(200):
        partner = random_partner(mask, stream(key))
        assert sorted(partner.tolist()) == list(range(6))
        assert mask[partner[mask]].all()
        seen.add(tuple(partner[mask].tolist()))
    assert len(seen) == 24  # every order of the four rows


def test_cut_mix_replaces_cells_by_partner_values() -> None:
    numeric = torch.arange(4000.0).reshape(2, 1000, 2)
    rows = Rows(numeric, numeric[..., :1].long() + 10, numeric[..., :2] % 3 == 0)
    mixed = _cut_mix(rows, torch.ones(2, 1000, dtype=torch.bool), 0.1, stream())
    changed = mixed.numeric != numeric
    assert changed.float().mean() == pytest.approx(0.1, abs=0.02)
    assert (mixed.categorical != rows.categorical).float().mean() == pytest.approx(0.1, abs=0.03)
    assert (mixed.numeric % 2 == torch.tensor([0.0, 1.0])).all()  # even numbers stand in the first column
    assert torch.equal(mixed.missing, mixed.numeric % 3 == 0)  # a number takes its mark of missing with it


@pytest.mark.parametrize("kind", ["mlp", "saint"])
def test_view_without_mixing_is_row(kind: str) -> None:
    bags, model = some_bags(), Model(Network(small_encoder(kind), MLP(8, 8, 2)), stream())
    assert torch.allclose(mixed_view(model, bags, 0.0, 1.0).z, model.encode(bags).z, atol=1e-6)
    assert not torch.allclose(mixed_view(model, bags, 0.0, 0.3).z, model.encode(bags).z, atol=1e-2)
    assert not torch.allclose(mixed_view(model, bags, 0.5, 1.0).z, model.encode(bags).z, atol=1e-2)


def test_bags_above_cap_are_sampled_without_replacement() -> None:
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[1, [0, 2, 4, 6, 7, 8]] = False
    chosen = some_rows(mask, stream(), most=5)
    assert chosen is not None
    assert chosen.shape == (2, 5)
    assert all(len(set(row)) == 5 for row in chosen.tolist())
    assert at(mask, chosen)[0].all()
    assert set(chosen[1, :3].tolist()) == {1, 3, 5}  # all of the shorter bag's rows, then padding
    assert at(mask, chosen)[1].tolist() == [True, True, True, False, False]
    vectors = torch.randn(2, 9, 3)
    taken = at(vectors, chosen)
    assert torch.equal(taken, torch.stack([vectors[bag, chosen[bag]] for bag in (0, 1)]))


pytestmark = pytest.mark.usefixtures("tiny_bench")  # the dataset of `cell`

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


@pytest.mark.parametrize(("similarity", "likeness"), [("mpiou", 7 / 12), ("l1", 0.75)])
def test_bag_loss_of_equal_bags_has_known_value(similarity: str, likeness: float) -> None:
    """Their vectors are equal (cosine 1), so the loss is 1 less the likeness of proportions."""
    method, network = made("bag", similarity=similarity)
    twice, model = select(some_bags(), 0, 0), Model(network)
    for first, second, expected in ((1.0, 0.0, 1.0), (0.5, 0.5, 0.0), (0.5, 0.25, 1 - likeness)):
        given = twice._replace(proportions=torch.tensor([[first, 1 - first], [second, 1 - second]]))
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


def cell(pretraining: str = "self+bag", method: str = "dllp", **params: Any) -> Cell:
    protocol = Protocol(epochs=2, patience=2)
    given = {"epochs": 2, **params}
    return make_cell(
        method, "tiny", bag_size=16, encoder="mlp", protocol=protocol, pretraining=pretraining, pretraining_params=given
    )


@pytest.mark.parametrize("tasks", [name for name in PRETRAININGS if name != "none"])
def test_pretraining_never_sees_labels(tasks: Any) -> None:
    assignment, method = toy_assignment(), Pretraining(tasks, replace(SHORT, learning_rate=0.01))
    found = []
    for table in (toy_table(), permuted_within(toy_table(), assignment.train)):
        member = Trainee(0, method, build_task(table, assignment))
        members = Population([member], lambda _: small_encoder("mlp"), Protocol(), Machine(), "pretraining")
        assert not members.train()[0].failure
        found.append(members.state.weights)
    assert torch.equal(*found)


Computed = list[dict[int, Pretrained]]
"""result of every computation by seed"""


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Computed:
    calls: Computed = []
    compute = Pretrainer.compute

    def counting(self: Pretrainer, tasks: dict[int, Task]) -> dict[int, Pretrained]:
        calls.append(compute(self, tasks))
        return calls[-1]

    monkeypatch.setattr(Pretrainer, "compute", counting)
    return calls


@pytest.mark.parametrize("method", ["dllp", "supervised"])  # stages of bags and of rows
def test_method_starts_from_pretrained_encoder(method: str, computed: Computed, monkeypatch: Any) -> None:
    started = []
    original = Population.train

    def train(self, on_epoch=None):  # type: ignore[no-untyped-def]
        if "head.0.weight" in self.stack.names:
            start = self.stack.write_out(self.state.weights[0], self.state.buffers, 0).state_dict()
            started.append(start["encoder.first.weight"].clone())
        return original(self, on_epoch)

    monkeypatch.setattr(Population, "train", train)
    (record,) = run_cell(cell(method=method), [0], Environment(device="cpu"))
    assert record["status"] == "ok", record["reason"]
    assert record["times"]["pretraining"] > 0
    assert torch.equal(started[0], computed[0][0].weights["encoder.first.weight"])


def test_pretraining_is_shared_and_only_missing_seeds_computed(tmp_path: Path, computed: Computed) -> None:
    environment = Environment(device="cpu", pretrained=str(tmp_path))
    first = run_cell(cell(), [0], environment)
    run_cell(cell(method="supervised"), [0], environment)
    assert [*map(list, computed)] == [[0]]
    run_cell(cell(method="bag-soft-label"), [0, 1], environment)
    assert [*map(list, computed)] == [[0], [1]]
    run_cell(cell("bag"), [0], environment)
    assert [*map(list, computed)] == [[0], [1], [0]]
    without = run_cell(cell(), [0], Environment(device="cpu"))
    for one, other in ((first, without), (first, run_cell(cell(), [0], environment))):
        assert one[0]["results"] == other[0]["results"]


def test_pretraining_key_has_everything_but_method() -> None:
    task = toy_task(0)
    base = cell()
    assert _key(base, 0, task) == _key(cell(method="supervised"), 0, task)
    wider = {**base.encoder_params, "dim": 32}
    cells = [cell("self"), cell(margin=0.3), cell(dropout=0.0), replace(base, encoder_params=wider)]
    different = [_key(each, 0, task) for each in (*cells, replace(base, precision="bfloat16"))]
    tasks = [replace(task, manifest="other bags"), replace(task, fingerprint="other data")]
    different += [_key(base, 1, task), *(_key(base, 0, each) for each in tasks)]
    for owner, name, value in ((pretrained, "NUMERICS", 99), (Entry, "version", "another encoder")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, value)
            different.append(_key(base, 0, task))
    assert len({_key(base, 0, task), *different}) == len(different) + 1


def test_damaged_pretraining_file_is_recomputed(tmp_path: Path, computed: Computed) -> None:
    environment = Environment(device="cpu", pretrained=str(tmp_path))
    first = run_cell(cell(), [0], environment)
    (file,) = tmp_path.glob("*.pt")
    content = file.read_bytes()
    flipped = content[:5000] + bytes([content[5000] ^ 1]) + content[5001:]
    for broken in (content[: len(content) // 2], flipped, b"", b"not a file of ours"):
        file.write_bytes(broken)
        assert _read(file) is None
    second = run_cell(cell(), [0], environment)
    assert [*map(list, computed)] == [[0], [0]]
    assert file.read_bytes()[32:36] == content[32:36]
    assert first[0]["results"] == second[0]["results"]
    assert _read(file) is not None
