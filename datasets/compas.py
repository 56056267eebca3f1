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
    rows=6_172,
    numeric=6,
    categorical=4,
    columns=(
        "sex",
        "age",
        "race",
        "juv_fel_count",
        "juv_misd_count",
        "juv_other_count",
        "priors_count",
        "days_b_screening_arrest",
        "c_charge_degree",
        "c_charge_desc",
    ),
    key_only=("compas_screening_date",),
    balance={"0": 3_363, "1": 2_809},
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
