"""`after_step`: a mean teacher against an independent moving average, buffers, and names that are not there."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import torch
from small import SMALL, population, trained
from torch import Tensor

from llpbench.core.bags import Bags, Schema
from llpbench.core.errors import HookError
from llpbench.core.method import MethodParams, Now, Phase
from llpbench.core.model import Encoder, Model, Network
from llpbench.core.ranges import Uniform
from llpbench.methods.dllp import DLLP
from llpbench.training.stack import AdamW
from llpbench.training.stage import StageRun


@dataclass(frozen=True)
class TeacherParams(MethodParams):
    decay: Annotated[float, Uniform(0.0, 1.0)] = 0.9


def students_of(weights: Mapping[str, Tensor]) -> list[str]:
    """What a teacher averages; buffers that hold codes it does not."""
    return [name for name in weights if name.startswith(("encoder.", "head.")) and weights[name].is_floating_point()]


class MeanTeacher(DLLP):
    """A student that learns, and a teacher that is its moving average, and predicts."""

    Params = TeacherParams
    params: TeacherParams
    phases = (Phase("student", ("encoder.", "head.")),)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        network = super().build(encoder, schema)
        network.register_buffer("steps", torch.zeros(()))
        network.register_buffer("moments", torch.zeros(2))
        return network.add(teacher=Network(copy.deepcopy(encoder), copy.deepcopy(network.head)))

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        return Model(model.network.teacher).log_proba(bags)

    def after_step(self, weights: Mapping[str, Tensor], now: Now) -> Mapping[str, Tensor]:
        assert (now.stage, now.phase) == ("train", "")
        decay, students = self.params.decay, students_of(weights)
        teacher = {
            f"teacher.{name}": decay * weights[f"teacher.{name}"] + (1 - decay) * weights[name] for name in students
        }
        moments = torch.stack([now.epoch, now.step])
        return {**teacher, "steps": weights["steps"] + 1, "moments": moments.to(weights["moments"].dtype)}


PARAMS = TeacherParams(hidden=16, learning_rate=0.01)


def test_teacher_is_moving_average_of_student(monkeypatch: pytest.MonkeyPatch) -> None:
    pop = population(MeanTeacher(PARAMS), [0, 1], epochs=2)
    teacher = pop.stack.columns(["teacher."])
    student = pop.stack.columns(["encoder.", "head."])
    assert bool((teacher ^ student).all())
    taught: list[Tensor] = []
    step = AdamW.step

    def recording(self: AdamW, theta: Tensor, gradient: Tensor) -> None:
        assert not bool(gradient[:, teacher].any())
        step(self, theta, gradient)
        taught.append(theta.detach()[:, student].clone())

    monkeypatch.setattr(AdamW, "step", recording)
    stage = pop.method.stages[0]
    run = StageRun(pop, stage, pop.state)
    run.run()
    assert len(taught) == 2 * pop.steps(stage) == 16
    expected = pop.stack.theta[:, teacher].double()
    assert torch.equal(expected, pop.stack.theta[:, student].double())  # they start as one
    for weights in taught:
        expected = 0.9 * expected + 0.1 * weights.double()
    found = run.theta.detach()
    assert torch.allclose(found[:, teacher].double(), expected, atol=1e-6)
    assert not torch.allclose(found[:, teacher], found[:, student], atol=1e-3)
    assert run.state.buffers["steps"].tolist() == [16, 16]
    assert run.state.buffers["moments"].tolist() == [[1, 15], [1, 15]]


def test_leaving_members_keep_their_buffers() -> None:
    """When one member has settled, the steps of the others are not counted as its own."""
    pop = population(MeanTeacher(PARAMS), [0, 1, 2], epochs=60, patience=2)
    outcomes = pop.train()
    steps = pop.steps(pop.method.stages[0])
    assert len({outcome.epochs for outcome in outcomes}) > 1  # else this test shows nothing
    assert pop.state.buffers["steps"].tolist() == [outcome.epochs * steps for outcome in outcomes]


class Careless(DLLP):
    """Averages a buffer of whole numbers, which it does not see."""

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        network = super().build(encoder, schema)
        network.register_buffer("codes", torch.tensor([3, 5]))
        return network

    def after_step(self, weights: Mapping[str, Tensor], now: Now) -> Mapping[str, Tensor]:
        del now
        assert "codes" not in weights
        return {"codes": torch.tensor([0.3, 0.5])}


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (
            {"after_step": lambda _, weights, __: {"haed.0.bias": weights["head.0.bias"]}},
            r"after_step \(test_after_step\.py:\d+\) must name .*'haed\.0\.bias'\. Did .*head\.0\.bias",
        ),
        ({"after_step": lambda *_: None}, r"after_step \(test_after_step\.py:\d+\) must return .*got NoneType"),
        ({"phases": (Phase("train", modules=("haed.",)),)}, r"phases .*'haed\.'\. Available: encoder, head\."),
    ],
)
def test_unknown_names_and_missing_result_are_refused(own: dict[str, Any], told: str) -> None:
    with pytest.raises(HookError, match=told):
        trained(type("Mistaken", (DLLP,), own)(SMALL), [0])


def test_integer_buffers_are_not_averaged() -> None:
    with pytest.raises(ValueError, match="codes"):
        trained(Careless(SMALL), [0])


def test_gradient_of_each_member_is_clipped() -> None:
    """As torch's AdamW after `clip_grad_norm_`, member by member."""
    gradients = torch.tensor([[[3.0, 4.0], [0.3, 0.4]], [[0.3, 0.4], [3.0, 4.0]]])
    theta = torch.ones(2, 2)
    ours = AdamW(theta, torch.tensor([0.1, 0.2]), torch.tensor([0.0, 0.5]), 1.0)
    rows = [row.clone().requires_grad_() for row in theta.unbind()]
    others = [torch.optim.AdamW([rows[0]], 0.1, weight_decay=0.0), torch.optim.AdamW([rows[1]], 0.2, weight_decay=0.5)]
    for gradient in gradients:
        ours.step(theta, gradient)
        for row, own, other in zip(rows, gradient, others, strict=True):
            row.grad = own.clone()
            torch.nn.utils.clip_grad_norm_([row], 1.0)
            other.step()
    torch.testing.assert_close(theta, torch.stack(rows).detach())
