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
    sha256="f4cc28ff6851f4e1d8848b0920b88876ff80a95252a3bcf8e2ceea26410c8fbf",
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
