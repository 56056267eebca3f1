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
    rows=101_766,
    numeric=8,
    categorical=37,
    columns=(
        "race",
        "gender",
        "age",
        "weight",
        "admission_type_id",
        "discharge_disposition_id",
        "admission_source_id",
        "time_in_hospital",
        "payer_code",
        "medical_specialty",
        "num_lab_procedures",
        "num_procedures",
        "num_medications",
        "number_outpatient",
        "number_emergency",
        "number_inpatient",
        "diag_1",
        "diag_2",
        "diag_3",
        "number_diagnoses",
        "max_glu_serum",
        "A1Cresult",
        "metformin",
        "repaglinide",
        "nateglinide",
        "chlorpropamide",
        "glimepiride",
        "acetohexamide",
        "glipizide",
        "glyburide",
        "tolbutamide",
        "pioglitazone",
        "rosiglitazone",
        "acarbose",
        "miglitol",
        "troglitazone",
        "tolazamide",
        "insulin",
        "glyburide-metformin",
        "glipizide-metformin",
        "glimepiride-pioglitazone",
        "metformin-rosiglitazone",
        "metformin-pioglitazone",
        "change",
        "diabetesMed",
    ),
    balance={"0": 90_409, "1": 11_357},
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
