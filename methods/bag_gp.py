"""bag-gp: a smooth additive model of rows (a Gaussian process), fitted to the proportions of bags.

    logit f(x) = logit π + b + Σⱼ gⱼ(xⱼ) + Σⱼₗ gⱼₗ(xⱼ, xₗ) + …,  j, l: features
    b: a constant;  each g is a Gaussian process;  p̄ₖ = mean f + noise

The logit of a row is a sum of smooth effects: of single features, of pairs, and of all features together. Each effect
is a Gaussian process. A bag's proportion is the mean of its rows' probabilities, plus noise. The scales of the effects
are estimated from the evidence (marginal likelihood) of the proportions, without labels and without validation bags.

Bags may differ for reasons that neither the features nor chance explain. In such bags, features may act differently
between bags than between rows (the ecological fallacy). If `bag-gp` detects this, it refits with a prior that shrinks
the effects of features that hardly differ between bags. This does not always help: `bag-gp` fails most often on such
bags.

If rows seem to be chosen by their labels, logits are corrected (`blocks/linear.py`).

Aggregated Gaussian processes: Flaxman et al. 2015, Law et al. 2018. Additive kernels: Duvenaud et al. 2011.
`docs/direct-methods.md` has the details.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, LogUniform, Schema, register_method
from llpbench.blocks.bag_logits import LogitProcess, ProcessPredictor
from llpbench.blocks.bag_process import FittedProcess
from llpbench.blocks.components import ProcessSettings
from llpbench.blocks.design import some_bags
from llpbench.blocks.linear import correction


@dataclass(frozen=True)
class _BagGPParams(DirectParams):
    """Hyperparameters. The evidence chooses the scales of all effects."""

    link: Annotated[str, Choice("logit", "identity")] = "logit"
    """scale on which effects add up: logits, or probabilities"""
    lengthscale: Annotated[float, LogUniform(0.1, 1.0)] = 0.3
    """lengthscale of the effect of a numeric feature, in quantiles"""
    joint_lengthscale: Annotated[float, LogUniform(0.2, 2.0)] = 0.7
    """lengthscale of the effect of all features together; multiplied by the square root of their number"""
    most_pairs: Annotated[int, Choice(0, 50, 200)] = 200
    """largest number of pairs of features with an effect; divided by 4 if there are more than 1,000 bags"""
    draws: Annotated[int, Choice(0, 80)] = 80
    """number of posterior draws of the scales; with `draws=0`, or more than 256 bags, the posterior mode is used"""

    @property
    def process(self) -> ProcessSettings:
        """Settings of the process."""
        return ProcessSettings(
            lengthscale=self.lengthscale,
            joint_lengthscale=self.joint_lengthscale,
            most_pairs=self.most_pairs,
            draws=self.draws,
        )


@register_method("bag-gp", version=1, reference="after Law et al. 2018; Flaxman et al. 2015")
class BagGP(DirectMethod):
    """Additive Gaussian process on rows, fitted to the proportions of bags."""

    Params = _BagGPParams
    params: _BagGPParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> ProcessPredictor | FittedProcess:
        """Fit the process to shares, with scales chosen by the evidence; then to logits, with the same scales."""
        train = some_bags(train, rng)

        def fitted(part: BaggedRows) -> LogitProcess:
            return LogitProcess.of(part, self.params.process, rng)

        if self.params.link == "identity":
            return FittedProcess.of(train, self.params.process, rng)
        return ProcessPredictor(fitted(train), correction(fitted, train, schema))
