"""AV: pages of the Avila bible.

In `core`: redistributable, with 20,867 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "avila",
    code="AV",
    target="copyist",
    sha256="56da40b522f6fd92d42b71f9b20ccfb84c37c4c08dac58f4d7441c4fd0c1a220",
    licence="CC BY 4.0",
    redistributable=True,
    reference="De Stefano, Maniaci, Fontanella & Scotto di Freca 2018, UCI Machine Learning Repository",
)
def avila(frame: DataFrame) -> DataFrame:
    """Avila bible: which of twelve copyists wrote the page?

    Layout of four rows of text each, as z-scores over the whole file, as published.
    """
    return frame
