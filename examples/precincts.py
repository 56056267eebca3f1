"""Ecological inference: how groups voted, from a census table of precincts and the precincts' vote shares.

The census counts people by precinct, sex, age group and education. The number of people is the weight of a line.
The answer is the share of each group that voted yes.
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from llpbench import LLPClassifier

CELLS = ["sex", "age", "education"]


def write_tables(folder: Path, rows: int | None = None, precincts: int = 250) -> None:
    """census.csv and votes.csv for training, truth.csv to measure errors. "Yes" are Adult's incomes above 50,000."""
    adult = pd.read_parquet(str(files("llpbench.datasets") / "embedded" / "adult.parquet")).head(rows)
    voted = adult["class"] == ">50K"
    rng = np.random.default_rng(0)
    # similar people often live in the same precinct
    place = adult["education-num"].rank() / len(adult) + 0.5 * adult["age"].rank() / len(adult)
    precinct = pd.qcut((place + rng.normal(0, 0.3, len(adult))).rank(), precincts, labels=False)
    years = pd.cut(adult["age"], [0, 29, 44, 59, 120], labels=["to 29", "30 to 44", "45 to 59", "from 60"])
    people = pd.DataFrame({"precinct": precinct, "sex": adult["sex"], "age": years, "education": adult["education"]})
    folder.mkdir(parents=True, exist_ok=True)
    census = people.groupby(["precinct", *CELLS], observed=True).size().rename("people").reset_index()
    census.to_csv(folder / "census.csv", index=False)
    votes = pd.DataFrame({"voters": precinct.value_counts().sort_index(), "yes": voted.groupby(precinct).mean()})
    votes["no"] = 1 - votes["yes"]
    votes.round(4).rename_axis("precinct").to_csv(folder / "votes.csv")
    voted.groupby(people["education"]).mean().to_csv(folder / "truth.csv")


def main(folder: Path, rows: int | None = None, precincts: int = 250, **settings: Any) -> dict[str, float]:
    """Estimate the share of yes of each level of education.

    Return mean errors, in points, of the estimates and of the overall share, and the share of levels whose true share
    is in the interval.
    """
    write_tables(folder, rows, precincts)
    census, votes = pd.read_csv(folder / "census.csv"), pd.read_csv(folder / "votes.csv").set_index("precinct")
    cells, precinct, people = census[CELLS], census["precinct"], census["people"]
    model = LLPClassifier(**settings)
    shares, voters = votes[["no", "yes"]], votes["voters"]
    model.fit(cells, precinct, proportions=shares, sizes=voters, sample_weight=people)
    estimates = model.estimate(cells, precinct, "education", sample_weight=people)
    estimates.to_csv(folder / "groups.csv", index=False)
    found = estimates[(estimates["precinct"] == "all") & (estimates["class"] == "yes")].set_index("education")
    size = people.groupby(census["education"]).sum()
    truth = pd.read_csv(folder / "truth.csv").set_index("education")["class"]
    overall = float((truth * size).sum() / size.sum())

    def error(guess: Any) -> float:
        return float(100 * (size * (guess - truth).abs()).sum() / size.sum())

    inside = truth.between(found["share_lower"], found["share_upper"])
    return {
        "error of the model": error(found["share"]),
        "error of the overall share": error(overall),
        "in the interval": float(inside.mean()),
    }


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "precincts")))
