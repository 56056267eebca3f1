"""A cap on rows that are compared pair by pair.

Where every row is held against every other (an assignment, a Gram matrix, attention between rows), time and memory grow
with the square of the rows or worse, and natural bags may have ten thousand. Of a bag of more than `MOST_COMPARED` rows
a random sample stands for all: redrawn in each step from the member's own stream, without replacement, padding last.
Up to there nothing is drawn, and all rows are compared in their order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from llpbench.core.model import Random

MOST_COMPARED = 1024
"""rows of a bag: the largest bags of the paper are compared whole"""


def some_rows(mask: Tensor, random: Random | None, most: int = MOST_COMPARED) -> Tensor | None:
    """Which rows of each bag stand for all: [bags, most] positions in `mask` [bags, rows], or None for all of them.

    Without a random stream, as in prediction, always the same.
    """
    if mask.shape[-1] <= most:
        return None
    stream = random if random is not None else Random(torch.zeros((), dtype=torch.int64, device=mask.device))
    return (stream.bits(*mask.shape) + mask.logical_not() * 2**32).argsort(dim=-1)[..., :most]


def at(values: Tensor, chosen: Tensor | None) -> Tensor:
    """`values` [bags, rows] or [bags, rows, dim] of the rows `chosen` [bags, most]; all where that is None."""
    if chosen is None:
        return values
    if values.dim() == chosen.dim():
        return values.gather(-1, chosen)
    return values.gather(-2, chosen.unsqueeze(-1).expand(*chosen.shape, values.shape[-1]))
