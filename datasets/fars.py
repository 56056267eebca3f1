"""FA: persons in fatal US road crashes, 2001.

In `core`: redistributable, with 100,959 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "fars",
    code="FA",
    target="INJURY_SEVERITY",
    rows=100_959,
    numeric=5,
    categorical=24,
    columns=(
        "CASE_STATE",
        "AGE",
        "SEX",
        "PERSON_TYPE",
        "SEATING_POSITION",
        "RESTRAINT_SYSTEM-USE",
        "AIR_BAG_AVAILABILITY/DEPLOYMENT",
        "EJECTION",
        "EJECTION_PATH",
        "EXTRICATION",
        "NON_MOTORIST_LOCATION",
        "POLICE_REPORTED_ALCOHOL_INVOLVEMENT",
        "METHOD_ALCOHOL_DETERMINATION",
        "ALCOHOL_TEST_TYPE",
        "ALCOHOL_TEST_RESULT",
        "POLICE-REPORTED_DRUG_INVOLVEMENT",
        "METHOD_OF_DRUG_DETERMINATION",
        "DRUG_TEST_TYPE",
        "DRUG_TEST_RESULTS_(1_of_3)",
        "DRUG_TEST_TYPE_(2_of_3)",
        "DRUG_TEST_RESULTS_(2_of_3)",
        "DRUG_TEST_TYPE_(3_of_3)",
        "DRUG_TEST_RESULTS_(3_of_3)",
        "HISPANIC_ORIGIN",
        "TAKEN_TO_HOSPITAL",
        "RELATED_FACTOR_(1)-PERSON_LEVEL",
        "RELATED_FACTOR_(2)-PERSON_LEVEL",
        "RELATED_FACTOR_(3)-PERSON_LEVEL",
        "RACE",
    ),
    balance={
        "Fatal_Injury": 42_116,
        "Incapaciting_Injury": 15_072,
        "Injured_Severity_Unknown": 299,
        "No_Injury": 20_007,
        "Nonincapaciting_Evident_Injury": 13_890,
        "Possible_Injury": 8_674,
        "Unknown": 901,
    },
    natural_keys=("CASE_STATE",),
    licence="public domain",
    redistributable=True,
    reference="US National Highway Traffic Safety Administration, FARS 2001; OpenML 40672",
)
def fars(frame: DataFrame) -> DataFrame:
    """Road crashes: how severe is the injury, of seven grades?

    The nine persons who died before the accident are left out, too few for three parts of a split. Codes of nominal
    columns are categories. Special codes of numbers (96, 97, 99, ...) are kept.
    """
    return frame[frame["INJURY_SEVERITY"] != "Died_Prior_to_Accident"]
