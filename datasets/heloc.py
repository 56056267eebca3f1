"""HE: applications for home equity credit lines.

Not in `core`: the terms of the challenge forbid redistribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "heloc",
    code="HE",
    target="RiskPerformance",
    positive="Bad",
    sha256="691025c016cda7882636f0762bfa7451e24999ecc5438b6f6ef4dc5fdd34f3fa",
    licence="FICO challenge terms",
    redistributable=False,
    reference="FICO 2018; OpenML 45553 is a cleaned version",
)
def heloc(frame: DataFrame) -> DataFrame:
    """Credit lines: is the risk performance bad?

    File of the FICO challenge on explainable machine learning, without applications that have no bureau record. -8 and
    single -9 are missing values, -7 stays a number. Read from `heloc.parquet` in the data directory.
    """
    return frame
