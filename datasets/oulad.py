"""OU: students of the Open University.

In `core`: redistributable, with 32,593 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "oulad",
    code="OU",
    target="passed",
    positive="1",
    rows=32_593,
    numeric=2,
    categorical=8,
    columns=(
        "code_module",
        "code_presentation",
        "gender",
        "region",
        "highest_education",
        "imd_band",
        "age_band",
        "num_of_prev_attempts",
        "studied_credits",
        "disability",
    ),
    key_only=("module_presentation",),
    balance={"0": 17_208, "1": 15_385},
    natural_keys=("module_presentation", "region"),
    licence="CC BY 4.0",
    redistributable=True,
    reference="Kuzilek, Hlosta & Zdrahal 2017, Scientific Data 4",
)
def oulad(frame: DataFrame) -> DataFrame:
    """University students: does the student pass the module?

    `studentInfo` of the Open University Learning Analytics Dataset, without student numbers. Positive is a pass or a
    distinction; the others failed or withdrew. The presentation of a module makes bags. Its two parts are features.
    """
    return frame
