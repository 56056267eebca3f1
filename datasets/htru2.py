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
    rows=17_898,
    numeric=8,
    categorical=0,
    columns=(
        "profile_mean",
        "profile_sd",
        "profile_kurtosis",
        "profile_skewness",
        "dmsnr_mean",
        "dmsnr_sd",
        "dmsnr_kurtosis",
        "dmsnr_skewness",
    ),
    balance={"0": 16_259, "1": 1_639},
    licence="CC BY 4.0",
    redistributable=True,
    reference="Lyon et al. 2016, UCI Machine Learning Repository",
)
def htru2(frame: DataFrame) -> DataFrame:
    """Pulsar candidates: is the candidate a pulsar?

    Mean, standard deviation, kurtosis and skewness of the pulse profile and of its curve over dispersion measures.
    """
    return frame
