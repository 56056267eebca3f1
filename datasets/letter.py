"""LE: images of the 26 capital letters, distorted.

In `core`: redistributable, with 20,000 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "letter",
    code="LE",
    target="letter",
    rows=20_000,
    numeric=16,
    categorical=0,
    columns=(
        "x-box",
        "y-box",
        "width",
        "high",
        "onpix",
        "x-bar",
        "y-bar",
        "x2bar",
        "y2bar",
        "xybar",
        "x2ybr",
        "xy2br",
        "x-ege",
        "xegvy",
        "y-ege",
        "yegvx",
    ),
    balance={
        "A": 789,
        "B": 766,
        "C": 736,
        "D": 805,
        "E": 768,
        "F": 775,
        "G": 773,
        "H": 734,
        "I": 755,
        "J": 747,
        "K": 739,
        "L": 761,
        "M": 792,
        "N": 783,
        "O": 753,
        "P": 803,
        "Q": 783,
        "R": 758,
        "S": 748,
        "T": 796,
        "U": 813,
        "V": 764,
        "W": 752,
        "X": 787,
        "Y": 786,
        "Z": 734,
    },
    licence="CC BY 4.0",
    redistributable=True,
    reference="Frey & Slate 1991, UCI Machine Learning Repository",
)
def letter(frame: DataFrame) -> DataFrame:
    """Capital letters in 20 fonts, distorted: which of 26 is it?

    Features are counts and moments of the pixels that are on, scaled to whole numbers from 0 to 15.
    """
    return frame
