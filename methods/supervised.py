"""Supervised: a ceiling, trained on the label of every row.

    L = −meanᵢ log f(xᵢ)_c,  c the label of row i

This is not a method for label proportions. It has all labels and shows how much could be gained. Bags have one row
each, so the proportion loss is cross-entropy and labels need no separate code.
"""

from __future__ import annotations

from torch import Tensor

from llpbench import Bags, Method, Model, Now, Stage, losses, register_method


@register_method("supervised", version=1, role="ceiling")
class Supervised(Method):
    """Cross-entropy on the label of every training row."""

    supervision = "instances"
    stages = (Stage(unit="rows"),)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the cross-entropy, computed as the proportion loss of bags of one row."""
        return losses.proportion_loss(model.log_proba(bags), bags)
