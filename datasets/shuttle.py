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
    rows=58_000,
    numeric=9,
    categorical=0,
    columns=(
        "A1",
        "A2",
        "A3",
        "A4",
        "A5",
        "A6",
        "A7",
        "A8",
        "A9",
    ),
    balance={
        "Bpv.Close": 10,
        "Bpv.Open": 13,
        "Bypass": 3_267,
        "Fpv.Close": 50,
        "Fpv.Open": 171,
        "High": 8_903,
        "Rad.Flow": 45_586,
    },
    licence="CC BY 4.0",
    redistributable=True,
    reference="Statlog, UCI Machine Learning Repository; OpenML 40685",
)
def shuttle(frame: DataFrame) -> DataFrame:
    """Space Shuttle: which of seven states?

    The classes are those of Statlog. Four of them have fewer than 200 rows.
    """
    return frame
