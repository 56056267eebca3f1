"""CP: defendants in Broward County, Florida.

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "compas",
    code="CP",
    target="two_year_recid",
    positive="1",
    sha256="137d1b579d439b1c0fe8783adf7fe107d721e77065c3c690d872fc52ba1efb26",
    key_only=("compas_screening_date",),
    natural_keys=("compas_screening_date",),
    licence="none stated",
    redistributable=False,
    reference="Larson, Mattu, Kirchner & Angwin 2016, ProPublica",
)
def compas(frame: DataFrame) -> DataFrame:
    """Defendants: is the person arrested again within two years?

    ProPublica's file `compas-scores-two-years.csv`, with ProPublica's filter. Names, scores and columns known only
    later are left out. The day of screening makes bags and is not a feature. Read from `compas.parquet` in the data
    directory.
    """
    return frame
