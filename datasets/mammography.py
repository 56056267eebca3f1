"""MA: candidates for microcalcifications in mammograms.

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
    "mammography",
    code="MA",
    source=OpenML(310),
    target="class",
    positive="1",
    sha256="b9fbeec01644f2f00f5fc212dce3f67b63460e8c236da002cb7bd690c12dd8a6",
    source_may_differ=True,
    licence="none stated",
    redistributable=False,
    reference="Woods et al. 1993",
)
def mammography(frame: DataFrame) -> DataFrame:
    """Mammograms: is the candidate a microcalcification?

    Six unnamed features of an image region. Read from `mammography.parquet` in the data directory, or downloaded.
    """
    label = as_text(frame["class"])
    return frame.assign(**{"class": label.mask(label == "-1", "0")})  # OpenML calls the classes -1 and 1
