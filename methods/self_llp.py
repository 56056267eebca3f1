"""SELF-LLP: train on proportions, on a self-supervised task, and towards an average of earlier weights (the teacher).

    L = L_bag + task_weight · CE(which rotation) + teacher_weight · w(t) meanᵢ ‖ f(xᵢ) − f_teacher(xᵢ) ‖²
    rotation: one of four fixed transformations of the row;  w(t): a weight that rises to 1

Liu, Qi, Wang, Tian & Shi 2022.

- For images, the task is to predict a rotation. For tables, the authors use an orthogonal transformation. Here the
  concatenated embeddings of a row are multiplied by one of four fixed orthogonal matrices, one of them the identity. A
  head on the row vector predicts which one.
- The teacher is a moving average of encoder and head. w(t) = exp(-5 (1 - t)^2) over the first two fifths of the steps.

Only the abstract of the paper was available. It does not state the weights of the terms or the number of
transformations. Here they act on embeddings, because categories cannot change by small amounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from llpbench import Bags, Member, Method, MethodParams, Now, Phase, Reports, Schema, Stage, losses, register_method
from llpbench.core.model import MLP, Encoder, Model, Network
from llpbench.core.ranges import AtLeast, Choice, LogUniform

TRANSFORMATIONS = 4
RAMP = 0.4
"""fraction of all steps until the teacher has its full weight"""
PARTS = ("encoder", "head")
"""parts of the network that the teacher follows"""


@dataclass(frozen=True)
class _SelfLLPParams(MethodParams):
    """Hyperparameters of the task and the teacher."""

    task_weight: Annotated[float, LogUniform(0.01, 1.0), AtLeast(0.0)] = 0.1
    """weight of the self-supervised task"""
    teacher_weight: Annotated[float, LogUniform(0.1, 10.0), AtLeast(0.0)] = 1.0
    """weight of the distance from the teacher after the ramp"""
    decay: Annotated[float, Choice(0.9, 0.99, 0.999)] = 0.99
    """decay of the teacher's moving average"""


class _Rotations(nn.Module):
    """Fixed orthogonal matrices, and the head that predicts which one was used."""

    matrices: Tensor

    def __init__(self, width: int, dim: int, hidden: int) -> None:
        super().__init__()
        self.head = MLP(dim, hidden, TRANSFORMATIONS)
        drawn = [torch.linalg.qr(torch.randn(width, width)).Q for _ in range(TRANSFORMATIONS - 1)]
        self.register_buffer("matrices", torch.stack(drawn))

    def turned(self, flat: Tensor, which: Tensor) -> Tensor:
        """Multiply each row of `flat` [..., width] by the matrix `which` [...]; 0 is the identity."""
        for number, matrix in enumerate(self.matrices.unbind(), start=1):
            flat = torch.where((which == number).unsqueeze(-1), flat @ matrix, flat)
        return flat


@register_method("self-llp", version=2, reference="Liu et al. 2022", extra=True)
class SelfLLP(Method, Reports):
    """DLLP with a self-supervised task and a teacher, the moving average of earlier weights."""

    Params = _SelfLLPParams
    params: _SelfLLPParams
    stages = (Stage(ramp=RAMP),)
    phases = (Phase(modules=("encoder.", "head.", "rotations.head.")),)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the default network, the parts of the task, and a copy of the network as teacher."""
        network = super().build(encoder, schema)
        width = schema.features * encoder.token_dim
        network.add(rotations=_Rotations(width, encoder.dim, self.hidden))
        return network.add(teacher=Network(deepcopy(network.encoder), deepcopy(network.head)))

    def prepare(self, member: Member, now: Now) -> None:
        """Start the teacher from the student, whose weights may be pretrained."""
        for part in PARTS:
            member.network.teacher.get_submodule(part).load_state_dict(member.network.get_submodule(part).state_dict())

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return L_bag + task_weight * L_task + teacher_weight * w(t) * distance."""
        log_proba = model.log_proba(bags)
        with torch.no_grad():
            teacher = Model(model.network.teacher).log_proba(bags)
        distance = losses.masked_mean((log_proba.exp() - teacher.exp()).square().sum(dim=-1), bags.mask)
        return (
            losses.proportion_loss(log_proba, bags)
            + self.params.task_weight * self.task(model, bags)
            + self.params.teacher_weight * self.schedules(now)["w"] * distance
        )

    def schedules(self, now: Now) -> dict[str, Tensor]:
        """Return w(t) = exp(-5 (1 - t)^2) in the first part of the steps, then 1."""
        return {"w": losses.ramp_up(now.step, RAMP * now.steps)}

    def task(self, model: Model, bags: Bags) -> Tensor:
        """Return the mean cross-entropy of predicting the transformation drawn for each row."""
        assert model.random is not None
        encoder, rotations = model.network.encoder, model.network.rotations
        embeddings = encoder.embed(bags.rows)
        which = (model.random.uniform(*bags.mask.shape) * TRANSFORMATIONS).long()
        turned = rotations.turned(embeddings.flatten(-2), which).view_as(embeddings)
        said = rotations.head(encoder.encode(turned, bags.mask, model.random).z).float().log_softmax(dim=-1)
        return losses.masked_mean(-said.gather(-1, which.unsqueeze(-1)).squeeze(-1), bags.mask)

    def after_step(self, weights: Mapping[str, Tensor], now: Now) -> Mapping[str, Tensor]:
        """Move the teacher a small step towards the student."""
        pairs = {name: name.removeprefix("teacher.") for name in weights if name.startswith("teacher.")}
        return {name: torch.lerp(weights[own], weights[name], self.params.decay) for name, own in pairs.items()}
