"""EE: 117 seconds of one electroencephalogram.

In `core`: redistributable, with 14,980 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "eeg_eye_state",
    code="EE",
    target="eyeDetection",
    positive="1",
    sha256="207e5db62b57f57c3fc249a286b35f462c12e2ff08ed6a949037b9c2b0796aaa",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Roesler 2013, UCI Machine Learning Repository; OpenML 1471",
)
def eeg_eye_state(frame: DataFrame) -> DataFrame:
    """Electroencephalogram: is the eye closed?

    Voltages at 14 electrodes of one person, in order of time. Random splits mix neighbouring rows. Four rows are
    outliers.
    """
    return frame
