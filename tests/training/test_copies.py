"""Encoders of several copies: each copy has a loss of its own, and no method notices."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from small import make_bags, moment, no_features, population, some_bags, toy_task, trained
from torch import Tensor, nn

from llpbench.core.bags import Rows, Schema, Task
from llpbench.core.method import DirectMethod, MethodParams
from llpbench.core.model import Encoder, Encoding, Network, Random
from llpbench.core.registry import METHODS
from llpbench.encoders.flat_mlps import TabM, _TabMParams
from llpbench.methods.dllp import DLLP
from llpbench.methods.self_llp import SelfLLP, _SelfLLPParams
from llpbench.training.objective import build_copies, encoding, log_proba, loss_at

SIZES = _TabMParams(copies=3, dim=16, depth=2, periodic=True)
METHOD = DLLP(MethodParams(learning_rate=0.01, hidden=8))
TAKE_ENCODER = [
    entry.name
    for entry in METHODS.entries()
    if not issubclass(entry.load(), DirectMethod) and entry.load().takes_encoder
]


def tabm(task: Task) -> Encoder:
    return TabM(task.schema, SIZES, 0.1)


def network_of(dropout: float = 0.0) -> Network:
    torch.manual_seed(0)
    schema = toy_task(0).schema
    return build_copies(METHOD, TabM(schema, SIZES, dropout), schema)


def alike(network: Network) -> Network:
    """Every copy as the first."""
    own = dict(network.named_parameters())
    with torch.no_grad():
        for name in network.of_copy:
            own[name].copy_(own[name][:1].clone().expand_as(own[name]))
    return network


class Constant(Encoder):
    """Copies whose row vectors are their own numbers."""

    contextual = False
    dim = token_dim = 1
    of_copy = ("value",)

    def __init__(self, values: tuple[float, ...]) -> None:
        super().__init__()
        self.copies, self._values = len(values), list(values)
        self.value = nn.Parameter(torch.tensor(self._values.pop(0)))

    def another(self) -> Constant:
        return Constant((self._values.pop(0),))

    def forward(self, rows: Rows, mask: Tensor, random: Random | None) -> Encoding:
        del rows, random
        return Encoding(self.value.expand(*mask.shape, 1), self.value.expand(*mask.shape, 1, 1))


class Direct(DLLP):
    """Row vectors are logits of the second class."""

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        head = nn.Linear(1, schema.classes, bias=False)
        with torch.no_grad():
            head.weight.copy_(torch.tensor([[0.0], [1.0]]))
        return Network(encoder, head)


def test_copies_use_mean_of_losses() -> None:
    """Two copies that say 0.9 and 0.1 of a bag of proportion 0.8."""
    method, logit = Direct(MethodParams(learning_rate=0.01, hidden=8)), math.log(9)
    network = build_copies(method, Constant((logit, -logit)), Schema(1, (), 2, (0.5, 0.5), 2))
    bags = make_bags(no_features(1, 2), torch.ones(1, 2, dtype=torch.bool), [[0.2, 0.8]])
    assert network.get_parameter("encoder.value").tolist() == pytest.approx([logit, -logit])
    loss = loss_at(moment())(network, method, bags, torch.tensor(3))
    each = [0.2 * math.log(0.2 / (1 - p)) + 0.8 * math.log(0.8 / p) for p in (0.9, 0.1)]
    assert float(loss.detach()) == pytest.approx(sum(each) / 2, abs=1e-6)
    assert log_proba(network, method, bags).exp().flatten().tolist() == pytest.approx([0.5] * 4)
    assert encoding(network, method, bags).flatten().tolist() == pytest.approx([0.0] * 2, abs=1e-6)


def test_equal_copies_equal_one_network() -> None:
    """In loss, prediction, and the gradient of what they share."""
    network, bags, schema = alike(network_of()), some_bags(unequal=True), toy_task(0).schema
    single = METHOD.build(TabM(schema, replace(SIZES, copies=1), 0.0), schema)
    own = dict(network.named_parameters())
    with torch.no_grad():
        for name, parameter in single.named_parameters():
            parameter.copy_(own[name][0] if name in network.of_copy else own[name])
    losses = [loss_at(moment())(each, METHOD, bags, torch.tensor(3)) for each in (network, single)]
    torch.testing.assert_close(*losses)
    for loss in losses:
        loss.backward()
    for name, parameter in single.named_parameters():
        gradient = own[name].grad
        assert gradient is not None
        torch.testing.assert_close(gradient.sum(dim=0) if name in network.of_copy else gradient, parameter.grad)
    torch.testing.assert_close(*(log_proba(each, METHOD, bags) for each in (network, single)))


def test_copies_have_their_own_streams() -> None:
    network, bags = alike(network_of(dropout=0.5)), some_bags()
    loss_at(moment())(network, METHOD, bags, torch.tensor(3)).backward()
    gradient = network.get_parameter("encoder.layers.1.scale_in").grad
    assert gradient is not None
    assert not torch.allclose(gradient[0], gradient[1], atol=1e-6)


@pytest.mark.parametrize("name", TAKE_ENCODER)
def test_every_method_trains_copies(name: str) -> None:
    """As one member of two it gets what it gets alone, and its copies go ways of their own."""
    declared = METHODS.get(name)
    method = declared(replace(declared.Params(), learning_rate=0.01, hidden=8))
    both = population(method, [0, 1], encoder=tabm, epochs=1, rows=160)
    place = both.stack.place("encoder.layers.1.scale_in")
    start = both.stack.theta[0, place].reshape(SIZES.copies, -1)
    outcomes = both.train()
    assert [outcome.failure for outcome in outcomes] == ["", ""]
    learned = outcomes[0].selected["l1"].weights[place].reshape(SIZES.copies, -1)
    assert not torch.equal(learned, start)
    assert not torch.allclose(learned[0], learned[1])
    (alone,) = trained(method, [0], encoder=tabm, epochs=1, rows=160)
    # AdamW turns rounding of tiny gradients into steps of 1e-4 on some processors; a step of another member is 1e-2
    assert torch.allclose(alone.selected["l1"].weights, outcomes[0].selected["l1"].weights, atol=1e-3)


def test_each_copy_has_its_teacher() -> None:
    """`after_step` sees one copy; what copies share is one weight of the teacher, too."""
    method = SelfLLP(_SelfLLPParams(hidden=8, learning_rate=0.01, decay=0.0))
    found = population(method, [0], encoder=tabm, epochs=1)
    names = ("encoder.layers.0.weight", "encoder.layers.1.scale_in", "head.0.weight")
    first, second, *_ = found.stack.theta[0, found.stack.place("head.0.weight")].reshape(SIZES.copies, -1)
    assert not torch.equal(first, second), "heads start apart"
    weights = found.train()[0].selected["l1"].weights
    for name in names:
        student, teacher = (weights[found.stack.place(each)] for each in (name, f"teacher.{name}"))
        assert torch.allclose(student, teacher, atol=1e-6), name
    shapes = dict(zip(found.stack.names, found.stack.shapes, strict=True))
    assert [shapes[f"teacher.{name}"][0] for name in names[1:]] == [SIZES.copies] * 2
