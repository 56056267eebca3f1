"""Supervised: the ceiling, trained on the label of every row.

Not a method for label proportions: it is given what they are not, to show what is left to gain. The same code on bags
of one row, where the proportion loss is cross-entropy: there is no second path for labels.
"""

from __future__ import annotations

from torch import Tensor

from llpbench.blocks.losses import proportion_loss
from llpbench.core.bags import Bags
from llpbench.core.method import Method, Now, Stage
from llpbench.core.model import Model
from llpbench.core.registry import register_method


@register_method("supervised", role="ceiling")
class Supervised(Method):
    """Cross-entropy on the label of every training row."""

    supervision = "instances"
    stages = (Stage(unit="rows"),)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Cross-entropy: the proportion loss of bags of one row."""
        del now
        return proportion_loss(model.log_proba(bags), bags)
