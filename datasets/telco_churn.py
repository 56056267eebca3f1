"""TC: simulated customers of a telephone company.

In `core`: redistributable, with 7,043 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "telco_churn",
    code="TC",
    target="Churn",
    positive="Yes",
    sha256="87e73bf733cb25ef4af943b49f620eef9e653336e775230296743f4d6e1bedff",
    licence="MIT",
    redistributable=True,
    reference="IBM sample data; Kuhn, R package modeldata; OpenML 42178",
)
def telco_churn(frame: DataFrame) -> DataFrame:
    """Telephone customers: does the customer leave?

    Simulated by IBM. Customer numbers are not in the file.
    """
    return frame
