"""DU: the Dutch census of 2001.

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "dutch_census",
    code="DU",
    target="occupation",
    positive="2_1",
    sha256="91a5ed0a56083dc00b9025006c517de2547180fa4d882093372ee783e6c94dc5",
    licence="none stated",
    redistributable=False,
    reference="Statistics Netherlands 2001; Le Quy et al. 2022",
)
def dutch_census(frame: DataFrame) -> DataFrame:
    """Census: does the person have a high-level occupation?

    All features are codes, and 70 % of the rows are duplicates. Read from `dutch_census.parquet` in the data directory.
    """
    return frame
