"""HT: candidates of a pulsar survey.

In `core`: redistributable, with 17,898 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "htru2",
    code="HT",
    target="is_pulsar",
    positive="1",
    sha256="a5fe90c37e9e40b787aef22bc6f9657d679c01df2187b24ee0ebec7aa97812db",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Lyon et al. 2016, UCI Machine Learning Repository",
)
def htru2(frame: DataFrame) -> DataFrame:
    """Pulsar candidates: is the candidate a pulsar?

    Mean, standard deviation, kurtosis and skewness of the pulse profile and of its curve over dispersion measures.
    """
    return frame
