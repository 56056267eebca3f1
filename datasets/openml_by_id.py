"""Any dataset of OpenML, by its number: `--datasets openml:31`.

Target, types and gaps are OpenML's own (`llpbench/data/openml_ids.py`); of two classes, the later in string order is
positive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import OPENML, register_datasets
from llpbench.data.openml_ids import declared

if TYPE_CHECKING:
    from pandas import DataFrame


@register_datasets(OPENML, declared)
def openml(frame: DataFrame) -> DataFrame:
    """A dataset of OpenML with its default target, which stands last."""
    return frame
