"""Bag contrast: residuals of bags against each other.

A bag's residual r_k = mean prediction - proportion holds chance of variance Var(y - f) / m_k and an offset common to
all bags, which says nothing of rows. The offset drops out of differences:

    L = mean over pairs k < l of (1/m_k + 1/m_l)^-1 |r_k - r_l|^2 + level * |mean residual|^2

The first term is an unbiased estimate of sum_c Var(y_c - f_c) in random bags of any size; with `level` 1 the sum is on
the scale of the Brier score, but for the variance of the mean residual itself.

`form=genbags` is Saket, Raghuveer & Ravindran 2022 (generalized bags), whose targets are combinations of bags with
weights w ~ N(0, Sigma): E_w (sum_k w_k d_k)^2 = d' Sigma d, d_k = m_k r_k. Different from the code of LLP-Bench:

- The expectation is taken instead of 60 draws, and the loss is divided by the rows of the step instead of summed.
- Blocks are the bags of a step (`--bags-per-step`), however many: variances are 1.001 and covariances -.99 / (B - 1),
  which are the published ones for blocks of four.
- Every class counts, not the second of two alone.

It needs two known bags in a step; a single one has the level alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from llpbench.blocks.residuals import bag_residuals, bag_sizes, mean_residual, pair_contrast
from llpbench.core.bags import Bags
from llpbench.core.method import Method, MethodParams, Now
from llpbench.core.model import Model
from llpbench.core.ranges import Choice, When
from llpbench.core.registry import register_method


@dataclass(frozen=True)
class BagContrastParams(MethodParams):
    """Hyperparameters of the comparison of bags."""

    form: Annotated[str, Choice("contrast", "genbags")] = "contrast"
    """unbiased differences of residuals, or the expected loss of generalized bags"""
    level: Annotated[float, Choice(0.0, 0.1, 1.0, 10.0), When("form", "contrast")] = 1.0
    """weight of the squared mean residual of the step"""


@register_method("bag-contrast", reference="after Saket, Raghuveer & Ravindran 2022", extra=True)
class BagContrast(Method):
    """Compare the residuals of bags with each other."""

    Params = BagContrastParams
    params: BagContrastParams

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Differences of residuals and their level, or a quadratic form of counts."""
        del now
        residuals, sizes = bag_residuals(model.log_proba(bags), bags), bag_sizes(bags)
        if self.params.form == "genbags":
            return genbags(residuals * sizes.unsqueeze(-1), sizes)
        level = mean_residual(residuals, sizes).square().sum()
        return pair_contrast(residuals, sizes) + self.params.level * level


def genbags(differences: Tensor, sizes: Tensor) -> Tensor:
    """d' Sigma d / rows of the step, summed over classes.

    `differences` d [bags, classes] in rows, `sizes` [bags] with 0 for bags that take no part.
    """
    covariance = 0.99 / ((sizes > 0).sum() - 1).clamp(min=1)
    form = (1.001 + covariance) * differences.square().sum(dim=0) - covariance * differences.sum(dim=0).square()
    return form.sum() / sizes.sum().clamp(min=1.0)
