"""A limit on rows that are compared pair by pair.

If every row is compared with every other (in an assignment, a Gram matrix or attention between rows), time and memory
grow at least with the square of the rows, and natural bags may have ten thousand. A bag of more than `MOST_COMPARED`
rows is therefore represented by a random sample. In each step, a new sample is drawn from the member's own random
stream, without replacement, and padding comes last. In smaller bags, all rows are compared in their order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from llpbench.core.model import Random

MOST_COMPARED = 1024
"""largest number of rows of a bag that are compared; no bag of the paper is larger"""


def some_rows(mask: Tensor, random: Random | None, most: int = MOST_COMPARED) -> Tensor | None:
    """Return the positions [bags, most] of a sample of each bag in `mask` [bags, rows], or None for all rows.

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
