"""Bag soft labels: every row gets its bag's proportions as its soft label.

The simplest floor. Its optimum is P(x) = E[proportions of x's bag | x]: trivial and robust, strong where bags depend on
features (ordered bags), empty where they do not. It is DLLP with rows instead of bags in a step: the mean of the logs
instead of the log of the mean, which some published "DLLP" code computes by mistake.
"""

from __future__ import annotations

from torch import Tensor

from llpbench.blocks.losses import proportion_loss
from llpbench.core.bags import Bags
from llpbench.core.method import Method, Now, Stage
from llpbench.core.model import Model
from llpbench.core.registry import register_method


@register_method("bag-soft-label", role="floor", reference="after Musicant et al. 2007")
class BagSoftLabel(Method):
    """Train on shuffled rows, each labelled with its bag's proportions."""

    stages = (Stage(unit="rows"),)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Cross-entropy with soft labels: the proportion loss of bags of one row."""
        del now
        return proportion_loss(model.log_proba(bags), bags)
