"""Any dataset of OpenML, by its number: `--datasets openml:31`.

Target, types and missing values are those of OpenML (`llpbench/data/loading.py`). With two classes, the later in
string order is positive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import OPENML, register_datasets
from llpbench.data.loading import declared

if TYPE_CHECKING:
    from pandas import DataFrame


@register_datasets(OPENML, declared)
def _openml(frame: DataFrame) -> DataFrame:
    """A dataset of OpenML with its default target in the last column."""
    return frame
