"""bag-gp: an additive Gaussian process on rows, seen through the means of bags.

The logit of a row is a sum of smooth effects of its features, of their pairs and of all features together, each a
Gaussian process; a bag's proportion is the mean of its rows' probabilities, plus noise. Bag histograms are all that it
needs of the rows. The scales of the effects are chosen by the evidence of the bags: model selection without labels and
without validation.

Where neither features nor chance explain how bags differ, what holds between bags need not hold between rows (the
ecological fallacy): there effects of features that hardly differ between bags are expected to be small, and it still
fails most.

Aggregated Gaussian processes: Flaxman et al. 2015, Law et al. 2018; additive kernels: Duvenaud et al. 2011.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench.blocks.bag_logits import ProcessPredictor, fit_logits
from llpbench.blocks.bag_process import ProcessSettings, fit_wary
from llpbench.core.bags import BaggedRows, Schema
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.ranges import Choice, LogUniform
from llpbench.core.registry import register_method


@dataclass(frozen=True)
class BagGPParams(DirectParams):
    """Hyperparameters; the scales of all effects are found by the evidence."""

    link: Annotated[str, Choice("logit", "identity")] = "logit"
    """on what scale effects add up: logits, or probabilities themselves"""
    lengthscale: Annotated[float, LogUniform(0.1, 1.0)] = 0.3
    """of the effect of a number, in quantiles"""
    joint_lengthscale: Annotated[float, LogUniform(0.2, 2.0)] = 0.7
    """of the effect of all features together, times the root of their number"""
    most_pairs: Annotated[int, Choice(0, 50, 200)] = 200
    """pairs of features that have an effect of their own; a quarter of it with more than 1,000 bags"""
    draws: Annotated[int, Choice(0, 80)] = 80
    """of the scales from their posterior, with up to 256 bags; 0: their mode"""

    @property
    def process(self) -> ProcessSettings:
        """What the process is told."""
        return ProcessSettings(
            lengthscale=self.lengthscale,
            joint_lengthscale=self.joint_lengthscale,
            most_pairs=self.most_pairs,
            draws=self.draws,
        )


@register_method("bag-gp", reference="after Law et al. 2018; Flaxman et al. 2015")
class BagGP(DirectMethod):
    """An additive Gaussian process when only bag means are observed."""

    Params = BagGPParams
    params: BagGPParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> ProcessPredictor:
        """Shares first, whose evidence finds the scales; then, at these scales, logits."""
        del schema
        train = train.where_known()
        shares = fit_wary(train, self.params.process, rng)
        return ProcessPredictor(shares if self.params.link == "identity" else fit_logits(shares, train))
