"""NC: occupants of front seats in US car crashes, 1997 to 2002.

In `core`: redistributable, with 26,217 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "nass_cds",
    code="NC",
    target="dead",
    positive="dead",
    sha256="899c87ae5cf54396f9476e15b46821fadb42aadc373910eee4cf3cc3cccce215",
    natural_keys=("psu", "psu+yearacc"),
    licence="public domain",
    redistributable=True,
    reference="US National Highway Traffic Safety Administration, NASS CDS; Maindonald & Braun, DAAG",
)
def nass_cds(frame: DataFrame) -> DataFrame:
    """Car crashes: does the occupant die?

    Severity of the injury and sampling weights are left out, since the weights depend on the severity. The sampling
    unit `psu` is a county or a group of counties.
    """
    return frame
