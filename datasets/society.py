"""Datasets about persons and society: censuses, elections, schools, courts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import add_dataset, register_dataset
from llpbench.data.sources import OpenML

if TYPE_CHECKING:
    from pandas import DataFrame

add_dataset(
    "adult",
    """Census income: does the person earn more than 50,000 dollars a year?""",
    code="AD",
    source=OpenML(1590),
    target="class",
    positive=">50K",
    sha256="92bcdfd1c68d2fd10ca254c3e068a25023a135fc1f1f59600e506576f98a5ae5",
    licence="CC BY 4.0",
    reference="Becker & Kohavi 1996, UCI Machine Learning Repository",
)

add_dataset(
    "cces_2016",
    """Voters of 2016: Trump rather than Clinton?

    Answers of the Cooperative Congressional Election Study: `TV16` of the R package stevedata. Respondents with neither
    answer are left out, and so are respondent numbers and the three scores made from other answers. Read from
    `cces_2016.parquet` in the data directory.
    """,
    target="votetrump",
    positive="1",
    sha256="f63bfdf7cf9a64eef842a3b0aa8d4c4cd0aeeee693d0d2bc7f08b1df18fb9607",
    natural_keys=("state",),
    licence="none stated for the extract (survey: CC0)",
    reference="Ansolabehere & Schaffner 2017, CCES 2016",
)

add_dataset(
    "chem97",
    """Pupils: grade A or B in A-level chemistry?

    `Chem97` of the R package mlmRev, without pupil numbers and the centred GCSE score. Positive is a score of 8 or 10.
    School and local authority are categories. Read from `chem97.parquet` in the data directory.
    """,
    target="grade_A_or_B",
    positive="1",
    sha256="e5ec704830e3105d9f2425c6dd28cc27eed41de03f7879da134175bbb2584d63",
    natural_keys=("school", "lea"),
    licence="none stated",
    reference="Fielding, Yang & Goldstein 2003",
)

add_dataset(
    "compas",
    """Defendants: is the person arrested again within two years?

    ProPublica's file `compas-scores-two-years.csv`, with ProPublica's filter. Names, scores and columns known only
    later are left out. The day of screening makes bags and is not a feature. Read from `compas.parquet` in the data
    directory.
    """,
    target="two_year_recid",
    positive="1",
    sha256="137d1b579d439b1c0fe8783adf7fe107d721e77065c3c690d872fc52ba1efb26",
    key_only=("compas_screening_date",),
    natural_keys=("compas_screening_date",),
    licence="none stated",
    reference="Larson, Mattu, Kirchner & Angwin 2016, ProPublica",
)

add_dataset(
    "dutch_census",
    """Census: does the person have a high-level occupation?

    All features are codes, and 70 % of the rows are duplicates. Read from `dutch_census.parquet` in the data directory.
    """,
    target="occupation",
    positive="2_1",
    sha256="91a5ed0a56083dc00b9025006c517de2547180fa4d882093372ee783e6c94dc5",
    licence="none stated",
    reference="Statistics Netherlands 2001; Le Quy et al. 2022",
)

add_dataset(
    "mpls_stops",
    """Police stops: is the person searched?

    `MplsStops` of the R package carData. Stops without a record of the search are left out, and so are the other
    outcomes of a stop. The day makes bags and is not a feature. Read from `mpls_stops.parquet` in the data directory.
    """,
    target="personSearch",
    positive="YES",
    sha256="b526ff925bbe840a5d8f766cb7dad348455b7bd031921526312125c8b8fb8573",
    key_only=("date",),
    natural_keys=("neighborhood", "policePrecinct", "date"),
    licence="none stated",
    reference="Open Minneapolis 2017; Fox & Weisberg, carData",
)


@register_dataset(
    "nursery",
    target="class",
    sha256="9d60a0438696704fe24fd945b049383033138e241deb47ae557649e0f48ff324",
    licence="CC BY 4.0",
    reference="Rajkovic 1997, UCI Machine Learning Repository; OpenML 26",
)
def _nursery(frame: DataFrame) -> DataFrame:
    """Nursery schools: which of four recommendations does the application get?

    A full grid of the attributes, without noise. The two rows of class `recommend` are left out, too few for three
    parts of a split.
    """
    return frame[frame["class"] != "recommend"]


add_dataset(
    "oulad",
    """University students: does the student pass the module?

    `studentInfo` of the Open University Learning Analytics Dataset, without student numbers. Positive is a pass or a
    distinction; the others failed or withdrew. The presentation of a module makes bags. Its two parts are features.
    """,
    target="passed",
    positive="1",
    sha256="13dabfec35fc3dd98e15606f82004139aacdfe2c605c8399d356049ac54fa5c0",
    key_only=("module_presentation",),
    natural_keys=("module_presentation", "region"),
    licence="CC BY 4.0",
    reference="Kuzilek, Hlosta & Zdrahal 2017, Scientific Data 4",
)
