"""PO: a telecommunication problem, binarised.

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import OpenML

if TYPE_CHECKING:
    from pandas import DataFrame

VARYING = tuple(f"f{number}" for number in (*range(5, 10), *range(13, 34)))
"""columns that are not constant"""


@register_dataset(
    "pol",
    code="PO",
    source=OpenML(722),
    target="binaryClass",
    positive="P",
    sha256="5dbaf023e897db03adecb93345e6412161b50cdce02f35b5422e8a8474f9ab35",
    source_may_differ=True,
    licence="none stated",
    redistributable=False,
    reference="Weiss & Indurkhya 1995",
)
def pol(frame: DataFrame) -> DataFrame:
    """Telecommunication: is the target at or below its mean?

    Class P is a target at or below the mean. The 22 constant columns are left out. Read from `pol.parquet` in the data
    directory, or downloaded.
    """
    return frame[[*VARYING, "binaryClass"]]
