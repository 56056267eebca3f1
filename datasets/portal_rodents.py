"""PR: rodents trapped near Portal, Arizona.

In `core`: redistributable, with 31,147 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "portal_rodents",
    code="PR",
    target="species",
    sha256="cf5fbda25be969b3dedde10b340bb63d916c1ea199bef947efe0c6363340d76d",
    key_only=("date",),
    natural_keys=("plot_id", "date", "year+month"),
    licence="CC0",
    redistributable=True,
    reference="Ernest, Brown, Valone & White, Portal Project",
)
def portal_rodents(frame: DataFrame) -> DataFrame:
    """Trapped rodents: which of ten species is it?

    The ten most frequent species of the Portal Project, from the teaching extract in the R package ratdat. The day
    makes bags and is not a feature. Year, month and day are features.
    """
    return frame
