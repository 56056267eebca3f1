"""Datasets about customers and money: credit, insurance, sales, bookings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import add_dataset, register_dataset
from llpbench.data.sources import GroupLens, OpenML
from llpbench.tables.texts import as_text

if TYPE_CHECKING:
    from pandas import DataFrame

_BANK_FEATURES = (
    *("age", "job", "marital", "education", "default", "balance", "housing", "loan"),
    *("contact", "day", "month", "duration", "campaign", "pdays", "previous", "poutcome"),
)
_BANK_ANSWERS = {"1": "no", "2": "yes"}


@register_dataset(
    "bank_marketing",
    code="BA",
    source=OpenML(1461),
    target="y",
    positive="yes",
    sha256="992c99776ec6992d0e039e39bd2613cdaf67710b425674bf124fab06086a6be5",
    source_may_differ=True,
    licence="CC BY 4.0",
    reference="Moro, Rita & Cortez 2014, UCI Machine Learning Repository",
)
def _bank_marketing(frame: DataFrame) -> DataFrame:
    """Phone calls of a bank: does the client subscribe to a term deposit?"""
    if "V1" not in frame.columns:
        return frame
    # OpenML numbers the columns V1 to V16 in the order of the UCI file, and the classes 1 and 2.
    numbered = [f"V{number}" for number in range(1, 17)]
    features = frame[numbered].set_axis(list(_BANK_FEATURES), axis="columns")
    return features.assign(y=as_text(frame["Class"]).map(_BANK_ANSWERS))


add_dataset(
    "california",
    """Census blocks of 1990: is the median house price above the median of all blocks?""",
    code="CA",
    source=OpenML(44090),
    target="price_above_median",
    positive="1",
    sha256="e29aeeb088541cd1eb79212f615faa73b5bd2d1de882cf420736b6ff10ac3aea",
    source_may_differ=True,
    licence="none stated",
    reference="Pace & Barry 1997; Grinsztajn, Oyallon & Varoquaux 2022",
)

add_dataset(
    "credit",
    """Bank customers: will a payment be 90 days overdue within two years?""",
    code="CR",
    source=OpenML(44089),
    target="SeriousDlqin2yrs",
    positive="1",
    sha256="a1d498b1a3eaf360a6da21003c2c524242c6e6d3f317f2492a4d193a10c0d601",
    source_may_differ=True,
    licence="Kaggle competition rules",
    reference="Kaggle 2011; Grinsztajn, Oyallon & Varoquaux 2022",
)

add_dataset(
    "credit_raw",
    """Bank customers, unbalanced: will a payment be 90 days overdue within two years?

    Training file of the competition, without row numbers. `credit` is a balanced part of it. Read from
    `credit_raw.parquet` in the data directory.
    """,
    target="SeriousDlqin2yrs",
    positive="1",
    sha256="e763fa6ef0091613f442cee4288909d5f8c6d64f7ae11ee432b853374391e69e",
    licence="Kaggle competition rules",
    reference="Kaggle 2011",
)

add_dataset(
    "default_credit",
    """Credit card clients: does the client default next month?

    Sex, education and marriage are categories. Education includes the undocumented codes 0, 5 and 6.
    """,
    target="default_payment_next_month",
    positive="1",
    sha256="80946c331b32661ee50500a1e6165659850522a1cc1274a24be0def5c7c4a53c",
    licence="CC BY 4.0",
    reference="Yeh & Lien 2009, UCI Machine Learning Repository; OpenML 42477",
)

add_dataset(
    "diamonds",
    """Diamonds: which of five qualities does the cut have?

    Classes are in string order (Fair, Good, Ideal, Premium, Very Good). Methods do not use the better order (Fair,
    Good, Very Good, Premium, Ideal).
    """,
    target="cut",
    sha256="039fcc6e91c9af17775772f373b2c3ad6b07e3d35f0b77648f31b59aa14fee9f",
    licence="MIT",
    reference="Wickham 2016, ggplot2",
)


@register_dataset(
    "electricity",
    code="EL",
    source=OpenML(44156),
    target="class",
    positive="UP",
    sha256="1c0671aa1cf7546c6e77ae94659ff76f6995be573cc351b67deee36df1f33a53",
    source_may_differ=True,
    licence="none stated",
    reference="Harries 1999; Grinsztajn, Oyallon & Varoquaux 2022",
)
def _electricity(frame: DataFrame) -> DataFrame:
    """Half-hours of the New South Wales market: does the price rise above the last day's average?"""
    day = as_text(frame["day"])
    if (day == "0").any():  # OpenML's version counts days from 0, the original from 1
        day = day.map({str(number): str(number + 1) for number in range(7)})
    return frame.assign(day=day)


add_dataset(
    "heloc",
    """Credit lines: is the risk performance bad?

    File of the FICO challenge on explainable machine learning, without applications that have no bureau record. -8 and
    single -9 are missing values, -7 stays a number. Read from `heloc.parquet` in the data directory.
    """,
    target="RiskPerformance",
    positive="Bad",
    sha256="691025c016cda7882636f0762bfa7451e24999ecc5438b6f6ef4dc5fdd34f3fa",
    licence="FICO challenge terms",
    reference="FICO 2018; OpenML 45553 is a cleaned version",
)

add_dataset(
    "hotel_bookings",
    """Hotel bookings: is the booking cancelled?

    Columns that reveal the outcome are left out (reservation status and its date). Codes of agents and companies are
    categories. The day of arrival makes bags and is not a feature. Year, month, week and day of the month are features.
    """,
    target="is_canceled",
    positive="1",
    sha256="8660f359c56fe7df33d42999992a3d967ff4f6b4df668a89bca3bbbf27f8ca89",
    key_only=("arrival_date",),
    natural_keys=("arrival_date", "country", "agent", "hotel+arrival_date_year+arrival_date_week_number"),
    licence="CC BY 4.0",
    reference="Antonio, de Almeida & Nunes 2019, Data in Brief 22",
)

add_dataset(
    "kc_house",
    """House sales: is the price above 450,000 dollars, the median?

    The price is used only as the target. The day of sale makes bags and is not a feature. Zip codes are categories.
    """,
    target="price_above_median",
    positive="1",
    sha256="ddc72787497e0156384837a2501f024a4ee0a22662498242bb9d20c23a87941e",
    key_only=("date",),
    natural_keys=("zipcode", "date"),
    licence="CC0",
    reference="King County house sales 2014-2015",
)

add_dataset(
    "lending_club",
    """Loans: does the loan go bad?

    A sample of the company's loans. State and sub-grade of a loan are features and make bags.
    """,
    target="Class",
    positive="bad",
    sha256="73dff3d1297b50ab45cfcbfee68ee29cb31268ff1de12608eb78d3f4d9ccce43",
    natural_keys=("addr_state", "sub_grade"),
    licence="MIT",
    reference="Kuhn, R package modeldata",
)


@register_dataset(
    "movielens_1m",
    code="ML",
    source=GroupLens("ml-1m.zip"),
    target="liked",
    positive="1",
    sha256="eca38a84f276c8a957adde3eaaab12de92e253b0a3c29f8bc6e6c09766bcd7f8",
    source_may_differ=True,
    licence="GroupLens: research use, no redistribution",
    reference="Harper & Konstan 2015, ACM TiiS 5(4)",
)
def _movielens_1m(frame: DataFrame) -> DataFrame:
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


add_dataset(
    "online_shoppers",
    """Shop sessions: does the session end with a purchase?

    Month, region, kind of traffic and similar columns are categories. Three of them make bags.
    """,
    target="Revenue",
    positive="1",
    sha256="57b2f1a6e9409fd5e90715bfe38a094701fe0f74631851ea3c965eb3dd5e3fde",
    natural_keys=("Month", "Region", "TrafficType"),
    licence="CC BY 4.0",
    reference="Sakar, Polat, Katircioglu & Kastro 2019, UCI Machine Learning Repository",
)

add_dataset(
    "polish_bankruptcy",
    """Companies: is the company bankrupt within five years?

    Financial ratios of the first year, with the names in UCI's description.
    """,
    target="bankrupt",
    positive="1",
    sha256="878642001bd8fd14d823889a1c070d9de2cbdeab9a844788412c196a61d54b82",
    licence="CC BY 4.0",
    reference="Zieba, Tomczak & Tomczak 2016, UCI Machine Learning Repository",
)

add_dataset(
    "telco_churn",
    """Telephone customers: does the customer leave?

    Simulated by IBM. Customer numbers are not in the file.
    """,
    target="Churn",
    positive="Yes",
    sha256="87e73bf733cb25ef4af943b49f620eef9e653336e775230296743f4d6e1bedff",
    licence="MIT",
    reference="IBM sample data; Kuhn, R package modeldata; OpenML 42178",
)

add_dataset(
    "vehicle_fraud",
    """Insurance claims: is the claim fraudulent?

    File `fraud_oracle.csv` (carclaims), without policy numbers. Year and month together make bags and are not a
    feature. Each of them alone is a feature. Read from `vehicle_fraud.parquet` in the data directory.
    """,
    target="FraudFound_P",
    positive="1",
    sha256="248249e1e50cd928ab1a6e979f255853c065e9887387e3a7b304d732752dbfb9",
    key_only=("year_month",),
    natural_keys=("year_month", "Make", "RepNumber"),
    licence="none stated",
    reference="carclaims, example data of a database vendor",
)
