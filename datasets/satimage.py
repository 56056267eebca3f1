"""SA: pixels of a Landsat image.

In `core`: redistributable, with 6,435 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "satimage",
    code="SA",
    target="class",
    sha256="92eea34c5c5f3e53aa3c1361dc198e9dc277c6d282eb259c37c44810c5b0f8f5",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Srinivasan 1993, Statlog, UCI Machine Learning Repository; OpenML 182",
)
def satimage(frame: DataFrame) -> DataFrame:
    """Landsat pixels: which of six kinds of ground?

    Four spectral bands of each pixel and its neighbours, 3 x 3 pixels.
    """
    return frame
