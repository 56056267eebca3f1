"""CC: voters of the US presidential election of 2016.

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "cces_2016",
    code="CC",
    target="votetrump",
    positive="1",
    sha256="f63bfdf7cf9a64eef842a3b0aa8d4c4cd0aeeee693d0d2bc7f08b1df18fb9607",
    natural_keys=("state",),
    licence="none stated for the extract (survey: CC0)",
    redistributable=False,
    reference="Ansolabehere & Schaffner 2017, CCES 2016",
)
def cces_2016(frame: DataFrame) -> DataFrame:
    """Voters of 2016: Trump rather than Clinton?

    Answers of the Cooperative Congressional Election Study: `TV16` of the R package stevedata. Respondents with neither
    answer are left out, and so are respondent numbers and the three scores made from other answers. Read from
    `cces_2016.parquet` in the data directory.
    """
    return frame
