"""LLP-VAT: train on proportions, and make predictions stable if a row changes a little in the worst direction.

    L = L_bag + w(t) KL( f(x) ‖ f(x + r) ),  r the worst direction of a fixed length
    w(t): a weight that rises from nearly 0 during training

Tsai & Lin 2020. Of all vectors of a fixed length, r changes the prediction
most. It is found by power iteration. As published, the weight w(t) is ramped up over a part of the training steps,
which some re-implementations omit. Differences from the published code:

- Perturbations act on the embeddings of the features, because categories cannot change by small amounts.
- The three passes of the consistency term run without dropout. Otherwise a tiny finite difference would measure the
  dropout masks.
- The finite difference is 0.1 instead of 1e-6, which is lost in the rounding errors of float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.func import grad
from torch.nn.functional import kl_div

from llpbench import Bags, Method, MethodParams, Model, Now, Reports, Stage, losses, register_method
from llpbench.core.ranges import AtLeast, Choice, LogUniform


@dataclass(frozen=True)
class _VATParams(MethodParams):
    """Hyperparameters of the consistency term."""

    weight: Annotated[float, LogUniform(0.01, 5.0), AtLeast(0.0)] = 0.05
    """weight of the consistency term after the ramp"""
    epsilon: Annotated[float, LogUniform(0.1, 10.0)] = 1.0
    """length of the perturbation of a row's embeddings"""
    xi: Annotated[float, LogUniform(1e-3, 10.0)] = 0.1
    """length of the finite difference in the search for the worst direction"""
    power_iterations: Annotated[int, Choice(1, 2)] = 1
    """steps of the power iteration"""
    ramp: Annotated[float, Choice(0.0, 0.2, 0.4)] = 0.4
    """fraction of all steps in which the weight is ramped up"""


@register_method("llp-vat", version=2, reference="Tsai & Lin 2020")
class LLPVAT(Method, Reports):
    """DLLP with predictions that hardly change around every row (virtual adversarial training)."""

    Params = _VATParams
    params: _VATParams
    compiles = False  # compiling the second derivatives takes minutes

    def __init__(self, params: MethodParams | None = None) -> None:
        """Declare the ramp, whose length is a hyperparameter."""
        super().__init__(params)
        self.stages = (Stage(ramp=self.params.ramp),)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the proportion loss + w(t) * consistency."""
        consistency = self.consistency(model, bags)
        return losses.proportion_loss(model.log_proba(bags), bags) + self.schedules(now)["w"] * consistency

    def schedules(self, now: Now) -> dict[str, Tensor]:
        """Return w(t) = weight * exp(-5 (1 - step / (ramp * steps))^2)."""
        part = self.params.ramp
        ramp = losses.ramp_up(now.step, part * now.steps) if part else torch.ones_like(now.step)
        return {"w": self.params.weight * ramp}

    def consistency(self, model: Model, bags: Bags) -> Tensor:
        """Return the mean over rows of KL(P(x) || P(x + r)), with r in the worst direction and of length epsilon."""
        assert model.random is not None
        still = model.frozen()
        embeddings = still.network.encoder.embed(bags.rows)

        def log_proba(moved: Tensor) -> Tensor:
            return still.classify(still.network.encoder.encode(moved, bags.mask, None).z)

        with torch.no_grad():
            target = log_proba(embeddings)

        def divergence(perturbation: Tensor) -> Tensor:
            moved = log_proba(embeddings + perturbation)
            return losses.masked_mean(kl_div(moved, target, reduction="none", log_target=True).sum(dim=-1), bags.mask)

        direction = _unit(model.random.normal(*embeddings.shape))
        with torch.no_grad():  # no gradient of the parameters; the inner gradient is not affected
            for _ in range(self.params.power_iterations):
                direction = _unit(grad(divergence)(self.params.xi * direction))
        return divergence(self.params.epsilon * direction)


def _unit(direction: Tensor) -> Tensor:
    """Scale each row's [features, dim] block to length 1; 0 stays 0 at any scale."""
    largest = direction.abs().amax(dim=(-2, -1), keepdim=True)
    scaled = direction / largest.clamp(min=torch.finfo(direction.dtype).tiny)  # squares of tiny numbers would vanish
    length = scaled.square().sum(dim=(-2, -1), keepdim=True).sqrt()
    return scaled / length.clamp(min=torch.finfo(direction.dtype).tiny)
