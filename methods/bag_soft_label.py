"""Bag soft labels: every row gets the proportions of its bag as a soft label.

    L = meanᵢ KL( p̄ of i's bag ‖ f(xᵢ) ),  over all training rows i

This is the simplest floor. Its optimum is P(x) = E[proportions of x's bag | x]. It is strong if bags depend on features
(ordered bags) and learns little if they do not. DLLP compares the mean prediction of a bag with the proportions (log
of a mean). Bag soft labels compare the prediction of each row with the proportions (mean of logs). Some published DLLP
code computes this loss by mistake.
"""

from __future__ import annotations

from torch import Tensor

from llpbench import Bags, Method, Model, Now, Stage, losses, register_method


@register_method("bag-soft-label", version=1, role="floor", reference="after Musicant et al. 2007")
class BagSoftLabel(Method):
    """Train on shuffled rows with their bag's proportions as labels."""

    stages = (Stage(unit="rows"),)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the cross-entropy with soft labels, computed as the proportion loss of bags of one row."""
        return losses.proportion_loss(model.log_proba(bags), bags)
