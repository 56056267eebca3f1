"""AI: simulated milling machines.

In `core`: redistributable, with 10,000 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "ai4i2020",
    code="AI",
    target="Machine_failure",
    positive="1",
    sha256="5286a2899d352cfe348fd956900b9c4b26653f6134fa02b13f6b846801a696d9",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Matzka 2020, UCI Machine Learning Repository; OpenML 42890",
)
def ai4i2020(frame: DataFrame) -> DataFrame:
    """Milling machines: does the machine fail?

    Simulated by its authors. Row numbers and the five kinds of failure are left out, since these determine the target.
    """
    return frame
