"""VF: claims on vehicle insurance, 1994 to 1996.

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "vehicle_fraud",
    code="VF",
    target="FraudFound_P",
    positive="1",
    sha256="248249e1e50cd928ab1a6e979f255853c065e9887387e3a7b304d732752dbfb9",
    key_only=("year_month",),
    natural_keys=("year_month", "Make", "RepNumber"),
    licence="none stated",
    redistributable=False,
    reference="carclaims, example data of a database vendor",
)
def vehicle_fraud(frame: DataFrame) -> DataFrame:
    """Insurance claims: is the claim fraudulent?

    File `fraud_oracle.csv` (carclaims), without policy numbers. Year and month together make bags and are not a
    feature. Each of them alone is a feature. Read from `vehicle_fraud.parquet` in the data directory.
    """
    return frame
