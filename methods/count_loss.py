"""Count loss: train a network to maximise the likelihood of the counts of bags.

    L = −meanₖ log P( Σᵢ yᵢ = nₖ ),  yᵢ ~ f(xᵢ) independent

The counts of a bag are sums of its rows' classes, which are independent given the features. The loss is minus the
logarithm of their probability. DLLP only requires that the mean prediction of a bag equals its proportion. Here a bag
with confident predictions must match its count more closely than a bag with predictions near 1/2.

In bags of more than 12 rows, sums are approximated by normal distributions. With more than two classes, each is counted
against all others.

Zhang et al. 2020, Learning from Aggregate Observations. Shukla et al. 2023, A Unified Approach to Count-Based
Weakly-Supervised Learning.
"""

from __future__ import annotations

from torch import Tensor

from llpbench import Bags, Method, Model, Now, losses, register_method


@register_method("count-loss", version=1, reference="after Zhang et al. 2020; Shukla et al. 2023")
class CountLoss(Method):
    """Network that maximises the likelihood of the counts of bags."""

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return minus the log likelihood of the counts, exact if no bag has more than 12 rows."""
        # explicit, so that another default does not change results
        return losses.count_loss(model.log_proba(bags), bags, exact=12)
