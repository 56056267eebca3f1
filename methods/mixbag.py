"""MixBag: train also on bags that are mixed from two bags, with an interval for their unknown proportions.

    L = −Σ_c p̃_c log( mean f of a mixed bag )_c,  without classes whose mean f is in an interval around p̃_c
    p̃: proportions expected in the mixed bag

Asanomi, Matsuo, Suehiro & Bise 2023. With probability 1/2, a bag k is replaced by g of its rows and g' rows of another
bag l. The target is p = a p_k + (1 - a) p_l, a = g / (g + g'). Rows are drawn at random, so in 99 of 100 cases their
proportions lie within 2.576 standard errors of the target. A class whose mean prediction is inside this interval has no
loss. The others have -p_c log(mean prediction). As published, classes are skipped one by one, so the remaining loss is
not a cross-entropy. Bags that are not mixed have DLLP's loss. Differences from the published code:

- Rows are drawn without replacement. Standard errors shrink by sqrt((m - g) / (m - 1)), and a whole bag has
  no error.
- The partner is the next bag of the step. Bags are not mixed with suppressed bags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from llpbench import Bags, Method, MethodParams, Model, Now, Random, Uniform, losses, register_method

QUANTILE = 2.575829
"""quantile of the normal distribution, two-sided 99 %"""


@dataclass(frozen=True)
class _MixBagParams(MethodParams):
    """Hyperparameters of the mixtures."""

    probability: Annotated[float, Uniform(0.0, 1.0)] = 0.5
    """probability that a bag is mixed"""


@register_method("mixbag", version=1, reference="Asanomi et al. 2023", extra=True)
class MixBag(Method):
    """DLLP on bags and on mixtures of two bags."""

    Params = _MixBagParams
    params: _MixBagParams

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the mean over known bags, mixed or not, of -sum_c p_c log(mean prediction) outside intervals."""
        assert model.random is not None
        log_proba, sizes = model.log_proba(bags), bags.mask.sum(dim=-1).float()
        partner = torch.arange(len(sizes), device=sizes.device).roll(-1)
        mixed = (model.random.uniform(len(sizes)) < self.params.probability) & bags.known & bags.known[partner]
        mixed = mixed & (partner != partner.roll(1))  # a bag alone in its step has no partner
        kept = (model.random.uniform(len(sizes)) * sizes).round().clamp(min=1).minimum(sizes)
        own = torch.where(mixed, kept, sizes)
        other = torch.where(mixed, (sizes[partner] * (1 - own / sizes)).round(), 0.0)
        mine = _some_of(log_proba, bags.mask, own, model.random)
        theirs = _some_of(log_proba[partner], bags.mask[partner], other, model.random)
        log_mean = torch.logaddexp(mine, theirs) - (own + other).log().unsqueeze(-1)
        share = (own / (own + other)).unsqueeze(-1)
        p, q = bags.proportions, bags.proportions[partner]
        target = share * p + (1 - share) * q
        of_own = _standard_error(p, own, sizes)
        of_other = _standard_error(q, other, sizes[partner])
        width = QUANTILE * (share * of_own + (1 - share) * of_other)
        inside = mixed.unsqueeze(-1) & ((log_mean.detach().exp() - target).abs() < width)
        loss = torch.xlogy(target, target) - target * log_mean
        return losses.masked_mean(torch.where(inside, 0.0, loss).sum(dim=-1), bags.known)


def _some_of(log_proba: Tensor, mask: Tensor, number: Tensor, random: Random) -> Tensor:
    """Return the log of the summed predictions of `number` [bags] random rows of each bag [bags, classes]."""
    rank = random.uniform(*mask.shape).masked_fill(~mask, 2.0).argsort(dim=-1).argsort(dim=-1)
    chosen = (rank < number.unsqueeze(-1)) & mask
    return log_proba.masked_fill(~chosen.unsqueeze(-1), -1e9).logsumexp(dim=-2)


def _standard_error(proportions: Tensor, drawn: Tensor, sizes: Tensor) -> Tensor:
    """Return standard errors [bags, classes] of the proportions among `drawn` of `sizes` rows, both [bags]."""
    variance = proportions * (1 - proportions) / drawn.clamp(min=1).unsqueeze(-1)
    left = (sizes - drawn) / (sizes - 1).clamp(min=1)
    return (variance * left.clamp(min=0).unsqueeze(-1)).sqrt()
