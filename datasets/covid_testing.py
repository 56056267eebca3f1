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
    sha256="c64d221acf5768ea2a084e61e13ba28846fee16a95e37a822f4d5ec683dfd09f",
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
