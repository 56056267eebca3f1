"""NU: applications for nursery schools in Ljubljana.

In `core`: redistributable, with 12,958 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "nursery",
    code="NU",
    target="class",
    sha256="9d60a0438696704fe24fd945b049383033138e241deb47ae557649e0f48ff324",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Rajkovic 1997, UCI Machine Learning Repository; OpenML 26",
)
def nursery(frame: DataFrame) -> DataFrame:
    """Nursery schools: which of four recommendations does the application get?

    A full grid of the attributes, without noise. The two rows of class `recommend` are left out, too few for three
    parts of a split.
    """
    return frame[frame["class"] != "recommend"]
