"""PH: vowels of French speakers.

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "phoneme",
    code="PH",
    target="class",
    positive="oral",
    rows=5_404,
    numeric=5,
    categorical=0,
    columns=(
        "Aa",
        "Ao",
        "Dcl",
        "Iy",
        "Sh",
    ),
    balance={"nasal": 3_818, "oral": 1_586},
    licence="none stated",
    redistributable=False,
    reference="ELENA project 1995",
)
def phoneme(frame: DataFrame) -> DataFrame:
    """Vowels: nasal or oral?

    Amplitudes of five harmonics as in KEEL, not standardised (OpenML 1489 is). Read from `phoneme.parquet` in the data
    directory.
    """
    return frame
