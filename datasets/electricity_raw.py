"""ELR: Electricity (Elec2), all rows.

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import OpenML

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "electricity_raw",
    code="ELR",
    source=OpenML(151),
    target="class",
    positive="UP",
    sha256="b8c5f72bfa6047498e0f8d96f8be4424983fdc54393e25b8092ac4cb3af7a3ed",
    source_may_differ=True,
    licence="none stated",
    redistributable=False,
    reference="Harries 1999; Gama et al. 2004",
)
def electricity_raw(frame: DataFrame) -> DataFrame:
    """Half-hours of the New South Wales market, unbalanced: does the price rise above the last day's average?

    `electricity` is a balanced part of it. Read from `electricity_raw.parquet` in the data directory, or downloaded.
    """
    return frame
