"""Whether 95 % intervals of groups hold the truth, on tables with hidden labels and on a simulation.

    python -m benchmarks.groups --seeds 2 --rows 3000
    python -m benchmarks.groups --tables judged --methods bag-gp,auto

Rows are in natural bags (or in bags of 40 at random), and only the counts of bags are known. Groups are those of a
column: categories, or quarters of a number. Coverage is the share of groups whose true count is in the interval,
among those whose bounds leave something open. Errors of shares are means over groups: of the estimate, of the shares
of bags, and of Goodman's regression (bags' proportions on their shares of groups, cut to [0, 1]).

The rule of the intervals was chosen on the tables of `CHOSEN_ON`. Those of `JUDGED_ON` were run once afterwards.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pandas as pd
from scipy.special import expit

from llpbench import LLPClassifier

DATA = Path("../shared/data")


class Source(NamedTuple):
    """A table: columns that name its bags (none: bags of 40 at random), target, groups, and columns left out."""

    keys: tuple[str, ...]
    target: str
    by: tuple[str, ...]
    without: tuple[str, ...] = ()


CHOSEN_ON = {
    "hotel_bookings": Source(
        ("country",), "is_canceled", ("hotel", "customer_type", "lead_time", "market_segment"), ("arrival_date",)
    ),
    "covid_testing": Source(("clinic_name",), "result", ("gender", "age", "payor_group", "patient_class")),
    "kc_house": Source(
        ("zipcode",), "price_above_median", ("bedrooms", "condition", "sqft_living", "yr_built"), ("date",)
    ),
    "oulad": Source(
        ("module_presentation",),
        "passed",
        ("gender", "age_band", "imd_band", "highest_education"),
        ("code_module", "code_presentation"),
    ),
    "adult": Source(
        ("native-country", "education"), "class", ("sex", "age", "occupation", "race"), ("education-num", "fnlwgt")
    ),
    "dutch_census": Source(
        ("household_position", "edu_level"), "occupation", ("sex", "age", "Marital_status", "economic_status")
    ),
    "nass_cds": Source(("psu",), "dead", ("sex", "ageOFocc", "dvcat", "seatbelt")),
    "mpls_stops": Source(
        ("neighborhood",), "personSearch", ("race", "gender", "problem", "hour"), ("date", "policePrecinct")
    ),
    "flights_2013": Source(("date",), "late", ("origin", "carrier", "sched_dep_time", "distance"), ("month",)),
    "cces_2016": Source(("state",), "votetrump", ("female", "age", "racef", "pid7na", "collegeed")),
    "chem97": Source(("lea",), "grade_A_or_B", ("gender", "age", "gcsescore"), ("school",)),
    "lending_club": Source(("addr_state",), "Class", ("term", "annual_inc", "verification_status", "inq_last_12m")),
    "weather_aus": Source(
        ("Location",), "RainTomorrow", ("RainToday", "Humidity3pm", "MinTemp", "WindGustSpeed"), ("date",)
    ),
    "portal_rodents": Source(("plot_id",), "species", ("sex", "weight", "month"), ("date", "day", "plot_type")),
    "fars": Source(("CASE_STATE",), "INJURY_SEVERITY", ("SEX", "AGE", "PERSON_TYPE")),
    "vehicle_fraud": Source(("year_month",), "FraudFound_P", ("Sex", "Age", "PolicyType", "Fault"), ("Year", "Month")),
    "compas": Source(("compas_screening_date",), "two_year_recid", ("sex", "age", "race", "priors_count")),
    "bank_marketing": Source((), "y", ("job", "age", "marital", "poutcome")),
    "default_credit": Source((), "default_payment_next_month", ("SEX", "EDUCATION", "AGE", "PAY_0")),
    "telco_churn": Source(
        ("Contract", "PaymentMethod"), "Churn", ("gender", "SeniorCitizen", "tenure", "InternetService")
    ),
    "electricity": Source(("date",), "class", ("period", "day", "vicprice", "nswdemand")),
    "bike_sharing": Source(("date",), "high_demand", ("hr", "weekday", "hum", "weathersit"), ("yr",)),
}
JUDGED_ON = {
    "diamonds": Source(("color", "clarity"), "cut", ("carat", "depth", "table")),
    "diabetes130": Source(("medical_specialty",), "readmitted_30d", ("gender", "age", "race", "time_in_hospital")),
    "online_shoppers": Source(("Region", "Month"), "Revenue", ("VisitorType", "Weekend", "PageValues", "ExitRates")),
    "california": Source((), "price_above_median", ("MedInc", "HouseAge", "AveOccup")),
    "nursery": Source((), "class", ("has_nurs", "children", "social", "health")),
    "credit": Source((), "SeriousDlqin2yrs", ("age", "NumberOfDependents", "NumberOfTimes90DaysLate")),
    "wine_quality": Source((), "good", ("colour", "alcohol", "volatile_acidity", "pH")),
    "ai4i2020": Source((), "Machine_failure", ("Type", "Torque [Nm]", "Tool wear [min]")),
}
SIMULATED = "simulated"
_RANDOM_BAG = 40
_MOST_CLASSES = 6
"""the rarer ones are one class"""
_SIZES = (0, 1, 5, 20, 100, 500, np.inf)
_NAMES_OF_SIZES = ("1", "2-5", "6-20", "21-100", "101-500", "501-")


class Labelled(NamedTuple):
    """Rows in bags, their groups by column, and the labels that no model is told."""

    features: pd.DataFrame
    bags: Any
    labels: Any
    groups: dict[str, Any]


def read(name: str, source: Source, seed: int, rows: int, data: Path) -> Labelled:
    """Some rows of a table, at random."""
    frame = pd.read_parquet(data / f"{name}.parquet")
    frame = frame.iloc[np.random.default_rng(seed).permutation(len(frame))[:rows]].reset_index(drop=True)
    labels = frame[source.target].astype(str)
    often = labels.value_counts().index
    if len(often) > _MOST_CLASSES:
        labels = labels.where(labels.isin(often[: _MOST_CLASSES - 1]), "other")
    bags = np.array(["+".join(map(str, key)) for key in frame[[*source.keys]].itertuples(index=False)])
    if not source.keys:
        bags = (np.arange(len(frame)) // _RANDOM_BAG).astype(str)
    groups = {column: group_of(frame[column]) for column in source.by}
    texts = frame.select_dtypes(exclude="number").columns
    frame[texts] = frame[texts].astype(object).where(frame[texts].notna(), None)
    return Labelled(frame.drop(columns=[source.target, *source.without, *source.keys]), bags, labels.to_numpy(), groups)


def group_of(column: pd.Series) -> Any:
    """Quarters of a number of many values, otherwise the values."""
    if column.dtype.kind in "if" and column.nunique() > 8:
        column = pd.qcut(column, 4, duplicates="drop")
    return column.astype(object).map(str).to_numpy()


def simulated(seed: int, rows: int) -> Labelled:
    """People in 60 districts, which differ in who lives there and have effects of their own."""
    rng = np.random.default_rng(seed)
    place = rng.normal(size=60)
    district = rng.integers(0, 60, rows)
    old = rng.random(rows) < expit(0.8 * place[district])
    sex = rng.random(rows) < 0.5
    school = rng.choice(3, rows)
    logits = -0.5 + 1.2 * old + 0.6 * sex - 0.5 * school + rng.normal(0, 0.3, 60)[district]
    labels = np.where(rng.random(rows) < expit(logits), "yes", "no")
    frame = pd.DataFrame({"old": old.astype(str), "sex": np.where(sex, "f", "m"), "school": school.astype(str)})
    return Labelled(frame, district.astype(str), labels, {name: frame[name].to_numpy() for name in frame})


def goodman(shares: Any, proportions: Any, sizes: Any) -> Any:
    """[groups] proportions of groups from [bags, groups] shares and [bags] proportions, cut to [0, 1]."""
    root = np.sqrt(sizes)
    return np.clip(np.linalg.lstsq(shares * root[:, None], proportions * root, rcond=None)[0], 0, 1)


def judged(model: LLPClassifier, table: Labelled, column: str) -> pd.DataFrame:
    """Estimates of the groups of a column beside the truth."""
    groups = pd.Series(table.groups[column], name="group")
    found = model.estimate(table.features, table.bags, groups)
    rows = pd.DataFrame({"bag": table.bags, "group": groups, "class": table.labels})
    truth = pd.concat([rows.assign(bag="all"), rows]).value_counts(["bag", "group", "class"]).rename("truth")
    found = found.join(truth, on=["bag", "group", "class"]).fillna({"truth": 0})
    proportions = pd.crosstab(rows["bag"], rows["class"], normalize="index")
    found["of bag"] = [
        np.nan if bag == "all" else proportions.at[bag, label]
        for bag, label in zip(found["bag"], found["class"], strict=True)
    ]
    shares = pd.crosstab(rows["bag"], rows["group"], normalize="index")
    sizes = rows["bag"].value_counts()[shares.index].to_numpy()
    for label in proportions:
        regression = dict(zip(shares, goodman(shares.to_numpy(), proportions[label].to_numpy(), sizes), strict=True))
        of_label = found["class"] == label
        found.loc[of_label, "regression"] = found.loc[of_label, "group"].map(regression)
    expected = (found["of bag"] * found["rows"]).groupby([found["group"], found["class"]]).sum()
    overall = found["bag"] == "all"
    keys = pd.MultiIndex.from_frame(found.loc[overall, ["group", "class"]])
    found.loc[overall, "of bag"] = expected[keys].to_numpy() / found.loc[overall, "rows"].to_numpy()
    share = found["truth"] / found["rows"]
    open_to = found["count_max"] - found["count_min"] > 1e-6
    inside = found["truth"].between(found["count_lower"] - 1e-6, found["count_upper"] + 1e-6)
    return pd.DataFrame(
        {
            "by": column,
            "level": np.where(overall, "all bags", "one bag"),
            "size": pd.cut(found["rows"], _SIZES, labels=_NAMES_OF_SIZES),
            "coverage": inside.astype(float),
            "width": found["share_upper"] - found["share_lower"],
            "bounds": found["share_max"] - found["share_min"],
            "error": (found["share"] - share).abs(),
            "of bags": (found["of bag"] - share).abs(),
            "regression": (found["regression"] - share).abs(),
        }
    )[open_to]


MEASURES = ["coverage", "width", "bounds", "error", "of bags", "regression"]


def table_of(found: pd.DataFrame, by: Sequence[str]) -> str:
    """Means and numbers of groups, as Markdown."""
    means = found.groupby([*by], observed=True)[MEASURES].mean()
    number = found.groupby([*by], observed=True).size()
    lines = [f"| {' | '.join(by)} | groups | {' | '.join(MEASURES)} |", "|---" * (len(by) + 1 + len(MEASURES)) + "|"]
    for key, mean in means.iterrows():
        names = key if isinstance(key, tuple) else (key,)
        cells = [*map(str, names), f"{number[key]:,}", *(f"{value:.3f}" for value in mean)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


@click.command()
@click.option("--data", default=DATA, type=click.Path(path_type=Path))
@click.option("--methods", default="bag-gp")
@click.option("--tables", default="judged", help="chosen, judged, simulated, or names of tables.")
@click.option("--seeds", default=1)
@click.option("--rows", default=3000)
@click.option("--out", type=click.Path(path_type=Path), help="A .csv of all groups.")
def main(data: Path, methods: str, tables: str, seeds: int, rows: int, out: Path | None) -> None:
    """Print a line a fit, then tables."""
    warnings.simplefilter("ignore")
    sources = {**CHOSEN_ON, **JUDGED_ON}
    sets = {"chosen": [*CHOSEN_ON], "judged": [*JUDGED_ON]}
    names = [name for given in tables.split(",") for name in sets.get(given, [given])]
    parts = []
    for method in methods.split(","):
        for name in names:
            for seed in range(seeds):
                clock = time.perf_counter()
                table = simulated(seed, rows) if name == SIMULATED else read(name, sources[name], seed, rows, data)
                model = LLPClassifier(method, random_state=seed)
                model.fit(table.features, table.bags, counts=pd.crosstab(table.bags, table.labels))
                found = pd.concat([judged(model, table, column) for column in table.groups])
                parts.append(found.assign(table=name, method=method, seed=seed))
                learned = model._known_bags()
                overall = found[found["level"] == "all bags"]
                click.echo(
                    f"{name} {method} {seed}: {len(model.bags_)} bags, spread {learned.spread:.2f}, tau "
                    f"{learned.deviation:.2f}, coverage of groups {overall['coverage'].mean():.2f}, "
                    f"{time.perf_counter() - clock:.0f} s"
                )
    every = pd.concat(parts)
    if out is not None:
        every.to_csv(out, index=False)
    for by in (["method", "level", "size"], ["method", "level", "table"], ["method", "level"]):
        click.echo(f"\n{table_of(every, by)}")


if __name__ == "__main__":
    main()
