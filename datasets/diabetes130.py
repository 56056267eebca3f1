"""D130: stays of patients with diabetes in 130 US hospitals, 1999 to 2008.

In `core`: redistributable, with 101,766 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame

NEVER_GIVEN = ("examide", "citoglipton")
"""drugs without any patient: constant columns"""


@register_dataset(
    "diabetes130",
    code="D130",
    target="readmitted_30d",
    positive="1",
    sha256="9871b1c5039408578fb49b1baa99afb94218e50bc5aebfb5c8e7ae0086bc764b",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Strack et al. 2014, UCI Machine Learning Repository; OpenML 4541",
)
def diabetes130(frame: DataFrame) -> DataFrame:
    """Hospital stays: is the patient readmitted within 30 days?

    Numbers of stays and patients are left out, and so are two drugs without any patient. Some patients have several
    stays.
    """
    return frame.drop(columns=[*NEVER_GIVEN], errors="ignore")
