"""Debiased square: the square loss of bag means, corrected for its bias in random bags.

    L = meanₖ mₖ ‖ p̄ₖ − meanᵢ f(xᵢ) + oₖ ‖² + ‖ oₖ ‖²,  oₖ = mean f of the other bags − π

The square loss of bag means, m_k |p_k - mean f|^2, has the expectation Brier score + (m_k - 1) |E f - pi|^2. Two
corrections for the second term are available:

- `form=leave-out` (NonClip, Busa-Fekete et al. 2025): the equation above, with the step's other bags.
- `form=stream` (DSQ, Li, Chen, Javanmard & Mirrokni 2024): L = mean over bags of m_k |p_k - mean f|^2, minus mean
  (m_k - 1) |F - pi|^2, with F a mean of predictions.

Differences from the published code:

- Predictions are a softmax, so several classes are possible.
- With B bags a step, `leave-out` shrinks f - pi by (B - 1) / B in expectation, because the mean of the other bags is
  noisy. AUC does not change, but probabilities do. `unshrink` predicts pi + (f - pi) B / (B - 1), and at least a
  thousandth of f, which avoids ties. Rows are normalised afterwards.
- In `stream`, F is no running mean, but `history` * mean of all training rows before the epoch + (1 - `history`) *
  the step's mean.
- The published running mean, decay * old + (1 - decay) * step's mean, passes only (1 - decay) of the gradient. With the
  published .99 this corrects almost nothing. Here the value is the same, but the gradient is that of the step's mean.
- `history` 0 is the default of the published code. It corrects by the step's own mean, which overshoots.

The method assumes that rows are independent of bags. In ordered bags, bags do not share one offset. If only one bag of
a step has known counts, there is no offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from llpbench import Bags, Member, Method, MethodParams, Now, Phase, Schema, Stage, losses, register_method
from llpbench.core.model import Encoder, Model, Network
from llpbench.core.ranges import Choice, When

LEAST = 1e-3
"""smallest stretched prediction of a class, as a fraction of its prediction"""


@dataclass(frozen=True)
class _DebiasedSquareParams(MethodParams):
    """Hyperparameters of the correction."""

    form: Annotated[str, Choice("leave-out", "stream")] = "leave-out"
    """source of the common offset: the step's other bags, or a mean of all rows"""
    history: Annotated[float, Choice(0.0, 0.9, 0.99), When("form", "stream")] = 0.99
    """weight of the mean before the epoch; 0 uses the step's own mean"""
    unshrink: Annotated[bool, Choice(True, False), When("form", "leave-out")] = True
    """whether to stretch predictions away from the prior by B / (B - 1), with B bags a step"""


class _Offsets(nn.Module):
    """Mean prediction, and bags per step: a parameter, since buffers are not saved with weights."""

    mean: Tensor
    prior: Tensor

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self.rows_per_step = schema.rows_per_step
        self.register_buffer("mean", torch.tensor(schema.prior))
        self.register_buffer("prior", torch.tensor(schema.prior))
        self.bags = nn.Parameter(torch.tensor(2.0))


@register_method(
    "debiased-square", version=1, reference="Busa-Fekete et al. 2025; Li, Chen, Javanmard & Mirrokni 2024", extra=True
)
class DebiasedSquare(Method):
    """Square loss of bags, corrected for the offset common to all of them."""

    Params = _DebiasedSquareParams
    params: _DebiasedSquareParams
    phases = (Phase(modules=("encoder.", "head.")),)

    def __init__(self, params: MethodParams | None = None) -> None:
        super().__init__(params)
        self.stages = (Stage(refresh=1 if self.params.form == "stream" else None),)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the default network with offsets."""
        return super().build(encoder, schema).add(offsets=_Offsets(schema))

    def prepare(self, member: Member, now: Now) -> None:
        """Count the bags of a step. In `stream`, also average the predictions before every epoch."""
        offsets: _Offsets = member.network.offsets
        with torch.no_grad():
            offsets.bags.fill_(max(round(offsets.rows_per_step / member.train.sizes.mean()), 1))
            if self.params.form == "stream":
                offsets.mean.copy_(torch.from_numpy(member.proba().mean(axis=0)))

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the corrected square loss."""
        log_proba = model.log_proba(bags)
        residuals, means = losses.BagMeans.residuals(log_proba, bags).means, losses.BagMeans.of(log_proba.exp(), bags)
        if self.params.form == "leave-out":
            return _leave_out(residuals, means, bags.prior)
        return _stream(residuals, means, bags.prior, model.network.offsets.mean, self.params.history)

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        """Return log predictions, in `leave-out` stretched away from the prior."""
        log_proba = model.log_proba(bags)
        if self.params.form == "stream" or not self.params.unshrink:
            return log_proba
        offsets: _Offsets = model.network.offsets
        return _stretched(log_proba, offsets.prior, offsets.bags)


def _leave_out(residuals: Tensor, means: losses.BagMeans, prior: Tensor) -> Tensor:
    """Return the mean over bags of m_k |o_k - r_k|^2 + |o_k|^2, o_k the mean prediction of other bags - prior.

    `residuals` [bags, classes]; `means` are those of predictions. Without others, o_k is 0.
    """
    sizes, offsets = means.sizes, means.of_others(alone=prior) - prior
    each = sizes * (offsets - residuals).square().sum(dim=-1) + offsets.square().sum(dim=-1)
    return losses.masked_mean(each, sizes > 0)


def _stream(residuals: Tensor, means: losses.BagMeans, prior: Tensor, old: Tensor, history: float) -> Tensor:
    """Return the mean over bags of m_k |r_k|^2 - (m_k - 1) |F - prior|^2.

    F = history * `old` + (1 - history) * the step's mean. Its gradient is that of the step's mean.
    """
    here, sizes = means.overall, means.sizes
    running = history * old + (1 - history) * here.detach() + (here - here.detach())
    offset = (running - prior).square().sum()
    return losses.masked_mean(sizes * residuals.square().sum(dim=-1) - (sizes - 1) * offset, sizes > 0)


def _stretched(log_proba: Tensor, prior: Tensor, bags: Tensor) -> Tensor:
    """Return the log of prior + (f - prior) B / (B - 1), at least `LEAST` f, normalised; of f with one bag a step."""
    proba = log_proba.exp()
    factor = bags / (bags - 1).clamp(min=1)
    moved = torch.maximum(prior + (proba - prior) * factor, LEAST * proba)
    log_moved = moved.log() - moved.sum(dim=-1, keepdim=True).log()
    return torch.where(bags > 1, log_moved, log_proba)
