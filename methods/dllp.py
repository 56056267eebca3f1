"""DLLP: match the mean prediction of a bag to its label proportions.

    L = meanₖ KL( p̄ₖ ‖ meanᵢ f(xᵢ) )

Ardehaly & Culotta 2017. The loss is averaged over the bags of a step.
"""

from __future__ import annotations

from torch import Tensor

from llpbench import Bags, Method, Model, Now, losses, register_method


@register_method("dllp", version=1, reference="Ardehaly & Culotta 2017")
class DLLP(Method):
    """Match each bag's mean prediction to its label proportions."""

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the KL divergence of mean predictions from proportions."""
        return losses.proportion_loss(model.log_proba(bags), bags)
