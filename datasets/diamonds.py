"""DI: diamonds and the quality of their cut, in five classes.

In `core`: redistributable, with 53,940 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "diamonds",
    code="DI",
    target="cut",
    sha256="039fcc6e91c9af17775772f373b2c3ad6b07e3d35f0b77648f31b59aa14fee9f",
    licence="MIT",
    redistributable=True,
    reference="Wickham 2016, ggplot2",
)
def diamonds(frame: DataFrame) -> DataFrame:
    """Diamonds: which of five qualities does the cut have?

    Classes are in string order (Fair, Good, Ideal, Premium, Very Good). Methods do not use the better order (Fair,
    Good, Very Good, Premium, Ideal).
    """
    return frame
