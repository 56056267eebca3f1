"""Averages in place of a chosen epoch: training of networks without validation.

Choosing an epoch costs a tenth of the bags, and proportions choose little better than a fixed epoch. An averaged
network trains for a fixed number of epochs on all bags, those of the validation part included.

- `half`: the mean of the predictions after each epoch of the second half of training.
- `ema`: the prediction at a moving average of the weights, with a horizon of `HORIZON` epochs.

If a method has several stages, the average is of the last stage. The other stages hand over their last weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from llpbench.core.errors import LLPBenchError

KINDS = ("half", "ema")
EPOCHS = 30
"""default number of epochs"""
HORIZON = 3.0
"""epochs after which the share of older weights in the moving average has fallen to 1/e"""


@dataclass(frozen=True)
class Average:
    """A kind of average, and the number of epochs in each stage that does not declare its own."""

    kind: str
    epochs: int = EPOCHS

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the average that a text names, such as `half` or `ema:50`. Raises `LLPBenchError` for other texts."""
        kind, colon, number = text.partition(":")
        epochs = int(number) if number.isdecimal() else 0
        if kind not in KINDS or (colon and epochs < 1):
            raise LLPBenchError(
                f"average must be {' or '.join(KINDS)}, with a number of epochs if not {EPOCHS} (half:50), got {text!r}"
            )
        return cls(kind, epochs) if colon else cls(kind)

    def __str__(self) -> str:
        return f"{self.kind}:{self.epochs}"
