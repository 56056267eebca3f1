"""Datasets about health: tests, hospital stays, images, brain waves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import add_dataset, register_dataset
from llpbench.data.sources import OpenML
from llpbench.tables.texts import as_text

if TYPE_CHECKING:
    from pandas import DataFrame

add_dataset(
    "covid_testing",
    """COVID-19 tests: is the result positive?

    Invalid results are left out, and so are names, numbers of persons and tests, and columns known only after the test.
    Features are age, sex, clinic, day of the pandemic and how the test was ordered.
    """,
    target="result",
    positive="positive",
    sha256="c64d221acf5768ea2a084e61e13ba28846fee16a95e37a822f4d5ec683dfd09f",
    natural_keys=("clinic_name", "pan_day"),
    licence="MIT",
    reference="Higgins, R package medicaldata",
)

_NEVER_GIVEN = ("examide", "citoglipton")
"""drugs without any patient: constant columns"""


@register_dataset(
    "diabetes130",
    target="readmitted_30d",
    positive="1",
    sha256="9871b1c5039408578fb49b1baa99afb94218e50bc5aebfb5c8e7ae0086bc764b",
    licence="CC BY 4.0",
    reference="Strack et al. 2014, UCI Machine Learning Repository; OpenML 4541",
)
def _diabetes130(frame: DataFrame) -> DataFrame:
    """Hospital stays: is the patient readmitted within 30 days?

    Numbers of stays and patients are left out, and so are two drugs without any patient. Some patients have several
    stays.
    """
    return frame.drop(columns=[*_NEVER_GIVEN], errors="ignore")


add_dataset(
    "eeg_eye_state",
    """Electroencephalogram: is the eye closed?

    Voltages at 14 electrodes of one person, in order of time. Random splits mix neighbouring rows. Four rows are
    outliers.
    """,
    target="eyeDetection",
    positive="1",
    sha256="207e5db62b57f57c3fc249a286b35f462c12e2ff08ed6a949037b9c2b0796aaa",
    licence="CC BY 4.0",
    reference="Roesler 2013, UCI Machine Learning Repository; OpenML 1471",
)


@register_dataset(
    "mammography",
    source=OpenML(310),
    target="class",
    positive="1",
    sha256="b9fbeec01644f2f00f5fc212dce3f67b63460e8c236da002cb7bd690c12dd8a6",
    source_may_differ=True,
    licence="none stated",
    reference="Woods et al. 1993",
)
def _mammography(frame: DataFrame) -> DataFrame:
    """Mammograms: is the candidate a microcalcification?

    Six unnamed features of an image region. Read from `mammography.parquet` in the data directory, or downloaded.
    """
    label = as_text(frame["class"])
    return frame.assign(**{"class": label.mask(label == "-1", "0")})  # OpenML calls the classes -1 and 1
