"""A limit on rows that are compared pair by pair.

If every row is compared with every other (in an assignment, a Gram matrix or attention between rows), time and memory
grow with the square of the rows or worse, and natural bags may have ten thousand. A random sample represents a bag of
more than `MOST_COMPARED` rows. It is drawn again in each step from the member's own stream, without replacement,
padding last. Up to this limit nothing is drawn, and all rows are compared in order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from llpbench.core.model import Random

MOST_COMPARED = 1024
"""rows of a bag; the largest bags of the paper are compared completely"""


def some_rows(mask: Tensor, random: Random | None, most: int = MOST_COMPARED) -> Tensor | None:
    """Return positions [bags, most] in `mask` [bags, rows] of a sample of each bag, or None for all rows.

    Without a random stream, as in prediction, the sample is always the same.
    """
    if mask.shape[-1] <= most:
        return None
    stream = random if random is not None else Random(torch.zeros((), dtype=torch.int64, device=mask.device))
    return (stream.bits(*mask.shape) + mask.logical_not() * 2**32).argsort(dim=-1)[..., :most]


def at(values: Tensor, chosen: Tensor | None) -> Tensor:
    """Return `values` [bags, rows] or [bags, rows, dim] of the rows `chosen` [bags, most]; None: all rows."""
    if chosen is None:
        return values
    if values.dim() == chosen.dim():
        return values.gather(-1, chosen)
    return values.gather(-2, chosen.unsqueeze(-1).expand(*chosen.shape, values.shape[-1]))
