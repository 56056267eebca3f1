"""ML: MovieLens-1M, ratings joined with users and movies.

Not in `core`: its terms forbid redistribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import GroupLens
from llpbench.tables.texts import as_text

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "movielens_1m",
    code="ML",
    source=GroupLens("ml-1m.zip"),
    target="liked",
    positive="1",
    sha256="eca38a84f276c8a957adde3eaaab12de92e253b0a3c29f8bc6e6c09766bcd7f8",
    source_may_differ=True,
    licence="GroupLens: research use, no redistribution",
    redistributable=False,
    reference="Harper & Konstan 2015, ACM TiiS 5(4)",
)
def movielens_1m(frame: DataFrame) -> DataFrame:
    """Ratings of movies: did the user like the movie, with four or five of five stars?

    The features are the seven of AutoInt (Song et al. 2019). Ratings of three stars are neutral and are left out.
    """
    if "liked" in frame.columns:
        return frame
    frame = frame[frame["rating"] != 3]
    timestamp = frame["timestamp"]
    if "timestamp_est" in frame.columns:  # a copy that lost most times and estimates them from each user's order
        timestamp = timestamp.fillna(frame["timestamp_est"])
    year = frame["year"] if "year" in frame.columns else frame["title"].str.extract(r"\((\d{4})\)\s*$")[0].astype(float)
    chosen = frame[["gender", "age", "zip", "genres"]]
    return chosen.assign(
        timestamp=timestamp, year=year, occupation=as_text(frame["occupation"]), liked=(frame["rating"] > 3).astype(int)
    )
