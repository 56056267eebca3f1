"""FA: persons in fatal US road crashes, 2001.

In `core`: redistributable, with 100,959 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "fars",
    code="FA",
    target="INJURY_SEVERITY",
    sha256="ffc7e69c9a333c34f35b506ecc1c8af62f7780164a35cb09281c7dd7ff186228",
    natural_keys=("CASE_STATE",),
    licence="public domain",
    redistributable=True,
    reference="US National Highway Traffic Safety Administration, FARS 2001; OpenML 40672",
)
def fars(frame: DataFrame) -> DataFrame:
    """Road crashes: how severe is the injury, of seven grades?

    The nine persons who died before the accident are left out, too few for three parts of a split. Codes of nominal
    columns are categories. Special codes of numbers (96, 97, 99, ...) are kept.
    """
    return frame[frame["INJURY_SEVERITY"] != "Died_Prior_to_Accident"]
