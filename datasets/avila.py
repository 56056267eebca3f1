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
    rows=20_867,
    numeric=10,
    categorical=0,
    columns=(
        "intercolumnar_distance",
        "upper_margin",
        "lower_margin",
        "exploitation",
        "row_number",
        "modular_ratio",
        "interlinear_spacing",
        "weight",
        "peak_number",
        "modular_ratio_to_interlinear_spacing",
    ),
    balance={
        "A": 8_572,
        "B": 10,
        "C": 206,
        "D": 705,
        "E": 2_190,
        "F": 3_923,
        "G": 893,
        "H": 1_039,
        "I": 1_663,
        "W": 89,
        "X": 1_044,
        "Y": 533,
    },
    licence="CC BY 4.0",
    redistributable=True,
    reference="De Stefano, Maniaci, Fontanella & Scotto di Freca 2018, UCI Machine Learning Repository",
)
def avila(frame: DataFrame) -> DataFrame:
    """Avila bible: which of twelve copyists wrote the page?

    Layout of four rows of text each, as z-scores over the whole file, as published.
    """
    return frame
