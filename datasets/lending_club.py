"""LC: loans of the Lending Club.

In `core`: redistributable, with 9,857 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "lending_club",
    code="LC",
    target="Class",
    positive="bad",
    sha256="73dff3d1297b50ab45cfcbfee68ee29cb31268ff1de12608eb78d3f4d9ccce43",
    natural_keys=("addr_state", "sub_grade"),
    licence="MIT",
    redistributable=True,
    reference="Kuhn, R package modeldata",
)
def lending_club(frame: DataFrame) -> DataFrame:
    """Loans: does the loan go bad?

    A sample of the company's loans. State and sub-grade of a loan are features and make bags.
    """
    return frame
