"""CV: COVID-19 tests at a children's hospital in early 2020.

In `core`: redistributable, with 15,223 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "covid_testing",
    code="CV",
    target="result",
    positive="positive",
    rows=15_223,
    numeric=5,
    categorical=5,
    columns=(
        "gender",
        "pan_day",
        "clinic_name",
        "demo_group",
        "age",
        "drive_thru_ind",
        "orderset",
        "payor_group",
        "patient_class",
        "col_rec_tat",
    ),
    balance={"negative": 14_358, "positive": 865},
    natural_keys=("clinic_name", "pan_day"),
    licence="MIT",
    redistributable=True,
    reference="Higgins, R package medicaldata",
)
def covid_testing(frame: DataFrame) -> DataFrame:
    """COVID-19 tests: is the result positive?

    Invalid results are left out, and so are names, numbers of persons and tests, and columns known only after the test.
    Features are age, sex, clinic, day of the pandemic and how the test was ordered.
    """
    return frame
