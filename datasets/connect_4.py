"""C4: positions of Connect-4 after eight plies.

In `core`: redistributable, with 67,557 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "connect_4",
    code="C4",
    target="outcome",
    rows=67_557,
    numeric=0,
    categorical=42,
    columns=tuple(f"{file}{rank}" for file in "abcdefg" for rank in range(1, 7)),
    balance={"draw": 6_449, "loss": 16_635, "win": 44_473},
    licence="CC BY 4.0",
    redistributable=True,
    reference="Tromp 1995, UCI Machine Learning Repository; OpenML 40668",
)
def connect_4(frame: DataFrame) -> DataFrame:
    """Connect-4: does the first player win, lose or draw?

    The 42 fields, each x (first player), o or b (blank). The outcome is that of perfect play, without noise.
    """
    return frame
