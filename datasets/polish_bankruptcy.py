"""PB: Polish companies, 2000 to 2013.

In `core`: redistributable, with 7,027 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "polish_bankruptcy",
    code="PB",
    target="bankrupt",
    positive="1",
    sha256="878642001bd8fd14d823889a1c070d9de2cbdeab9a844788412c196a61d54b82",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Zieba, Tomczak & Tomczak 2016, UCI Machine Learning Repository",
)
def polish_bankruptcy(frame: DataFrame) -> DataFrame:
    """Companies: is the company bankrupt within five years?

    Financial ratios of the first year, with the names in UCI's description.
    """
    return frame
