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
    sha256="28ec101c2991f6b6379059187000d5beb1379567e21ac649c87f56f17e25ad9d",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Tromp 1995, UCI Machine Learning Repository; OpenML 40668",
)
def connect_4(frame: DataFrame) -> DataFrame:
    """Connect-4: does the first player win, lose or draw?

    The 42 fields, each x (first player), o or b (blank). The outcome is that of perfect play, without noise.
    """
    return frame
