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
    sha256="13dabfec35fc3dd98e15606f82004139aacdfe2c605c8399d356049ac54fa5c0",
    key_only=("module_presentation",),
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
