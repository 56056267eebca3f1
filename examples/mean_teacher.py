"""DLLP, with predictions that follow a moving average of the network's own weights.

After Tarvainen & Valpola 2017: L = L_bag + w(t) mean over rows of |f(x) - teacher(x)|^2.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from llpbench import (
    Bags,
    Choice,
    Encoder,
    LogUniform,
    Member,
    Method,
    MethodParams,
    Model,
    Network,
    Now,
    Phase,
    Schema,
    Stage,
    losses,
    register_method,
)

PARTS = ("encoder", "head")


@dataclass(frozen=True)
class TeacherParams(MethodParams):
    """Hyperparameters."""

    weight: Annotated[float, LogUniform(0.1, 10.0)] = 1.0
    """weight of the distance from the teacher at the end of the ramp"""
    decay: Annotated[float, Choice(0.9, 0.99, 0.999)] = 0.99
    """decay of the moving average"""


@register_method("mean-teacher", reference="after Tarvainen & Valpola 2017")
class MeanTeacher(Method):
    """DLLP that agrees with a moving average of its weights."""

    Params = TeacherParams
    params: TeacherParams
    phases = (Phase(modules=tuple(f"{part}." for part in PARTS)),)
    stages = (Stage(ramp=0.2),)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the network with a copy of itself as teacher."""
        network = super().build(encoder, schema)
        return network.add(teacher=Network(deepcopy(network.encoder), deepcopy(network.head)))

    def prepare(self, member: Member, now: Now) -> None:
        """Copy the student's weights, which may be pretrained, to the teacher."""
        del now
        for part in PARTS:
            member.network.teacher.get_submodule(part).load_state_dict(member.network.get_submodule(part).state_dict())

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return L_bag + ramp * weight * squared distance from the teacher."""
        log_proba = model.log_proba(bags)
        with torch.no_grad():
            teacher = Model(model.network.teacher).log_proba(bags)
        distance = losses.masked_mean((log_proba.exp() - teacher.exp()).square().sum(dim=-1), bags.mask)
        ramp = losses.ramp_up(now.step, 0.2 * now.steps)
        return losses.proportion_loss(log_proba, bags) + ramp * self.params.weight * distance

    def after_step(self, weights: Mapping[str, Tensor], now: Now) -> Mapping[str, Tensor]:
        """Move the teacher a small step towards the student."""
        del now
        pairs = {name: name.removeprefix("teacher.") for name in weights if name.startswith("teacher.")}
        return {name: torch.lerp(weights[own], weights[name], self.params.decay) for name, own in pairs.items()}
