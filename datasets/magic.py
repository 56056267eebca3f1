"""MG: simulated particle showers of a gamma-ray telescope.

In `core`: redistributable, with 19,020 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "magic",
    code="MG",
    target="class",
    positive="g",
    sha256="52cb360cb5a4373c820b71a3c880cc994b92dfcdcbe3ce323e90eb29d6adaeb9",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Bock et al. 2004, UCI Machine Learning Repository; OpenML 1120",
)
def magic(frame: DataFrame) -> DataFrame:
    """Telescope images: a gamma ray rather than a hadron?

    Parameters of an ellipse fitted to the image of a shower. Class g is a gamma ray.
    """
    return frame
