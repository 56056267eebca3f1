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
    rows=15_420,
    numeric=5,
    categorical=26,
    columns=(
        "Month",
        "WeekOfMonth",
        "DayOfWeek",
        "Make",
        "AccidentArea",
        "DayOfWeekClaimed",
        "MonthClaimed",
        "WeekOfMonthClaimed",
        "Sex",
        "MaritalStatus",
        "Age",
        "Fault",
        "PolicyType",
        "VehicleCategory",
        "VehiclePrice",
        "RepNumber",
        "Deductible",
        "DriverRating",
        "Days_Policy_Accident",
        "Days_Policy_Claim",
        "PastNumberOfClaims",
        "AgeOfVehicle",
        "AgeOfPolicyHolder",
        "PoliceReportFiled",
        "WitnessPresent",
        "AgentType",
        "NumberOfSuppliments",
        "AddressChange_Claim",
        "NumberOfCars",
        "Year",
        "BasePolicy",
    ),
    key_only=("year_month",),
    balance={"0": 14_497, "1": 923},
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
