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
    rows=9_857,
    numeric=17,
    categorical=5,
    columns=(
        "funded_amnt",
        "term",
        "int_rate",
        "sub_grade",
        "addr_state",
        "verification_status",
        "annual_inc",
        "emp_length",
        "delinq_2yrs",
        "inq_last_6mths",
        "revol_util",
        "acc_now_delinq",
        "open_il_6m",
        "open_il_12m",
        "open_il_24m",
        "total_bal_il",
        "all_util",
        "inq_fi",
        "inq_last_12m",
        "delinq_amnt",
        "num_il_tl",
        "total_il_high_credit_limit",
    ),
    balance={"bad": 517, "good": 9_340},
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
