"""bag-gp: an additive Gaussian process on rows, observed through the means of bags.

The logit of a row is a sum of smooth effects: of single features, of pairs, and of all features together. Each effect
is a Gaussian process. A bag's proportion is the mean of its rows' probabilities, plus noise. The scales of the effects
maximise the evidence of the bags. This selects a model without labels and without validation.

Bags may differ for reasons that neither the features nor chance explain. Then effects between bags need not hold
between rows (the ecological fallacy). In this case the prior expects small effects from features that hardly differ
between bags. `bag-gp` still fails most often in this case.

Aggregated Gaussian processes: Flaxman et al. 2015, Law et al. 2018. Additive kernels: Duvenaud et al. 2011.
`docs/direct-methods.md` has the details.
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
    """Hyperparameters. The evidence chooses the scales of all effects."""

    link: Annotated[str, Choice("logit", "identity")] = "logit"
    """scale on which effects add up: logits, or probabilities"""
    lengthscale: Annotated[float, LogUniform(0.1, 1.0)] = 0.3
    """lengthscale of the effect of a number, in quantiles"""
    joint_lengthscale: Annotated[float, LogUniform(0.2, 2.0)] = 0.7
    """lengthscale of the effect of all features together, times the root of their number"""
    most_pairs: Annotated[int, Choice(0, 50, 200)] = 200
    """largest number of pairs with their own effect; a quarter of it with more than 1,000 bags"""
    draws: Annotated[int, Choice(0, 80)] = 80
    """posterior draws of the scales, with up to 256 bags; 0 uses their mode"""

    @property
    def process(self) -> ProcessSettings:
        """Settings of the process."""
        return ProcessSettings(
            lengthscale=self.lengthscale,
            joint_lengthscale=self.joint_lengthscale,
            most_pairs=self.most_pairs,
            draws=self.draws,
        )


@register_method("bag-gp", reference="after Law et al. 2018; Flaxman et al. 2015")
class BagGP(DirectMethod):
    """Additive Gaussian process, observed through the means of bags."""

    Params = BagGPParams
    params: BagGPParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> ProcessPredictor:
        """Fit shares first, with scales chosen by the evidence; then logits at these scales."""
        del schema
        train = train.where_known()
        shares = fit_wary(train, self.params.process, rng)
        return ProcessPredictor(shares if self.params.link == "identity" else fit_logits(shares, train))
