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
    rows=60_420,
    numeric=0,
    categorical=11,
    columns=(
        "sex",
        "age",
        "household_position",
        "household_size",
        "prev_residence_place",
        "citizenship",
        "country_birth",
        "edu_level",
        "economic_status",
        "cur_eco_activity",
        "Marital_status",
    ),
    balance={"2_1": 28_763, "5_4_9": 31_657},
    licence="none stated",
    redistributable=False,
    reference="Statistics Netherlands 2001; Le Quy et al. 2022",
)
def dutch_census(frame: DataFrame) -> DataFrame:
    """Census: does the person have a high-level occupation?

    All features are codes, and 70 % of the rows are duplicates. Read from `dutch_census.parquet` in the data directory.
    """
    return frame
