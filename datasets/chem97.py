"""CH: A-level examinations in chemistry, England, 1997.

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "chem97",
    code="CH",
    target="grade_A_or_B",
    positive="1",
    sha256="e5ec704830e3105d9f2425c6dd28cc27eed41de03f7879da134175bbb2584d63",
    natural_keys=("school", "lea"),
    licence="none stated",
    redistributable=False,
    reference="Fielding, Yang & Goldstein 2003",
)
def chem97(frame: DataFrame) -> DataFrame:
    """Pupils: grade A or B in A-level chemistry?

    `Chem97` of the R package mlmRev, without pupil numbers and the centred GCSE score. Positive is a score of 8 or 10.
    School and local authority are categories. Read from `chem97.parquet` in the data directory.
    """
    return frame
