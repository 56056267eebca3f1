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
    rows=31_147,
    numeric=5,
    categorical=3,
    columns=(
        "month",
        "day",
        "year",
        "plot_id",
        "sex",
        "hindfoot_length",
        "weight",
        "plot_type",
    ),
    key_only=("date",),
    balance={
        "Chaetodipus baileyi": 2_891,
        "Chaetodipus penicillatus": 3_123,
        "Dipodomys merriami": 10_596,
        "Dipodomys ordii": 3_027,
        "Dipodomys spectabilis": 2_504,
        "Neotoma albigula": 1_252,
        "Onychomys torridus": 2_249,
        "Perognathus flavus": 1_597,
        "Peromyscus eremicus": 1_299,
        "Reithrodontomys megalotis": 2_609,
    },
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
