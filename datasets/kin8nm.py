"""KI: a simulated robot arm of eight links, binarised.

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import OpenML

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "kin8nm",
    code="KI",
    source=OpenML(807),
    target="binaryClass",
    positive="P",
    sha256="eb7ca845c2e2303c8c4022434409d3462c614a8c46e1b2f8a6890d62873516c9",
    source_may_differ=True,
    licence="none stated",
    redistributable=False,
    reference="Ghahramani 1996, DELVE",
)
def kin8nm(frame: DataFrame) -> DataFrame:
    """Robot arm: is the distance to the target at or below its mean?

    Class P is a distance at or below the mean. Read from `kin8nm.parquet` in the data directory, or downloaded.
    """
    return frame
