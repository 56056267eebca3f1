"""EL: Electricity (Elec2), balanced (Grinsztajn et al. 2022).

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import OpenML
from llpbench.tables.texts import as_text

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "electricity",
    code="EL",
    source=OpenML(44156),
    target="class",
    positive="UP",
    sha256="1c0671aa1cf7546c6e77ae94659ff76f6995be573cc351b67deee36df1f33a53",
    source_may_differ=True,
    licence="none stated",
    redistributable=False,
    reference="Harries 1999; Grinsztajn, Oyallon & Varoquaux 2022",
)
def electricity(frame: DataFrame) -> DataFrame:
    """Half-hours of the New South Wales market: does the price rise above the last day's average?"""
    day = as_text(frame["day"])
    if (day == "0").any():  # OpenML's version counts days from 0, the original from 1
        day = day.map({str(number): str(number + 1) for number in range(7)})
    return frame.assign(day=day)
