"""DC: credit card clients in Taiwan, 2005.

In `core`: redistributable, with 30,000 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "default_credit",
    code="DC",
    target="default_payment_next_month",
    positive="1",
    sha256="80946c331b32661ee50500a1e6165659850522a1cc1274a24be0def5c7c4a53c",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Yeh & Lien 2009, UCI Machine Learning Repository; OpenML 42477",
)
def default_credit(frame: DataFrame) -> DataFrame:
    """Credit card clients: does the client default next month?

    Sex, education and marriage are categories. Education includes the undocumented codes 0, 5 and 6.
    """
    return frame
