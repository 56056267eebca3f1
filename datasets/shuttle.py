"""SH: states of the radiators of the Space Shuttle.

In `core`: redistributable, with 58,000 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "shuttle",
    code="SH",
    target="class",
    sha256="4faccec8a0f6f209ff9a14eda2783b9526bf7c8bfcfa95bca2ad4d2f55f6007e",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Statlog, UCI Machine Learning Repository; OpenML 40685",
)
def shuttle(frame: DataFrame) -> DataFrame:
    """Space Shuttle: which of seven states?

    The classes are those of Statlog. Four of them have fewer than 200 rows.
    """
    return frame
