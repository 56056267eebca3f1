"""Datasets about machines, games and signals: robots, letters, digits, vowels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import add_dataset, register_dataset
from llpbench.data.sources import OpenML

if TYPE_CHECKING:
    from pandas import DataFrame

add_dataset(
    "ai4i2020",
    """Milling machines: does the machine fail?

    Simulated by its authors. Row numbers and the five kinds of failure are left out, since these determine the target.
    """,
    target="Machine_failure",
    positive="1",
    sha256="5286a2899d352cfe348fd956900b9c4b26653f6134fa02b13f6b846801a696d9",
    licence="CC BY 4.0",
    reference="Matzka 2020, UCI Machine Learning Repository; OpenML 42890",
)

add_dataset(
    "avila",
    """Avila bible: which of twelve copyists wrote the page?

    Layout of four rows of text each, as z-scores over the whole file, as published.
    """,
    target="copyist",
    sha256="56da40b522f6fd92d42b71f9b20ccfb84c37c4c08dac58f4d7441c4fd0c1a220",
    licence="CC BY 4.0",
    reference="De Stefano, Maniaci, Fontanella & Scotto di Freca 2018, UCI Machine Learning Repository",
)

add_dataset(
    "connect_4",
    """Connect-4: does the first player win, lose or draw?

    The 42 fields, each x (first player), o or b (blank). The outcome is that of perfect play, without noise.
    """,
    target="outcome",
    sha256="28ec101c2991f6b6379059187000d5beb1379567e21ac649c87f56f17e25ad9d",
    licence="CC BY 4.0",
    reference="Tromp 1995, UCI Machine Learning Repository; OpenML 40668",
)

add_dataset(
    "letter",
    """Capital letters in 20 fonts, distorted: which of 26 is it?

    Features are counts and moments of the pixels that are on, scaled to whole numbers from 0 to 15.
    """,
    target="letter",
    sha256="09886603df9d96fcc35a6977d2859b2f7cb5356a56be0a4465fb32a0ac7d9146",
    licence="CC BY 4.0",
    reference="Frey & Slate 1991, UCI Machine Learning Repository",
)

_EMPTY_BLOCKS = ("input1", "input40")
"""blocks without a dark pixel in any image"""


@register_dataset(
    "optdigits",
    source=OpenML(28),
    target="class",
    sha256="ffdd6d358581aab13fb69076b9f4fd581e16dfa8f149eb73b3266e436df2c1da",
    licence="CC BY 4.0",
    reference="Alpaydin & Kaynak 1998, UCI Machine Learning Repository",
)
def _optdigits(frame: DataFrame) -> DataFrame:
    """Scanned digits: which of ten?

    Counts of dark pixels in 8 x 8 blocks of 4 x 4 pixels. The two blocks that are always empty are left out.
    """
    return frame.drop(columns=[*_EMPTY_BLOCKS], errors="ignore")


add_dataset(
    "pendigits",
    """Pen strokes: which of ten digits?

    Eight points of the pen's path, resampled and scaled to the range 0 to 100.
    """,
    source=OpenML(32),
    target="class",
    sha256="96f544506f9517c8489e70419e137928c2842ab1a032d93fbcc75bad9d265e9a",
    licence="CC BY 4.0",
    reference="Alpaydin & Alimoglu 1998, UCI Machine Learning Repository",
)

add_dataset(
    "phoneme",
    """Vowels: nasal or oral?

    Amplitudes of five harmonics as in KEEL, not standardised (OpenML 1489 is). Read from `phoneme.parquet` in the data
    directory.
    """,
    target="class",
    positive="oral",
    sha256="f4cc28ff6851f4e1d8848b0920b88876ff80a95252a3bcf8e2ceea26410c8fbf",
    licence="none stated",
    reference="ELENA project 1995",
)

add_dataset(
    "shuttle",
    """Space Shuttle: which of seven states?

    The classes are those of Statlog. Four of them have fewer than 200 rows.
    """,
    target="class",
    sha256="4faccec8a0f6f209ff9a14eda2783b9526bf7c8bfcfa95bca2ad4d2f55f6007e",
    licence="CC BY 4.0",
    reference="Statlog, UCI Machine Learning Repository; OpenML 40685",
)
