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
    sha256="09886603df9d96fcc35a6977d2859b2f7cb5356a56be0a4465fb32a0ac7d9146",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Frey & Slate 1991, UCI Machine Learning Repository",
)
def letter(frame: DataFrame) -> DataFrame:
    """Capital letters in 20 fonts, distorted: which of 26 is it?

    Features are counts and moments of the pixels that are on, scaled to whole numbers from 0 to 15.
    """
    return frame
