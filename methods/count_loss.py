"""Count loss: the likelihood of a bag's counts, by a network.

The counts of a bag are sums of its rows' classes, independent given their features: minus the logarithm of their
probability is the loss. Zhang et al. 2020, Learning from Aggregate Observations; Shukla et al. 2023, A Unified
Approach to Count-Based Weakly-Supervised Learning. DLLP asks only that the mean prediction of a bag be its proportion;
here a bag whose predictions are sure must meet its count more closely than one of coin tosses.
"""

from __future__ import annotations

from torch import Tensor

from llpbench.blocks.losses import count_loss
from llpbench.core.bags import Bags
from llpbench.core.method import Method, Now
from llpbench.core.model import Model
from llpbench.core.registry import register_method


@register_method("count-loss", reference="after Zhang et al. 2020; Shukla et al. 2023")
class CountLoss(Method):
    """Maximum likelihood of the counts of bags."""

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Minus the log likelihood of the counts, exactly where no bag has more than 12 rows."""
        del now
        # said here, though it is the default: a method's source has to change with what it computes
        return count_loss(model.log_proba(bags), bags, exact=12)
