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
    rows=44_932,
    numeric=14,
    categorical=2,
    columns=(
        "state",
        "age",
        "female",
        "collegeed",
        "racef",
        "famincr",
        "ideo",
        "pid7na",
        "bornagain",
        "religimp",
        "churchatd",
        "prayerfreq",
        "angryracism",
        "whiteadv",
        "fearraces",
        "racerare",
    ),
    balance={"0": 26_177, "1": 18_755},
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
