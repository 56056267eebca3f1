"""Bag contrast: train a network to have the same residual in all bags.

    L = meanₖ<ₗ ‖ rₖ − rₗ ‖² / (1/mₖ + 1/mₗ) + level ‖ r̄ ‖²,  rₖ = meanᵢ f(xᵢ) − p̄ₖ
    r̄: mean residual of all rows

A bag's residual r_k contains noise of variance Var(y - f) / m_k and an offset that all bags share. The offset carries
no information about rows, and differences remove it. In random bags of any size, the first term is an unbiased estimate
of sum_c Var(y_c - f_c). With `level` 1, the expectation of L is the Brier score plus the variance of the mean residual.

`form=genbags` is the loss of Saket, Raghuveer & Ravindran 2022 (generalized bags). It compares bags combined with
random weights w ~ N(0, Sigma): E_w (sum_k w_k d_k)^2 = d' Sigma d, d_k = m_k r_k. Differences from LLP-Bench:

- The loss is the expectation over w, not a mean of 60 draws. It is divided by the step's number of rows, not summed.
- A block is all B bags of a step (`--bags-per-step`). Variances are 1.001 and covariances -.99 / (B - 1). For B = 4
  these are the published values.
- The loss is a sum over all classes, even over two. LLP-Bench uses only the second of two.

If only one bag of a step has known counts, `contrast` has only the term of `level`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from llpbench import Bags, Choice, Method, MethodParams, Model, Now, When, losses, register_method


@dataclass(frozen=True)
class _BagContrastParams(MethodParams):
    """Hyperparameters of the comparison of bags."""

    form: Annotated[str, Choice("contrast", "genbags")] = "contrast"
    """`contrast`: squared differences of residuals; `genbags`: the expected loss of generalized bags"""
    level: Annotated[float, Choice(0.0, 0.1, 1.0, 10.0), When("form", "contrast")] = 1.0
    """weight of the squared mean residual of the step"""


@register_method("bag-contrast", version=1, reference="after Saket, Raghuveer & Ravindran 2022", extra=True)
class BagContrast(Method):
    """Compare the residuals of bags with each other."""

    Params = _BagContrastParams
    params: _BagContrastParams

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the loss of differences and level, or the quadratic form of generalized bags."""
        bag_residuals = losses.BagMeans.residuals(model.log_proba(bags), bags)
        residuals, sizes = bag_residuals
        if self.params.form == "genbags":
            return _genbags(residuals * sizes.unsqueeze(-1), sizes)
        level = bag_residuals.overall.square().sum()
        return _pair_contrast(residuals, sizes) + self.params.level * level


def _genbags(differences: Tensor, sizes: Tensor) -> Tensor:
    """Return d' Sigma d / rows of the step, summed over classes.

    `differences` d [bags, classes] are numbers of rows; `sizes` [bags] are 0 for bags without known counts.
    """
    covariance = 0.99 / ((sizes > 0).sum() - 1).clamp(min=1)
    form = (1.001 + covariance) * differences.square().sum(dim=0) - covariance * differences.sum(dim=0).square()
    return form.sum() / sizes.sum().clamp(min=1.0)


def _pair_contrast(residuals: Tensor, sizes: Tensor) -> Tensor:
    """Return the mean over pairs of bags of (1/m_k + 1/m_l)^-1 |r_k - r_l|^2, 0 without pairs.

    `residuals` [bags, classes]; `sizes` [bags] are 0 for bags to ignore.
    """
    squares = (residuals.unsqueeze(0) - residuals.unsqueeze(1)).square().sum(dim=-1)
    product, total = sizes.unsqueeze(0) * sizes.unsqueeze(1), sizes.unsqueeze(0) + sizes.unsqueeze(1)
    paired = torch.ones_like(squares, dtype=torch.bool).triu(1) & (product > 0)
    return losses.masked_mean(product / total.clamp(min=1.0) * squares, paired)
