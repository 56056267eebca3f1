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
    rows=14_980,
    numeric=14,
    categorical=0,
    columns=(
        "AF3",
        "F7",
        "F3",
        "FC5",
        "T7",
        "P7",
        "O1",
        "O2",
        "P8",
        "T8",
        "FC6",
        "F4",
        "F8",
        "AF4",
    ),
    balance={"0": 8_257, "1": 6_723},
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
