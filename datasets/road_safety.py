"""RO: Road safety, balanced (Grinsztajn et al. 2022).

Not in `core`: the package has no copy of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.frames import as_text
from llpbench.data.sources import OpenML

if TYPE_CHECKING:
    from pandas import DataFrame

CATEGORICAL = ("Was_Vehicle_Left_Hand_Drive?", "Urban_or_Rural_Area", "Sex_of_Casualty")
"""nominal features of OpenML; other copies store them as the numbers 0 and 1"""


@register_dataset(
    "road_safety",
    code="RO",
    source=OpenML(44161),
    target="SexofDriver",
    positive="1",
    rows=111_762,
    numeric=29,
    categorical=3,
    columns=(
        "Vehicle_Reference_df_res",
        "Vehicle_Type",
        "Vehicle_Manoeuvre",
        "Vehicle_Location-Restricted_Lane",
        "Hit_Object_in_Carriageway",
        "Hit_Object_off_Carriageway",
        "Was_Vehicle_Left_Hand_Drive?",
        "Age_of_Driver",
        "Age_Band_of_Driver",
        "Engine_Capacity_(CC)",
        "Propulsion_Code",
        "Age_of_Vehicle",
        "Location_Easting_OSGR",
        "Location_Northing_OSGR",
        "Longitude",
        "Latitude",
        "Police_Force",
        "Number_of_Vehicles",
        "Number_of_Casualties",
        "Local_Authority_(District)",
        "1st_Road_Number",
        "2nd_Road_Number",
        "Urban_or_Rural_Area",
        "Vehicle_Reference_df",
        "Casualty_Reference",
        "Sex_of_Casualty",
        "Age_of_Casualty",
        "Age_Band_of_Casualty",
        "Pedestrian_Location",
        "Pedestrian_Movement",
        "Casualty_Type",
        "Casualty_IMD_Decile",
    ),
    balance={"0": 55_881, "1": 55_881},
    licence="Open Government Licence v3.0",
    redistributable=True,
    reference="UK Department for Transport 2015; Grinsztajn, Oyallon & Varoquaux 2022",
)
def road_safety(frame: DataFrame) -> DataFrame:
    """Road accidents in Great Britain: what was the sex of the driver?"""
    return frame.assign(**{column: as_text(frame[column]) for column in CATEGORICAL})
